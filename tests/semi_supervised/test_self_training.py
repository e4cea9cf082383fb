"""SelfTraining: pseudo-labels of unlabeled items, gated by held-out labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from skactive import (
    ActiveLearner,
    LabelingSession,
    load,
    make_text_classifier,
    save,
    simulate,
)
from skactive._math._calibration import assign_folds
from skactive.bert import BertClassifier
from skactive.linear_model import FewLabelClassifier, PrototypeClassifier
from skactive.semi_supervised import SelfTraining
from skactive.simulation import SimulatedLearner

LINEAR = LogisticRegression(C=10)


def draw(n, seed=0, spread=0.7, k=3, d=20):
    """Return rows around k directions and their classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    return 2 * np.eye(k, d)[y] + spread * rng.normal(size=(n, d)), y


class Spy(ClassifierMixin, BaseEstimator):
    """Keeps what it is trained on, and predicts with prototypes."""

    seen = []

    def __init__(self, sign=1):
        self.sign = sign

    def fit(self, X, y, sample_weight=None):
        Spy.seen.append((np.array(X), np.array(y), sample_weight))
        self.model_ = PrototypeClassifier().fit(X, y, sample_weight)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)

    def predict_proba(self, X):
        return self.model_.predict_proba(self.sign * np.asarray(X))


@pytest.fixture
def spy():
    Spy.seen.clear()
    return Spy()


def test_pseudo_labels_are_the_most_confident_of_each_class(spy):
    X, y = draw(9)
    pool, _ = draw(60, seed=1)
    model = SelfTraining(spy, pseudo_per_label=2, cv=None, random_state=0)
    model.fit(X, y, X_unlabeled=pool)
    (X_1, _, weight_1), (X_2, y_2, weight_2) = Spy.seen
    assert_array_equal(X_1, X)
    assert weight_1 is None
    # An oracle of loops: 2 * 9 / 3 for each class, or all that have this prediction.
    proba = PrototypeClassifier().fit(X, y).predict_proba(pool)
    expected = []
    for c in range(3):
        rows = [i for i in range(60) if proba[i].argmax() == c]
        expected += sorted(rows, key=lambda i: -proba[i, c])[:6]
    expected = sorted(expected)
    assert_array_equal(X_2[9:], pool[expected])
    assert_array_equal(y_2[9:], proba[expected].argmax(axis=1))
    assert_array_equal(model.pseudo_labels_, y_2[9:])
    # Together they weigh as much as the labels.
    assert_allclose(weight_2[:9], 1)
    assert weight_2[9:].sum() == pytest.approx(9)


def test_at_most_half_of_the_pool_gets_a_pseudo_label(spy):
    X, y = draw(30)
    pool, _ = draw(20, seed=1)
    model = SelfTraining(spy, cv=None).fit(X, y, X_unlabeled=pool)
    assert 3 <= len(model.pseudo_labels_) <= 10


def test_only_a_part_of_a_large_pool_is_used(spy):
    X, y = draw(12)
    pool, _ = draw(500, seed=1)
    one = SelfTraining(spy, cv=None, sample_size=40, random_state=1)
    one.fit(X, y, X_unlabeled=pool)
    seen = Spy.seen[-1][0]
    assert len(seen) <= 12 + 20
    clone(one).fit(X, y, X_unlabeled=pool)
    assert_array_equal(Spy.seen[-1][0], seen)


def test_sample_weights_and_pseudo_labels_go_together(spy):
    X, y = draw(12)
    pool, _ = draw(60, seed=1)
    weights = np.linspace(1, 3, 12)
    SelfTraining(spy, weight=0.5, cv=None).fit(X, y, weights, X_unlabeled=pool)
    used = Spy.seen[-1][2]
    assert_allclose(used[:12], weights)
    assert used[12:].sum() == pytest.approx(0.5 * weights.sum())


def test_pseudo_labels_are_used_where_they_help():
    X, y = draw(24, spread=1.0, d=100)
    pool, _ = draw(1500, seed=1, spread=1.0, d=100)
    X_test, y_test = draw(1000, seed=2, spread=1.0, d=100)
    model = SelfTraining(LINEAR, random_state=0).fit(X, y, X_unlabeled=pool)
    assert model.chosen_ == "pseudo-labels"
    assert model.scores_["pseudo-labels"] < model.scores_["labels"]
    plain = clone(LINEAR).fit(X, y)
    assert model.score(X_test, y_test) > plain.score(X_test, y_test) + 0.02


def test_pseudo_labels_are_not_used_where_they_mislead():
    # The labels follow the second column; the pool clusters along the first.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) * [0.2, 1]
    y = (X[:, 1] > 0).astype(int)
    pool = rng.normal(size=(1000, 2)) * 0.01 + [[3.0, 0.0]]
    pool[::2, 0] *= -1
    model = SelfTraining(LINEAR, weight=50, random_state=0).fit(X, y, X_unlabeled=pool)
    assert model.chosen_ == "labels"
    assert len(model.pseudo_labels_) == 0
    assert_allclose(model.estimator_.coef_, clone(LINEAR).fit(X, y).coef_)


def test_the_teacher_is_used_if_it_is_best():
    X, y = draw(12, spread=1.0)
    model = SelfTraining(Inverted(), teacher=PrototypeClassifier(), random_state=0)
    model.fit(X, y, X_unlabeled=draw(100, seed=1)[0])
    assert model.chosen_ == "teacher"
    assert isinstance(model.estimator_, PrototypeClassifier)
    assert set(model.scores_) == {"teacher", "labels", "pseudo-labels"}


def test_a_teacher_that_chooses_its_model_does_so_once_and_calibrates_itself():
    X, y = draw(60, spread=1.2)
    teacher = FewLabelClassifier(random_state=0)
    inverted = SelfTraining(Inverted(), teacher=teacher, random_state=0)
    inverted.fit(X, y, X_unlabeled=draw(200, seed=1)[0])
    alone = clone(teacher).fit(X, y)
    assert inverted.chosen_ == "teacher"
    assert inverted.estimator_.chosen_ == alone.chosen_
    assert_allclose(inverted.predict_proba(X), alone.predict_proba(X))
    # The folds train the chosen model only.
    codes = np.searchsorted(alone.classes_, y)
    folds = assign_folds(codes, 3, 0)
    log_proba = np.empty((60, 3))
    for fold in range(3):
        train, test = folds != fold, folds == fold
        part = FewLabelClassifier(candidates=[alone.chosen_]).fit(X[train], y[train])
        log_proba[test] = part.predict_log_proba(X[test])
    losses = [
        -log_softmax(log_proba / t, axis=1)[np.arange(60), codes].mean()
        for t in np.geomspace(0.05, 20, 2000)
    ]
    assert inverted.scores_["teacher"] == pytest.approx(min(losses), rel=1e-3)


@pytest.mark.parametrize(("student", "n_folds"), [("lda", 6), ("best", 3)])
def test_the_same_model_is_trained_once_in_a_fold(monkeypatch, student, n_folds):
    X, y = draw(60, spread=1.2)
    teacher = FewLabelClassifier(candidates=["prototypes", "logistic C=10"])
    best = clone(teacher).set_params(random_state=0).fit(X, y).chosen_
    student = FewLabelClassifier(candidates=[best if student == "best" else student])
    tols = []
    fit = FewLabelClassifier.fit

    def record(self, X, y, sample_weight=None):
        tols.append(self.tol)
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(FewLabelClassifier, "fit", record)
    model = SelfTraining(student, teacher=teacher, random_state=0).fit(X, y)
    # The teacher on all labels, the folds, and what was chosen, unless it is trained.
    n_final = int(model.chosen_ != "teacher")
    assert tols == [1e-6] + n_folds * [3e-4] + n_final * [1e-6]
    if student.candidates == [best]:
        assert model.scores_["teacher"] == model.scores_["labels"]


@pytest.mark.slow
def test_the_bits_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(0)
    centers, codes = rng.normal(size=(40, 384)), rng.integers(40, size=2300)
    rows = centers[codes] + 3 * rng.normal(size=(2300, 384))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    X, y, pool = rows[:300], codes[:300], rows[300:]
    found = []
    for n_threads in (1, 2, 3, 4, 8):
        model = make_text_classifier(adapt=False)[-1].set_params(random_state=0)
        with threadpool_limits(limits=n_threads):
            model.fit(X, y, X_unlabeled=pool)
        found.append((model.temperature_, model.scores_, model.estimator_.coef_))
    for temperature, scores, coef in found[1:]:
        assert (temperature, scores) == found[0][:2]
        assert_array_equal(coef, found[0][2])


class Inverted(PrototypeClassifier):
    """Predicts the opposite of the prototypes."""

    def predict_proba(self, X):
        return super().predict_proba(-np.asarray(X))


def test_scores_and_temperature_are_those_of_held_out_labels():
    X, y = draw(30, spread=1.2)
    model = SelfTraining(LINEAR, random_state=0).fit(X, y)
    assert set(model.scores_) == {"labels"}
    # The same folds by hand, and the best temperature of a fine grid.
    folds = assign_folds(y, 3, 0)
    log_proba = np.empty((30, 3))
    for fold in range(3):
        part = clone(LINEAR).fit(X[folds != fold], y[folds != fold])
        log_proba[folds == fold] = part.predict_log_proba(X[folds == fold])
    grid = np.geomspace(0.05, 20, 4000)
    losses = []
    for t in grid:
        scaled = log_proba / t
        scaled -= np.log(np.exp(scaled).sum(axis=1, keepdims=True))
        losses.append(-scaled[np.arange(30), y].mean())
    assert model.scores_["labels"] == pytest.approx(min(losses), rel=1e-3)
    # 30 labels were held out; the temperature 1 counts for 50.
    best = grid[np.argmin(losses)]
    assert model.temperature_ == pytest.approx(best ** (30 / 80), rel=0.02)
    proba = model.estimator_.predict_proba(X) ** (1 / model.temperature_)
    assert_allclose(model.predict_proba(X), proba / proba.sum(axis=1, keepdims=True))


@pytest.mark.long
@pytest.mark.parametrize(("max_folds", "n_folds"), [(1, 1), (2, 2), (None, 4), (9, 4)])
def test_only_some_of_the_folds_are_held_out(spy, max_folds, n_folds):
    X, y = draw(40, spread=1.2)
    model = SelfTraining(
        spy, teacher=PrototypeClassifier(), cv=4, max_folds=max_folds, random_state=0
    )
    model.fit(X, y, X_unlabeled=draw(100, seed=1)[0])
    n_final = int(model.chosen_ != "teacher")
    assert len(Spy.seen) == 2 * n_folds + n_final
    # The scores are those of the folds that were held out.
    folds = assign_folds(y, 4, 0)
    proba = np.empty((40, 3))
    for fold in range(n_folds):
        part = PrototypeClassifier().fit(X[folds != fold], y[folds != fold])
        proba[folds == fold] = part.predict_proba(X[folds == fold])
    held = folds < n_folds
    losses = []
    for t in np.geomspace(0.01, 100, 2000):
        scaled = log_softmax(np.log(proba[held]) / t, axis=1)
        losses.append(-scaled[np.arange(held.sum()), y[held]].mean())
    assert model.scores_["labels"] == pytest.approx(min(losses), rel=1e-3)
    assert model.scores_["teacher"] == pytest.approx(min(losses), rel=1e-3)


@pytest.mark.parametrize("with_pool", [False, True])
@pytest.mark.parametrize("good", ["teacher", "estimator"])
def test_pseudo_labels_of_a_teacher_that_is_better(spy, good, with_pool):
    X, y = draw(30, spread=1.2)
    pool = draw(100, seed=1)[0] if with_pool else None
    teacher = PrototypeClassifier() if good == "teacher" else Inverted()
    student = Spy(sign=-1 if good == "teacher" else 1)
    model = SelfTraining(
        student, teacher=teacher, cv=3, max_folds=1, compare="teacher", random_state=0
    )
    model.fit(X, y, X_unlabeled=pool)
    expected = "labels"
    if good == "teacher":
        expected = "pseudo-labels" if with_pool else "teacher"
    assert model.chosen_ == expected
    assert set(model.scores_) == {"teacher", "labels"}
    assert len(Spy.seen) == 1 + (expected != "teacher")
    assert len(Spy.seen[0][0]) == 20
    assert (len(model.pseudo_labels_) > 0) == (expected == "pseudo-labels")
    # The temperature of the student is that of its held-out labels.
    both = SelfTraining(student, cv=3, max_folds=1, random_state=0).fit(X, y)
    if expected != "teacher":
        assert model.temperature_ == both.temperature_


def held_out(cv, X, y, **params):
    """Return the rows that each training of the comparison lacked, as sets."""
    Spy.seen.clear()
    SelfTraining(Spy(), teacher=PrototypeClassifier(), cv=cv, random_state=0).fit(
        X, y, **params
    )
    places = {row.tobytes(): i for i, row in enumerate(X)}
    everyone, n = set(range(len(X))), np.sum(params.get("sample_weight", len(X)))
    folds = [rows for rows, *_ in Spy.seen if len(rows) < n]  # and one on all labels
    return [everyone - {places[row.tobytes()] for row in rows} for rows in folds]


@pytest.mark.parametrize("how", ["splitter", "pairs"])
def test_a_splitter_or_pairs_of_positions_choose_the_folds(spy, how):
    X, y = draw(24)
    splitter = StratifiedKFold(4, shuffle=True, random_state=1)
    pairs = list(splitter.split(X, y))
    found = held_out(splitter if how == "splitter" else pairs, X, y)
    assert found == [set(test.tolist()) for _, test in pairs]


def test_groups_are_kept_together(spy):
    X, y = draw(24)
    groups = np.arange(24) // 4
    found = held_out(GroupKFold(3), X, y, groups=groups)
    assert len(found) == 3
    for fold in found:
        assert all(len({*np.flatnonzero(groups == g)} & fold) in (0, 4) for g in groups)
    with pytest.raises(ValueError, match="groups"):
        held_out(GroupKFold(3), X, y)


def test_positions_count_labels_without_weight_and_folds_of_one_class_are_left_out(spy):
    X, y = draw(12)
    weight = np.r_[0.0, np.ones(11)]
    halves = [(np.arange(6, 12), np.arange(6)), (np.flatnonzero(y == 0), np.arange(3))]
    (fold,) = held_out(halves, X, y, sample_weight=weight)
    assert fold == set(range(6))


def test_a_class_that_a_fold_lacks_has_no_probability_there():
    X, y = draw(30)
    others, own = np.flatnonzero(y != 2), np.flatnonzero(y == 2)
    model = SelfTraining(LINEAR, teacher=PrototypeClassifier(), cv=[(others, own)])
    model.fit(X, y)
    # The temperature is as high as it may be.
    assert min(model.scores_.values()) > 1


def test_a_teacher_without_use_is_not_trained(spy):
    X, y = draw(12)
    model = SelfTraining(LINEAR, teacher=Spy(), cv=None, random_state=0).fit(X, y)
    assert (model.chosen_, spy.seen) == ("labels", [])


def test_without_a_teacher_there_is_nothing_to_compare_with():
    X, y = draw(20)
    with pytest.raises(ValueError, match=r"'teacher' must be .* got None"):
        SelfTraining(LINEAR, compare="teacher").fit(X, y)


def test_one_label_per_class():
    X, y = np.eye(3, 20), np.arange(3)
    pool, _ = draw(50)
    model = SelfTraining(PrototypeClassifier(), random_state=0)
    model.fit(X, y, X_unlabeled=pool)
    assert model.chosen_ == "labels"
    assert model.scores_ == {}
    assert_array_equal(model.predict(X), y)


def test_a_few_classes_with_several_examples():
    X, y = np.eye(6, 20)[[0, 1, 2, 2, 5]], np.array(list("abccd"))
    model = SelfTraining(PrototypeClassifier(), random_state=0)
    model.fit(X, y, X_unlabeled=draw(50)[0])
    assert set(model.scores_) == {"labels", "pseudo-labels"}


def test_a_pool_without_one_of_the_classes():
    X, y = draw(30)
    pool, classes = draw(200, seed=1)
    model = SelfTraining(LINEAR, cv=None).fit(X, y, X_unlabeled=pool[classes != 2])
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("pool", [None, np.empty((0, 20)), []])
def test_without_unlabeled_items_the_labels_are_used(pool):
    X, y = draw(20)
    model = SelfTraining(LINEAR, random_state=0).fit(X, y, X_unlabeled=pool)
    assert model.chosen_ == "labels"


@pytest.mark.parametrize("pool", [["a text"], np.ones((3, 5)), [[1.0, 2.0]]])
def test_unlabeled_items_of_another_kind_are_refused(pool):
    X, y = draw(20)
    with pytest.raises((TypeError, ValueError), match="'X_unlabeled'"):
        SelfTraining(LINEAR).fit(X, y, X_unlabeled=pool)


def test_an_estimator_without_sample_weights_is_refused():
    X, y = draw(20)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    with pytest.raises(TypeError, match=r"'estimator' must have.*wrap only the last"):
        SelfTraining(pipeline).fit(X, y, X_unlabeled=X)
    assert SelfTraining(pipeline, random_state=0).fit(X, y).chosen_ == "labels"


TEXTS = [f"{word} {other}" for word in ("good", "bad") for other in "abcdefghij"]
LABELS = ["pos"] * 10 + ["neg"] * 10
POOL = [f"{word} {i}{j}" for word in ("good", "bad") for i in "abc" for j in range(8)]


def of_texts():
    last = SelfTraining(LogisticRegression(), cv=None, random_state=0)
    return make_pipeline(TfidfVectorizer(), last)


def test_a_learner_passes_unlabeled_texts_through_its_pipeline():
    learner = ActiveLearner(of_texts(), random_state=0)
    learner.fit(TEXTS, LABELS, X_unlabeled=POOL)
    front = TfidfVectorizer().fit(TEXTS)
    oracle = SelfTraining(LogisticRegression(), cv=None, random_state=0)
    oracle.fit(front.transform(TEXTS), LABELS, X_unlabeled=front.transform(POOL))
    last = learner.estimator_[-1]
    assert last.chosen_ == "pseudo-labels"
    assert_array_equal(last.pseudo_labels_, oracle.pseudo_labels_)
    assert_allclose(last.estimator_.coef_, oracle.estimator_.coef_)
    assert learner.teach(["good y"], ["pos"]).estimator_[-1].chosen_ == "labels"
    learner.refit(X_unlabeled=POOL)
    assert learner.estimator_[-1].chosen_ == "pseudo-labels"
    assert not any(value is POOL for value in vars(learner).values())


def test_labeled_texts_are_left_out_of_the_unlabeled_ones(spy):
    learner = ActiveLearner(of_texts(), random_state=0)
    learner.fit(TEXTS, LABELS, X_unlabeled=TEXTS)
    assert learner.estimator_[-1].chosen_ == "labels"
    learner.fit(TEXTS, LABELS, X_unlabeled=[*TEXTS, *POOL[:4]])
    assert len(learner.estimator_[-1].pseudo_labels_) <= 2


def test_an_estimator_without_use_for_unlabeled_items_is_refused():
    X, y = draw(20)
    learner = ActiveLearner(LogisticRegression())
    with pytest.raises(TypeError, match=r"'X_unlabeled' must be None.*SelfTraining"):
        learner.fit(X, y, X_unlabeled=X)
    assert not hasattr(learner, "estimator_")


def test_unlabeled_items_of_another_kind_are_refused_by_the_learner():
    learner = ActiveLearner(of_texts())
    with pytest.raises((TypeError, ValueError), match="'X_unlabeled'"):
        learner.fit(TEXTS, LABELS, X_unlabeled=np.ones((3, 4)))


def test_labels_of_one_class_are_trained_without_the_pool():
    learner = ActiveLearner(of_texts())
    learner.fit(TEXTS[:5], LABELS[:5], X_unlabeled=POOL)
    assert_array_equal(learner.predict(["bad a"]), ["pos"])


def test_a_simulation_passes_the_rest_of_the_pool(monkeypatch):
    sizes = []
    fit = SelfTraining.fit

    def record(self, X, y, sample_weight=None, X_unlabeled=None):
        sizes.append((X.shape[0], X_unlabeled.shape[0]))
        return fit(self, X, y, sample_weight, X_unlabeled)

    monkeypatch.setattr(SelfTraining, "fit", record)
    learner = ActiveLearner(of_texts(), "random", batch_size=4, random_state=0)
    X, y = TEXTS + POOL, LABELS + ["pos"] * 24 + ["neg"] * 24
    run = simulate(learner, X, y, n_initial=8, n_rounds=2, final_estimator=of_texts())
    assert sizes == [(8, 60), (12, 56), (16, 52), (16, 52)]
    assert len(run.queried) == 16
    sizes.clear()
    SimulatedLearner(learner, n_initial=8, n_rounds=1).fit(X, y)
    assert sizes == [(8, 60), (12, 56)]


def test_a_session_passes_its_unlabeled_items(tmp_path):
    learner = ActiveLearner(of_texts(), "random", batch_size=12, random_state=0)
    answers = dict(zip(TEXTS + POOL, LABELS + ["pos"] * 24 + ["neg"] * 24, strict=True))
    with LabelingSession(learner, TEXTS + POOL, tmp_path / "session") as session:
        batch = session.ask()
        session.tell(batch.ids, [answers[text] for text in batch.items])
        last = session.learner.estimator_[-1]
        assert last.chosen_ == "pseudo-labels"
        predicted = session.learner.predict_proba(POOL)
    with LabelingSession(learner, TEXTS + POOL, tmp_path / "session") as session:
        assert_array_equal(session.learner.predict_proba(POOL), predicted)


@pytest.mark.long
def test_it_is_saved_and_loaded(tmp_path):
    X, y = draw(40)
    pool, _ = draw(100, seed=1)
    model = SelfTraining(LINEAR, teacher=FewLabelClassifier(), random_state=0)
    model.fit(X, y, X_unlabeled=pool)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert_array_equal(again.predict_proba(pool), model.predict_proba(pool))
    assert again.scores_ == model.scores_


class OfThePool(PrototypeClassifier):
    """Keeps the unlabeled items that it gets."""

    def fit(self, X, y, sample_weight=None, X_unlabeled=None):
        self.pool_ = X_unlabeled
        return super().fit(X, y, sample_weight)


def test_the_teacher_gets_the_pool_if_its_last_step_takes_it():
    X, y = draw(30)
    pool, _ = draw(60, seed=1)
    model = SelfTraining(
        Inverted(), teacher=make_pipeline(StandardScaler(), OfThePool()), random_state=0
    )
    model.fit(X, y, np.arange(1.0, 31.0), X_unlabeled=pool)
    assert model.chosen_ == "teacher"
    scaler = StandardScaler().fit(X, sample_weight=np.arange(1.0, 31.0))
    assert_allclose(model.estimator_[-1].pool_, scaler.transform(pool))
    oracle = PrototypeClassifier().fit(scaler.transform(X), y, np.arange(1.0, 31.0))
    assert_allclose(model.estimator_[-1].prototypes_, oracle.prototypes_)


@pytest.mark.long
@pytest.mark.parametrize("cv", [None, 2])
def test_a_fine_tuned_encoder_learns_from_raw_texts(tiny_bert, tmp_path, cv):
    student = BertClassifier(tiny_bert, max_epochs=1, freeze="all", lr=1e-2)
    model = SelfTraining(
        student,
        teacher=make_text_classifier(tiny_bert, adapt=False),
        cv=cv,
        random_state=0,
    )
    learner = ActiveLearner(model, random_state=0)
    learner.fit(TEXTS[::2], LABELS[::2], X_unlabeled=POOL)
    fitted = learner.estimator_
    assert fitted.chosen_ == "pseudo-labels" if cv is None else fitted.scores_
    kinds = {"teacher": Pipeline}
    assert isinstance(fitted.estimator_, kinds.get(fitted.chosen_, BertClassifier))
    proba = learner.predict_proba(POOL)
    assert proba.shape == (len(POOL), 2)
    save(learner, tmp_path / "model", data=False)
    assert_array_equal(load(tmp_path / "model").predict_proba(POOL), proba)


def test_strategies_use_its_estimator():
    X, y = draw(60)
    learner = ActiveLearner(
        SelfTraining(LINEAR, random_state=0, cv=None), random_state=0
    )
    learner.fit(X[:30], y[:30], X_unlabeled=X[30:])
    for strategy in ("margin", "badge", "egl", "dfal", "typiclust"):
        assert len(learner.set_params(strategy=strategy).query(X[30:], 4)) == 4


def test_rows_without_weight_are_left_out():
    rng = np.random.default_rng(0)
    X, y, pool = (
        rng.normal(size=(12, 4)),
        np.array([*"abc"] * 4),
        rng.normal(size=(9, 4)),
    )
    weight = np.ones(12)
    weight[[0, 3, 6]] = 0
    models = [SelfTraining(FewLabelClassifier(random_state=0), random_state=0)] * 2
    kept = weight > 0
    found, expected = (
        clone(model).fit(*data, X_unlabeled=pool).predict_proba(pool)
        for model, data in zip(
            models, [(X, y, weight), (X[kept], y[kept], weight[kept])], strict=True
        )
    )
    assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="sample_weight"):
        models[0].fit(X, y, -weight)
