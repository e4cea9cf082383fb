"""DropQuery against loops over its definition, its fall-back and its bad inputs."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skactive import ActiveLearner
from skactive.strategies import DropQuery
from skactive.testing import check_strategy
from skactive.view import PoolView

RNG = np.random.default_rng(1)
X = RNG.normal(size=(80, 6))
Y = np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.7])
LABELED, POOL = X[:20], X[20:]


class Brittle(ClassifierMixin, BaseEstimator):
    """Says class 1 where the first feature is 0; its scores are the last feature."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        X = X.toarray() if sparse.issparse(X) else np.asarray(X)
        return self.classes_[(X[:, 0] == 0).astype(int)]

    def decision_function(self, X):
        X = X.toarray() if sparse.issparse(X) else np.asarray(X)
        return X[:, -1]


def make_view(strategy, model, pool=POOL, seed=0, labeled=LABELED, y=Y[:20]):
    return PoolView(
        pool,
        estimator=model.fit(labeled, y),
        X_labeled=labeled,
        y_labeled=y,
        requires=strategy.requires,
        rng=np.random.default_rng(seed),
    )


@pytest.mark.parametrize("n_draws", [1, 3, 4])
@pytest.mark.parametrize("rate", [0.3, 0.75])
def test_dropquery_oracle_of_the_candidates_that_change(n_draws, rate):
    """With as many queries as candidates that change, all of these are asked."""
    model = LogisticRegression()
    strategy = DropQuery(n_draws, rate)
    view = make_view(strategy, model, seed=5)
    numbers = np.random.default_rng(5)
    weights, intercept = model.coef_.tolist(), model.intercept_.tolist()

    def classify(row):
        scores = [
            b + sum(w * x for w, x in zip(ws, row, strict=True))
            for ws, b in zip(weights, intercept, strict=True)
        ]
        return scores.index(max(scores))

    changes = [0] * len(POOL)
    for _ in range(n_draws):
        drawn = numbers.random((len(POOL), 6), dtype=np.float32).tolist()
        for i, row in enumerate(POOL.tolist()):
            kept = [
                x / (1 - rate) if u >= rate else 0
                for x, u in zip(row, drawn[i], strict=True)
            ]
            changes[i] += classify(kept) != classify(row)
    expected = [i for i, count in enumerate(changes) if count > n_draws / 2]
    assert 0 < len(expected) < len(POOL)
    assert sorted(strategy.select(view, len(expected))) == expected


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, np.float32])
def test_dropquery_oracle_of_the_rows_nearest_the_centers(convert):
    """Clumps of candidates that change whatever is drawn, amid others that do not."""
    sizes = [9, 6, 4]
    places = np.repeat(np.array([[50.0, 0], [0, 50], [-50, -50]]), sizes, axis=0)
    clumps = np.repeat([0, 1, 2], sizes)
    changing = np.column_stack([np.ones(19), places + RNG.normal(size=(19, 2))])
    steady = np.column_stack([np.zeros(30), RNG.normal(scale=30, size=(30, 2))])
    pool = np.vstack([steady, changing])
    strategy = DropQuery(n_draws=15, rate=0.99)
    view = make_view(strategy, Brittle(), convert(pool), labeled=convert(pool[:20]))
    picks = strategy.select(view, 3)
    for clump, pick in enumerate(picks):  # the largest first
        own = changing[clumps == clump].tolist()
        center = [math.fsum(column) / len(own) for column in zip(*own, strict=True)]
        away = [math.dist(row, center) for row in own]
        assert changing[pick - 30].tolist() == own[away.index(min(away))]


@pytest.mark.parametrize("n", [3, 7, 12])
def test_the_smallest_margins_fill_up(n):
    pool = RNG.normal(size=(12, 4))
    pool[2:, 0] = 0  # these never change
    strategy = DropQuery(n_draws=15, rate=0.99)
    picks = strategy.select(make_view(strategy, Brittle(), pool, y=Y[:20] % 2), n)
    margins = np.abs(pool[:, -1])
    others = sorted(range(2, 12), key=lambda i: margins[i])[: n - 2]
    assert sorted(picks) == sorted([0, 1, *others])


def test_without_dropout_it_is_margin_sampling():
    strategy = DropQuery(rate=0)
    view = make_view(strategy, LogisticRegression())
    expected = np.argsort(view.margins)[:8]
    assert sorted(strategy.select(view, 8)) == sorted(expected)


def test_copies_that_tie_are_filled_at_random():
    pool = np.zeros((20, 3))
    batches = set()
    for seed in range(6):
        strategy = DropQuery()
        view = make_view(strategy, Brittle(), pool, seed, y=Y[:20] % 2)
        picks = strategy.select(view, 4)
        assert len(set(picks)) == 4
        batches.add(tuple(sorted(picks)))
    assert len(batches) == 6


def test_a_seed_repeats_and_another_one_differs():
    strategy = DropQuery()
    picks = [
        strategy.select(make_view(strategy, LogisticRegression(), seed=s), 6).tolist()
        for s in (0, 0, 1)
    ]
    assert picks[0] == picks[1] != picks[2]


def test_the_final_estimator_gets_the_features_of_the_front_steps():
    scaled = []

    class Noting(LogisticRegression):
        def predict(self, X):
            scaled.append(X)
            return super().predict(X)

    model = make_pipeline(StandardScaler(), Noting())
    learner = ActiveLearner(model, DropQuery(rate=0.5), random_state=0)
    learner.fit(LABELED, Y[:20])
    assert len(set(learner.query(POOL, 5))) == 5
    expected = learner.estimator_[0].transform(POOL)
    assert_array_equal(scaled[0], expected)
    for dropped in scaled[1:]:
        np.testing.assert_allclose(dropped[dropped != 0], 2 * expected[dropped != 0])
        assert 0.3 < (dropped == 0).mean() < 0.7


def test_data_frames_raise_no_warning():
    names = list("abcdef")
    frame = pd.DataFrame(LABELED, columns=names)
    learner = ActiveLearner(LogisticRegression(), "dropquery", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picks = learner.fit(frame, Y[:20]).query(pd.DataFrame(POOL, columns=names), 5)
    plain = ActiveLearner(LogisticRegression(), "dropquery", random_state=0)
    assert_array_equal(plain.fit(LABELED, Y[:20]).query(POOL, 5), picks)


def test_a_model_that_computes_its_own_features_is_refused():
    learner = ActiveLearner(LinearDiscriminantAnalysis(), "dropquery")
    learner.fit(LABELED, Y[:20])
    with pytest.raises(TypeError, match="got LinearDiscriminantAnalysis, which comput"):
        learner.query(POOL, 2)


def test_candidates_in_many_chunks_agree_with_the_oracle(monkeypatch):
    """Many chunks count the same changes where every draw changes the class."""
    monkeypatch.setattr("skactive.strategies._clustering.chunk_size", lambda *args: 7)
    test_dropquery_oracle_of_the_rows_nearest_the_centers(np.asarray)


@pytest.mark.slow
def test_other_parameters_pass_the_kit():
    assert len(check_strategy(DropQuery(n_draws=5, rate=0.2))) > 25
