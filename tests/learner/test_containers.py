"""Texts, tables and pairs in every container."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, simulate

from ._helpers import POOL, SEED, SENTIMENT, WORDS, X, make, y

ONE_COLUMN = {
    "list": list,
    "tuple": tuple,
    "object": lambda texts: np.array(texts, dtype=object),
    "U": np.array,
    "StringDType": lambda texts: np.array(texts, dtype=np.dtypes.StringDType()),
    "pandas": pd.Series,
    "pandas-object": lambda texts: pd.Series(texts, dtype=object),
    "polars": pl.Series,
}


@pytest.mark.long
@pytest.mark.parametrize("kind", ONE_COLUMN)
def test_texts_in_every_container(kind):
    def text_learner():
        return ActiveLearner(
            make_pipeline(TfidfVectorizer(), LogisticRegression()), random_state=0
        )

    def run(texts, first, second):
        learner = text_learner().fit(first, SENTIMENT[:2])
        asked = learner.query(texts, 3, candidates=np.arange(2, 6))
        learner.teach(second, SENTIMENT[2:4])
        return asked, learner.predict_proba(texts), learner.X_labeled_

    wrap = ONE_COLUMN[kind]
    asked, proba, kept = run(wrap(WORDS), wrap(WORDS[:2]), wrap(WORDS[2:4]))
    expected = run(WORDS, WORDS[:2], WORDS[2:4])
    assert_array_equal(asked, expected[0])
    assert_array_equal(proba, expected[1])
    assert list(kept) == WORDS[:4]


def test_texts_may_change_their_container_between_calls():
    learner = ActiveLearner(make_pipeline(TfidfVectorizer(), LogisticRegression()))
    learner.fit(WORDS[:2], SENTIMENT[:2])
    learner.teach(np.array(WORDS[2:4], dtype=object), SENTIMENT[2:4])
    learner.teach(pd.Series(WORDS[4:]), SENTIMENT[4:])
    assert list(learner.X_labeled_) == WORDS


@pytest.mark.long
@pytest.mark.parametrize(
    "wrap",
    [
        np.asarray,
        lambda a: a.astype(np.float32),
        lambda a: a.tolist(),
        sparse.csr_matrix,
        sparse.coo_matrix,
        sparse.csr_array,
        lambda a: pd.DataFrame(a, columns=["a", "b", "c"]),
        lambda a: pl.DataFrame(a, schema=["a", "b", "c"]),
    ],
    ids=["array", "float32", "lists", "csr", "coo", "csr_array", "pandas", "polars"],
)
def test_tables_in_every_container(wrap):
    learner = make().fit(wrap(X[SEED]), y[SEED])
    picks = learner.query(wrap(X), 4, candidates=POOL)
    learner.teach(wrap(X[picks]), y[picks])
    expected = make().fit(X[SEED], y[SEED])
    assert_array_equal(picks, expected.query(X, 4, candidates=POOL))
    expected.teach(X[picks], y[picks])
    assert_allclose(
        learner.predict_proba(wrap(X)), expected.predict_proba(X), rtol=1e-4
    )


def test_text_pairs_pass_through():
    class Join:
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return [" ".join(pair) for pair in X]

    pipe = make_pipeline(Join(), TfidfVectorizer(), LogisticRegression())
    pairs = [(a, b) for a in WORDS[:3] for b in WORDS[3:]]
    labels = ["+", "-"] * 4 + ["+"]
    learner = ActiveLearner(pipe, random_state=0).fit(pairs[:4], labels[:4])
    as_array = np.array(pairs, dtype=object)
    assert_array_equal(learner.query(pairs, 3), learner.query(as_array, 3))
    learner.teach(as_array[4:6], labels[4:6])
    assert [tuple(pair) for pair in learner.X_labeled_] == pairs[:6]


@pytest.mark.parametrize("chunked", [False, True])
def test_texts_and_labels_in_arrow_arrays(chunked):
    wrap = pa.array if not chunked else (lambda values: pa.chunked_array([values]))
    pipe = make_pipeline(TfidfVectorizer(), LogisticRegression())
    learner = ActiveLearner(pipe, random_state=0)
    learner.fit(wrap(WORDS[:2]), wrap(SENTIMENT[:2]))
    picks = learner.query(wrap(WORDS), 2)
    learner.teach(wrap([WORDS[i] for i in picks]), wrap([SENTIMENT[i] for i in picks]))
    assert learner.X_labeled_ == [*WORDS[:2], *(WORDS[i] for i in picks)]
    assert_array_equal(learner.predict(wrap(WORDS)), learner.predict(WORDS))


@pytest.mark.parametrize("strategy", ["uherding", "coreset", "typiclust"])
@pytest.mark.parametrize("kind", ["with a bool", "nullable"])
def test_a_frame_of_several_kinds_of_numbers_is_its_float_array(strategy, kind):
    rows = np.random.default_rng(0).normal(size=(40, 3))
    frame = pd.DataFrame(rows, columns=[*"abc"]).assign(flag=rows[:, 0] > 0)
    if kind == "nullable":
        frame = frame.astype({"flag": int}).convert_dtypes()
    labels = (rows.sum(axis=1) > 0)[:12]
    picks = [
        ActiveLearner(LogisticRegression(), strategy, random_state=0)
        .fit(data[:12], labels)
        .query(data[12:], 5)
        for data in (frame, frame.astype(float))
    ]
    assert_array_equal(*picks)


def test_the_order_of_candidates_does_not_change_the_picks():
    rows = np.random.default_rng(0).normal(size=(60, 3))
    learner = ActiveLearner(LogisticRegression(), "badge", random_state=0)
    learner.fit(rows[:10], rows[:10, 0] > 0)
    candidates = np.arange(10, 60)
    found, turned = (
        learner.query(rows, 5, candidates=c) for c in (candidates, candidates[::-1])
    )
    assert_array_equal(found, turned)


def test_labels_of_dtype_object_are_scored():
    rows = np.random.default_rng(0).normal(size=(20, 3))
    labels = (rows[:, 0] > 0).astype(int).astype(object)
    learner = ActiveLearner(LogisticRegression(), random_state=0)
    assert learner.fit(rows, labels).score(rows, labels) > 0.8
    test = {"X_test": rows, "y_test": labels}
    run = simulate(learner, rows, labels, n_initial=5, n_rounds=1, **test)
    assert len(run.scores) == 2


def test_rows_in_lists_are_copied():
    rows = [[-1.0, 0.0], [1.0, 0.0], [-2.0, 0.0], [2.0, 0.0]]
    learner = make().fit(rows, [0, 1, 0, 1])
    before = learner.estimator_.coef_
    rows[0][0] = 500.0
    assert learner.X_labeled_[0] == [-1.0, 0.0]
    assert_array_equal(learner.refit().estimator_.coef_, before)


@pytest.mark.parametrize("strategy", ["typiclust", "coreset", "uherding", "margin"])
def test_a_sparse_pool_after_dense_labels(strategy):
    learner = make(strategy).fit(X[SEED], y[SEED])
    dense, found = learner.query(X, 3), learner.query(sparse.csr_array(X), 3)
    assert_array_equal(found, dense)
