"""Looking features up by text and by sequence, in memory and in a folder."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from skactive._encoders import _store as rows
from skactive._encoders._store import open_store, unique
from skactive._storage import _files
from skactive.bert import clear_cache, set_cache_limit

from ..bert._helpers import RECIPE, TEXTS, WIDTH, CountingEncoder, get, row_of, rows_of

pytestmark = pytest.mark.usefixtures("fresh_cache")


@pytest.fixture(params=["memory", "folder"])
def folder(request, tmp_path):
    return None if request.param == "memory" else tmp_path / "cache"


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr("skactive._encoders._store._SHARD_TEXTS", 4)


# Looking up --------------------------------------------------------------------------


def test_features_are_those_of_the_encoder(folder):
    features, encoded = get(TEXTS, folder)
    np.testing.assert_array_equal(features, rows_of(TEXTS))
    assert features.dtype == np.float32
    assert sorted(encoded) == TEXTS


@pytest.mark.parametrize("texts", [TEXTS, [*TEXTS, TEXTS[0]]], ids=["once", "repeated"])
def test_same_sequence_gets_the_same_array_without_encoding(folder, texts):
    first, _ = get(texts, folder)
    again, encoded = get(texts, folder)
    assert again is first
    assert encoded == []


def test_equal_strings_that_are_other_objects_get_the_same_array(folder):
    first, _ = get(TEXTS, folder)
    again, encoded = get([bytes(t, "utf-8").decode() for t in TEXTS], folder)
    assert again is first
    assert encoded == []


@pytest.mark.parametrize(
    "order",
    [[3], [9, 0, 4], [*range(9, -1, -1)], [2, 2, 2], [0, 1, 0, 9, 9]],
    ids=["one", "subset", "permutation", "duplicates", "mixed"],
)
def test_known_texts_in_another_sequence_are_looked_up(folder, small_shards, order):
    get(TEXTS, folder)
    features, encoded = get([TEXTS[i] for i in order], folder)
    assert encoded == []
    np.testing.assert_array_equal(features, rows_of(TEXTS)[order])


def test_only_new_texts_are_encoded(folder):
    get(TEXTS[:4], folder)
    features, encoded = get(TEXTS[2:7], folder)
    assert sorted(encoded) == TEXTS[4:7]
    np.testing.assert_array_equal(features, rows_of(TEXTS[2:7]))


def test_a_repeated_text_is_encoded_once(folder):
    texts = ["a", "b", "a", "a"]
    features, encoded = get(texts, folder)
    assert sorted(encoded) == ["a", "b"]
    np.testing.assert_array_equal(features, rows_of(texts))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("ab", "c"), ("a", "bc")),
        (("a", ""), ("", "a")),
        (("a", ""), "a"),
        (("a", "b"), ("b", "a")),
        ("a", "A"),
        ("a", "a "),
        ("é", "e\u0301"),
        ("", " "),
        ("\ud800", "\udfff"),
    ],
)
def test_texts_that_differ_are_kept_apart(folder, one, other):
    get([one], folder)
    features, encoded = get([other], folder)
    assert encoded == [other]
    np.testing.assert_array_equal(features, rows_of([other]))


def test_the_array_cannot_be_written_into(folder):
    for texts in (TEXTS, TEXTS[::-1]):
        features, _ = get(texts, folder)
        with pytest.raises(ValueError, match="read-only"):
            features[0, 0] = 1.0


def test_changing_the_list_afterwards_does_not_change_the_cache():
    texts = ["a", "b"]
    get(texts)
    texts[0] = "c"
    features, encoded = get(["a", "b"])
    assert encoded == []
    np.testing.assert_array_equal(features, rows_of(["a", "b"]))


@pytest.mark.parametrize(
    "recipe",
    [{**RECIPE, "pooling": "cls"}, {**RECIPE, "revision": "v1"}, {"weights": "w"}],
)
def test_every_entry_of_the_recipe_counts(folder, recipe):
    get(TEXTS, folder)
    assert len(get(TEXTS, folder, recipe=recipe)[1]) == len(TEXTS)


def test_order_of_the_recipe_does_not_count(folder):
    get(TEXTS, folder)
    recipe = dict(reversed(RECIPE.items()))
    assert get(TEXTS, folder, recipe=recipe)[1] == []
    clear_cache()
    encoded = get(TEXTS, folder, recipe=recipe)[1]
    assert len(encoded) == (len(TEXTS) if folder is None else 0)


def test_one_folder_under_several_names_is_one_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    stores = {
        open_store(name, RECIPE)
        for name in ("cache", "./cache/", tmp_path / "cache", "~/cache")
    }
    assert len(stores) == 1


def test_a_sequence_in_use_keeps_its_array_among_many_others(folder):
    get(TEXTS[:3], folder)  # so that the pool is gathered from two calls
    pool, _ = get(TEXTS, folder)
    for i in range(12):
        assert get(TEXTS, folder)[0] is pool
        get(TEXTS[i % 7 : i % 7 + 3][::-1], folder)
        get(TEXTS[: i % 5 + 1], folder)


def test_unique_keeps_the_order_of_first_appearance():
    assert unique(["b", "a", "b", "c", "a"]) == ["b", "a", "c"]


# Many calls --------------------------------------------------------------------------


def test_many_small_calls_are_joined_and_stay_right():
    texts = [f"call {i // 3} text {i}" for i in range(600)]
    for start in range(0, 600, 3):
        get(texts[start : start + 3])
    store = open_store(None, RECIPE)
    assert len(store._memory.blocks) <= 66
    features, encoded = get(texts[::-1])
    assert encoded == []
    np.testing.assert_array_equal(features, rows_of(texts[::-1]))


def test_answers_that_are_remembered_are_few(folder):
    get(TEXTS, folder)
    for i in range(1, 10):
        get(TEXTS[i:], folder)
    assert len(open_store(folder, RECIPE)._answers) == 4


def test_a_text_in_a_folder_is_digested_once_for_all_look_ups(tmp_path, monkeypatch):
    get(TEXTS, tmp_path)
    get(TEXTS[::-1], tmp_path)
    monkeypatch.setattr("skactive._encoders._store.digest_text", None)
    features, encoded = get([*TEXTS[3:], *TEXTS[:3]], tmp_path)
    assert encoded == []
    np.testing.assert_array_equal(features, rows_of([*TEXTS[3:], *TEXTS[:3]]))


def test_each_row_is_copied_once_whatever_the_number_of_shards(tmp_path, monkeypatch):
    monkeypatch.setattr("skactive._encoders._store._SHARD_TEXTS", 2)
    texts = [f"text {i}" for i in range(60)]
    get(texts, tmp_path)
    clear_cache()
    parts, split = [], rows._split

    def noting(starts, numbers):
        for number, part in split(starts, numbers):
            parts.append(part)
            yield number, part

    monkeypatch.setattr(rows, "_split", noting)
    get(texts[::-1], tmp_path)
    assert sorted(np.concatenate(parts)) == list(range(60))
    assert len(parts) == 30


# Interrupted -------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("stop_after", [2, 4, 6, 8])
def test_what_was_finished_before_an_interruption_is_kept(
    folder, small_shards, stop_after, error
):
    broken = CountingEncoder(stop_after, error)
    with pytest.raises(error, match="stop"):
        get(TEXTS, folder, broken)
    if folder is not None:
        clear_cache()  # as if in another process
    features, encoded = get(TEXTS, folder)
    assert sorted([*broken.encoded, *encoded]) == TEXTS
    assert len(encoded) == len(TEXTS) - stop_after
    np.testing.assert_array_equal(features, rows_of(TEXTS))


def test_interrupted_before_the_first_batch(folder):
    with pytest.raises(KeyboardInterrupt):
        get(TEXTS, folder, CountingEncoder(0))
    np.testing.assert_array_equal(get(TEXTS, folder)[0], rows_of(TEXTS))


def test_interrupted_again_and_again(folder, small_shards):
    encoded = []
    for _ in range(4):
        encoder = CountingEncoder(2)
        with pytest.raises(KeyboardInterrupt):
            get(TEXTS, folder, encoder)
        encoded += encoder.encoded
    features, last = get(TEXTS, folder)
    assert sorted([*encoded, *last]) == TEXTS
    np.testing.assert_array_equal(features, rows_of(TEXTS))


def test_interrupted_while_a_shard_is_written(tmp_path, small_shards, monkeypatch):
    replace, n_calls = os.replace, []

    def interrupted(source, target):
        n_calls.append(target)
        if len(n_calls) == 3:  # after the recipe and the array: the shard's manifest
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(_files, "_replace", interrupted)
    encoder = CountingEncoder()
    with pytest.raises(KeyboardInterrupt):
        get(TEXTS, tmp_path, encoder)
    clear_cache()
    features, encoded = get(TEXTS, tmp_path)
    assert sorted([*encoder.encoded, *encoded]) == TEXTS
    np.testing.assert_array_equal(features, rows_of(TEXTS))
    assert not [p for p in tmp_path.rglob("*") if p.suffix == ".tmp"]


# Threads -----------------------------------------------------------------------------


def test_threads_that_want_the_same_texts_encode_them_once(folder):
    encoder, barrier = CountingEncoder(), threading.Barrier(8, timeout=60)

    def work(_):
        barrier.wait()
        return open_store(folder, RECIPE).get(list(TEXTS), encoder, WIDTH)

    with ThreadPoolExecutor(8) as executor:
        answers = list(executor.map(work, range(8)))
    assert sorted(encoder.encoded) == TEXTS
    assert all(answer is answers[0] for answer in answers)


@pytest.mark.parametrize("limit", [2**30, 0])
def test_threads_with_overlapping_texts_and_little_memory(folder, limit):
    set_cache_limit(limit)
    pools = [[f"text {(i * 7 + j) % 40}" for j in range(20)] for i in range(48)]
    with ThreadPoolExecutor(8) as executor:
        answers = list(executor.map(lambda pool: get(pool, folder)[0], pools))
    for pool, answer in zip(pools, answers, strict=True):
        np.testing.assert_array_equal(answer, rows_of(pool))


def test_a_look_up_does_not_wait_for_another_thread_that_encodes(folder):
    get(["known"], folder)
    begun, go_on = threading.Event(), threading.Event()

    def slow(texts, out):
        begun.set()
        assert go_on.wait(60)
        out[:] = [row_of(text) for text in texts]
        yield np.arange(len(texts))

    store = open_store(folder, RECIPE)
    with ThreadPoolExecutor(1) as executor:
        future = executor.submit(store.get, ["new"], slow, WIDTH)
        assert begun.wait(60)
        assert get(["known"], folder)[1] == []
        go_on.set()
        np.testing.assert_array_equal(future.result(), rows_of(["new"]))
