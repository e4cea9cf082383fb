"""The arguments that front ends pass to a desk, checked by their names."""

import inspect
from collections.abc import Callable
from functools import wraps
from numbers import Integral
from typing import Any, TypeVar, cast

from .._utils._sklearn import check_bool, check_count, check_option
from ._filters import FILTERS

SHOWN = ("none", "prediction", "suggestion")  # of a machine, before the answer
WAYS = ("bulk", "more", "review")  # how an answer came about; None for the usual way
_MOST_CHARACTERS = 100  # of the name of a person or a front end

# Arguments that become words of a result.
_WORDS = {"annotator": "annotator", "name": "class", "new": "class", "text": "note"}

_Method = TypeVar("_Method", bound=Callable[..., Any])


def checked(method: _Method) -> _Method:
    """Decorate a method to check its arguments, by their names, before it begins."""
    signature = inspect.signature(method)

    @wraps(method)
    def call(*args, **kwargs):
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            _check(name, value)
            if name in _WORDS and isinstance(value, str):
                args[0]._check_words(_WORDS[name], value)
        return method(*args, **kwargs)

    return cast(_Method, call)


def _check(name, value):
    """Raise an error unless an argument of a front end has its type."""
    is_id = isinstance(value, str | Integral) and not isinstance(value, bool)
    is_name = isinstance(value, str) and 0 < len(value) <= _MOST_CHARACTERS
    # No annotator is the one of the session.
    is_blank = name == "annotator" and (value is None or str(value) == "")
    if name in ("n_items", "n_queries", "start"):
        check_count(name, value, least=0 if name == "start" else 1)
    elif name == "query" and not isinstance(value, str):
        raise TypeError(f"'query' must be a str, got {value!r:.100}.")
    elif name == "way":
        check_option(name, value, (None, *WAYS))
    elif name == "where" and value is not None:
        if not isinstance(value, dict) or value.keys() - {"label", "by", "only"}:
            raise ValueError(
                "'where' must be a dict with 'label', 'by' or 'only', got "
                f"{value!r:.100}."
            )
        check_option("only", value.get("only"), (None, *FILTERS))
    elif name == "doubtful":
        check_bool(name, value)
    elif name == "id" and not is_id:
        raise TypeError(f"'id' must be a str or an int, got {value!r:.100}.")
    elif name in ("client", "annotator") and not (is_name or is_blank):
        expected = "a str" if name == "client" else "None or a str"
        raise ValueError(
            f"{name!r} must be {expected} of at most {_MOST_CHARACTERS} characters, "
            f"got {value!r:.100}."
        )
