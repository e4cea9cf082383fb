"""The `skactive` command: its options and errors, and the list of strategies."""

import io
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import skactive
from skactive import registry
from skactive._utils import _plugins
from skactive._utils._plugins import Plugin
from skactive.cli import main
from skactive.cli._parser import say, show_line
from skactive.strategies import PointwiseStrategy, Random
from skactive.testing import check_strategy

# The command itself


def test_without_a_command_it_prints_its_help(capsys):
    assert main([]) == 0
    out, err = capsys.readouterr()
    assert re.search(r"strategies\s+list .*\n\s+demo\s+compare", out)
    assert err == ""


def test_the_version(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"skactive {skactive.__version__}\n"


def test_python_runs_the_package_as_the_command():
    command = [sys.executable, "-m", "skactive", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout == f"skactive {skactive.__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"]])
def test_help_imports_nothing_slow(arguments):
    code = (
        "import sys\nfrom skactive.cli._main import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit as exc:\n"
        "    assert exc.code == 0\n"
        "slow = {'torch', 'transformers', 'sklearn', 'matplotlib'} & set(sys.modules)\n"
        "assert not slow, slow\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: skactive")


@pytest.mark.parametrize(
    ("name", "defaults"),
    [
        ("demo", ["5000", "1500", "10", "skactive-demo"]),
        ("simulate", ["10000", "2000", "5", "skactive-runs"]),
    ],
)
def test_the_help_shows_every_default(capsys, name, defaults):
    with pytest.raises(SystemExit):
        main([name, "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for default in (*defaults, "128", "entropy margin", "50", "9", "1"):
        assert f"(default: {default})" in shown
    assert "None" not in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dance"], r"invalid choice: 'dance'.* See `skactive --help`\."),
        (["strategies", "--dance"], r"unrecognized arguments: --dance"),
        (["demo", "--rounds", "0"], r"--rounds: must be a positive integer, got '0'"),
        (["demo", "--seeds", "x"], r"--seeds: .* got 'x'\. See `skactive demo --help`"),
        (["demo", "--batch-size", "1.5"], r"--batch-size: .* got '1.5'"),
        (["demo", "--folder"], r"--folder: expected one argument"),
        (["demo", "--data", "a.csv"], r"unrecognized arguments: --data a.csv"),
        (["simulate"], r"required: FILE, --text, --label"),
    ],
)
def test_a_wrong_command_line_is_reported_in_one_line(capsys, arguments, message):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(f"skactive: error: .*{message}.*\n", err)


def test_warnings_are_reported_in_one_line(capsys, monkeypatch):
    def warn():
        warnings.warn("two\nlines", UserWarning, stacklevel=1)
        return ()

    monkeypatch.setattr("skactive.cli._strategies.available", warn)
    assert main(["strategies"]) == 0
    assert capsys.readouterr().err == "skactive: warning: two lines\n"


def test_what_a_terminal_cannot_show_becomes_a_question_mark(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(
        "skactive.cli._simulate.write_report", lambda *a, **k: ("0.5 ± 0.1", [])
    )
    assert main(["report", "anywhere"]) == 0
    stream.flush()
    assert stream.buffer.getvalue().split(b"\n")[0].rstrip() == b"0.5 ? 0.1"


# skactive strategies


class _Unwell:
    def __init__(self):
        raise RuntimeError("out\nof order")


class _Rambling(PointwiseStrategy):
    def score(self, view):
        return np.full(len(view), np.nan)


@pytest.fixture
def register(monkeypatch):
    """Register strategies for one test, next to two of the built-in ones."""
    few = tuple(e for e in registry.available() if e.name in ("random", "margin"))
    by_hand = {}
    for module in (_plugins, registry._names):
        monkeypatch.setattr(module, "registered", by_hand)
    monkeypatch.setattr(_plugins, "_installed", lambda: few)
    return registry.register


def _list(capsys, *arguments):
    """Run `skactive strategies`; give its status and the rows by name."""
    status = main(["strategies", *arguments])
    lines = capsys.readouterr().out.splitlines()
    header = ["name", "what it does", "targets", "needs"]
    header += ["distribution", "version", "state"]
    assert re.split(r" {2,}", lines[0]) == header
    rows = [re.split(r" {2,}", line) for line in lines[1:]]
    assert all(len(row) == 7 for row in rows)
    return status, rows


def test_the_list_holds_every_strategy(capsys):
    status, rows = _list(capsys)
    assert status == 0
    assert [row[0] for row in rows] == [entry.name for entry in registry.available()]


@pytest.mark.parametrize(
    ("name", "targets", "needs"),
    [
        ("random", "all", "-"),
        ("entropy", "single-label, multi-label", "proba"),
        ("goral", "single-label", "gradients, labeled, proba"),
    ],
)
def test_the_list_shows_targets_needs_and_origin(capsys, name, targets, needs):
    _, rows = _list(capsys)
    row = next(row for row in rows if row[0] == name)
    version = skactive.__version__
    assert row[2:] == [targets, needs, "skactive", version, "ok"]


def test_the_list_says_what_each_strategy_does(capsys):
    _, rows = _list(capsys)
    said = {row[0]: row[1] for row in rows}
    assert said["random"] == Random.__doc__.partition("\n")[0]
    assert all(text.endswith(".") for text in said.values())


def test_the_columns_are_aligned(capsys):
    main(["strategies"])
    lines = capsys.readouterr().out.splitlines()
    start = lines[0].index("distribution")
    assert all(line[start - 2 : start] == "  " for line in lines)
    assert {line[start:].split()[0] for line in lines[1:]} >= {"skactive"}


def test_a_function_declares_no_needs(capsys, register):
    register("mine", lambda view: np.zeros(len(view)))
    _, rows = _list(capsys)
    assert ["mine", "-", "all", "not declared", "this session", "-", "ok"] in rows


@pytest.mark.long
@pytest.mark.parametrize(("check", "expected"), [([], 0), (["--check"], 1)])
def test_a_broken_strategy_stops_no_other(capsys, register, check, expected):
    register("unwell", _Unwell)
    status, rows = _list(capsys, *check)
    assert status == expected
    states = {row[0]: row[-1] for row in rows}
    assert states["unwell"] == "broken: out of order"
    passed = f"{len(check_strategy('random'))} checks passed"
    assert states["random"] == (passed if check else "ok")


def test_the_check_finds_invalid_scores(capsys, register):
    register("rambling", _Rambling)
    status, rows = _list(capsys)
    assert (status, [row[-1] for row in rows if row[0] == "rambling"]) == (0, ["ok"])
    status, rows = _list(capsys, "--check")
    assert status == 1
    states = {row[0]: row[-1] for row in rows}
    assert states["rambling"].startswith("fails: ")
    assert re.fullmatch(r"\d+ checks passed", states["margin"])


@pytest.mark.parametrize("name", ["margin", "skactive:margin"])
def test_only_the_named_strategies_are_checked(capsys, monkeypatch, name):
    checked = []

    def check(strategy):
        checked.append(type(strategy).__name__)
        return ["one", "two", "three"]

    monkeypatch.setattr("skactive.cli._strategies.check_strategy", check)
    assert main(["strategies", name, "random", name, "--check"]) == 0
    out, err = capsys.readouterr()
    rows = [re.split(r" {2,}", line) for line in out.splitlines()[1:]]
    assert [(row[0], row[-1]) for row in rows] == [
        ("margin", "3 checks passed"),
        ("random", "3 checks passed"),
    ]
    assert checked == ["Margin", "Random"]
    assert err == "Checking 2 strategies ...\n"


@pytest.mark.parametrize("check", [[], ["--check"]])
@pytest.mark.parametrize(
    ("name", "hint"),
    [("margni", "'margin'"), ("nobody:margin", "'skactive:margin'")],
)
def test_an_unknown_name_is_an_error_with_near_names(capsys, check, name, hint):
    assert main(["strategies", "random", name, *check]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    message = f"argument NAME: unknown strategy {name!r}. Did you mean {hint}?"
    assert message in err


def test_a_plugin_of_a_built_in_name_is_warned_of_once(capsys, monkeypatch):
    own = next(entry for entry in registry.available() if entry.name == "margin")
    other = Plugin("margin", own.value, "other-package", "2.0")
    monkeypatch.setattr(_plugins, "_installed", lambda: (other, own))
    main(["strategies"])
    out, err = capsys.readouterr()
    states = [re.split(r" {2,}", line)[-1] for line in out.splitlines()[1:]]
    assert states == ["ok, as other-package:margin", "ok"]
    assert len(err.splitlines()) == 1
    assert "The names mean the built-in ones" in err
    assert "'other-package:margin'" in err


def test_two_plugins_of_one_name_collide(capsys, monkeypatch):
    value = "skactive.strategies:Random"
    entries = tuple(Plugin("both", value, d, "1.0") for d in ("one", "two"))
    monkeypatch.setattr(_plugins, "_installed", lambda: entries)
    _, rows = _list(capsys)
    assert [row[-1] for row in rows] == [
        "collides with two: use one:both",
        "collides with one: use two:both",
    ]


@pytest.mark.parametrize(("check", "expected"), [([], 0), (["--check"], 1)])
def test_an_unknown_requirement_is_broken(capsys, register, check, expected):
    class Misspelled(PointwiseStrategy):
        requires = frozenset({"probabilities"})

        def score(self, view):
            return view.probabilities

    register("misspelled", Misspelled)
    status, rows = _list(capsys, *check)
    assert status == expected
    states = {row[0]: row[-1] for row in rows}
    assert states["misspelled"].startswith(
        "broken: `requires` holds 'probabilities', which is unknown."
    )


# What comes from outside


# Their prints are moved by the change that is under way.
def test_commands_print_by_two_functions_only():
    for path in Path(skactive.__file__).parent.glob("cli/*.py"):
        if path.name != "_parser.py":
            lines = path.read_text("utf-8").splitlines()
            found = [x for x in lines if re.match(r" *print\(|.*[ (]sys\.stdout\.w", x)]
            assert not found, path.name


def test_what_is_printed_holds_no_codes_for_a_terminal(capsys):
    say("a\x1b[2Jb\nc", end="\r")
    show_line("a\x1b]0;x\x07b\nc")
    out, err = capsys.readouterr()
    assert (out, err) == ("a\ufffd]0;x\ufffdb\nc\n", "a\ufffd[2Jb\nc\r")


def test_errors_and_warnings_hold_no_codes_for_a_terminal(capsys, monkeypatch):
    def warn_and_fail(**options):
        warnings.warn("\x1b[2Jsoon", stacklevel=1)
        raise ValueError("\x1b]0;pwned\x07 failed")

    monkeypatch.setattr("skactive.cli._strategies.run_strategies", warn_and_fail)
    assert main(["strategies"]) == 1
    err = capsys.readouterr().err
    assert "pwned" in err
    assert err.replace("\n", "").isprintable()
