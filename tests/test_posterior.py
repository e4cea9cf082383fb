"""Where posterior draws come from, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skactive.ensembles import _choose_members
from skactive.posterior import check_can_sample, sample_proba, sampler
from skactive.testing._models import GivenProba
from skactive.view import PoolView

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = np.array(["maybe", "no", "yes"])[(X[:, :3] + RNG.normal(size=(60, 3))).argmax(1)]
ASKED = RNG.normal(size=(9, 4))

ENSEMBLES = [
    RandomForestClassifier(12, max_depth=3, random_state=0),
    ExtraTreesClassifier(12, max_depth=3, random_state=0),
    BaggingClassifier(LogisticRegression(), 12, random_state=0),
    BaggingClassifier(n_estimators=12, max_features=0.5, random_state=0),
    BaggingClassifier(LinearSVC(), 12, random_state=0),
    BaggingClassifier(KNeighborsClassifier(1), 12, max_samples=3, random_state=0),
    VotingClassifier(
        [("lr", LogisticRegression()), ("nb", GaussianNB()), ("no", "drop")],
        voting="soft",
    ),
    CalibratedClassifierCV(LinearSVC(), cv=4, ensemble=True),
    CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=3, ensemble=True),
]
each_ensemble = pytest.mark.parametrize("ensemble", ENSEMBLES, ids=str)


def members_of(ensemble):
    """Probabilities of each member, with nothing left to align, by hand."""
    result = []
    if isinstance(ensemble, CalibratedClassifierCV):
        return [m.predict_proba(ASKED) for m in ensemble.calibrated_classifiers_]
    for i, member in enumerate(ensemble.estimators_):
        rows = ASKED
        if isinstance(ensemble, BaggingClassifier):
            rows = ASKED[:, ensemble.estimators_features_[i]]
        proba = np.zeros((len(ASKED), len(ensemble.classes_)))
        for n, row in enumerate(rows):
            if hasattr(member, "predict_proba"):
                values = member.predict_proba(row[None])[0]
                for label, value in zip(member.classes_, values, strict=True):
                    proba[n, int(label)] = value
            else:
                proba[n, int(member.predict(row[None])[0])] = 1
        result.append(proba)
    return result


def sort_draws(draws):
    return np.array(sorted(np.asarray(draws).tolist()))


# Ensembles.


@each_ensemble
def test_as_many_draws_as_members_are_the_members(ensemble):
    ensemble.fit(X, Y)
    expected = np.stack(members_of(ensemble))
    draws = sample_proba(ensemble, ASKED, len(expected), 0)
    assert_allclose(sort_draws(draws.swapaxes(0, 1)), sort_draws(expected), atol=1e-6)
    assert_allclose(draws.mean(axis=1), ensemble.predict_proba(ASKED), atol=1e-6)


@each_ensemble
@pytest.mark.parametrize("n_draws", [1, 3, 31])
def test_each_draw_is_one_member_for_all_items(ensemble, n_draws):
    ensemble.fit(X, Y)
    members = members_of(ensemble)
    draws = sample_proba(ensemble, ASKED, n_draws, 0)
    assert draws.shape == (9, n_draws, 3)
    counts = np.zeros(len(members), dtype=int)
    for t in range(n_draws):
        same = [np.allclose(draws[:, t], member, atol=1e-6) for member in members]
        assert any(same)
        counts[np.argmax(same)] += 1
    if len({str(m) for m in members}) == len(members):
        assert counts.max() - counts.min() <= 1


def test_a_member_without_a_class_gives_it_no_probability():
    ensemble = ENSEMBLES[5].fit(X, Y)
    assert any(len(m.classes_) < 3 for m in ensemble.estimators_)
    draws = sample_proba(ensemble, ASKED, 12, 0)
    assert_allclose(draws.sum(axis=2), 1)
    assert (draws == 0).any()


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("ensemble", [*ENSEMBLES[:5], ENSEMBLES[7]], ids=str)
def test_ensembles_take_sparse_features(ensemble, kind):
    ensemble.fit(X, Y)
    dense = sample_proba(ensemble, ASKED, 5, 0)
    assert_allclose(sample_proba(ensemble, kind(ASKED), 5, 0), dense, atol=1e-6)


def test_features_that_are_missing_are_what_the_forest_makes_of_them():
    gaps = np.where(np.arange(240).reshape(60, 4) % 7 == 0, np.nan, X)
    forest = RandomForestClassifier(5, random_state=0).fit(gaps, Y)
    draws = sample_proba(forest, gaps, 5, 0)
    assert_allclose(draws.mean(axis=1), forest.predict_proba(gaps))


def test_weights_of_votes_are_how_often_a_member_comes():
    members = [(str(c), DummyClassifier(strategy="constant")) for c in range(2)]
    votes = VotingClassifier(
        [("prior", DummyClassifier()), ("nb", GaussianNB()), ("lr", "drop"), *members],
        voting="soft",
        weights=[3, 1, 5, 0, 0],
    )
    votes.set_params(**{"0": GaussianNB(var_smoothing=1), "1": GaussianNB()}).fit(X, Y)
    draws = sample_proba(votes, ASKED, 8, 0)
    prior = votes.estimators_[0].predict_proba(ASKED)
    assert np.isclose(draws[0], prior[0]).all(axis=1).sum() == 6
    assert_allclose(draws.mean(axis=1), votes.predict_proba(ASKED))


def test_members_are_chosen_evenly_and_by_chance():
    rng = np.random.default_rng(0)
    totals = np.zeros(5)
    for _ in range(500):
        chosen = _choose_members(np.ones(5), 7, rng)
        counts = np.bincount(chosen, minlength=5)
        assert counts.sum() == 7
        assert set(counts) == {1, 2}
        totals += counts
    assert_allclose(totals / 500, 7 / 5, atol=0.1)
    by_weight = [
        np.bincount(_choose_members(np.array([5.0, 4.0, 1.0]), 2, rng), minlength=3)
        for _ in range(3000)
    ]
    assert_array_equal(np.unique(np.sum(by_weight, axis=1)), [2])
    assert np.mean(by_weight, axis=0)[0] == pytest.approx(1.0)


# The estimator's own draws.


class Own(ClassifierMixin, BaseEstimator):
    """Notes how it was asked."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.asked_ = []
        return self

    def sample_proba(self, X, n_draws=3, random_state=None):
        self.asked_.append((n_draws, random_state))
        return np.full((len(X), n_draws, 2), 0.5)


@pytest.mark.parametrize("wrap", [lambda model: model, FrozenEstimator, make_pipeline])
def test_an_estimator_may_draw_by_itself(wrap):
    own = Own().fit([[0]], [0])
    model = wrap(own)
    check_can_sample(model)
    assert sample_proba(model, ASKED, 4, 7, X_train=X, y_train=Y).shape == (9, 4, 2)
    draw = sampler(model, 6, np.random.RandomState(0))
    draw(ASKED[:2])
    draw(ASKED[2:])
    (first, *rest) = own.asked_
    assert first == (4, 7)
    assert rest[0] == rest[1]  # the same models for both chunks
    assert isinstance(rest[0][1], int)


def test_own_draws_in_chunks_are_those_of_the_whole():
    rows = np.hstack([RNG.dirichlet(np.ones(3), 20), RNG.normal(size=(20, 2))])
    model = GivenProba().fit(rows, np.arange(20) % 3)
    draw = sampler(model, 5, 0)
    parts = np.concatenate([draw(rows[:3]), draw(rows[3:])])
    assert_array_equal(parts, sample_proba(model, rows, 5, 0))


# Pipelines and other wraps.


def test_steps_before_the_last_are_applied_to_both():
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X * 100, Y)
    scaled = StandardScaler().fit(X * 100).transform
    bare = LogisticRegression().fit(scaled(X * 100), Y)
    expected = sample_proba(bare, scaled(ASKED), 5, 0, X_train=scaled(X * 100))
    found = sample_proba(model, ASKED, 5, 0, X_train=X * 100, y_train=Y)
    assert_allclose(found, expected, rtol=1e-9)
    draw = sampler(model, 5, 0, X_train=X * 100)
    assert_allclose(draw(ASKED), expected, rtol=1e-9)
    nested = make_pipeline(FrozenEstimator(make_pipeline(model)))
    found = sample_proba(nested, ASKED, 5, 0, X_train=X * 100)
    assert_allclose(found, expected, rtol=1e-9)


def test_a_search_stands_for_its_best_estimator():
    search = GridSearchCV(LogisticRegression(), {"C": [0.01, 1.0]}, cv=2).fit(X, Y)
    assert_array_equal(
        sample_proba(search, ASKED, 5, 0, X_train=X),
        sample_proba(search.best_estimator_, ASKED, 5, 0, X_train=X),
    )


def test_texts_pass_through_a_pipeline():
    texts = ["a good film", "a bad film", "good", "bad", "good good", "so bad"] * 3
    labels = ["+", "-"] * 9
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, labels)
    draws = sample_proba(model, ["good", "?"], 2000, 0, X_train=texts, y_train=labels)
    assert_allclose(draws.mean(axis=1), model.predict_proba(["good", "?"]), atol=0.05)
    forest = make_pipeline(TfidfVectorizer(), RandomForestClassifier(5)).fit(
        texts, labels
    )
    assert sample_proba(forest, texts, 7, 0).shape == (18, 7, 2)


def test_a_view_has_draws_of_what_it_knows():
    model = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced"))
    model.fit(X, Y)
    view = PoolView(ASKED, estimator=model, X_labeled=X, y_labeled=Y)
    draws = view.draws(5000)
    reduced = view.map_draws(lambda part: part.mean(axis=1), 5000)
    assert_allclose(reduced, draws.mean(axis=1), rtol=1e-12)
    found = sample_proba(model, ASKED, 5000, 0, X_train=X, y_train=Y)
    assert_allclose(draws.mean(axis=1), found.mean(axis=1), atol=0.02)
    assert_allclose(draws.std(axis=1), found.std(axis=1), atol=0.02)


# Random numbers.


@pytest.mark.parametrize("model", [LogisticRegression(), ENSEMBLES[0]], ids=str)
def test_draws_follow_the_seed_and_nothing_else(model):
    model.fit(X, Y)
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002

    def draw(seed):
        return sample_proba(model, ASKED, 5, seed, X_train=X)

    assert_array_equal(draw(3), draw(3))
    assert (draw(3) != draw(4)).any()
    assert (draw(None) != draw(None)).any()
    state = np.random.RandomState(0)
    assert (draw(state) != draw(state)).any()
    assert_array_equal(draw(np.random.RandomState(0)), draw(np.random.RandomState(0)))
    assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


# What the rows of the training stand for.


def test_the_items_stand_in_for_the_training_with_a_warning():
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    with pytest.warns(UserWarning, match="X_train is None.*Pass X_train and y_train"):
        draws = sample_proba(model, X, 5, 0)
    assert_allclose(draws, sample_proba(model, X, 5, 0, X_train=X), rtol=1e-9)


def test_nothing_else_warns(recwarn):
    forest, linear = ENSEMBLES[0].fit(X, Y), LogisticRegression().fit(X, Y)
    recwarn.clear()
    sample_proba(forest, ASKED, 5, 0)
    sample_proba(linear, ASKED, 5, 0, X_train=X)
    assert [str(warning.message) for warning in recwarn] == []


def test_models_to_apply_later_need_the_training():
    with pytest.raises(ValueError, match="X_train is needed: LogisticRegression"):
        sampler(LogisticRegression().fit(X, Y), 5, 0)


# What is refused.

VOTES = [("lr", LogisticRegression()), ("nb", GaussianNB())]
REFUSED = [
    (GaussianNB(), "GaussianNB has no sample_proba.*Use LogisticRegression"),
    (SVC(), "SVC has no sample_proba.*BaggingClassifier"),
    (DecisionTreeClassifier(), "DecisionTreeClassifier has no sample_proba"),
    (SGDClassifier(), r"SGDClassifier\(loss='hinge'\).*loss='log_loss'"),
    (AdaBoostClassifier(), "AdaBoostClassifier has no sample_proba, no members"),
    (GradientBoostingClassifier(n_estimators=2), "GradientBoostingClassifier.*no memb"),
    (HistGradientBoostingClassifier(max_iter=2), "HistGradientBoosting.*no members"),
    (StackingClassifier(VOTES), "StackingClassifier has no sample_proba"),
    (OneVsRestClassifier(LinearSVC()), "OneVsRestClassifier has no sample_proba"),
    (VotingClassifier(VOTES), "VotingClassifier has voting='hard'. Use voting='soft'"),
    (RandomForestClassifier(1), "RandomForestClassifier has one member.*several"),
    (
        CalibratedClassifierCV(LinearSVC(), ensemble=False),
        "CalibratedClassifierCV has one member, which.*Use ensemble=True",
    ),
    (LogisticRegression(C=np.inf), "LogisticRegression has no penalty.*finite C"),
    (
        LogisticRegression(solver="saga", l1_ratio=0.5, penalty="elasticnet"),
        "LogisticRegression has an l1 penalty.*l1_ratio=0",
    ),
    (
        LogisticRegression(solver="liblinear", penalty="l1", C=0.5),
        "LogisticRegression has an l1 penalty",
    ),
    (LogisticRegression(penalty=None), "LogisticRegression has no penalty"),
    (SGDClassifier("log_loss", penalty="l1"), "has penalty='l1'.*Use penalty='l2'"),
    (
        SGDClassifier("log_loss", alpha=0.0, learning_rate="constant", eta0=0.1),
        "SGDClassifier has no prior.*alpha above 0",
    ),
    (
        OneVsRestClassifier(SGDClassifier("log_loss", penalty="l1")),
        "OneVsRestClassifier has penalty='l1'",
    ),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "message"), REFUSED, ids=lambda value: str(value))
def test_what_has_no_posterior_is_refused_with_a_way_out(model, message):
    y = Y == "no" if getattr(model, "solver", None) == "liblinear" else Y
    model = make_pipeline(StandardScaler(), model).fit(X, y)
    for call in (
        lambda: check_can_sample(model),
        lambda: check_can_sample(model[-1]),
        lambda: sampler(model, 5, 0, X_train=X),
        lambda: sample_proba(model, ASKED, 5, 0),
    ):
        with pytest.raises(TypeError, match=message):
            call()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "options",
    [
        {"penalty": "l2"},
        {"penalty": "l2", "l1_ratio": 0.5},  # which then says nothing
        {"penalty": "elasticnet", "l1_ratio": 0, "solver": "saga"},
    ],
    ids=str,
)
def test_older_names_of_the_l2_penalty_are_known(options):
    model = LogisticRegression(**options, max_iter=5000, tol=1e-9).fit(X, Y)
    newer = LogisticRegression(tol=1e-9).fit(X, Y)
    draws = sample_proba(model, ASKED, 5, 0, X_train=X)
    assert_allclose(draws, sample_proba(newer, ASKED, 5, 0, X_train=X), atol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(
    "multi_class" not in LogisticRegression().get_params(), reason="scikit-learn >= 1.8"
)
@pytest.mark.parametrize(
    ("options", "y"),
    [
        ({"multi_class": "ovr"}, Y),
        ({"solver": "liblinear"}, Y),
        ({"multi_class": "multinomial"}, Y == "no"),
    ],
    ids=["ovr", "liblinear", "multinomial"],
)
def test_deprecated_ways_with_several_classes_are_refused(options, y):
    model = LogisticRegression(**options).fit(X, y)
    with pytest.raises(TypeError, match=r"deprecated combination.*OneVsRestClassifier"):
        sample_proba(model, ASKED, 5, 0, X_train=X)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(3),
        OneVsRestClassifier(LogisticRegression()),
    ],
    ids=str,
)
def test_several_outputs_are_refused(model):
    model.fit(X, np.stack([X[:, 0] > 0, X[:, 1] > 0], axis=1).astype(int))
    with pytest.raises(TypeError, match="several"):
        sample_proba(model, ASKED, 5, 0)


@pytest.mark.parametrize("model", [LogisticRegression(), RandomForestClassifier()])
def test_an_unfitted_model_is_named(model):
    with pytest.raises(NotFittedError, match=type(model).__name__):
        sample_proba(model, ASKED, 5, 0, X_train=X)


@pytest.mark.parametrize("n_draws", [0, -1, 2.5, None])
def test_a_number_of_draws_that_is_none_is_named(n_draws):
    model = ENSEMBLES[0].fit(X, Y)
    with pytest.raises(ValueError, match="n_draws must be an int of at least 1; got"):
        sample_proba(model, ASKED, n_draws, 0)
