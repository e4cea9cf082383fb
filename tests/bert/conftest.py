"""What the tests of the features, of their workers and of the cache share."""

import numpy as np
import pytest

import skactive.features._encoding
from skactive._encoders._store import cache_limit
from skactive.bert import (
    BertFeatures,
    clear_cache,
    set_cache_limit,
)

from ..conftest import save_encoder
from ._helpers import PLAIN, TEXTS, get

try:
    from skorch.callbacks import Callback
except ImportError:  # no test that needs it runs without the extra `bert`
    Callback = object


@pytest.fixture
def fresh_cache():
    """Start with nothing in memory, and leave nothing there."""
    limit = cache_limit()
    clear_cache()
    yield
    clear_cache()
    set_cache_limit(limit)


@pytest.fixture
def filled(tmp_path, monkeypatch):
    """Folder with the ten TEXTS in three shards, and nothing in memory."""
    monkeypatch.setattr("skactive._encoders._store._SHARD_TEXTS", 4)
    get(TEXTS, tmp_path)
    clear_cache()
    return tmp_path


@pytest.fixture
def hub_home(tmp_path, tiny_bert):
    """Folder of a hub's cache that holds the tiny BERT as someone/tiny."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "hub" / "models--someone--tiny"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    (repository / "snapshots").mkdir()
    (repository / "snapshots" / commit).symlink_to(tiny_bert)
    return str(tmp_path)


class Recorder(Callback):
    """Writes what it sees into a list that copies of it share."""

    def __init__(self, seen):
        self.seen = seen

    def __deepcopy__(self, memo):
        return type(self)(self.seen)


class Counter:
    """Counts the texts that reach the encoder; interrupts when told to."""

    def __init__(self, encode):
        self.encode, self.n_texts, self.stop_after = encode, 0, None

    def __call__(self, module, batch, **options):
        if self.stop_after is not None and self.n_texts >= self.stop_after:
            raise KeyboardInterrupt
        features = self.encode(module, batch, **options)
        self.n_texts += len(features)
        return features

    def take(self):
        """Tell the count since the last call."""
        n_texts, self.n_texts = self.n_texts, 0
        return n_texts


@pytest.fixture
def counter(monkeypatch, set_threads):
    """Count what BertFeatures encodes, one batch after the other."""
    set_threads(1)
    counter = Counter(skactive.features._encoding.encode)
    monkeypatch.setattr(skactive.features._encoding, "encode", counter)
    return counter


@pytest.fixture(params=["memory", "folder"])
def cache(request, tmp_path):
    return "memory" if request.param == "memory" else str(tmp_path / "cache")


@pytest.fixture
def features(tiny_bert, cache):
    return BertFeatures(tiny_bert, **PLAIN, cache=cache)


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory):
    """Folder of a tiny encoder, saved once: `tiny_encoder("Albert", **config)`."""
    folders = {}

    def find(kind, **overrides):
        key = (kind, repr(sorted(overrides.items())))
        if key not in folders:
            folder = tmp_path_factory.mktemp(kind)
            folders[key] = save_encoder(folder, kind, **overrides)
        return folders[key]

    return find


@pytest.fixture
def exact(tiny_bert):
    return BertFeatures(tiny_bert, **PLAIN, cache=None)


@pytest.fixture
def parts_of_two(monkeypatch):
    """Make several parts of few texts; workers encode a part as it comes."""
    monkeypatch.setattr("skactive._encoders._tokens._PART_TEXTS", 2)


@pytest.fixture
def here(monkeypatch):
    """Let nothing be encoded in this process."""
    with monkeypatch.context() as patch:
        patch.setattr("skactive._encoders._pretrained.Checkpoint.module", refuse)
        yield patch


def refuse(*args, **kwargs):
    raise AssertionError("in this process")


@pytest.fixture
def set_threads():
    """Set the number of threads of torch; it is put back after the test."""
    import torch

    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def same_for_all_threads(set_threads, fresh_cache):
    """Check that a function gives the same array with 1 to 8 threads of torch."""

    def check(function):
        results = []
        for n_threads in (1, 2, 3, 4, 8):
            set_threads(n_threads)
            clear_cache()
            results.append(function())
            np.testing.assert_array_equal(results[-1], results[0])

    return check
