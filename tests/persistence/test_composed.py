"""Saving learners whose strategy is made of strategies, estimators or data."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from skactive import ActiveLearner, load, registry, save
from skactive.strategies import (
    DAL,
    GORAL,
    SEALS,
    ClassBalanced,
    Committee,
    CoreSet,
    Entropy,
    Margin,
    Prefilter,
    Subsample,
)

X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, "warm", "cold")
WORDS = np.random.default_rng(1).integers(9, size=(60, 4))
TEXTS = [
    " ".join(f"word{i}" for i in row) + (" hot" if y == "warm" else " ice")
    for row, y in zip(WORDS.tolist(), Y, strict=True)
]

COMPOSED = [
    Subsample(SEALS(Margin(), n_neighbors=5), sample_size=30),
    Prefilter("entropy", CoreSet()),
    Prefilter(Subsample("margin", sample_size=0.5), "coreset", factor=2.5),
    ClassBalanced(Committee(n_members=3)),
    Committee([LogisticRegression(C=2.0), ("tree", DecisionTreeClassifier())]),
    Committee(DecisionTreeClassifier(max_depth=2)),
    DAL(estimator=LogisticRegression(class_weight="balanced")),
    DAL(estimator=make_pipeline(TfidfVectorizer(), LogisticRegression())[-1:]),
]


def _round_trip(strategy, tmp_path, items=X, model=None):
    """Fit, save and load a learner; give it before and after."""
    learner = ActiveLearner(
        LogisticRegression() if model is None else model,
        strategy,
        batch_size=4,
        random_state=3,
    ).fit(items[:20], Y[:20])
    folder = save(learner, tmp_path / "saved")
    return learner, load(folder), Path(folder)


def _is_same(a, b):
    """Whether two parameters are equal, of equal types all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, BaseEstimator):
        return _is_same(a.get_params(deep=False), b.get_params(deep=False))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_is_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_is_same, a, b))
    if sparse.issparse(a):
        return (a != b).nnz == 0
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if hasattr(a, "equals"):
        return a.equals(b)
    return a == b


@pytest.mark.long
@pytest.mark.parametrize("strategy", COMPOSED, ids=str)
def test_a_composed_strategy_comes_back_and_asks_the_same(tmp_path, strategy):
    learner, loaded, _ = _round_trip(strategy, tmp_path)
    assert _is_same(loaded.strategy, strategy)
    assert _is_same(loaded.strategy_, strategy)
    np.testing.assert_array_equal(loaded.query(X[20:]), learner.query(X[20:]))
    asked = learner.query(X[20:])
    for each in (learner, loaded):
        each.teach(X[20:][asked], Y[20:][asked])
    np.testing.assert_array_equal(loaded.query(X[20:]), learner.query(X[20:]))


def test_the_comparison_of_these_tests_finds_differences():
    assert not _is_same(Subsample(SEALS(Margin())), Subsample(SEALS(Entropy())))
    assert not _is_same(GORAL(y_val=np.array([1])), GORAL(y_val=np.array([2])))
    assert not _is_same(Committee([DecisionTreeClassifier()]), Committee([]))


def _as_tuple(texts):
    return tuple(texts)


def _as_objects(texts):
    return np.array(texts, dtype=object)


def _as_series(texts):
    return pytest.importorskip("pandas").Series(texts, name="text")


@pytest.mark.long
@pytest.mark.parametrize("make", [list, _as_tuple, _as_objects, np.array])
def test_texts_and_labels_to_validate_on_come_back(tmp_path, make):
    strategy = GORAL("loss", X_val=make(TEXTS[40:]), y_val=Y[40:])
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    learner, loaded, _ = _round_trip(strategy, tmp_path, TEXTS, model)
    assert _is_same(loaded.strategy, strategy)
    np.testing.assert_array_equal(loaded.query(TEXTS[20:]), learner.query(TEXTS[20:]))


def test_a_series_to_validate_on_comes_back_as_a_list(tmp_path):
    strategy = GORAL("loss", X_val=_as_series(TEXTS[40:]), y_val=Y[40:])
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    learner, loaded, _ = _round_trip(strategy, tmp_path, TEXTS, model)
    assert loaded.strategy.X_val == list(TEXTS[40:])
    np.testing.assert_array_equal(loaded.query(TEXTS[20:]), learner.query(TEXTS[20:]))


@pytest.mark.parametrize("convert", [np.float32, sparse.csr_array], ids=["f4", "csr"])
def test_rows_to_validate_on_come_back(tmp_path, convert):
    strategy = GORAL("loss", X_val=convert(X[40:]), y_val=Y[40:].tolist())
    items = convert(X)
    learner, loaded, _ = _round_trip(strategy, tmp_path, items)
    assert _is_same(loaded.strategy, strategy)
    np.testing.assert_array_equal(loaded.query(items), learner.query(items))


@pytest.mark.long
@pytest.mark.parametrize("strategy", COMPOSED, ids=str)
def test_nothing_is_pickled(tmp_path, strategy):
    *_, folder = _round_trip(strategy, tmp_path)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} <= {".json", ".md", ".npy", ".skops"}
    for path in files:
        if path.suffix == ".npy":
            np.load(path, allow_pickle=False)


# Names inside a strategy


def _by_first(view):
    return -view.proba[:, 0]


@pytest.fixture
def registered():
    registry.register("by_first", _by_first)
    yield
    if "by_first" in registry.get_strategy_names():
        registry.unregister("by_first")


def test_a_name_inside_a_strategy_is_saved_with_its_distribution(tmp_path):
    *_, folder = _round_trip(Prefilter("entropy", CoreSet()), tmp_path)
    node = json.loads((folder / "object.json").read_text())["object"]
    first = node["params"]["strategy"]["params"]["first"]
    assert (first["value"], first["dist"]) == ("entropy", "skactive")


def test_an_unknown_name_inside_a_strategy_is_refused(tmp_path, registered):
    learner, loaded, folder = _round_trip(
        Subsample("by_first", sample_size=9), tmp_path
    )
    np.testing.assert_array_equal(loaded.query(X[20:]), learner.query(X[20:]))
    registry.unregister("by_first")
    match = r"'by_first' of this session at 'strategy\.strategy'.* Register it"
    with pytest.raises(ValueError, match=match):
        load(folder)


# What is refused


class Unknown(ClassifierMixin, BaseEstimator):
    """An estimator that skops does not trust."""


def _other(view):
    return -view.proba[:, 1]


@pytest.mark.parametrize(
    ("strategy", "match"),
    [
        (Subsample(_other), r"'strategy\.strategy' must be a registered .* '_other'"),
        (
            Subsample(Prefilter(second=len)),
            r"'strategy\.strategy\.second' must be a registered .* function 'len'",
        ),
        (DAL(Unknown()), r"'strategy\.estimator' must hold only types that skops"),
        (
            Committee([LogisticRegression(), ("odd", Unknown())]),
            r"'strategy\.estimators\[1\]\[1\]' must hold only types that skops",
        ),
        (
            GORAL(X_val=(text for text in TEXTS)),
            r"'strategy\.X_val' cannot be saved without pickle",
        ),
    ],
    ids=["function", "builtin", "estimator", "in_a_list", "generator"],
)
def test_what_cannot_be_saved_is_named_by_its_place(tmp_path, strategy, match):
    learner = ActiveLearner(LogisticRegression(), strategy)
    with pytest.raises(TypeError, match=match):
        save(learner, tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []


# Copies in other processes


@pytest.mark.slow
def test_a_search_over_instances_in_other_processes():
    strategies = [
        Subsample(SEALS(Margin(), n_neighbors=5), sample_size=30),
        Prefilter("entropy", CoreSet()),
        Committee([LogisticRegression(), ("tree", DecisionTreeClassifier())]),
        GORAL("loss", X_val=X[50:], y_val=Y[50:]),
    ]
    learner = ActiveLearner(LogisticRegression(), random_state=0)
    grid = {"strategy": strategies, "estimator__C": [0.1]}
    searches = [
        GridSearchCV(clone(learner), grid, cv=2, n_jobs=n_jobs).fit(X, Y)
        for n_jobs in (1, 2)
    ]
    scores = [search.cv_results_["mean_test_score"] for search in searches]
    assert len(scores[0]) == 4
    np.testing.assert_array_equal(*scores)
    best = searches[1].best_estimator_
    np.testing.assert_array_equal(
        best.query(X, 5), searches[0].best_estimator_.query(X, 5)
    )


def _ask(strategy):
    learner = ActiveLearner(LogisticRegression(), strategy, random_state=0)
    return learner.fit(X[:20], Y[:20]).query(X[20:], 5)


@pytest.mark.slow
def test_other_processes_ask_the_same():
    from joblib import Parallel, delayed

    asked = Parallel(n_jobs=2)(delayed(_ask)(s) for s in COMPOSED[:5])
    for strategy, picks in zip(COMPOSED, asked, strict=False):
        np.testing.assert_array_equal(picks, _ask(strategy))
