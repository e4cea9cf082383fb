"""Plugins that are built as wheels, installed by pip and used by new processes.

Each of the three distributions next to this file is installed into its own folder.
`test_plugins.py` is the quick version.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from filelock import FileLock

pytestmark = pytest.mark.slow

PLUGINS = ["example", "broken", "colliding"]
HERE = Path(__file__).parents[1]
SOURCES = {plugin: HERE / f"plugin_{plugin}" for plugin in PLUGINS}


# No bytecode is left behind in the sources.
ENVIRONMENT = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}


def succeed(*command):
    """Run Python on a command, which must succeed."""
    result = subprocess.run(
        [sys.executable, *map(str, command)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def list_files(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """Folder of built wheels and of sites, one plugin each, shared by all workers."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder = folder / "installed_plugins"
    with FileLock(f"{folder}.lock"):
        if not (folder / "done").exists():
            folder.mkdir()
            for plugin, source in SOURCES.items():
                _build_and_install(plugin, source, folder)
            (folder / "done").touch()
    return folder


def _build_and_install(plugin, source, folder):
    """Build a plugin from a copy; the repository itself stays as it is."""
    before = list_files(source)
    copy = shutil.copytree(source, folder / source.name)
    dist = folder / f"dist_{plugin}"
    succeed("-m", "build", "--wheel", "--no-isolation", "--outdir", dist, copy)
    assert list_files(source) == before
    (wheel,) = dist.iterdir()
    options = ["--no-deps", "--no-index", "--disable-pip-version-check"]
    succeed("-m", "pip", "install", *options, "--target", folder / plugin, wheel)


PREAMBLE = """
import json, sys
import numpy as np
from sklearn.linear_model import LogisticRegression
from skactive import ActiveLearner, get_strategy, get_strategy_names, registry
from skactive.testing import check_strategy

X = np.random.default_rng(0).normal(size=(60, 3))
y = np.where(X[:, 0] > 0, "yes", "no")

def say(value):
    print(json.dumps(value))

def error(call):
    try:
        call()
    except Exception as exc:
        cause = type(exc.__cause__).__name__ if exc.__cause__ else None
        return [type(exc).__name__, str(exc), cause]
"""


# One process for each set of plugins imports the library and runs each code in a fork.
SERVE = """
import contextlib, os
for line in sys.stdin:
    read, write = os.pipe()
    if os.fork() == 0:
        os.close(read)
        with os.fdopen(write, "w") as stream, contextlib.redirect_stdout(stream):
            exec(json.loads(line))
        sys.exit()  # ends the worker processes of joblib
    os.close(write)
    with os.fdopen(read) as stream:
        print(json.dumps(stream.read()), flush=True)
    os.wait()
"""


@pytest.fixture(scope="session")
def serve(installed):
    """Return the function that runs code where some plugins are installed."""
    servers = {}

    def serve(code, plugins):
        if plugins not in servers:
            path = [str(installed / plugin) for plugin in plugins]
            path += filter(None, [os.environ.get("PYTHONPATH")])
            servers[plugins] = subprocess.Popen(
                [sys.executable, "-c", PREAMBLE + SERVE],
                env={**ENVIRONMENT, "PYTHONPATH": os.pathsep.join(path)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        server = servers[plugins]
        server.stdin.write(json.dumps(code) + "\n")
        server.stdin.flush()
        return json.loads(server.stdout.readline())

    yield serve
    for server in servers.values():
        server.stdin.close()
        assert server.wait(60) == 0


@pytest.fixture(scope="session")
def python(serve):
    """Run code where some plugins are installed, and read what it prints as JSON."""
    return lambda code, *plugins: json.loads(serve(code, plugins))


@pytest.fixture(scope="session")
def command(serve):
    """Run `skactive strategies`; give its status and its lines by full name."""

    def command(*options, plugins):
        code = f"""
from skactive.cli import main
print(main(["strategies", *{options}]))
"""
        *lines, status = serve(code, tuple(plugins)).splitlines()
        # The columns are at least two blanks apart; the last holds text.
        rows = [
            [cell.strip() for cell in line.split("  ") if cell] for line in lines[1:]
        ]
        return int(status), {f"{row[4]}:{row[0]}": row for row in rows}

    return command


def test_a_wheel_holds_the_module_and_the_entry_points(installed):
    wheel = installed / "dist_example" / "skactive_example-1.2.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    assert "skactive_example/__init__.py" in names
    assert "skactive_example-1.2.0.dist-info/entry_points.txt" in names


# The example


def test_it_is_found_with_its_distribution_and_version(python):
    code = "say([[e.name, e.dist, e.version, e.builtin] for e in registry.available()])"
    entries = python(code, "example")
    assert ["gini", "skactive-example", "1.2.0", False] in entries
    assert ["ratio", "skactive-example", "1.2.0", False] in entries


def test_it_is_not_there_unless_installed(python):
    assert not {"gini", "ratio"} & set(python("say(get_strategy_names())"))


def test_it_is_not_imported_before_it_is_named(python):
    code = """
registry.available()
get_strategy("margin")
before = "skactive_example" in sys.modules
get_strategy("gini")
say([before, "skactive_example" in sys.modules])
"""
    assert python(code, "example") == [False, True]


def test_a_parameter_reaches_its_class(python):
    code = (
        'say([repr(get_strategy("gini", power=3)), repr(get_strategy("ratio"))[:16]])'
    )
    assert python(code, "example") == ["Gini(power=3)", "FunctionStrategy"]


@pytest.mark.parametrize("name", ["gini", "ratio", "skactive-example:gini"])
def test_it_serves_a_learner(python, name):
    # For two classes, all ask where the probability is closest to one half.
    code = f"""
learner = ActiveLearner(LogisticRegression(), {name!r}, batch_size=4, random_state=0)
learner.fit(X[:10], y[:10])
pool = np.arange(10, 60)
rounds = []
for _ in range(3):
    ask = learner.query(X, candidates=pool)
    doubt = np.abs(learner.predict_proba(X[pool])[:, 0] - 0.5)
    rounds.append([sorted(ask.tolist()), sorted(pool[np.argsort(doubt)[:4]].tolist())])
    pool = np.setdiff1d(pool, ask)
    learner.teach(X[ask], y[ask])
say(rounds)
"""
    for asked, expected in python(code, "example"):
        assert asked == expected


def test_it_is_found_by_worker_processes(python):
    code = """
from joblib import Parallel, delayed
learner = ActiveLearner(LogisticRegression(), "gini", random_state=0)

def run():
    return learner.fit(X[:10], y[:10]).query(X, 3).tolist()

say([run(), *Parallel(n_jobs=2)(delayed(run)() for _ in range(2))])
"""
    here, *there = python(code, "example")
    assert there == [here, here]


@pytest.mark.parametrize("name", ["gini", "ratio"])
def test_it_passes_the_conformance_checks(python, name):
    names = python(f"say(check_strategy({name!r}))", "example")
    assert len(names) > 20
    assert "check_pickle" in names


@pytest.mark.parametrize(
    "options",
    [[], ["gini", "skactive-example:ratio", "margin", "--check"]],
    ids=["list", "check"],
)
def test_the_command_lists_it(command, options):
    status, rows = command(*options, plugins=["example"])
    assert status == 0
    said = (
        "Ask where two guesses drawn from the predicted distribution differ most often."
    )
    state = "checks passed" if options else "ok"
    for row in rows.values():
        row[-1] = re.sub(r"^\d+ checks", "checks", row[-1])
    origin = ["skactive-example", "1.2.0", state]
    gini = ["gini", said, "single-label", "proba", *origin]
    said = "Ask where the second-best class comes closest to the best."
    ratio = ["ratio", said, "all", "not declared", *origin]
    assert rows["skactive-example:gini"] == gini
    assert rows["skactive-example:ratio"] == ratio
    assert rows["skactive:margin"][-1] == state
    assert not options or len(rows) == 3


# The broken one


def test_a_broken_plugin_fails_when_it_is_named(python):
    code = 'say(error(lambda: get_strategy("cracked")))'
    kind, message, cause = python(code, "broken", "example")
    assert kind == "ImportError"
    assert "'cracked' of skactive-broken 0.0.3 cannot be loaded" in message
    assert "No module named 'skactive_module_that_nobody_has'" in message
    assert cause == "ModuleNotFoundError"


def test_a_broken_plugin_breaks_nothing_else(python):
    code = """
assert "cracked" in get_strategy_names()
learners = [
    ActiveLearner(LogisticRegression(), name).fit(X[:10], y[:10]).query(X, 3)
    for name in ("margin", "gini")
]
broken = ActiveLearner(LogisticRegression(), "cracked")
say(error(lambda: broken.fit(X[:10], y[:10])))
"""
    kind, message, _ = python(code, "broken", "example")
    assert kind == "ImportError"
    assert "Repair or uninstall skactive-broken; other strategies are not" in message


@pytest.mark.parametrize(
    ("options", "expected"), [([], 0), (["cracked", "gini", "--check"], 1)]
)
def test_the_command_says_what_is_broken(command, options, expected):
    status, rows = command(*options, plugins=["broken", "example"])
    assert status == expected
    name, _, _, needs, _, version, state = rows["skactive-broken:cracked"]
    assert (name, needs, version) == ("cracked", "-", "0.0.3")
    assert state.startswith("broken: the strategy 'cracked' of skactive-broken 0.0.3")
    states = {row[-1] for key, row in rows.items() if "broken" not in key}
    assert len(states) == 1
    assert re.fullmatch(r"\d+ checks passed" if options else "ok", states.pop())


# The colliding one


def test_a_collision_of_two_plugins_names_both_full_names(python):
    code = 'say(error(lambda: get_strategy("gini")))'
    kind, message, _ = python(code, "example", "colliding")
    assert kind == "ValueError"
    first, second = "skactive-example 1.2.0", "skactive-rival 0.4.1"
    assert f"the strategy name 'gini' is offered by {first}" in message
    assert f" and {second} (" in message
    assert message.endswith(
        "Say which: 'skactive-example:gini' or 'skactive-rival:gini'."
    )


def test_the_full_name_chooses_the_distribution(python):
    code = """
say([
    type(get_strategy("skactive-example:gini")).__module__,
    get_strategy("skactive-rival:gini").function.__module__,
    type(get_strategy("skactive:margin")).__module__,
    type(get_strategy("skactive-rival:margin")).__module__,
])
"""
    assert python(code, "example", "colliding") == [
        "skactive_example",
        "skactive_rival",
        "skactive.strategies._uncertainty",
        "skactive_rival",
    ]


def test_a_learner_takes_the_full_name(python):
    code = """
learner = ActiveLearner(LogisticRegression(), "skactive-rival:margin")
say(type(learner.fit(X[:10], y[:10]).strategy_).__module__)
"""
    assert python(code, "colliding") == "skactive_rival"


def test_a_learner_asks_as_without_the_plugin(python):
    code = """
learner = ActiveLearner(LogisticRegression(), "margin", random_state=0)
picks = learner.fit(X[:10], y[:10]).query(X, 3).tolist()
say([type(learner.strategy_).__module__, picks])
"""
    alone = python(code)
    assert alone[0] == "skactive.strategies._uncertainty"
    assert python(code, "colliding") == alone


def test_without_a_collision_the_short_name_is_enough(python):
    code = 'say([get_strategy("gini").function.__module__, get_strategy_names()])'
    module, names = python(code, "colliding")
    assert module == "skactive_rival"
    assert {"gini", "margin", "skactive-rival:margin", "entropy"} <= set(names)
    assert "skactive:margin" not in names


def test_a_saved_learner_loads_with_a_plugin_of_the_same_name(python, tmp_path):
    folder = str(tmp_path / "saved")
    code = f"""
from skactive import save
save(ActiveLearner(LogisticRegression(), "margin").fit(X[:10], y[:10]), {folder!r})
say(None)
"""
    python(code)
    code = f"""
from skactive import load
learner = load({folder!r})
say([learner.strategy, type(learner.strategy_).__module__])
"""
    expected = ["margin", "skactive.strategies._uncertainty"]
    assert python(code, "colliding") == expected


def test_a_saved_name_that_became_ambiguous_is_the_recorded_distributions(
    python, tmp_path
):
    folder = str(tmp_path / "saved")
    saving = f"""
from skactive import save
save(ActiveLearner(LogisticRegression(), "gini").fit(X[:10], y[:10]), {folder!r})
"""
    code = f"from skactive import load\nsay(load({folder!r}).strategy)"
    assert python(saving + code, "example") == "gini"
    assert python(code, "example", "colliding") == "skactive-example:gini"


def test_the_command_says_what_collides(command):
    status, rows = command(plugins=["example", "colliding"])
    assert status == 0
    state = "collides with skactive-rival: use skactive-example:gini"
    assert rows["skactive-example:gini"][-1] == state
    assert rows["skactive:margin"][-1] == "ok"
    assert rows["skactive-rival:margin"][-1] == "ok, as skactive-rival:margin"
    assert rows["skactive-example:ratio"][-1] == "ok"
