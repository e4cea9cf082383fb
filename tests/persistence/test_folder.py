"""The folder that is written: whole or not at all, without pickle, nobody else's."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import skactive
from skactive import load, save
from skactive.persistence import _folder as folder_module

from ._helpers import _by_first, _learner


def test_an_existing_folder_is_refused(saved):
    with pytest.raises(FileExistsError, match=r"which exists\. .* overwrite=True"):
        save(_learner(), saved)
    load(saved)


def test_an_existing_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError, match="which is a file"):
        save(_learner(), tmp_path / "file", overwrite=True)


def test_overwriting_replaces_all_of_it(saved):
    save(_learner(strategy="entropy"), saved, overwrite=True)
    loaded = load(saved)
    assert loaded.strategy == "entropy"
    assert not hasattr(loaded, "estimator_")
    assert os.listdir(saved.parent) == ["saved"]


def test_all_of_it_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    synced, missing = set(), []
    fsync, rename = os.fsync, os.replace

    def spy_fsync(handle):
        synced.add(os.fstat(handle).st_ino)
        fsync(handle)

    def spy_rename(source, target):
        whole = [Path(source), *Path(source).rglob("*")]
        missing.append([path for path in whole if path.stat().st_ino not in synced])
        rename(source, target)

    monkeypatch.setattr(os, "fsync", spy_fsync)
    monkeypatch.setattr("skactive._storage._files._fsync", spy_fsync)
    monkeypatch.setattr(os, "replace", spy_rename)
    save(_learner(), tmp_path / "saved")
    assert missing == [[]]
    assert tmp_path.stat().st_ino in synced


def test_overwriting_leaves_other_folders_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"holds other files\. It was left"):
        save(_learner(), tmp_path, overwrite=True)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_overwriting_leaves_other_files_alone(saved):
    (saved / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"also holds 'notes.txt'"):
        save(_learner(), saved, overwrite=True)


def test_overwriting_repairs_a_damaged_folder(saved):
    (saved / "object.json").write_text("{")
    save(_learner(), saved, overwrite=True)
    assert repr(load(saved)) == repr(_learner())


def test_a_failed_save_leaves_the_earlier_one(saved):
    with pytest.raises(TypeError, match="'strategy'"):
        save(_learner(strategy=_by_first), saved, overwrite=True)
    assert load(saved).n_rounds_ == 0
    assert os.listdir(saved.parent) == ["saved"]


def test_a_failed_replacement_puts_the_earlier_one_back(saved, monkeypatch):
    rename, calls = os.replace, []

    def fail_once(*args):
        calls.append(args)
        if len(calls) == 2:
            raise OSError("disk gone")
        rename(*args)

    monkeypatch.setattr(os, "replace", fail_once)
    with pytest.raises(OSError, match="disk gone"):
        save(_learner(), saved, overwrite=True)
    assert load(saved).n_rounds_ == 0


# One process imports the library; each save is killed in a fork of it.
KILLS = """
import os, sys
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
import skactive
from skactive.persistence import _folder as folder

rename, renames = os.replace, []

def rename_once(*args):
    renames.append(args)
    if len(renames) == 2:
        os._exit(9)
    rename(*args)

def run_killed(step, save):
    pid = os.fork()
    if pid == 0:
        if step == "rename":
            os.replace = rename_once
        else:
            setattr(folder, step, lambda *args: os._exit(9))
        save()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9

for step in ("_seal", "rename", "sync_folder"):
    path = os.path.join(sys.argv[1], step, "saved")
    skactive.save(make_pipeline("passthrough"), path)
    two = make_pipeline("passthrough", "passthrough")
    run_killed(step, lambda: skactive.save(two, path, overwrite=True))
path = os.path.join(sys.argv[1], "new", "saved")
run_killed("_seal", lambda: skactive.save(make_pipeline("passthrough"), path))
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Folders in which a save was killed, by the step before which it was."""
    if not hasattr(os, "fork"):
        pytest.skip("forks")
    folder = tmp_path_factory.mktemp("killed")
    subprocess.run([sys.executable, "-c", KILLS, str(folder)], check=True)
    return folder


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("step", ["_seal", "rename", "sync_folder"])
def test_a_killed_save_leaves_the_earlier_one(killed, step):
    assert len(load(killed / step / "saved").steps) == 1


def test_parent_folders_are_made_and_the_path_is_returned(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = save(_learner(), Path("a") / "b")
    assert folder == os.path.realpath(tmp_path / "a" / "b")


def test_the_folder_has_the_permissions_of_any_new_folder(saved):
    (saved.parent / "plain").mkdir()
    assert saved.stat().st_mode == (saved.parent / "plain").stat().st_mode


def test_there_is_no_pickle_in_the_folder(saved):
    suffixes = {path.suffix for path in saved.rglob("*") if path.is_file()}
    assert suffixes == {".json", ".md", ".npy", ".skops"}
    for path in saved.rglob("*.npy"):
        np.load(path, allow_pickle=False)


def test_the_manifest_lists_files_and_versions(saved):
    manifest = json.loads((saved / "manifest.json").read_text())
    files = {
        path.relative_to(saved).as_posix()
        for path in saved.rglob("*")
        if path.is_file()
    }
    assert set(manifest["files"]) == files - {"manifest.json", "README.md"}
    assert manifest["versions"]["skactive"] == skactive.__version__
    assert {"python", "scikit-learn", "torch", "transformers", "numpy"} <= set(
        manifest["versions"]
    )


class _Interrupt:
    """Trace function that interrupts at one line of what writes a folder."""

    def __init__(self, at):
        self.n_lines, self.at = 0, at

    def __call__(self, frame, event, arg):
        names = (folder_module.__file__, shutil.__file__)
        if frame.f_code.co_filename not in names:
            return None
        if event == "line":
            self.n_lines += 1
            if self.n_lines == self.at:
                raise KeyboardInterrupt
        return self


def _save_interrupted(folder, at):
    """Overwrite a folder, interrupted at a line; whether it came to that."""
    tracer, before = _Interrupt(at), sys.gettrace()
    sys.settrace(tracer)
    try:
        save(make_pipeline("passthrough", "passthrough"), folder, overwrite=True)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return tracer.n_lines >= at


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("step", [3])
def test_an_interrupted_save_leaves_nothing_after_the_next(tmp_path, monkeypatch, step):
    monkeypatch.setattr(folder_module, "sync_folder", lambda path: None)
    at = n_left = 0
    while True:
        folder = tmp_path / f"{at}" / "saved"
        save(make_pipeline("passthrough"), folder)
        at += step
        if not _save_interrupted(folder, at):
            break
        assert len(load(folder).steps) in (1, 2)
        n_left += os.listdir(folder.parent) != ["saved"]
        save(make_pipeline("passthrough"), folder, overwrite=True)
        assert os.listdir(folder.parent) == ["saved"]
    assert at > 150
    assert n_left < 5  # the lines between a step and what undoes it


def test_an_interruption_of_the_removal_stays_an_interruption(tmp_path, monkeypatch):
    remove, calls = shutil.rmtree, []

    def rmtree(*args, **options):
        calls.append(args)
        if len(calls) > 1:
            return remove(*args, **options)
        try:
            raise KeyboardInterrupt
        finally:
            raise OSError(9, "Bad file descriptor")  # as shutil of Python 3.11 does

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    with pytest.raises(KeyboardInterrupt):
        save(make_pipeline("passthrough"), tmp_path / "saved")
    assert os.listdir(tmp_path) == ["saved"]
    assert load(tmp_path / "saved").steps


@pytest.mark.long
def test_a_killed_save_is_swept_by_the_next(killed):
    assert len(os.listdir(killed / "new")) == 1
    save(make_pipeline("passthrough"), killed / "new" / "saved")
    assert os.listdir(killed / "new") == ["saved"]


def test_a_save_under_way_is_not_swept(tmp_path):
    with folder_module.new_folder(tmp_path / "saved", False) as (_, new):
        (new / "file").write_text("mine")
        save(make_pipeline("passthrough"), tmp_path / "saved")
        assert (new / "file").read_text() == "mine"
        shutil.rmtree(tmp_path / "saved")


def test_a_folder_moved_aside_by_a_killed_save_comes_back(saved):
    place = saved.parent / ".saved.01234567.tmp"
    place.mkdir()
    (place / "lock").touch()
    saved.rename(place / "old")
    with pytest.raises(FileExistsError, match="which exists"):
        save(_learner(), saved)
    assert load(saved).n_rounds_ == 0
    assert os.listdir(saved.parent) == ["saved"]


def test_a_full_disk_is_no_fault_of_the_estimator(tmp_path, monkeypatch):
    def fail(*args, **params):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("skops.io.dump", fail)
    with pytest.raises(OSError, match=r"No space left on device: '.*saved'"):
        save(LogisticRegression(), tmp_path / "saved")
    assert not list(tmp_path.iterdir())
