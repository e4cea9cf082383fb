"""The strategy under test, pools whose model is known, and parts of all checks."""

import copy
import pickle
import random
import sys
import warnings
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO

import joblib
import numpy as np
from scipy import sparse
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone

from .._utils._containers import describe_write
from .._utils._plugins import validate
from ..learner import ActiveLearner
from ..registry import FunctionStrategy, find_requirements, get_strategy, resolve
from ..strategies import PointwiseStrategy
from ..view import PoolView


def ensure(condition, fault):
    """Raise an AssertionError that states the fault and the remedy unless it holds."""
    if not condition:
        raise AssertionError(fault)


def collect(checks, applies, subject):
    """Yield (name, check) for each check that applies to `subject`.

    `applies` maps names of checks to predicates of the subject; other checks always
    apply. A yielded check takes no argument and raises an AssertionError.
    """
    applicable = [
        check
        for check in checks
        if applies.get(check.__name__, lambda subject: True)(subject)
    ]
    if not applicable:
        raise AssertionError(
            f"no check was collected for {subject.label!r}, so that nothing would be "
            "checked; reinstall skactive."
        )
    for check in applicable:
        yield check.__name__, partial(_run, check, subject)


def _run(check, subject):
    """Run one check; every exception becomes an error that names the check."""
    rule = check.__doc__.splitlines()[0]
    try:
        check(subject)
    except Exception as exc:
        fault = str(exc)
        if written := describe_write(exc):
            fault, rule = f"it {written}", "Nothing of a view may be changed."
        elif not isinstance(exc, AssertionError):
            fault = f"{type(exc).__name__}: {fault.rstrip('.')}. Repair what raises it."
        raise AssertionError(
            f"{subject.label!r} fails {check.__name__}: {fault} ({rule})"
        ) from exc


@contextmanager
def forbid_output(what):
    """Raise an AssertionError if the block prints; warnings do not count."""
    ignored = warnings.catch_warnings(action="ignore")
    with redirect_stdout(StringIO()) as output, redirect_stderr(output), ignored:
        yield
    ensure(
        not (text := output.getvalue()),
        f"{what} prints {text[:40]!r}; leave it out, or use warnings.warn.",
    )


def changed_names(before, after):
    """Return the names whose values differ in two results of `read_contents`."""
    names = before.keys() | after.keys()
    return sorted(name for name in names if before.get(name) != after.get(name))


def read_contents(values):
    """Return the content of each value of a dict, which changes if the value does."""
    return {name: _content_of(value, ()) for name, value in values.items()}


def _content_of(value, around):
    """Return a hash of a value, or the content of the parts where it has no hash."""
    try:
        return joblib.hash(value)
    except Exception:  # such as a lambda, which has no content to hash
        if id(value) in around:
            return id(value)
    around = (*around, id(value))
    if isinstance(value, dict):
        return {key: _content_of(part, around) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_content_of(part, around) for part in value]
    return id(value), _content_of(getattr(value, "__dict__", None), around)


def restore_pickled(value):
    """Return a copy of an object by way of a pickle."""
    try:
        return pickle.loads(pickle.dumps(value))
    except Exception as exc:
        raise AssertionError(
            f"it cannot be pickled ({type(exc).__name__}: {exc}); define classes and "
            "functions at the top of a module, and hold no open files or lambdas."
        ) from exc


# Global generators


def _torch():
    """Return torch if the process has imported it."""
    return sys.modules.get("torch")


def global_states():
    """Return the state of each global generator; torch only if it is imported."""
    name, keys, position, *others = np.random.get_state()  # noqa: NPY002
    states = {
        "numpy.random": (name, keys.tobytes(), position, *others),
        "random": random.getstate(),
    }
    if _torch():
        states["torch"] = _torch().random.get_rng_state().numpy().tobytes()
    return states


def seed_globals(seed):
    """Seed every global generator."""
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    if _torch():
        _torch().random.manual_seed(seed)


def run_with_global_seeds(make, run):
    """Return `run(make())` for two global seeds, and the generators that it moved."""
    states = global_states()
    results, moved = [], []
    try:
        for seed in (1, 2):
            subject = make()
            seed_globals(seed)
            before = global_states()
            results.append(run(subject))
            after = global_states()
            moved = moved or [name for name in before if before[name] != after[name]]
    finally:
        restore_globals(states)
    return results, moved


def restore_globals(states):
    """Restore what :func:`global_states` returned."""
    name, keys, *others = states["numpy.random"]
    keys = np.frombuffer(keys, dtype=np.uint32)
    np.random.set_state((name, keys, *others))  # noqa: NPY002
    random.setstate(states["random"])
    if "torch" in states:
        state = np.frombuffer(states["torch"], dtype=np.uint8).copy()
        _torch().random.set_rng_state(_torch().from_numpy(state))


# The models: a row of `X` holds the k class probabilities of the item and then its d
# coordinates. A check sets the predictions by writing them down, without training.


class _GivenClassifier(ClassifierMixin, BaseEstimator):
    """Classifier that learns the classes from `y` and nothing else."""

    def fit(self, X, y):
        """Store the classes."""
        self.classes_ = np.unique(y)
        self.n_features_in_ = np.shape(X)[1]
        return self

    def predict(self, X):
        """Return the class of the highest given probability, (n,)."""
        return self.classes_[self._split(X)[0].argmax(axis=1)]

    def _split(self, X):
        """Return the probabilities (n, k) and the coordinates (n, d)."""
        rows = X.toarray() if sparse.issparse(X) else np.asarray(X)
        k = len(self.classes_)
        return rows[:, :k].copy(), rows[:, k:]


class GivenProba(_GivenClassifier):
    """Classifier with every capability that reads its probabilities off `X`.

    With `fixed_draws`, `sample_proba` ignores its `random_state`.
    """

    def __init__(self, fixed_draws=False):
        self.fixed_draws = fixed_draws

    def predict_proba(self, X):
        """Return the given probabilities, (n, k)."""
        return self._split(X)[0]

    def sample_proba(self, X, n_draws=50, random_state=None):
        """Return (n, t, k): probabilities tilted by t random linear models.

        Where a given probability is 0, so are its draws.
        """
        proba, tilt = self._draw(X, n_draws, random_state)
        draws = proba[:, None, :] * np.exp(tilt - tilt.max(axis=2, keepdims=True))
        draws /= draws.sum(axis=2, keepdims=True)
        return draws.astype(proba.dtype, copy=False)

    def _draw(self, X, n_draws, random_state):
        """Return the probabilities (n, k), and t random linear models (n, t, k)."""
        proba, coordinates = self._split(X)
        rng = np.random.default_rng(0 if self.fixed_draws else random_state)
        shape = (n_draws, coordinates.shape[1], proba.shape[1])
        weights = rng.normal(scale=0.5, size=shape)
        return proba, np.einsum("nd,tdk->ntk", coordinates, weights)

    def gradient_factors(self, X):
        """Return residuals (n, k) and inputs (n, d) at the predicted label."""
        proba, coordinates = self._split(X)
        residuals = proba.copy()
        residuals[np.arange(len(proba)), proba.argmax(axis=1)] -= 1
        return residuals, coordinates

    def boundary_distance(self, X):
        """Return (n,) gaps of the two likeliest classes, scaled by a coordinate."""
        proba, coordinates = self._split(X)
        top_two = np.sort(proba, axis=1)[:, -2:]
        return (top_two[:, 1] - top_two[:, 0]) * (1 + abs(coordinates[:, 0]))

    def embedding_gradients(self, X):
        """Return (n,) expected changes of the largest coordinate."""
        proba, coordinates = self._split(X)
        return (proba * (1 - proba)).sum(axis=1) * abs(coordinates).max(axis=1)

    def surprisal(self, X, random_state=None):
        """Return the sizes of the last coordinates, (n, 4)."""
        X = X.toarray() if sparse.issparse(X) else np.asarray(X)
        return abs(X[:, -4:])


class GivenMarginals(GivenProba):
    """Multi-label classifier that reads the probability of each label off `X`."""

    multi_label_ = True

    def fit(self, X, y):
        """Store the number of labels."""
        self.classes_ = np.arange(np.shape(y)[1])
        self.n_features_in_ = np.shape(X)[1]
        return self

    def predict(self, X):
        """Return the labels whose probability is above one half, (n, k)."""
        return (self._split(X)[0] > 0.5).astype(int)

    def sample_proba(self, X, n_draws=50, random_state=None):
        """Return (n, t, k): probabilities shifted by t random linear models."""
        proba, shift = self._draw(X, n_draws, random_state)
        draws = expit(logit(proba.astype(np.float64))[:, None, :] + shift)
        return draws.astype(proba.dtype, copy=False)

    def gradient_factors(self, X):
        """Return residuals (n, k) and inputs (n, d) at the predicted labels."""
        proba, coordinates = self._split(X)
        return proba - (proba > 0.5), coordinates

    def boundary_distance(self, X):
        """Return (n,) gaps of the least certain label, scaled by a coordinate."""
        proba, coordinates = self._split(X)
        return abs(2 * proba - 1).min(axis=1) * (1 + abs(coordinates[:, 0]))


class GivenNumbers(RegressorMixin, BaseEstimator):
    """Regressor that reads its predictions off the first column of `X`.

    With `fixed_draws`, `sample_predictions` ignores its `random_state`.
    """

    def __init__(self, fixed_draws=False):
        self.fixed_draws = fixed_draws

    def fit(self, X, y):
        """Store the number of columns."""
        self.n_features_in_ = np.shape(X)[1]
        return self

    def predict(self, X):
        """Return the given numbers, (n,)."""
        rows = X.toarray() if sparse.issparse(X) else np.asarray(X)
        return rows[:, 0].copy()

    def sample_predictions(self, X, n_draws=50, random_state=None):
        """Return (n, t): the numbers plus those of t random linear models."""
        rows = X.toarray() if sparse.issparse(X) else np.asarray(X)
        rng = np.random.default_rng(0 if self.fixed_draws else random_state)
        weights = rng.normal(size=(rows.shape[1], n_draws))
        draws = rows[:, :1] + rows.astype(np.float64) @ weights
        return draws.astype(rows.dtype, copy=False)

    surprisal = GivenProba.surprisal


class GivenScores(_GivenClassifier):
    """Classifier without probabilities that reads decision values off `X`."""

    def decision_function(self, X):
        """Return the decision values, (n, k), or (n,) for two classes."""
        values = self._split(X)[0]
        return values[:, 1] - values[:, 0] if values.shape[1] == 2 else values


def read_numbers(X):
    """Return the numbers that texts spell, (n, d)."""
    return np.array([text.split() for text in X], dtype=np.float64)


class StrategySubject:
    """The strategy under test, given as a name, an instance or a function."""

    def __init__(self, strategy, target=None):
        if isinstance(strategy, type):
            resolve(strategy)  # raises: an instance is wanted
        self.strategy = strategy
        if isinstance(strategy, str):
            self.label = strategy
        elif hasattr(strategy, "select"):
            self.label = _safe_repr(strategy)
        else:
            self.label = getattr(strategy, "__name__", repr(strategy))
        self.sample = self.make()
        declared = () if self.is_function else getattr(self.sample, "targets", ())
        targets = [name for name in _MODELS if name in declared] or ["single-label"]
        self.target, *self.other_targets = [target] if target else targets
        with suppress(AttributeError, RuntimeError):  # a check reports such an __init__
            validate(self.sample)

    def make(self):
        """Return a fresh strategy, without relying on its `clone`."""
        if isinstance(self.strategy, str):
            return get_strategy(self.strategy)
        if hasattr(self.strategy, "select"):
            return copy.deepcopy(self.strategy)
        return resolve(self.strategy)

    @property
    def requires(self):
        """The declared needs; None for a function, which declares none."""
        return getattr(self.sample, "requires", None)

    def make_case(self, *args, **kwargs):
        """Return a case of the target, see :func:`make_case`."""
        return make_case(*args, target=self.target, **kwargs)

    @property
    def is_function(self):
        """Whether it is a plain function of the view."""
        return isinstance(self.sample, FunctionStrategy)

    @property
    def is_pointwise(self):
        """Whether it scores each candidate on its own."""
        return isinstance(self.sample, PointwiseStrategy)


def _safe_repr(strategy):
    try:
        return repr(strategy)
    except Exception:  # a check will report what is wrong with its parameters
        return type(strategy).__name__


@dataclass(frozen=True)
class Case:
    """A pool `X` of n rows, a fitted model and the m labeled rows."""

    X: object
    model: object
    X_labeled: object
    y_labeled: np.ndarray

    def view(self, strategy, seed=0, rows=None):
        """Return the view that a strategy gets, limited to `rows` if given."""
        view = PoolView(
            self.X,
            estimator=self.model,
            X_labeled=self.X_labeled,
            y_labeled=self.y_labeled,
            requires=find_requirements(strategy, self.model, self.y_labeled),
            optional=getattr(strategy, "optional", frozenset()),
            name=type(strategy).__name__,
            rng=np.random.default_rng(seed),
        )
        return view if rows is None else view.take(rows)

    def learner(self, subject, random_state=0):
        """Return a learner fitted on the labeled rows."""
        learner = ActiveLearner(
            clone(self.model), subject.strategy, random_state=random_state
        )
        return learner.fit(self.X_labeled, self.y_labeled)

    def with_rows(self, convert):
        """Return the case with the pool and the labeled rows converted."""
        X, X_labeled = convert(self.X), convert(self.X_labeled)
        model = clone(self.model).fit(X_labeled, self.y_labeled)
        return replace(self, X=X, X_labeled=X_labeled, model=model)


_MODELS = {
    "single-label": GivenProba,
    "multi-label": GivenMarginals,
    "regression": GivenNumbers,
}


def make_case(
    n=30,
    k=3,
    *,
    n_labeled=None,
    proba=None,
    model=None,
    equal=False,
    fixed_draws=False,
    target="single-label",
):
    """Return a case of n candidates, (n, k + 4), and 3 labeled rows per class.

    `proba` (n, k) sets the predictions of the candidates; `equal` makes all of them
    copies of the first.
    """
    rng = np.random.default_rng(20260101)
    m = 3 * k if n_labeled is None else n_labeled
    if target == "single-label":
        numbers = rng.dirichlet(np.ones(k), n + m)
    else:
        numbers = rng.uniform(0.02, 0.98, size=(n + m, k))
    rows = np.hstack([numbers, rng.normal(size=(n + m, 4))])
    X, X_labeled = rows[:n].copy(), rows[n:].copy()
    if proba is not None:
        X[:, :k] = proba
    if equal:
        X[:] = X[0]
    y_labeled = np.array([f"class {i % k}" for i in range(m)])
    if target == "multi-label":
        y_labeled = np.eye(k, dtype=int)[np.arange(m) % k]
        y_labeled[::2, 0] = 1
    elif target == "regression":
        y_labeled = np.linspace(-1, 1, m)
    if model is None:
        model = _MODELS[target](fixed_draws=fixed_draws)
    model = clone(model).fit(X_labeled, y_labeled)
    return Case(X, model, X_labeled, y_labeled)


def ask(strategy, case, n, *, seed=0, rows=None):
    """Return the n validated positions that a strategy selects, (n,)."""
    view = case.view(strategy, seed, rows)
    return as_picks(strategy.select(view, n), n, len(view))


def as_picks(picks, n, n_candidates):
    """Validate n selected positions out of `n_candidates` and return them, (n,)."""
    asked = f"select(view, {n}) on {n_candidates} candidates gave"
    picks = np.asarray(picks if hasattr(picks, "__len__") else list(picks))
    ensure(
        picks.ndim == 1 and picks.dtype.kind in "iu",
        f"{asked} an array of shape {picks.shape} and dtype {picks.dtype}; return a "
        "one-dimensional array of integer positions, not scores, floats or a mask.",
    )
    ensure(
        len(picks) == n,
        f"{asked} {len(picks)} positions; return exactly n, which never exceeds "
        "len(view).",
    )
    outside = picks[(picks < 0) | (picks >= n_candidates)]
    ensure(
        outside.size == 0,
        f"{asked} the position {outside[:1]}; return positions in the view, from 0 to "
        "len(view) - 1, not in another pool.",
    )
    ensure(
        np.unique(picks).size == n,
        f"{asked} a position more than once: {picks.tolist()}; exclude positions that "
        "are already selected.",
    )
    return picks.astype(np.intp)


def score(strategy, case, *, seed=0, rows=None):
    """Return the validated scores of a pointwise strategy, (n,)."""
    view = case.view(strategy, seed, rows)
    scores = np.asarray(strategy.score(view))
    ensure(
        scores.shape == (len(view),) and scores.dtype.kind in "fiub",
        f"score(view) on {len(view)} candidates gave an array of shape "
        f"{scores.shape} and dtype {scores.dtype}; return one real number for each.",
    )
    bad = np.flatnonzero(np.isnan(scores))
    ensure(
        bad.size == 0,
        f"score(view) is NaN for {bad.size} of {len(view)} candidates, the first at "
        f"position {bad[:1]}; use the limit where a logarithm or a division is "
        "undefined (0 log 0 is 0), or -inf for candidates that should come last.",
    )
    return scores
