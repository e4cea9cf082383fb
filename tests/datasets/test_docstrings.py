"""The built-in data set: texts that come with the package."""

import hashlib

import numpy as np
import pytest

from skactive.datasets import load_docstrings

SIZES = {"numpy": 1182, "scikit-learn": 1151, "scipy": 1838, "torch": 2500}


@pytest.fixture(scope="module")
def docstrings():
    return load_docstrings()


def test_texts_have_labels_of_every_library(docstrings):
    names, counts = np.unique(docstrings.target, return_counts=True)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == SIZES
    assert docstrings.target_names == list(SIZES)
    assert docstrings.target.dtype.kind == "U"
    assert all(type(text) is str for text in docstrings.data)


def _hash(texts):
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def test_the_texts_and_their_order_never_change(docstrings):
    assert _hash(docstrings.data) == "b7d2ebb0195f0b33"
    assert _hash(load_docstrings(max_per_library=120).data) == "c56eb257783ed2c0"


def test_no_text_names_a_library(docstrings):
    names = ("numpy", "scipy", "sklearn", "scikit-learn", "torch")
    named = [x for x in docstrings.data if any(name in x.lower() for name in names)]
    assert named == []


def test_texts_are_unique_and_have_five_words_or_more(docstrings):
    assert len({text.casefold() for text in docstrings.data}) == len(docstrings.data)
    assert min(len(text.split()) for text in docstrings.data) == 5


def test_the_libraries_are_mixed(docstrings):
    for y in (docstrings.target[:400], load_docstrings(max_per_library=20).target[:40]):
        _, head = np.unique(y, return_counts=True)
        assert head.size == 4
        assert head.min() > len(y) / 10


def test_the_description_names_versions_counts_and_licenses(docstrings):
    assert "numpy 2.4.6: 1182; " in docstrings.DESCR
    assert docstrings.DESCR.count("Copyright (c)") >= 3
    assert docstrings.DESCR.count("POSSIBILITY OF SUCH DAMAGE") == 4


def test_return_X_y_and_fewer_texts_per_library(docstrings):
    X, y = load_docstrings(max_per_library=50, return_X_y=True)
    assert np.unique(y, return_counts=True)[1].tolist() == [50] * 4
    assert set(X) < set(docstrings.data)


@pytest.mark.parametrize("value", [0, -1, 2.5, "all"])
def test_max_per_library_must_be_positive(value):
    with pytest.raises(ValueError, match=r"'max_per_library' parameter .* an int"):
        load_docstrings(max_per_library=value)
