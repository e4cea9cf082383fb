"""The arguments that front ends pass to a desk, checked by their names."""

import inspect
from collections.abc import Callable
from functools import partial, wraps
from numbers import Integral
from typing import Any, Literal, TypeVar, cast

from .._utils._sklearn import check_bool, check_count, check_option
from ._lists import FILTERS

SHOWN = ("none", "prediction", "suggestion")  # of a machine, the most counts
# How an answer came about; None for the usual way.
Way = Literal["bulk", "more", "review", "repeat", "settled"]
WAYS = ("bulk", "more", "review", "repeat", "settled")
_CONDITIONS = ("label", "by", "only", "before", "likely")
_MOST_CHARACTERS = 100  # of the name of a person or a front end

_Method = TypeVar("_Method", bound=Callable[..., Any])


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


def _check_id(name, value):
    if not isinstance(value, str | Integral) or isinstance(value, bool):
        raise TypeError(f"{name!r} must be a str or an int, got {value!r:.100}.")


def _check_query(name, value):
    if not isinstance(value, str):
        raise TypeError(f"{name!r} must be a str, got {value!r:.100}.")


def _check_texts(name, value):
    is_list = isinstance(value, list | tuple)
    if not is_list or not all(isinstance(text, str) for text in value):
        raise TypeError(f"{name!r} must be a list of str, got {value!r:.100}.")


def _check_client(name, value, expected="a str"):
    if not isinstance(value, str) or not 0 < len(value) <= _MOST_CHARACTERS:
        raise ValueError(
            f"{name!r} must be {expected} of at most {_MOST_CHARACTERS} characters, "
            f"got {value!r:.100}."
        )


def _check_annotator(name, value):
    is_own = value is None or (isinstance(value, str) and not value)
    if not is_own:  # else that of the session
        _check_client(name, value, "None or a str")


def _check_where(name, value):
    if value is None:
        return
    if not isinstance(value, dict) or value.keys() - {*_CONDITIONS}:
        raise ValueError(
            f"{name!r} must be a dict with keys of {_CONDITIONS}, got {value!r:.100}."
        )
    check_option("only", value.get("only"), (None, *FILTERS))


_CHECKS = {
    "annotator": _check_annotator,
    "client": _check_client,
    "description": _check_query,
    "example": _check_query,
    "examples": _check_texts,
    "doubtful": check_bool,
    "how": partial(check_option, options=("words", "regex", "meaning")),
    "id": _check_id,
    "held_out": check_bool,
    "n_items": check_count,
    "n_queries": check_count,
    "n_themes": partial(check_count, least=2, most=100),
    "only_ids": check_bool,
    "place": partial(check_count, least=0),
    "query": _check_query,
    "random_only": check_bool,
    "start": partial(check_count, least=0),
    "taken": _check_texts,
    "way": partial(check_option, options=(None, *WAYS)),
    "where": _check_where,
}
# Arguments that become words of a result.
_WORDS = {"annotator": "annotator", "name": "class", "new": "class", "text": "note"}
