"""The command `label`: from a table to a labeled table and a model."""

import shlex
import sys
import warnings
import webbrowser
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from .._tables._labels import JOIN
from .._utils._format import report_progress
from ..labeling import StartDesk, run_prompt
from ..project import Project, recall_choice, show
from ..project._ending import LABELS, PREDICTIONS, SAVING, Ending
from ..project._settings import (
    ModelSettings,
    encoder_options,
    make_learner,
    one_or_several,
    say,
    train_final,
)
from ..session import LockedError, read_manifest
from ..stopping import read_goal
from ._annotate import CACHE, make_machine, read_classes, say_cost
from ._encode import add_encoder
from ._parser import NEEDED, make_parser

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
    show: list[str] | None
    n_labels: int | None
    until: str | None
    annotator: str | None
    folder: str | None
    strategy: str | None
    features: Path | None
    model: str | None
    max_length: int
    prompt: str | None
    dimensions: int | None
    no_fine_tuning: bool
    machine: str | None
    machine_model: str | None
    max_requests: int | None
    max_tokens: int | None
    terminal: bool
    port: int | None
    no_browser: bool

    @property
    def is_large(self):
        """Whether the texts stay in their files."""
        return self.features is not None or Path(self.file).expanduser().is_dir()

    def command(self):
        """Return the command that continues, as a person would type it."""
        words = ["skactive", "label", self.file]
        kept = "text label show separator id suggest until annotator folder features "
        kept += "strategy model prompt dimensions machine machine_model max_requests "
        kept += "max_tokens max_length regression no_fine_tuning terminal"
        for name in kept.split():
            value = getattr(self, name)
            if value in (None, False, getattr(ModelSettings, name, None)):
                continue
            words.append(f"--{name.replace('_', '-')}")
            if value is not True:
                words += map(str, value if isinstance(value, list) else [value])
        return shlex.join(words)

    def recall(self):
        """Return the settings with what was chosen on the page, if nothing else is."""
        path = Path(self.file).expanduser()
        chosen = recall_choice(path, self.label, self.folder)
        names = {"n_labels"} if self.n_labels is None else set()
        if self.separator is None and not self.regression:
            names |= {"separator", "regression"}
        return replace(self, **{x: chosen[x] for x in names & chosen.keys()})

    def needs_start(self, project):
        """Whether the page asks for the classes before a session begins."""
        is_named = self.classes is not None or self.classes_file is not None
        is_new = read_manifest(str(project.folder / "session")) is None
        needs_classes = project.target != "regression"
        needs_classes = needs_classes and len(project.find_classes()) < 2
        return is_new and needs_classes and not (is_named or self.terminal)

    def make_project(self):
        """Return the project, and raise an error for options that do not fit."""
        text, features = " ".join(self.text), self.features
        if self.until is not None:
            try:
                read_goal(self.until)
            except ValueError as exc:
                raise ValueError(f"argument --until: {exc}") from exc
        if self.until is not None and self.regression:
            raise ValueError("argument --until: is for classes, not for --regression.")
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
        for name in ("suggest", "machine"):
            if features is not None and getattr(self, name) is not None:
                raise ValueError(
                    f"argument --{name}: suggestions need a table without --features."
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
            show=[x for part in self.show or () for x in part.split(",") if x],
        )

    def describe_model(self, target):
        """Return the ModelSettings for a target."""
        features = None if self.features is None else str(self.features.expanduser())
        return ModelSettings(
            target=target,
            model=self.model,
            **encoder_options(self),
            strategy=self.strategy,
            features=features,
            fine_tune=not self.no_fine_tuning,
        )


def run_label(**options):
    """Run the command `label`."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)  # answers must not wait for training threads
    try:
        return _run_label(LabelSettings(**options))
    finally:
        sys.setswitchinterval(before)


def _run_label(settings):
    """Label by the page or in the terminal, and write what comes out."""
    classes, about = settings.classes, {}
    if settings.classes_file is not None:
        about = read_classes(settings.classes_file)
        classes = list(about)
    settings = settings.recall()
    project = settings.make_project()
    _say_all(project)
    if _show_page(settings, project):
        return 0
    if settings.needs_start(project):
        say("the page asks for the classes")
        begin = partial(_begin, settings, project)
        return _serve(settings, StartDesk(project, begin, settings.n_labels))
    try:
        _open(settings, project, classes, about)
    except LockedError as exc:
        raise RuntimeError(
            f"{settings.file} is open in {exc.holder}. Finish it there first."
        ) from exc
    if len(project.session.known_classes) < 2 and project.target != "regression":
        say(_NO_CLASSES)
    if not settings.terminal:
        return _serve(settings, project.desk, project)
    try:
        _run_terminal(project.desk)
        return _finish(settings, project)
    finally:
        project.close()


@contextmanager
def open_begun(file, text, label, regression=False, **options):
    """Yield the project that `skactive label` began for a table, open; None for none.

    `options` are some of those of the command; None stands for the default.
    """
    words = ["label", file, "--text", *text, "--label", label]
    words += ["--regression"] if regression else []
    for name, value in options.items():
        words += [f"--{name}", value] if value is not None else []
    options = vars(make_parser().parse_args(words))
    del options["run"], options["traceback"]
    settings = LabelSettings(**options).recall()
    project = settings.make_project()
    if read_manifest(str(project.folder / "session")) is None:
        yield None
        return
    model = settings.describe_model(project.target)
    project.open(make_learner(model, project.folder))
    try:
        yield project
    finally:
        project.close()


def _begin(settings, project, kind, classes, n_labels):
    """Open and return a project, as the first screen of the page says."""
    chosen = {"n_labels": n_labels}
    if kind != project.target:
        chosen["separator"] = JOIN if kind == "multi-label" else None
        chosen["regression"] = kind == "regression"
        project = replace(settings, **chosen).make_project()
    settings = replace(settings, **chosen)
    about = {name: text for name, text in classes.items() if text}
    # Before a session begins: what is refused here can be chosen again.
    described = {name: {"description": text} for name, text in classes.items()}
    _make_machine(settings, project, described)
    _open(settings, project, list(classes) or None, about)
    project.remember(**chosen)
    return project


def _open(settings, project, classes, about):
    """Open the session and the desk of a project, and say what there is."""
    model = settings.describe_model(project.target)
    project.open(
        make_learner(model, project.folder),
        classes=classes,
        n_labels=settings.n_labels,
        until=settings.until,
        annotator=settings.annotator,
        about=about,
    )
    _say_all(project)
    n_before = len(project.session.labels)
    n_pool, n_given = len(project.texts), len(project.given)
    say(f"{n_pool:,} texts, {n_given:,} labels given, {n_before:,} by people")
    described = {x["name"]: x for x in project.desk.state()["classes"]}
    if (machine := _make_machine(settings, project, described)) is not None:
        say_cost(machine, project.texts)
        project.desk.annotate(machine)


def _make_machine(settings, project, about):
    """Return the language model of settings for the classes in `about`, or None."""
    if settings.machine is None and settings.machine_model is None:
        return None
    if project.target == "regression" or len(about) < 2:
        raise ValueError(
            "argument --machine: a language model chooses among classes. Name them "
            "with --classes or --classes-file."
        )
    machine = make_machine(
        project.folder / CACHE,
        about=about,
        machine=settings.machine,
        machine_model=settings.machine_model,
        multi_label=project.target == "multi-label",
        max_requests=settings.max_requests,
        max_tokens=settings.max_tokens,
    )
    machine.check_limits(list(project.texts))
    return machine


def _serve(settings, desk, project=None):
    """Serve the page under the address of the last time, if its port is free.

    So a page that is still open goes on. It shows what is written in the end. `project`
    is that of the desk, None for a StartDesk, whose project may never be opened.
    """
    from ..labeling import open_page, recall_address, remember_address

    (project or desk.project).make_folder()
    folder = (project or desk.project).folder
    port, token = recall_address(folder, settings.port)

    def announce(url):
        if not remember_address(folder, url):
            say(f"{folder / 'page.json'} is another file: the address is not kept")
        say(f"label at {url}")
        say("Ctrl-C, or Finish on the page, writes the labeled table")

    options = {"port": port, "token": token, "announce": announce}
    try:
        with open_page(desk, open_browser=not settings.no_browser, **options) as server:
            if project is None and not desk.has_begun:
                say("no class was named, so nothing was begun")
                return 0
            project = project or desk.project
            ending = Ending(project, settings.command())
            server.ending = ending.state
            return _finish(settings, project, ending)
    finally:
        if project is not None:
            project.close()


def _show_page(settings, project):
    """Show the page of a project if another program serves it; return whether."""
    try:
        from ..labeling import find_page
    except ImportError as exc:
        if settings.terminal:
            return False
        raise ImportError(f"{exc}, or label in the terminal: --terminal.") from exc
    if (url := find_page(project.folder)) is None:
        return False
    if settings.terminal:
        raise RuntimeError(
            f"{settings.file} is open at {url}. Use that page, or finish it first."
        )
    say(f"{settings.file} is open at {url}")
    if not settings.no_browser:
        webbrowser.open(url)
    return True


def _run_terminal(desk):
    """Label at a prompt until the person finishes."""
    with _hold_warnings():
        try:
            run_prompt(desk)
        except KeyboardInterrupt:
            say("")


@contextmanager
def _hold_warnings():
    """Show warnings at the end, so that none is printed into a prompt."""
    show, held = warnings.showwarning, []
    warnings.showwarning = lambda *warning: held.append(warning)
    try:
        yield
    finally:
        warnings.showwarning = show
        for warning in held:
            show(*warning)


def _finish(settings, project, ending=None):
    """Write the labels, then the predictions, then the model."""
    ending = ending or Ending(project, settings.command())
    project.report = ending.report
    try:
        with report_progress(ending.report):
            status = _write_all(
                settings.describe_model(project.target), project, ending
            )
        ending.finish()
        return status
    except BaseException as exc:
        ending.finish(str(exc) or type(exc).__name__)
        if not isinstance(exc, OSError):
            raise
        raise OSError(
            f"{exc}. The labels by people are safe in {show(project.folder)}: the "
            "same command continues"
        ) from exc


def _write_all(settings, project, ending):
    """Write what `_finish` says, with the settings of the model."""
    session, n_labeled = project.session, len(project.session.labels)
    stamp = project.stamp(sorted(asdict(settings).items()))
    if project.is_current(stamp):
        say("nothing was answered since the table and the model were written")
        print(f"{project.output}: as it was")
        ending.add(file=show(project.output), model=show(project.folder / "model"))
        return 0
    failures: list[Exception] = []
    # First what people said: nothing below can lose it.
    ending.begin(LABELS)
    sources = _write(project, failures, ending)
    say(f"{n_labeled:,} labels by people, {len(session.skipped):,} skipped")
    if reason := project.reason():
        say(f"the names and descriptions of the classes are {reason}")
    if not failures:
        say(f"labels are in {project.output}")
    try:
        data = project.labeled()
        options = settings, session, project.folder, data, ending.begin
        model, classes, is_final = train_final(*options)
        if model is None:
            say(f"no model yet: it needs {NEEDED[project.target]}")
        else:
            say("predicting the other texts; Ctrl-C leaves them blank")
            ending.begin(PREDICTIONS)
            sources = _write(project, failures, ending, model, classes) or sources
            facts = ending.describe(sources, classes)
            stamp = stamp if is_final else None  # otherwise it is trained again
            say("saving the model")
            ending.begin(SAVING)
            _save(settings, project, model, (classes, stamp, facts), ending)
        ending.measure()
    except KeyboardInterrupt:
        say("stopped" if failures else "stopped; the labels are written")
    if failures:
        raise failures[-1]
    shown = ", ".join(f"{n:,} {name}" for name, n in sources.items())
    print(f"{project.output}: {shown}")
    return 0


def _write(project, failures, ending, *model):
    """Write the table, and return the numbers of its sources.

    After a failure, which is kept, the model can still be saved.
    """
    sources = {}
    try:
        sources = project.write(*model)
        ending.write_labels(sources)
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


def _save(settings, project, model, about, ending):
    """Save the model, which takes texts; not if the features cannot be computed.

    `about` are the classes, the stamp and the facts of `Project.save_model`.
    """
    if settings.features is not None:
        model = add_encoder(model, settings.features)
    if model is None:
        say("no model is saved: `skactive encode` did not write the features")
    else:
        saved = project.save_model(model, *about)
        say(f"the model is in {saved}")
        predict = shlex.join(["skactive", "predict", show(saved), "NEW_FILE"])
        ending.add(model=show(saved), predict=predict)
