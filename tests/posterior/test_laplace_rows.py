"""Laplace draws for rows of every form, and what the rows of the training must be."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.linear_model import LogisticRegression, SGDClassifier

from skactive.linear_model import _normal as laplace
from skactive.posterior import sample_proba, sampler

from ._helpers import X_ASKED, log_odds, make_data

# The form of what is asked.


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_draws_have_the_precision_of_the_features(k, dtype):
    X, y = make_data(k)
    model = LogisticRegression().fit(X, y)
    exact = sample_proba(model, X_ASKED, 30, 0, X_train=X)
    draws = sample_proba(
        model, X_ASKED.astype(dtype), 30, 0, X_train=X.astype(dtype), y_train=y
    )
    assert draws.dtype == dtype
    assert_allclose(draws, exact, atol=1e-4 if dtype == np.float32 else 1e-12)
    assert_allclose(draws.sum(axis=2), 1, atol=1e-6)


@pytest.mark.parametrize(
    "make", [LogisticRegression, lambda: SGDClassifier("log_loss")]
)
@pytest.mark.parametrize(
    "kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array]
)
@pytest.mark.parametrize("k", [2, 3])
def test_sparse_features_give_what_dense_ones_give(k, kind, make):
    X, y = make_data(k)
    model = make().fit(X, y)
    dense = sample_proba(model, X_ASKED, 30, 0, X_train=X)
    thin = sample_proba(model, kind(X_ASKED), 30, 0, X_train=kind(X))
    assert_allclose(thin, dense, atol=1e-9)
    assert_allclose(
        sample_proba(model.sparsify(), X_ASKED, 30, 0, X_train=X), dense, atol=1e-9
    )


@pytest.mark.long
def test_many_words_and_few_texts():
    rng = np.random.default_rng(0)
    X = sparse.random(40, 6000, density=0.02, format="csr", random_state=rng)
    model = LogisticRegression().fit(X, np.arange(40) % 3)
    # Words that no text has are as open as the prior leaves them; seen ones are less.
    word = sparse.csr_array(([3.0], ([0], [_unused_column(X)])), shape=(1, 6000))
    draws = sample_proba(model, sparse.vstack([word, word * 0, X]), 800, 0, X_train=X)
    odds = log_odds(draws)[..., 0]
    assert np.var(odds[0] - odds[1]) == pytest.approx(2 * 9, rel=0.2)
    lengths = X.multiply(X).sum(axis=1)
    assert (np.var(odds[2:] - odds[1], axis=1) < 2 * lengths).mean() > 0.8


def _unused_column(X):
    return int(np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) == 0)[0])


@pytest.mark.parametrize("k", [2, 3])
def test_chunks_of_rows_meet_the_same_models(k, monkeypatch):
    X, y = make_data(k)
    draw = sampler(LogisticRegression().fit(X, y), 11, 0, X_train=X)
    whole = draw(X)
    assert_allclose(np.concatenate([draw(X[:7]), draw(X[7:])]), whole, rtol=1e-12)
    monkeypatch.setattr(laplace, "chunk_size", lambda *width: 9)
    assert_allclose(draw(X), whole, rtol=1e-12)


def test_features_far_out_have_probabilities_of_zero_and_one():
    X, y = make_data(3)
    for model in (LogisticRegression(), SGDClassifier("log_loss")):
        model.fit(X, y)
        for scale in (1e6, 1e300):
            draws = sample_proba(model, X_ASKED * scale, 20, 0, X_train=X)
            assert_allclose(draws.sum(axis=2), 1, rtol=1e-6)
            assert set(np.unique(draws.round(6))) >= {0.0, 1.0}


def test_a_memory_map_is_read_in_chunks(tmp_path):
    X, y = make_data(3)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = LogisticRegression().fit(X, y)
    assert_array_equal(
        sample_proba(model, mapped, 5, 0, X_train=mapped),
        sample_proba(model, X, 5, 0, X_train=X),
    )


# Labels that the class weights need.


@pytest.mark.parametrize("class_weight", ["balanced", {"yes": 5.0}])
def test_labels_not_given_are_those_predicted(class_weight):
    X, y = make_data(3)
    model = LogisticRegression(class_weight=class_weight).fit(X, y)
    predicted = sample_proba(model, X, 5, 0, X_train=X, y_train=model.predict(X))
    assert_array_equal(sample_proba(model, X, 5, 0, X_train=X), predicted)
    assert not np.allclose(
        sample_proba(model, X, 5, 0, X_train=X, y_train=y), predicted
    )


@pytest.mark.parametrize(
    ("y_train", "message"),
    [
        (["no"], "X_train holds 60 items, y_train holds 1 labels"),
        (["?"] * 60, r"y_train holds labels.*it knows \['maybe', 'no', 'yes'\]"),
    ],
)
def test_labels_that_do_not_fit_are_named(y_train, message):
    X, y = make_data(3)
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match=message):
        sample_proba(model, X, 5, 0, X_train=X, y_train=y_train)


def test_features_that_do_not_fit_are_named():
    X, y = make_data(3)
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match=r"2 features, but .* 4 features"):
        sample_proba(model, X, 5, 0, X_train=X[:, :2])
    with pytest.raises(ValueError, match=r"2 features, but .* 4 features"):
        sample_proba(model, X[:, :2], 5, 0, X_train=X)
    with pytest.raises(ValueError, match="NaN"):
        sample_proba(model, X * np.nan, 5, 0, X_train=X)
