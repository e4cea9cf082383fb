"""`.ci/changed` and `.ci/again`: which tests have to run, and which run once more."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import absent

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / ".ci" / "changed"
COVERED = "skactive/session/_queue.py"
OTHER = "skactive/learner.py"
DAY = 86_400
NOW = 1_800_000_000  # seconds since 1970


class Repository:
    """A small git repository with the script, whose commits have given times."""

    def __init__(self, folder):
        self.folder = folder
        (folder / ".ci").mkdir(parents=True)
        shutil.copy(SCRIPT, folder / ".ci")
        kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        kept.pop("SKACTIVE_BASE", None)
        for role in ("AUTHOR", "COMMITTER"):
            kept |= {f"GIT_{role}_NAME": "Ann", f"GIT_{role}_EMAIL": "ann@example.com"}
        nowhere = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        self.environment = {**kept, **nowhere}

    def run(self, *command, **environment):
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self, name, age):
        """Change a file, commit everything `age` days before NOW, and return its id."""
        self.write(name, f"{age} days ago")
        self.run("git", "add", "-A")
        when = f"{NOW - int(age * DAY)} +0000"
        dates = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        self.run("git", "commit", "-qm", f"changes {name}", **dates)
        return self.run("git", "rev-parse", "HEAD")

    def ask(self, **environment):
        return self.run("bash", ".ci/changed", **environment)


@pytest.fixture
def repository(tmp_path):
    """A repository whose only commit is ten days old."""
    for program in ("bash", "git"):
        if shutil.which(program) is None:
            absent(f"{program} is not installed")
    made = Repository(tmp_path / "copy")
    made.run("git", "init", "-qb", "main")
    made.write(OTHER, "")
    made.commit(COVERED, age=10)
    return made


def test_a_change_of_other_code_changes_nothing(repository):
    repository.commit(OTHER, age=0)
    assert repository.ask().startswith("unchanged since ")


def test_an_earlier_commit_of_the_same_landing_counts(repository):
    repository.commit(COVERED, age=0.4)
    repository.commit(OTHER, age=0)
    said = repository.ask()
    assert said.startswith("changed since ")
    assert said.endswith(f": {COVERED}")


def test_a_commit_that_is_a_day_older_does_not_count(repository):
    repository.commit(COVERED, age=1.5)
    repository.commit(OTHER, age=0)
    assert repository.ask().startswith("unchanged since ")


def test_a_given_base_counts_first(repository):
    base = repository.commit(COVERED, age=0.2)
    repository.commit(OTHER, age=0.1)
    assert repository.ask(SKACTIVE_BASE=base).startswith(f"unchanged since {base[:7]}")
    said = repository.ask(SKACTIVE_BASE=f"{base}~1")
    assert said.startswith("changed since ")


def test_a_branch_is_compared_with_where_it_left_main(repository):
    begun = repository.commit(COVERED, age=0.3)
    repository.run("git", "update-ref", "refs/remotes/origin/main", begun)
    repository.commit(OTHER, age=0.2)
    assert repository.ask().startswith(f"unchanged since {begun[:7]}")
    repository.commit(COVERED, age=0)
    assert repository.ask().startswith(f"changed since {begun[:7]}")


def test_what_landed_on_main_is_compared_with_the_day_before(repository):
    head = repository.commit(COVERED, age=0)
    repository.run("git", "update-ref", "refs/remotes/origin/main", head)
    assert repository.ask().startswith("changed since ")


@pytest.mark.parametrize("name", [COVERED, "skactive/session/_new.py"])
def test_what_is_not_committed_counts(repository, name):
    repository.commit(OTHER, age=0)
    repository.write(name, "now")
    assert repository.ask().endswith(f": {name}")


def test_a_deleted_file_counts(repository):
    (repository.folder / COVERED).unlink()
    repository.commit(OTHER, age=0)
    assert repository.ask().endswith(f": {COVERED}")


@pytest.mark.parametrize("base", ["0" * 40, "nowhere"])
def test_a_given_base_that_is_missing_is_named(repository, base):
    said = repository.ask(SKACTIVE_BASE=base)
    assert said.startswith(f"unknown: there is no commit {base}")


def test_a_copy_without_history_is_unknown(repository, tmp_path):
    repository.commit(OTHER, age=0)
    url = f"file://{repository.folder}"
    repository.run("git", "clone", "-q", "--depth", "1", url, str(tmp_path / "shallow"))
    repository.folder = tmp_path / "shallow"
    repository.run("git", "remote", "remove", "origin")
    assert repository.ask().startswith("unknown: ")


def test_a_folder_without_git_is_unknown(repository):
    shutil.rmtree(repository.folder / ".git")
    said = repository.ask(GIT_CEILING_DIRECTORIES=str(repository.folder.parent))
    assert said.startswith("unknown: ")


def test_the_paths_exist_and_those_of_the_workflow_are_the_same():
    (block,) = re.findall(r"^paths=\(\n(.*?)^\)", SCRIPT.read_text(), re.M | re.S)
    paths = block.split()
    assert [path for path in paths if not (ROOT / path).exists()] == []
    globs = {f"{path}/**" if (ROOT / path).is_dir() else path for path in paths}
    workflow = ROOT / ".github" / "workflows" / "label_studio.yml"
    own = f".github/workflows/{workflow.name}"
    events = re.findall(r"    paths:\n((?:      - .*\n)+)", workflow.read_text())
    assert len(events) == 2  # a push and a pull request
    for listed in events:
        assert set(re.findall(r"- (.*)", listed)) == {*globs, own}


@pytest.mark.parametrize(
    ("lines", "is_run"),
    [
        (["FAILED tests/a.py::one - Timeout"], True),
        (["FAILED tests/a.py::one"] * 3, True),
        (["FAILED tests/a.py::one"] * 4, False),
        (["FAILED tests/a.py::one", "ERROR tests/b.py"], False),
        (["ERROR: no such index"], False),
        ([], False),
    ],
)
def test_few_failed_tests_run_once_more(tmp_path, lines, is_run):
    log, stub = tmp_path / "log", tmp_path / "pytest"
    log.write_text("\n".join(["collected", *lines, ""]))
    stub.write_text('#!/bin/sh\necho "ran $*"\nexit 7\n')
    stub.chmod(0o755)
    command = ["bash", ROOT / ".ci" / "again", log, stub, "-m", "slow"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == (7 if is_run else 1)  # the second run decides
    ran = [line for line in done.stdout.splitlines() if line.startswith("ran ")]
    assert len(ran) == is_run
    assert all("--last-failed" in line and line.endswith("-m slow") for line in ran)
    assert all(line in done.stdout for line in lines)  # it is shown either way
