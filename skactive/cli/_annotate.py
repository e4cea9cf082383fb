"""The command `annotate`: a table with the answers of a language model."""

from pathlib import Path

from .._storage._outputs import find_mode, make_private_folder, write_own
from ..annotators import ChatAnnotator
from ..datasets import (
    LabelCells,
    find_delimiter,
    free_name,
    is_untyped,
    read_cells,
    write_table,
)
from ..session import escape
from ._label import read_classes
from ._model import say
from ._predict import find_out

CACHE = "machine.jsonl"  # in the folder of a table


def run_annotate(file, text, out, separator, **options):
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
    machine = make_machine(folder / CACHE, multi_label=bool(separator), **options)
    cost = machine.estimate_cost(texts)
    say(
        f"{cost.n_requests:,} requests to {machine.host}, about {cost.n_tokens:,} "
        f"tokens; {cost.n_cached:,} answers are kept from before"
    )
    make_private_folder(folder, mode, CACHE)
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
    delimiter = find_delimiter(source) if source.suffix.lower() == ".csv" else ","
    _, kept = write_own(
        out, lambda path: write_table(path, columns, delimiter=delimiter), mode=mode
    )
    if kept is not None:
        say(f"what was in {out} is kept as {kept}")
    print(f"{out}: {len(labels) - labels.count(None):,} labels by {machine.name}")
    return 0


def make_machine(
    cache,
    *,
    machine,
    machine_model,
    machine_name,
    classes,
    classes_file,
    codebook,
    **more,
):
    """Return the ChatAnnotator of the options of a command."""
    if classes is None and classes_file is None:
        classes_file, codebook = codebook, None
    if classes is None and classes_file is None:
        raise ValueError("argument --classes: name the classes, or a --classes-file.")
    about = {} if classes_file is None else read_classes(classes_file)
    for name, x in about.items():
        about[name] = x if isinstance(x, dict) else {"description": x}
    examples = [(x, name) for name in about for x in about[name].get("examples", ())]
    if codebook is not None:
        codebook = Path(codebook).expanduser().read_text(encoding="utf-8-sig")
    return ChatAnnotator(
        machine,
        machine_model,
        classes or {name: x.get("description", "") for name, x in about.items()},
        name=machine_name,
        codebook=codebook,
        examples=examples,
        cache=cache,
        **more,
    )
