"""The text estimator under test, its texts and targets, containers and errors."""

import copy
import re

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import get_tags

from skactive.testing._strategy_cases import ensure

#: Short and long texts, one of them twice, one that is not ASCII.
TEXTS = (
    "the film is a joy",
    "a dull and slow film",
    "what a fine evening",
    "nobody laughed",
    "naïve, but fun: très bien",
    "the plot makes no sense, and the ending comes an hour too late",
    "the film is a joy",
    "two hours of my life",
    "see it with friends and see it again, it only gets better",
    "no",
    "a warm and clever script",
    "flat jokes, flat music",
)
#: The methods that are compared, as far as an estimator has them.
METHODS = (
    "predict",
    "predict_proba",
    "decision_function",
    "transform",
    "sample_proba",
    "sample_predictions",
)
_DRAWS = {"n_draws": 3, "random_state": 0}


class TextSubject:
    """The estimator under test, with its `kind` and a `label` for messages."""

    def __init__(self, estimator):
        self.given = estimator
        self.label = type(estimator).__name__
        self.kind = (
            "classifier"
            if is_classifier(estimator)
            else "regressor"
            if is_regressor(estimator)
            else "transformer"
        )

    def make(self):
        """Return an unfitted estimator with a seed, without relying on its `clone`."""
        estimator = copy.deepcopy(self.given)
        seeds = {
            name: 0
            for name, value in estimator.get_params().items()
            if name.split("__")[-1] == "random_state" and value is None
        }
        return estimator.set_params(**seeds) if seeds else estimator

    @property
    def is_supervised(self):
        """Whether `fit` needs targets."""
        return self.kind != "transformer" or get_tags(self.given).target_tags.required

    def targets(self, n=None):
        """Return n targets, (n,): two classes or numbers; None if not needed."""
        n = len(TEXTS) if n is None else n
        if not self.is_supervised:
            return None
        if self.kind == "regressor":
            return np.arange(n) % 5 - 1.5
        return np.array(["no", "yes"])[np.arange(n) % 2]

    def fit(self, X=None, y=None):
        """Return a fresh estimator fitted on the given texts; TEXTS by default."""
        X = list(TEXTS) if X is None else X
        return fit(self.make(), X, self.targets(len(X)) if y is None else y)


def fit(estimator, X, y):
    """Fit the estimator, with targets if there are any, and return it."""
    estimator.fit(X) if y is None else estimator.fit(X, y)
    return estimator


def answers(estimator, X):
    """Return a dict of the results of all methods, each with n rows."""
    return {
        name: _call(estimator, name, X) for name in METHODS if hasattr(estimator, name)
    }


def calls(subject):
    """Yield (name, function of X) for `fit` and each method of a fitted estimator."""

    def to_fit(X):
        n = len(X) if hasattr(X, "__len__") else len(TEXTS)
        fit(subject.make(), X, subject.targets(n))

    yield "fit", to_fit
    fitted = subject.fit()
    for name in METHODS:
        if hasattr(fitted, name):
            yield name, lambda X, name=name: _call(fitted, name, X)


def _call(estimator, name, X):
    draws = _DRAWS if name.startswith("sample_") else {}
    found = getattr(estimator, name)(X, **draws)
    return found.toarray() if hasattr(found, "toarray") else np.asarray(found)


def agree(first, second, *, exactly=True):
    """Return how two results of :func:`answers` differ, or an empty string.

    Unless `exactly`, rounding errors are allowed, and labels are not compared if
    there are probabilities.
    """
    for name, one in first.items():
        other = second[name]
        if one.shape != other.shape:
            return f"{name} returns the shape {one.shape} and then {other.shape}"
        if exactly or one.dtype.kind not in "fc":
            if not exactly and name == "predict" and len(first) > 1:
                continue
            if not np.array_equal(one, other):
                return f"{name} returns other values"
        elif not np.allclose(one, other, rtol=1e-3, atol=1e-3 * np.abs(one).max()):
            return f"{name} differs by up to {np.abs(one - other).max():.2g}"
    return ""


def refused(call, X, words, what, wanted):
    """Ensure that `call(X)` raises TypeError or ValueError that matches `words`.

    `what` describes the call and `wanted` the remedy in the message.
    """
    try:
        call(X)
    except (TypeError, ValueError) as exc:
        ensure(
            re.search(words, str(exc), re.IGNORECASE),
            f"{what} is refused with {type(exc).__name__}: {str(exc)!r}; {wanted}",
        )
    except Exception as exc:
        raise AssertionError(
            f"{what} raises {type(exc).__name__}: {str(exc)!r}; {wanted}"
        ) from exc
    else:
        raise AssertionError(f"{what} is accepted; {wanted}")


def object_array(items):
    """Return a one-dimensional object array of the items, (n,)."""
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def containers(texts):
    """Yield (name, X): the texts in every container whose library is installed."""
    texts = list(texts)
    yield "list", texts
    yield "tuple", tuple(texts)
    yield "object array", object_array(texts)
    yield "U array", np.array(texts)
    yield "StringDType array", np.array(texts, dtype=np.dtypes.StringDType())
    if pd := _optional("pandas"):
        index = range(10, 10 + len(texts))  # not the default, which hides mistakes
        dtypes = [
            "object",
            "str",
            *(["string[pyarrow]"] if _optional("pyarrow") else []),
        ]
        for dtype in dtypes:
            yield (
                f"pandas Series of {dtype}",
                pd.Series(texts, dtype=dtype, index=index),
            )
    if pl := _optional("polars"):
        yield "polars Series", pl.Series(texts)


def _optional(name):
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        return None


def frames(texts):
    """Yield (name, X): one-column data frames of each installed library."""
    for library in ("pandas", "polars"):
        if found := _optional(library):
            yield f"a {library} DataFrame", found.DataFrame({"text": list(texts)})
