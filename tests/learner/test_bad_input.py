"""Bad input: which argument, what was expected, what came, what to do."""

import pickle
import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, SVR

from skactive import ActiveLearner
from skactive.strategies import Entropy, PointwiseStrategy, Strategy, Subsample

from ._helpers import SEED, X, make, y


def test_a_failed_teach_leaves_the_learner_as_it_was():
    learner = make().fit(X[SEED], y[SEED])
    before = pickle.dumps(learner)
    with pytest.raises(ValueError, match="NaN"):
        learner.teach(X[:1] * np.nan, y[:1])
    assert pickle.dumps(learner) == before


class Nonsense(Strategy):
    def __init__(self, answer=None):
        self.answer = answer

    def select(self, view, n_queries):
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
    with pytest.raises(ValueError, match=message):  # before the first label as well
        learner.query(X)


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


@pytest.mark.parametrize("method", ["fit", "teach", "query"])
@pytest.mark.parametrize(
    ("items", "kind"), [({"k1": "text"}, "dict"), ({"x1", "x2"}, "set")]
)
def test_items_without_an_order_are_refused_by_name(method, items, kind):
    args = (items,) if method == "query" else (items, ["a"] * len(items))
    with pytest.raises(TypeError, match=f"'X' must be a sequence .* got a {kind}"):
        getattr(make(), method)(*args)


@pytest.mark.parametrize("labels", [{0: "a", 1: "b"}, {"a", "b"}])
def test_labels_without_an_order_are_refused_by_name(labels):
    with pytest.raises(TypeError, match="'y' must be a sequence"):
        make().teach(X[:2], labels)


def test_items_without_a_length_are_refused_by_name():
    with pytest.raises(TypeError, match="'X' must be a sequence of items, got <gen"):
        make().query(row for row in X)


@pytest.mark.parametrize("large", [10**25, -(10**25), 2**64])
def test_labels_beyond_64_bits_are_refused(large):
    with pytest.raises(ValueError, match=f"must hold labels that fit .* got {large}"):
        make().fit(X[:3], [1, large, 2])


def test_an_empty_string_is_a_missing_label():
    for labels in (["a", "", "b"], np.array(["a", "", "b"]), pd.Series(["a", "", "b"])):
        with pytest.raises(ValueError, match="no label at positions 1 "):
            make().fit(X[:3], labels)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
        [b"a", b"b"],
        np.zeros((2, 1, 1)),
        np.array(3),
    ],
)
def test_labels_of_other_kinds_are_refused_by_name(labels):
    with pytest.raises(TypeError, match="'y' must"):
        make().fit(X[:2], labels)


def test_a_pandas_index_is_no_list_of_positions():
    pool = pd.DataFrame(X, index=np.arange(300, 360))
    learner = make().fit(pool.iloc[SEED], y[SEED])
    with pytest.raises(TypeError, match=r"pandas Index.*X.index.get_indexer\(cand"):
        learner.query(pool, candidates=pool.index[:10])
    with pytest.raises(TypeError, match=r"or candidates\.to_numpy"):
        learner.query(pool.to_numpy(), candidates=pool.index[:10])
    picks = learner.query(pool, candidates=pool.index.get_indexer(pool.index[:10]))
    assert set(picks) == set(range(10))


def test_a_pandas_index_that_counts_from_zero_is_one_of_positions():
    pool = pd.DataFrame(X)
    learner = make().fit(pool.iloc[SEED], y[SEED])
    assert set(learner.query(pool, candidates=pool.index[:10])) == set(range(10))


def test_a_label_of_minus_one_is_warned_of_once():
    with pytest.warns(UserWarning, match="label -1, which is trained as a class"):
        learner = make().fit(X[:3], [0, 1, -1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner.teach(X[3:5], [-1, 0])
        make().fit(X[:3], [-1, 1, -1])
        ActiveLearner(Ridge(), "random").fit(X[:3], [-1.0, 0.0, 3.0])
    with pytest.warns(UserWarning, match="label -1"):
        make().fit(X[:2], [0, 1]).teach(X[2:3], [-1])


@pytest.mark.parametrize("strategy", ["margin", "entropy"])
def test_a_model_that_predicts_nan_is_to_blame(strategy):
    class Broken(GaussianNB):
        def predict_proba(self, X):
            proba = super().predict_proba(X)
            proba[X[:, 0] > 2, 0] = np.nan  # of one class only
            return proba

    learner = ActiveLearner(Broken(), strategy).fit(X, y)
    with pytest.raises(ValueError, match=r"Broken predicts NaN for .* of 60 items"):
        learner.query(X)


def test_options_that_are_no_bool_are_named():
    with pytest.raises(TypeError, match="'refit' must be True or False, got 'no'"):
        make().teach(X, y, refit="no")


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], r"shape \(3,\); got the shape \(2,\)"),
        (["a", "b", "c"], "must hold one number per item, got list"),
        ([1.0, np.nan, 2.0], "and 1 that are not finite"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "teach"])
def test_bad_sample_weights_are_named(method, weights, message):
    with pytest.raises(ValueError, match=f"'sample_weight' .*{message}"):
        getattr(make(), method)(X[29:32], y[29:32], sample_weight=weights)
    learner = make().fit(X[29:32], y[29:32])
    with pytest.raises(ValueError, match=f"'sample_weight' .*{message}"):
        learner.refit(sample_weight=weights)


def test_labels_of_several_lengths_are_named():
    with pytest.raises(TypeError, match="'y' must hold one label per item"):
        make().fit(X[:2], [[1, 2], "a"])


@pytest.mark.parametrize(
    "estimator", [Ridge(), KNeighborsRegressor(2), make_pipeline(SVR())]
)
def test_a_regressor_needs_numbers_as_labels(estimator):
    texts = ["good", "bad", "good"]
    learner = ActiveLearner(estimator, "random").fit(np.eye(3), [1, 2, 3])
    for call in (learner.fit, learner.teach, learner.score):
        with pytest.raises(TypeError, match=r"^'y' must hold numbers .* got .*'good'"):
            call(np.eye(3), texts)


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


@pytest.mark.parametrize("make_frame", FRAMES.values(), ids=FRAMES)
def test_labels_have_the_same_columns_each_time(make_frame):
    Y = {"a": [1, 0, 1], "b": [0, 1, 1]}
    other = make_frame({"b": Y["b"], "a": Y["a"]})
    message = r"columns of 'y' differ .*\['a', 'b'\], got \['b', 'a'\]\. Pass"
    learner = ActiveLearner(OneVsRestClassifier(LogisticRegression()), "random")
    learner.fit(np.eye(3), make_frame(Y)).teach(np.eye(3), np.ones((3, 2)))
    for one in (learner, pickle.loads(pickle.dumps(learner))):
        for call in (one.teach, one.score):
            with pytest.raises(ValueError, match=message):
                call(np.eye(3), other)
    assert len(learner.y_labeled_) == 6
    learner.teach(np.eye(3), make_frame(Y))
    clone(learner).teach(np.eye(3), other)
    learner.fit(np.eye(3), np.ones((3, 2)) - np.eye(3)[:, :2]).teach(np.eye(3), other)
    with pytest.raises(ValueError, match="columns of 'y' differ"):
        learner.teach(np.eye(3), make_frame(Y))


@pytest.mark.parametrize("bad", [None, np.nan, ["text"], b"\xff"])
def test_items_that_are_no_texts_are_named(bad):
    pipe = make_pipeline(TfidfVectorizer(), LogisticRegression())
    texts = ["good film", "bad film", bad]
    message = r"every item of 'X' must be a str.* 2 \("
    with pytest.raises(TypeError, match=message):
        ActiveLearner(pipe).fit(texts, [0, 1, 0])
    learner = ActiveLearner(pipe).fit(texts[:2], [0, 1])
    calls = (learner.query, learner.predict, learner.predict_proba)
    score = lambda texts: learner.score(texts, [0, 1, 0])  # noqa: E731
    for call in (*calls, learner.decision_function, score):
        with pytest.raises(TypeError, match=message):
            call(["one film", "a film", bad])


@pytest.mark.parametrize("bad", [None, b"\xff", [1, "a"]])
def test_an_error_of_the_estimator_names_the_items(bad):
    items = [[0.0], [1.0], [bad]]
    with pytest.raises((TypeError, ValueError)) as caught:
        ActiveLearner(LogisticRegression()).fit(items, [0, 1, 0])
    text = [str(caught.value), *getattr(caught.value, "__notes__", [])]
    assert "X" in "".join(text)
    numbers = make_pipeline(TfidfVectorizer(), LogisticRegression())
    with pytest.raises(TypeError, match="'X' must hold items that the estimator takes"):
        ActiveLearner(numbers).fit([1.0, 2.0], [0, 1])


def test_rows_of_several_lengths_are_named():
    learner = ActiveLearner(LogisticRegression()).fit(np.zeros((2, 2)), [0, 1])
    with pytest.raises(ValueError, match="'X' must hold rows of numbers of one"):
        learner.teach([[0.0, 1.0], [2.0]], [0, 1])


@pytest.mark.parametrize(
    "texts",
    [
        ["good film", "bad film"] * 3,
        np.array(["good film", "bad film"] * 3),
        pd.Series(["good film", "bad film"] * 3),
        [["good film", 1.0]] * 6,
        pd.DataFrame({"a": ["good film"] * 6, "b": 1.0}),
    ],
)
def test_texts_for_an_estimator_of_numbers_need_a_feature_extractor(texts):
    learner = make().fit(X[SEED], y[SEED])
    message = r"'X' must hold numbers .* got texts such as .good film.*feature"
    calls = (
        lambda: make().fit(texts, list("ab" * 3)),
        lambda: learner.query(texts),
        lambda: learner.predict(texts),
    )
    for call in calls:
        with pytest.raises(ValueError, match=message) as caught:
            call()
        assert isinstance(caught.value.__cause__, ValueError)


def test_a_query_and_a_prediction_name_rows_of_several_lengths():
    learner = make().fit(X[SEED], y[SEED])
    ragged = [[1.0, 2.0], [1.0]]
    for call in (learner.query, learner.predict):
        with pytest.raises(ValueError, match="'X' must hold rows of numbers of one"):
            call(ragged)


def test_an_error_of_features_does_not_blame_texts():
    nan = make_pipeline(TfidfVectorizer(), FunctionTransformer(_spoil), GaussianNB())
    with pytest.raises(ValueError, match="Input X contains NaN"):
        ActiveLearner(nan).fit(["good", "bad"], ["a", "b"])


def _spoil(X):
    return X.toarray() * np.nan


# Strategies that change what they are shown


def scale_in_place(view):
    proba = view.proba
    proba *= 2
    return proba[:, 0]


def replace_labels(view):
    view.y_labeled[0] = view.y_labeled[1]
    return view.proba[:, 0]


def replace_proba(view):
    view.proba = view.proba[:, ::-1]
    return view.proba[:, 0]


@pytest.mark.parametrize("strategy", [scale_in_place, replace_labels, replace_proba])
def test_a_strategy_that_changes_its_view_is_named(strategy):
    learner = ActiveLearner(LogisticRegression(), strategy).fit(X[SEED], y[SEED])
    message = f"^strategy '<function {strategy.__name__} .* changes its view, .*Work on"
    with pytest.raises(ValueError, match=message):
        learner.query(X, 2)


def test_a_strategy_in_a_wrapper_that_changes_its_view_is_named():
    strategy = Subsample(scale_in_place, sample_size=3)
    learner = ActiveLearner(LogisticRegression(), strategy).fit(X[SEED], y[SEED])
    with pytest.raises(ValueError, match=r"strategy 'Subsample.* changes its view"):
        learner.query(X, 2)


CONTAINERS = {
    "list": list,
    "rows": lambda texts: [[text] for text in texts],
    "pandas": pd.Series,
    "polars": pl.Series,
    "frame": lambda texts: pd.DataFrame({"text": texts}),
    "sparse": lambda texts: sparse.lil_array([[len(text)] for text in texts]),
}


@pytest.mark.parametrize("candidates", [None, [0, 2]])
@pytest.mark.parametrize("convert", CONTAINERS.values(), ids=CONTAINERS)
def test_a_strategy_cannot_change_the_pool(convert, candidates):
    def change(view):
        rows = getattr(view.X, "iloc", view.X)
        if isinstance(rows, list) and isinstance(rows[0], list):
            rows = rows[0]
        rows[0] = 0 if sparse.issparse(rows) else "changed"
        return np.zeros(len(view))

    pool = convert(["one", "two", "three"])
    learner = ActiveLearner(LogisticRegression(), cold_start=change)
    with suppress(ValueError):  # a CSR matrix is read-only, the others are copies
        learner.query(pool, candidates=candidates)
    assert str(pool) == str(convert(["one", "two", "three"]))


@pytest.mark.parametrize("attribute", ["requires", "optional", "targets"])
@pytest.mark.parametrize("names", ["proba", ["proba"]])
def test_what_a_strategy_declares_is_a_set_of_names(attribute, names):
    declaring = type("Declaring", (Nonsense,), {attribute: names})([0])
    message = f"^`{attribute}` must be a frozenset of names, got .*proba"
    for strategy in (declaring, Subsample(declaring)):
        learner = make(strategy).fit(X[SEED], y[SEED])
        with pytest.raises(TypeError, match=message):
            learner.query(X, 1)


class WritesIntoInput(LogisticRegression):
    """Model that fails on a pool that cannot be written to."""

    def predict_proba(self, X):
        X[0] = 0
        return super().predict_proba(X)


def test_a_model_that_writes_into_a_locked_pool_is_no_fault_of_the_strategy():
    learner = ActiveLearner(WritesIntoInput(), "entropy").fit(X[SEED], y[SEED])
    locked = np.array(X)
    locked.flags.writeable = False
    with pytest.raises(ValueError, match=r"^assignment destination is read-only$"):
        learner.query(locked, 2)


def _columns_of(names):
    return lambda rows: pd.DataFrame(rows[:, : len(names)], columns=list(names))


@pytest.mark.parametrize("strategy", ["random", "coreset", "committee", "uherding"])
@pytest.mark.parametrize(
    ("labeled", "pool", "message"),
    [
        (_columns_of("abc"), _columns_of("cba"), "columns of 'X' differ .*'a', 'b'"),
        (_columns_of("abc"), _columns_of("abd"), "columns of 'X' differ"),
        (lambda rows: rows, lambda rows: rows[:, 1:], "another number of columns"),
        (sparse.csr_array, lambda rows: rows[:, 1:], "another number of columns"),
    ],
    ids=["reordered", "renamed", "narrower", "sparse"],
)
def test_a_pool_has_the_columns_of_the_labeled_items(strategy, labeled, pool, message):
    rows = np.random.default_rng(0).normal(size=(30, 3))
    learner = ActiveLearner(LogisticRegression(), strategy, random_state=0)
    learner.fit(labeled(rows[:10]), rows[:10, 0] > 0)
    with pytest.raises(ValueError, match=message):
        learner.query(pool(rows[10:]), 2)
    assert len(learner.query(labeled(rows[10:]), 2)) == 2


@pytest.mark.parametrize("strategy", ["random", "coreset", "margin"])
def test_a_pipeline_may_find_its_columns_by_their_names(strategy):
    rows = _columns_of("abc")(np.random.default_rng(0).normal(size=(30, 3)))
    columns = make_column_transformer(("passthrough", ["a", "b", "c"]))
    model = make_pipeline(columns, LogisticRegression())
    learner = ActiveLearner(model, strategy, random_state=0)
    learner.fit(rows[:10], rows["a"][:10] > 0)
    expected = learner.query(rows[10:], 3)
    for pool in (rows[["c", "b", "a"]], rows.assign(number=range(30))):
        np.testing.assert_array_equal(learner.query(pool[10:], 3), expected)


@pytest.mark.parametrize(
    "strategy", ["coreset", "one_shot", "preclustering", "cal", "density", "uherding"]
)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_strategy_that_compares_items_refuses_missing_numbers(strategy, bad):
    rows = np.random.default_rng(0).normal(size=(40, 3))
    forest = RandomForestClassifier(5, random_state=0)
    learner = ActiveLearner(forest, strategy, random_state=0)
    learner.fit(rows[:10], rows[:10, 0] > 0)
    rows[20, 0] = bad
    with pytest.raises(ValueError, match=r"X contains (NaN|infinity)"):
        learner.query(rows[10:], 2)


@pytest.mark.parametrize("n_classes", [3, 4])
def test_decisions_about_pairs_of_classes_are_no_scores(n_classes):
    rows = np.random.default_rng(0).normal(size=(60, 2))
    classes = np.arange(60) % n_classes
    model = SVC(decision_function_shape="ovo")
    learner = ActiveLearner(model, "margin").fit(rows, classes)
    with pytest.raises(TypeError, match="Use decision_function_shape='ovr'"):
        learner.query(rows, 2)
