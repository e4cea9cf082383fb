"""Every option of every command: what is given twice, and what is restored."""

import argparse
import io
import sys

import pytest

from skactive.cli import _label, main
from skactive.cli._parser import make_parser


def list_options(parser, words=()):
    """Yield the words of each command with the actions of its options."""
    actions = parser._actions
    groups = [a for a in actions if isinstance(a, argparse._SubParsersAction)]
    for name, command in ((x, y) for group in groups for x, y in group.choices.items()):
        yield from list_options(command, (*words, name))
    yield from ((words, action) for action in actions if action.option_strings)


OPTIONS = [
    pytest.param(words, action, id=" ".join([*words, action.option_strings[0]]))
    for words, action in list_options(make_parser())
    if action.nargs != 0
]
REPEATED = {("label", "--model"), ("label", "--prompt"), ("label", "--label")}
REPEATED |= {("encoders", "--model"), ("encoders", "--prompt"), ("label", "--only-if")}
VALUES = {"as_names": "a,b", "_as_share": "0.5", "_as_points": "3"}


def value_of(action):
    """Return a value that an option takes."""
    if action.choices:
        return next(iter(action.choices))
    return VALUES.get(getattr(action.type, "__name__", ""), "3")


def test_there_are_options_of_all_commands():
    commands = {words for words, _ in list_options(make_parser())}
    assert {("label",), ("annotate",), ("label-studio", "backend"), ()} <= commands
    assert len(OPTIONS) > 100


@pytest.mark.slow
@pytest.mark.parametrize(("words", "action"), OPTIONS)
def test_an_option_that_is_given_twice_is_refused_or_a_list(words, action, capsys):
    name, value = action.option_strings[0], value_of(action)
    assert main([*words, name, value, name, value]) == 2
    refused = f"argument {name}: is given twice. Give it once"
    is_a_list = (*words, name) in REPEATED
    assert (refused in capsys.readouterr().err) != is_a_list


@pytest.mark.parametrize(
    "words", ["--port=1 --port=2", "--port 1 --port=1", "--po 1 --port 2"]
)
def test_an_option_is_given_twice_in_any_form(words, capsys):
    command = ["label", "a.csv", "--text", "a", "--label", "b", *words.split()]
    assert main(command) == 2
    assert "argument --port: is given twice" in capsys.readouterr().err


def test_one_parser_reads_several_command_lines():
    parser = make_parser()
    words = ["label", "a.csv", "--text", "a", "b", "--label", "c", "--max-length", "64"]
    for _ in range(2):
        options = parser.parse_args(words)
        assert (options.text, options.label, options.max_length) == (
            ["a", "b"],
            [["c"]],
            64,
        )
    assert not hasattr(options, "given")


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_label_restores_the_switch_interval(monkeypatch, error, tmp_path):
    seen = []

    def run(*settings):
        seen.append(sys.getswitchinterval())
        if error is not None:
            raise error("no")
        return 0

    monkeypatch.setattr(_label, "_label", run)
    before = sys.getswitchinterval()
    main(["label", "a.csv", "--text", "a", "--label", "b"])
    assert seen == [pytest.approx(0.0005)]
    assert sys.getswitchinterval() == before


def test_the_command_restores_how_stdout_writes_odd_characters(monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    monkeypatch.setattr(sys, "stdout", out)
    assert main([]) == 0
    assert out.errors == "strict"
