"""One record of settings, which the commands fill."""

import argparse
from dataclasses import FrozenInstanceError, fields

import pytest

from skactive.cli._main import name_options
from skactive.cli._parser import make_parser
from skactive.project import Project, ProjectSettings

FIELDS = {field.name for field in fields(ProjectSettings)}
# Of the front end, of the connection, and what the record says in other words.
FRONT = {"terminal", "port", "no_browser", "traceback", "help", "only_if"}
BRIDGE = {"url", "token_env", "project", "question", "batch_size", "left", "interval"}
BRIDGE |= {"every", "host", "port", "auth_env", "help"}
SAME = {"classes_file": "classes", "no_fine_tuning": "fine_tuning"}
SAME["no_adapt"] = "adapt"


def _options(*words):
    """Return the names of the options of a command."""
    parser = make_parser()
    for word in words:
        (group,) = (
            a for a in parser._actions if isinstance(a, argparse._SubParsersAction)
        )
        parser = group.choices[word]
    return {action.dest for action in parser._actions}


def test_the_record_has_the_options_of_label():
    options = {SAME.get(name, name) for name in _options("label") - FRONT}
    assert options == FIELDS


@pytest.mark.parametrize("action", ["pull", "push", "run", "backend"])
def test_the_record_has_the_options_of_label_studio(action):
    options = _options("label-studio", action) - BRIDGE
    assert {SAME.get(name, name) for name in options} <= FIELDS


def test_parameters_stay_and_state_may_change():
    project = Project("films.csv", "review", "tone")
    with pytest.raises(FrozenInstanceError):
        project.n_labels = 5
    project.session = None
    assert vars(project)["session"] is None


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("'folder' must be new. Use folder=NEW.", "argument --folder: must be new. "
         "Use --folder NEW."),
        ("Pass regression=True to predict.", "Pass --regression to predict."),
        ("Name them with classes=.", "Name them with --classes."),
        ("column 'folder' is not there", "column 'folder' is not there"),
        ("Pass other=3.", "Pass other=3."),
        ("Call run(1, folder=F).", "Call run(1, folder=F)."),
        ("'file' must be a table.", "argument FILE: must be a table."),
    ],
)  # fmt: skip
def test_arguments_become_options_in_errors(message, shown):
    options = {x: f"--{x}" for x in ("folder", "regression", "classes")}
    assert name_options(message, {**options, "file": "FILE"}) == shown
