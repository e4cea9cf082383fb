"""The loop: fit, query, teach, refit, and what scikit-learn does with the learner."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skactive import ActiveLearner
from skactive.strategies import Entropy, PointwiseStrategy, Strategy

rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(-2, 1, (30, 3)), rng.normal(2, 1, (30, 3))])
y = np.repeat(["no", "yes"], 30)
SEED = np.array([0, 1, 2, 30, 31, 32])
POOL = np.setdiff1d(np.arange(60), SEED)

WORDS = ["good fine nice", "bad poor sad", "good great", "sad awful", "nice", "poor"]
SENTIMENT = ["+", "-", "+", "-", "+", "-"]


def make(strategy="margin", **params):
    params.setdefault("random_state", 0)
    return ActiveLearner(LogisticRegression(), strategy, **params)


def by_hand(learner, X):
    proba = learner.estimator_.predict_proba(X)
    top = np.sort(proba, axis=1)
    return np.argsort(top[:, -1] - top[:, -2], kind="stable")


# fit, query, teach, refit


def test_query_gives_the_most_uncertain_first():
    learner = make().fit(X[SEED], y[SEED])
    assert_array_equal(learner.query(X, 5), by_hand(learner, X)[:5])


def test_query_uses_batch_size_unless_told():
    learner = make(batch_size=7).fit(X[SEED], y[SEED])
    assert learner.query(X).shape == (7,)
    assert learner.query(X, 3).shape == (3,)
    assert learner.query(X).dtype == np.intp


def test_a_mask_and_indices_say_the_same():
    learner = make().fit(X[SEED], y[SEED])
    mask = np.isin(np.arange(60), POOL)
    picks = learner.query(X, 9, candidates=POOL)
    assert_array_equal(picks, learner.query(X, 9, candidates=mask))
    assert_array_equal(picks, learner.query(X, 9, candidates=list(POOL)))
    assert_array_equal(picks, learner.query(X, 9, candidates=pd.Series(mask)))
    assert set(picks) <= set(POOL)


def test_fewer_candidates_than_asked_for_are_all_returned():
    learner = make().fit(X[SEED], y[SEED])
    assert set(learner.query(X, 10, candidates=[3, 5])) == {3, 5}


def test_teach_adds_labels_and_trains_on_all():
    learner = make().fit(X[SEED], y[SEED]).teach(X[POOL[:4]], y[POOL[:4]])
    both = np.concatenate([SEED, POOL[:4]])
    expected = LogisticRegression().fit(X[both], y[both])
    assert_allclose(learner.predict_proba(X), expected.predict_proba(X))
    assert_array_equal(learner.X_labeled_, X[both])
    assert_array_equal(learner.y_labeled_, y[both])
    assert learner.n_rounds_ == 1


def test_teach_without_refit_only_stores():
    learner = make().fit(X[SEED], y[SEED])
    before = learner.predict_proba(X)
    learner.teach(X[POOL], y[POOL], refit=False)
    assert_array_equal(learner.predict_proba(X), before)
    assert len(learner.y_labeled_) == 60
    learner.refit()
    assert_allclose(
        learner.predict_proba(X),
        LogisticRegression()
        .fit(learner.X_labeled_, learner.y_labeled_)
        .predict_proba(X),
    )


def test_fit_forgets_earlier_labels():
    learner = make().fit(X, y).teach(X[:2], y[:2]).fit(X[SEED], y[SEED])
    assert len(learner.y_labeled_) == len(SEED)
    assert learner.n_rounds_ == 0


def test_refit_takes_the_present_estimator():
    learner = make().fit(X[SEED], y[SEED])
    learner.set_params(estimator=make_pipeline(StandardScaler(), LinearSVC())).refit()
    assert isinstance(learner.estimator_[-1], LinearSVC)
    assert learner.score(X, y) > 0.9
    assert not hasattr(learner, "predict_proba")


def test_refit_before_any_label_says_what_to_do():
    with pytest.raises(NotFittedError, match="no labels to refit on"):
        make().refit()


def test_teach_can_begin():
    learner = make().teach(X[SEED], y[SEED])
    assert_allclose(
        learner.predict_proba(X), make().fit(X[SEED], y[SEED]).predict_proba(X)
    )


def test_teach_grows_classes():
    learner = make().fit(X[SEED], y[SEED])
    assert_array_equal(learner.classes_, ["no", "yes"])
    learner.teach(X[:2] + 9, ["perhaps", "perhaps"])
    assert_array_equal(learner.classes_, ["no", "perhaps", "yes"])
    assert learner.predict_proba(X).shape == (60, 3)
    assert learner.query(X, 2).shape == (2,)


@pytest.mark.parametrize(
    "labels", [["a", "b"], [3, 8], [True, False], pd.Series(["x", "y"]), [0.0, 1.0]]
)
def test_labels_of_every_kind(labels):
    learner = make().fit(X[[0, 30]], labels)
    assert_array_equal(np.sort(np.asarray(labels)), learner.classes_)
    learner.teach(X[[1, 31]], labels)
    assert len(learner.y_labeled_) == 4


# Cold start


def test_query_before_fit_is_the_cold_start():
    learner = make("entropy")
    picks = learner.query(X, 10)
    assert len(set(picks)) == 10
    assert_array_equal(picks, learner.query(X, 10))
    assert not hasattr(learner, "estimator_")


def test_a_single_class_is_no_crash():
    learner = make("entropy", batch_size=4).fit(X[:3], y[:3])
    assert isinstance(learner.estimator_, DummyClassifier)
    assert_array_equal(learner.predict(X[:2]), ["no", "no"])
    assert learner.score(X, y) == 0.5
    picks = learner.query(X, candidates=np.arange(3, 60))
    assert len(picks) == 4
    learner.teach(X[[30]], y[[30]])
    assert isinstance(learner.estimator_, LogisticRegression)


def test_a_loop_from_nothing_needs_no_special_code():
    learner = make("entropy", batch_size=1)
    unlabelled = np.ones(60, dtype=bool)
    for _ in range(12):
        ask = learner.query(X, candidates=unlabelled)
        learner.teach(X[ask], y[ask])
        unlabelled[ask] = False
        learner.score(X, y)
    assert learner.score(X, y) > 0.9


def test_cold_start_may_look_at_features():
    class Far(PointwiseStrategy):
        requires = frozenset({"features"})

        def score(self, view):
            return np.asarray((view.features**2).sum(axis=1)).ravel()

    learner = make(cold_start=Far())
    assert learner.query(X, 1)[0] == np.argmax((X**2).sum(axis=1))
    front = make_pipeline(StandardScaler(), LogisticRegression())
    scaled = StandardScaler().fit_transform(X)
    picks = ActiveLearner(front, cold_start=Far()).query(X, 1, candidates=POOL)
    assert picks[0] == POOL[np.argmax((scaled[POOL] ** 2).sum(axis=1))]
    assert not hasattr(front[0], "mean_"), "the user's own step was fitted"


def test_cold_start_that_needs_a_model_says_so():
    with pytest.raises(TypeError, match="no fitted model with two classes yet"):
        make(cold_start="entropy").query(X, 2)


# Seeds


def test_the_same_seed_gives_the_same_run():
    def run(seed):
        learner = make("random", random_state=seed).fit(X[SEED], y[SEED])
        picks = [learner.query(X, 5)]
        learner.teach(X[picks[0]], y[picks[0]])
        return [*picks, learner.query(X, 5)]

    first, second = run(3), run(3)
    assert_array_equal(first, second)
    assert not np.array_equal(first[0], first[1]), "rounds share a seed"
    assert not np.array_equal(first, run(4))


def test_asking_twice_gives_the_same_answer_without_a_seed():
    learner = make("random", random_state=None)
    assert_array_equal(learner.query(X, 5), learner.query(X, 5))
    learner.fit(X[SEED], y[SEED])
    assert_array_equal(learner.query(X, 5), learner.query(X, 5))


def test_the_order_of_ties_is_random_but_seeded():
    flat = ActiveLearner(DummyClassifier(strategy="uniform"), "entropy", random_state=0)
    flat.fit(X[SEED], y[SEED])
    assert not np.array_equal(flat.query(X, 10), np.arange(10))


def test_unseeded_estimators_are_seeded_and_seeded_ones_left_alone():
    learner = ActiveLearner(RandomForestClassifier(n_estimators=3), random_state=0)
    a, b = (clone(learner).fit(X, y).predict_proba(X) for _ in range(2))
    assert_array_equal(a, b)
    learner.set_params(estimator__random_state=7).fit(X, y)
    assert learner.estimator_.random_state == 7


def test_global_generators_are_neither_read_nor_moved():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    for random_state in (None, 0):
        forest = RandomForestClassifier(n_estimators=2)
        learner = ActiveLearner(forest, "random", random_state=random_state)
        learner.query(X, 2)
        learner.fit(X, y).query(X, 2)
    assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_query_changes_nothing_a_prediction_depends_on():
    learner = make().fit(X[SEED], y[SEED])
    before = pickle.dumps(learner)
    learner.query(X, 3)
    assert pickle.dumps(learner) == before


def test_what_the_user_changes_later_is_no_matter():
    X_seed, y_seed = X[SEED].copy(), y[SEED].copy()
    learner = make().fit(X_seed, y_seed)
    X_seed[:] = 0
    y_seed[:] = "no"
    assert_array_equal(learner.X_labeled_, X[SEED])
    assert_array_equal(learner.y_labeled_, y[SEED])


# Containers

ONE_COLUMN = {
    "list": list,
    "tuple": tuple,
    "object": lambda texts: np.array(texts, dtype=object),
    "U": np.array,
    "StringDType": lambda texts: np.array(texts, dtype=np.dtypes.StringDType()),
    "pandas": pd.Series,
    "pandas-object": lambda texts: pd.Series(texts, dtype=object),
    "polars": pl.Series,
}


@pytest.mark.parametrize("kind", ONE_COLUMN)
def test_texts_in_every_container(kind):
    def text_learner():
        return ActiveLearner(
            make_pipeline(TfidfVectorizer(), LogisticRegression()), random_state=0
        )

    def run(texts, first, second):
        learner = text_learner().fit(first, SENTIMENT[:2])
        asked = learner.query(texts, 3, candidates=np.arange(2, 6))
        learner.teach(second, SENTIMENT[2:4])
        return asked, learner.predict_proba(texts), learner.X_labeled_

    wrap = ONE_COLUMN[kind]
    asked, proba, kept = run(wrap(WORDS), wrap(WORDS[:2]), wrap(WORDS[2:4]))
    expected = run(WORDS, WORDS[:2], WORDS[2:4])
    assert_array_equal(asked, expected[0])
    assert_array_equal(proba, expected[1])
    assert list(kept) == WORDS[:4]


def test_texts_may_change_their_container_between_calls():
    learner = ActiveLearner(make_pipeline(TfidfVectorizer(), LogisticRegression()))
    learner.fit(WORDS[:2], SENTIMENT[:2])
    learner.teach(np.array(WORDS[2:4], dtype=object), SENTIMENT[2:4])
    learner.teach(pd.Series(WORDS[4:]), SENTIMENT[4:])
    assert list(learner.X_labeled_) == WORDS


@pytest.mark.parametrize(
    "wrap",
    [
        np.asarray,
        lambda a: a.astype(np.float32),
        lambda a: a.tolist(),
        sparse.csr_matrix,
        sparse.coo_matrix,
        sparse.csr_array,
        lambda a: pd.DataFrame(a, columns=["a", "b", "c"]),
        lambda a: pl.DataFrame(a, schema=["a", "b", "c"]),
    ],
    ids=["array", "float32", "lists", "csr", "coo", "csr_array", "pandas", "polars"],
)
def test_tables_in_every_container(wrap):
    learner = make().fit(wrap(X[SEED]), y[SEED])
    picks = learner.query(wrap(X), 4, candidates=POOL)
    learner.teach(wrap(X[picks]), y[picks])
    expected = make().fit(X[SEED], y[SEED])
    assert_array_equal(picks, expected.query(X, 4, candidates=POOL))
    expected.teach(X[picks], y[picks])
    assert_allclose(
        learner.predict_proba(wrap(X)), expected.predict_proba(X), rtol=1e-4
    )


def test_text_pairs_pass_through():
    class Join:
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return [" ".join(pair) for pair in X]

    pipe = make_pipeline(Join(), TfidfVectorizer(), LogisticRegression())
    pairs = [(a, b) for a in WORDS[:3] for b in WORDS[3:]]
    labels = ["+", "-"] * 4 + ["+"]
    learner = ActiveLearner(pipe, random_state=0).fit(pairs[:4], labels[:4])
    as_array = np.array(pairs, dtype=object)
    assert_array_equal(learner.query(pairs, 3), learner.query(as_array, 3))
    learner.teach(as_array[4:6], labels[4:6])
    assert [tuple(pair) for pair in learner.X_labeled_] == pairs[:6]


# scikit-learn around it


def test_clone_and_nested_parameters():
    learner = make(Entropy())
    assert "estimator__C" in learner.get_params()
    copied = clone(learner.set_params(estimator__C=3.0))
    assert copied.estimator.C == 3.0
    assert copied.strategy is not learner.strategy
    assert not hasattr(copied, "estimator_")


@pytest.mark.parametrize(
    "duplicate", [lambda o: pickle.loads(pickle.dumps(o)), copy.deepcopy]
)
def test_a_copy_goes_on_where_the_original_stands(duplicate):
    learner = make("random").fit(X[SEED], y[SEED]).teach(X[:1], y[:1])
    other = duplicate(learner)
    assert_array_equal(learner.query(X, 5), other.query(X, 5))
    assert_array_equal(
        learner.teach(X[5:9], y[5:9]).query(X), other.teach(X[5:9], y[5:9]).query(X)
    )


def test_html_display_names_the_parts():
    html = make(Entropy())._repr_html_()
    assert "LogisticRegression" in html
    assert "ActiveLearner" in html


def test_grid_search_and_cross_validation():
    search = GridSearchCV(make(), {"estimator__C": [0.1, 1.0]}).fit(X, y)
    assert search.best_score_ > 0.9
    assert cross_val_score(make(), X, y).mean() > 0.9


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_number_of_workers_gives_the_same(n_jobs):
    forest = RandomForestClassifier(n_estimators=5)
    learner = ActiveLearner(forest, random_state=0)
    scores = cross_val_score(learner, X + X[::-1], y, n_jobs=n_jobs)
    assert_array_equal(scores, cross_val_score(learner, X + X[::-1], y))


def test_a_frozen_estimator_is_not_trained():
    model = LogisticRegression().fit(X[SEED], y[SEED])
    learner = ActiveLearner(FrozenEstimator(model)).fit(X[:2], y[:2])
    assert_array_equal(learner.predict_proba(X), model.predict_proba(X))
    assert_array_equal(learner.query(X, 4), by_hand(learner, X)[:4])


def test_a_frozen_front_is_kept():
    front = FrozenEstimator(TfidfVectorizer().fit(WORDS))
    learner = ActiveLearner(make_pipeline(front, LogisticRegression()))
    learner.fit(WORDS[:2], SENTIMENT[:2])
    assert learner.estimator_[0] is front
    assert learner.query(WORDS, 1).shape == (1,)


def test_a_search_inside_the_learner():
    inner = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2)
    learner = ActiveLearner(inner, random_state=0).fit(X[SEED], y[SEED])
    assert_array_equal(learner.query(X, 3), by_hand(learner, X)[:3])


def test_regressors_can_be_asked_too():
    target = X[:, 0]
    learner = ActiveLearner(Ridge(), "random", random_state=0).fit(X[:5], target[:5])
    asked = learner.query(X, 3)
    assert learner.teach(X[asked], target[asked]).score(X, target) > 0.9
    assert not hasattr(learner, "classes_")
    with pytest.raises(TypeError, match="needs class probabilities or decision values"):
        ActiveLearner(LinearRegression()).fit(X, target).query(X)


def test_delegation_follows_the_estimator():
    assert not hasattr(ActiveLearner(LinearSVC()), "predict_proba")
    assert hasattr(ActiveLearner(LinearSVC()), "decision_function")
    assert not hasattr(make(), "transform")
    with pytest.raises(NotFittedError):
        make().predict(X)


def test_sample_weights_are_kept_over_the_rounds():
    weights = np.linspace(0.1, 5, 60)
    learner = make().fit(X[:40], y[:40], sample_weight=weights[:40])
    learner.teach(X[40:50], y[40:50], sample_weight=weights[40:50])
    learner.teach(X[50:], y[50:])
    weights[50:] = 1.0
    expected = LogisticRegression().fit(X, y, sample_weight=weights)
    assert_allclose(learner.predict_proba(X), expected.predict_proba(X))
    assert_allclose(learner.refit().predict_proba(X), expected.predict_proba(X))


def test_metadata_is_routed():
    from sklearn import config_context

    with config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        inner.set_score_request(sample_weight=True)
        learner = ActiveLearner(inner, random_state=0)
        weights = np.linspace(0.1, 5, 60)
        learner.fit(X, y, sample_weight=weights)
        expected = LogisticRegression().fit(X, y, sample_weight=weights)
        assert_allclose(learner.predict_proba(X), expected.predict_proba(X))
        search = GridSearchCV(learner, {"estimator__C": [1.0]})
        search.fit(X, y, sample_weight=weights)
        with pytest.raises(TypeError, match="unexpected argument"):
            learner.fit(X, y, groups=weights)


# Bad input: which argument, what was expected, what came, what to do


def test_a_failed_teach_leaves_the_learner_as_it_was():
    learner = make().fit(X[SEED], y[SEED])
    before = pickle.dumps(learner)
    with pytest.raises(ValueError, match="NaN"):
        learner.teach(X[:1] * np.nan, y[:1])
    assert pickle.dumps(learner) == before


class Nonsense(Strategy):
    def __init__(self, answer=None):
        self.answer = answer

    def select(self, view, n):
        return self.answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([0, 0], "a position more than once"),
        ([0, 99], r"in \[0, 60\), got 99"),
        ([-1, 0], "got -1"),
        ([0], "got 1 of them"),
        ([0.0, 1.0], "dtype float64"),
        ([[0], [1]], r"shape \(2, 1\)"),
    ],
)
def test_a_strategy_that_answers_nonsense_is_named(answer, message):
    learner = make(Nonsense(answer)).fit(X[SEED], y[SEED])
    with pytest.raises(ValueError, match=message) as error:
        learner.query(X, 2)
    assert "Nonsense" in str(error.value)


def test_scores_must_be_one_number_each():
    for function, message in [
        (lambda view: view.proba, r"shape \(60, 2\)"),
        (lambda view: np.full(len(view), np.nan), "NaN for 60 of 60"),
        (lambda view: ["a"] * len(view), "dtype <U1"),
    ]:
        with pytest.raises(ValueError, match=message):
            make(function).fit(X[SEED], y[SEED]).query(X, 2)


@pytest.mark.parametrize(
    ("candidates", "error", "message"),
    [
        ([60], ValueError, r"must lie in \[0, 60\).*got 60"),
        ([-1], ValueError, "got -1"),
        ([1, 1], ValueError, "more than once"),
        (np.ones(59, dtype=bool), ValueError, "mask over 59 items, and X holds 60"),
        (np.zeros(60, dtype=bool), ValueError, "nothing is left to ask about"),
        ([], ValueError, "nothing is left to ask about"),
        ([0.5], TypeError, "positions in X or a boolean mask"),
        ([[1]], TypeError, r"shape \(1, 1\)"),
        (["a"], TypeError, "dtype <U1"),
    ],
)
def test_bad_candidates(candidates, error, message):
    with pytest.raises(error, match=message):
        make().fit(X[SEED], y[SEED]).query(X, candidates=candidates)


@pytest.mark.parametrize(
    ("n_queries", "error", "message"),
    [
        (0, ValueError, "'n_queries' must be at least 1, got 0"),
        (-3, ValueError, "got -3"),
        (2.0, TypeError, "'n_queries' must be an int, got 2.0"),
        (True, TypeError, "must be an int"),
    ],
)
def test_bad_n_queries(n_queries, error, message):
    with pytest.raises(error, match=message):
        make().fit(X[SEED], y[SEED]).query(X, n_queries)


@pytest.mark.parametrize("pool", [[], np.empty((0, 3)), pd.Series([], dtype=object)])
def test_an_empty_pool(pool):
    with pytest.raises(ValueError, match="'X' holds no items"):
        make().query(pool)


@pytest.mark.parametrize("method", ["query", "fit", "teach"])
def test_a_single_text_is_not_a_pool(method):
    args = ("some text",) if method == "query" else ("some text", list("123456789"))
    with pytest.raises(TypeError, match=r"got a single str. Wrap it in a list"):
        getattr(make(), method)(*args)


@pytest.mark.parametrize("method", ["fit", "teach"])
@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (["a", "b"], ValueError, "X holds 3 items, y holds 2 labels"),
        (["a", None, "b"], ValueError, "no label at positions 1 "),
        ([0.0, 1.0, np.nan], ValueError, "no label at positions 2 "),
        (pd.Series(["a", pd.NA, "b"]), ValueError, "no label at positions 1 "),
        (["a", 1, "b"], TypeError, r"kinds \['number', 'str'\]"),
        ("abc", TypeError, "one label per item, got 'abc'"),
        (None, ValueError, "the target y is None"),
    ],
)
def test_bad_labels(method, labels, error, message):
    with pytest.raises(error, match=message):
        getattr(make(), method)(X[:3], labels)


def test_labels_of_another_kind_than_before():
    learner = make().fit(X[SEED], y[SEED])
    with pytest.raises(TypeError, match="mixes labels of the kinds"):
        learner.teach(X[:2], [0, 1])


@pytest.mark.parametrize(
    ("first", "second", "error", "message"),
    [
        (X, X[:, :2], ValueError, "another number of columns than before"),
        (pd.DataFrame(X), X, TypeError, "came as pandas.DataFrame"),
        (
            pd.DataFrame(X, columns=list("abc")),
            pd.DataFrame(X, columns=list("abd")),
            ValueError,
            "the columns of 'X' differ",
        ),
        (sparse.csr_matrix(X), X, TypeError, "same kind of container"),
    ],
)
def test_a_container_of_another_kind_than_before(first, second, error, message):
    learner = make().fit(first, y)
    with pytest.raises(error, match=message):
        learner.teach(second, y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"strategy": "entrpy"}, "unknown strategy 'entrpy'. Did you mean 'entropy'"),
        ({"cold_start": "rnd"}, "unknown strategy 'rnd'"),
        ({"batch_size": 0}, "'batch_size' parameter .* must be an int in the range"),
        ({"random_state": "0"}, "'random_state' parameter"),
        ({"strategy": 3}, "'strategy' parameter"),
        ({"estimator": "lr"}, "'estimator' parameter"),
    ],
)
def test_bad_parameters(params, message):
    learner = make().set_params(**params)
    with pytest.raises(ValueError, match=message):
        learner.fit(X, y)


def test_a_strategy_class_is_not_an_instance():
    with pytest.raises(TypeError, match=r"Pass an instance: Entropy\(\)"):
        make(Entropy).fit(X, y)


def test_what_the_strategy_needs_is_checked_before_any_work():
    class Counting(GaussianNB):
        calls = 0

        def predict_proba(self, X):
            Counting.calls += 1
            return super().predict_proba(X)

    class Bald(PointwiseStrategy):
        requires = frozenset({"proba", "draws"})

        def score(self, view):
            return view.proba[:, 0]

    learner = ActiveLearner(Counting(), Bald()).fit(X, y)
    message = r"'Bald\(\)' needs posterior draws; .*Counting has no sample_proba.* Use"
    with pytest.raises(TypeError, match=message):
        learner.query(X)
    assert Counting.calls == 0
