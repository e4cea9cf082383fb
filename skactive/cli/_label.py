"""The command `label`: from a table to a labeled table and a model."""

import sys
from argparse import ArgumentTypeError
from dataclasses import replace
from pathlib import Path

from .._tables._codebook import read_classes
from .._tables._reader import TableFile, find_files, list_columns
from .._utils._lazy import need_bert
from ..labeling import run_prompt
from ..project import Project, Questions
from ..session import LockedError
from ._parser import UsageError, as_names, one_or_several, show_line

_OF_ONE_QUESTION = "classes", "classes_file", "regression", "separator", "suggest"


def run_label(terminal, port, no_browser, command, **options):
    """Run the command `label`, which the page shows as `command`."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)  # answers must not wait for training threads
    try:
        project = make_project(**options)
        project.command = command
        if terminal and isinstance(project, Questions):
            raise UsageError("--terminal asks one question: name one --label")
        return _label(project, terminal, port, not no_browser)
    finally:
        sys.setswitchinterval(before)


def make_project(
    *,
    label,
    only_if=None,
    classes_file=None,
    no_adapt=False,
    no_fine_tuning=False,
    show=None,
    **options,
):
    """Return the project, or the Questions, of the options of the command."""
    asked = read_questions(options["file"], label or ()) or {(): None}
    named = {**options, "classes_file": classes_file}
    others = [name for name in _OF_ONE_QUESTION if named.get(name)]
    if others and (len(asked) > 1 or any(asked.values())):
        option = f"--{others[0].replace('_', '-')}"
        raise UsageError(
            f"{option} is for one --label without a colon. Name the classes of each "
            "question, as in --label tone:good,bad"
        )
    options["show"] = [x for part in show or () for x in part.split(",") if x]
    options["adapt"] = options.get("adapt") or (False if no_adapt else None)
    options["text"] = options["text"] or ()
    several = [x for x in ("text", "model", "prompt") if options.get(x)]
    options |= {name: one_or_several(options[name]) for name in several}
    options["fine_tuning"] = not no_fine_tuning
    if len(asked) > 1:
        shared = {x: y for x, y in options.items() if x not in _OF_ONE_QUESTION}
        shared["only_if"] = dict(map(_read_condition, only_if or ()))
        file, text = shared.pop("file"), shared.pop("text")
        return Questions(file, text, asked, **shared)
    if only_if:
        raise UsageError("--only-if needs several questions: give --label again")
    ((label, classes),) = asked.items()
    options["label"] = label if isinstance(label, str) else list(label)
    if classes == "number":
        options["regression"] = True
    elif classes:
        options["classes"] = classes
    project = Project(**options)
    project = project.recall() if others else Questions.recall(project)
    if isinstance(project, Questions):
        return project
    if classes_file is not None:
        names = project.find_classes()
        project = replace(project, classes=read_classes(classes_file, names))
    try:
        project.check()
    except ValueError as exc:
        if not str(exc).startswith("'features' must"):
            raise
        text = project.text if isinstance(project.text, str) else " ".join(project.text)
        command = f"skactive encode {project.file} --text {text} --folder FEATURES"
        raise ValueError(f"{exc} Run `{command}`.") from exc
    return project


def read_questions(file, labels):
    """Return the questions of `--label`, dict of column or columns to what is asked.

    `labels` are the words of each option. A column of the table may have a colon.
    """
    asked, path = {}, Path(file).expanduser()
    for words in labels:
        name, colon, classes = words[0].partition(":")
        if len(words) > 1:
            name, classes = tuple(words), ""
        elif colon:
            file = find_files(path)[0][0] if path.is_dir() else path
            columns = list_columns(file) if path.is_dir() else TableFile(file).names
            if words[0] in columns:
                name, classes = words[0], ""
        if name in asked:
            raise UsageError(f"--label {name} is given twice. Give it once")
        try:
            is_list = classes not in ("", "number")
            asked[name] = as_names(classes) if is_list else classes or None
        except ArgumentTypeError as exc:
            raise UsageError(f"--label {words[0]} {exc}") from exc
    return asked


def _read_condition(text):
    """Return a question, and the other one and its label that it depends on."""
    name, _, condition = text.partition(":")
    other, equals, label = condition.partition("=")
    if not (name and other and equals and label):
        raise UsageError(f"--only-if must be QUESTION:OTHER=LABEL, got {text!r}")
    return name, (other, label)


def _label(project, terminal, port, open_browser):
    """Label by the page or in the terminal, and print the result."""
    if project.features is None:  # before a page opens
        need_bert("the model", extras="label")
    try:
        if terminal and project.coders:
            raise ValueError("'coders' must be left out with --terminal.")
        if terminal:
            run_prompt(project)
        elif not _serve(project, port, open_browser):
            return 0
    except LockedError as exc:
        raise RuntimeError(
            f"{project.file} is open in {exc.holder}. Finish it there first."
        ) from exc
    project = project.begun or project
    for name, each in getattr(project, "projects", {"": project}).items():
        shown = f"{project.output}: {name}{name and ': '}"
        counts = [f"{n:,} {source}" for source, n in (each.sources or {}).items()]
        show_line(shown + (", ".join(counts) or "as it was"))
    return 0


def _serve(project, port, open_browser):
    try:
        from ..labeling import serve
    except ImportError as exc:
        raise ImportError(f"{exc}, or label in the terminal: --terminal.") from exc
    return serve(project, port=port, open_browser=open_browser)
