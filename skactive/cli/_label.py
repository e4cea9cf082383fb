"""The command `label`: from a table to a labeled table and a model."""

import json
import socket
import sys
import warnings
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from ..labeling import Project, run_prompt, show
from ..session import LockedError
from ._encode import add_encoder
from ._model import ModelSettings, make_learner, one_or_several, say, train_final

NEEDED = {
    "single-label": "labels of two classes",
    "multi-label": "two texts with different classes",
    "regression": "two different numbers",
}
_NO_CLASSES = (
    "the table names fewer than two classes: add them, or pass --classes A,B,C"
)


@dataclass(frozen=True, kw_only=True)
class LabelSettings:
    """The options of `skactive label`."""

    file: str
    text: list[str]
    label: list[str]
    separator: str | None
    regression: bool
    classes: list[str] | None
    classes_file: str | None
    id: str | None
    suggest: str | None
    n_labels: int | None
    annotator: str | None
    folder: str | None
    strategy: str | None
    features: Path | None
    model: str | None
    max_length: int
    no_fine_tuning: bool
    terminal: bool
    port: int | None
    no_browser: bool

    @property
    def is_large(self):
        """Whether the texts stay in their files."""
        return self.features is not None or Path(self.file).expanduser().is_dir()

    def make_project(self):
        """Return the project, and raise an error for options that do not fit."""
        text, features = " ".join(self.text), self.features
        command = f"skactive encode {self.file} --text {text} --folder"
        if self.is_large and features is None:
            raise ValueError(
                "argument --features: a folder needs features that were computed "
                f"before. Run `{command} FEATURES`, then add --features FEATURES."
            )
        if features is not None and not features.expanduser().is_dir():
            raise ValueError(
                f"argument --features: there is no folder {str(features)!r}. Run "
                f"`{command} {features}`."
            )
        if features is not None and self.suggest is not None:
            raise ValueError(
                "argument --suggest: suggestions need a table without --features."
            )
        return Project(
            self.file,
            one_or_several(self.text),
            one_or_several(self.label),
            id=self.id,
            folder=self.folder,
            suggest=self.suggest,
            separator=self.separator,
            regression=self.regression,
            large=self.is_large,
        )

    def describe_model(self, target):
        """Return the ModelSettings for a target."""
        features = None if self.features is None else str(self.features.expanduser())
        return ModelSettings(
            target=target,
            model=self.model,
            max_length=self.max_length,
            strategy=self.strategy,
            features=features,
            fine_tune=not self.no_fine_tuning,
        )


def run_label(**options):
    """Run the command `label`."""
    settings = LabelSettings(**options)
    if not settings.terminal:
        _check_packages()
    sys.setswitchinterval(0.0005)  # answers must not wait for training threads
    classes, about = settings.classes, {}
    if settings.classes_file is not None:
        about = read_classes(settings.classes_file)
        classes = list(about)
    project = settings.make_project()
    _say_all(project)
    model = settings.describe_model(project.target)
    try:
        project.open(
            make_learner(model, project.folder),
            classes=classes,
            n_labels=settings.n_labels,
            annotator=settings.annotator,
            about=about,
        )
    except LockedError as exc:
        where, url = f"in {exc.holder}. Finish it there", _find_page(project.folder)
        where = where if url is None else f"at {url}. Use that page, or finish it"
        raise RuntimeError(f"{settings.file} is open {where} first.") from exc
    _say_all(project)
    try:
        n_before = len(project.session.labels)
        n_pool, n_given = len(project.texts), len(project.given)
        say(f"{n_pool:,} texts, {n_given:,} labels given, {n_before:,} by people")
        n_classes = len(project.session.known_classes)
        if n_classes < 2 and project.target != "regression":
            say(_NO_CLASSES)
        if settings.terminal:
            _run_terminal(project.desk)
        else:
            _serve(project, settings.port, not settings.no_browser)
        try:
            return _finish(project, model)
        except OSError as exc:
            raise OSError(
                f"{exc}. The labels by people are safe in {show(project.folder)}: the "
                "same command continues"
            ) from exc
    finally:
        project.close()


def _check_packages():
    """Raise an error before any work if the page lacks a package."""
    for name in ("starlette", "uvicorn"):
        if find_spec(name) is None:
            raise ImportError(
                f'the page needs {name}. Install it with `pip install "skactive[label]"'
                "`, or label in the terminal: --terminal."
            )


def _serve(project, port, open_browser):
    """Serve the page under the address of the last time, if its port is free.

    So a page that is still open goes on.
    """
    from ..labeling import recall_address, remember_address, serve

    port, token = recall_address(project.folder, port)

    def announce(url):
        if not remember_address(project.folder, url):
            path = project.folder / "page.json"
            say(f"{path} is another file: the address is not kept")
        say(f"label at {url}")
        say("Ctrl-C, or Finish on the page, writes the labeled table")

    options = {"port": port, "token": token, "announce": announce}
    serve(project.desk, open_browser=open_browser, **options)


def _find_page(folder):
    """Return the address of the page that is open in a folder, or None."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        page = json.loads((folder / "page.json").read_text(encoding="utf-8"))
        socket.create_connection(("127.0.0.1", page["port"]), 1).close()
        return f"http://127.0.0.1:{page['port']}/{page['token']}/"
    return None


def _run_terminal(desk):
    """Label on a full screen or at a prompt until the person finishes."""
    has_screen = find_spec("textual") is not None
    with _hold_warnings():
        try:
            if has_screen and sys.stdin.isatty():
                from ..labeling import LabelingApp

                LabelingApp(desk).run()
            else:
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


def _finish(project, settings):
    """Write the labels, then the predictions, then the model."""
    session, n_labeled = project.session, len(project.session.labels)
    stamp = project.stamp(sorted(asdict(settings).items()))
    if project.is_current(stamp):
        say("nothing was answered since the table and the model were written")
        print(f"{project.output}: as it was")
        return 0
    failures: list[Exception] = []
    # First what people said: nothing below can lose it.
    sources = _write(project, failures)
    say(f"{n_labeled:,} labels by people, {len(session.skipped):,} skipped")
    if reason := project.reason():
        say(f"the names and descriptions of the classes are {reason}")
    if not failures:
        say(f"labels are in {project.output}")
    try:
        data = project.labeled()
        model, classes = train_final(settings, session, project.folder, data)
        if model is None:
            say(f"no model yet: it needs {NEEDED[project.target]}")
        else:
            say("predicting the other texts; Ctrl-C leaves them blank")
            sources = _write(project, failures, model, classes) or sources
            say("saving the model")
            _save(settings, project, model, classes, stamp)
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


def _save(settings, project, model, classes, stamp):
    """Save the model, which takes texts; not if the features cannot be computed."""
    if settings.features is not None:
        model = add_encoder(model, settings.features)
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
