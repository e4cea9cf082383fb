"""The command `annotate`: a table with the answers of a language model."""

import json
from functools import partial
from itertools import repeat
from pathlib import Path

from .._storage._outputs import find_mode, make_private_folder, write_own
from .._tables._formats import TABLE_FORMATS, open_text
from .._tables._labels import LabelCells
from .._tables._reader import TableFile
from .._tables._writer import free_name, write_table
from .._utils._format import trim
from ..project import ProjectSettings, say_cost
from ._parser import say, show_line
from ._predict import find_out, open_table


def run_annotate(file, text, out, separator, classes, classes_file, **options):
    """Run the command `annotate`."""
    source = Path(file).expanduser()
    table, rows, texts = open_table(source, text)
    out = find_out(out, source, "annotated")
    folder, mode = source.with_suffix(".skactive"), find_mode(source)
    classes = _describe(classes, classes_file)
    machine = _make_machine(classes, folder, multi_label=bool(separator), **options)
    say_cost(machine, texts)
    make_private_folder(folder, mode, "machine.jsonl")
    try:
        answers = machine.annotate(texts)
    except OSError as exc:
        kept = "The answers so far are kept: the same command goes on."
        raise OSError(f"{str(exc).rstrip('.')}. {kept}") from exc
    except KeyboardInterrupt as exc:
        raise KeyboardInterrupt("the same command goes on") from exc
    columns = dict(table.columns)
    labels, shares = [None] * len(table.places), [None] * len(table.places)
    for i, (label, share) in zip(rows, answers, strict=True):
        labels[i], shares[i] = label, share and round(share, 4)
    if separator:
        labels = list(map(LabelCells("label", separator, source).join, labels))
    columns[free_name("machine_label", columns)] = labels
    columns[free_name("machine_confidence", columns)] = shares
    write = partial(write_table, columns=columns, source=table)
    _, kept = write_own(out, write, mode=mode)
    if kept is not None:
        say(f"what was in {out} is kept as {kept}")
    show_line(f"{out}: {len(labels) - labels.count(None):,} labels by {machine.name}")
    return 0


def _describe(classes, classes_file):
    """Return what describes each class, dict of name to dict."""
    described = {name: {} for name in classes or ()}
    if classes_file is not None:
        described = {
            name: about if isinstance(about, dict) else {"description": about}
            for name, about in read_classes(classes_file).items()
        }
    if len(described) < 2:
        raise ValueError("argument --classes: name the classes, or a --classes-file.")
    return described


def _make_machine(classes, folder, *, codebook, machine_name, n_jobs, **options):
    """Return the ChatAnnotator of the options of the command."""
    if codebook is not None:
        codebook = Path(codebook).expanduser().read_text(encoding="utf-8-sig")
    more = {"name": machine_name, "codebook": codebook, "n_jobs": n_jobs}
    more["multi_label"] = options.pop("multi_label")
    return ProjectSettings("", **options).make_machine(classes, folder, **more)


def read_classes(path, known=()):
    """Return the classes of a file, dict of name to description and examples.

    A .json file holds a list of names, or an object of names to descriptions or to
    objects with "description" and "examples". A table has the columns "name" and, if
    there are any, "description". Any other file holds a class per line: its name, and
    after a colon and a space, or tabs, its description; further tabs separate examples.
    Names that are `known` may hold colons.
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
                classes = dict(_read_class(line, known) for line in filter(trim, file))
    except (OSError, UnicodeDecodeError, ValueError, TypeError) as exc:
        raise ValueError(
            f"argument --classes-file: {str(path)!r} must hold a class per line, JSON "
            f"in a .json file, or a table with the column 'name' ({exc})."
        ) from exc
    if len(classes) < 2:
        raise ValueError(
            f"argument --classes-file: {str(path)!r} must hold at least two classes, "
            f"got {list(classes)}."
        )
    return classes


def _open_names(path):
    """Return a table of names; None if the file holds lines."""
    if path.suffix.lower() not in TABLE_FORMATS:
        return None
    table = TableFile(path)
    is_lines = path.suffix.lower() == ".tsv" and "name" not in table.names
    return None if is_lines else table


def _read_class(line, known):
    """Return the name of a class, and its description and examples."""
    name, *more = line.split("\t")
    if not more:
        whole = [x for x in map(str, known) if f"{trim(line)}: ".startswith(f"{x}: ")]
        name = max(whole, key=len, default=line.partition(": ")[0])
        more = [trim(line)[len(name) + 1 :]]
    text, *examples = map(trim, more)
    return trim(name), {"description": text, "examples": examples}
