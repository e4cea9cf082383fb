"""Surprisal of a masked language model against a plain loop, text by text."""

import os
import shutil

import numpy as np
import pytest
import torch
from sklearn.pipeline import make_pipeline
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
)

from skactive._encoders._pretrained import open_checkpoint
from skactive._encoders._surprisal import choose_targets, target_logits
from skactive._utils._repeatable import fork_torch
from skactive.bert import BertClassifier, BertFeatures

from ..bert._helpers import ARCHITECTURES, grid, padded, some, tokenizer_of, uncached
from ..bert._helpers import REVIEW_LABELS as Y
from ..bert._helpers import REVIEWS as X
from ..bert._helpers import review_classifier as classifier
from ..conftest import TEXTS

PAIRS = [(a, b) for a, b in zip(X, X[::-1], strict=True)]
ESTIMATORS = [BertFeatures, BertClassifier]


def save_masked_lm(source, folder):
    """Save a masked language model of random weights beside the same tokenizer."""
    shutil.copytree(source, folder, dirs_exist_ok=True)
    with fork_torch(1):
        module = AutoModelForMaskedLM.from_config(AutoConfig.from_pretrained(source))
    module.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def masked_lm(tmp_path_factory, tiny_encoder):
    """Folder of a tiny masked language model of some architecture."""
    folders = {}

    def find(kind="Bert"):
        if kind not in folders:
            folder = tmp_path_factory.mktemp(f"{kind}_mlm")
            folders[kind] = save_masked_lm(tiny_encoder(kind), folder)
        return folders[kind]

    return find


def by_hand(model, texts, max_length=128):
    """All surprises of each text, without batches: a list of (ids, surprises)."""
    tokenizer = tokenizer_of(model)
    module = AutoModelForMaskedLM.from_pretrained(model).eval()
    rows = []
    for text in texts:
        batch = tokenizer(
            *(text if isinstance(text, tuple) else (text,)),
            truncation=True,
            max_length=max_length,
            return_tensors="pt",
        )
        if not any(p.shape[0] == 2 for p in module.parameters()):
            batch.pop("token_type_ids", None)
        with torch.no_grad():
            logits = module(**batch).logits[0]
        ids = batch["input_ids"][0]
        each = [
            -row.log_softmax(dim=0)[i].item()
            for row, i in zip(logits, ids, strict=True)
        ]
        rows.append((ids.tolist(), np.array(each)))
    return rows


def check(found, expected):
    """Compare with the plain loop at the targets; nothing elsewhere."""
    for row, (ids, surprises) in zip(found, expected, strict=True):
        targets = np.flatnonzero(row)
        words = [i for i, token in enumerate(ids) if token not in (0, 2, 3)]
        assert set(targets) <= set(words)
        assert len(targets) == (max(1, round(0.15 * len(words))) if words else 0)
        np.testing.assert_allclose(row[targets], surprises[targets], rtol=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("kind", some(ARCHITECTURES, "Albert", "Electra"))
def test_alps_oracle_in_every_architecture(masked_lm, kind):
    model = masked_lm(kind)
    found = uncached(model).surprisal(TEXTS, random_state=0)
    limit = open_checkpoint(model).max_positions
    assert found.shape == (len(TEXTS), min(limit, 128))
    assert found.dtype == np.float32
    check(found, by_hand(model, TEXTS))


def test_alps_oracle_for_pairs(masked_lm):
    model = masked_lm()
    expected = by_hand(model, PAIRS)
    for seed in range(5):
        check(uncached(model).surprisal(PAIRS, random_state=seed), expected)


def test_both_estimators_say_the_same_fitted_or_not(masked_lm):
    model = masked_lm()
    expected = uncached(model, max_length=64).surprisal(X, random_state=3)
    fresh = classifier(model, max_length=64, precision="float32")
    np.testing.assert_array_equal(fresh.surprisal(X, random_state=3), expected)
    assert not hasattr(fresh, "net_")
    fitted = fresh.fit(X, Y)
    np.testing.assert_array_equal(fitted.surprisal(X, random_state=3), expected)


def test_the_step_of_a_pipeline_that_was_never_fitted(masked_lm):
    step = make_pipeline(uncached(masked_lm()), None)[0]
    assert step.surprisal(X, random_state=0).shape == (8, 64)


def test_a_text_has_the_same_targets_among_any_others(masked_lm, monkeypatch):
    estimator = uncached(masked_lm())
    whole = estimator.surprisal(TEXTS, random_state=7)
    order = np.array([4, 0, 6, 3, 2])
    found = estimator.surprisal([TEXTS[i] for i in order], random_state=7)
    np.testing.assert_array_equal(found != 0, whole[order] != 0)
    np.testing.assert_allclose(found, whole[order], rtol=1e-4)
    monkeypatch.setattr("skactive._encoders._surprisal._CHUNK", 2)
    monkeypatch.setattr("skactive._encoders._surprisal._LOGITS", 1)
    np.testing.assert_allclose(
        estimator.surprisal(TEXTS, random_state=7), whole, rtol=1e-4
    )


def test_seeds(masked_lm):
    estimator = uncached(masked_lm())
    texts = [f"the film number {i} is a joy to see and to hear" for i in range(20)]

    def targets(seed):
        return estimator.surprisal(texts, random_state=seed) != 0

    assert (targets(0) == targets(0)).all()
    assert (targets(0) != targets(1)).any(axis=1).mean() > 0.5
    assert len(np.unique(targets(0), axis=0)) > 10  # not one draw for all
    assert (targets(None) != targets(None)).any()
    state = np.random.RandomState(0)
    assert (targets(state) != targets(state)).any()
    seeded = classifier(masked_lm(), random_state=5)
    np.testing.assert_array_equal(
        seeded.surprisal(texts), seeded.surprisal(texts, random_state=5)
    )


def test_targets_are_uniform_over_the_words():
    ids, counts = [2, *range(10, 30), 3, 3], np.zeros(23)
    for seed in range(2000):
        positions = choose_targets(ids, {2, 3}, seed, "text")
        assert len(set(positions)) == 3
        counts[positions] += 1
    assert counts[[0, 21, 22]].tolist() == [0, 0, 0]
    assert abs(counts[1:21] - 300).max() < 5 * np.sqrt(300 * 0.85)


@pytest.mark.parametrize(
    ("n", "expected"), [(1, 1), (3, 1), (9, 1), (11, 2), (20, 3), (100, 15)]
)
def test_number_of_targets(n, expected):
    assert len(choose_targets([5] * n, {2, 3}, 0, ("a", "b"))) == expected
    assert len(choose_targets([2, 3], {2, 3}, 0, "")) == 0


def test_texts_without_words_surprise_nobody(masked_lm):
    found = uncached(masked_lm()).surprisal(["", "a film", "[SEP]"], random_state=0)
    assert (found != 0).any(axis=1).tolist() == [False, True, False]
    assert not uncached(masked_lm()).surprisal([""], random_state=0).any()


def test_unknown_words_can_be_targets(masked_lm):
    assert uncached(masked_lm()).surprisal(["東"], random_state=0).any()


def test_texts_are_cut_at_the_length(masked_lm):
    found = uncached(masked_lm(), max_length=5).surprisal(TEXTS, random_state=0)
    assert found.shape == (8, 5)
    check(found, by_hand(masked_lm(), TEXTS, max_length=5))


@pytest.mark.parametrize("kind", ["Bert", "DistilBert", "ModernBert"])
def test_the_head_runs_on_the_targets_only(masked_lm, kind):
    checkpoint = open_checkpoint(masked_lm(kind))
    module = checkpoint.module(torch.device("cpu"), torch.float32, masked_lm=True)
    batch = padded(masked_lm(kind), X)
    rows, columns = torch.tensor([0, 2, 2, 7]), torch.tensor([1, 1, 4, 2])
    seen = []
    hook = module.get_output_embeddings().register_forward_hook(
        lambda layer, args, output: seen.append(output.numel() // output.shape[-1])
    )
    with torch.no_grad():
        found = target_logits(module, batch, rows, columns)
        assert seen == [4]
        whole = module(**batch).logits
    hook.remove()
    torch.testing.assert_close(found, whole[rows, columns], rtol=1e-4, atol=1e-4)
    assert not module.base_model._forward_hooks


def test_a_model_that_is_its_own_base_runs_as_a_whole(masked_lm, monkeypatch):
    checkpoint = open_checkpoint(masked_lm())
    module = checkpoint.module(torch.device("cpu"), torch.float32, masked_lm=True)
    expected = uncached(masked_lm()).surprisal(X, random_state=0)
    monkeypatch.setattr(type(module), "base_model", property(lambda self: self))
    found = uncached(masked_lm()).surprisal(X, random_state=0)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("kind", "make"),
    grid(
        [
            (kind, make)
            for kind in ("Bert", "Roberta", "DistilBert", "Electra", "Albert")
            for make in ESTIMATORS
        ],
        lambda kind, make: (
            kind == "Bert" or (make is BertFeatures and kind == "DistilBert")
        ),
    ),
)
def test_a_checkpoint_without_the_head_is_refused(tiny_encoder, kind, make):
    model = tiny_encoder(kind)
    with pytest.raises(
        ValueError, match=r"head of a masked language model, got .*lack"
    ):
        make(model).surprisal(X, random_state=0)


def test_one_missing_weight_of_the_head_is_enough(masked_lm, tmp_path):
    from safetensors.torch import load_file, save_file

    shutil.copytree(masked_lm(), tmp_path, dirs_exist_ok=True)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["cls.predictions.transform.dense.weight"]
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=r"lack 'cls.predictions.transform.dense"):
        uncached(tmp_path).surprisal(X)


def test_an_architecture_without_such_a_head_is_refused(tmp_path, tiny_bert):
    from transformers import T5Config, T5Model

    shutil.copytree(tiny_bert, tmp_path, dirs_exist_ok=True)
    config = T5Config(
        vocab_size=300, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2
    )
    T5Model(config).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="got a 't5' model, which has none"):
        uncached(tmp_path).surprisal(X)


@pytest.mark.slow
@pytest.mark.weights
@pytest.mark.parametrize("make", ESTIMATORS)
def test_minilm_has_no_such_head(minilm, make):
    with pytest.raises(ValueError, match=r"lack 'cls\.predictions\..* trained on"):
        make(minilm).surprisal(X, random_state=0)


@pytest.mark.skipif(os.name == "nt", reason="writes to a mapped file")
def test_the_features_of_the_same_folder_are_the_encoders(masked_lm):
    model = masked_lm()
    estimator = uncached(model)
    estimator.surprisal(X, random_state=0)
    module = AutoModel.from_pretrained(model).eval()
    with torch.no_grad():
        expected = module(**padded(model, X[:1])).last_hidden_state.mean(dim=1)
    np.testing.assert_allclose(estimator.transform(X[:1]), expected, atol=1e-5)


def test_the_global_generators_stay(masked_lm, tmp_path):
    shutil.copytree(masked_lm(), tmp_path, dirs_exist_ok=True)  # loaded anew
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    uncached(tmp_path).surprisal(X)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002


def test_bfloat16_is_near_float32(masked_lm):
    exact = uncached(masked_lm()).surprisal(X, random_state=0)
    rough = uncached(masked_lm(), precision="bfloat16").surprisal(X, random_state=0)
    np.testing.assert_array_equal(exact != 0, rough != 0)
    np.testing.assert_allclose(rough, exact, rtol=0.1, atol=0.3)
    assert not np.array_equal(rough, exact)


@pytest.mark.parametrize("make", ESTIMATORS)
def test_bad_input_is_refused(masked_lm, make):
    with pytest.raises(TypeError, match="X"):
        make(masked_lm()).surprisal([1, 2])
    with pytest.raises(ValueError, match="position"):
        make(masked_lm()).surprisal(["fine", "\ud83d"])
    with pytest.raises(ValueError, match="max_length"):
        make(masked_lm(), max_length=0).surprisal(X)


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["alps", "egl", "egl_embedding", "dfal"])
def test_strategies_ask_the_estimators(masked_lm, strategy):
    from skactive import ActiveLearner

    pool = [f"{text} {i}" for i in range(3) for text in X]
    learner = ActiveLearner(classifier(masked_lm()), strategy, random_state=0)
    learner.fit(X, Y)
    chosen = learner.query(pool, 4)
    assert len(set(chosen)) == 4
    assert (learner.query(pool, 4) == chosen).all()


def test_alps_is_a_cold_start(masked_lm):
    from skactive import ActiveLearner

    learner = ActiveLearner(classifier(masked_lm()), cold_start="alps", random_state=0)
    assert len(set(learner.query([*X, *TEXTS[:4]], 3))) == 3


def test_the_number_of_threads_does_not_matter(masked_lm, same_for_all_threads):
    features = BertFeatures(masked_lm())
    texts = [f"{text} {i}" for i in range(20) for text in X]
    same_for_all_threads(lambda: features.surprisal(texts, random_state=0))
