"""Density against double loops over all pairs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skactive.strategies import Density

from ._helpers import make_pool, make_view


def cosine(a, b):
    lengths = math.sqrt(sum(s * s for s in a)) * math.sqrt(sum(t * t for t in b))
    inner = sum(s * t for s, t in zip(a, b, strict=True))
    return inner / lengths if lengths > 0 else 0.0


UNCERTAINTIES = {
    "entropy": lambda row: -sum(p * math.log(p) for p in row if p > 0),
    "least_confidence": lambda row: 1 - max(row),
    "margin": lambda row: 1 - (sorted(row)[-1] - sorted(row)[-2]),
}


@pytest.mark.parametrize(
    ("beta", "similarity"), [(0.0, "cosine"), (1.0, "shifted"), (2.5, "cosine")]
)
@pytest.mark.parametrize("measure", UNCERTAINTIES)
@pytest.mark.parametrize("k", [2, 7])
def test_density_by_the_oracle_of_all_pairs(k, measure, beta, similarity):
    proba, features = make_pool(25, k)
    features[3] = 0  # no direction, so similar to nothing
    expected = []
    for row, x in zip(proba.tolist(), features.tolist(), strict=True):
        mean = sum(cosine(x, other) for other in features.tolist()) / 25
        mean = (1 + mean) / 2 if similarity == "shifted" else max(mean, 0.0)
        expected.append(UNCERTAINTIES[measure](row) * mean**beta)
    strategy = Density(measure, beta=beta, similarity=similarity)
    scores = strategy.score(make_view(strategy, proba, features))
    assert_allclose(scores, expected, rtol=1e-12, atol=1e-15)
    assert np.ptp(scores) > 0.01


@pytest.mark.parametrize("n_neighbors", [1, 5, 24, 1000])
def test_density_of_neighbors_by_the_oracle_of_all_pairs(n_neighbors, monkeypatch):
    proba, features = make_pool(25)
    features[7] = features[8]  # a copy is a neighbor, the candidate itself is none
    expected = []
    for i, x in enumerate(features.tolist()):
        others = [cosine(x, y) for j, y in enumerate(features.tolist()) if j != i]
        best = sorted(others)[-n_neighbors:]
        mean = max(sum(best) / len(best), 0.0)
        expected.append(UNCERTAINTIES["entropy"](proba[i].tolist()) * mean)
    strategy = Density(n_neighbors=n_neighbors)
    for blocks in (None, lambda n, size: [slice(0, 7), slice(7, 9), slice(9, n)]):
        if blocks:
            monkeypatch.setattr("skactive.strategies._uncertainty.chunks", blocks)
        scores = strategy.score(make_view(strategy, proba, features))
        assert_allclose(scores, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("n_neighbors", [None, 4])
def test_density_of_sparse_float32_and_chunked_rows_is_the_same(
    n_neighbors, monkeypatch
):
    proba, features = make_pool(60)
    features[np.abs(features) < 0.4] = 0
    features[5] = 0
    strategy = Density(n_neighbors=n_neighbors)
    plain = strategy.score(make_view(strategy, proba, features))

    def by(convert):
        return strategy.score(make_view(strategy, proba, features, convert=convert))

    assert_allclose(by(sparse.csr_array), plain, rtol=1e-12)
    assert_allclose(by(lambda X: X.astype(np.float32)), plain, rtol=1e-4, atol=1e-6)
    monkeypatch.setattr("skactive.strategies._uncertainty.chunk_size", lambda *_: 7)
    assert_allclose(by(np.asarray), plain, rtol=1e-12)
    assert_allclose(by(sparse.csr_array), plain, rtol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([2, 3, 7]), st.sampled_from([None, 1, 5]))
def test_density_follows_the_items(seed, k, n_neighbors):
    rng = np.random.default_rng(seed)
    proba, features = make_pool(15, k, seed=seed)
    proba[:3] = np.eye(k)[rng.integers(k, size=3)]
    features[rng.integers(15)] = 0
    rows = np.r_[np.arange(15), np.arange(4)]
    proba, features = proba[rows], features[rows]
    strategy = Density(n_neighbors=n_neighbors)
    scores = strategy.score(make_view(strategy, proba, features))
    assert_allclose(scores[15:], scores[:4], rtol=1e-9, atol=1e-12)
    assert_array_equal(scores[:3], 0)
    order = rng.permutation(19)
    again = strategy.score(make_view(strategy, proba[order], features[order]))
    assert_allclose(again, scores[order], rtol=1e-9, atol=1e-12)


def test_one_candidate_has_no_neighbors():
    proba, features = make_pool(1)
    strategy = Density(n_neighbors=3)
    assert_array_equal(strategy.score(make_view(strategy, proba, features)), 0)


def test_without_a_power_density_is_uncertainty():
    proba, features = make_pool(20)
    picks = [
        s.select(make_view(s, proba, features), 5)
        for s in (Density(beta=0), Density("entropy", beta=0, n_neighbors=2))
    ]
    expected = np.argsort([-UNCERTAINTIES["entropy"](row) for row in proba.tolist()])
    assert_array_equal(picks[0], expected[:5])
    assert_array_equal(picks[1], expected[:5])
