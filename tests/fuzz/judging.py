"""How a call with a wrong argument ended, by one rule."""

import dis
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import sklearn

import skactive

_RAISE = dis.opmap["RAISE_VARARGS"]
_SKACTIVE = str(Path(skactive.__file__).parent) + os.sep
_SKLEARN = str(Path(sklearn.__file__).parent) + os.sep
# TypeError and ValueError, and what a documented "Raises" adds for files and extras.
_TYPES = (TypeError, ValueError, FileNotFoundError, FileExistsError, ImportError)


def judge(exc, names):
    """Count an exception as clean, named or obscure.

    - clean: a TypeError or ValueError (or a FileNotFoundError, FileExistsError or
      ImportError) that a `raise` statement of skactive or scikit-learn raised, and
      that names one of the wrong arguments, in its message or in a note of skactive;
    - named: such an error of skactive that does not name the argument;
    - obscure: everything else.
    """
    files, by_statement = _trace(exc)
    ours = by_statement and files[-1].startswith(_SKACTIVE)
    theirs = by_statement and files[-1].startswith(_SKLEARN)
    if not isinstance(exc, _TYPES):
        return "obscure"
    texts = [*getattr(exc, "__notes__", ()), str(exc)] if ours or theirs else []
    if any(_names(text, name) for text in texts for name in names):
        return "clean"
    return "named" if ours else "obscure"


def origin(exc):
    """Return where an exception was raised, for the list of obscure ones."""
    tb = exc.__traceback__
    while tb.tb_next is not None:
        tb = tb.tb_next
    file = Path(tb.tb_frame.f_code.co_filename)
    return f"{type(exc).__name__} at {file.parent.name}/{file.name}:{tb.tb_lineno}"


def _trace(exc):
    """List the files that an exception passed, and whether a `raise` began it."""
    files, tb = [], exc.__traceback__
    while tb is not None:
        files.append(tb.tb_frame.f_code.co_filename)
        last, tb = tb, tb.tb_next
    return files, last.tb_frame.f_code.co_code[last.tb_lasti] == _RAISE


def _names(text, name):
    """Whether a message names an argument: quoted, first of all, or no English word."""
    word = re.escape(name)
    if re.search(rf"['`]{word}(\[.*?\])*['`]", text) or re.match(rf"{word}\b", text):
        return True
    is_english = len(name) > 1 and "_" not in name
    return not is_english and bool(re.search(rf"(?<![\w'`]){word}(?![\w'`])", text))


@dataclass
class Counts:
    """Counts of one group, and what was obscure or silently wrong in it."""

    clean: int = 0
    named: int = 0
    accepted: int = 0
    obscure: int = 0
    silent: list = field(default_factory=list)
    examples: dict = field(default_factory=dict)

    @property
    def calls(self):
        return self.clean + self.named + self.accepted + self.obscure

    def add(self, kind, call, exc=None):
        setattr(self, kind, getattr(self, kind) + 1)
        if kind in ("obscure", "named"):
            key = (kind, origin(exc))
            self.examples.setdefault(key, []).append(f"{call}: {str(exc)[:150]}")

    def __add__(self, other):
        kinds = ("clean", "named", "accepted", "obscure", "silent")
        return Counts(
            **{kind: getattr(self, kind) + getattr(other, kind) for kind in kinds}
        )

    def row(self, name):
        numbers = (self.calls, self.clean, self.named, self.accepted, self.obscure)
        cells = "".join(f"{n:>9}" for n in (*numbers, len(self.silent)))
        return f"{name:<14}{cells}"

    def report(self):
        """List what was obscure, the commonest first, and what was silently wrong."""
        lines = [f"silent: {fault}" for fault in self.silent]
        for (kind, where), calls in sorted(
            self.examples.items(), key=lambda item: -len(item[1])
        ):
            lines.append(f"{len(calls):>4} {kind} {where}")
            lines += [f"       {call}" for call in calls[:2]]
        return "\n".join(lines)


HEAD = f"{'group':<14}" + "".join(
    f"{word:>9}"
    for word in ("calls", "clean", "named", "accepted", "obscure", "silent")
)
