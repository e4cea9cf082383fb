"""A prompt in a terminal that needs no package."""

import math
import time
import warnings
from contextlib import contextmanager, suppress

from .._tables._codebook import parse_classes
from .._utils._format import visible
from ..project import Project
from ..session import Desk
from ._address import find_page

OWN_KEY = "A class whose name is a command is answered by its key."
SEVERAL = (
    "Several classes can apply: type keys or names with spaces or commas between them, "
    "or - if no class applies."
)
NUMBER = "Type a number to answer."


def run_prompt(desk: Desk | Project) -> None:
    """Label a desk, or a project, at a prompt until the person finishes.

    Parameters
    ----------
    desk : Desk or Project
        What to label. A desk stays open. A project is opened, finished and closed.

    Raises
    ------
    RuntimeError
        If another program serves the page of the project.

    See Also
    --------
    skactive.labeling.serve : The page.

    Examples
    --------
    >>> import tempfile
    >>> from unittest.mock import patch
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skactive import ActiveLearner, LabelingSession
    >>> from skactive.labeling import run_prompt
    >>> from skactive.session import Desk
    >>> learner = ActiveLearner(LogisticRegression(), random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     session = LabelingSession(learner, ["a", "b"], folder, classes=["x", "y"])
    ...     with session, Desk(session, source="") as desk:
    ...         with patch("builtins.input", side_effect=["1", "q"]):
    ...             with patch("builtins.print"):
    ...                 run_prompt(desk)
    ...         print(len(session.labels), "label")
    1 label
    """
    if isinstance(desk, Desk):
        return _Prompt(desk, "prompt", input, print).run()
    project = desk
    project.tell()
    if (url := find_page(project.folder_)) is not None:
        raise RuntimeError(
            f"{project.file} is open at {url}. Use that page, or finish it first."
        )
    with project:
        try:
            with _hold_warnings(), suppress(KeyboardInterrupt):
                run_prompt(project.desk)
        finally:  # a model that fails must not cost the table
            project.finish()


@contextmanager
def _hold_warnings():
    """Show warnings at the end, so that none is printed into a prompt."""
    show, held = warnings.showwarning, []
    warnings.showwarning = lambda *warning: held.append(warning)
    try:
        yield
    finally:
        warnings.showwarning = show
        for warning in held:
            show(*warning)


class _Prompt:
    """The state of a prompt: the item that is shown."""

    def __init__(self, desk, client, read, write):
        self._desk, self._client = desk, client
        self._read, self._write = read, lambda text: write(visible(text))
        self._item, self._since = None, 0.0

    def run(self):
        """Show items and record answers until the end of the input or `q`."""
        state = self._desk.state()
        self._write(describe_keys(state))
        self._show_classes(state)
        while True:
            if self._item is None and not self._show_next():
                self._write("Nothing is left to label.")
                return
            try:
                line = self._ask("> ")
                if line == "q":
                    return
                self._do(line)
            except EOFError:
                return
            except (ValueError, TypeError, OSError, RuntimeError) as exc:
                self._write(f"NOT STORED: {exc}")

    def _ask(self, text):
        """Return a line; an EOFError where the input is gone, as a closed one is."""
        try:
            return self._read(text).strip()
        except UnicodeError:  # a line that was typed in another encoding
            raise
        except (OSError, RuntimeError, ValueError) as exc:
            raise EOFError from exc

    def _show_next(self):
        items = self._desk.next(self._client, None, 1)
        if items:
            self._write("\n" + describe_state(self._desk.state()))
            self._show(items[0])
        return bool(items)

    def _show(self, item):
        self._item, self._since = item, time.monotonic()
        text = item["text"]
        self._write(text if isinstance(text, str) else "\n\n".join(text))
        for name, cell in item["columns"].items():
            self._write(f"{name}: {cell}")
        self._write(describe_item(item, text=False))

    def _do(self, line):
        item, (command, _, rest) = self._item, line.partition(" ")
        if line == "s":
            self._desk.skip(item["id"], self._client)
            self._item = None
        elif line == "u":
            undo = self._desk.state()["undo"]
            if undo is None:
                self._write("There is nothing to undo.")
            elif (undone := self._desk.undo(undo["seq"], self._client)) is not None:
                self._show(undone)
        elif line == "f":
            self._show(self._desk.flag(item["id"], not item["flag"]))
        elif command == "n":
            self._show(self._desk.note(item["id"], rest.strip()))
        elif command == "+":
            names = [entry["name"] for entry in self._desk.state()["classes"]]
            for name, entry in (parse_classes(rest, names) or {rest: {}}).items():
                self._desk.add_class(name, **entry)
            self._show_classes(self._desk.state())
        elif command == "=":
            self._list(self._desk.history(rest.strip(), 0, 20)["items"])
        elif line == "!":
            page = self._desk.check()
            self._write(describe_check(page))
            if page["items"]:
                self._list(page["items"])
        elif line == "%":
            only = self._desk.draw(not self._desk.state()["random_only"])["random_only"]
            self._write("random texts only" if only else "the model chooses texts")
            self._item = None
        elif line == "?":
            state = self._desk.state()
            self._write(describe_keys(state))
            agreement = self._desk.quality()["agreement"]
            lines = [*list_classes(state, about=True), agreement]
            self._write("\n".join(filter(None, lines)))
        else:
            self._answer(line)

    def _show_classes(self, state):
        """Write the classes that have a key, and how many have none."""
        lines = list_classes(state)
        shown = [line for line in lines if not line.startswith("   ")]
        if n_more := len(lines) - len(shown):
            shown.append(f"and {n_more} more, which ? lists")
        if shown:
            self._write("\n".join(shown))

    def _list(self, items):
        for number, item in enumerate(items, start=1):
            self._write(f"{number:3} {describe_item(item)}")
        chosen = self._ask("number to correct, or Enter: ")
        if chosen.isdigit() and 1 <= int(chosen) <= len(items):
            self._show(items[int(chosen) - 1])

    def _answer(self, line):
        item, state = self._item, self._desk.state()
        if line in ("", "*"):
            leads = (state["suggestions"] or {}).get("leads")
            named = (item["prediction"], item["suggestion"])[:: -1 if leads else 1]
            named = [name for name in named if name is not None]
            label = dict(enumerate(named)).get(len(line))
            if label is None:
                self._write("No class fits. ? lists the classes.")
        elif state["target"] == "regression":
            label = as_number(line)
            if label is None:
                self._write("Type a number.")
        elif state["target"] == "multi-label":
            label = self._find_several(line, state["classes"])
        else:
            label = self._find(line, state["classes"], "")
        if label is None:
            return
        seconds = round(time.monotonic() - self._since, 1)
        way = "repeat" if item["way"] == "repeat" else None
        self._desk.answer(item["id"], label, self._client, None, seconds, way)
        self._item = None

    def _find(self, typed, classes, where):
        """Return the name of the class that fits, or None after a message."""
        names = [str(entry["name"]) for entry in classes]
        found = [i for i, entry in enumerate(classes) if entry["key"] == typed]
        found = found or [i for i, name in enumerate(names) if name == typed]
        found = found or find_classes(typed, names)
        wanted = typed.casefold()
        first = [i for i in found if names[i].casefold().startswith(wanted)]
        found = first if len(first) == 1 else found
        if len(found) == 1:
            return classes[found[0]]["name"]
        if found:
            shown = ", ".join(names[i] for i in found[:8])
            self._write(f"Several classes fit{where}: {shown}")
        else:
            self._write(f"No class fits{where}. ? lists the classes. + NAME adds one.")
        return None

    def _find_several(self, typed, classes):
        """Return the list of names that fit, or None after a message."""
        if typed == "-":
            return []
        whole = [entry["name"] for entry in classes if str(entry["name"]) == typed]
        parts = typed.split(",") if "," in typed else typed.split()
        parts = [part.strip() for part in parts if part.strip()]
        found = whole or [self._find(x, classes, f" {x!r}") for x in parts]
        return None if None in found else list(dict.fromkeys(found))


def as_number(typed):
    """Return a finite number, or None."""
    try:
        value = float(typed)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def describe_keys(state):
    """Return what can be typed at the prompt; some of it works later only."""
    left_out = "answer" if state["target"] == "regression" else "number"
    lines = [
        f"{typed:11}  {words}"
        for name, (_, _, typed, words) in state["commands"].items()
        if typed and name != left_out
    ]
    more = {"multi-label": SEVERAL, "regression": NUMBER}.get(state["target"])
    return "\n".join([*lines, OWN_KEY, *filter(None, [more])])


def show_label(label):
    """Return a label in words; lists of names are joined."""
    if isinstance(label, list):
        return " + ".join(map(str, label)) or "no class"
    return f"{label:.6g}" if isinstance(label, float) else str(label)


def find_classes(typed, names):
    """Return the positions of the names that fit: those that begin with it first."""
    wanted = typed.casefold().strip()
    folded = [name.casefold() for name in names]
    fits = [i for i, name in enumerate(folded) if wanted in name]
    return sorted(fits, key=lambda i: not folded[i].startswith(wanted))


def describe_state(state):
    """Return progress and estimate in one line."""
    wanted = f" of {state['n_labels']}" if state["n_labels"] else ""
    reached = wanted and state["n_labeled"] >= state["n_labels"]
    done = f"{wanted} labeled: goal reached" if reached else f"{wanted} labeled"
    parts = [state["source"], f"{state['n_labeled']}{done}"]
    if state["n_skipped"]:
        parts.append(f"{state['n_skipped']} skipped")
    if (encoded := state["model"]["encoded"]) < 1:
        parts.append(f"features {encoded:.0%}")
    if (about := state["suggestions"]) and about["compared"]:
        parts.append(f"suggestions right: {about['agreed']} of {about['compared']}")
    if state["estimate"]:
        parts.append(state["estimate"])
    if state["model"]["error"]:
        parts.append(f"the model failed: {state['model']['error']}")
    return " | ".join(parts)


def describe_check(page):
    """Return what the list of doubtful answers is of."""
    n_labels, count = page["n_labels"], page["total"] or "no"
    if n_labels is not None:
        more = " A newer list is being computed." if page["computing"] else ""
        return f"{count} doubtful answers, of {n_labels} labels.{more}"
    if page["computing"]:
        return "The list is being computed. Try again soon."
    return "There is no list before the first model."


def describe_item(item, text=True):
    """Return an item in one line: its label or prediction, its note and its text."""
    parts = []
    if item["label"] is not None:
        parts.append(f"labeled {show_label(item['label'])}")
    if item["prediction"] is not None:
        proba = item["probability"]
        sure = "" if proba is None else f" {proba:.0%}"
        name = "model without it" if item["held_out"] else "prediction"
        parts.append(f"{name}: {show_label(item['prediction'])}{sure}")
    if item["suggestion"] is not None:
        parts.append(f"suggestion: {show_label(item['suggestion'])}")
    if item["blind"] and item["label"] is None and not text:
        parts.append("drawn at random: you answer without help")
    if item["flag"]:
        parts.append("flagged")
    if item["note"]:
        parts.append(f"note: {item['note']}")
    if text:
        whole = item["text"]
        whole = whole if isinstance(whole, str) else " / ".join(whole)
        parts.append(" ".join(whole.split())[:70])
    return " | ".join(parts)


def list_classes(state, about=False):
    """Return a line for each class: key, name, count, and description if wanted.

    A line says how to add one if there are fewer than two.
    """
    lines = []
    for entry in state["classes"]:
        line = f"{entry['key'] or ' '}  {entry['name']}  ({entry['count']})"
        if about and entry["share"]:
            share, low, high = (100 * x for x in entry["share"])
            line += f"  {share:.0f} % of all texts ({low:.0f}-{high:.0f})"
        if about and entry["description"]:
            line += f"  {entry['description']}"
        lines.append(line)
        if about:
            examples = [*entry["examples"], *entry["taken"]]
            lines += [f"      e.g. {example}" for example in examples]
    if len(state["classes"]) < 2 and state["target"] != "regression":
        lines.append("+ NAME adds a class")
    return lines
