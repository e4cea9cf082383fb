"""Posterior samples of class probabilities and of the predictions of regressors."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.linalg import eigh
from sklearn.base import is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import WhiteKernel
from sklearn.utils.validation import check_is_fitted, validate_data

from ._utils._chunks import chunks
from ._utils._containers import count_items
from ._utils._labels import as_labels, check_weights, marginals
from ._utils._linear import is_linear_logistic
from ._utils._pipelines import split_estimator
from ._utils._repeatable import base_seed
from ._utils._sklearn import MOST, check_count, naming, num_samples
from .linear_model import _normal

__all__ = ["sample_predictions", "sample_proba"]


def sample_proba(
    estimator: Any,
    X: Any,
    n_draws: int = 50,
    random_state: int | np.random.RandomState | None = None,
    *,
    X_train: Any = None,
    y_train: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> NDArray:
    """Return class probabilities under posterior samples of a model.

    Parameters
    ----------
    estimator : estimator
        Fitted. The first steps of a pipeline are applied to `X` and `X_train`. A fitted
        search stands for its best estimator, a `FrozenEstimator` for its estimator. The
        draws come from the first that applies:

        - its own method `sample_proba(X, n_draws=..., random_state=...)`;
        - the members of a random forest, `ExtraTreesClassifier`, `BaggingClassifier`,
          `VotingClassifier(voting="soft")` or
          `CalibratedClassifierCV(ensemble=True)`;
        - the Laplace approximation of `LogisticRegression`, `LogisticRegressionCV`,
          `SGDClassifier(loss="log_loss")` with an l2 penalty, or a
          `OneVsRestClassifier` of one of these.
    X : container of n items
        Items to predict.
    n_draws : int, default=50
        Number of models, t, at most 1,000,000. Each member of an ensemble is used
        equally often, or by its weight if it has one; the members that are used once
        more are drawn.
    random_state : int, RandomState instance or None, default=None
        Seeds the models.
    X_train : same kind as `X` of m items, default=None
        The training data, used only by a Laplace approximation. Defaults to `X`, with a
        warning: this is exact if the estimator was trained on `X`, and overconfident if
        `X` holds more items.
    y_train : array-like of shape (m,), default=None
        The labels of `X_train`, used only for `class_weight`. Defaults to the predicted
        labels.
    sample_weight : array-like of shape (m,), default=None
        The weights that the estimator was trained with.

    Returns
    -------
    draws : ndarray of shape (n, t, k)
        Columns as in `classes_`. `draws[:, t]` comes from one and the same model for
        every item. A Laplace approximation of float32 features returns float32.

    Raises
    ------
    TypeError
        If the estimator has no posterior samples; the message names alternatives.

    Notes
    -----
    The Laplace approximation draws the weights from the normal distribution around the
    fitted ones whose precision is the Hessian of the loss. So the logits of all items
    have their exact joint distribution under this approximation. The Hessian costs O(m
    d² k²) and its factor O(d³ k³) once, for (d + 1) k up to 4096; above, equations in
    the span of the training rows or conjugate gradients are used. A draw then costs O(n
    d k), like a prediction, and all t draws are one matrix product.

    For weights that stochastic descent has stopped early or averaged, the mode is
    approximate. One-vs-rest models vary independently of each other.

    References
    ----------
    D. J. C. MacKay, "The evidence framework applied to classification networks",
    Neural Computation 4, 1992.

    B. Lakshminarayanan, A. Pritzel, C. Blundell, "Simple and scalable predictive
    uncertainty estimation using deep ensembles", NeurIPS 2017.

    Examples
    --------
    The model is sure that 9 is of class 1. Its posterior samples are less sure, because
    no label is near:

    >>> from skactive.posterior import sample_proba
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = [[-2.0], [-1.0], [1.0], [2.0]]
    >>> model = LogisticRegression().fit(X, [0, 0, 1, 1])
    >>> draws = sample_proba(model, [[0.0], [9.0]], 1000, 0, X_train=X)
    >>> model.predict_proba([[9.0]])[0].round(1)
    array([0., 1.])
    >>> draws[1].mean(axis=0).round(1)
    array([0.1, 0.9])
    """
    front, final = split_estimator(estimator)
    if _predicts_numbers(final):
        raise TypeError(
            f"'estimator' must be a classifier, got {type(final).__name__}, a "
            "regressor. Use sample_predictions."
        )
    check_can_sample(final)
    items = _apply(front, X, "X")
    if X_train is not None:
        X_train = _apply(front, X_train, "X_train")
    elif not hasattr(final, "sample_proba") and is_linear_logistic(final):
        warnings.warn(
            "X_train is None: the rows of X are used as the training data of "
            f"{type(final).__name__}, so its draws are overconfident if X holds more. "
            "Pass X_train and y_train.",
            UserWarning,
            stacklevel=2,
        )
        X_train = items
    train = {"X_train": X_train, "y_train": y_train, "sample_weight": sample_weight}
    draw = sampler(final, n_draws, random_state, **train)
    with naming("X"):
        return draw(items)


def sampler(
    estimator,
    n_draws=50,
    random_state=None,
    *,
    X_train=None,
    y_train=None,
    sample_weight=None,
):
    """Return a function from `X` of n items to draws (n, t, k) of the same models.

    Arguments as in :func:`sample_proba`; a Laplace approximation needs `X_train` here.
    The function may be called in threads if the estimator's predictions may. For a
    regressor the draws are (n, t), see :func:`sample_predictions`.
    """
    check_count("n_draws", n_draws, most=MOST)
    front, final = split_estimator(estimator)
    check_can_sample(final)
    seed = base_seed(random_state)
    if _predicts_numbers(final):
        train = _read_training(front, X_train, y_train, sample_weight)
        draw = _number_sampler(final, n_draws, seed, train)
    elif hasattr(final, "sample_proba"):
        draw = partial(final.sample_proba, n_draws=n_draws, random_state=seed)
    elif is_ensemble(final):
        draw = MemberDraws(final, n_draws, np.random.default_rng(seed))
    elif X_train is None:
        raise ValueError(
            f"X_train is needed: {type(final).__name__} does not keep the rows that it "
            "was trained on, and the spread of the draws depends on them."
        )
    else:
        rng = np.random.default_rng(seed)
        X_train = _apply(front, X_train, "X_train")
        n_train = num_samples(X_train)
        if y_train is not None:
            y_train = as_labels(y_train, n_train, name="y_train", items="X_train")
        check_weights({"sample_weight": sample_weight}, n_train)
        with naming("X_train"):
            draw = _normal.draw_linear(
                final, n_draws, rng, X_train, y_train, sample_weight
            )
    return draw if front is None else lambda X: draw(_apply(front, X, "X"))


def check_can_sample(estimator):
    """Raise a TypeError unless `sampler` works on a fitted estimator."""
    final = split_estimator(estimator)[1]
    if _predicts_numbers(final):
        _check_can_sample_numbers(final)
        return
    if hasattr(final, "sample_proba"):
        return
    name = type(final).__name__
    if is_ensemble(final):
        check_is_fitted(final)
        obstacle = find_obstacle(final)
    elif is_linear_logistic(final):
        check_is_fitted(final)
        obstacle = _normal.find_logistic_obstacle(final)
    else:
        if hasattr(final, "loss"):
            name += f"(loss={final.loss!r})"
        obstacle = _find_dropout_obstacle(final) or (
            "has no sample_proba, no members that are models of their own, and no "
            "linear log loss. Use LogisticRegression, SGDClassifier(loss='log_loss'), "
            "RandomForestClassifier, BaggingClassifier around it, or an estimator with "
            "sample_proba(X, n_draws, random_state), such as BertClassifier."
        )
    _refuse(name, obstacle)


def _find_dropout_obstacle(final):
    """Return that the dropout of an encoder, also of a member, is off, or None."""
    is_off = getattr(getattr(final, "estimator_", final), "mc_dropout", "") is None
    fault = "has mc_dropout=None, which makes no draws. Set mc_dropout='head'."
    return fault if is_off else None


def _apply(front, X, name):
    count_items(X, name=name)
    with naming(name):
        return X if front is None else front.transform(X)


_FORESTS = (RandomForestClassifier, ExtraTreesClassifier)
_NUMBER_FORESTS = (RandomForestRegressor, ExtraTreesRegressor)
_ENSEMBLES = (*_FORESTS, BaggingClassifier, VotingClassifier, CalibratedClassifierCV)


def is_ensemble(estimator):
    """Whether the estimator averages members that are models of their own."""
    return isinstance(estimator, _ENSEMBLES)


def find_obstacle(ensemble):
    """Return why an ensemble's members are no posterior samples, or None."""
    classes = ensemble.classes_
    if isinstance(classes, list) and not all(np.isin(c, (0, 1)).all() for c in classes):
        return "predicts several outputs that are no labels. Train one on each."
    if isinstance(ensemble, VotingClassifier) and ensemble.voting != "soft":
        return f"has voting={ensemble.voting!r}. Use voting='soft'."
    if len(_members(ensemble)) < 2:
        remedy = "several members"
        if isinstance(ensemble, CalibratedClassifierCV):
            remedy = "ensemble=True and an estimator that it fits itself"
        return f"has one member, which has no spread. Use {remedy}."
    return None


def _members(ensemble):
    if isinstance(ensemble, CalibratedClassifierCV):
        return ensemble.calibrated_classifiers_
    return ensemble.estimators_


def _member_weights(ensemble):
    votes = isinstance(ensemble, VotingClassifier | VotingRegressor)
    if votes and ensemble.weights is not None:
        pairs = zip(ensemble.estimators, ensemble.weights, strict=True)
        return np.array([w for (_, part), w in pairs if part != "drop"], dtype=float)
    return np.ones(len(_members(ensemble)))


def _choose_members(weights, n_draws, rng):
    """Choose members by their weights, as evenly as whole numbers allow."""
    expected = n_draws * weights / weights.sum()
    counts = np.floor(expected + 1e-9).astype(int)
    gap = np.maximum(expected - counts, 0.0)
    left = n_draws - counts.sum()
    if left > 0:
        once_more = rng.choice(len(counts), left, replace=False, p=gap / gap.sum())
        counts[once_more] += 1
    return rng.permutation(np.repeat(np.arange(len(counts)), counts))


class MemberDraws:
    """Probabilities under t members of an ensemble; some repeat if there are fewer."""

    def __init__(self, ensemble, n_draws, rng):
        self.ensemble = ensemble
        self.chosen = _choose_members(_member_weights(ensemble), n_draws, rng)

    def __call__(self, X):
        """Return the draws (n, t, k) of the members for `X` of n items."""
        X = self._prepare(X)
        draws = None
        for member in np.unique(self.chosen):
            proba = self._predict(member, X)
            if draws is None:
                shape = (len(proba), len(self.chosen), proba.shape[1])
                draws = np.empty(shape, dtype=proba.dtype)
            draws[:, self.chosen == member] = proba[:, None]
        return draws

    def _prepare(self, X):
        """Check the items once instead of once for each member."""
        options = {"reset": False, "accept_sparse": "csr"}
        if isinstance(self.ensemble, _FORESTS + _NUMBER_FORESTS):
            options.update(dtype=np.float32, ensure_all_finite="allow-nan")
        elif isinstance(self.ensemble, BaggingClassifier | BaggingRegressor):
            options.update(dtype=None, ensure_all_finite=False)
        else:
            return X
        return validate_data(self.ensemble, X, **options)

    def _predict(self, position, X):
        member = _members(self.ensemble)[position]
        if isinstance(self.ensemble, CalibratedClassifierCV):
            return member.predict_proba(X)
        if isinstance(self.ensemble, _FORESTS):
            proba = member.predict_proba(X, check_input=sparse.issparse(X))
            several = isinstance(proba, list)
            return marginals(proba, self.ensemble.classes_) if several else proba
        if isinstance(self.ensemble, BaggingClassifier):
            features = self.ensemble.estimators_features_[position]
            if not np.array_equal(features, np.arange(X.shape[1])):
                X = X[:, features]
        # Members are trained on positions in `classes_`, and may lack some.
        k = len(self.ensemble.classes_)
        if not hasattr(member, "predict_proba"):
            return np.eye(k)[member.predict(X)]
        proba = member.predict_proba(X)
        if proba.shape[1] == k:
            return proba
        aligned = np.zeros((len(proba), k), dtype=proba.dtype)
        aligned[:, member.classes_] = proba
        return aligned


# Regressors ---------------------------------------------------------------------------

_NUMBER_ENSEMBLES = (*_NUMBER_FORESTS, BaggingRegressor, VotingRegressor)
MOST_ROWS = 4096  # of a joint draw from a Gaussian process, whose cost is cubic


def sample_predictions(
    estimator: Any,
    X: Any,
    n_draws: int = 50,
    random_state: int | np.random.RandomState | None = None,
    *,
    X_train: Any = None,
    y_train: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> NDArray:
    """Return the predictions of a regressor under posterior samples of it.

    Parameters
    ----------
    estimator : estimator
        Fitted. The first steps of a pipeline are applied to `X` and `X_train`. A fitted
        search stands for its best estimator, a `FrozenEstimator` for its estimator. The
        draws come from the first that applies:

        - its own method `sample_predictions(X, n_draws=..., random_state=...)`;
        - the members of a random forest, `ExtraTreesRegressor`, `BaggingRegressor` or
          `VotingRegressor`;
        - the posterior of `BayesianRidge`, `ARDRegression` or
          `GaussianProcessRegressor`;
        - the normal posterior of `Ridge`, `RidgeCV`, `LinearRegression` or
          `SGDRegressor(loss="squared_error")` with an l2 penalty;
        - the regressor inside a `TransformedTargetRegressor`, transformed back.
    X : container of n items
        Items to predict.
    n_draws : int, default=50
        Number of models, t, at most 1,000,000. Each member of an ensemble is used
        equally often, or by its weight if it has one; the members that are used once
        more are drawn.
    random_state : int, RandomState instance or None, default=None
        Seeds the models.
    X_train : same kind as `X` of m items, default=None
        The training data. `Ridge`, `RidgeCV`, `LinearRegression` and `SGDRegressor` do
        not keep them and need them; the others ignore them.
    y_train : array-like of shape (m,), default=None
        The labels of `X_train`, which give the variance of the noise.
    sample_weight : array-like of shape (m,), default=None
        The weights that the estimator was trained with.

    Returns
    -------
    draws : ndarray of float64, shape (n, t)
        `draws[:, t]` comes from one and the same model for every item, so their spread
        is the uncertainty about the model, without the noise of the labels.

    Raises
    ------
    TypeError
        If the estimator has no posterior samples; the message names alternatives.
    ValueError
        If the training data are needed and missing.

    Notes
    -----
    The posterior of a linear model is exact for normal noise and a normal prior of the
    weights. The variance of the noise is the sum of squared residuals over m minus the
    effective number of parameters. It costs O(m d min(m, d)) once. A Gaussian process
    is drawn jointly for all n items, at O(n³), so n is limited to 4,096.

    References
    ----------
    D. J. C. MacKay, "Bayesian interpolation", Neural Computation 4, 1992.

    C. E. Rasmussen, C. K. I. Williams, "Gaussian processes for machine learning", MIT
    Press, 2006.

    Examples
    --------
    How certain is a prediction near the data, and one far from them?

    >>> from skactive.posterior import sample_predictions
    >>> from sklearn.linear_model import Ridge
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [-2.1, -0.9, 1.1, 1.9]
    >>> model = Ridge(alpha=0.1).fit(X, y)
    >>> draws = sample_predictions(
    ...     model, [[1.0], [9.0]], 1000, 0, X_train=X, y_train=y
    ... )
    >>> for name, values in zip(["near", "far"], draws):
    ...     print(f"{name}: {values.mean():.0f} ± {values.std():.1f}")
    near: 1 ± 0.1
    far: 9 ± 0.4
    """
    final = split_estimator(estimator)[1]
    if not _predicts_numbers(final):
        raise TypeError(
            f"'estimator' must be a regressor, got {type(final).__name__}. Use "
            "sample_proba for classifiers."
        )
    draw = sampler(
        estimator,
        n_draws,
        random_state,
        X_train=X_train,
        y_train=y_train,
        sample_weight=sample_weight,
    )
    count_items(X, name="X")
    with naming("X"):
        return draw(X)


def variance_function(estimator, *, X_train=None, y_train=None, sample_weight=None):
    """Return a function from `X` of n items to the variance (n,) of their predictions.

    It is the variance of `sample_predictions` for infinitely many draws. None for a
    regressor that has no formula. Arguments as in :func:`sample_predictions`.
    """
    front, final = split_estimator(estimator)
    check_can_sample(final)
    variance = None
    if hasattr(final, "sample_predictions"):
        return None
    if isinstance(final, GaussianProcessRegressor):
        variance = partial(_process_variance, final)
    elif _normal.is_linear_regressor(final):
        train = _read_training(front, X_train, y_train, sample_weight)
        variance = _normal_posterior(final, train).variance
    if front is None or variance is None:
        return variance
    return lambda X: variance(_apply(front, X, "X"))


def _predicts_numbers(estimator):
    return hasattr(estimator, "predict") and is_regressor(estimator)


def _check_can_sample_numbers(final):
    if hasattr(final, "sample_predictions"):
        return
    obstacle, name = None, type(final).__name__
    if isinstance(final, TransformedTargetRegressor):
        check_is_fitted(final)
        _check_can_sample_numbers(split_estimator(final.regressor_)[1])
    elif isinstance(final, _NUMBER_ENSEMBLES):
        check_is_fitted(final)
        if getattr(final, "n_outputs_", 1) > 1:
            obstacle = "predicts several outputs. Train one regressor for each."
        elif len(final.estimators_) < 2:
            obstacle = "has one member, which has no spread. Use several members."
    elif isinstance(final, GaussianProcessRegressor):
        check_is_fitted(final)
        if np.ndim(getattr(final, "y_train_", 0)) == 2:
            obstacle = "predicts several outputs. Train one regressor for each."
    elif _normal.is_linear_regressor(final):
        check_is_fitted(final)
        obstacle = _normal.find_ridge_obstacle(final)
    else:
        obstacle = _find_dropout_obstacle(final) or (
            "has no sample_predictions, no members that are models of their own, and "
            "no normal posterior. Use BayesianRidge, Ridge, GaussianProcessRegressor, "
            "RandomForestRegressor, BaggingRegressor around it, or an estimator with "
            "sample_predictions(X, n_draws, random_state), such as BertRegressor."
        )
    _refuse(name, obstacle)


def _refuse(name, obstacle):
    """Raise a TypeError that names the obstacle to draws, if there is one."""
    if obstacle is not None:
        raise TypeError(
            f"'estimator' must be able to draw models, and {name} {obstacle}"
        )


def _number_sampler(final, n_draws, seed, train):
    """Return a function from the inputs of a regressor to its draws (n, t)."""
    rng = np.random.default_rng(seed)
    if hasattr(final, "sample_predictions"):
        return partial(final.sample_predictions, n_draws=n_draws, random_state=seed)
    if isinstance(final, _NUMBER_ENSEMBLES):
        return NumberDraws(final, n_draws, rng)
    if isinstance(final, GaussianProcessRegressor):
        return partial(_draw_process, final, n_draws, seed)
    if isinstance(final, TransformedTargetRegressor):
        return _draw_transformed(final, n_draws, seed, train)
    return _normal_posterior(final, train).sample(n_draws, rng)


class NumberDraws(MemberDraws):
    """Predictions under t members of an ensemble of regressors."""

    def __call__(self, X):
        """Return the draws (n, t) of the members for `X` of n items."""
        return super().__call__(X)[:, :, 0]

    def _predict(self, position, X):
        member, options = self.ensemble.estimators_[position], {}
        if isinstance(self.ensemble, _NUMBER_FORESTS):
            options["check_input"] = sparse.issparse(X)
        elif isinstance(self.ensemble, BaggingRegressor):
            features = self.ensemble.estimators_features_[position]
            if not np.array_equal(features, np.arange(X.shape[1])):
                X = X[:, features]
        numbers = np.asarray(member.predict(X, **options), dtype=np.float64)
        return numbers.reshape(len(numbers), -1)


def _read_training(front, X, y, sample_weight):
    """Return the inputs of the last step, labels and weights that trained it."""
    if X is None:
        return None, None, None
    X = _apply(front, X, "X_train")
    n = num_samples(X)
    if y is not None:
        y = as_labels(y, n, name="y_train", items="X_train")
        if y.dtype.kind not in "fiub":
            raise ValueError(f"'y_train' must hold numbers, got the type {y.dtype}.")
    check_weights({"sample_weight": sample_weight}, n)
    return X, y, sample_weight


def _normal_posterior(final, train):
    X, y, sample_weight = train
    if _normal.needs_training_rows(final) and (X is None or y is None):
        raise ValueError(
            f"X_train and y_train are needed: {type(final).__name__} does not keep the "
            "rows that it was trained on, and the spread of the draws depends on them."
        )
    with naming("X_train"):
        return _normal.NormalPosterior(final, X, y, sample_weight)


def _draw_transformed(final, n_draws, seed, train):
    """Return a function that draws from the regressor inside, transformed back."""
    X, y, sample_weight = train
    if y is not None:
        y = final.transformer_.transform(np.reshape(y, (-1, 1)))[:, 0]
    train = {"X_train": X, "y_train": y, "sample_weight": sample_weight}
    inside = sampler(final.regressor_, n_draws, seed, **train)

    def draw(X):
        draws = inside(X)
        back = final.transformer_.inverse_transform(draws.reshape(-1, 1))
        return np.reshape(back, draws.shape)

    return draw


def _draw_process(final, n_draws, seed, X):
    """Return joint draws (n, t) of a Gaussian process at `X`."""
    n = num_samples(X)
    if n > MOST_ROWS:
        raise TypeError(
            f"a Gaussian process is drawn jointly for at most {MOST_ROWS} items, got "
            f"{n}. Use 'bald', which needs only the variance, or 'subsample'."
        )
    mean, covariance = final.predict(X, return_cov=True)
    covariance[np.diag_indices(n)] -= _white_noise(final, X)
    values, axes = eigh(covariance)
    axes *= np.sqrt(np.maximum(values, 0))
    z = np.random.default_rng(seed).standard_normal((n, n_draws))
    return mean[:, None] + axes @ z


def _process_variance(final, X):
    """Return the variance (n,) of a Gaussian process at `X`, without its noise."""
    std = final.predict(X, return_std=True)[1]
    return np.maximum(std**2 - _white_noise(final, X), 0)


def _white_noise(final, X):
    """Return the variance (n,) that the kernel's white noise adds to each item."""
    noise = np.zeros(num_samples(X))
    kernel = getattr(final, "kernel_", final.kernel)
    if kernel is None:
        return noise
    parts = [kernel, *kernel.get_params().values()]
    if not any(isinstance(part, WhiteKernel) for part in parts):
        return noise
    for rows in chunks(len(noise), 256):
        # White noise is left out between two sets of items.
        noise[rows] = kernel.diag(X[rows]) - np.diag(kernel(X[rows], X[rows]))
    return noise * getattr(final, "_y_train_std", 1.0) ** 2
