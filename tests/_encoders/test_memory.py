"""The limit on memory: least recently used out."""

import gc
import weakref

import numpy as np
import pytest

from skactive._encoders._store import cache_limit, in_use, open_store, size_of
from skactive.bert import clear_cache, set_cache_limit

from ..bert._helpers import RECIPE, TEXTS, get, rows_of

pytestmark = pytest.mark.usefixtures("fresh_cache")

WIDE = 1000  # 4000 bytes a row, so that texts weigh little beside features


def ask(pool, **options):
    texts = [f"pool {pool} text {i}" for i in range(10)]  # some 42 kB with features
    features, encoded = get(texts, width=WIDE, **options)
    np.testing.assert_array_equal(features, rows_of(texts, WIDE))
    return bool(encoded)


def test_the_limit_is_two_gibibytes_until_another_is_set():
    assert set_cache_limit(12345) == 2 * 2**30
    assert set_cache_limit(678) == 12345


@pytest.mark.parametrize("n_bytes", [-1, 1.5, "1 GB", None, True])
def test_bad_limit(n_bytes):
    before = cache_limit()
    with pytest.raises(ValueError, match="'n_bytes' must be a non-negative int, got"):
        set_cache_limit(n_bytes)
    assert cache_limit() == before


def test_what_fits_is_kept():
    set_cache_limit(100_000)
    assert [ask(0), ask(1)] == [True, True]
    assert [ask(0), ask(1)] == [False, False]


def test_least_recently_used_goes_first():
    set_cache_limit(100_000)
    ask(0), ask(1)
    ask(0)  # now 1 is the oldest
    ask(2)  # two fit
    assert not ask(0)
    assert not ask(2)
    assert ask(1)


def test_a_look_up_by_text_counts_as_use():
    set_cache_limit(100_000)
    ask(0), ask(1)
    get(["pool 0 text 3"], width=WIDE)
    ask(2)
    assert not ask(0)


def test_the_limit_is_over_all_recipes_together():
    set_cache_limit(100_000)
    recipes = [{**RECIPE, "revision": str(i)} for i in range(3)]
    assert [ask(0, recipe=recipe) for recipe in recipes] == [True] * 3
    assert not ask(0, recipe=recipes[1])
    assert not ask(0, recipe=recipes[2])
    assert ask(0, recipe=recipes[0])


def test_a_lower_limit_works_at_once():
    for pool in range(3):
        ask(pool)
    set_cache_limit(50_000)
    assert not ask(2)
    assert ask(1)


@pytest.mark.long
@pytest.mark.slow
def test_a_lower_limit_frees_memory_without_another_call():
    gone = weakref.ref(get(["a"], width=WIDE)[0])
    ask(0)
    assert gone() is not None
    set_cache_limit(0)
    gc.collect()
    assert gone() is None


def test_what_a_call_under_way_has_used_is_kept():
    set_cache_limit(0)
    with in_use():  # such as in another thread
        assert ask(0)
        assert ask(1)
        assert not ask(0)
    assert ask(1)


def test_a_long_call_that_ends_keeps_no_more_than_the_latest():
    set_cache_limit(0)
    with in_use():
        ask(0), ask(1)
    assert not ask(1)
    assert ask(0)


def test_the_latest_answer_is_kept_whatever_its_size():
    set_cache_limit(0)
    assert ask(0)
    assert not ask(0)
    assert ask(1)
    assert ask(0)


def test_the_latest_answer_of_a_folder_is_kept_whatever_its_size(tmp_path):
    set_cache_limit(0)
    first, _ = get(TEXTS, tmp_path)
    assert get(TEXTS, tmp_path)[0] is first


def test_more_answers_than_fit_lose_their_memory_but_not_their_files(tmp_path):
    set_cache_limit(0)
    for pool in range(3):
        assert ask(pool, folder=tmp_path)
    for pool in range(3):
        assert not ask(pool, folder=tmp_path)


def test_texts_known_to_be_in_a_folder_count(tmp_path):
    set_cache_limit(0)
    get(TEXTS, tmp_path)
    index = open_store(tmp_path, RECIPE)._disk.index
    assert index.n_bytes >= size_of(TEXTS)
    get(["another text, of another store"])
    assert (index.rows, index.n_bytes) == ({}, 0)
    assert get(TEXTS[::-1], tmp_path)[1] == []


@pytest.mark.long
@pytest.mark.slow
def test_dropped_features_leave_the_memory():
    set_cache_limit(50_000)
    gone = weakref.ref(get(["a"], width=WIDE)[0])
    ask(0)
    ask(1)
    gc.collect()
    assert gone() is None


def test_features_in_use_outlive_the_cache():
    set_cache_limit(0)
    held, _ = get(TEXTS)
    expected = held.copy()
    get(["something else"])
    clear_cache()
    np.testing.assert_array_equal(held, expected)


def test_clear_cache_forgets_what_is_in_memory():
    ask(0)
    clear_cache()
    assert ask(0)


def test_clear_cache_leaves_files(tmp_path):
    ask(0, folder=tmp_path)
    clear_cache()
    assert not ask(0, folder=tmp_path)


def test_clear_cache_in_the_middle_of_encoding(tmp_path):
    for folder in (None, tmp_path):

        def encode(texts, out):
            clear_cache()
            out[:] = rows_of(texts)
            yield np.arange(len(texts))

        got = open_store(folder, RECIPE).get(TEXTS, encode, 3)
        np.testing.assert_array_equal(got, rows_of(TEXTS))


def test_size_counts_the_characters_of_texts_and_pairs():
    short, long = size_of(["a"]), size_of(["a" * 1001])
    assert long - short == 1000
    assert size_of([("a", "a" * 1001)]) == short + long
    assert size_of([]) == 0
