"""Private functions of scikit-learn; checks of arguments."""

from collections.abc import Callable
from contextlib import contextmanager
from functools import cache, wraps
from inspect import signature
from numbers import Integral, Real
from traceback import walk_tb
from typing import Any, cast

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import (
    HasMethods,
    RealNotInt,
    validate_parameter_constraints,
)
from sklearn.utils._param_validation import Interval as _Interval
from sklearn.utils._param_validation import StrOptions as _StrOptions
from sklearn.utils.validation import _check_sample_weight
from sklearn.utils.validation import _num_samples as num_samples
from sklearn.utils.validation import validate_data as _validate_data

from . import _bases
from ._bases import Method
from ._checks import check_bool, check_count, check_option, check_path


def validate_params(
    parameter_constraints: dict[str, Any],
    *,
    prefer_skip_nested_validation: bool = False,
) -> Callable[[Method], Method]:
    """Return a decorator that checks the arguments of a public function.

    The `validate_params` of scikit-learn also rewrites the errors of estimators that
    are used inside: the parameter `n` of a stopping rule would become a parameter of
    `simulate`. This decorator leaves these errors unchanged.
    """

    def decorate(function: Method) -> Method:
        expected = signature(function)

        @wraps(function)
        def wrapper(*args, **kwargs):
            skipped = get_config()["skip_parameter_validation"]
            if skipped:
                return function(*args, **kwargs)
            given = expected.bind(*args, **kwargs)
            given.apply_defaults()
            validate_parameter_constraints(
                parameter_constraints,
                {name: given.arguments[name] for name in parameter_constraints},
                caller_name=function.__qualname__.removesuffix(".__init__"),
            )
            with config_context(
                skip_parameter_validation=prefer_skip_nested_validation
            ):
                return function(*args, **kwargs)

        return cast(Method, wrapper)

    return decorate


# Largest number of draws, members, steps and the like: more would never finish.
MOST = 1_000_000


class Interval(_Interval):
    """Constraint on a parameter: a number in an interval, not True or False.

    Parameters
    ----------
    type : type
        `numbers.Real` or `numbers.Integral`.
    left : float or None
        Lower bound; None means that there is none.
    right : float or None
        Upper bound; None means that there is none.
    closed : {"left", "right", "both", "neither"}
        The bounds that the interval includes.

    Examples
    --------
    >>> from numbers import Real
    >>> from skactive.strategies import Interval, PointwiseStrategy
    >>> class Power(PointwiseStrategy):
    ...     "Query where guesses differ."
    ...
    ...     requires = frozenset({"proba"})
    ...     _parameter_constraints = {"power": [Interval(Real, 1, None, closed="left")]}
    ...
    ...     def __init__(self, power=2.0):
    ...         self.power = power
    ...
    ...     def score(self, view):
    ...         return 1 - (view.proba**self.power).sum(axis=1)
    >>> from skactive import ActiveLearner
    >>> from sklearn.linear_model import LogisticRegression
    >>> learner = ActiveLearner(LogisticRegression(), Power(power=0.5))
    >>> try:
    ...     learner.fit([[0.0], [1.0]], [0, 1]).query([[0.2], [0.4]], 1)
    ... except ValueError as error:
    ...     print("'power' parameter of Power must be a float" in str(error))
    True
    """

    def is_satisfied_by(self, val: Any) -> bool:
        """Return whether a value lies in the interval.

        Parameters
        ----------
        val : object
            The value.

        Returns
        -------
        is_inside : bool
            False for True and False.
        """
        return not isinstance(val, bool | np.bool_) and super().is_satisfied_by(val)


# Constraints that many parameters share.
POSITIVE_INT = Interval(Integral, 1, None, closed="left")
POSITIVE_COUNT = Interval(Integral, 1, MOST, closed="both")
POSITIVE = Interval(Real, 0, None, closed="neither")


class StrOptions(_StrOptions):
    """Constraint on a parameter: one of some strings.

    Parameters
    ----------
    options : set of str
        The strings.
    deprecated : set of str or None, default=None
        Options that are marked as deprecated in the error.

    Examples
    --------
    >>> from skactive.strategies import StrOptions
    >>> metric = StrOptions({"cosine", "euclidean"})
    >>> metric.is_satisfied_by("cosine"), metric.is_satisfied_by("angle")
    (True, False)
    """


class QuickParamsMixin:
    """Cache the parameter names of a class.

    With one label a round, `clone` and the checks of parameters need them a dozen
    times.
    """

    @classmethod
    @cache
    def _get_param_names(cls):
        return BaseEstimator._get_param_names.__func__(cls)


class IsPredictor(HasMethods):
    """Constraint on a parameter: an estimator that predicts, at least once fitted."""

    def __init__(self):
        super().__init__(["fit", "predict"])

    def is_satisfied_by(self, val):
        """Whether `val` has `fit`, and `predict` or the tags of what will have it."""
        if super().is_satisfied_by(val):
            return True
        can_fit = hasattr(val, "fit") and not isinstance(val, type)
        return can_fit and (is_classifier(val) or is_regressor(val))


def is_linear_classifier(estimator):
    """Whether an estimator uses scikit-learn's linear decision function."""
    return isinstance(estimator, _bases.LinearClassifierMixin)


@contextmanager
def naming(name):
    """Name an argument in an error of the estimator that received it."""
    try:
        yield
    except (TypeError, ValueError) as exc:
        explain_unreadable(exc, name)
        if repr(name) not in str(exc):
            exc.add_note(
                f"The estimator was given {name!r}. Check its items and shape."
            )
        raise


def explain_unreadable(exc, name):
    """Raise what an argument must be if scikit-learn could not read it as numbers.

    Texts in place of features, and items that NumPy cannot convert, have errors that
    name neither the argument nor what to do.
    """
    frames = [frame for frame, _ in walk_tb(exc.__traceback__)]
    reads = [f.f_locals for f in frames if f.f_code.co_name == "check_array"]
    if not reads or reads[-1].get("input_name") == "y":
        return
    dtype = reads[-1].get("dtype")
    is_numeric = dtype is not None and np.dtype(dtype).kind in "fiu"
    needs_numbers = is_numeric or reads[-1].get("dtype_numeric")
    text = _find_text(reads[-1].get("array_orig"))
    if needs_numbers and text is not None:
        raise ValueError(
            f"{name!r} must hold numbers for this estimator, got texts such as "
            f"{text[:40]!r}. Put a text feature extractor in front, such as "
            "make_pipeline(TfidfVectorizer(), estimator), or convert them to numbers."
        ) from exc
    is_checked = frames[-1].f_globals.get("__name__") == "sklearn.utils.validation"
    if type(exc) in (TypeError, ValueError) and not is_checked:
        raise type(exc)(
            f"{name!r} must hold rows of numbers of one length: {exc}."
        ) from exc


def _find_text(X):
    """Return the first text among the first rows of `X` and their cells, or None."""
    if hasattr(X, "to_numpy"):
        X = X.head(100).to_numpy()
    if isinstance(X, np.ndarray) and (X.dtype.kind not in "OUT" or X.ndim == 0):
        return None
    rows = X[:100] if isinstance(X, list | tuple | np.ndarray) else [X]
    cells = [
        cell
        for row in rows
        for cell in (row if isinstance(row, list | tuple | np.ndarray) else [row])
    ]
    return next((str(cell) for cell in cells if isinstance(cell, str)), None)


def validate_data(estimator, X, *args, **params):
    """Call the function of this name; an error of `X` names it."""
    with naming("X"):
        y = args[0] if args else None
        n = len(y) if isinstance(y, list) or getattr(y, "shape", ()) else None
        if n is not None and num_samples(X) != n:
            raise ValueError(
                f"'X' and 'y' differ in length: 'X' has {num_samples(X)} rows, 'y' "
                f"{n} labels. Pass one label per row."
            )
        return _validate_data(estimator, X, *args, **params)


def check_sample_weight(sample_weight, X, **params):
    """Call the private function of this name; an error names the weights."""
    with naming("sample_weight"):
        return _check_sample_weight(sample_weight, X, **params)


def tag_text_transformer(tags):
    """Return the tags of a transformer of texts that needs no `fit`."""
    tags.input_tags.string = True
    tags.input_tags.one_d_array = True
    tags.input_tags.two_d_array = False
    tags.transformer_tags.preserves_dtype = []
    tags.requires_fit = False
    return tags
