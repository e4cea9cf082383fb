"""A prompt that needs no package, and the words that both terminals show."""

import time

HELP = (
    "key or name: answer   Enter: accept the prediction   s: skip   u: undo   f: flag\n"
    "n TEXT: note   + NAME: add a class   = : earlier answers   ! : check these\n"
    "? : classes   q: finish. A class whose name is a command is answered by its key."
)


def run_prompt(desk, client="prompt"):
    """Label at a prompt until the person finishes."""
    _Prompt(desk, client, input, print).run()


class _Prompt:
    """The state of a prompt: the item that is shown."""

    def __init__(self, desk, client, read, write):
        self._desk, self._client = desk, client
        self._read, self._write = read, write
        self._item, self._since = None, 0.0

    def run(self):
        """Show items and record answers until the end of the input or `q`."""
        self._write(HELP)
        while True:
            if self._item is None and not self._show_next():
                self._write("Nothing is left to label.")
                return
            try:
                line = self._read("> ").strip()
            except EOFError:
                return
            if line == "q":
                return
            try:
                self._do(line)
            except (ValueError, TypeError, OSError, RuntimeError) as exc:
                self._write(f"NOT STORED: {exc}")

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
            self._desk.add_class(rest)
        elif command == "=":
            self._list(self._desk.history(rest.strip(), 0, 20)["items"])
        elif line == "!":
            self._list(self._desk.check())
        elif line == "?":
            self._write(HELP)
            self._write("\n".join(list_classes(self._desk.state(), about=True)))
        else:
            self._answer(line)

    def _list(self, items):
        for number, item in enumerate(items, start=1):
            self._write(f"{number:3} {describe_item(item)}")
        chosen = self._read("number to correct, or Enter: ").strip()
        if chosen.isdigit() and 1 <= int(chosen) <= len(items):
            self._show(items[int(chosen) - 1])

    def _answer(self, line):
        item, classes = self._item, self._desk.state()["classes"]
        label = None
        if not line:
            named = (item["prediction"], item["suggestion"])
            label = next((name for name in named if name is not None), None)
        else:
            names = [str(entry["name"]) for entry in classes]
            found = [i for i, entry in enumerate(classes) if entry["key"] == line]
            found = found or [i for i, name in enumerate(names) if name == line]
            found = found or find_classes(line, names)
            if len(found) == 1:
                label = classes[found[0]]["name"]
            elif found:
                shown = ", ".join(names[i] for i in found[:8])
                self._write(f"Several classes fit: {shown}")
                return
        if label is None:
            self._write("No class fits. ? lists the classes.")
            return
        seconds = round(time.monotonic() - self._since, 1)
        self._desk.answer(item["id"], label, self._client, None, seconds)
        self._item = None


def find_classes(typed, names):
    """Return the positions of the names that fit: those that begin with it first."""
    wanted = typed.casefold().strip()
    folded = [name.casefold() for name in names]
    fits = [i for i, name in enumerate(folded) if wanted in name]
    return sorted(fits, key=lambda i: not folded[i].startswith(wanted))


def describe_state(state):
    """Return progress and estimate in one line."""
    goal = f" of {state['goal']}" if state["goal"] else ""
    parts = [state["source"], f"{state['n_labeled']}{goal} labeled"]
    if state["n_skipped"]:
        parts.append(f"{state['n_skipped']} skipped")
    if (encoded := state["model"]["encoded"]) < 1:
        parts.append(f"features {encoded:.0%}")
    if about := state["suggestions"]:
        parts.append(f"suggestions right: {about['agreed']} of {about['compared']}")
    if state["estimate"]:
        parts.append(state["estimate"])
    if state["model"]["error"]:
        parts.append(f"the model failed: {state['model']['error']}")
    return " | ".join(parts)


def describe_item(item, text=True):
    """Return an item in one line: its label or prediction, its note and its text."""
    parts = []
    if item["label"] is not None:
        parts.append(f"labeled {item['label']}")
    if item["prediction"] is not None:
        proba = item["probability"]
        sure = "" if proba is None else f" {proba:.0%}"
        parts.append(f"prediction: {item['prediction']}{sure}")
    if item["suggestion"] is not None:
        parts.append(f"suggestion: {item['suggestion']}")
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
    """Return a line for each class: key, name, count, and description if wanted."""
    lines = []
    for entry in state["classes"]:
        line = f"{entry['key'] or ' '}  {entry['name']}  ({entry['count']})"
        if about and entry["description"]:
            line += f"  {entry['description']}"
        lines.append(line)
        if about:
            lines += [f"      e.g. {example}" for example in entry["examples"]]
    return lines
