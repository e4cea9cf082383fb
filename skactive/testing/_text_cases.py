"""What the checks of text estimators share: texts, targets, containers, refusals."""

import copy
import re

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import get_tags

from ._cases import ensure

#: Short and longer ones, one of them twice, one beyond ASCII.
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
#: What an estimator can be asked, as far as it has it.
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
    """The estimator under test.

    Parameters
    ----------
    estimator : estimator instance
        Takes texts.

    Attributes
    ----------
    given : estimator instance
        The same.
    label : str
        What to call it.
    kind : {"classifier", "regressor", "transformer"}
    """

    def __init__(self, estimator):
        if isinstance(estimator, type) or not hasattr(estimator, "fit"):
            got = estimator.__name__ if isinstance(estimator, type) else repr(estimator)
            raise TypeError(
                f"'estimator' must be an instance with a fit method, got {got}. Pass "
                "it with the parameters that it is to be checked with."
            )
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
        """Make a fresh estimator with a seed, without relying on its `clone`.

        Returns
        -------
        estimator : estimator instance
            Not fitted.
        """
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
        """Make n targets: two classes in turn, or numbers.

        Parameters
        ----------
        n : int or None, default=None
            None is one for each of the TEXTS.

        Returns
        -------
        y : ndarray of shape (n,), or None
            None where `fit` needs none.
        """
        n = len(TEXTS) if n is None else n
        if not self.is_supervised:
            return None
        if self.kind == "regressor":
            return np.arange(n) % 5 - 1.5
        return np.array(["no", "yes"])[np.arange(n) % 2]

    def fit(self, X=None, y=None):
        """Fit a fresh estimator.

        Parameters
        ----------
        X : container of n texts or None, default=None
            None are the TEXTS as a list.
        y : array-like of shape (n,) or None, default=None
            None makes them.

        Returns
        -------
        estimator : estimator instance
        """
        X = list(TEXTS) if X is None else X
        return fit(self.make(), X, self.targets(len(X)) if y is None else y)


def fit(estimator, X, y):
    """Call `fit` with targets, where there are some.

    Parameters
    ----------
    estimator : estimator instance
    X : container of n texts
    y : array-like of shape (n,) or None

    Returns
    -------
    estimator : estimator instance
        The same, whatever `fit` returns.
    """
    estimator.fit(X) if y is None else estimator.fit(X, y)
    return estimator


def answers(estimator, X):
    """Ask an estimator all that it can be asked.

    Parameters
    ----------
    estimator : fitted estimator
    X : container of n texts

    Returns
    -------
    answers : dict of str to ndarray of n rows
    """
    return {
        name: _call(estimator, name, X) for name in METHODS if hasattr(estimator, name)
    }


def calls(subject):
    """Yield each way to hand texts to an estimator: `fit`, and its methods once fitted.

    Parameters
    ----------
    subject : TextSubject

    Yields
    ------
    name : str
    call : callable
        Takes X.
    """

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
    """Tell which answers differ.

    Parameters
    ----------
    first, second : dict of str to ndarray
        From :func:`answers`.
    exactly : bool, default=True
        Whether rounding counts. Where not, labels are left to the probabilities that
        they follow from.

    Returns
    -------
    fault : str
        Empty where they agree.
    """
    for name, one in first.items():
        other = second[name]
        if one.shape != other.shape:
            return f"{name} gives the shape {one.shape} and then {other.shape}"
        if exactly or one.dtype.kind not in "fc":
            if not exactly and name == "predict" and len(first) > 1:
                continue
            if not np.array_equal(one, other):
                return f"{name} gives other values"
        elif not np.allclose(one, other, rtol=1e-3, atol=1e-3 * np.abs(one).max()):
            return f"{name} moves by up to {np.abs(one - other).max():.2g}"
    return ""


def refused(call, X, words, what, wanted):
    """Check that a call raises TypeError or ValueError in words that help.

    Parameters
    ----------
    call : callable
        Takes X.
    X : object
        What is wrong.
    words : str
        Regular expression that the message has to match, whatever the case.
    what : str
        What was asked, for our message.
    wanted : str
        What to do about it.
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
    """Make a one-dimensional object array of anything.

    Parameters
    ----------
    items : sequence of length n

    Returns
    -------
    array : ndarray of shape (n,)
    """
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def containers(texts):
    """Yield the same texts in every container, as far as its library is installed.

    Parameters
    ----------
    texts : sequence of str

    Yields
    ------
    name : str
    X : container of the texts
    """
    texts = list(texts)
    yield "list", texts
    yield "tuple", tuple(texts)
    yield "object array", object_array(texts)
    yield "U array", np.array(texts)
    if hasattr(getattr(np, "dtypes", None), "StringDType"):
        yield "StringDType array", np.array(texts, dtype=np.dtypes.StringDType())
    if pd := _optional("pandas"):
        index = range(10, 10 + len(texts))  # nobody may rely on 0, 1, 2, ...
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
    """Yield one-column data frames, as far as their library is installed.

    Parameters
    ----------
    texts : sequence of str

    Yields
    ------
    name : str
    X : data frame of shape (n, 1)
    """
    for library in ("pandas", "polars"):
        if found := _optional(library):
            yield f"a {library} DataFrame", found.DataFrame({"text": list(texts)})
