"""Seeds: one for each round and purpose, and no global generator."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from skactive._utils._repeatable import base_seed, fork_torch, round_rng, round_seed


def test_streams_differ_by_seed_round_and_purpose():
    keys = [(s, r, p) for s in (0, 1) for r in (0, 1) for p in ("query", "cold_start")]
    assert len({round_rng(*key).random() for key in keys}) == len(keys)
    assert len({round_seed(*key) for key in keys}) == len(keys)
    assert round_rng(*keys[0]).random() == round_rng(*keys[0]).random()


def test_a_stream_is_the_same_on_every_machine():
    assert round_seed(0, 1, "query") == 1435374298


def test_base_seed():
    assert base_seed(5) == 5
    assert base_seed(np.int64(5)) == 5
    state = np.random.RandomState(0)
    assert base_seed(state) != base_seed(state)
    assert base_seed(None) != base_seed(None)


def test_none_does_not_read_the_global_generator():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    base_seed(None)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


@pytest.mark.long
def test_fork_torch_puts_the_generator_back():
    torch = pytest.importorskip("torch")
    before = torch.random.get_rng_state()
    draws = []
    for _ in range(2):
        with fork_torch(3):
            draws.append(torch.rand(2))
    assert torch.equal(*draws)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_threads_that_fork_torch_do_not_mix_their_numbers():
    torch = pytest.importorskip("torch")
    before = torch.random.get_rng_state()
    start = Barrier(4)

    def draw(seed):
        start.wait()
        with fork_torch(seed):
            return torch.stack([torch.rand(50) for _ in range(50)])

    with ThreadPoolExecutor(4) as threads:
        draws = list(threads.map(draw, [3, 4, 3, 4]))
    assert torch.equal(draws[0], draws[2])
    assert torch.equal(draws[1], draws[3])
    assert not torch.equal(draws[0], draws[1])
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("random_state", [-1, 2**32, True, 1.5, "0", [0], np.random])
def test_a_wrong_random_state_is_named(random_state):
    with pytest.raises(ValueError, match="'random_state' must be an int from 0 to"):
        base_seed(random_state)
