"""ClassDescriptions: what it trains on, the choice of the weight, and zero labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skactive import (
    ActiveLearner,
    ClassDescriptions,
    LabelingSession,
    load,
    make_text_classifier,
    save,
)
from skactive.linear_model import FewLabelClassifier, agreement, held_out_loss
from skactive.semi_supervised._descriptions import _read_descriptions

SPORT = [f"the team plays game {i} of the season" for i in range(30)]
MONEY = [f"banks and markets fell on day {i}" for i in range(30)]
TEXTS = np.array([*SPORT, *MONEY], dtype=object)
LABELS = np.array(["sport"] * 30 + ["money"] * 30)
RIGHT = {"sport": "games, teams and the season", "money": ["banks", "markets fell"]}
WRONG = {"sport": ["banks", "markets fell"], "money": "games, teams and the season"}
SAME = {"sport": "sport", "money": "money"}
WORDS = make_pipeline(HashingVectorizer(n_features=2**10), LogisticRegression(C=10))


def labeled(n, seed=0):
    rows = np.random.default_rng(seed).permutation(60)[:n]
    return TEXTS[rows], LABELS[rows]


class Spy(LogisticRegression):
    """Keeps the last training data."""

    def fit(self, X, y, sample_weight=None):
        self.seen_ = X, y, sample_weight
        return super().fit(X, y, sample_weight)


def test_oracle_the_rows_and_weights_of_the_training():
    names = {"lost_luggage": "", "delay": "a late flight", "food": ["meal", "drink"]}
    texts = ["my bag", "two hours late", "cold soup"]
    front = FunctionTransformer(lambda X: np.array([[len(x), 1.0] for x in X]))
    model = ClassDescriptions(make_pipeline(front, Spy()), names, weight=2)
    model.fit(texts, ["lost_luggage", "delay", "food"], sample_weight=[1, 2, 1])
    X, y, weight = model.estimator_[-1].seen_
    rows = [*texts, "lost luggage", "lost luggage?"]
    rows += ["delay", "a late flight", "delay: a late flight"]
    rows += ["food", "meal", "drink", "food: meal"]
    assert_array_equal(X[:, 0], [len(row) for row in rows])
    expected = ["lost_luggage", "delay", "food"]
    expected += ["lost_luggage"] * 2 + ["delay"] * 3 + ["food"] * 4
    assert y.tolist() == expected
    assert_allclose(weight, [1, 2, 1, 1, 1, *[2 / 3] * 3, *[0.5] * 4])


def test_it_predicts_without_labels_and_classes_that_nobody_gave():
    model = ClassDescriptions(WORDS, RIGHT).fit([], [])
    assert model.score(TEXTS, LABELS) > 0.9
    assert model.weight_ == 3
    assert "no labels of two classes" in model.reason_
    model.fit(TEXTS[:1], ["sport"])
    assert model.classes_.tolist() == ["money", "sport"]
    assert model.score(TEXTS, LABELS) > 0.9


# Without held-out labels the accuracy is .75; 20 right ones count twice as much.
@pytest.mark.parametrize(("n", "expected"), [(0, 0.75), (4, 0.75), (20, 27.5 / 30)])
def test_the_mean_confidence_is_the_accuracy_that_is_expected(n, expected):
    X, y = labeled(n)
    model = ClassDescriptions(WORDS, RIGHT, random_state=0)
    model.fit(X, y, X_unlabeled=TEXTS)
    proba = model.predict_proba(TEXTS)
    raw = model.estimator_.predict_proba(TEXTS)
    confidence = min(expected, raw.max(axis=1).mean())
    assert proba.max(axis=1).mean() == pytest.approx(confidence, abs=1e-3)
    assert_array_equal(raw.argmax(axis=1), proba.argmax(axis=1))
    # Without unlabeled items, the descriptions take their place.
    plain = ClassDescriptions(WORDS, RIGHT, random_state=0).fit(X, y)
    texts = _read_descriptions(RIGHT)[1]
    raw = plain.estimator_.predict_proba(texts).max(axis=1).mean()
    confidence = plain.predict_proba(texts).max(axis=1).mean()
    assert confidence == pytest.approx(min(expected, raw), abs=1e-3)


def test_the_reason_does_not_call_descriptions_better_that_are_only_kept():
    kept = ClassDescriptions(WORDS, RIGHT, random_state=0).fit(*labeled(10))
    assert kept.reason_ == "used: without them, predictions are not clearly better"
    better = ClassDescriptions(WORDS, RIGHT, random_state=0).fit(*labeled(6, seed=2))
    assert better.reason_ == "used: with them, held-out labels are predicted better"


@pytest.mark.parametrize("seed", range(3))
def test_right_descriptions_are_used_and_wrong_ones_ignored(seed):
    X, y = labeled(10, seed)
    right = ClassDescriptions(WORDS, RIGHT, random_state=0).fit(X, y)
    assert right.weight_ > 0
    assert right.reason_.startswith("used")
    wrong = ClassDescriptions(WORDS, WRONG, random_state=0).fit(X, y)
    assert wrong.weight_ == 0
    assert wrong.reason_.startswith("ignored")
    plain = clone(WORDS).fit(X, y)
    assert_array_equal(wrong.predict_proba(TEXTS), plain.predict_proba(TEXTS))


def topics(n=200, seed=0):
    """Return texts of three words of two topics with 30 words each, and labels."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(["money", "sport"], n // 2))
    words = [rng.choice(30, 3, replace=False) for _ in y]
    texts = [
        " ".join(f"{label}{word}" for word in some)
        for label, some in zip(y, words, strict=True)
    ]
    return np.array(texts, dtype=object), y


def answers(X, y, says):
    """Return the texts of each label by a machine that says `says[label]`."""
    found = {"sport": [], "money": []}
    for text, label in zip(X, y, strict=True):
        found[says[label]].append(text)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_texts_of_a_machine_are_used_where_people_agree_with_it(seed):
    X, y = topics(seed=seed)
    plain = ClassDescriptions(WORDS, list(SAME), weight=0, random_state=0)
    plain.fit(X[:20], y[:20])
    assert plain.machine_weight_ == 0
    right = clone(plain).set_params(machine_texts=answers(X, y, SAME))
    right.fit(X[:20], y[:20], X_unlabeled=X)
    assert right.machine_weight_ > 0
    others = topics(seed=9)
    assert right.score(*others) >= max(0.95, plain.score(*others))
    for says in ({"sport": "money", "money": "sport"}, dict.fromkeys(SAME, "sport")):
        other = clone(plain).set_params(machine_texts=answers(X, y, says))
        other.fit(X[:20], y[:20])
        assert other.machine_weight_ == 0
        assert_array_equal(other.predict_proba(X), plain.predict_proba(X))


def test_oracle_the_rows_and_weights_of_a_machine():
    X, y = topics()
    texts = answers(X[:50], y[:50], SAME)
    texts["sport"] += ["a match", "a match"]
    model = make_pipeline(WORDS[0], Spy(C=10))
    model = ClassDescriptions(model, list(SAME), machine_texts=texts, random_state=0)
    rows, names, weight = model.fit(X[:20], y[:20]).estimator_[-1].seen_
    # The label of a person stands for a text that the machine labeled, too.
    expected = [("sport", "a match")] * 2 + [*zip(y[20:50], X[20:50], strict=True)]
    n = len(expected)
    assert len(names) == 20 + n + 4 * (model.weight_ > 0)
    assert model.machine_weight_ > 0
    assert sorted(names[-n:]) == sorted(label for label, _ in expected)
    words = WORDS[0].transform([text for _, text in expected])
    assert_allclose(rows[-n:].sum(axis=0), words.sum(axis=0))
    for label in SAME:
        total = weight[-n:][names[-n:] == label].sum()
        assert total == pytest.approx(model.machine_weight_)


def test_a_machine_without_people_to_compare_with_is_not_used():
    texts = answers(TEXTS, LABELS, SAME)
    model = ClassDescriptions(WORDS, RIGHT, machine_texts=texts)
    assert model.fit([], []).machine_weight_ == 0
    assert model.fit(TEXTS[:2], LABELS[:2]).machine_weight_ == 0
    model.set_params(machine_texts={"art": ["a painting"]})
    with pytest.raises(ValueError, match=r"'machine_texts' must have labels .*'art'"):
        model.fit(*labeled(8))
    model.set_params(machine_texts={"sport": [3]})
    with pytest.raises(TypeError, match="item of 'machine_texts' must"):
        model.fit(*labeled(8))


def test_sparse_features_choose_as_dense_ones_do():
    dense = FunctionTransformer(lambda X: X.toarray(), accept_sparse=True)
    front, last = WORDS[0], WORDS[-1]
    X, y = labeled(12)
    for about in (RIGHT, WRONG):
        models = [
            ClassDescriptions(make_pipeline(*steps, last), about, random_state=0)
            for steps in ([front], [front, dense])
        ]
        one, other = (model.fit(X, y) for model in models)
        assert one.weight_ == other.weight_


def test_oracle_agreement_is_the_score_of_the_label_above_the_others():
    rng = np.random.default_rng(0)
    rows, names = rng.normal(size=(6, 4)), np.array([0, 0, 1, 1, 2, 2])
    X, y, weight = rng.normal(size=(9, 4)), np.arange(9) % 3, rng.uniform(size=9)
    model = FewLabelClassifier(candidates=["balanced logistic C=10"])
    logits = model.fit(rows, names).decision_function(X)
    expected = 0.0
    for i in range(9):
        others = [logits[i, j] for j in range(3) if j != y[i]]
        expected += weight[i] * (logits[i, y[i]] - sum(others) / 2)
    found = agreement((rows, names, np.ones(6)), (X, y, weight))
    assert found == pytest.approx(expected, rel=1e-3)
    unknown = np.full(9, 7)
    assert agreement((rows, names, np.ones(6)), (X, unknown, weight)) == 0


def test_oracle_loss_of_labels_that_were_held_out():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(12, 3)), np.tile([0, 1], 6)
    X[:, 0] += 2 * y
    rows = rng.normal(size=(2, 3))
    rows[1, 0] += 2
    about = rows, np.array([0, 1]), np.array([3, 3])
    folds = np.arange(12) % 3
    found, n_held, n_right = held_out_loss((X, y, np.ones(12)), about, folds)
    log_proba = np.empty((12, 2))
    for fold in range(3):
        train, test = folds != fold, folds == fold
        model = FewLabelClassifier(candidates=["balanced logistic C=10"])
        rows = np.concatenate([X[train], about[0]])
        labels = np.concatenate([y[train], about[1]])
        weights = np.concatenate([np.ones(train.sum()), about[2]])
        model.fit(rows, labels, sample_weight=weights)
        log_proba[test] = np.log(model.predict_proba(X[test]))
    losses = [
        -log_softmax(log_proba / t, axis=1)[np.arange(12), y].sum()
        for t in np.geomspace(0.05, 20, 400)
    ]
    assert found == pytest.approx(min(losses), rel=0.05)
    assert (n_held, n_right) == (12, (log_proba.argmax(axis=1) == y).sum())
    no_folds = np.full(12, -1)
    assert held_out_loss((X, y, np.ones(12)), about, no_folds) == (0, 0, 0)


def test_oracle_loss_of_labels_whose_class_no_other_label_has():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(8, 3))
    y = np.array([0, 0, 0, 0, 1, 1, 1, 2])  # 2 is seen once, and 3 is only described
    X[np.arange(8), np.minimum(y, 2)] += 2
    rows, names, folds = np.eye(4)[:, :3], np.arange(4), np.arange(8) % 4
    labels = X, y, np.ones(8)
    ignored, n_held, n_right = held_out_loss(labels, (rows, names, np.zeros(4)), folds)
    among = slice(0, 7)
    known = held_out_loss(
        (X[among], y[among], np.ones(7)),
        (X[7:], y[7:], np.ones(1)),  # always in the training part
        folds[among],
    )
    # 1 label of 8 has a class that no other has; 2 and 3 share what is for new ones.
    new = 1.5 / 9
    assert ignored == pytest.approx(
        known[0] - 7 * np.log(1 - new) - np.log(new / 2), rel=0.05
    )
    assert (n_held, n_right) == (8, known[2])


def test_right_descriptions_of_many_classes_are_used_after_few_labels():
    # Ten labels of ten classes: only two of them share a class.
    words = ["bank", "rain", "soup", "goal", "song", "tree", "ship", "loan", "snow"]
    words += ["cake", "wolf", "moon"]
    texts = [f"about {word} and {word}" for word in words]
    model = ClassDescriptions(WORDS, words, random_state=0)
    rows = [0, 0, *range(1, 9)]
    for seed in range(5):
        model.set_params(random_state=seed)
        model.fit([texts[i] for i in rows], [words[i] for i in rows])
        assert model.weight_ > 0
        assert model.score(texts, words) == 1


def test_a_learner_starts_without_labels(tiny_bert):
    model = make_text_classifier(tiny_bert, adapt=False, max_length=16)
    learner = ActiveLearner(ClassDescriptions(model, RIGHT), random_state=0)
    learner.fit([], [], X_unlabeled=TEXTS)
    assert learner.predict(TEXTS).shape == (60,)
    assert not hasattr(learner, "y_labeled_")
    first = learner.query(TEXTS, 4)
    plain = ActiveLearner(model, random_state=0)
    assert_array_equal(first, plain.query(TEXTS, 4))  # the same cold start
    learner.teach(TEXTS[first], LABELS[first], X_unlabeled=TEXTS)
    assert learner.y_labeled_.shape == (4,)
    assert len(set(learner.query(TEXTS, 5))) == 5
    with pytest.raises(ValueError, match="holds no items"):
        plain.fit([], [])


def test_a_class_without_labels_may_have_the_longest_name():
    model = ClassDescriptions(WORDS, {**RIGHT, "heavy_rain": "it rains"}, weight=3)
    model.fit(*labeled(10))
    assert model.classes_.tolist() == ["heavy_rain", "money", "sport"]
    assert model.predict(["it rains"]).tolist() == ["heavy_rain"]


def test_a_session_predicts_before_the_first_answer(tmp_path):
    learner = ActiveLearner(WORDS, random_state=0)
    with LabelingSession(learner, TEXTS, tmp_path / "s", classes=RIGHT) as session:
        session.ask(2)
        assert session.learner.score(TEXTS, LABELS) > 0.9
        for row in (0, 1, 40, 41):
            session.tell(row, LABELS[row], unasked=True)
        session.rename_class("money", "finance")
        session.refit()
        assert session.learner.classes_.tolist() == ["finance", "sport"]
        assert session.learner.estimator_.weight_ > 0
        expected = session.learner.predict_proba(TEXTS)
    # The descriptions are those of the folder.
    with LabelingSession(learner, TEXTS, tmp_path / "s") as session:
        session.refit()
        assert_array_equal(session.learner.predict_proba(TEXTS), expected)
    assert isinstance(learner.estimator, type(WORDS))


def test_an_added_class_is_described_by_its_name(tmp_path):
    learner = ActiveLearner(WORDS, random_state=0)
    with LabelingSession(learner, TEXTS, tmp_path / "s", classes=RIGHT) as session:
        session.ask(2)
        session.add_class("heavy_rain")
        session.tell([0, 40], ["sport", "money"], unasked=True)
        session.refit()
        assert session.learner.predict(["heavy rain"]).tolist() == ["heavy_rain"]
        session.rename_class("heavy_rain", "sport")
        session.refit()
        assert session.learner.classes_.tolist() == ["money", "sport"]


def test_an_empty_dict_describes_the_classes_that_are_added(tmp_path):
    learner = ActiveLearner(WORDS, random_state=0)
    with LabelingSession(learner, TEXTS, tmp_path / "s", classes={}) as session:
        session.ask(2)
        assert not hasattr(session.learner, "estimator_")
        session.add_class("bank")
        session.ask(2)
        assert not hasattr(session.learner, "estimator_")  # one class is no choice
        session.add_class("the_team")
    with LabelingSession(learner, TEXTS, tmp_path / "s") as session:
        session.ask(2)
        expected = ["the_team", "bank"]
        assert session.learner.predict(["the team", "bank"]).tolist() == expected
        session.tell([0, 40], ["the_team", "other"], unasked=True)
        session.refit()
        assert session.learner.classes_.tolist() == ["bank", "other", "the_team"]


def test_a_single_described_class_is_left_out(tmp_path):
    learner = ActiveLearner(WORDS, random_state=0)
    with LabelingSession(learner, TEXTS, tmp_path / "s", classes=RIGHT) as session:
        session.ask(2)
        session.rename_class("money", "sport")
        session.tell(0, "sport", unasked=True)
        session.refit()
        assert session.learner.classes_.tolist() == ["sport"]


def test_a_list_of_classes_describes_nothing(tmp_path):
    learner, classes = ActiveLearner(WORDS, random_state=0), ["money", "sport"]
    with LabelingSession(learner, TEXTS, tmp_path / "s", classes=classes) as session:
        session.ask(2)
        assert not hasattr(session.learner, "estimator_")


def test_it_is_saved(tmp_path):
    model = ClassDescriptions(WORDS, RIGHT, random_state=0).fit(*labeled(10))
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert_array_equal(again.predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert again.reason_ == model.reason_


@pytest.mark.parametrize(
    ("descriptions", "error", "message"),
    [
        (["one"], ValueError, "must describe at least two classes"),
        ({0: "zero", 1: ""}, ValueError, "must have a text for each class"),
        ({"a": "x", "b": [3]}, TypeError, "must hold texts, got 3 for 'b'"),
    ],
)
def test_bad_descriptions(descriptions, error, message):
    with pytest.raises(error, match=message):
        ClassDescriptions(WORDS, descriptions).fit([], [])


def test_bad_classes_of_a_session(tmp_path):
    learner = ActiveLearner(WORDS)
    with pytest.raises(TypeError, match="must be a dict of names"):
        LabelingSession(learner, TEXTS, tmp_path / "s", classes={1: "a", 2: "b"})
    with pytest.raises(ValueError, match="must be a list of names for multi-label"):
        LabelingSession(learner, TEXTS, tmp_path / "s", classes=RIGHT, multi_label=True)
