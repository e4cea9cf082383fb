"""Greedy sampling and LCMD, against loops over their definitions."""

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skactive import ActiveLearner
from skactive.strategies import BAIT, CoreSet, GreedySampling, LargestClusterMaxDistance

RNG = np.random.default_rng(0)
LABELED = RNG.normal(size=(12, 5)) + 3
POOL = RNG.normal(size=(150, 5)) + 3
Y = LABELED @ np.arange(5.0) + LABELED[:, 0] ** 2


def ask(strategy, n=15, labeled=LABELED, y=Y, pool=POOL, model=None, seed=0):
    learner = ActiveLearner(Ridge() if model is None else model, strategy)
    return learner.set_params(random_state=seed).fit(labeled, y).query(pool, n)


def greedy_by_hand(space, n, predicted, pool=POOL):
    """Pick the largest smallest distance, computing all of them each time."""
    centers = [(*row, label) for row, label in zip(LABELED, Y, strict=True)]
    picks = []
    for _ in range(n):
        best, found = None, -1.0
        for i, row in enumerate(pool):
            if i in picks:
                continue
            distances = []
            for *center, label in centers:
                of_input = math.dist(row, center)
                of_output = abs(predicted[i] - label)
                distances.append(
                    {
                        "input": of_input,
                        "output": of_output,
                        "both": of_input * of_output,
                    }[space]
                )
            if min(distances) > found:
                best, found = i, min(distances)
        picks.append(best)
        centers.append((*pool[best], predicted[best]))
    return picks


@pytest.mark.long
@pytest.mark.parametrize("space", ["input", "output", "both"])
def test_greedy_sampling_by_the_regression_oracle(space):
    predicted = Ridge().fit(LABELED, Y).predict(POOL)
    expected = greedy_by_hand(space, 15, predicted)
    assert ask(GreedySampling(space)).tolist() == expected
    # In the space of the features that the model sees.
    front = StandardScaler().fit(50 * LABELED)
    labeled, pool = (front.transform(50 * rows) for rows in (LABELED, POOL))
    found = ask(GreedySampling(space), 15, labeled, Y, pool)
    model = make_pipeline(StandardScaler(), Ridge())
    data = 50 * LABELED, Y, 50 * POOL
    assert_array_equal(ask(GreedySampling(space), 15, *data, model), found)


def test_input_is_coreset_for_any_target():
    for seed in range(3):
        assert_array_equal(
            ask(GreedySampling("input"), seed=seed), ask(CoreSet(), seed=seed)
        )
    assert GreedySampling("input").targets == CoreSet().targets
    assert GreedySampling().targets == {"regression"}
    several = (LABELED > 3).astype(int)
    model = OneVsRestClassifier(LogisticRegression())
    assert len(ask(GreedySampling("input"), model=model, y=several)) == 15
    learner = ActiveLearner(Ridge(), cold_start=GreedySampling("input"))
    assert len(learner.query(POOL, 3)) == 3


def lcmd_by_hand(n, labeled, pool=POOL):
    centers, picks = [list(row) for row in labeled], []
    if not centers:
        picks.append(int(np.argmax([math.hypot(*row) for row in pool])))
        centers.append(list(pool[picks[0]]))
    while len(picks) < n:
        sizes, farthest = [0.0] * len(centers), [(-1.0, None)] * len(centers)
        for i, row in enumerate(pool):
            if i in picks:
                continue
            squares = [math.dist(row, center) ** 2 for center in centers]
            owner = squares.index(min(squares))
            sizes[owner] += squares[owner]
            farthest[owner] = max(farthest[owner], (squares[owner], i))
        picks.append(farthest[sizes.index(max(sizes))][1])
        centers.append(list(pool[picks[-1]]))
    return picks


def test_lcmd_by_the_regression_oracle():
    expected = lcmd_by_hand(25, LABELED)
    assert ask(LargestClusterMaxDistance(), 25).tolist() == expected
    learner = ActiveLearner(Ridge(), cold_start=LargestClusterMaxDistance())
    assert learner.query(POOL, 25).tolist() == lcmd_by_hand(25, [])


def test_lcmd_is_the_same_for_every_target_and_container():
    expected = ask(LargestClusterMaxDistance(), 25).tolist()
    kind = OneVsRestClassifier(LogisticRegression())
    several = (LABELED > 3).astype(int)
    for model, y in ((LogisticRegression(), several[:, 0]), (kind, several)):
        found = ask(LargestClusterMaxDistance(), 25, model=model, y=y)
        assert found.tolist() == expected
    labeled, pool = map(sparse.csr_array, (LABELED, POOL))
    found = ask(LargestClusterMaxDistance(), 25, labeled=labeled, pool=pool)
    assert found.tolist() == expected


def test_a_shift_of_all_rows_does_not_change_the_picks_of_lcmd():
    shifted = ask(LargestClusterMaxDistance(), 25, LABELED + 1e4, Y, POOL + 1e4)
    assert_array_equal(shifted, ask(LargestClusterMaxDistance(), 25))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "strategy",
    [GreedySampling(), GreedySampling("output"), LargestClusterMaxDistance()],
    ids=repr,
)
def test_copies_come_last_and_ties_are_spread(strategy, dtype):
    pool = np.repeat(POOL[:10], 3, axis=0).astype(dtype)
    picks = ask(strategy, 10, pool=pool)
    assert sorted(picks // 3) == list(range(10))
    assert len({tuple(ask(strategy, 10, pool=pool, seed=s) % 3) for s in range(9)}) > 3
    assert sorted(ask(strategy, 30, pool=pool)) == list(range(30))
    alike = np.repeat(POOL[:1], 20, axis=0).astype(dtype)
    first = {ask(strategy, 1, pool=alike, seed=seed)[0] for seed in range(30)}
    assert len(first) > 8


@pytest.mark.parametrize("strategy", [GreedySampling(), LargestClusterMaxDistance()])
def test_blocks_of_many_labels_and_rows_do_not_matter(strategy, monkeypatch):
    expected = ask(strategy, 25)
    monkeypatch.setattr("skactive.strategies._regression.BLOCK", 5)
    monkeypatch.setattr("skactive.strategies._regression.chunk_size", lambda *args: 7)
    assert_array_equal(ask(strategy, 25), expected)


@pytest.mark.parametrize("space", ["output", "both"])
def test_distances_of_labels_need_labels(space):
    learner = ActiveLearner(Ridge(), cold_start=GreedySampling(space))
    with pytest.raises(TypeError, match="needs labeled items"):
        learner.query(POOL, 3)


def test_a_classifier_has_no_predictions_to_be_distant():
    with pytest.raises(TypeError, match="is defined for regression targets only"):
        ask(GreedySampling(), model=LogisticRegression(), y=LABELED[:, 0] > 3)


def test_bait_by_the_regression_oracle():
    def criterion(positions):
        rows = np.vstack([LABELED, POOL[positions]])
        inverse = np.linalg.inv(rows.T @ rows + 0.7 * np.eye(5))
        return np.trace(inverse @ mean)

    everything = np.vstack([LABELED, POOL])
    mean = sum(np.outer(row, row) for row in everything) / len(everything)
    picks = []
    while len(picks) < 14:
        left = [i for i in range(len(POOL)) if i not in picks]
        picks.append(min(left, key=lambda i: criterion([*picks, i])))
    while len(picks) > 7:
        worst = min(picks, key=lambda i: criterion([j for j in picks if j != i]))
        picks.remove(worst)
    assert ask(BAIT(0.7), 7).tolist() == picks
    pool, labeled = map(sparse.csr_array, (POOL, LABELED))
    assert ask(BAIT(0.7), 7, labeled=labeled, pool=pool).tolist() == picks
    assert len(set(ask(BAIT(), 150))) == 150


def test_forward_bait_as_bmdal_oracle():
    pytest.importorskip("bmdal_reg")
    picks = ask_bmdal(
        "bait", [("train", [1.0, 1.0])], bait_sigma=1.0, overselection_factor=1
    )
    assert ask(BAIT(oversample=1.0), 10).tolist() == picks[:10]


# Other packages, where they are installed.


@pytest.mark.parametrize("space", ["input", "output", "both"])
def test_greedy_sampling_as_scikit_activeml_oracle(space):
    pool = pytest.importorskip("skactiveml.pool")
    regressor = pytest.importorskip("skactiveml.regressor").SklearnRegressor(Ridge())
    X = np.vstack([LABELED, POOL])
    y = np.concatenate([Y, np.full(len(POOL), np.nan)])
    if space == "input":
        picks = pool.GreedySamplingX(random_state=0).query(X, y, batch_size=15)
    else:
        method = {"output": "GSy", "both": "GSi"}[space]
        query = pool.GreedySamplingTarget(method=method, random_state=0).query
        picks = query(X, y, regressor, batch_size=15)
    assert ask(GreedySampling(space)).tolist() == (picks - len(LABELED)).tolist()


def ask_bmdal(method, transforms, **options):
    torch = pytest.importorskip("torch")
    vars(np).setdefault("Inf", np.inf)  # which the package uses
    algorithms = pytest.importorskip("bmdal_reg.bmdal.algorithms")
    data = pytest.importorskip("bmdal_reg.bmdal.feature_data").TensorFeatureData
    picks, _ = algorithms.select_batch(
        25 if method == "lcmd" else 10,
        [torch.nn.Linear(5, 1).double()],
        {"train": data(torch.tensor(LABELED)), "pool": data(torch.tensor(POOL))},
        None,
        "linear",
        transforms,
        method,
        verbosity=0,
        use_cuda_synchronize=False,
        **options,
    )
    return picks.tolist()


def test_lcmd_as_bmdal_oracle():
    pytest.importorskip("bmdal_reg")
    picks = ask_bmdal("lcmd", [], sel_with_train=True)
    assert ask(LargestClusterMaxDistance(), 25).tolist() == picks


def test_bait_with_columns_far_from_zero():
    rng = np.random.default_rng(0)
    X = 1e6 + rng.normal(size=(52, 4))
    learner = ActiveLearner(Ridge(), "bait").fit(X[:12], rng.normal(size=12))
    assert len(set(learner.query(X[12:], 10).tolist())) == 10
