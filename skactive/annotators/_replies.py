"""The label and its probability in the reply of a language model."""

import json
import math
import re
import string
from contextlib import suppress

_VALUE = re.compile(r'"labels?"\s*:\s*("(?:[^"\\]|\\.)*"|\[[^\[\]]*\]|-?[\w.]+)')
_THOUGHT = "</think>"  # ends what a model writes before its answer
_QUOTES = "\u201c\u201d\u201e\u2018\u2019\xab\xbb"
_AROUND = string.whitespace + string.punctuation + _QUOTES


def find_label(content, labels, multi_label):
    """Return the label that a reply names, and its place; None for no or several.

    `labels` is a dict of what a model may write to label.

    Examples
    --------
    >>> from skactive.annotators._replies import find_label
    >>> find_label('{"label": "fire"}', {"fire": 1, "flood": 2}, False)
    (1, (10, 16))
    """
    start = content.rfind(_THOUGHT)
    start = 0 if start < 0 else start + len(_THOUGHT)
    found = list(_VALUE.finditer(content, start))
    span = found[-1].span(1) if found else (start, len(content))
    value = content[slice(*span)]
    if any(match[1] != value for match in found):
        return None, span
    if found:
        with suppress(ValueError):
            value = json.loads(value)
    if not multi_label:
        return _match(value, labels), span
    parts = [_match(x, labels) for x in (value if isinstance(value, list) else [value])]
    is_known = None not in parts
    return [x for x in labels.values() if x in parts] if is_known else None, span


def _match(value, labels):
    """Return the only label that a value spells, or None."""
    value = value if isinstance(value, str | int | float) else ""
    for read in (str, _fold, _trim):
        spelled = read(str(value))
        same = [label for name, label in labels.items() if read(name) == spelled]
        if same and spelled:
            return same[0] if len(same) == 1 else None
    return None


def _fold(text):
    return text.strip().casefold()


def _trim(text):
    return text.strip(_AROUND).casefold()


def find_confidence(choice, content, span):
    """Return the probability of the tokens of a part of the content, or None."""
    try:
        tokens = [
            (x["token"], float(x["logprob"])) for x in choice["logprobs"]["content"]
        ]
        # Some servers strip the content, or list tokens that end it.
        end = "".join(token for token, _ in tokens).index(content) * -1
        total, is_quoted = 0.0, content[span[0]] == '"'
        span = span[0] + is_quoted, span[1] - is_quoted
        for token, logprob in tokens:
            start, end = end, end + len(token)
            total += logprob if start < span[1] and end > span[0] else 0.0
        share = math.exp(min(total, 0.0))
    except (LookupError, TypeError, ValueError, OverflowError):
        return None
    return share if 0 <= share <= 1 else None
