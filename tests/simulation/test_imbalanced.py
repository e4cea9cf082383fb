"""Rare classes: how many stay, which, in what container, and what is refused."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from skactive.simulation import make_imbalanced

from ._helpers import CLASSES as Y
from ._helpers import ITEMS as X


@pytest.mark.parametrize(
    ("params", "n_kept"),
    [
        ({}, 7),  # 10 % of 67 is 6.7
        ({"prior": 0.1}, 7),
        ({"prior": 0.25}, 20),
        ({"prior": 0.4}, 40),
        ({"prior": 1 / 61}, 1),
    ],
)
def test_so_many_of_the_class_stay(params, n_kept):
    _, y = make_imbalanced(X, Y, minority="spam", random_state=0, **params)
    assert Counter(y.tolist()) == {"ham": 60, "spam": n_kept}


@pytest.mark.long
@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.floats(0.01, 0.99),
    st.randoms(use_true_random=False),
    st.integers(0, 9),
)
@settings(deadline=None)
def test_the_prior_is_as_near_as_whole_items_allow(
    n_others, n_of_class, share, random, seed
):
    y = [0, 2, 3][: n_others % 3 + 1] * n_others
    y = y[:n_others] + [1] * n_of_class
    random.shuffle(y)
    wanted = max(share * n_of_class, 0.6)
    prior = wanted / (wanted + n_others)
    items = list(range(len(y)))
    kept, labels = make_imbalanced(items, y, minority=1, prior=prior, random_state=seed)
    assert kept == sorted(set(kept))
    assert labels == [y[i] for i in kept]
    assert [i for i in kept if y[i] != 1] == [i for i in items if y[i] != 1]
    assert abs(labels.count(1) - wanted) <= 0.5 + 1e-9


def test_the_published_prior_of_ten_percent_is_reached():
    y = np.repeat([0, 1], [5000, 5000])
    _, y = make_imbalanced(y, y, minority=1, prior=0.1, random_state=0)
    assert y.mean() == pytest.approx(0.1, abs=1e-4)


def test_every_item_of_the_class_is_as_likely_to_stay():
    counts = np.zeros(100)
    for seed in range(400):
        kept, _ = make_imbalanced(
            np.arange(100), Y, minority="spam", prior=0.25, random_state=seed
        )
        counts[kept] += 1
    assert (counts[:60] == 400).all()
    # 20 of 40 each time: 200 +- 10; five standard deviations.
    assert np.abs(counts[60:] - 200).max() < 50


def test_the_seed_decides_what_stays():
    def kept(seed):
        positions = np.arange(len(Y))
        return make_imbalanced(positions, Y, minority="spam", random_state=seed)[
            0
        ].tolist()

    assert kept(1) == kept(1) != kept(2)


@pytest.mark.parametrize("wrap", [list, tuple, np.array])
def test_containers_keep_their_kind(wrap):
    texts = wrap([f"text {i}" for i in range(100)])
    kept, y = make_imbalanced(texts, Y.tolist(), minority="spam", random_state=0)
    assert isinstance(kept, list if wrap is tuple else type(texts))
    assert isinstance(y, list)
    assert len(kept) == len(y) == 67


def test_frames_series_and_sparse_matrices_keep_their_kind():
    pd = pytest.importorskip("pandas")
    frame, series = pd.DataFrame({"a": X[:, 0]}), pd.Series(Y, index=X[:, 0] + 5)
    kept, y = make_imbalanced(frame, series, minority="spam", random_state=0)
    assert (kept.index + 5 == y.index).all()
    kept, _ = make_imbalanced(sparse.csr_matrix(X), Y, minority="spam", random_state=0)
    assert sparse.issparse(kept)
    assert kept.shape == (67, 1)


@pytest.mark.parametrize("label", [True, 1, np.int64(1)])
def test_classes_of_other_kinds(label):
    y = (Y == "spam") if label is True else (Y == "spam").astype(int)
    _, kept = make_imbalanced(X, y, minority=label, random_state=0)
    assert kept.sum() == 7


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"minority": "egg"}, r"'minority' must be one of the classes in 'y', \['ham'"),
        ({"minority": 1}, "'minority' must be one of the classes in 'y'"),
        ({"prior": 0.5}, "prior=0.5 needs 60 items of the class 'spam' for the 60"),
        (
            {"prior": 0.001},
            "prior=0.001 leaves no item of the class 'spam' next to the",
        ),
        ({"prior": 0}, r"'prior' .* in the range \(0\.0, 1\.0\)\. Got 0"),
        ({"prior": 1}, r"'prior' .* in the range \(0\.0, 1\.0\)\. Got 1"),
        ({"prior": "10%"}, r"'prior' .* in the range \(0\.0, 1\.0\)\. Got '10%'"),
        ({"prior": np.nan}, r"'prior' .* in the range \(0\.0, 1\.0\)\. Got nan"),
        ({"prior": True}, r"'prior' .* in the range \(0\.0, 1\.0\)\. Got True"),
        ({"y": Y[:5]}, "'X' and 'y' differ in length"),
        ({"y": [None, *Y[1:]]}, "'y' has no label at positions 0"),
    ],
)
def test_what_cannot_be_made_is_refused(params, message):
    with pytest.raises(ValueError, match=message):
        make_imbalanced(**{"X": X, "y": Y, "minority": "spam", **params})


@pytest.mark.parametrize("y", [np.linspace(0, 1, 100), np.eye(100, 2, dtype=int)])
def test_targets_that_are_no_classes_are_refused(y):
    with pytest.raises(TypeError, match="'y' must hold one class for each item"):
        make_imbalanced(X, y, minority=0)
