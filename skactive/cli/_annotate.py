"""The command `annotate`: a table with the answers of a language model."""

import json
from functools import partial
from pathlib import Path

from .._storage._outputs import find_mode, make_private_folder, write_own
from .._tables._formats import find_dialect, is_untyped
from .._tables._labels import LabelCells
from .._tables._reader import read_cells
from .._tables._writer import escape, free_name, write_table
from ..project import ProjectSettings, say_cost
from ._parser import say
from ._predict import find_out


def run_annotate(file, text, out, separator, classes, classes_file, **options):
    """Run the command `annotate`."""
    source = Path(file).expanduser()
    columns, _, _ = read_cells(source)
    if odd := [name for name in text if name not in columns]:
        raise ValueError(
            f"{str(source)!r} has no column {odd[0]!r}. Name its column of texts with "
            f"--text: {', '.join(map(repr, columns))}."
        )
    out = find_out(out, source, "annotated")
    parts = list(zip(*(columns[name] for name in text), strict=True))
    rows = [i for i, cells in enumerate(parts) if all(cells)]
    texts = [parts[i] if len(text) > 1 else parts[i][0] for i in rows]
    folder, mode = source.with_suffix(".skactive"), find_mode(source)
    classes = _describe(classes, classes_file)
    machine = _make_machine(classes, folder, multi_label=bool(separator), **options)
    say_cost(machine, texts)
    make_private_folder(folder, mode, "machine.jsonl")
    try:
        answers = machine.annotate(texts)
    except OSError as exc:
        kept = "The answers so far are kept: the same command goes on."
        raise OSError(f"{exc} {kept}") from exc
    except KeyboardInterrupt as exc:
        raise KeyboardInterrupt("the same command goes on") from exc
    labels, shares = [None] * len(parts), [None] * len(parts)
    for i, (label, share) in zip(rows, answers, strict=True):
        labels[i], shares[i] = label, share and round(share, 4)
    if separator:
        labels = list(map(LabelCells("label", separator, source).join, labels))
    if is_untyped(out):
        labels = list(map(escape, labels))
    columns[free_name("machine_label", columns)] = labels
    columns[free_name("machine_confidence", columns)] = shares
    write = partial(write_table, columns=columns, **find_dialect(source))
    _, kept = write_own(out, write, mode=mode)
    if kept is not None:
        say(f"what was in {out} is kept as {kept}")
    print(f"{out}: {len(labels) - labels.count(None):,} labels by {machine.name}")
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


def read_classes(path):
    """Return the classes of a file, dict of name to description and examples.

    A .json file holds a list of names, or an object of names to descriptions or to
    objects with "description" and "examples". Any other file holds a class per line:
    its name, and after tabs its description and examples.
    """
    path = Path(path).expanduser()
    try:
        content = path.read_text(encoding="utf-8-sig")
        if path.suffix.lower() != ".json":
            rows = [x.split("\t") for x in content.splitlines() if x.strip()]
            found = {
                name.strip(): {"description": "".join(more[:1]), "examples": more[1:]}
                for name, *more in rows
            }
        else:
            read = json.loads(content)
            found = dict.fromkeys(read, "") if isinstance(read, list) else dict(read)
    except (OSError, UnicodeDecodeError, ValueError, TypeError) as exc:
        raise ValueError(
            f"argument --classes-file: {str(path)!r} must hold a class per line, or "
            f"JSON in a .json file ({exc})."
        ) from exc
    if len(found) < 2:
        raise ValueError(
            f"argument --classes-file: {str(path)!r} must hold at least two classes, "
            f"got {list(found)}."
        )
    return found
