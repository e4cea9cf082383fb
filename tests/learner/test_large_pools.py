"""A pool in a file is asked about as a list is, and its texts are not all read."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from joblib import Parallel, delayed
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, simulate
from skactive._storage._fingerprint import hash_items
from skactive._storage._text_file import TextFile
from skactive._storage._text_pool import TextPool
from skactive.datasets import open_pool
from skactive.semi_supervised import SelfTraining

N = 20_000
LABELS = np.array(["no", "yes"])[np.arange(N) % 2]
# A third of the texts occurs twice.
TEXTS = [f"text {i % (3 * N // 4)} {LABELS[i]}" for i in range(N)]


class LookUp(TransformerMixin, BaseEstimator):
    """Features that are a function of the hash of a text, as from a table of them."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        bits = hash_items(X)[:, None] >> np.arange(0, 64, 8, dtype=np.uint64)
        return (bits & np.uint64(255)).astype(np.float64) / 255

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


@pytest.fixture(scope="module")
def pool():
    return open_pool(ds.dataset(pa.table({"text": TEXTS})), "text")


@pytest.fixture
def n_read(monkeypatch):
    """A list of the numbers of texts that are read from the file."""
    read, counts = TextFile.read_texts, []

    def count(self, rows):
        counts.append(len(rows))
        return read(self, rows)

    monkeypatch.setattr(TextFile, "read_texts", count)
    return counts


def make(strategy="margin", final=None):
    final = LogisticRegression() if final is None else final
    return ActiveLearner(make_pipeline(LookUp(), final), strategy, random_state=0)


STRATEGIES = ["margin", "random", "coreset", "badge", "embedding_kmeans"]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_picks_are_those_of_a_list_and_few_texts_are_read(pool, n_read, strategy):
    given, expected = make(strategy), make(strategy)
    queried = np.arange(0, 60, 3)
    rest = np.setdiff1d(np.arange(N), queried)
    given.fit(pool[queried], LABELS[queried])
    expected.fit([TEXTS[i] for i in queried], LABELS[queried])
    for candidates in (None, rest, rest[::7]):
        picks = given.query(pool, 20, candidates=candidates)
        assert_array_equal(picks, expected.query(TEXTS, 20, candidates=candidates))
    given.teach(pool[picks], LABELS[picks])
    expected.teach([TEXTS[i] for i in picks], LABELS[picks])
    assert_array_equal(given.query(pool, 20), expected.query(TEXTS, 20))
    assert isinstance(given.X_labeled_, TextPool)
    assert sum(n_read) < 100  # a look at one text, here and there


def test_labels_for_texts_of_other_containers_are_mixed(pool):
    learner = make().fit(pool[:10], LABELS[:10]).teach(TEXTS[10:20], LABELS[10:20])
    assert learner.X_labeled_ == TEXTS[:20]
    assert min(learner.query(pool, N)) == 20
    learner = make().fit(TEXTS[:10], LABELS[:10]).teach(pool[10:20], LABELS[10:20])
    assert learner.X_labeled_ == TEXTS[:20]
    assert_array_equal(learner.query(pool, 30), learner.query(TEXTS, 30))


def test_a_pool_of_labeled_texts_alone_is_refused(pool):
    learner = make().fit(pool[:10], LABELS[:10])
    with pytest.raises(ValueError, match="every candidate is a text with a label"):
        learner.query(pool, candidates=np.arange(10))


@pytest.mark.long
@pytest.mark.parametrize("n_initial", [0, 20])
def test_simulations_are_those_of_a_list(pool, n_read, n_initial, tmp_path):
    plan = {"n_initial": n_initial, "n_rounds": 3, "pool_size": 18_000}
    run = simulate(make(), pool, LABELS, **plan, folder=tmp_path)
    assert sum(n_read) < 100
    expected = simulate(make(), TEXTS, LABELS, **plan)
    assert_array_equal(run.queried, expected.queried)
    # The folder belongs to the texts, in whatever file they are.
    same = open_pool(ds.dataset(pa.table({"text": TEXTS})), "text")
    again = simulate(make(), same, LABELS, **plan, folder=tmp_path)
    assert_array_equal(again.queried, run.queried)
    with pytest.raises(ValueError, match="with other settings: data: X was"):
        simulate(make(), pool[::-1], LABELS, **plan, folder=tmp_path)


def test_unlabeled_texts_are_not_listed(pool, n_read):
    final = SelfTraining(LogisticRegression(), random_state=0)
    queried = np.arange(0, 80, 2) + np.arange(40) % 2
    given = make(final=final).fit(pool[queried], LABELS[queried], X_unlabeled=pool)
    assert sum(n_read) < 100
    texts = [TEXTS[i] for i in queried]
    listed = make(final=final).fit(texts, LABELS[queried], X_unlabeled=TEXTS)
    assert_array_equal(given.predict_proba(pool[:9]), listed.predict_proba(TEXTS[:9]))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("vectorizer", [TfidfVectorizer(), HashingVectorizer()])
def test_vectorizers_of_scikit_learn_read_it_as_a_stream(pool, vectorizer):
    pipe = make_pipeline(vectorizer, LogisticRegression())
    learner = ActiveLearner(pipe, random_state=0).fit(pool[:50], LABELS[:50])
    part = slice(0, 500)
    assert_array_equal(learner.query(pool[part]), learner.query(TEXTS[part]))
    assert learner.score(pool[:50], LABELS[:50]) == 1


def test_a_learner_is_pickled_without_the_texts(pool):
    learner = pickle.loads(pickle.dumps(make().fit(pool[:50], LABELS[:50])))
    assert list(learner.X_labeled_) == TEXTS[:50]


def test_a_learner_predicts_when_the_pool_is_gone(tmp_path):
    table = pa.table({"text": TEXTS[:50]})
    pool = open_pool(ds.dataset(table), "text")
    data = pickle.dumps(make().fit(pool, LABELS[:50]))
    del pool
    learner = pickle.loads(data)
    assert set(learner.predict(TEXTS[:50])) == {"no", "yes"}
    with pytest.raises(FileNotFoundError, match="the file of this pool is gone"):
        learner.teach(["x"], ["no"])


@pytest.mark.slow
def test_processes_open_the_file(pool):
    parts = Parallel(n_jobs=2)(delayed(list)(pool[i : i + 3]) for i in (0, 9000))
    assert parts == [TEXTS[:3], TEXTS[9000:9003]]
