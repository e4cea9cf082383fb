"""Codebooks: classes with descriptions and examples, as people write and read them."""

import json
import re
from itertools import repeat
from pathlib import Path

from .._utils._format import trim
from ._formats import TABLE_FORMATS, open_text
from ._reader import TableFile

_AFTER_NAME = re.compile(r":?\t|:(?:\s|$)")


def read_classes(path, known=()):
    """Return the classes of a file, dict of name to description and examples.

    A .json file holds a list of names, or an object of names to descriptions or to
    objects with "description", "examples" and "taken", examples for people. A table has
    the columns "name" and, if there are any, "description". Any other file holds what
    `parse_classes` reads.
    """
    path = Path(path).expanduser()
    try:
        if path.suffix.lower() == ".json":
            read = json.loads(path.read_text(encoding="utf-8-sig"))
            classes = dict.fromkeys(read, "") if isinstance(read, list) else dict(read)
        elif (table := _open_names(path)) is not None:
            names = table.find("name"), table.find("description", optional=True)
            table.read(filter(None, names))
            cells = [table.cells(key) if key else repeat("") for key in names]
            rows = zip(*cells, strict=False)
            classes = {trim(str(name)): text or "" for name, text in rows if name}
        else:
            with open_text(path) as file:
                classes = parse_classes(file.read(), known)
    except (OSError, UnicodeDecodeError, ValueError, TypeError) as exc:
        raise ValueError(
            f"'classes_file' must hold a class per line, JSON in a .json file, or a "
            f"table with the column 'name', got {str(path)!r} ({exc})."
        ) from exc
    if len(classes) < 2:
        raise ValueError(
            f"'classes_file' must hold at least two classes, got {list(classes)} in "
            f"{str(path)!r}."
        )
    return classes


def _open_names(path):
    """Return a table of names; None if the file holds lines."""
    if (suffix := path.suffix.lower()) not in TABLE_FORMATS:
        return None
    table = TableFile(path)
    has_header = "name" in (trim(name).lower() for name in table.names)
    is_lines = suffix == ".tsv" or (suffix == ".csv" and len(table.names) == 1)
    return None if is_lines and not has_header else table


def parse_classes(text, known=()):
    """Return the classes of lines, dict of name to description and examples.

    A line holds names with commas between them; or one name, and after a colon and a
    space, or a tab, its description; further tabs separate examples. Names that are
    `known` may hold colons and commas. `parseClasses` of the page reads the same.
    """
    classes = {}
    for line in map(trim, text.split("\n")):
        whole = [x for x in map(str, known) if line == x or _begins(line, x)]
        split = _AFTER_NAME.search(line, len(max(whole, key=len, default="")))
        names = [line[: split.start()] if split else line]
        names = names if split or whole else line.split(",")
        cells = line[split.end() :].split("\t") if split else [""]
        description, *examples = map(trim, cells)
        for name in filter(None, map(trim, names)):
            classes[name] = {"description": description, "examples": examples}
    return classes


def _begins(line, name):
    """Whether a line is a name and what comes after one."""
    return line.startswith(name) and _AFTER_NAME.match(line, len(name))


def dump_classes(classes):
    """Return classes, dict of name to their entry, as `read_classes` reads .json."""
    named = {str(name): classes[name] for name in classes}
    return json.dumps(named, ensure_ascii=False, indent=1) + "\n"


def dump_markdown(classes, title):
    """Return the classes as a page of Markdown."""
    parts = [f"# {title}"]
    for name, entry in classes.items():
        parts += [f"## {name}", entry["description"]]
        examples = [*entry["examples"], *entry.get("taken", ())]
        parts += ["> " + x.replace("\n", "\n> ") for x in examples]
    return "\n\n".join(filter(None, parts)) + "\n"
