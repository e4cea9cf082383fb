"""Wrappers: what they ask, of whom, and that they are ordinary parameters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from skactive import ActiveLearner
from skactive.registry import resolve
from skactive.strategies import (
    SEALS,
    AnchorAL,
    ClassBalanced,
    CoreSet,
    Entropy,
    Margin,
    Partitioned,
    PointwiseStrategy,
    Prefilter,
    Random,
    Strategy,
    Subsample,
    Switch,
    TypiClust,
    WrapperStrategy,
)
from skactive.testing import check_strategy
from skactive.testing._strategy_checks import strategy_checks
from skactive.view import PoolView

rng = np.random.default_rng(5)
X = rng.normal(size=(60, 3))
y = np.array(["a", "b", "c"])[rng.integers(3, size=60)]
MODEL = LogisticRegression().fit(X[:12], y[:12])


class Noting(PointwiseStrategy):
    """Prefers the largest first feature, and notes which rows it was asked about."""

    seen = None

    def score(self, view):
        Noting.seen = view.X.toarray() if sparse.issparse(view.X) else np.array(view.X)
        return Noting.seen[:, 0]


def make_view(strategy, seed=0, pool=X, model=MODEL):
    return PoolView(
        pool,
        estimator=model,
        X_labeled=X[:12],
        y_labeled=y[:12],
        requires=strategy.requires,
        optional=strategy.optional,
        rng=np.random.default_rng(seed),
    )


def ask(strategy, n, **kwargs):
    return np.asarray(strategy.select(make_view(strategy, **kwargs), n))


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy",
    [
        Subsample(sample_size=0.5),
        Partitioned(n_parts=3),
        AnchorAL(n_neighbors=3),
        Switch(after=4),
    ],
    ids=repr,
)
def test_other_parameters_pass_the_kit(strategy):
    assert len(check_strategy(strategy)) > 25


@pytest.mark.slow
def test_few_neighbors_are_the_first_of_equal_candidates():
    failed = []
    for name, check in strategy_checks(SEALS(n_neighbors=3)):
        try:
            check()
        except AssertionError:
            failed.append(name)
    assert failed == ["check_ties_are_spread"]


# What each one asks


@pytest.mark.parametrize(
    ("size", "expected"), [(7, 7), (0.25, 15), (1.0, 60), (99, 60)]
)
def test_subsample_oracle_the_best_of_the_sample(size, expected):
    picks = ask(Subsample(Noting(), sample_size=size), 4)
    assert len(Noting.seen) == expected
    ranked = sorted(Noting.seen[:, 0], reverse=True)
    assert_array_equal(X[picks, 0], ranked[:4])


@pytest.mark.long
def test_subsample_draws_every_candidate_alike():
    counts = np.zeros(60)
    for seed in range(300):
        counts[ask(Subsample("random", sample_size=6), 6, seed=seed)] += 1
    # 30 expected, standard deviation 5.2
    assert counts.min() > 10
    assert counts.max() < 50


def test_subsample_never_samples_fewer_than_wanted():
    assert len(ask(Subsample("random", sample_size=2), 9)) == 9


def test_subsample_predicts_the_sample_only():
    rows = []

    class Counted(LogisticRegression):
        def predict_proba(self, X):
            rows.append(len(X))
            return super().predict_proba(X)

    ask(Subsample("entropy", sample_size=10), 3, model=Counted().fit(X[:12], y[:12]))
    assert rows == [10]


def farthest_first(rows, n, centers):
    """Pick the row farthest from all centers and picks n times, by the definition."""
    picks = []
    for _ in range(n):
        picks.append(int(cdist(rows, [*centers, *rows[picks]]).min(axis=1).argmax()))
    return np.array(picks)


@pytest.mark.parametrize("n_parts", [1, 2, 7, 60, 99])
def test_partitioned_of_coreset_oracle(n_parts):
    parts = np.array_split(np.arange(60), min(n_parts, 60))
    found = [part[farthest_first(X[part], min(5, len(part)), X[:12])] for part in parts]
    union = np.sort(np.concatenate(found))
    expected = union[farthest_first(X[union], 5, X[:12])]
    assert_array_equal(ask(Partitioned(CoreSet(), n_parts=n_parts), 5), expected)


@pytest.mark.parametrize("strategy", ["margin", "entropy", Noting()])
def test_partitioned_pointwise_oracle_selects_as_without_parts(strategy):
    expected = ask(resolve(strategy), 7)
    assert_array_equal(ask(Partitioned(strategy, n_parts=4), 7), expected)


def test_partitioned_of_many_items_has_parts_of_at_least_ten_thousand():
    count = Partitioned()._count_parts
    assert [count(n, 100) for n in (10**4, 19_999, 10**5)] == [1, 1, 10]
    assert [count(n, 100) for n in (10**6, 10**7)] == [100, 317]
    assert [count(10**5, n) for n in (10**4, 10**5)] == [4, 1]


def test_partitioned_predicts_a_part_at_a_time():
    sizes = []

    class Model(LogisticRegression):
        def predict_proba(self, X):
            sizes.append(len(X))
            return super().predict_proba(X)

    model = Model().fit(X[:12], y[:12])
    ask(Partitioned("entropy", n_parts=4), 3, model=model)
    assert sizes == [15, 15, 15, 15, 12]


def test_partitioned_splits_by_places_in_the_pool():
    learner = ActiveLearner(
        LogisticRegression(), Partitioned("coreset", n_parts=4), random_state=0
    ).fit(X[:12], y[:12])
    candidates = np.arange(12, 60)
    expected = learner.query(X, 6, candidates=candidates)
    shuffled = np.random.default_rng(3).permutation(candidates)
    assert_array_equal(learner.query(X, 6, candidates=shuffled), expected)


def test_partitioned_keeps_distances_of_each_part():
    learner = ActiveLearner(
        LogisticRegression(), Partitioned("coreset", n_parts=3), random_state=0
    ).fit(X[:12], y[:12])
    left = np.arange(60) >= 12
    for _ in range(3):
        fresh = clone(learner).fit(learner.X_labeled_, learner.y_labeled_)
        picks = learner.query(X, 4, candidates=left)
        assert_array_equal(picks, fresh.query(X, 4, candidates=left))
        left[picks] = False
        learner.teach(X[picks], y[picks])
    kept = learner._memory["parts"]
    rows = [len(part["labeled_distances", "euclidean"].positions) for part in kept]
    assert rows == [14, 13, 13]


def test_prefilter_oracle_second_chooses_among_the_best_of_the_first():
    picks = ask(Prefilter(Noting(), "entropy", factor=5), 4)
    best = np.argsort(-X[:, 0])[:20]
    proba = MODEL.predict_proba(X[best])
    entropy = [-sum(p * np.log(p) for p in row) for row in proba]
    expected = best[np.argsort(entropy)[::-1][:4]]
    assert_array_equal(picks, expected)


def test_prefilter_keeps_what_the_pool_has():
    assert sorted(ask(Prefilter(factor=1000), 60)) == list(range(60))


@pytest.mark.parametrize("k", [1, 4])
def test_seals_oracle_asks_about_the_neighbors_of_the_labeled(k):
    pool = X[12:]
    strategy = SEALS(Noting(), n_neighbors=k)
    picks = ask(strategy, 2, pool=pool)
    near = set()
    for row in cdist(X[:12], pool):
        near |= set(np.argsort(row)[:k].tolist())
    assert_array_equal(Noting.seen, pool[sorted(near)])
    assert set(picks) <= near


def test_seals_fills_up_where_the_neighbors_are_too_few():
    strategy = SEALS(Noting(), n_neighbors=1)
    near = np.unique(cdist(X[:12], X).argmin(axis=1))
    picks = ask(strategy, 30)
    assert_array_equal(np.sort(picks[: len(near)]), near)
    assert len(set(picks)) == 30


def switch_view(strategy, n_labels, y_labeled=None, pool=X):
    y_labeled = y if y_labeled is None else y_labeled
    return PoolView(
        pool,
        estimator=MODEL,
        X_labeled=X[:n_labels],
        y_labeled=y_labeled[:n_labels],
        requires=strategy.requires,
        optional=strategy.optional,
        rng=np.random.default_rng(0),
    )


@pytest.mark.parametrize("n_labels", [1, 19, 20, 21])
def test_switch_oracle_the_first_below_the_number_of_labels(n_labels):
    strategy = Switch(lambda view: view.X[:, 0], lambda view: view.X[:, 1], after=20)
    picks = strategy.select(switch_view(strategy, n_labels), 5)
    column = 0 if n_labels < 20 else 1
    assert X[picks, column].tolist() == sorted(X[:, column], reverse=True)[:5]


@pytest.mark.parametrize("n_classes", [1, 2, 4])
def test_switch_waits_for_ten_labels_per_class_by_default(n_classes):
    labels = np.arange(60) % n_classes
    strategy = Switch(lambda view: view.X[:, 0], lambda view: view.X[:, 1])
    used = [
        strategy.select(switch_view(strategy, m, labels), 1)[0] == X[:, 1].argmax()
        for m in range(5, 60)
    ]
    assert X[:, 0].argmax() != X[:, 1].argmax()
    assert used == [m >= 10 * n_classes for m in range(5, 60)]


def test_switch_counts_other_targets_as_ten_classes():
    strategy = Switch(lambda view: view.X[:, 0], lambda view: view.X[:, 1])
    several = np.repeat(np.eye(2, dtype=int), 60, axis=0)
    pool = np.repeat(X, 2, axis=0)
    for m, column in [(99, 0), (100, 1)]:
        view = PoolView(
            pool,
            estimator=MODEL,
            X_labeled=pool[:m],
            y_labeled=several[:m],
            requires=strategy.requires,
            rng=np.random.default_rng(0),
        )
        assert X[strategy.select(view, 1)[0] // 2, column] == X[:, column].max()


def test_switch_starts_without_labels():
    learner = ActiveLearner(
        LogisticRegression(),
        Switch("coreset", "margin", after=8),
        cold_start=Switch("coreset", "random", after=8),
        random_state=0,
    )
    plain = ActiveLearner(LogisticRegression(), cold_start="coreset", random_state=0)
    assert_array_equal(learner.query(X, 6), plain.query(X, 6))
    learner.fit(X[:7], y[:7])
    plain.fit(X[:7], y[:7])
    expected = plain.set_params(strategy="coreset").query(X, 3)
    assert_array_equal(learner.query(X, 3), expected)
    learner.teach(X[7:8], y[7:8])
    plain.teach(X[7:8], y[7:8])
    expected = plain.set_params(strategy="margin").query(X, 3)
    assert_array_equal(learner.query(X, 3), expected)


def test_switch_needs_what_both_of_its_parts_need():
    assert Switch().requires == {"features", "class_scores"}
    assert Switch(CoreSet(), "entropy").requires == {"features", "proba"}
    assert Switch("random", "entropy").optional == {"labeled"}
    assert Switch("random", len).requires is None
    assert Switch(TypiClust(), CoreSet()).targets == CoreSet().targets
    assert Switch(TypiClust(), "entropy").targets == {"single-label", "multi-label"}
    learner = ActiveLearner(LogisticRegression(), cold_start=Switch("random", "margin"))
    with pytest.raises(TypeError, match="needs class probabilities or decision values"):
        learner.query(X, 2)


def unit(rows):
    return [[v / np.linalg.norm(row) for v in row] for row in rows]


@pytest.mark.parametrize(("k", "size"), [(1, 99), (5, 99), (9, 4), (99, 7)])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_anchoral_oracle_asks_about_the_most_similar_to_all_labeled(k, size, convert):
    """With as many anchors as labels nothing is drawn."""
    strategy = AnchorAL(Noting(), n_anchors=12, n_neighbors=k, sample_size=size)
    view = PoolView(
        convert(X[12:]),
        estimator=LogisticRegression().fit(convert(X[:12]), y[:12]),
        X_labeled=convert(X[:12]),
        y_labeled=y[:12],
        requires=strategy.requires,
        rng=np.random.default_rng(0),
    )
    picks = strategy.select(view, 2)
    anchors, pool = unit(X[:12]), unit(X[12:])
    cosines = {}
    for anchor in anchors:
        row = [sum(a * b for a, b in zip(anchor, other, strict=True)) for other in pool]
        for i in sorted(range(48), key=lambda i: -row[i])[:k]:
            cosines.setdefault(i, []).append(row[i])
    means = {i: sum(found) / len(found) for i, found in cosines.items()}
    near = sorted(means, key=lambda i: -means[i])[:size]
    assert_allclose(Noting.seen, X[12:][sorted(near)])
    assert set(picks) <= set(near)


def test_anchoral_draws_as_many_anchors_of_each_class():
    """Three directions of the common class, one of the rare one."""
    places = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, -1, -1]], dtype=float)
    labeled = np.repeat(places, [30, 30, 30, 5], axis=0)
    labels = np.repeat([0, 0, 0, 1], [30, 30, 30, 5])
    pool = np.repeat(places, 3, axis=0) + 0.01 * X[:12]
    strategy = AnchorAL(Noting(), n_anchors=2, n_neighbors=3)
    model = LogisticRegression().fit(labeled, labels)
    seen = set()
    for seed in range(20):
        view = PoolView(
            pool,
            estimator=model,
            X_labeled=labeled,
            y_labeled=labels,
            requires=strategy.requires,
            rng=np.random.default_rng(seed),
        )
        strategy.select(view, 1)
        reached = {int(np.argmin(cdist([row], places))) for row in Noting.seen}
        assert len(Noting.seen) == 9  # copies of an anchor are no other anchor
        assert 3 in reached
        seen |= reached
    assert seen == {0, 1, 2, 3}


def test_anchoral_fills_up_and_answers_as_the_seed_says():
    strategy = AnchorAL("random", n_anchors=1, n_neighbors=2)
    picks = ask(strategy, 60)
    assert sorted(picks) == list(range(60))
    assert_array_equal(ask(strategy, 9), ask(strategy, 9))
    assert ask(strategy, 9).tolist() != ask(strategy, 9, seed=1).tolist()


def test_anchoral_considers_at_least_a_batch():
    small, large = (
        AnchorAL(Noting(), n_neighbors=9, sample_size=1),
        AnchorAL(Noting(), n_neighbors=9, sample_size=8),
    )
    picks = ask(small, 8)
    assert len(Noting.seen) == 8
    assert_array_equal(ask(large, 8), picks)


def test_anchoral_is_defined_for_classes():
    assert AnchorAL("random").targets == {"single-label", "multi-label"}
    assert AnchorAL("entropy").requires == {"features", "labeled", "proba"}


def test_class_balanced_oracle_fills_the_class_that_lags_behind():
    y_labeled = np.repeat(["a", "b", "c"], [7, 4, 1])
    strategy = ClassBalanced(Noting())
    view = PoolView(
        X,
        estimator=MODEL,
        X_labeled=X[:12],
        y_labeled=y_labeled,
        requires=strategy.requires,
        rng=np.random.default_rng(0),
    )
    picks = strategy.select(view, 9)
    # 7, 4, 1 labels and 9 places: c grows to 7 before b and a get level with it.
    predicted = MODEL.predict(X[picks])
    assert sorted(predicted) == ["b"] * 3 + ["c"] * 6
    assert_array_equal(predicted[:3], ["c"] * 3)
    for label in ("b", "c"):
        own = picks[predicted == label]
        members = np.flatnonzero(MODEL.predict(X) == label)
        best = members[np.argsort(-X[members, 0])][: len(own)]
        assert_array_equal(own, best)


def test_class_balanced_takes_other_classes_where_one_runs_out():
    predicted = MODEL.predict(X)
    kept = {"a": 1, "b": 2, "c": 9}
    few = [np.flatnonzero(predicted == label)[:i] for label, i in kept.items()]
    few = np.concatenate(few)
    picks = ask(ClassBalanced("random"), len(few), pool=X[few])
    assert sorted(picks) == list(range(len(few)))


# Wrappers as objects


def test_what_a_wrapper_needs_is_what_its_part_needs():
    assert Subsample("entropy").requires == {"proba"}
    assert SEALS("margin").requires == {"features", "labeled", "class_scores"}
    assert Prefilter("entropy", "random").requires == {"proba"}
    assert ClassBalanced(lambda view: view.proba[:, 0]).requires is None
    nested = Subsample(SEALS(ClassBalanced(Entropy())))
    assert nested.requires == {"features", "labeled", "class_scores", "proba"}


def test_what_a_part_may_look_at_beside_passes_through():
    class Curious(Strategy):
        optional = frozenset({"labeled"})

        def select(self, view, n_queries):
            return range(n_queries) if view.n_labeled else []

    assert Subsample(Curious()).optional == {"labeled"}
    assert len(ask(Subsample(Curious(), sample_size=20), 5)) == 5


def test_a_wrapper_of_a_function_asks_it():
    picks = ask(Subsample(lambda view: view.proba[:, 0], sample_size=1.0), 3)
    assert_array_equal(picks, np.argsort(-MODEL.predict_proba(X)[:, 0])[:3])


def test_nested_parameters_are_set_cloned_and_searched():
    strategy = Subsample(SEALS(Margin(), n_neighbors=5), sample_size=30)
    strategy.set_params(strategy__n_neighbors=2, strategy__strategy=Random())
    assert clone(strategy).get_params()["strategy__n_neighbors"] == 2
    learner = ActiveLearner(LogisticRegression(), strategy, random_state=0)
    grid = {
        "strategy__sample_size": [10, 20],
        "strategy__strategy__n_neighbors": [1, 2],
    }
    search = GridSearchCV(learner, grid, cv=2).fit(X, y)
    assert len(search.cv_results_["params"]) == 4


@pytest.mark.parametrize(
    ("strategy", "error", "message"),
    [
        (Subsample("entrpy"), ValueError, "Did you mean 'entropy'"),
        (Subsample(strategy=3), TypeError, "'strategy' parameter of Subsample must be"),
        (
            Subsample(SEALS(n_neighbors=0)),
            ValueError,
            "'n_neighbors' parameter of SEALS must be an int",
        ),
        (Switch(second="mragin"), ValueError, "Did you mean 'margin'"),
        (Switch(after=0), ValueError, "'after' parameter of Switch must be an int"),
        (Switch(first=Margin), TypeError, "'first' must be .* Margin\\(\\)"),
        (
            AnchorAL(SEALS(n_neighbors=0)),
            ValueError,
            "'n_neighbors' parameter of SEALS must be an int",
        ),
        (Prefilter(first=Entropy), TypeError, "'first' must be .* Entropy\\(\\)"),
    ],
)
def test_a_part_is_checked_when_the_learner_is_fitted(strategy, error, message):
    learner = ActiveLearner(LogisticRegression(), strategy)
    with pytest.raises(error, match=message):
        learner.fit([[0.0], [1.0]], [0, 1])


def test_a_part_that_chooses_badly_is_named():
    class Twice(Strategy):
        def select(self, view, n_queries):
            return [0] * n_queries

    with pytest.raises(ValueError, match=r"'Twice\(\)' must select 2 different"):
        ask(Subsample(Twice(), sample_size=5), 2)


# A wrapper of somebody else


class FirstHalf(WrapperStrategy):
    """Query among the first half of the candidates."""

    own_requires = frozenset({"labeled"})
    own_targets = frozenset({"single-label"})

    def __init__(self, strategy="margin"):
        self.strategy = strategy

    def select(self, view, n_queries):
        rows = np.arange(max(n_queries, (len(view) + 1) // 2))
        return rows[self.select_by("strategy", view.take(rows), n_queries)]


def test_a_wrapper_of_ones_own_requires_what_its_part_does():
    assert FirstHalf().requires == {"labeled", "class_scores"}
    assert FirstHalf("entropy").requires == {"labeled", "proba"}
    assert FirstHalf(lambda view: view.proba[:, 0]).requires is None
    assert FirstHalf("coreset").optional == CoreSet().optional
    assert FirstHalf("random").targets == {"single-label"}


def test_a_wrapper_of_ones_own_asks_its_part_about_a_part_of_the_view():
    strategy = FirstHalf(Noting())
    picks = strategy.select(make_view(strategy), 3)
    assert_array_equal(Noting.seen, X[:30])
    assert_array_equal(picks, np.argsort(-X[:30, 0])[:3])


def test_a_part_of_a_wrapper_of_ones_own_is_checked():
    learner = ActiveLearner(LogisticRegression(), FirstHalf("mragin"))
    with pytest.raises(ValueError, match="Did you mean 'margin'"):
        learner.fit([[0.0], [1.0]], [0, 1])
