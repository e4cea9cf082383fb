"""The command `annotate`: a table with the answers of a language model."""

from functools import partial
from pathlib import Path

from .._storage._outputs import find_mode, make_private_folder, write_own
from .._tables._codebook import read_classes
from .._tables._labels import LabelCells
from .._tables._writer import free_name, write_table
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
