"""What a session says about its model, in one line."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from skactive import ActiveLearner
from skactive.estimation import estimate_quality
from skactive.estimation._held_out import out_of_fold
from skactive.session import Estimate
from skactive.session._evidence import minutes_left


@pytest.fixture
def many():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    X = rng.normal(size=(400, 5)) + y[:, None]
    return X, np.array(["ham", "spam"])[y]


def label(session, y, n, **options):
    while len(session.labels) < n:
        ids = session.ask(5).ids
        session.tell(ids, y[list(ids)], **options)


@pytest.mark.parametrize(
    ("estimate", "line"),
    [
        (
            Estimate(3),
            "accuracy: cannot tell yet; what 100 more labels bring is not known yet",
        ),
        (
            Estimate(30, 0.6, (0.42, 0.75)),
            "About 60 % of the labeled texts are predicted right (42-75 %); what 100 "
            "more labels bring is not known yet",
        ),
        (
            Estimate(200, 0.81, (0.74, 0.87), 40, 50, -0.001, (-0.021, 0.019), 130.4),
            "About 81 % of the pool is predicted right (74-87 %), from 40 "
            "drawn at random; the next 50 labels: -0.1 points (-2.1 to 1.9) on the "
            "rest; 2 h 10 min left at your pace",
        ),
        (
            Estimate(99, minutes=0.2),
            "accuracy: cannot tell yet; what 100 more labels bring is not known yet; "
            "less than 1 min left at your pace",
        ),
    ],
)
def test_an_estimate_is_one_line(estimate, line):
    assert str(estimate) == line


def test_minutes_are_for_the_missing_labels_at_the_median_pace():
    assert minutes_left([2, 100, 3], 40) == 2.0
    assert minutes_left([2], 0) == minutes_left([2], -5) == 0.0
    assert minutes_left([], 40) is None
    assert minutes_left([2], None) is None


@pytest.mark.long
def test_the_accuracy_is_from_the_audit(open_session, many):
    X, y = many
    session = open_session(X, audit_every=3, n_labels=200)
    label(session, y, 90, seconds=20)
    seq = session._core.state.seq
    found = session.estimate(horizon=40)
    assert session._core.state.seq == seq
    assert found.n_labels == 90
    assert found.n_audited == len(session.audited) >= 25
    # One estimate of one quantity, from models that lack the label.
    ids = list(session.labels)
    rest = [id for id in range(400) if id not in session.labels]
    parts = out_of_fold(
        LogisticRegression(), X[ids], y[ids], seed=session.learner.random_state
    )
    proba = np.empty((400, 2))
    proba[ids] = parts.proba
    proba[rest] = LogisticRegression().fit(X[ids], y[ids]).predict_proba(X[rest])
    sample = session.audited
    guesses = parts.classes[proba[sample].argmax(axis=1)]
    share = len(sample) / 90  # of the labels of the model
    quality = estimate_quality(
        y[sample], guesses, proba[sample], proba, cross_fitted=share
    )
    assert found.accuracy == pytest.approx(quality.accuracy.value)
    assert found.accuracy_interval == pytest.approx(quality.accuracy.interval)
    assert session.quality().accuracy.interval == found.accuracy_interval
    low, high = found.gain_interval
    assert low < found.gain < high
    assert found.minutes == pytest.approx(110 * 4 / 60)
    assert session.estimate(90).minutes == 0
    early = session.estimate()
    assert early.gain is None  # 90 labels say little about 100 more
    assert early.gain_from == 150
    assert "what 100 more labels bring is known from 150 labels on" in str(early)
    assert found.gain_from is None
    assert f"from {found.n_audited} drawn at random" in str(found)


def test_without_an_audit_it_is_that_of_the_labeled_items(open_session, many):
    X, y = many
    session = open_session(X)
    label(session, y, 60)
    found = session.estimate()
    ids = list(session.labels)
    parts = out_of_fold(
        LogisticRegression(), X[ids], y[ids], seed=session.learner.random_state
    )
    right = parts.proba.argmax(axis=1) == parts.codes
    assert found.n_audited == 0
    assert found.accuracy == pytest.approx(right.mean())
    expected = estimate_quality(right, np.ones(60, dtype=bool)).accuracy
    assert found.accuracy_interval == expected.interval
    assert found.minutes is None
    assert "of the labeled texts" in str(found)


def test_what_cannot_be_told_is_none(open_session, many):
    X, y = many
    session = open_session(X, refit=False)
    assert session.estimate(10) == Estimate(0)
    session.tell([0, 1, 2], ["ham"] * 3, unasked=True)
    assert session.estimate() == Estimate(3)
    session.tell(range(3, 12), y[3:12], unasked=True)
    assert session.estimate() == Estimate(12, gain_from=150)
    for bad in ({"n_labels": 0}, {"horizon": 0}):
        with pytest.raises(ValueError, match="must be"):
            session.estimate(**bad)


def test_all_items_labeled(open_session, many):
    X, y = many[0][:30], many[1][:30]
    session = open_session(X, refit=False, audit_every=2)
    label(session, y, 30)
    found = session.estimate()
    assert found.n_audited == 30
    assert found.gain is None


def test_labels_from_before_the_session_count_for_training_only(open_session, many):
    X, y = many
    learner = ActiveLearner(LogisticRegression(), random_state=0)
    session = open_session(X[100:], learner=learner.fit(X[:100], y[:100]))
    label(session, y[100:], 40)
    found = session.estimate(horizon=20)
    assert found.n_labels == 40
    right = np.arange(40) < round(found.accuracy * 40)
    assert found.accuracy_interval == pytest.approx(
        estimate_quality(right, np.ones(40, dtype=bool)).accuracy.interval
    )


def test_a_regressor_has_no_accuracy(open_session, many):
    session = open_session(
        many[0], learner=ActiveLearner(LinearRegression(), "random", random_state=0)
    )
    session.tell([0, 1, 2], [0.5, 1.5, 2.5], unasked=True)
    with pytest.raises(TypeError, match=r"needs labels of one class .* regression"):
        session.estimate()


def test_a_closed_session_can_still_be_asked(open_session, many):
    X, y = many
    session = open_session(X, audit_every=2)
    label(session, y, 60)
    expected = session.estimate(horizon=20), session.suspicious()
    session.close()
    assert (session.estimate(horizon=20), session.suspicious()) == expected


def test_several_classes_of_one_item_have_no_accuracy(open_session):
    session = open_session(refit=False)
    session.tell([1, 2, 3], [["ham"], ["ham", "eggs"], []], unasked=True)
    with pytest.raises(TypeError, match=r"needs labels of one class .* multi-label"):
        session.estimate()
