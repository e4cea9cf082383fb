"""Shares and quality of a session: the audit as the sample, the model as the proxy."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive.estimation import (
    estimate_mean,
    estimate_prevalence,
    estimate_share,
)

N = 400
RNG = np.random.default_rng(0)
CODES = RNG.choice(3, N, p=[0.1, 0.3, 0.6])
NAMES = np.array(["bug", "praise", "question"])
WORDS = np.array(["crash error", "great nice", "how why"])
# A fifth of the texts says nothing of its class.
TEXTS = [
    f"{WORDS[code] if RNG.random() < 0.8 else 'text'} number {i}"
    for i, code in enumerate(CODES)
]


def make_learner(model=None, strategy="margin"):
    model = make_pipeline(TfidfVectorizer(), model or LogisticRegression())
    return ActiveLearner(model, strategy, batch_size=10, random_state=0)


def label(session, y, n=120, **options):
    """Answer n items."""
    while len(session.labels) < n:
        ids = session.ask().ids
        session.tell(ids, [y[id] for id in ids], **options)


@pytest.fixture
def session(open_session):
    session = open_session(TEXTS, learner=make_learner(), audit_every=2)
    label(session, NAMES[CODES].tolist())
    return session


def test_shares_are_those_of_the_sample_with_the_model_as_proxy(session):
    shares = session.prevalence().estimates
    sample = session.audited
    assert len(sample) >= 60
    plain = estimate_prevalence([session.labels[id] for id in sample], n_pool=N)
    for (_, name), found in shares.items():
        assert (found.n_pool, found.n_labels) == (N, len(sample))
        assert abs(found.value - np.mean(NAMES[CODES] == name)) < 0.15
        assert found.half_width <= 1.3 * plain.estimates[None, name].half_width
    assert max(found.r2 for found in shares.values()) > 0.3


def test_predictions_of_labeled_items_are_held_out(session):
    # By hand: models without the label of the item, and the model of all labels.
    from skactive.session._evidence import find_evidence

    evidence = find_evidence(session._core, blind=True)
    model = session.learner.predict_proba(TEXTS)
    place = {row: i for i, row in enumerate(evidence.positions.tolist())}
    rest = [id for id in range(N) if id not in session.labels]
    np.testing.assert_allclose(
        evidence.predicted[[place[x] for x in rest]], model[rest]
    )
    labeled = list(session.labels)
    own = evidence.predicted[[place[x] for x in labeled]]
    assert np.abs(own - model[labeled]).max() > 0.01
    # the sum of both parts is the estimate
    codes = [evidence.classes.index(name) for name in evidence.labels]
    expected = estimate_share(
        np.equal(codes, 0),
        evidence.predicted[evidence.places, 0],
        evidence.predicted[:, 0],
    )
    assert session.prevalence().estimates[None, "bug"] == expected


def test_groups(session):
    groups = ["even" if i % 2 == 0 else "odd" for i in range(N)]
    found = session.prevalence(groups).estimates
    assert {group for group, _ in found} == {"even", "odd"}
    assert {x.n_pool for x in found.values()} == {N // 2}
    assert abs(found["even", "question"].value - np.mean(CODES[::2] == 2)) < 0.15
    with pytest.raises(ValueError, match="one group for each of the 400 items"):
        session.prevalence(groups[1:])


def test_quality_is_about_the_pool(session):
    quality = session.quality()
    truth = np.mean(session.learner.predict(TEXTS) == NAMES[CODES])
    assert abs(quality.accuracy.value - truth) < 0.15
    assert quality.accuracy.n_labels == len(session.audited)
    assert set(quality.classes) == set(NAMES)
    assert quality.confusion.sum() == len(session.audited)


def test_answers_with_help_are_left_out_unless_they_are_wanted(open_session):
    session = open_session(TEXTS, learner=make_learner(), audit_every=2)
    y = NAMES[CODES].tolist()
    label(session, y, 60)
    n = len(session.audited)
    seen = session.audited[0]
    session.withdraw(seen)
    session.tell(seen, y[seen], shown="prediction")
    session.tell(seen, y[seen])  # a later answer does not count
    with pytest.warns(UserWarning, match="1 answers of the audit were given with help"):
        blind = session.prevalence().estimates[None, "bug"]
    every = session.prevalence(blind=False).estimates[None, "bug"]
    assert (blind.n_labels, every.n_labels) == (n - 1, n)
    assert (blind.n_pool, every.n_pool) == (N - 1, N)  # it is about the others
    assert session.estimate().n_audited == n - 1
    assert session.estimate(blind=False).n_audited == n
    assert session.quality(blind=False).accuracy.n_labels == n


def test_journals_of_before_say_nothing_about_help(open_session):
    session = open_session(TEXTS, learner=make_learner(), audit_every=2)
    label(session, NAMES[CODES].tolist(), 60, shown=None)
    for ask in (session.prevalence, session.quality):
        with pytest.raises(
            ValueError, match="answers of the audit were given with help"
        ):
            ask()
    found = session.prevalence(blind=False).estimates
    assert {x.n_labels for x in found.values()} == {len(session.audited)}


def test_skipped_texts_are_not_of_the_pool(session):
    free = [id for id in range(N) if id not in session.labels][:3]
    session.skip(free, unasked=True)
    assert session.prevalence().estimates[None, "bug"].n_pool == N - 3


def test_several_classes_per_text(open_session):
    model = OneVsRestClassifier(LogisticRegression())
    session = open_session(
        TEXTS,
        learner=make_learner(model),
        audit_every=2,
        multi_label=True,
        classes=["even", *NAMES.tolist()],
    )
    y = [[NAMES[code]] + ["even"] * (i % 2 == 0) for i, code in enumerate(CODES)]
    label(session, y)
    found = session.prevalence().estimates
    for name, truth in (("even", 0.5), ("question", np.mean(CODES == 2))):
        assert abs(found[None, name].value - truth) < 0.15
    quality = session.quality()
    assert quality.confusion is None
    assert quality.classes["question"].f1.value > 0.6


def test_numbers(open_session):
    session = open_session(
        TEXTS, learner=make_learner(Ridge(), "random"), audit_every=2
    )
    y = (CODES * 2.0 + RNG.normal(0, 0.1, N)).tolist()
    label(session, y)
    found = session.prevalence()
    assert abs(found.value - np.mean(y)) < 0.3
    plain = estimate_mean([session.labels[id] for id in session.audited], n_pool=N)
    assert found.half_width < 0.8 * plain.half_width
    with pytest.raises(TypeError, match="shares of classes"):
        session.prevalence(["a"] * N)


def test_without_a_model_shares_are_those_of_the_sample(open_session):
    session = open_session(TEXTS, learner=make_learner(), audit_every=1)
    ids = session.ask(20).ids
    session.tell(ids, ["bug"] * 20)
    shares = session.prevalence().estimates
    assert shares[None, "bug"].n_labels == 20
    assert shares[None, "bug"].r2 == 0
    with pytest.raises(ValueError, match="no model yet"):
        session.quality()


def test_without_an_audit_the_error_says_how_to_get_one(open_session):
    session = open_session(TEXTS, learner=make_learner(), audit_every=None)
    label(session, NAMES[CODES].tolist(), 20)
    with pytest.raises(ValueError, match="audit_every=10"):
        session.prevalence()
