"""Perceptrons side by side against torch's gradients and its Adam."""

from itertools import islice

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skactive.strategies._committee import (
    _draw_batches,
    perceptron_proba,
    start_perceptrons,
    train_perceptrons,
)


def make(m=20, d=6, t=3, k=4, seed=0):
    rng = np.random.default_rng(seed)
    X, codes = rng.normal(size=(m, d)), rng.integers(k, size=m)
    weights, biases = start_perceptrons(d, t, k, rng)
    return X, codes, weights, biases + rng.normal(size=(t, k))


def losses_of_torch(X, codes, weights, biases, sample_weight):
    """Sum over the perceptrons of the mean log loss of each."""
    total = 0
    for j in range(biases.shape[0]):
        logits = torch.as_tensor(X) @ weights[:, j] + biases[j]
        each = torch.nn.functional.cross_entropy(
            logits, torch.as_tensor(codes), reduction="none"
        )
        total = total + (each * torch.as_tensor(sample_weight)).mean()
    return total


@pytest.mark.parametrize("k", [2, 4])
def test_probabilities_are_those_of_each_perceptron_alone(k):
    X, _, weights, biases = make(k=k)
    proba = perceptron_proba(X, weights, biases)
    for j in range(3):
        logits = torch.as_tensor(X @ weights[:, j] + biases[j])
        assert_allclose(proba[:, j], torch.softmax(logits, dim=1), rtol=1e-12)


def test_training_is_adam_of_torch():
    X, codes, weights, biases = make()
    weight = np.random.default_rng(1).random(len(X)) * 2
    size = np.sqrt(np.mean(X**2))
    leaves = [torch.tensor(v, requires_grad=True) for v in (weights, biases)]
    adam = torch.optim.Adam(leaves, lr=0.02)
    for _ in range(30):
        adam.zero_grad()
        losses_of_torch(X / size, codes, *leaves, weight).backward()
        adam.step()
    trained = train_perceptrons(
        X,
        codes,
        weights,
        biases,
        np.random.default_rng(0),
        sample_weight=weight,
        n_steps=30,
        batch_size=100,
        lr=0.02,
    )
    assert_allclose(trained[0] * size, leaves[0].detach(), rtol=1e-6, atol=1e-9)
    assert_allclose(trained[1], leaves[1].detach(), rtol=1e-6, atol=1e-9)


def test_what_is_dropped_does_not_move():
    X, codes, weights, biases = make(d=40)
    trained = train_perceptrons(
        X, codes, weights, biases, np.random.default_rng(0), dropout=0.5, n_steps=1
    )
    size = np.sqrt(np.mean(X**2))
    moved = ~np.isclose(trained[0] * size, weights, rtol=1e-12)
    # A feature is dropped by one perceptron for all its classes, or not at all.
    assert_array_equal(moved.any(axis=2), moved.all(axis=2))
    assert 0.3 < moved.mean() < 0.7
    assert not np.array_equal(moved[:, 0], moved[:, 1])


def test_rows_keep_their_labels_in_every_batch():
    # The published program gives 10 against 90 rows each other's labels.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 20))
    X[:10] += 3
    codes = np.array([0] * 10 + [1] * 90)
    start = start_perceptrons(20, 5, 2, rng)
    trained = train_perceptrons(X, codes, *start, rng, batch_size=7)
    votes = perceptron_proba(X, *trained).argmax(axis=2)
    assert_array_equal(votes, np.repeat(codes[:, None], 5, axis=1))


def test_every_row_is_seen_once_in_a_pass():
    batches = _draw_batches(23, 10, np.random.default_rng(0))
    seen = list(islice(batches, 6))
    assert [len(rows) for rows in seen] == [10, 10, 3] * 2
    first, second = np.concatenate(seen[:3]), np.concatenate(seen[3:])
    assert_array_equal(np.sort(first), np.arange(23))
    assert_array_equal(np.sort(second), np.arange(23))
    assert not np.array_equal(first, second)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-3, 1, 1e4])
def test_the_unit_of_the_features_does_not_matter(unit):
    X, codes, weights, biases = make()
    trained = [
        train_perceptrons(
            X * u, codes, weights, biases, np.random.default_rng(0), dropout=0.3
        )
        for u in (1, unit)
    ]
    plain, scaled = (
        perceptron_proba(X * u, *pair)
        for u, pair in zip((1, unit), trained, strict=True)
    )
    assert_allclose(scaled, plain, rtol=1e-6)


@pytest.mark.long
def test_sparse_features_train_as_dense_ones():
    X, codes, weights, biases = make()
    X[np.abs(X) < 0.7] = 0
    dense, from_sparse = (
        train_perceptrons(Z, codes, weights, biases, np.random.default_rng(0))
        for Z in (X, sparse.csr_array(X))
    )
    assert_allclose(from_sparse[0], dense[0], rtol=1e-7, atol=1e-10)
    proba = perceptron_proba(sparse.csr_array(X), *dense)
    assert_allclose(proba, perceptron_proba(X, *dense), rtol=1e-12)


def test_features_of_zeros_only_are_no_trouble():
    _, codes, weights, biases = make()
    X = np.zeros((20, 6))
    trained = train_perceptrons(X, codes, weights, biases, np.random.default_rng(0))
    assert np.isfinite(perceptron_proba(X, *trained)).all()


def test_what_is_passed_is_left_as_it_is():
    X, codes, weights, biases = make()
    before = [v.copy() for v in (X, codes, weights, biases)]
    train_perceptrons(X, codes, weights, biases, np.random.default_rng(0), dropout=0.5)
    for value, kept in zip((X, codes, weights, biases), before, strict=True):
        assert_array_equal(value, kept)


def test_float32_stays_float32():
    X, codes, weights, biases = (v.astype(np.float32) for v in make())
    trained = train_perceptrons(
        X, codes.astype(int), weights, biases, np.random.default_rng(0), dropout=0.5
    )
    assert [v.dtype for v in trained] == [np.float32] * 2
