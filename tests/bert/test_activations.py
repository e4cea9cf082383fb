"""What a frozen bottom gives, kept per text: the store, and the training on it."""

import os
import shutil

import numpy as np
import pytest
import torch

from skactive._encoders import _store as mapped
from skactive._encoders._store import (
    ActivationStore,
    NotCacheableError,
    in_use,
    open_activation_store,
)
from skactive.bert import clear_cache, set_cache_limit
from skactive.bert._network import TextNetwork

from ..conftest import save_encoder
from ._helpers import REVIEW_LABELS as Y
from ._helpers import REVIEWS as X
from ._helpers import assert_same_weights, grid, slow
from ._helpers import review_classifier as classifier

pytestmark = pytest.mark.usefixtures("fresh_cache")


def lengthy(views):
    """Fill rows with the number of rows."""
    for view in views:
        view[:] = len(view)


def add(store, texts, lengths, width=2):
    store.add(texts, np.array(lengths), width, lengthy)


def test_rows_come_back_by_text():
    store = ActivationStore()
    add(store, ["one", "two"], [1, 2])
    add(store, [("a", "pair")], [3])
    rows = store.get([("a", "pair"), "two", "one", "two"])
    assert [row.shape for row in rows] == [(3, 2), (2, 2), (1, 2), (2, 2)]
    assert [row.dtype for row in rows] == [np.float32] * 4
    assert [float(row.mean()) for row in rows] == [3, 2, 1, 2]


def test_missing_texts_are_told_once_in_order():
    store = ActivationStore()
    add(store, ["b"], [1])
    assert store.missing(["c", "b", "a", "c"]) == ["c", "a"]
    assert store.missing(["b"]) == []


def test_single_rows_come_as_one_array():
    store, kept = ActivationStore(), dict(zip("abcd", np.eye(4), strict=True))

    def add(names):
        def fill(views):
            for name, view in zip(names, views, strict=True):
                view[0] = kept[name]

        store.add(list(names), np.ones(2, int), 4, fill)

    add("ab")
    add("cd")
    for asked in ("ab", "ba", "cabd", "dd", "c"):
        expected = [kept[name] for name in asked]
        np.testing.assert_array_equal(store.get_single(list(asked)), expected)
    in_order = store.get_single(["c", "d"])
    assert in_order.base is not None
    assert not in_order.flags.writeable


def test_rows_are_read_only():
    store = ActivationStore()
    add(store, ["a"], [1])
    with pytest.raises(ValueError, match="read-only"):
        store.get(["a"])[0][:] = 0


def test_a_fill_that_fails_keeps_nothing():
    store = ActivationStore()

    def fail(views):
        views[0][:] = 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.add(["a"], np.array([2]), 3, fail)
    assert store.missing(["a"]) == ["a"]
    assert store.entries() == []


def test_the_least_recently_used_block_goes_first():
    set_cache_limit(25_000)  # two blocks of some 8 kB and what their texts take
    store = open_activation_store(("recipe",))
    for text in ("old", "used", "new"):
        with in_use():
            add(store, [text], [1000])
            if store.missing(["used"]) == []:
                store.get(["used"])
    set_cache_limit(17_000)
    with in_use():
        store.get(["used"])
    assert store.missing(["old", "used", "new"]) == ["old"]


def test_rows_outlive_the_block_they_came_from():
    store = open_activation_store(("recipe",))
    with in_use():
        add(store, ["a"], [4])
    rows = store.get(["a"])[0]
    clear_cache()
    assert (rows == 4).all()
    assert open_activation_store(("recipe",)).missing(["a"]) == ["a"]


@pytest.mark.parametrize(("limit", "in_memory"), [(10**6, True), (1000, False)])
def test_blocks_beyond_the_limit_are_mapped_from_a_file(limit, in_memory):
    set_cache_limit(limit)
    store = open_activation_store(("recipe",))
    with in_use():
        add(store, ["a", "b"], [600, 400])
    assert (store.entries()[0][0].n_bytes > 0) is in_memory
    assert (mapped.in_memory(store.get(["a"])[0]) > 0) is in_memory
    assert [float(rows.mean()) for rows in store.get(["b", "a"])] == [400, 600]


def test_files_have_no_name(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    set_cache_limit(0)
    store = ActivationStore()
    add(store, ["a"], [10])
    assert os.listdir(tmp_path) == []
    assert (store.get(["a"])[0] == 10).all()


def full_disk(monkeypatch, free=10):
    usage = shutil.disk_usage("/")._replace(free=free)
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)


def test_no_room_is_told_before_anything_is_computed(monkeypatch):
    full_disk(monkeypatch)
    set_cache_limit(0)
    with pytest.raises(NotCacheableError, match=r"no room for 0\.0 GB in"):
        ActivationStore().add(["a"], np.array([10]), 2, pytest.fail)


@pytest.fixture
def computed(monkeypatch):
    """Collect how many texts each pass below the cut has."""
    counts = []
    original = TextNetwork.below_cut

    def count(network, inputs):
        counts.append(len(inputs.get("lengths", inputs["input_ids"])))
        return original(network, inputs)

    monkeypatch.setattr(TextNetwork, "below_cut", count)
    return counts


@pytest.mark.long
@pytest.mark.parametrize("freeze", [slow(2), "all"])
def test_each_text_goes_below_the_cut_once(tiny_bert, computed, freeze):
    model = classifier(tiny_bert, freeze=freeze, max_epochs=3)
    model.fit(X[:6], Y[:6])
    assert sum(computed) == 6
    model.predict(X)  # two more
    assert sum(computed) == 8
    model.fit([*X, X[0]], [*Y, 1]).predict_proba(X)
    classifier(tiny_bert, freeze=freeze, random_state=1, lr=1e-4).fit(X, Y)
    assert sum(computed) == 8


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    [
        {"freeze": 1},
        {"freeze": "all"},
        {"max_length": 5},
        {"precision": "bfloat16"},
        {"model": "other"},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:.* were cut there")
def test_what_depends_on_something_else_is_computed_anew(
    tiny_bert, tmp_path, computed, change
):
    if "model" in change:
        change = {"model": save_encoder(tmp_path, initializer_range=0.3)}
    model = classifier(tiny_bert, freeze=2, max_epochs=1).fit(X, Y)
    computed.clear()
    model.set_params(**change).fit(X, Y)
    assert sum(computed) == 8


@pytest.mark.parametrize("change", [{"head": "cnn"}, {"pooling": "mean"}], ids=str)
def test_heads_and_poolings_share_what_is_below_a_cut(tiny_bert, computed, change):
    model = classifier(tiny_bert, freeze=2, max_epochs=1).fit(X, Y)
    model.set_params(**change).fit(X, Y)
    assert sum(computed) == 8


def test_pooled_features_of_a_frozen_encoder_depend_on_the_pooling(tiny_bert, computed):
    model = classifier(tiny_bert, freeze="all", pooling="cls", max_epochs=1).fit(X, Y)
    first = model.transform(X)
    model.set_params(pooling="mean").fit(X, Y)
    assert sum(computed) == 16
    assert np.abs(model.transform(X) - first).max() > 0.1


@pytest.mark.long
@pytest.mark.parametrize(("freeze", "texts"), [(0, X), (-1, X), (-3, X)])
def test_nothing_is_kept_without_a_frozen_bottom(tiny_bert, computed, freeze, texts):
    classifier(tiny_bert, freeze=freeze).fit(texts, Y).predict(texts)
    assert computed == []


COMBINED = grid(
    [(freeze, head) for head in ("linear", "cnn") for freeze in (1, "all")],
    lambda freeze, head: freeze == 1 and head == "cnn",
)


@pytest.mark.long
@pytest.mark.parametrize(("freeze", "head"), COMBINED)
@pytest.mark.cpu_only("a GPU adds gradients in any order")
def test_training_is_the_same_from_a_file(tiny_bert, freeze, head):
    settings = {"freeze": freeze, "head": head}
    in_memory = classifier(tiny_bert, **settings).fit(X, Y)
    clear_cache()
    set_cache_limit(0)
    mapped = classifier(tiny_bert, **settings).fit(X, Y)
    assert_same_weights(in_memory, mapped)


@pytest.mark.long
@pytest.mark.parametrize(("freeze", "head"), COMBINED)
@pytest.mark.cpu_only("a GPU adds gradients in any order")
def test_training_is_the_same_without_room(tiny_bert, freeze, head, monkeypatch):
    settings = {"freeze": freeze, "head": head}
    cached = classifier(tiny_bert, **settings).fit(X, Y)
    clear_cache()
    full_disk(monkeypatch)
    set_cache_limit(0)
    with pytest.warns(UserWarning, match="'cache_frozen' has no effect here: no room"):
        plain = classifier(tiny_bert, **settings).fit(X, Y)
    losses = [[e["train_loss"] for e in each.history_] for each in (cached, plain)]
    np.testing.assert_allclose(*losses, atol=1e-5)
    np.testing.assert_allclose(
        cached.predict_proba(X), plain.predict_proba(X), atol=1e-4
    )


@pytest.mark.long
def test_encoders_that_pad_by_themselves_train_without_the_cache(tiny_encoder):
    model = tiny_encoder("Longformer", attention_window=4)
    with pytest.warns(UserWarning, match="Longformer.* does not have one state per"):
        trained = classifier(model, freeze=2).fit(X, Y)
    changes = trained.layer_changes_["mean"]
    assert (changes[:3] == 0).all()
    assert (changes[3:] > 0).all()


def test_frozen_dropout_is_on_without_the_cache_only(tiny_bert):
    losses = [
        classifier(tiny_bert, freeze="all", dropout=0.0, lr=0.0, cache_frozen=cached)
        .fit(X, Y)
        .history_
        for cached in (True, False)
    ]
    cached, plain = ([epoch["train_loss"] for epoch in epochs] for epochs in losses)
    assert cached[0] == pytest.approx(cached[1], abs=1e-6)
    assert abs(plain[0] - plain[1]) > 1e-4


@pytest.mark.long
def test_pairs_are_kept_as_pairs(tiny_bert, computed):
    pairs = [(text, "a day") for text in X]
    model = classifier(tiny_bert, freeze=2).fit(pairs, Y)
    model.fit([(b, a) for a, b in pairs], Y)
    assert sum(computed) == 16
    whole = classifier(tiny_bert, freeze=2, cache_frozen=False, lr=0.0).fit(pairs, Y)
    kept = classifier(tiny_bert, freeze=2, lr=0.0).fit(pairs, Y)
    np.testing.assert_allclose(
        kept.predict_proba(pairs), whole.predict_proba(pairs), atol=1e-6
    )


@pytest.mark.cpu_only("a GPU adds gradients in any order")
def test_an_interrupted_pass_leaves_nothing_half_done(tiny_bert, monkeypatch):
    expected = classifier(tiny_bert, freeze=2).fit(X, Y)
    clear_cache()
    original = TextNetwork.below_cut
    monkeypatch.setattr("skactive._encoders._tokens.BATCH_TOKENS", {"cpu": 20})

    def stop(network, inputs):
        if inputs["lengths"].max() < 8:
            raise KeyboardInterrupt
        return original(network, inputs)

    monkeypatch.setattr(TextNetwork, "below_cut", stop)
    with pytest.raises(KeyboardInterrupt):
        classifier(tiny_bert, freeze=2).fit(X, Y)
    monkeypatch.undo()
    assert_same_weights(classifier(tiny_bert, freeze=2).fit(X, Y), expected)


def test_threads_share_what_is_kept(tiny_bert):
    from concurrent.futures import ThreadPoolExecutor

    model = classifier(tiny_bert, freeze=2).fit(X, Y)
    expected = model.predict_proba(X), model.transform(X)
    clear_cache()
    with ThreadPoolExecutor(4) as pool:
        probabilities = list(pool.map(model.predict_proba, [X] * 8))
        features = list(pool.map(model.transform, [X] * 8))
    for found in probabilities:
        np.testing.assert_allclose(found, expected[0], atol=1e-6)
    for found in features:
        np.testing.assert_allclose(found, expected[1], atol=1e-6)
    assert torch.is_grad_enabled()
