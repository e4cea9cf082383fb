"""The command `predict`: a table with the predictions of a saved model."""

import json
from functools import partial
from pathlib import Path
from typing import Any

from .. import runtime
from .._storage._outputs import find_mode
from .._tables._reader import TableFile
from .._tables._writer import WRITERS, free_name, write_table
from .._utils._format import find_certainty, list_best
from ..project import write_predicted
from ._parser import say, show_line

_TARGETS = ("single-label", "multi-label", "regression")


def _as_list(names):
    return [names] if isinstance(names, str) else list(names or ())


def run_predict(model, file, text, out):
    """Run the command `predict`."""
    source, folder = Path(file).expanduser(), Path(model).expanduser().parent
    out = find_out(out, source, "predicted")
    predict, about, exported = open_model(model, forget=source.is_dir())
    trained = _as_list(about.get("text"))
    names = _as_list(text) or trained
    if exported is not None and exported.columns:
        if text or source.is_dir():
            raise ValueError(
                "argument MODEL: this model reads the columns "
                f"{', '.join(exported.columns)} of one table. Leave --text out, and "
                "name a file."
            )
    elif not 1 <= len(names) <= 2:
        raise ValueError("argument --text: name the column of texts, or two for pairs.")
    elif trained and len(names) != len(trained):
        raise ValueError(
            "argument --text: must name as many columns as the model reads, "
            f"{' '.join(trained)}; got {' '.join(names)}."
        )
    make = _predict_pool if source.is_dir() else _predict_table
    n, write = make(partial(predict, n_top=0), source, out, names, about)
    message = write_predicted(folder, out, write, find_mode(source))
    if message is not None:
        say(message)
    show_line(f"{out}: {n:,} predictions")
    return 0


def open_model(model, forget):
    """Return a function that predicts with a model, and what is known of the model.

    `predict(X, n_top)` returns labels, scores and best classes, see `predict_labels`.
    The third value is what `skactive.runtime` loaded, or None. With `forget`, no text
    is in memory longer than its prediction takes.
    """
    path = Path(model).expanduser()
    if (path / "model.onnx").is_file():  # no other package is needed for these
        exported = runtime.load(path)
        columns = exported.columns
        about = {"target": exported.target, "text": columns, "columns": columns}
        about["classes"] = exported.classes
        return partial(_predict_exported, exported), about, exported
    about = read_about(model)
    from .._utils._labels import find_target, predict_labels
    from .._utils._pipelines import split_estimator
    from ..persistence import disarm, load

    loaded = load(model)
    if forget:
        disarm(loaded, forget=True)
    _, final = split_estimator(getattr(loaded, "estimator_", loaded))
    about.setdefault("target", find_target(final))
    if about["target"] == "multi-label":  # without names, as in an export
        about.setdefault("classes", list(range(len(final.classes_))))
    options = {"classes": about.get("classes"), "target": about["target"]}
    return partial(predict_labels, loaded, **options), about, None


def _predict_exported(model, X, n_top):
    if model.target == "regression":
        found = model.predict(X)
        return found, [None] * len(found), [[] for _ in found]
    proba = model.predict_proba(X)
    predicted, scores = model.decide(proba), proba.max(axis=1)
    if model.target == "multi-label":
        decided = [[name in row for name in model.classes] for row in predicted]
        scores = find_certainty(proba, decided)
    best = list_best(model.classes, proba, n_top)
    return predicted, scores.tolist(), best


def _predict_pool(predict, source, out, names, about):
    """Return the number of texts of a folder, and a function that predicts them."""
    from ..datasets import open_pool
    from ..project import write_predictions

    pool = open_pool(source, names if len(names) == 2 else names[0])
    classes = about.get("classes")
    return len(pool), lambda path: write_predictions(path, pool, predict, classes)


def open_table(source, names):
    """Return a TableFile with all columns, and the rows and texts of some columns."""
    table = TableFile(source)
    try:
        keys = list(map(table.find, names))
    except ValueError as exc:
        raise ValueError(f"{exc} Name its column of texts with --text.") from exc
    rows, texts = table.read().read_texts(keys)
    for message in table.messages:
        say(message)
    return table, rows, texts


def _predict_table(predict, source, out, names, about):
    """Return the number of rows of a table, and a function that writes it."""
    if about.get("columns"):
        table = TableFile(source).read()
        X: Any = {name: table.cells(table.find(name)) for name in names}
        rows = table.rows
    else:
        table, rows, X = open_table(source, names)
    predicted, scores = [None] * len(table.places), [None] * len(table.places)
    for row, label, score in zip(rows, *predict(X)[:2], strict=True):
        predicted[row], scores[row] = label, score and round(score, 4)
    if about["target"] == "multi-label" and "label" in about:
        from .._tables._labels import LabelCells

        join = LabelCells(about["label"], about.get("separator"), source).join
        predicted = list(map(join, predicted))
    columns = dict(table.columns)
    columns[free_name("prediction", columns)] = predicted
    if any(score is not None for score in scores):
        columns[free_name("probability", columns)] = scores
    return len(rows), lambda path: write_table(path, columns, source=table)


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
        are_names
        and is_one
        and target in _TARGETS
        and isinstance(separator, str | None)
    )
