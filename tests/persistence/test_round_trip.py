"""What comes back is what was saved: answers, containers, types of parameters."""

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skactive import ActiveLearner, load, save
from skactive.datasets import open_pool

from ._helpers import LABELS, TEXTS, X, Y, _as_csr, _learner, _round_trip


def test_predictions_and_the_next_query_are_those_of_the_original(tmp_path):
    learner = _learner(strategy="entropy").fit(X[:8], Y[:8])
    learner.teach(X[8:12], Y[8:12])
    loaded = _round_trip(learner, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(X), learner.predict_proba(X))
    np.testing.assert_array_equal(loaded.query(X), learner.query(X))
    np.testing.assert_array_equal(loaded.y_labeled_, learner.y_labeled_)
    assert loaded.n_rounds_ == 1


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(5), 7])
def test_the_rounds_after_loading_are_those_without(tmp_path, random_state):
    learner = ActiveLearner(
        LogisticRegression(), "random", batch_size=3, random_state=random_state
    )
    learner.fit(X[:8], Y[:8])
    loaded = _round_trip(learner, tmp_path)
    for _ in range(3):
        asked = learner.query(X)
        np.testing.assert_array_equal(loaded.query(X), asked)
        for each in (learner, loaded):
            each.teach(X[asked], Y[asked])


def test_an_unfitted_learner_keeps_the_answer_of_its_cold_start(tmp_path):
    learner = ActiveLearner(LogisticRegression(), batch_size=3)
    asked = learner.query(X)  # draws a seed, as random_state is None
    np.testing.assert_array_equal(_round_trip(learner, tmp_path).query(X), asked)


def test_sample_weights_of_earlier_rounds_are_kept(tmp_path):
    learner = _learner().fit(X[:20], Y[:20], sample_weight=np.arange(1.0, 21.0))
    loaded = _round_trip(learner, tmp_path)
    np.testing.assert_array_equal(
        loaded.refit().estimator_.coef_, learner.refit().estimator_.coef_
    )


def test_labels_of_a_single_class_are_saved_with_their_dummy(tmp_path):
    loaded = _round_trip(_learner().fit(X[:2], ["a", "a"]), tmp_path)
    assert loaded.predict(X[:1]).tolist() == ["a"]


def test_a_pipeline_of_texts_comes_back_equal(tmp_path):
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXTS, LABELS)
    loaded = _round_trip(model, tmp_path)
    np.testing.assert_array_equal(
        loaded.predict_proba(TEXTS), model.predict_proba(TEXTS)
    )
    assert [name for name, _ in loaded.steps] == [name for name, _ in model.steps]


def test_unions_frozen_estimators_and_skipped_steps_come_back(tmp_path):
    union = FeatureUnion([("words", TfidfVectorizer()), ("none", "drop")])
    model = make_pipeline(union, "passthrough", LogisticRegression())
    frozen = FrozenEstimator(model.fit(TEXTS, LABELS))
    loaded = _round_trip(frozen, tmp_path)
    assert type(loaded) is FrozenEstimator
    assert loaded.predict(TEXTS).tolist() == model.predict(TEXTS).tolist()


def test_metadata_requests_come_back(tmp_path):
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        model = LogisticRegression().set_fit_request(sample_weight=True)
        learner = ActiveLearner(make_pipeline(StandardScaler(), model))
        loaded = _round_trip(learner, tmp_path)
        requests = loaded.estimator[-1].get_metadata_routing().fit.requests
    assert requests == {"sample_weight": True}
    assert model.get_metadata_routing().fit.requests == {"sample_weight": True}


def _as_list(texts):
    return list(texts)


def _as_pairs(texts):
    return [(text, "why") for text in texts]


def _as_pandas(texts):
    pd = pytest.importorskip("pandas")
    return pd.Series(texts, index=range(5, 5 + len(texts)), name="text")


def _as_object_series(texts):
    return _as_pandas(texts).astype(object)


def _as_arrow_series(texts):
    return _as_pandas(texts).astype("string[pyarrow]")


def _as_polars(texts):
    return pytest.importorskip("polars").Series("text", texts)


def _as_strings(texts):
    return np.array(texts, dtype=np.dtypes.StringDType())


def _as_objects(texts):
    return np.array(texts, dtype=object)


def _as_csr_array(texts):
    return sparse.csr_array(_as_csr(texts))


CONTAINERS = [
    _as_list,
    _as_pairs,
    np.array,
    _as_objects,
    _as_csr,
    _as_csr_array,
]


@pytest.mark.parametrize("make", CONTAINERS, ids=lambda make: make.__name__)
def test_labeled_items_keep_their_container(tmp_path, make):
    learner = _learner().teach(make(TEXTS), LABELS, refit=False)
    before = learner.X_labeled_
    after = _round_trip(learner, tmp_path).X_labeled_
    assert type(after) is type(before)
    if sparse.issparse(before):
        assert (before != after).nnz == 0
    else:
        np.testing.assert_array_equal(before, after)
        assert getattr(before, "dtype", None) == getattr(after, "dtype", None)


SERIES = [_as_strings, _as_pandas, _as_object_series, _as_arrow_series, _as_polars]


@pytest.mark.long
@pytest.mark.parametrize("make", SERIES, ids=lambda make: make.__name__)
def test_labeled_texts_of_a_series_come_back_as_a_list(tmp_path, make):
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    learner = ActiveLearner(model).fit(make(TEXTS), LABELS)
    loaded = _round_trip(learner, tmp_path)
    assert loaded.X_labeled_ == TEXTS
    for each in (learner, loaded):
        each.teach(make(["good again"]), ["+"])
    np.testing.assert_array_equal(
        loaded.predict_proba(make(TEXTS)), learner.predict_proba(make(TEXTS))
    )


def test_texts_are_saved_in_a_readable_json_file(tmp_path):
    texts = ["naïve café, 東京", "\ud83d", "\ud83d\ude00", ""]
    learner = _learner().teach(texts, [0, 1, 0, 1], refit=False)
    folder = Path(save(learner, tmp_path / "saved"))
    content = (folder / "items" / "X_labeled_.json").read_bytes()
    assert "東京".encode() in content
    assert load(folder).X_labeled_ == texts


@pytest.mark.long
@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        2**70,
        0.1,
        float("inf"),
        "text",
        Path("a/b"),
        (1, (2.5, "x")),
        [1, (2,)],
        {"a": 1, "b": (2,)},
        {"@": "tuple"},
        {1: "a", np.int64(2): "b", (3, 4): None},
        {3, 1},
        frozenset({"a"}),
        np.float32(0.1),
        np.float64("-inf"),
        np.int64(3),
        np.bool_(True),
        np.str_("x"),
    ],
    ids=repr,
)
def test_parameters_come_back_with_their_types(tmp_path, value):
    # Any parameter does: nothing looks at it before fit.
    after = _round_trip(_learner().set_params(batch_size=value), tmp_path).batch_size
    assert after == value
    assert _types(after) == _types(value)


def _types(value):
    if isinstance(value, tuple | list):
        return type(value), [_types(v) for v in value]
    if isinstance(value, dict):
        return dict, [(_types(k), _types(v)) for k, v in value.items()]
    return type(value)


def test_nan_and_negative_zero_come_back(tmp_path):
    learner = _learner().set_params(batch_size=(float("nan"), -0.0))
    nan, zero = _round_trip(learner, tmp_path).batch_size
    assert np.isnan(nan)
    assert np.signbit(zero)


@pytest.mark.parametrize(
    "estimator",
    [
        CalibratedClassifierCV(LinearSVC(), cv=2),
        CalibratedClassifierCV(LinearSVC(), method="isotonic", cv=2),
        VotingClassifier([("lr", LogisticRegression())]),
        StackingClassifier([("lr", LogisticRegression())], cv=2),
    ],
    ids=["sigmoid", "isotonic", "voting", "stacking"],
)
def test_plain_private_types_of_scikit_learn_come_back(tmp_path, estimator):
    loaded = _round_trip(estimator.fit(X, Y), tmp_path)
    np.testing.assert_array_equal(loaded.predict(X), estimator.predict(X))


def test_a_forest_comes_back_where_its_trees_are_trusted(tmp_path):
    forest = RandomForestClassifier(3, random_state=0).fit(X, Y)
    trusted = ["sklearn.tree._tree.Tree"]
    folder = save(forest, tmp_path / "saved", trusted=trusted)
    loaded = load(folder, trusted=trusted)
    np.testing.assert_array_equal(loaded.predict_proba(X), forest.predict_proba(X))
    with pytest.raises(ValueError, match=r"pass trusted=\['sklearn.tree._tree.Tree'\]"):
        load(folder)


def test_a_learner_is_saved_without_its_data(tmp_path):
    learner = ActiveLearner(LogisticRegression(), random_state=0)
    learner.fit(X[:20], Y[:20], sample_weight=np.ones(20))
    folder = save(learner, tmp_path / "saved", data=False)
    assert not (tmp_path / "saved" / "arrays").exists()
    loaded = load(folder)
    np.testing.assert_array_equal(loaded.predict(X), learner.predict(X))
    with pytest.raises(ValueError, match="holds no labels"):
        loaded.teach(X[20:22], Y[20:22])
    with pytest.raises(NotFittedError, match="no labels to refit on"):
        loaded.refit()
    assert loaded.fit(X[:20], Y[:20]).teach(X[20:22], Y[20:22]).n_rounds_ == 1


@pytest.mark.parametrize("strategy", ["coreset", "seals"])
def test_what_queries_remember_is_not_saved(tmp_path, strategy):
    learner = _learner(strategy=strategy).fit(X[:20], Y[:20])
    asked = learner.query(X)
    loaded = _round_trip(learner, tmp_path)
    np.testing.assert_array_equal(loaded.query(X), asked)


def test_the_labeled_texts_of_a_pool_come_back_as_a_list(tmp_path):
    texts = tmp_path / "texts.csv"
    texts.write_text("text\nbad\ngood\nworse\nbetter\n")
    learner = ActiveLearner(make_pipeline(TfidfVectorizer(), LogisticRegression()))
    learner.fit(open_pool(texts, "text")[1:], [1, 0, 1])
    loaded = _round_trip(learner, tmp_path)
    assert loaded.X_labeled_ == ["good", "worse", "better"]
    assert loaded.predict(["worse"]) == learner.predict(["worse"])
