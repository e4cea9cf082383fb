"""The second implementation of what differs between systems, forced on Linux."""

import gc
import io
import os
import shutil
import socket
import threading
from collections import namedtuple

import numpy as np
import pytest

import skactive
from skactive._storage import _files, _outputs
from skactive._storage._files import make_folder, write_atomic
from skactive._utils import _system
from skactive._utils._system import (
    allow_everywhere,
    claim_port,
    find_named,
    release_pages,
    reserve,
)
from skactive.datasets import open_pool
from skactive.features import PrecomputedFeatures


@pytest.fixture
def quick(like_windows, monkeypatch):
    """Wait for no more than 80 ms in all."""
    monkeypatch.setattr(_system, "_PAUSES", (0.02, 0.02, 0.04, None))


def test_a_file_that_is_open_for_a_moment_is_replaced(like_windows, tmp_path):
    write_atomic(tmp_path / "x", b"old")
    stream = open(tmp_path / "x", "rb")  # noqa: SIM115
    timer = threading.Timer(0.1, stream.close)
    timer.start()
    write_atomic(tmp_path / "x", b"new")
    timer.join()
    assert (tmp_path / "x").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["x"]


def test_a_file_that_stays_open_is_left_and_the_error_says_what_to_do(quick, tmp_path):
    write_atomic(tmp_path / "x", b"old")
    match = r"Close it in other programs, and try again: '.*x'"
    with open(tmp_path / "x", "rb"), pytest.raises(PermissionError, match=match):
        write_atomic(tmp_path / "x", b"new")
    assert (tmp_path / "x").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x"]


def test_a_table_that_a_program_shows_is_named(quick, tmp_path):
    path = tmp_path / "t.labeled.csv"
    path.write_bytes(b"a person's file")
    match = r"t\.labeled\.csv' could not be written: .*Close it in other programs"
    with open(path, "rb"), pytest.raises(OSError, match=match):
        _outputs.write_own(path, lambda staged: staged.write_bytes(b"new"))
    assert path.read_bytes() == b"a person's file"
    assert os.listdir(tmp_path) == [path.name]
    _, kept = _outputs.write_own(path, lambda staged: staged.write_bytes(b"new"))
    assert kept.read_bytes() == b"a person's file"


def test_posix_tries_once(tmp_path, monkeypatch):
    calls = []

    def refuse(*names):
        calls.append(names)
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError, match=r"Permission denied$"):
        _system.replace(tmp_path / "a", tmp_path / "b")
    assert len(calls) == 1


def test_a_saved_folder_is_replaced(like_windows, tmp_path):
    pytest.importorskip("skops")
    for strategy in ("random", "entropy"):
        learner = skactive.ActiveLearner(PrecomputedFeatures(np.eye(2)), strategy)
        skactive.save(learner, tmp_path / "saved", overwrite=True)
    assert skactive.load(tmp_path / "saved").strategy == "entropy"
    assert os.listdir(tmp_path) == ["saved"]


def test_a_pool_without_a_cache_leaves_nothing(like_windows, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    table = tmp_path / "t.csv"
    table.write_text("text\none\ntwo\nthree\n")
    pool = open_pool(table, "text")
    assert pool[:2][1] == "two"
    assert len(list(tmp_path.glob("skactive-pool-*/*"))) == 3
    del pool
    gc.collect()
    assert os.listdir(tmp_path) == ["t.csv"]


def test_permission_bits_are_left_alone(like_windows, tmp_path):
    (tmp_path / "t.csv").touch(0o600)
    mode = _outputs.find_mode(tmp_path / "t.csv")
    assert mode == 0o666
    _outputs.make_private_folder(tmp_path / "f", mode, "own")
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o777 & ~_mask()
    with _outputs.stage(tmp_path / "x", "a test") as staged:
        assert staged.stat().st_mode & 0o777 == 0o777 & ~_mask()


def _mask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_the_space_of_a_file_is_reserved(like_windows, tmp_path, monkeypatch):
    with open(tmp_path / "x", "w+b") as file:
        reserve(file, 1000, tmp_path)
        assert os.fstat(file.fileno()).st_size == 1000
        usage = namedtuple("usage", "free")
        monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(1999))
        reserve(file, 2999, tmp_path)
        with pytest.raises(OSError, match="No space left on device"):
            reserve(file, 5000, tmp_path)
        assert os.fstat(file.fileno()).st_size == 2999


def test_pages_stay_where_they_cannot_be_released(like_windows):
    mapped = io.BytesIO(b"kept")  # has no method for it
    release_pages(mapped, 0, 4)
    assert mapped.getvalue() == b"kept"


def test_a_missing_drive_is_an_error_and_no_endless_loop(monkeypatch):
    def refuse(path):
        raise FileNotFoundError(2, "The system cannot find the path", path)

    monkeypatch.setattr(os.path, "isdir", lambda path: False)
    monkeypatch.setattr(_files, "_mkdir", refuse)
    with pytest.raises(FileNotFoundError, match="cannot find the path: '/x'"):
        make_folder("/x/y")


def test_a_port_is_shared_with_nobody(like_windows, monkeypatch):
    monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", -5, raising=False)
    options = []

    class Listener:
        def setsockopt(self, *option):
            options.append(option)

    claim_port(Listener())
    assert options == [(socket.SOL_SOCKET, -5, 1)]


def test_threads_keep_their_priority(like_windows):
    _system.lower_priority()
    assert not _system.has_low_priority()


@pytest.mark.parametrize("name", ["aux", "CON.npy", "com1", "lpt9.x", "nul.tar.gz"])
def test_names_of_devices_get_a_prefix(name):
    assert allow_everywhere(name) == f"_{name}"


@pytest.mark.parametrize("name", ["auxiliary", "com", "con-1", "estimator", "x.aux"])
def test_other_names_stay(name):
    assert allow_everywhere(name) == name


def test_a_name_is_found_in_another_case_and_form(tmp_path):
    assert find_named(tmp_path / "x") == tmp_path / "x"
    assert find_named(tmp_path / "none" / "x") == tmp_path / "none" / "x"
    decomposed, composed = "Cafe\u0301.csv", "Caf\u00e9.csv"
    (tmp_path / decomposed).touch()
    for name in (composed, decomposed, composed.lower(), "CAF\u00c9.CSV"):
        assert find_named(tmp_path / name).name == decomposed
    (tmp_path / composed).touch()
    assert find_named(tmp_path / composed).name == composed
    assert find_named(tmp_path / "Cafe.csv").name == "Cafe.csv"


def test_the_emulation_notices_open_and_mapped_files(like_windows, tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.eye(2))
    mapped = np.load(path, mmap_mode="r")
    for change in (path.unlink, lambda: path.rename(tmp_path / "y")):
        with pytest.raises(PermissionError, match="being used"):
            change()
    with pytest.raises(PermissionError, match="being used"):
        os.rename(tmp_path, tmp_path.with_name("moved"))
    del mapped
    path.unlink()
    assert os.listdir(tmp_path) == []
