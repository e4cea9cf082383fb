"""BertFeatures against a plain forward of one text at a time."""

import inspect
import warnings

import numpy as np
import pytest
import torch

from skactive._encoders._pretrained import open_checkpoint
from skactive._encoders._tokens import tokenize
from skactive.bert import BertFeatures

from ..bert._helpers import PAIRS, PLAIN, grid, module_of, tokenizer_of, uncached
from ..conftest import TEXTS, save_encoder, save_tokenizer

POOLINGS = ["mean", "cls", "max"]
OTHERS = ["Roberta", "DistilBert", "Electra", "MPNet"]


def plain(folder, texts, pooling="mean", layers=(-1,), max_length=64):
    """One text at a time, no batch and no padding: what the features should be."""
    tokenizer, model = tokenizer_of(folder), module_of(folder)
    rows = []
    for text in texts:
        # As a list of one: transformers takes ("a", "") for a text without a pair.
        inputs = tokenizer(
            [text], truncation=True, max_length=max_length, return_tensors="pt"
        )
        if "token_type_ids" not in inspect.signature(model.forward).parameters:
            inputs.pop("token_type_ids", None)
        with torch.no_grad():
            states = model(**inputs, output_hidden_states=True).hidden_states
        row = []
        for layer in layers:
            tokens = states[layer][0].numpy()
            if pooling == "mean":
                row.append(tokens.sum(axis=0) / len(tokens))
            else:
                row.append(tokens[0] if pooling == "cls" else tokens.max(axis=0))
        rows.append(np.concatenate(row))
    return np.array(rows)


@pytest.mark.long
@pytest.mark.parametrize(
    ("layers", "pooling"),
    grid(
        [
            (layers, pooling)
            for layers in (-1, 0, 2, (-4 + 1, 0, -1), [1])
            for pooling in POOLINGS
        ],
        # Every pooling with the last layer and every layer with the mean.
        lambda layers, pooling: layers == -1 or pooling == "mean",
    ),
)
def test_equals_a_plain_forward(tiny_bert, exact, pooling, layers):
    exact.set_params(pooling=pooling, layers=layers)
    several = (layers,) if isinstance(layers, int) else layers
    expected = plain(tiny_bert, TEXTS, pooling, several)
    np.testing.assert_allclose(exact.transform(TEXTS), expected, atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "texts", "pooling"),
    grid(
        [
            (kind, texts, pooling)
            for kind in OTHERS
            for texts in (TEXTS, PAIRS)
            for pooling in POOLINGS
        ],
        # Every architecture once, with texts or with pairs.
        lambda kind, texts, pooling: (
            POOLINGS.index(pooling) == OTHERS.index(kind) % 3
            and (texts is PAIRS) is (OTHERS.index(kind) % 2 == 1)
        ),
    ),
)
def test_equals_a_plain_forward_for_other_encoders(tiny_encoder, kind, texts, pooling):
    overrides = {"embedding_size": 8} if kind == "Electra" else {}
    folder = tiny_encoder(kind, **overrides)
    got = uncached(folder, pooling=pooling).transform(texts)
    np.testing.assert_allclose(got, plain(folder, texts, pooling), atol=3e-5)


def test_second_part_of_a_pair_has_its_own_token_type(tiny_bert, exact):
    got = exact.transform(PAIRS)
    np.testing.assert_allclose(got, plain(tiny_bert, PAIRS), atol=1e-5)
    swapped = exact.transform([(b, a) for a, b in PAIRS])
    assert np.abs(got - swapped).max() > 0.01


def test_pairs_in_every_form(exact):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    expected = exact.transform(PAIRS)
    frame = pd.DataFrame(PAIRS, columns=["a", "b"])
    for pairs in (
        [list(pair) for pair in PAIRS],
        np.array(PAIRS),
        np.array(PAIRS, dtype=object),
        frame,
        pl.DataFrame(PAIRS, schema=["a", "b"], orient="row"),
    ):
        np.testing.assert_array_equal(exact.transform(pairs), expected)


def test_every_container_gives_identical_features(exact, texts):
    np.testing.assert_array_equal(exact.transform(texts), exact.transform(TEXTS))


@pytest.mark.parametrize("batch_tokens", [1, 7, 40, 100_000])
def test_batches_do_not_matter(exact, batch_tokens):
    expected = exact.transform(TEXTS)
    got = exact.set_params(batch_tokens=batch_tokens).transform(TEXTS)
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_rows_follow_the_order_of_the_texts(exact):
    order = [5, 2, 7, 0, 4]
    got = exact.transform([TEXTS[i] for i in order])
    np.testing.assert_allclose(got, exact.transform(TEXTS)[order], atol=1e-5)


def test_more_texts_than_a_chunk(exact, monkeypatch):
    monkeypatch.setattr("skactive._encoders._tokens._PART_TEXTS", 3)
    got = exact.transform(TEXTS)
    monkeypatch.undo()
    np.testing.assert_allclose(got, exact.transform(TEXTS), atol=1e-5)


def test_output_is_float32_and_read_only(exact):
    features = exact.transform(TEXTS)
    assert features.dtype == np.float32
    assert features.shape == (len(TEXTS), 16)
    with pytest.raises(ValueError, match="read-only"):
        features[0, 0] = 1


def test_normalize(exact):
    raw = exact.transform(TEXTS)
    got = exact.set_params(normalize=True, layers=(-2, -1)).transform(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(got, axis=1), 1, atol=1e-6)
    one = exact.set_params(layers=-1).transform(TEXTS)
    lengths = np.linalg.norm(raw, axis=1, keepdims=True)
    np.testing.assert_allclose(one, raw / lengths, atol=1e-6)


def test_bfloat16_is_near_float32(tiny_bert, exact):
    expected = exact.transform(TEXTS)
    got = exact.set_params(precision="bfloat16").transform(TEXTS)
    assert got.dtype == np.float32
    assert not np.array_equal(got, expected)
    cosine = (got * expected).sum(1) / (
        np.linalg.norm(got, axis=1) * np.linalg.norm(expected, axis=1)
    )
    assert cosine.min() > 0.999


@pytest.mark.cpu_only("about instructions of the processor")
def test_auto_precision_asks_the_processor(monkeypatch, exact):
    expected = exact.transform(TEXTS)
    exact.set_params(precision="auto")
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda: False, raising=False)
    np.testing.assert_array_equal(exact.transform(TEXTS), expected)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)
    assert not np.array_equal(exact.transform(TEXTS), expected)


# Length ------------------------------------------------------------------------------


def test_long_texts_are_cut_and_counted_once(tiny_bert, exact):
    exact.set_params(max_length=6)
    # With the special tokens the seven different texts have 7, 7, 7, 2, 17, 18 and 3,
    # 61 in all, of which 26 are beyond the sixth.
    message = r"5 of the 7 texts encoded \(71%\) .* leaves out 43%"
    with pytest.warns(UserWarning, match=message) as w:
        got = exact.transform(TEXTS)
    assert len(w) == 1
    assert w[0].filename == __file__
    np.testing.assert_allclose(got, plain(tiny_bert, TEXTS, max_length=6), atol=1e-5)


def test_no_warning_where_nothing_is_cut(exact):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exact.transform(TEXTS)
    assert caught == []


@pytest.mark.long
@pytest.mark.parametrize("kind", ["Bert", "Roberta", "MPNet"])
def test_max_length_never_exceeds_the_positions(tmp_path, kind):
    # 20 rows of position embeddings; RoBERTa's first one belongs to padding.
    folder = save_encoder(tmp_path, kind, max_position_embeddings=20)
    save_tokenizer(tmp_path, model_max_length=10**30)
    n = 20 if kind == "Bert" else 19
    if kind == "MPNet":
        n = 18  # counts from padding index 1 whatever its configuration says
    features = BertFeatures(folder, **PLAIN, max_length=512, cache=None)
    with pytest.warns(UserWarning, match=f"than {n} tokens .* the most that the model"):
        got = features.transform(["a " * 100])
    np.testing.assert_allclose(
        got, plain(folder, ["a " * 100], max_length=n), atol=1e-5
    )


@pytest.mark.parametrize(("X", "n"), [(["a text"], 2), ([("a", "pair")], 3)])
def test_refuses_a_length_without_room_for_words(exact, X, n):
    exact.set_params(max_length=n)
    message = f"'max_length' must be more than the {n} special tokens.*got {n}"
    with pytest.raises(ValueError, match=message):
        exact.transform(X)
    exact.set_params(max_length=n + 1).transform(X)


def test_a_pair_is_cut_at_its_longer_part(tiny_bert, exact):
    pairs = [("a joy", "the team won " * 10), ("slow film " * 10, "no")]
    with pytest.warns(UserWarning, match="2 of the 2 texts"):
        got = exact.set_params(max_length=10).transform(pairs)
    np.testing.assert_allclose(got, plain(tiny_bert, pairs, max_length=10), atol=1e-5)


# Real weights ------------------------------------------------------------------------

SENTENCES = [
    "Oil prices rose sharply after the announcement.",
    "She scored twice in the second half.",
    "A new telescope will map the southern sky.",
    "no",
    "The court ruled on Tuesday that the merger may go ahead, rejecting an appeal by "
    "two rivals who had argued that it would leave customers with nowhere else to go.",
] + [f"Sentence number {i} " + "goes on " * i for i in range(12)]


@pytest.mark.weights
def test_float32_equals_sentence_transformers(minilm):
    st = pytest.importorskip("sentence_transformers")
    reference = st.SentenceTransformer(minilm, device="cpu")
    features = BertFeatures(
        minilm, max_length=256, normalize=True, precision="float32", cache=None
    )
    expected = reference.encode(SENTENCES)
    np.testing.assert_allclose(features.transform(SENTENCES), expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.weights
def test_bfloat16_is_near_float32_on_real_weights(minilm):
    params = {"max_length": 256, "normalize": True, "cache": None}
    exact = BertFeatures(minilm, precision="float32", **params).transform(SENTENCES)
    half = BertFeatures(minilm, precision="bfloat16", **params).transform(SENTENCES)
    assert (exact * half).sum(axis=1).min() >= 0.999


@pytest.mark.parametrize("pair", [False, True])
def test_tokens_that_are_cut_off_are_counted(tiny_bert, pair):
    texts = [("the film is", text) for text in TEXTS] if pair else TEXTS
    checkpoint = open_checkpoint(tiny_bert)
    lengths = np.array([len(row) for row in checkpoint.tokenizer(texts)["input_ids"]])
    tokens = tokenize(checkpoint, texts, 8)
    assert tokens.n_truncated == (lengths > 8).sum() > 0
    assert tokens.n_lost == np.maximum(lengths - 8, 0).sum()
