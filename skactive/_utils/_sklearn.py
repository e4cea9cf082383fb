"""The only file that imports private parts of scikit-learn; checks of arguments."""

import os
from collections.abc import Callable
from contextlib import contextmanager
from functools import cache, wraps
from inspect import signature
from numbers import Integral
from typing import Any, TypeVar, cast

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.base import _fit_context as fit_context
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import (
    HasMethods,
    RealNotInt,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils._param_validation import Interval as _Interval
from sklearn.utils.metaestimators import _BaseComposition as BaseComposition
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _num_samples as num_samples

__all__ = [
    "BaseComposition",
    "HasMethods",
    "Interval",
    "IsPredictor",
    "LinearClassifierMixin",  # noqa: F822
    "QuickParamsMixin",
    "RealNotInt",
    "StrOptions",
    "check_sample_weight",
    "fit_context",
    "is_linear_classifier",
    "num_samples",
    "safe_indexing",
    "validate_params",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def validate_params(
    parameter_constraints: dict[str, list[Any]],
    *,
    prefer_skip_nested_validation: bool = False,
) -> Callable[[_Function], _Function]:
    """Return a decorator that checks the arguments of a public function.

    The `validate_params` of scikit-learn also rewrites the errors of estimators that
    are used inside: the parameter `n` of a stopping rule would become a parameter of
    `simulate`. This decorator leaves these errors unchanged.
    """

    def decorate(function: _Function) -> _Function:
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

        return cast(_Function, wrapper)

    return decorate


class Interval(_Interval):
    """An interval of numbers that excludes True and False."""

    def is_satisfied_by(self, val):
        """Whether a value lies in it."""
        return not isinstance(val, bool | np.bool_) and super().is_satisfied_by(val)


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
    return isinstance(estimator, __getattr__("LinearClassifierMixin"))


def __getattr__(name):
    if name == "LinearClassifierMixin":  # slow to import, so when it is asked for
        from sklearn.linear_model._base import LinearClassifierMixin

        return LinearClassifierMixin
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@contextmanager
def naming(name):
    """Add the name of an argument to an error of the estimator that received it."""
    try:
        yield
    except (TypeError, ValueError) as exc:
        if repr(name) not in str(exc):
            exc.add_note(
                f"The estimator was given {name!r}. Check its items and shape."
            )
        raise


def check_bool(name, value):
    """Raise a TypeError unless a value is True or False; "no" would be true."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name!r} must be True or False, got {value!r}.")


def check_path(name, value):
    """Raise a TypeError unless a value is a str or path-like."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name!r} must be a str or path-like, got {value!r}.")


def check_count(name, value, least=1):
    """Return a value as int, or raise a ValueError if it is below `least` or no int."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name!r} must be an int of at least {least}, got {value!r}.")
    return int(value)


def check_option(name, value, options):
    """Raise a ValueError that lists the options unless a value is one of them."""
    known = tuple(options)
    if not isinstance(value, str | None) or value not in known:
        raise ValueError(
            f"{name!r} must be one of {', '.join(map(repr, known))}, got {value!r}."
        )


def tag_text_transformer(tags):
    """Return the tags of a transformer of texts that needs no `fit`."""
    tags.input_tags.string = True
    tags.input_tags.one_d_array = True
    tags.input_tags.two_d_array = False
    tags.transformer_tags.preserves_dtype = []
    tags.requires_fit = False
    return tags
