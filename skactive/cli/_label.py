"""The command `label`: from a table to a labeled table and a model."""

import shlex
import sys
from dataclasses import replace

from .._tables._codebook import read_classes
from .._utils._lazy import need_bert
from ..labeling import run_prompt
from ..project import Project, ProjectSettings
from ..session import LockedError
from ._parser import one_or_several, show_line

_REMEMBERED = "text label show separator id suggest until annotator overlap folder "
_REMEMBERED += "features repeat strategy model prompt dimensions machine machine_model "
_REMEMBERED += "max_requests max_tokens max_length regression adapt"
_REPEATED = "model", "prompt"


def run_label(terminal, port, no_browser, **options):
    """Run the command `label`."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)  # answers must not wait for training threads
    try:
        return _label(make_project(**options), terminal, port, not no_browser)
    finally:
        sys.setswitchinterval(before)


def make_project(
    *, classes_file=None, no_adapt=False, no_fine_tuning=False, show=None, **options
):
    """Return the project of the options of the command."""
    options["show"] = [x for part in show or () for x in part.split(",") if x]
    options["adapt"] = options.get("adapt") or (False if no_adapt else None)
    several = [x for x in ("text", "label", "model", "prompt") if options.get(x)]
    options |= {name: one_or_several(options[name]) for name in several}
    project = Project(fine_tuning=not no_fine_tuning, **options).recall()
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


def _label(project, terminal, port, open_browser):
    """Label by the page or in the terminal, and print the result."""
    if project.features is None:  # before a page opens
        need_bert("the model", extras="bert,label,demo,save")
    project.command = name_command(project, terminal)
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
    if project.sources is None:
        show_line(f"{project.output}: as it was")
    else:
        shown = ", ".join(f"{n:,} {name}" for name, n in project.sources.items())
        show_line(f"{project.output}: {shown}")
    return 0


def _serve(project, port, open_browser):
    try:
        from ..labeling import serve
    except ImportError as exc:
        raise ImportError(f"{exc}, or label in the terminal: --terminal.") from exc
    return serve(project, port=port, open_browser=open_browser)


def name_command(project, terminal=False):
    """Return the command that continues, as a person would type it."""
    words = ["skactive", "label", project.file]
    for name in _REMEMBERED.split():
        value = getattr(project, name)
        if value in (None, False, []) or value == getattr(ProjectSettings, name, None):
            continue
        option = f"--{name.replace('_', '-')}"
        values = [] if value is True else value if isinstance(value, list) else [value]
        if name in _REPEATED:
            words += [word for each in values for word in (option, each)]
        else:
            words += [option, *map(str, values)]
    words += ["--coders", ",".join(project.coders)] if project.coders else []
    words += ["--no-adapt"] * (project.adapt is False)
    words += ["--no-fine-tuning"] * (not project.fine_tuning)
    return shlex.join(words + ["--terminal"] * terminal)
