"""The commands `label` and `predict`: from a table to a labeled table."""

import json
import socket
import sys
import warnings
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from .._storage._files import LockedError
from .._storage._outputs import find_mode
from .._utils._labels import find_target, predict_labels
from ..datasets._label_cells import LabelCells
from ..datasets._load import load_table
from ..datasets._reader import find_delimiter, is_untyped, read_cells
from ..datasets._writer import WRITERS, free_name, write_table
from ..labeling._project import Project
from ..labeling._record import PREDICTED, show, write_output
from ..learner import ActiveLearner
from ..session import escape
from ._large import (
    add_encoder,
    is_large,
    make_large_model,
    make_large_project,
    predict_large,
)
from ._options import default_strategy, one_or_several, say
from ._train import make_model, train_final

_NEEDED = {
    "single-label": "labels of two classes",
    "multi-label": "two texts with different classes",
    "regression": "two different numbers",
}


_NO_CLASSES = (
    "the table names fewer than two classes: add them, or pass --classes A,B,C"
)


def run_label(args):
    """Run the command `label`."""
    _check_front_end(args)
    sys.setswitchinterval(0.0005)  # answers must not wait for training threads
    about = {}
    classes = args.classes
    if args.classes_file is not None:
        about = read_classes(args.classes_file)
        classes = list(about)
    large = is_large(args)
    project = make_large_project(args) if large else _make_project(args)
    _say_all(project)
    args.strategy = default_strategy(args.strategy, project.target)
    if large:
        args.no_fine_tuning = True  # the encoder of these features is kept
        model = make_large_model(args, project.target)
    else:
        model = make_model(args, project.folder, project.target)
    learner = ActiveLearner(model, args.strategy, random_state=0)
    try:
        project.open(
            learner,
            classes=classes,
            n_labels=args.n_labels,
            annotator=args.annotator,
            about=about,
        )
    except LockedError as exc:
        where, url = f"in {exc.holder}. Finish it there", _find_page(project.folder)
        where = where if url is None else f"at {url}. Use that page, or finish it"
        raise RuntimeError(f"{args.file} is open {where} first.") from exc
    _say_all(project)
    try:
        n_before = len(project.session.labels)
        n_pool, n_given = len(project.texts), len(project.given)
        say(f"{n_pool:,} texts, {n_given:,} labels given, {n_before:,} by people")
        n_classes = len(project.session.known_classes)
        if n_classes < 2 and project.target != "regression":
            say(_NO_CLASSES)
        _run_front_end(args, project.desk, project.folder)
        try:
            return _finish(args, project)
        except OSError as exc:
            raise OSError(
                f"{exc}. The labels by people are safe in {show(project.folder)}: the "
                "same command continues"
            ) from exc
    finally:
        project.close()


def _make_project(args):
    """Return the Project of the options of `label`."""
    return Project(
        args.file,
        one_or_several(args.text),
        one_or_several(args.label),
        folder=args.folder,
        suggest=args.suggest,
        separator=args.separator,
        regression=args.regression,
    )


def _check_front_end(args):
    """Raise an error before any work if a package is missing."""
    if args.terminal:
        return
    for name in ("starlette", "uvicorn"):
        if find_spec(name) is None:
            raise ImportError(
                f'the page needs {name}. Install it with `pip install "skactive[label]"'
                "`, or label in the terminal: --terminal."
            )


def _serve(args, desk, folder):
    """Serve the page under the address of the last time, if its port is free.

    So a page that is still open goes on.
    """
    from ..labeling._server import recall_address, remember_address, serve

    port, token = recall_address(folder, args.port)

    def announce(url):
        if not remember_address(folder, url):
            say(f"{folder / 'page.json'} is another file: the address is not kept")
        say(f"label at {url}")
        say("Ctrl-C, or Finish on the page, writes the labeled table")

    browser = not args.no_browser
    serve(desk, port=port, open_browser=browser, token=token, announce=announce)


def _find_page(folder):
    """Return the address of the page that is open in a folder, or None."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        page = json.loads((folder / "page.json").read_text(encoding="utf-8"))
        socket.create_connection(("127.0.0.1", page["port"]), 1).close()
        return f"http://127.0.0.1:{page['port']}/{page['token']}/"
    return None


def _run_front_end(args, desk, folder):
    """Open the page or a terminal until the person finishes."""
    if not args.terminal:
        _serve(args, desk, folder)
        return
    has_screen = find_spec("textual") is not None
    with _hold_warnings():
        try:
            if has_screen and sys.stdin.isatty():
                from ..labeling._terminal import LabelingApp

                LabelingApp(desk).run()
            else:
                from ..labeling._prompt import run_prompt

                if sys.stdin.isatty():
                    say('`pip install "skactive[tui]"` gives labeling on a full screen')
                run_prompt(desk)
        except KeyboardInterrupt:
            say("")


@contextmanager
def _hold_warnings():
    """Show warnings at the end, so that none is printed into a prompt or a screen."""
    show, held = warnings.showwarning, []
    warnings.showwarning = lambda *warning: held.append(warning)
    try:
        yield
    finally:
        warnings.showwarning = show
        for warning in held:
            show(*warning)


def _finish(args, project):
    """Write the labels, then the predictions, then the model."""
    session, n_labeled = project.session, len(project.session.labels)
    options = args.model, args.max_length, args.no_fine_tuning, str(args.features)
    stamp = project.stamp(options)
    if project.is_current(stamp):
        say("nothing was answered since the table and the model were written")
        print(f"{project.output}: as it was")
        return 0
    failures: list[Exception] = []
    # First what people said: nothing below can lose it.
    sources = _write(project, failures)
    say(f"{n_labeled:,} labels by people, {len(session.skipped):,} skipped")
    if not failures:
        say(f"labels are in {project.output}")
    try:
        model, classes = train_final(args, session, project.folder, project.labeled())
        if model is None:
            say(f"no model yet: it needs {_NEEDED[project.target]}")
        else:
            say("predicting the other texts; Ctrl-C leaves them blank")
            sources = _write(project, failures, model, classes) or sources
            say("saving the model")
            _save(args, project, model, classes, stamp)
    except KeyboardInterrupt:
        say("stopped" if failures else "stopped; the labels are written")
    if failures:
        raise failures[-1]
    shown = ", ".join(f"{n:,} {name}" for name, n in sources.items())
    print(f"{project.output}: {shown}")
    return 0


def _write(project, failures, *model):
    """Write the table, and return the numbers of its sources.

    After a failure, which is kept, the model can still be saved.
    """
    sources = {}
    try:
        sources = project.write(*model)
    except (OSError, ValueError) as exc:
        say(f"the table is not written: {exc}")
        failures.append(exc)
    _say_all(project)
    return sources


def _say_all(project):
    """Print the messages of a project that are new."""
    for message in project.messages:
        say(message)
    project.messages.clear()


def _save(args, project, model, classes, stamp):
    """Save the model, which takes texts; not if the features cannot be computed."""
    if args.features is not None:
        model = add_encoder(model, args.features)
    if model is None:
        say("no model is saved: `skactive encode` did not write the features")
    else:
        say(f"the model is in {project.save_model(model, classes, stamp)}")


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


def run_predict(args):
    """Run the command `predict`."""
    from ..persistence import load

    source = Path(args.file).expanduser()
    out = _find_out(args.out, source)
    about = _read_about(args.model)
    text = args.text or about.get("text")
    if text is None:
        raise ValueError("argument --text: name the column of texts.")
    model = load(args.model)
    target = about.get("target") or find_target(model)
    classes, folder = about.get("classes"), Path(args.model).expanduser().parent
    if source.is_dir():
        place = source, one_or_several(text), out
        n, message = predict_large(*place, model, target, classes, folder)
        return _report_predictions(n, out, message)
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
    delimiter = find_delimiter(source) if source.suffix.lower() == ".csv" else ","

    def write(path):
        write_table(path, columns, delimiter=delimiter)

    message = write_output(folder, PREDICTED, out, write, find_mode(source))
    return _report_predictions(len(X), out, message)


def _report_predictions(n, out, message):
    """Print where the predictions are; return the status of the command."""
    if message is not None:
        say(message)
    print(f"{out}: {n:,} predictions")
    return 0


def _find_out(out, source):
    """Return the file of the predictions, which must not be in the table itself."""
    known = tuple(WRITERS)
    default = source.with_name(f"{source.stem}.predicted{source.suffix}")
    if source.is_dir():
        known = (".parquet",)
        default = source.with_name(f"{source.name}.predicted.parquet")
    if out is None:
        return default
    out = out.expanduser()
    inside = source.is_dir() and source.resolve() in out.resolve().parents
    if inside or (out.exists() and source.exists() and out.samefile(source)):
        raise ValueError(
            f"argument --out: must be another file than the table, which is never "
            f"changed; got {str(out)!r}."
        )
    if out.suffix.lower() not in known or not out.parent.is_dir():
        raise ValueError(
            f"argument --out: must end in {' or '.join(known)}, in a folder that "
            f"exists; got {str(out)!r}."
        )
    return out


def _read_about(model):
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
        are_names and is_one and target in _NEEDED and isinstance(separator, str | None)
    )
