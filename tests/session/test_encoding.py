"""Features that are computed in a thread while people label."""

import threading

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive.session import Desk

WAIT = 120.0  # seconds, for what takes a fraction of one


class SlowFeatures(TransformerMixin, BaseEstimator):
    """Features that need no training, and that wait until the test lets them go on."""

    seen: dict = {}
    gate = threading.Event()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string = True
        return tags

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        if threading.current_thread() is not threading.main_thread():
            self.gate.wait(WAIT)
        type(self).seen.update(dict.fromkeys(X))
        return np.array([[len(text), text.count("a")] for text in X], dtype=float)


@pytest.fixture
def texts():
    return [f"{'a' * (i % 7)} text {i}" for i in range(300)]


@pytest.fixture
def learner():
    SlowFeatures.seen, SlowFeatures.gate = {}, threading.Event()
    model = make_pipeline(SlowFeatures(), LogisticRegression())
    yield ActiveLearner(model, batch_size=4, random_state=0)
    SlowFeatures.gate.set()


def _wait_until_encoded(session):
    SlowFeatures.gate.set()
    session._core.models._encoder._thread.join(WAIT)
    assert session.encoded == 1


def test_the_first_items_need_no_features(open_session, learner, texts):
    session = open_session(
        texts, learner=learner, refit="background", encode="background"
    )
    assert len(session.ask()) == 4
    assert (session.encoded, SlowFeatures.seen) == (0, {})
    assert session.newest_model.learner is None
    SlowFeatures.gate.set()


def test_what_is_asked_without_a_model_belongs_to_the_audit(
    open_session, learner, texts
):
    options = {"encode": "background", "audit_every": 4, "max_similarity": 0.9}
    session = open_session(texts, learner=learner, refit="background", **options)
    batch = session.ask(8)
    session.tell(batch.ids, ["a", "b"] * 4)
    assert set(session.audited) == set(batch.ids)
    assert SlowFeatures.seen == {}
    SlowFeatures.gate.set()


def test_labels_of_the_learner_need_no_waiting_either(open_session, learner, texts):
    learner.teach(texts[:9], list("ababababa"), refit=False)
    session = open_session(
        texts, learner=learner, refit="background", encode="background"
    )
    assert len(session.ask()) == 4
    assert session.newest_model.learner is None
    _wait_until_encoded(session)
    session._core.models._trainer.wait()
    assert session.newest_model.learner.predict(texts[:1]).tolist() == ["a"]


def test_items_are_chosen_by_the_strategy_once_all_have_features(
    open_session, learner, texts, tmp_path
):
    labels = {i: "ab"[i % 7 > 3] for i in range(20)}
    session = open_session(texts, learner=learner, encode="background")
    _wait_until_encoded(session)
    session.tell(labels, unasked=True)
    plain = open_session(texts, folder=tmp_path / "plain", learner=learner)
    plain.tell(labels, unasked=True)
    assert session.ask().ids == plain.ask().ids
    assert session.newest_model.learner.predict(
        ["aaaaaa text 9", " text 9"]
    ).tolist() == [
        "b",
        "a",
    ]


def test_candidates_are_items_with_features_while_others_have_none(
    open_session, learner, texts
):
    session = open_session(texts, learner=learner, encode="background")
    encoder = session._core.models._encoder
    encoder.ready[::3] = True
    session.tell({i: "ab"[i % 7 > 3] for i in range(20)}, unasked=True)
    assert encoder.ready[list(session.ask(10).ids)].all()
    # The unlabeled items that a model may learn from have features, too.
    assert encoder.ready.any()
    assert not encoder.ready.all()
    SlowFeatures.gate.set()


def test_every_item_is_encoded_once_in_a_random_order(open_session, learner, texts):
    session = open_session(texts, learner=learner, encode="background")
    _wait_until_encoded(session)
    assert sorted(SlowFeatures.seen) == sorted(set(texts))
    assert list(SlowFeatures.seen)[:256] != texts[:256]


def test_all_is_encoded_only_when_all_items_are_marked(open_session, learner, texts):
    encoder = open_session(
        texts, learner=learner, encode="background"
    )._core.models._encoder
    shares = []

    class Watched(np.ndarray):
        def __setitem__(self, rows, values):
            shares.append(encoder.share)
            super().__setitem__(rows, values)

    encoder.ready = encoder.ready.view(Watched)
    SlowFeatures.gate.set()
    encoder._thread.join(WAIT)
    assert shares == [0, 256 / 300]
    assert encoder.share == 1
    assert encoder.find_ready() is None


def test_close_ends_the_encoding(open_session, learner, texts):
    session = open_session(texts, learner=learner, encode="background")
    SlowFeatures.gate.set()
    session.close()
    assert not session._core.models._encoder._thread.is_alive()


def test_who_waits_for_the_features_does_not_wait_for_the_thread(
    open_session, learner, texts
):
    session = open_session(texts, learner=learner, encode="background")
    models = session._core.models
    shares = []
    while models.encode_more():  # the gate keeps the thread in its first chunk
        shares.append(session.encoded)
    assert shares in ([44 / 300, 1.0], [256 / 300, 1.0])
    assert models.find_ready() is None
    assert sorted(SlowFeatures.seen) == sorted(set(texts))
    _wait_until_encoded(session)
    assert not models.encode_more()


def test_a_pool_that_grows_is_encoded_in_the_thread_again(open_session, learner, texts):
    session = open_session(texts, learner=learner, encode="background")
    while session._core.models.encode_more():
        pass
    session.add(["one more"])
    _wait_until_encoded(session)
    assert "one more" in SlowFeatures.seen


def test_an_error_of_the_features_is_raised_where_they_are_needed(
    open_session, learner, texts, monkeypatch
):
    def fail(self, X):
        raise RuntimeError("no features")

    monkeypatch.setattr(SlowFeatures, "transform", fail)
    session = open_session(texts, learner=learner, encode="background")
    session._core.models._encoder._thread.join(WAIT)
    with pytest.raises(RuntimeError, match="no features"):
        session.ask()


def _fail_at_one(monkeypatch, bad):
    def transform(self, X):
        if bad in list(X):
            raise ValueError("a bad text")
        return np.array([[len(text), text.count("a")] for text in X], dtype=float)

    monkeypatch.setattr(SlowFeatures, "transform", transform)


def test_an_error_of_the_features_is_known_at_once_and_raised_once(
    open_session, learner, texts, monkeypatch
):
    _fail_at_one(monkeypatch, texts[7])
    session = open_session(
        texts, learner=learner, refit="background", encode="background"
    )
    session._core.models._encoder._thread.join(WAIT)
    assert str(session._core.models.encoding_error) == "a bad text"
    assert session.encoded == 1
    with pytest.raises(ValueError, match="a bad text") as caught:
        session.ask(3)
    assert "No label is lost" in caught.value.__notes__[0]
    assert len(session.ask(3)) == 3


def test_only_items_whose_features_failed_have_none(
    open_session, learner, texts, monkeypatch
):
    _fail_at_one(monkeypatch, texts[7])
    session = open_session(
        texts, learner=learner, refit="background", encode="background"
    )
    session._core.models._encoder._thread.join(WAIT)
    ready = session._core.models._encoder.ready
    assert not ready[7]
    assert ready.sum() == 300 - 256


def test_a_front_end_shows_an_error_of_the_features(
    open_session, learner, texts, monkeypatch
):
    _fail_at_one(monkeypatch, texts[7])
    session = open_session(
        texts, learner=learner, refit="background", encode="background"
    )
    with Desk(session) as desk:
        session._core.models._encoder._thread.join(WAIT)
        assert "ValueError: a bad text" in desk.state()["model"]["error"]
        assert len(desk.next("a tab")) == 2  # people go on


def test_features_of_a_pipeline_that_is_trained_are_not_computed(open_session):
    plain = ActiveLearner(LogisticRegression())
    session = open_session(learner=plain, encode="background")
    assert session._core.models._encoder is None
    assert session.encoded == 1


def test_another_value_is_refused(open_session):
    with pytest.raises(ValueError, match="'encode' must be None or 'background'"):
        open_session(encode=True)


@pytest.mark.parametrize("when", ["during", "after"])
def test_items_that_are_added_are_encoded_too(open_session, learner, texts, when):
    session = open_session(
        texts, learner=learner, refit="background", encode="background"
    )
    if when == "after":
        _wait_until_encoded(session)
    session.add(["the last", "the very last"])
    assert session.encoded < 1 or when == "after"
    _wait_until_encoded(session)
    assert {*texts, "the last", "the very last"} <= SlowFeatures.seen.keys()
    assert len(session.ask(302)) == 302
