"""Check the arguments of the calls of a front end, before anything is done."""

import inspect
from collections.abc import Callable
from functools import wraps
from numbers import Integral
from typing import Any, TypeVar, cast

from .._utils._sklearn import check_count

_LONGEST_NAME = 100

# Arguments that become words of a result.
_WORDS = {"annotator": "annotator", "name": "class", "new": "class", "text": "note"}

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _check_client(name, value, options=""):
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_NAME:
        raise ValueError(
            f"{name!r} must be {options}a str of at most {_LONGEST_NAME} characters, "
            f"got {value!r:.100}."
        )


def _check_annotator(name, value):
    if value is not None and not (isinstance(value, str) and value == ""):
        _check_client(name, value, "None or ")


def _check_id(name, value):
    if not isinstance(value, str | Integral) or isinstance(value, bool):
        raise TypeError(f"{name!r} must be a str or an int, got {value!r:.100}.")


def _check_query(name, value):
    if not isinstance(value, str):
        raise TypeError(f"{name!r} must be a str, got {value!r:.100}.")


_CHECKS = {
    "client": _check_client,
    "annotator": _check_annotator,
    "id": _check_id,
    "query": _check_query,
    "n_items": check_count,
    "n_queries": check_count,
    "start": lambda name, value: check_count(name, value, least=0),
}


def checked(method: _Method) -> _Method:
    """Decorate a method to check its arguments, by their names, before it begins."""
    signature = inspect.signature(method)

    @wraps(method)
    def call(*args, **kwargs):
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            if name in _CHECKS:
                _CHECKS[name](name, value)
            if name in _WORDS and isinstance(value, str):
                args[0]._check_words(_WORDS[name], value)
        return method(*args, **kwargs)

    return cast(_Method, call)
