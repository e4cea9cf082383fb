"""CoreSet and ProbCover through the learner, against loops over the definitions."""

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skactive import ActiveLearner
from skactive.strategies import CoreSet, ProbCover
from skactive.testing import check_strategy

LOADERS = {"iris": load_iris, "cancer": load_breast_cancer, "digits": load_digits}
STRATEGIES = [
    CoreSet(),
    CoreSet(metric="cosine"),
    ProbCover(),
    ProbCover(delta=0.5, metric="cosine"),
    ProbCover(purity=0.8, n_clusters=3),
]
each_strategy = pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)


@pytest.fixture(params=LOADERS)
def data(request):
    """A few labeled rows and a pool, scaled as the pipelines below scale them."""
    X, y = LOADERS[request.param](return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))[:200]
    X, y = X[order], y[order]
    scaler = StandardScaler().fit(X[:20])
    return X[:20], y[:20], X[20:], scaler.transform(X[:20]), scaler.transform(X[20:])


def make(strategy, random_state=0):
    model = LogisticRegression(max_iter=200)
    return ActiveLearner(
        make_pipeline(StandardScaler(), model), strategy, random_state=random_state
    )


def direction(row):
    length = math.hypot(*row)
    return [value / length for value in row]


def distances_to(rows, others, metric="euclidean"):
    rows, others = rows.tolist(), others.tolist()
    if metric == "cosine":
        rows, others = ([direction(row) for row in some] for some in (rows, others))
    return [[math.dist(a, b) for b in others] for a in rows]


@pytest.mark.long
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_coreset_by_the_oracle(data, metric):
    X, y, X_pool, labeled, pool = data
    picks = make(CoreSet(metric)).fit(X, y).query(X_pool, 30)
    to_labeled = distances_to(pool, labeled, metric)
    to_pool = distances_to(pool, pool, metric)
    assert len(set(picks)) == 30
    for step, pick in enumerate(picks):
        gaps = [
            min([*to_labeled[i], *(to_pool[i][j] for j in picks[:step])])
            for i in range(len(pool))
        ]
        assert gaps[pick] == pytest.approx(max(gaps), rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("delta", [0.5, 1.0, 3.0, 5.0])
def test_probcover_by_the_oracle(data, delta):
    X, y, X_pool, labeled, pool = data
    picks = make(ProbCover(delta=delta)).fit(X, y).query(X_pool, 30)
    balls = [
        {j for j, distance in enumerate(row) if distance <= delta}
        for row in distances_to(pool, pool)
    ]
    covered = {
        i for i, row in enumerate(distances_to(pool, labeled)) if min(row) <= delta
    }
    assert len(set(picks)) == 30
    for step, pick in enumerate(picks):
        left = set(range(len(pool))) - set(picks[:step].tolist())
        assert len(balls[pick] - covered) == max(len(balls[i] - covered) for i in left)
        covered |= balls[pick]


def test_probcover_with_its_own_radius_by_the_oracle():
    """Clumps far from each other: k-means finds them, and any sound radius fits."""
    rng = np.random.default_rng(0)
    sizes, places = [40, 25, 12, 6], [[0, 0], [50, 0], [0, 50], [50, 50]]
    pool = np.repeat(np.array(places, dtype=float), sizes, axis=0)
    pool += rng.normal(scale=0.5, size=pool.shape)
    clumps = np.repeat(range(4), sizes)
    assert KMeans(4, n_init=5, random_state=0).fit(pool).inertia_ < 200
    strategy = ProbCover(n_clusters=4)
    for seed in range(5):
        learner = ActiveLearner(LogisticRegression(), strategy, random_state=seed)
        learner.fit(np.array([[100.0, 100.0], [99.0, 99.0]]), [0, 1])
        # The largest pure radius holds a whole clump, so the largest comes first.
        assert clumps[learner.query(pool, 4)].tolist() == [0, 1, 2, 3]


def test_the_clusters_of_probcover_are_as_many_as_the_classes():
    class Noting(ProbCover):
        def _radius(self, view):
            radii.append(super()._radius(view))
            return radii[-1]

    radii = []
    pool = np.random.default_rng(0).normal(size=(300, 2))
    X, y = pool[:12], np.arange(12) % 6
    for labels, n_clusters in [(y, None), (y, 6), (y % 2, None), (y, 2)]:
        strategy = Noting(n_clusters=n_clusters)
        ActiveLearner(LogisticRegression(), strategy, random_state=0).fit(
            X, labels
        ).query(pool, 1)
    assert radii[0] == radii[1] < radii[2] == radii[3]


@pytest.mark.slow
@each_strategy
def test_it_passes_the_kit(strategy):
    assert len(check_strategy(strategy)) > 25


@pytest.mark.long
@each_strategy
def test_it_chooses_before_there_are_labels(data, strategy):
    *_, pool = data
    learner = ActiveLearner(
        LogisticRegression(), "margin", random_state=0, cold_start=strategy
    )
    picks = learner.query(pool, 10)
    assert len(set(picks)) == 10
    spread = np.array(distances_to(pool[picks], pool[picks]))
    chance = np.array(distances_to(pool[:10], pool[:10]))
    if isinstance(strategy, CoreSet) and strategy.metric == "euclidean":
        assert spread.mean() > chance.mean()


@each_strategy
def test_sparse_texts_give_the_picks_of_dense_ones(strategy):
    words = ["plot", "actor", "goal", "match", "vote", "law", "rain", "sun"]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, size=6)) for _ in range(80)]
    dense = TfidfVectorizer().fit_transform(texts).toarray()
    y = np.arange(10) % 3
    picks = [
        ActiveLearner(LogisticRegression(), strategy, random_state=0)
        .fit(kind(dense[:10]), y)
        .query(kind(dense[10:]), 20)
        .tolist()
        for kind in (np.asarray, sparse.csr_array)
    ]
    if isinstance(strategy, CoreSet) or strategy.delta != "auto":
        assert picks[0] == picks[1]
    assert len(set(picks[1])) == 20
