"""The adapter for scikit-activeml, by stand-ins for its strategies.

The package is no test dependency: it needs newer versions of numpy and scipy than
skactive does. So the adapter's own rules are tested with stand-ins that have the same
signatures, everywhere. `test_skactiveml_package.py` needs the package.
"""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, save
from skactive.strategies import FromSkactiveml, Subsample
from skactive.testing import check_strategy

from ._helpers import (
    CODES,
    POOL,
    SEED,
    TARGETS,
    ClassesRecorder,
    EnsembleRecorder,
    HandsOn,
    ModelRecorder,
    Recorder,
    TheirClassifier,
    X,
    Y,
    pick,
)


@pytest.fixture(autouse=True)
def calls(monkeypatch):
    monkeypatch.setattr(Recorder, "calls", [])
    return Recorder.calls


def test_the_query_gets_labeled_rows_then_candidates(calls):
    picks = pick(FromSkactiveml(Recorder()), 3)
    assert picks.tolist() == [37, 38, 39]
    (call,) = calls
    np.testing.assert_array_equal(call["X"], np.vstack([X, POOL]))
    np.testing.assert_array_equal(call["y"], [*CODES, *[np.nan] * len(POOL)])
    np.testing.assert_array_equal(call["candidates"], np.arange(15, 55))
    assert type(call["batch_size"]) is int


@pytest.mark.parametrize("names", [["c", "a", "b"], [7, -2, 0], ["b", "a", "c"]])
def test_labels_become_the_numbers_of_their_classes(calls, names):
    y = np.array(names)[CODES]
    pick(FromSkactiveml(Recorder()), y=y)
    codes = calls[0]["y"][:15].astype(int)
    assert np.sort(names)[codes].tolist() == y.tolist()


def test_before_any_label_features_are_enough(calls):
    learner = ActiveLearner(
        LogisticRegression(), cold_start=FromSkactiveml(Recorder()), random_state=0
    )
    assert learner.query(POOL, 2).tolist() == [38, 39]
    np.testing.assert_array_equal(calls[0]["X"], POOL)
    assert np.isnan(calls[0]["y"]).all()


def test_labels_of_one_class_are_numbered_without_a_model(calls):
    learner = ActiveLearner(
        LogisticRegression(), cold_start=FromSkactiveml(Recorder()), random_state=0
    )
    learner.fit(X[:3], ["a"] * 3).query(POOL, 2)
    assert calls[0]["y"][:3].tolist() == [0, 0, 0]


def test_a_strategy_that_wants_a_model_says_so_before_there_is_one():
    strategy = FromSkactiveml(ModelRecorder())
    learner = ActiveLearner(LogisticRegression(), cold_start=strategy)
    with pytest.raises(TypeError, match=r"needs .*, and there is no|needs labeled"):
        learner.query(POOL, 2)


def test_what_is_required_follows_the_query_and_what_is_given():
    assert FromSkactiveml(Recorder()).requires == {"features"}
    assert FromSkactiveml(Recorder()).optional == {"labeled"}
    needs = {"features", "labeled", "proba"}
    assert FromSkactiveml(ModelRecorder()).requires == needs
    assert FromSkactiveml(HandsOn(ModelRecorder())).requires == needs
    assert FromSkactiveml(EnsembleRecorder()).requires == needs
    assert FromSkactiveml(ModelRecorder()).optional == set()
    given = FromSkactiveml(ModelRecorder(), clf=TheirClassifier())
    assert given.requires == {"features"}
    given = FromSkactiveml(ModelRecorder(), query_params={"clf": 3})
    assert given.requires == {"features"}


def test_a_model_of_theirs_is_cloned_seeded_and_told_of_the_labels(calls):
    clf = TheirClassifier(classes=["low", "mid", "top"])
    pick(FromSkactiveml(ModelRecorder(), clf=clf))
    passed = calls[0]["clf"]
    assert passed is not clf
    assert passed.classes == [0, 1, 2]
    assert np.isnan(passed.missing_label)
    assert isinstance(passed.random_state, int)
    assert calls[0]["fit_clf"] is True
    assert clf.get_params() == TheirClassifier(["low", "mid", "top"]).get_params()


def test_an_ensemble_is_a_list_or_one_model(calls):
    members = [TheirClassifier(), TheirClassifier()]
    pick(FromSkactiveml(EnsembleRecorder(), ensemble=members))
    pick(FromSkactiveml(EnsembleRecorder(), ensemble=members[0]))
    several, single = (call["ensemble"] for call in calls)
    assert [type(member) for member in several] == [TheirClassifier] * 2
    assert several[0].random_state != several[1].random_state
    assert type(single) is TheirClassifier


def test_query_params_are_passed_and_win(calls):
    clf = TheirClassifier()
    weights = np.ones(55)
    params = {"clf": clf, "fit_clf": False, "sample_weight": weights}
    pick(FromSkactiveml(ModelRecorder(), query_params=params))
    assert calls[0]["clf"] is clf
    assert calls[0]["fit_clf"] is False
    assert calls[0]["sample_weight"] is weights


def test_a_wrapper_hands_the_models_on(calls):
    strategy = FromSkactiveml(HandsOn(ModelRecorder()), clf=TheirClassifier())
    pick(strategy)
    assert type(calls[0]["clf"]) is TheirClassifier
    inner = calls[0]["strategy"].query_strategy
    assert isinstance(inner.random_state, int)
    assert np.isnan(inner.missing_label)


def test_each_query_gets_a_seeded_clone(calls):
    given = Recorder(missing_label="none")
    strategy = FromSkactiveml(given)
    for seed in (1, 1, 2):
        pick(strategy, seed=seed)
    seeds = [call["strategy"].random_state for call in calls]
    assert seeds[0] == seeds[1] != seeds[2]
    assert all(call["strategy"] is not given for call in calls)
    assert (given.random_state, given.missing_label) == (None, "none")
    pick(FromSkactiveml(Recorder(random_state=3)))
    assert calls[-1]["strategy"].random_state == 3


def test_classes_of_the_strategy_give_the_numbers(calls):
    pick(FromSkactiveml(ClassesRecorder(["top", "new", "low", "mid"])))
    (call,) = calls
    assert call["strategy"].classes == [0, 1, 2, 3]
    assert call["y"][:15].tolist() == [{"low": 2, "mid": 3, "top": 0}[y] for y in Y]


def test_a_label_that_the_classes_lack_is_named():
    with pytest.raises(ValueError, match=r"labels hold 'mid'.*ClassesRecorder.* lack"):
        pick(FromSkactiveml(ClassesRecorder(["low", "top"])))


def test_a_class_that_was_taught_without_training_gets_a_number(calls):
    learner = ActiveLearner(LogisticRegression(), FromSkactiveml(Recorder()))
    learner.fit(X, Y).teach(X[:1], ["brand new"], refit=False)
    learner.query(POOL, 2)
    assert calls[0]["y"][:16].tolist() == [*CODES, 3]


def test_targets_of_a_regression_stay_numbers(calls):
    pick(FromSkactiveml(Recorder()), model=LinearRegression(), y=TARGETS)
    np.testing.assert_array_equal(calls[0]["y"][:15], TARGETS)


def test_texts_come_as_what_the_pipeline_makes_of_them(calls):
    model = make_pipeline(TfidfVectorizer(), TruncatedSVD(2), LogisticRegression())
    texts, pool = ["ab cd", "cd ef", "ab ef"], ["ef gh", "ab ab", "cd"]
    learner = ActiveLearner(model, FromSkactiveml(Recorder()), random_state=0)
    assert learner.fit(texts, ["a", "b", "b"]).query(pool, 1).tolist() == [2]
    features = learner.estimator_[:-1].transform(texts + pool)
    np.testing.assert_allclose(calls[0]["X"], features)


@pytest.mark.parametrize("as_sparse", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_features_are_refused(as_sparse):
    with pytest.raises(TypeError, match="no sparse features"):
        pick(FromSkactiveml(Recorder()), X_pool=as_sparse(POOL), X_labeled=as_sparse(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_floats_keep_their_width(calls, dtype):
    rows, pool = (10 * X).astype(dtype), (10 * POOL).astype(dtype)
    pick(FromSkactiveml(Recorder()), X_pool=pool, X_labeled=rows)
    expected = np.float64 if dtype is np.int64 else dtype
    assert calls[0]["X"].dtype == expected


def _query_of_a_stream(self, candidates, return_utilities=False):
    """Take no pool."""


def _query_of_several(self, X, y, candidates=None, annotators=None, batch_size=1):
    """Ask several annotators."""


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (Recorder, "must be an instance of a pool strategy"),
        ("entropy", "must be an instance of a pool strategy .* got 'entropy'"),
        (None, "must be an instance"),
        (
            type("Stream", (Recorder,), {"query": _query_of_a_stream})(),
            "pool and one annotator, got Stream.* takes candidates, return_utilities",
        ),
        (
            type("Several", (Recorder,), {"query": _query_of_several})(),
            "pool and one annotator, got Several",
        ),
    ],
    ids=["class", "name", "none", "stream", "annotators"],
)
def test_anything_else_is_refused(given, match):
    learner = ActiveLearner(LogisticRegression(), FromSkactiveml(given))
    with pytest.raises(TypeError, match=match):
        learner.fit(X, Y)


@pytest.mark.parametrize("name", ["clf", "ensemble", "discriminator", "reg"])
def test_a_model_of_no_use_is_refused(name):
    strategy = FromSkactiveml(Recorder(), **{name: TheirClassifier()})
    with pytest.raises(ValueError, match=f"'{name}' is given, .* but no model"):
        strategy.requires  # noqa: B018


def test_an_answer_with_repeats_is_refused():
    with pytest.raises(ValueError, match=r"Recorder\(.* chose a candidate more than"):
        pick(FromSkactiveml(Recorder("twice")), 2)


def test_parameters_are_nested_and_survive_copies(calls):
    strategy = FromSkactiveml(Recorder(), query_params={"return_utilities": False})
    strategy.set_params(query_strategy__random_state=9)
    for copied in (clone(strategy), pickle.loads(pickle.dumps(strategy))):
        assert copied.get_params()["query_strategy__random_state"] == 9
        assert copied.query_params == {"return_utilities": False}
        assert copied.query_strategy is not strategy.query_strategy
        assert pick(copied).tolist() == pick(strategy).tolist()


def test_a_stand_in_passes_the_kit():
    assert "check_cold_start" in check_strategy(FromSkactiveml(Recorder("drawn")))


def test_it_works_inside_another_strategy():
    strategy = Subsample(FromSkactiveml(Recorder()), sample_size=10)
    assert strategy.requires == {"features"}
    assert strategy.optional == {"labeled"}
    pick(strategy, 10)


def test_without_the_package_the_error_names_it(monkeypatch):
    for module in ("skactiveml", "skactiveml.classifier"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match="pip install scikit-activeml"):
        pick(FromSkactiveml(ModelRecorder()))


@pytest.mark.slow
def test_the_package_is_not_imported_before_it_is_used():
    code = (
        "import sys; from skactive.strategies import FromSkactiveml;"
        "import skactive.strategies._skactiveml; assert 'skactiveml' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.long
def test_it_cannot_be_saved_and_says_so(tmp_path):
    learner = ActiveLearner(LogisticRegression(), FromSkactiveml(Recorder()))
    with pytest.raises(TypeError, match="must be a registered strategy to be saved"):
        save(learner, tmp_path / "saved")


# With the package, for what the adapter makes itself


def test_the_default_ensemble_is_a_bag(calls):
    pytest.importorskip("skactiveml")
    pick(FromSkactiveml(EnsembleRecorder()))
    pick(FromSkactiveml(EnsembleRecorder()))
    pick(FromSkactiveml(EnsembleRecorder()), seed=SEED + 1)
    first, again, other = ([m.coef_ for m in c["ensemble"]] for c in calls)
    assert len(first) == 5
    assert calls[0]["fit_ensemble"] is False
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)
    assert len({coef.tobytes() for coef in first}) == 5
    full = LogisticRegression().fit(X, Y)
    for member in calls[0]["ensemble"]:
        assert member.classes_.tolist() == [0, 1, 2]
        assert not np.allclose(member.coef_, full.coef_)
        assert np.mean(member.predict(X) == CODES) > 0.5


def test_a_bag_has_each_class_in_each_sample(calls):
    pytest.importorskip("skactiveml")
    y = np.array(["a"] * 14 + ["b"])
    pick(FromSkactiveml(EnsembleRecorder()), y=y)
    for member in calls[0]["ensemble"]:
        assert member.estimator.classes_.tolist() == [0, 1]
