"""AdaptedFeatures: an encoder that learns from pairs of labeled texts."""

import copy
import itertools
import pickle
import shutil
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

import skactive
import skactive.bert._adapted
from skactive import ActiveLearner, ClassDescriptions
from skactive.bert import AdaptedFeatures, BertFeatures, clear_cache
from skactive.bert._contrast import LOSSES, draw_batches
from skactive.bert._parts import cut_evenly
from skactive.semi_supervised import SelfTraining

from ._helpers import PAIRS, module_of, network, padded, slow
from ._text_checks import check_text_estimator

WORDS = ["film", "match", "stocks", "team", "game", "minute", "friday", "long", "joy"]
TEXTS = [
    f"{first} {word}"
    for word in WORDS
    for first in ("the joy of a", "a dull slow", "an even", "no naïve", "again in the")
]
LABELS = np.array(["weather", "sport", "money"])[np.arange(len(TEXTS)) % 3]
QUICK = {"n_steps": 3, "batch_size": 8, "lr": 1e-2, "freeze": 1, "device": "cpu"}


def adapted(model, **params):
    return AdaptedFeatures(model, **{**QUICK, **params})


def rows(model, texts=TEXTS, y=LABELS, cached=False, sample_weight=None, **params):
    """Return the features of TEXTS after learning from texts, made anew."""
    if not cached:
        clear_cache()
    features = adapted(model, **params).fit(texts, y, sample_weight=sample_weight)
    return features.transform(TEXTS)


@pytest.fixture
def fits(monkeypatch):
    """List how many texts each training learned from."""
    seen = []
    fit = skactive.bert._adapted.ContrastiveEncoder.fit

    def count(self, labeled, *args):
        seen.append(len(labeled.texts))
        return fit(self, labeled, *args)

    monkeypatch.setattr(skactive.bert._adapted.ContrastiveEncoder, "fit", count)
    return seen


# The loss and its gradient -----------------------------------------------------------


def brute_force(name, rows, Y, weight):
    """Compute a loss pair by pair."""
    n = len(rows)
    cosine = [[float(a @ b) for b in rows] for a in rows]
    sets = [set(np.flatnonzero(y)) for y in Y]
    sums = np.zeros(4)
    for i, j in itertools.permutations(range(n), 2):
        union = sets[i] | sets[j]
        same = len(sets[i] & sets[j]) / len(union) if union else 1.0
        pair = weight[i] * weight[j]
        if name == "cosine":
            sums += pair * np.array(
                [
                    same * (cosine[i][j] - 1) ** 2,
                    same,
                    (1 - same) * cosine[i][j] ** 2,
                    1 - same,
                ]
            )
        elif name == "supervised_contrastive":
            others = [np.exp(cosine[i][k] / 0.1) for k in range(n) if k != i]
            loss = -np.log(np.exp(cosine[i][j] / 0.1) / sum(others))
            sums[:2] += pair * same * np.array([loss, 1])
        else:
            for k in set(range(n)) - {i, j}:
                union = sets[i] | sets[k]
                far = 1 - (len(sets[i] & sets[k]) / len(union) if union else 1.0)
                triple = pair * same * weight[i] * weight[k] * far
                loss = max(cosine[i][k] - cosine[i][j] + 0.25, 0)
                sums[:2] += triple * np.array([loss, 1])
    first = sums[0] / sums[1]
    return (first + sums[2] / sums[3]) / 2 if name == "cosine" else first


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_oracle_of_the_losses(name, multi_label):
    rng = np.random.default_rng(0)
    features = torch.nn.functional.normalize(torch.from_numpy(rng.normal(size=(9, 4))))
    Y = np.eye(3)[np.arange(9) % 3]
    if multi_label:
        Y = (rng.random((9, 3)) < 0.5).astype(float)
        Y[:2] = 0
    weight = rng.random(9)
    targets = torch.from_numpy(np.column_stack([Y, weight]))
    expected = brute_force(name, features.numpy(), Y, weight)
    assert float(LOSSES[name]()(features, targets)) == pytest.approx(expected)


@pytest.mark.parametrize("name", LOSSES)
def test_oracle_of_the_gradient_autograd_on_a_padded_batch(
    tiny_bert, name, monkeypatch
):
    monkeypatch.setattr("skactive.bert._parts._TOKENS", 16)
    monkeypatch.setattr("skactive.bert._parts._TOKENS_OF_TWO", 16)
    texts, codes = TEXTS[:12], np.arange(12) % 3
    targets = torch.from_numpy(np.column_stack([np.eye(3)[codes], np.ones(12)])).float()
    parts = network(tiny_bert, head=None, n_outputs=16, pooling="mean", freeze=1)
    inputs = _packed(tiny_bert, texts)
    assert len(cut_evenly(inputs["lengths"])) > 1
    LOSSES[name]()(parts(**inputs), targets).backward()

    plain = copy.deepcopy(module_of(tiny_bert)).requires_grad_(True)
    inputs = padded(tiny_bert, texts)
    states = plain(**inputs).last_hidden_state
    mask = inputs["attention_mask"][..., None]
    pooled = (states * mask).sum(dim=1) / mask.sum(dim=1)
    LOSSES[name]()(torch.nn.functional.normalize(pooled), targets).backward()
    expected = dict(plain.named_parameters())
    n_trained = 0
    for key, parameter in parts.encoder.named_parameters():
        assert parameter.requires_grad == (
            key.startswith("encoder.layer.") and key[14] != "0"
        )
        if parameter.requires_grad:
            n_trained += 1
            torch.testing.assert_close(
                parameter.grad, expected[key].grad, rtol=1e-3, atol=1e-5
            )
    assert n_trained == 32


def _packed(model, texts):
    from ._helpers import tokenizer_of

    ids = tokenizer_of(model)(texts)["input_ids"]
    return {
        "input_ids": torch.tensor([i for row in ids for i in row]),
        "lengths": torch.tensor([len(row) for row in ids]),
    }


# Batches -----------------------------------------------------------------------------


def test_a_batch_has_two_of_each_of_its_classes_that_has_two():
    Y = np.eye(6, dtype=bool)[np.repeat(np.arange(6), [1, 2, 3, 9, 20, 30])]
    for size in (4, 7, 8, 32):
        batches = draw_batches(Y, size, 40, 0).reshape(40, size)
        for batch in batches:
            assert len(set(batch)) == size
            counts = Y[batch].sum(axis=0)
            alone = np.flatnonzero(counts[1:] == 1)
            # The last place is for a class with a pair; without one, for any.
            others = np.flatnonzero(counts) if len(alone) else []
            assert len(alone) <= 1
            assert all(i - 1 in alone or counts[i] == Y[:, i].sum() for i in others)
        # Evenly over the classes, as far as they have enough.
        assert (Y[batches].any(axis=1).mean(axis=0) > 0.25).all()


def test_a_batch_of_few_texts_has_all_of_them():
    Y = np.eye(2, dtype=bool)[[0, 1, 0, 1, 1]]
    for batch in draw_batches(Y, 32, 5, 0).reshape(5, 5):
        assert sorted(batch) == list(range(5))


def test_rows_without_a_label_are_a_class_of_their_own():
    Y = np.zeros((12, 2), dtype=bool)
    Y[:3, 0] = Y[2:5, 1] = True
    drawn = draw_batches(Y, 4, 30, 0)
    assert set(drawn) == set(range(12))
    assert 0.2 < (drawn >= 5).mean() < 0.5


# What the features depend on ----------------------------------------------------------


@pytest.mark.long
def test_the_same_bits_for_every_number_of_threads(
    tiny_bert, same_for_all_threads, monkeypatch
):
    monkeypatch.setattr("skactive.bert._parts._TOKENS", 16)
    monkeypatch.setattr("skactive.bert._parts._TOKENS_OF_TWO", 16)
    same_for_all_threads(lambda: rows(tiny_bert))


CLEAR = [f"{a} {a} {b} {a}" for a in ("film", "match", "friday") for b in WORDS]


def learned(model, y, **params):
    """Return the cosines of CLEAR after learning from it."""
    clear_cache()
    features = adapted(model, n_steps=40, **params).fit(CLEAR, y).transform(CLEAR)
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, rtol=1e-5)
    return features @ features.T


def test_it_learns(tiny_bert):
    y = np.arange(len(CLEAR)) // len(WORDS)
    same = y[:, None] == y
    before, after = (learned(tiny_bert, y, refit=refit) for refit in (100, None))
    assert before[same].mean() < before[~same].mean() + 0.1
    assert after[same].mean() > after[~same].mean() + 0.5


def test_names_of_classes_do_not_matter(tiny_bert, fits):
    expected = rows(tiny_bert)
    renamed = np.where(LABELS == "weather", "A", LABELS)
    numbered = np.unique(LABELS, return_inverse=True)[1] + 7
    indicator = np.eye(4, dtype=int)[:, [3, 1, 0, 2]][numbered - 7]
    for y in (renamed, numbered, numbered > 100, indicator):
        n_before = len(fits)
        found = rows(tiny_bert, y=y, cached=True)
        if y.dtype == bool:  # all of one class
            continue
        assert len(fits) == n_before
        np.testing.assert_array_equal(found, expected)
    merged = np.where(LABELS == "weather", "sport", LABELS)
    assert (rows(tiny_bert, y=merged, cached=True) != expected).any()
    assert fits == [45, 45]


def test_rows_of_weight_0_do_not_count(tiny_bert):
    expected = rows(tiny_bert, refit=25)
    texts, y = ["no", *TEXTS[:10], "no", *TEXTS[10:]], [*LABELS]
    y = ["sport", *y[:10], "money", *y[10:]]
    weight = np.ones(len(texts))
    weight[[0, 11]] = 0
    found = rows(tiny_bert, texts, y, refit=25, sample_weight=weight)
    np.testing.assert_array_equal(found, expected)
    assert (rows(tiny_bert, texts, y, refit=25) != expected).any()


def test_weights_count_relative_to_each_other(tiny_bert):
    weight = np.linspace(1, 2, len(TEXTS))
    one = rows(tiny_bert, sample_weight=weight)
    np.testing.assert_array_equal(rows(tiny_bert, sample_weight=4 * weight), one)
    assert (rows(tiny_bert) != one).any()
    np.testing.assert_array_equal(
        rows(tiny_bert, sample_weight=np.full(len(TEXTS), 3.0)), rows(tiny_bert)
    )


def test_of_equal_texts_the_last_label_counts_at_the_first_place(tiny_bert):
    texts, y = [*TEXTS, TEXTS[3], TEXTS[30]], [*LABELS, "sport", "sport"]
    expected = np.array(LABELS)
    expected[[3, 30]] = "sport"
    for refit in (None, 25):
        found = rows(tiny_bert, texts, y, refit=refit)
        np.testing.assert_array_equal(found, rows(tiny_bert, y=expected, refit=refit))


@pytest.mark.parametrize(
    ("refit", "n", "m"),
    [
        *((None, 3, 3), (None, 45, 45), (30, 29, 0), (30, 30, 30), (30, 45, 30)),
        *(("doubling", 24, 0), ("doubling", 25, 25), ("doubling", 45, 25)),
    ],
)
def test_how_many_rows_are_learned_from(tiny_bert, fits, refit, n, m):
    clear_cache()
    features = adapted(tiny_bert, refit=refit).fit(TEXTS[:n], LABELS[:n])
    assert features.n_adapted_ == m
    assert fits == [m] * (m > 0)


def test_the_points_double():
    features = AdaptedFeatures(refit="doubling")
    Y = np.ones((1600, 1), dtype=bool)
    counts = {n: features._count_rows(Y[:n]) for n in (24, 49, 50, 199, 200, 399, 1600)}
    assert list(counts.values()) == [0, 25, 50, 100, 200, 200, 1600]


@pytest.mark.parametrize(
    ("n_first", "n_others", "m"),
    [(12, 0, 50), (13, 12, 50), (25, 0, 50), (25, 25, 0), (12, 26, 25), (13, 26, 0)],
)
def test_a_point_has_two_labels_for_each_of_its_classes(n_first, n_others, m):
    features = AdaptedFeatures(refit="doubling")
    first = np.resize(np.arange(n_first), 25)
    later = np.resize(np.arange(n_others or n_first), 35) + n_first * (n_others > 0)
    Y = np.eye(100, dtype=bool)[np.concatenate([first, later])]
    assert features._count_rows(Y) == m
    assert AdaptedFeatures()._count_rows(Y) == 60


@pytest.mark.parametrize(
    "params", [{"refit": 100}, {"freeze": "all"}, {"layers": 1}, {"layers": (0, 1)}]
)
def test_without_anything_to_learn_it_is_the_frozen_encoder(tiny_bert, params):
    params = {"precision": "float32", **params}
    features = adapted(tiny_bert, **params).fit(TEXTS, LABELS)
    layers = params.get("layers", -1)
    frozen = BertFeatures(tiny_bert, precision="float32", layers=layers)
    np.testing.assert_array_equal(features.transform(TEXTS), frozen.transform(TEXTS))
    assert features.n_adapted_ == 0


def test_one_class_teaches_nothing(tiny_bert):
    features = adapted(tiny_bert).fit(TEXTS[:3], ["sport"] * 3)
    assert features.n_adapted_ == 0
    np.testing.assert_array_equal(
        features.transform(TEXTS), BertFeatures(tiny_bert).transform(TEXTS)
    )


def test_one_label_of_each_class_teaches_differences(tiny_bert):
    found = rows(tiny_bert, TEXTS[:4], list("abcd"), n_steps=20)
    before = rows(tiny_bert, refit=100)
    assert (found[:4] @ found[:4].T).sum() < (before[:4] @ before[:4].T).sum() - 1


def test_a_class_without_a_pair_among_the_first_rows_warns(tiny_bert):
    y = ["rare", *LABELS[1:]]
    y[40] = "rare"
    with pytest.warns(UserWarning, match="1 of 4 classes have two labels") as caught:
        adapted(tiny_bert, refit="doubling").fit(TEXTS, y)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapted(tiny_bert, refit="doubling").fit(TEXTS, ["rare", *LABELS[1:]])
        adapted(tiny_bert).fit(TEXTS, y)


def test_only_rows_of_people_are_learned_from(tiny_bert, fits):
    expected = rows(tiny_bert, TEXTS[:30], LABELS[:30])
    features = adapted(tiny_bert).fit(TEXTS, LABELS, n_labeled=30)
    np.testing.assert_array_equal(features.transform(TEXTS), expected)
    assert fits == [30]
    assert adapted(tiny_bert).fit(TEXTS, LABELS, n_labeled=0).n_adapted_ == 0
    with pytest.raises(ValueError, match="'n_labeled' must be an int from 0 to 45"):
        adapted(tiny_bert).fit(TEXTS, LABELS, n_labeled=46)


@pytest.mark.parametrize("pool", [None, TEXTS])
def test_weights_reach_each_step_that_takes_them(tiny_bert, pool):
    weight = np.linspace(1, 3, len(TEXTS))
    expected = rows(tiny_bert, sample_weight=weight)
    model = SelfTraining(make_pipeline(adapted(tiny_bert), LogisticRegression()))
    model.fit(TEXTS, LABELS, sample_weight=weight, X_unlabeled=pool)
    np.testing.assert_array_equal(model.estimator_[0].transform(TEXTS), expected)


@pytest.mark.parametrize("adapt", [True, False])
def test_descriptions_can_be_learned_from(tiny_bert, fits, adapt):
    about = {"weather": "rain", "sport": "a team", "money": ["stocks", "the price"]}
    model = make_pipeline(adapted(tiny_bert), LogisticRegression())
    model = ClassDescriptions(model, about, weight=3, adapt=adapt)
    model.fit(TEXTS[:30], LABELS[:30])
    assert fits == [30 + adapt * 10]  # with names


def test_descriptions_are_not_learned_from(tiny_bert, fits):
    expected = rows(tiny_bert, TEXTS[:30], LABELS[:30])
    model = ClassDescriptions(
        make_pipeline(adapted(tiny_bert), SelfTraining(LogisticRegression())),
        {"weather": "rain", "sport": "a team", "money": "stocks"},
        machine_texts={"sport": ["a match"]},
    )
    for X, y, m in ((TEXTS[:30], LABELS[:30], 30), ([], [], 0)):
        model.fit(X, y, X_unlabeled=TEXTS)
        assert model.estimator_[0].n_adapted_ == m
        if m:
            found = model.estimator_[0].transform(TEXTS)
            np.testing.assert_array_equal(found, expected)
    assert fits == [30]


# The loop ----------------------------------------------------------------------------


def test_teach_fit_undo_and_resume_give_the_same_features(tiny_bert, tmp_path, fits):
    for cache in ("memory", str(tmp_path / "cache")):
        clear_cache()
        fits.clear()
        model = make_pipeline(
            adapted(tiny_bert, refit="doubling", cache=cache),
            LogisticRegression(),
        )
        learner = ActiveLearner(model, random_state=5).fit(TEXTS[:24], LABELS[:24])
        seen = {}
        for n in range(24, len(TEXTS)):
            learner.teach(TEXTS[n : n + 1], LABELS[n : n + 1])
            seen[n + 1] = learner.estimator_[0].transform(TEXTS)
        assert fits == [25]
        one = make_pipeline(*clone(model)).fit(TEXTS, LABELS)
        np.testing.assert_array_equal(one[0].transform(TEXTS), seen[45])
        undone = ActiveLearner(model, random_state=5).fit(TEXTS[:30], LABELS[:30])
        np.testing.assert_array_equal(undone.estimator_[0].transform(TEXTS), seen[30])
        assert fits == [25]
        clear_cache()  # another process
        again = ActiveLearner(model, random_state=5).fit(TEXTS, LABELS)
        np.testing.assert_array_equal(again.estimator_[0].transform(TEXTS), seen[45])
        assert fits == ([25, 25] if cache == "memory" else [25])
        np.testing.assert_array_equal(
            again.predict_proba(TEXTS), learner.predict_proba(TEXTS)
        )


def test_activations_of_the_pool_do_not_change_what_is_learned(tiny_bert):
    expected = rows(tiny_bert)
    clear_cache()
    features = adapted(tiny_bert, random_state=1).fit(TEXTS, LABELS)
    features.transform([f"{text} {text}" for text in TEXTS] + TEXTS)
    np.testing.assert_array_equal(rows(tiny_bert, cached=True), expected)


def test_an_int_as_seed_stays(tiny_bert):
    model = make_pipeline(adapted(tiny_bert), LogisticRegression(random_state=None))
    learner = ActiveLearner(model, random_state=3).fit(TEXTS, LABELS)
    assert learner.estimator_[0].random_state == 0
    assert learner.estimator_[1].random_state != 0
    assert (rows(tiny_bert, random_state=1) != rows(tiny_bert)).any()


# The folder --------------------------------------------------------------------------


@pytest.fixture
def folder(tiny_bert, tmp_path):
    """Return a folder with one point, and nothing in memory."""
    rows(tiny_bert, cache=str(tmp_path))
    clear_cache()
    return tmp_path


def weights_in(folder):
    return sorted(folder.glob("adapted-*/*/weights-*.safetensors"))


def test_weights_and_features_come_from_the_folder(tiny_bert, folder, fits):
    from safetensors.numpy import load_file

    expected = rows(tiny_bert)
    fits.clear()
    np.testing.assert_array_equal(rows(tiny_bert, cache=str(folder)), expected)
    assert fits == []
    (path,) = weights_in(folder)
    names = {name.split(".")[3] for name in load_file(path)}
    assert names == {"1", "2"}  # the first layer is frozen
    assert len(list(folder.glob("adapted-*/*/*/shard-*.npy"))) == 1


@pytest.mark.parametrize("harm", ["bit", "short", "empty", "foreign"])
def test_a_damaged_or_foreign_file_is_made_again(tiny_bert, folder, fits, harm):
    expected = rows(tiny_bert)
    fits.clear()
    (path,) = weights_in(folder)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    if harm == "foreign":
        rows(tiny_bert, y=LABELS == "sport", cache=str(folder))
        fits.clear()
        (other,) = set(weights_in(folder)) - {path}
        shutil.copy(other, path.parent / other.name)
        path.unlink()
    else:
        cuts = {"bit": content, "short": content[:99], "empty": b""}
        path.write_bytes(cuts[harm])
    shutil.rmtree(next(path.parent.glob("[!w]*")))  # the features
    clear_cache()
    with pytest.warns(UserWarning, match="is damaged .* and is made again"):
        found = rows(tiny_bert, cache=str(folder))
    np.testing.assert_array_equal(found, expected)
    assert fits == [45]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows(tiny_bert, cache=str(folder))
    assert fits == [45]


def test_the_two_latest_points_are_kept(tiny_bert, tmp_path, fits):
    cache = str(tmp_path)
    for n in (45, 40, 35):
        rows(tiny_bert, TEXTS[:n], LABELS[:n], cache=cache)
    assert len(weights_in(tmp_path)) == 2
    for n in (40, 35):
        rows(tiny_bert, TEXTS[:n], LABELS[:n], cache=cache)
    assert fits == [45, 40, 35]
    rows(tiny_bert, cache=cache)
    assert fits == [45, 40, 35, 45]
    # Another lineage does not count.
    rows(tiny_bert, TEXTS[::-1], LABELS[::-1], cache=cache)
    assert len(weights_in(tmp_path)) == 3


@slow
def test_killed_while_it_trains(tiny_bert, tmp_path):
    code = (
        "import os, signal, sys\n"
        "import skactive.bert._contrast as contrast\n"
        "from tests.bert.test_adapted import rows\n"
        "compare, calls = contrast.CosineLoss.compare, []\n"
        "def die(*args):\n"
        "    calls.append(0)\n"
        "    if len(calls) == 2:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return compare(*args)\n"
        "contrast.CosineLoss.compare = staticmethod(die)\n"
        "rows(sys.argv[1], cache=sys.argv[2])\n"
    )
    command = [sys.executable, "-c", code, str(tiny_bert), str(tmp_path)]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    assert weights_in(tmp_path) == []
    found = rows(tiny_bert, cache=str(tmp_path))
    np.testing.assert_array_equal(found, rows(tiny_bert))
    assert len(weights_in(tmp_path)) == 1


def test_a_full_disk_leaves_no_half_file(tiny_bert, tmp_path, monkeypatch):
    expected = rows(tiny_bert)

    def fail(*args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("skactive._storage._files._write", fail)
        with pytest.warns(UserWarning, match="cannot be written .* in memory only"):
            found = rows(tiny_bert, cache=str(tmp_path))
    np.testing.assert_array_equal(found, expected)
    assert weights_in(tmp_path) == []
    np.testing.assert_array_equal(rows(tiny_bert, cache=str(tmp_path)), expected)
    assert len(weights_in(tmp_path)) == 1


def test_ctrl_c_leaves_the_estimator_as_it_was(tiny_bert, monkeypatch):
    features = adapted(tiny_bert).fit(TEXTS, LABELS)
    expected = features.transform(TEXTS)

    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("skactive.bert._contrast.PairLoss.forward", stop)
        with pytest.raises(KeyboardInterrupt):
            features.fit(TEXTS[::-1], LABELS)
    np.testing.assert_array_equal(features.transform(TEXTS), expected)


# Targets -----------------------------------------------------------------------------


def test_several_labels_per_text(tiny_bert):
    y = np.arange(len(CLEAR)) // len(WORDS)
    Y = np.column_stack([y == 0, y < 2, y != 1, y == 2]).astype(int)
    cosine = learned(tiny_bert, Y)
    same = y[:, None] == y
    assert cosine[same].mean() > cosine[~same].mean() + 0.2
    np.testing.assert_array_equal(learned(tiny_bert, Y[:, [2, 0, 3, 1]]), cosine)


def test_pairs_of_texts(tiny_bert):
    pairs = list(zip(TEXTS, TEXTS[::-1], strict=True))
    features = adapted(tiny_bert).fit(pairs, LABELS)
    assert features.n_adapted_ == 45
    assert features.transform(PAIRS).shape == (len(PAIRS), 16)


@pytest.mark.parametrize(
    ("y", "error", "match"),
    [
        (np.arange(45) + 0.5, TypeError, "got the number 0.5.*BertRegressor"),
        (np.arange(90).reshape(45, 2), ValueError, "an indicator matrix of 0 and 1"),
        (LABELS[:44], ValueError, "differ in length"),
        (None, ValueError, "requires y"),
    ],
)
def test_what_y_may_be(tiny_bert, y, error, match):
    with pytest.raises(error, match=match):
        adapted(tiny_bert).fit(TEXTS, y)


# scikit-learn ------------------------------------------------------------------------


@pytest.mark.long
def test_text_checks(tiny_bert):
    assert len(check_text_estimator(adapted(tiny_bert))) == 29


def test_tags():
    tags = get_tags(AdaptedFeatures())
    assert tags.requires_fit
    assert tags.target_tags.required
    assert tags.input_tags.string


@pytest.mark.parametrize("refit", [None, 32, "doubling"])
def test_the_order_of_the_rows_counts(tiny_bert, refit):
    expected = rows(tiny_bert, refit=refit)
    assert not np.array_equal(
        rows(tiny_bert, TEXTS[::-1], LABELS[::-1], refit=refit), expected
    )


def test_before_fit(tiny_bert):
    with pytest.raises(NotFittedError):
        adapted(tiny_bert).transform(TEXTS)


def test_names_and_frames(tiny_bert):
    pd = pytest.importorskip("pandas")
    series = pd.Series(TEXTS, index=range(100, 145))
    for refit in (None, 100):
        features = adapted(tiny_bert, refit=refit).set_output(transform="pandas")
        frame = features.fit_transform(series, LABELS)
        assert frame.columns[-1] == "adaptedfeatures15"
        assert list(frame.index) == list(series.index)
        assert list(features.get_feature_names_out()) == list(frame.columns)
        np.testing.assert_array_equal(frame.to_numpy(), rows(tiny_bert, refit=refit))


@pytest.mark.parametrize("bundle", [False, True])
@pytest.mark.parametrize("refit", [None, 100])
def test_saved_and_loaded(tiny_bert, tmp_path, refit, bundle):
    features = adapted(tiny_bert, refit=refit, precision="float32")
    model = make_pipeline(features, LogisticRegression()).fit(TEXTS, LABELS)
    folder = skactive.save(model, tmp_path / "saved", bundle=bundle)
    clear_cache()
    loaded = skactive.load(folder)
    np.testing.assert_array_equal(
        loaded.predict_proba(TEXTS), model.predict_proba(TEXTS)
    )
    again = skactive.load(skactive.save(loaded, tmp_path / "again", bundle=bundle))
    np.testing.assert_array_equal(again[0].transform(TEXTS), model[0].transform(TEXTS))


def test_a_bundle_needs_no_other_folder(tiny_bert, tmp_path):
    own = tmp_path / "own"
    shutil.copytree(tiny_bert, own)
    for refit in (None, 100):
        features = adapted(str(own), refit=refit, precision="float32")
        features.fit(TEXTS, LABELS)
        expected = features.transform(TEXTS)
        skactive.save(features, tmp_path / f"saved {refit}", bundle=True)
        shutil.move(own, tmp_path / "away")
        clear_cache()
        loaded = skactive.load(tmp_path / f"saved {refit}")
        np.testing.assert_array_equal(loaded.transform(TEXTS), expected)
        shutil.move(tmp_path / "away", own)


@pytest.mark.parametrize("refit", [None, 100])
def test_a_pickle_holds_the_changed_layers(tiny_bert, refit):
    features = adapted(tiny_bert, refit=refit).fit(TEXTS, LABELS)
    expected = features.transform(TEXTS)
    content = pickle.dumps(features)
    clear_cache()
    for copied in (pickle.loads(content), copy.deepcopy(features)):
        np.testing.assert_array_equal(copied.transform(TEXTS), expected)
        assert copied.n_adapted_ == features.n_adapted_
    assert not hasattr(clone(features), "n_adapted_")


def test_no_cache(tiny_bert, fits):
    expected = rows(tiny_bert)
    features = adapted(tiny_bert, cache=None)
    for _ in range(2):
        found = features.fit_transform(TEXTS, LABELS)
        np.testing.assert_array_equal(features.transform(TEXTS), expected)
        np.testing.assert_array_equal(found, expected)
    assert fits == [45] * 3


def test_frozen_weights_are_shared(tiny_bert):
    features = adapted(tiny_bert).fit(TEXTS, LABELS)
    other = adapted(tiny_bert, random_state=1).fit(TEXTS, LABELS)
    own, others = (
        {
            name: p.data_ptr()
            for name, p in each._encoder.net_.module_.named_parameters()
        }
        for each in (features, other)
    )
    shared = {name for name in own if own[name] == others[name]}
    assert {name for name in own if "layer.1" in name or "layer.2" in name} == (
        own.keys() - shared
    )
    assert clone(features).fit(TEXTS, LABELS)._encoder is features._encoder


@pytest.mark.long
@pytest.mark.parametrize(
    "parallel", [{"backend": "threading"}, slow({"backend": "loky"})]
)
def test_a_grid_scores_alike_for_every_n_jobs(tiny_bert, parallel):
    import joblib

    grid = {
        "adaptedfeatures__freeze": [0, 1],
        "adaptedfeatures__layers": [-1, (-2, -1)],
        "adaptedfeatures__refit": [None, "doubling"],
    }
    model = make_pipeline(adapted(tiny_bert, n_steps=2), LogisticRegression())
    scores = []
    for n_jobs in (1, 2):
        clear_cache()
        with joblib.parallel_config(**parallel):
            search = GridSearchCV(
                model, grid, cv=2, n_jobs=n_jobs, scoring="neg_log_loss", refit=False
            )
            scores.append(search.fit(TEXTS, LABELS).cv_results_["mean_test_score"])
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(*scores)


# Real weights ------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.weights
@pytest.mark.shared_data
def test_minilm_learns_from_100_labels(minilm, shared_data):
    train, test = shared_data("trec/train"), shared_data("trec/test")
    train = train.iloc[np.random.default_rng(0).permutation(len(train))[:100]]
    scores = {}
    for refit in (None, 1000):
        model = make_pipeline(
            AdaptedFeatures(minilm, refit=refit), LogisticRegression(C=10)
        )
        model.fit(train.text.tolist(), train.label)
        scores[refit] = model.score(test.text.tolist(), test.label)
    assert scores[None] > 0.85 > 0.75 > scores[1000]
