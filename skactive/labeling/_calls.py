"""Calls of a desk that come from a browser: one table of methods for both hosts."""

import inspect
import json
import logging
from typing import Any

from ..session import Desk

_OF_TEXTS = ("state", "next", "answer", "answer_all", "skip", "undo", "flag", "note")
_OF_CLASSES = ("add_class", "edit_class", "remove_class")
_OF_LISTS = ("item", "history", "search", "check", "similar", "more", "themes")
_OF_SAMPLES = ("explain", "quality", "draw", "release")
METHODS = (*_OF_TEXTS, *_OF_CLASSES, *_OF_LISTS, *_OF_SAMPLES)


def call(
    desk: Desk, method: str, arguments: Any, coder: str | None = None
) -> tuple[int, Any]:
    """Return the HTTP status and the JSON content of one call.

    If a `coder` calls, nobody else can be the annotator.
    Ids travel as JSON texts: JavaScript would round large integers.
    """
    try:
        methods = getattr(desk, "methods", METHODS)
        if method not in methods:
            raise ValueError(f"'method' must be one of {methods}, got {method!r}.")
        if not isinstance(arguments, dict):
            raise TypeError(f"the arguments must be an object, got {arguments!r:.100}.")
        if "question" in arguments:  # several are asked about each text
            arguments = dict(arguments)
            desk = find_desk(desk, arguments.pop("question"))
        if "id" in arguments:
            arguments = {**arguments, "id": json.loads(arguments["id"])}
        if "ids" in arguments:
            arguments = {**arguments, "ids": [*map(json.loads, arguments["ids"])]}
        function = getattr(desk, method)
        signature = inspect.signature(function)
        if coder is not None and "annotator" in signature.parameters:
            if (name := arguments.get("annotator")) not in (None, "", coder):
                error = f"'annotator' must be {coder!r} at this address, got {name!r}."
                return 403, {"error": f"{error} Use the link of that person."}
            arguments = {**arguments, "annotator": coder}
        signature.bind(**arguments)
        return 200, _write_ids(function(**arguments))
    except (ValueError, TypeError, RecursionError) as error:
        return 409 if method == "undo" else 400, {"error": str(error)}
    except (OSError, RuntimeError) as error:
        return 507, {"error": str(error)}
    except Exception as error:
        logging.getLogger(__name__).exception("%s failed", method)
        return 500, {"error": f"{type(error).__name__}: {error}"}


def find_desk(desk: Desk, question: Any) -> Desk:
    """Return the desk of one of several questions."""
    desks = getattr(desk, "desks", {})
    if not isinstance(question, str) or question not in desks:
        raise ValueError(
            f"'question' must be one of {[*desks]}, got {question!r:.100}."
        )
    return desks[question]


def _write_ids(content):
    """Return the content with every id as a JSON text."""
    if isinstance(content, list):
        return [_write_ids(entry) for entry in content]
    if not isinstance(content, dict):
        return content
    content = dict(content)
    if "id" in content:
        content["id"] = json.dumps(content["id"])
    for key in ("items", "recent", "undo", "themes"):
        if key in content:
            content[key] = _write_ids(content[key])
    if isinstance(content.get("questions"), dict):  # the items of a text
        texts = content["questions"].items()
        content["questions"] = {name: _write_ids(item) for name, item in texts}
    return content
