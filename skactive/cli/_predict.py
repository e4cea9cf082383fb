"""The command `predict`: a table with the predictions of a saved model."""

import json
from pathlib import Path

from .._storage._outputs import find_mode
from .._utils._labels import find_target, predict_labels
from ..datasets import (
    WRITERS,
    LabelCells,
    find_dialect,
    free_name,
    is_untyped,
    load_table,
    open_pool,
    read_cells,
    write_table,
)
from ..labeling import PREDICTED, write_output, write_predictions
from ..persistence import disarm, load
from ..session import escape
from ._model import NEEDED, one_or_several, say


def run_predict(model, file, text, out):
    """Run the command `predict`."""
    source, folder = Path(file).expanduser(), Path(model).expanduser().parent
    out = find_out(out, source, "predicted")
    about = read_about(model)
    text = text or about.get("text")
    if text is None:
        raise ValueError("argument --text: name the column of texts.")
    model = load(model)
    make = _predict_pool if source.is_dir() else _predict_table
    n, write = make(model, source, out, text, about)
    message = write_output(folder, PREDICTED, out, write, find_mode(source))
    if message is not None:
        say(message)
    print(f"{out}: {n:,} predictions")
    return 0


def _predict_pool(model, source, out, text, about):
    """Return the number of texts of a folder, and a function that predicts them.

    No text is in memory longer than its prediction takes.
    """
    disarm(model, forget=True)
    pool = open_pool(source, one_or_several(text))
    target, classes = about.get("target") or find_target(model), about.get("classes")
    return len(pool), lambda path: write_predictions(path, pool, model, classes, target)


def _predict_table(model, source, out, text, about):
    """Return the number of rows of a table, and a function that writes it."""
    target, classes = about.get("target") or find_target(model), about.get("classes")
    columns, _, _ = read_cells(source)
    names = [text] if isinstance(text, str) else text
    if new := [name for name in names if name not in columns]:
        raise ValueError(
            f"{str(source)!r} has no column {new[0]!r}. Name its column of texts with "
            f"--text: {', '.join(map(repr, columns))}."
        )
    X = load_table(source, text=one_or_several(text)).data
    predicted, scores, _ = predict_labels(model, X, classes, target)
    if target == "multi-label":
        label, separator = about.get("label", "label"), about.get("separator")
        cells = LabelCells(label, separator, source)
        predicted = list(map(cells.join, predicted))
    if is_untyped(out):
        predicted = list(map(escape, predicted))
    columns[free_name("prediction", columns)] = predicted
    if scores[0] is not None:
        shown = [round(score, 4) for score in scores]
        columns[free_name("probability", columns)] = shown
    return len(X), lambda path: write_table(path, columns, **find_dialect(source))


def find_out(out, source, suffix):
    """Return the file of the results, which must not be in the table itself."""
    known = tuple(WRITERS)
    default = source.with_name(f"{source.stem}.{suffix}{source.suffix}")
    if source.is_dir():
        known = (".parquet",)
        default = source.with_name(f"{source.name}.{suffix}.parquet")
    if out is None:
        return default
    out = out.expanduser()
    refuse_table("--out", out, source)
    if out.suffix.lower() not in known or not out.parent.is_dir():
        raise ValueError(
            f"argument --out: must end in {' or '.join(known)}, in a folder that "
            f"exists; got {str(out)!r}."
        )
    return out


def refuse_table(name, out, source):
    """Raise a ValueError if `out`, a Path or None, is the table or lies in it."""
    inside = out and source.is_dir() and source.resolve() in out.resolve().parents
    if inside or (out and out.exists() and source.exists() and out.samefile(source)):
        raise ValueError(
            f"argument {name}: must be another file than the table, which is never "
            f"changed; got {str(out)!r}."
        )


def read_about(model):
    """Return what `skactive label` wrote about a model, dict; empty without a file."""
    folder = Path(model).expanduser()
    if not folder.is_dir():
        raise ValueError(
            f"argument MODEL: must be the folder of a model, got {model!r}, which is "
            "no folder."
        )
    path = folder.parent / "model.json"
    try:
        about = json.loads(path.read_bytes())
        good = isinstance(about, dict) and _is_about(about)
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        good = False
    if not good:
        raise ValueError(
            f"{str(path)!r} must be what `skactive label` wrote about the model, and "
            "is damaged. Run the same `skactive label` again; or delete it, and name "
            "the column of texts with --text."
        )
    return about


def _is_about(about):
    """Whether a dict has the entries of `save_model`."""
    target, classes = about.get("target", "single-label"), about.get("classes")
    lists = [about.get(name) for name in ("text", "label")]
    lists = [[names] if isinstance(names, str) else names for names in lists]
    lists += [classes] if target == "multi-label" else []
    are_names = all(
        isinstance(names, list) and all(isinstance(name, str) for name in names)
        for names in lists
    )
    separator = about.get("separator")
    is_one = target == "multi-label" or classes is None
    return (
        are_names and is_one and target in NEEDED and isinstance(separator, str | None)
    )
