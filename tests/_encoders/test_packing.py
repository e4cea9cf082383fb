"""Texts end to end: the same rows as the padded batch, pooled and padded alike."""

import numpy as np
import pytest
import torch

from skactive._encoders._module import pool
from skactive._encoders._tokens import Tokens, collate, pack, pool_packed, runs, unpack

LENGTHS = [1, 4, 4, 2, 7, 1]


@pytest.fixture
def tokens():
    ids = [[10 * i + k for k in range(n)] for i, n in enumerate(LENGTHS)]
    types = [[k % 2 for k in range(n)] for n in LENGTHS]
    return Tokens(ids, types, 0)


@pytest.mark.parametrize("positions", [[0, 1, 2, 3, 4, 5], [4, 0, 3], [2], [5, 5]])
def test_pack_holds_the_tokens_of_each_text_in_order(tokens, positions):
    batch = pack(tokens, positions, torch.device("cpu"))
    assert batch["input_ids"].tolist() == [i for p in positions for i in tokens.ids[p]]
    assert batch["token_type_ids"].tolist() == [
        i for p in positions for i in tokens.types[p]
    ]
    assert batch["lengths"].tolist() == [LENGTHS[p] for p in positions]
    assert {tensor.dtype for tensor in batch.values()} == {torch.int64}


def test_pack_without_token_types(tokens):
    batch = pack(tokens._replace(types=None), np.array([1, 2]), torch.device("cpu"))
    assert set(batch) == {"input_ids", "lengths"}


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [([3], [(1, 3)]), ([2, 2], [(2, 2)]), (LENGTHS, [(1, 1), (2, 4), (1, 2), (1, 7)])],
)
def test_runs_are_neighbours_of_equal_length(lengths, expected):
    assert runs(lengths)[: len(expected)] == expected
    assert [t for n, t in runs(lengths) for _ in range(n)] == lengths


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_pooling_equals_that_of_the_padded_batch(tokens, pooling, dtype):
    positions = np.arange(len(LENGTHS))
    mask = collate(tokens, positions, 0, "cpu")["attention_mask"]
    generator = torch.Generator().manual_seed(0)
    padded = torch.randn((*mask.shape, 5), generator=generator).to(dtype)
    packed = padded[mask.bool()]
    got = pool_packed(packed, torch.tensor(LENGTHS), pooling)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, pool(padded, mask, pooling))


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_pooling_passes_gradients_on(pooling):
    states = torch.randn(sum(LENGTHS), 3, dtype=torch.float64, requires_grad=True)
    pooled = pool_packed(states, torch.tensor(LENGTHS), pooling)
    (gradient,) = torch.autograd.grad(pooled.sum(), states)
    weight = gradient.sum(dim=0)  # each text's weights add up to 1
    torch.testing.assert_close(weight, torch.full((3,), len(LENGTHS) * 1.0).double())


def test_unpack_pads_with_zeros_and_says_where(tokens):
    positions = np.arange(len(LENGTHS))
    mask = collate(tokens, positions, 0, "cpu")["attention_mask"].bool()
    packed = torch.arange(1.0, sum(LENGTHS) + 1)[:, None].expand(-1, 2)
    padded, real = unpack(packed, torch.tensor(LENGTHS))
    assert torch.equal(real, mask)
    assert torch.equal(padded[real], packed)
    assert not padded[~real].any()
