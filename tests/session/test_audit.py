"""The audit of a session, a random sample of the pool; near-duplicates in a batch."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skactive import ActiveLearner
from skactive.session._pool import Pool

from ._helpers import events


def label_all(session, data, n=4, rounds=100):
    """Answer batches of `n` until none is left; return the asked ids in order."""
    asked = []
    while len(asked) < n * rounds and (batch := session.ask(n)):
        session.tell(batch.ids, data[1][list(batch.ids)])
        asked += batch.ids
    return asked


def random_order(session):
    return session._core.queue.draws.order.tolist()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 4, 7, 60])
@pytest.mark.parametrize("every", [1, 3, 10])
def test_every_kth_item_is_the_next_one_of_a_random_order(open_session, data, every, n):
    session = open_session(audit_every=every)
    asked = label_all(session, data, n)
    assert sorted(asked) == list(range(60))
    drawn = asked[every - 1 :: every]
    listed = [id for event in events(session) for id in event.get("audit", ())]
    assert listed == drawn
    order = random_order(session)
    expected = []
    for i in range(every - 1, 60, every):  # the first that was not asked before
        batch = i // n * n
        taken = {*asked[:batch], *expected}
        expected.append(next(id for id in order if id not in taken))
    assert drawn == expected


def test_the_audit_is_the_answered_part_of_the_order(open_session, data):
    session = open_session(audit_every=5)
    assert session.audited == []
    order = random_order(session)
    batch = session.ask(10)
    drawn = [batch.ids[4], batch.ids[9]]
    assert drawn == order[:2]
    assert session.audited == []
    session.tell(drawn[1], "ham")
    assert session.audited == []
    session.tell(drawn[0], "ham")
    assert session.audited[:2] == drawn
    session.undo()
    session.skip(drawn[0])  # passed over
    assert session.audited[:1] == [drawn[1]]
    session.tell(order[2:6], ["ham"] * 4, unasked=True)  # these count for free
    found = session.audited
    assert found[:5] == order[1:6]
    answered = [id for id in order if id in session.labels or id in session.skipped]
    assert found == [id for id in answered[: 1 + len(found)] if id != drawn[0]]
    session.close()
    assert open_session(audit_every=5).audited == found


def test_labels_without_an_audit_are_no_sample(open_session, data):
    session = open_session()
    session.tell(range(60), data[1], unasked=True)
    assert session.audited == []


def test_the_order_depends_on_seed_and_texts_alone(open_session, learner, data):
    X = [f"text {i}" for i in range(40)]

    def text_order(X, seed, path, **options):
        other = clone(learner).set_params(random_state=seed)
        session = open_session(X, path, other, refit=False, **options)
        return [X[i] for i in random_order(session)]

    path = open_session().folder
    order = text_order(X, 0, path + "a")
    assert sorted(order) == sorted(X)
    assert text_order(X[::-1], 0, path + "b", ids=range(100, 140)) == order
    assert text_order(X * 2, 0, path + "c") == order
    assert text_order(X, 1, path + "d") != order
    grown = text_order([*X, *(f"new {i}" for i in range(40))], 0, path + "e")
    assert [text for text in grown if text in X] == order
    new_places = [i for i, text in enumerate(grown) if text not in X]
    assert np.mean(new_places) == pytest.approx(39.5, abs=8)


@pytest.mark.long
def test_every_item_is_as_often_the_first():
    firsts = np.zeros(6)
    equal = Pool(np.zeros((6, 2)))  # rows of numbers have no copies
    for pool in (Pool(list("abcdef")), equal, Pool([Text()] * 6, ids=range(6))):
        firsts = [np.argmin(pool.draw_keys(seed, "audit")) for seed in range(1200)]
        counts = np.bincount(firsts, minlength=6)
        assert (abs(counts - 200) < 50).all()


class Text:
    """An object whose content is not known."""


def test_other_purposes_are_independent():
    pool = Pool([str(i) for i in range(2000)])
    first, second = (pool.draw_keys(0, name) for name in ("audit", "overlap"))
    assert len({*first.tolist()}) == 2000
    assert abs(np.corrcoef(first.astype(float), second.astype(float))[0, 1]) < 0.1


@pytest.mark.long
def test_without_an_audit_nothing_changes(open_session, data, tmp_path):
    first, second = (open_session(folder=tmp_path / name) for name in "ab")
    random_order(second)  # looking at it moves no seed
    assert label_all(first, data) == label_all(second, data)
    assert not any("audit" in event for event in events(first))


@pytest.mark.long
def test_the_audit_goes_on_after_each_opening(open_session, data, tmp_path):
    whole = label_all(open_session(audit_every=3, folder=tmp_path / "w"), data, 4, 8)
    parts = []
    for _ in range(8):
        with open_session(audit_every=3) as session:
            parts += label_all(session, data, 4, 1)
    assert parts == whole


def test_what_the_learner_was_taught_is_not_in_the_order(open_session, learner, data):
    fitted = clone(learner).fit(data[0][:20], data[1][:20])
    session = open_session(learner=fitted, audit_every=2)
    assert sorted(random_order(session)) == list(range(20, 60))
    assert len(label_all(session, data)) == 40


def test_copies_are_one_text_of_the_sample(open_session, learner):
    texts = [f"text {i % 10}" for i in range(30)]
    session = open_session(texts, audit_every=1, refit=False)
    assert sorted(random_order(session)) == list(range(10))
    order = random_order(session)
    session.tell(order[0] + 20, "ham", unasked=True)
    (asked,) = session.ask(1).ids
    assert asked == order[1]
    session.tell(asked, "ham")
    assert session.audited == [order[0] + 20, order[1]]


# Near-duplicates ------------------------------------------------------------------


@pytest.fixture
def text_learner():
    hashes = FunctionTransformer(HashingVectorizer(n_features=64).transform)
    model = make_pipeline(hashes, LogisticRegression())
    return ActiveLearner(model, "margin", batch_size=6, random_state=0)


def make_texts(n_copies):
    """Return texts of which each has near-duplicates with another number at its end."""
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(200)]
    stems = [" ".join(rng.choice(words, size=12)) for _ in range(12)]
    return [f"{stem} {i}" for i in range(n_copies) for stem in stems]


@pytest.mark.long
@pytest.mark.parametrize("audit_every", [None, 4])
def test_no_two_items_of_a_batch_are_near_duplicates(
    open_session, text_learner, audit_every
):
    texts = make_texts(8)
    features = HashingVectorizer(n_features=64).transform(texts)
    similar = cosine_similarity(features)
    session = open_session(
        texts, learner=text_learner, max_similarity=0.9, audit_every=audit_every
    )
    for number in range(6):
        batch = session.ask(6)
        drawn = events(session)[-1].get("audit", [])  # these may be similar
        pairs = similar[np.ix_(batch.ids, batch.ids)] > 0.9
        pairs[np.ix_(*[[batch.ids.index(id) for id in drawn]] * 2)] = False
        assert pairs.sum() == 6 - len(drawn)
        assert len(batch) == 6
        session.tell(batch.ids, [f"class {(id + number) % 2}" for id in batch.ids])


@pytest.mark.long
def test_a_batch_is_short_where_only_near_duplicates_are_left(
    open_session, text_learner
):
    session = open_session(make_texts(8), learner=text_learner, max_similarity=0.9)
    assert len(session.ask(60)) == 12
    sizes = []
    while batch := session.ask(60):
        sizes.append(len(batch))
    assert sizes == [12] * 7


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["margin", "random", "coreset"])
def test_batches_without_near_duplicates_are_unchanged(
    open_session, text_learner, strategy, tmp_path
):
    learner = clone(text_learner).set_params(strategy=strategy)
    texts = make_texts(1)
    asked = []
    for name, limit in (("a", None), ("b", 0.9)):
        session = open_session(texts, tmp_path / name, learner, max_similarity=limit)
        first = session.ask(4)
        session.tell(first.ids, ["a", "b", "a", "b"])
        asked.append((first.ids, session.ask(4).ids))
    assert asked[0] == asked[1]


def test_a_pipeline_that_must_be_trained_has_no_features(open_session, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain, limited = (
            open_session(folder=tmp_path / name, max_similarity=limit)
            for name, limit in (("a", None), ("b", 0.0))
        )
    assert plain.ask(10).ids == limited.ask(10).ids


@pytest.mark.long
@pytest.mark.slow
def test_the_audit_has_no_bias(open_session, tmp_path):
    """A third of the items is hard, and the strategy asks them first."""
    X = np.arange(60.0)[:, None]

    def hard_first(view):
        return -view.X[:, 0]

    shares, biased = [], []
    for seed in range(100):
        learner = ActiveLearner(
            LogisticRegression(), hard_first, cold_start=hard_first, random_state=seed
        )
        path = tmp_path / f"{seed}"
        session = open_session(X, path, learner, refit=False, audit_every=2)
        for _ in range(3):
            batch = session.ask(8)
            session.tell(batch.ids, ["a"] * 8)
        sample = np.array(session.audited)
        assert len(sample) >= 12
        shares.append((sample < 20).mean())
        biased.append(np.mean(np.array(list(session.labels)) < 20))
        session.close()
    error = np.std(shares) / np.sqrt(len(shares))
    assert abs(np.mean(shares) - 1 / 3) < 3 * error < 0.05
    assert np.mean(biased) > 0.6


def test_a_release_moves_no_audit(open_session, data):
    session = open_session(audit_every=4)
    asked = [session.ask(4) for _ in range(3)]
    drawn = [batch.ids[3] for batch in asked]
    session.release()
    again = session.ask(4)
    order = random_order(session)
    assert drawn == order[:3]
    assert all(first < second for first, second in pairwise(map(order.index, drawn)))
    assert again.number == 4


def test_what_is_reserved_for_the_audit_is_a_share_that_stays(open_session, data):
    texts = [f"{text} {i}" for i, text in enumerate(np.resize(data[0], 900))]
    small = open_session(X=texts[:300], audit_every=5)
    first = small._core.queue.draws
    assert first.reserved.sum() == pytest.approx(60, abs=25)
    assert set(first.order[: first.reserved.sum()]) == {*np.flatnonzero(first.reserved)}
    before = first.reserved
    small.close()
    session = open_session(X=texts, audit_every=5)
    grown = session._core.queue.draws
    assert (grown.reserved[:300] == before).all()
    assert grown.reserved.sum() == pytest.approx(180, abs=45)
    session.close()
    assert not open_session(X=texts, audit_every=None)._core.queue.draws.reserved.any()


def test_a_session_says_whether_it_has_an_audit(open_session):
    session = open_session(audit_every=5)
    assert session.has_audit
    session.close()
    assert not open_session().has_audit


def test_what_was_shown_is_recorded(open_session, tmp_path):
    session = open_session()
    session.tell(3, "ham", unasked=True)
    session.tell(4, "ham", unasked=True, shown="prediction")
    session.tell([5, 6], ["ham", "spam"], unasked=True, shown=None)
    session.tell(3, "ham", unasked=True, annotator="bob", shown="suggestion")
    session.close()
    session = open_session()
    answers = session._core.state.answers
    assert [one.shown for one in answers[3].given] == ["none", "suggestion"]
    assert [len(answers[id].blind) for id in (3, 4, 5)] == [1, 0, 0]
    assert "shown" not in events(session)[-2]
    with pytest.raises(ValueError, match="'shown' must be one of None, 'none'"):
        session.tell(7, "ham", unasked=True, shown="all")
    assert 7 not in session.labels
