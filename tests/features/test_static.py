"""StaticFeatures against plain loops over tokens, and as a transformer of texts."""

import json
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel

from skactive import ActiveLearner
from skactive.datasets import open_pool
from skactive.features import StaticFeatures
from skactive.persistence import load, save
from tests.conftest import save_encoder

WORDS = ["[UNK]", "rain", "sun", "snow", "and", "the", "a", "wind"]
TEXTS = ["rain and sun", "the sun", "snow", "hail", "", "a a wind hail the rain", "sun"]


def static_model(dtype=np.float32, **params):
    model2vec = pytest.importorskip("model2vec")
    vocabulary = {word: i for i, word in enumerate(WORDS)}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(3)  # a state of the file that must not matter
    rows = params.pop("rows", len(WORDS))
    vectors = np.random.default_rng(0).normal(size=(rows, 5)).astype(dtype)
    return model2vec.StaticModel(
        vectors,
        tokenizer,
        config={"model_type": "model2vec", "architectures": ["StaticModel"]},
        **{"max_length": None} | params,
    )


@pytest.fixture(scope="module")
def static_folder(tmp_path_factory):
    """Folder of a model of model2vec with the vectors of eight words."""
    folder = tmp_path_factory.mktemp("static")
    static_model().save_pretrained(folder)
    return str(folder)


def loop(model, texts, max_length=None, normalize=True):
    """The definition, one token at a time."""
    rows = []
    for text in texts:
        total, n_tokens = np.zeros(model.embedding.shape[1]), 0
        for word in text.split()[:max_length]:
            if word not in WORDS[1:]:
                continue
            token = WORDS.index(word)
            row = token if model.token_mapping is None else model.token_mapping[token]
            weight = 1.0 if model.weights is None else model.weights[token]
            total += model.embedding[row].astype(float) * weight
            n_tokens += 1
        if n_tokens:
            total /= n_tokens
        if normalize and np.linalg.norm(total):
            total /= np.linalg.norm(total)
        rows.append(total)
    return np.array(rows)


@pytest.mark.parametrize("params", [{}, {"max_length": 2}, {"normalize": False}])
def test_features_are_means_over_tokens(static_folder, params):
    found = StaticFeatures(static_folder, **params).transform(TEXTS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, loop(static_model(), TEXTS, **params), atol=1e-6)


def test_quantized_models(tmp_path):
    """Several tokens share a row in half precision, and each has a weight."""
    model = static_model(
        np.float16,
        rows=3,
        token_mapping=np.array([0, 1, 2, 0, 1, 2, 0, 1]),
        weights=np.linspace(0.2, 1, 8),
    )
    model.save_pretrained(tmp_path)
    found = StaticFeatures(tmp_path).transform(TEXTS)
    np.testing.assert_allclose(found, loop(model, TEXTS), atol=1e-6)


def test_features_are_those_of_model2vec(static_folder):
    model = static_model(normalize=True)
    found = StaticFeatures(static_folder).transform(TEXTS)
    np.testing.assert_allclose(found, model.encode(TEXTS), atol=1e-6)


@pytest.mark.slow  # imports sentence-transformers
def test_static_embedding_of_sentence_transformers(tmp_path):
    modules = pytest.importorskip("sentence_transformers.models")
    from sentence_transformers import SentenceTransformer

    model = static_model()
    module = modules.StaticEmbedding(
        model.tokenizer, embedding_weights=model.embedding.copy()
    )
    SentenceTransformer(modules=[module], device="cpu").save(str(tmp_path))
    found = StaticFeatures(tmp_path).transform(TEXTS)
    np.testing.assert_allclose(found, loop(model, TEXTS), atol=1e-6)


def test_no_counted_token_gives_zeros(static_folder):
    found = StaticFeatures(static_folder).transform(["", "hail", "hail hail", "sun"])
    assert not found[:3].any()
    assert np.linalg.norm(found[3]) == pytest.approx(1)


def test_a_pair_is_one_text(static_folder):
    features = StaticFeatures(static_folder)
    pairs = [("rain and", "sun"), ("", "the sun")]
    np.testing.assert_array_equal(
        features.transform(pairs), features.transform(TEXTS[:2])
    )


def test_other_texts_do_not_matter(static_folder):
    features = StaticFeatures(static_folder)
    many = TEXTS * 700  # several batches
    found = features.transform(many)
    np.testing.assert_array_equal(found, np.tile(features.transform(TEXTS), (700, 1)))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_transform_to(static_folder, tmp_path, dtype):
    features = StaticFeatures(static_folder)
    texts = [f"{a} {b} {c}" for a in WORDS for b in WORDS for c in WORDS]
    settings = {"dtype": dtype, "block_rows": 100}
    stored = features.transform_to(texts, tmp_path / "out", **settings)
    expected = features.transform(texts)
    np.testing.assert_array_equal(stored.transform(texts), expected.astype(dtype))
    # A later call has nothing to do, and other parameters are an error.
    changed = (tmp_path / "out" / "blocks.jsonl").read_bytes()
    features.transform_to(texts, tmp_path / "out", **settings)
    assert (tmp_path / "out" / "blocks.jsonl").read_bytes() == changed
    with pytest.raises(ValueError, match="max_length"):
        clone(features).set_params(max_length=2).transform_to(
            texts, tmp_path / "out", **settings
        )


def test_text_pools(static_folder, tmp_path):
    """A pool is read in batches."""
    pytest.importorskip("pyarrow")
    texts = [f"{a} {b} {i}" for i in range(40) for a in WORDS for b in WORDS]
    pd.DataFrame({"text": texts}).to_parquet(tmp_path / "pool.parquet")
    pool = open_pool(tmp_path / "pool.parquet", "text")
    features = StaticFeatures(static_folder).fit(pool)
    expected = features.transform(texts)
    np.testing.assert_array_equal(features.transform(pool), expected)
    stored = features.transform_to(pool, tmp_path / "out", dtype="float32")
    np.testing.assert_array_equal(stored.transform(pool), expected)


@pytest.mark.long
@pytest.mark.parametrize("pca_dims", [None, 4, 1000])
@pytest.mark.parametrize("sif", [None, 1e-2])
def test_distilled_tables(tiny_bert, pca_dims, sif):
    """Input embeddings of words, centered and rotated, weighted by rank."""
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(tiny_bert)
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    embeddings = model.embeddings.word_embeddings.weight.detach().numpy().astype(float)
    words = embeddings[5:]  # [PAD] [UNK] [CLS] [SEP] [MASK] come first
    if pca_dims is not None:
        centered = words - words.mean(axis=0)
        directions = np.linalg.svd(centered, full_matrices=False)[2][:pca_dims]
        words = centered @ directions.T
    if sif is not None:
        zipf = [1 / (rank + 2) for rank in range(len(words))]
        for row, weight in zip(words, zipf, strict=True):
            row *= sif / (sif + weight / sum(zipf))
    texts = ["a small cat!", "ox \u4e2d ox", "", "[SEP] q"]
    expected = []
    for text in texts:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        own = [words[i - 5] for i in ids if i >= 5]
        expected.append(np.mean(own, axis=0) if own else np.zeros(words.shape[1]))
    features = StaticFeatures(tiny_bert, pca_dims=pca_dims, sif=sif, normalize=False)
    found = features.transform(texts)
    # The signs of principal components are arbitrary: compare products.
    expected = np.array(expected)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, rtol=2e-4)
    assert features.get_feature_names_out()[0] == "staticfeatures0"
    assert found.shape == (4, min(pca_dims or 16, 16))


def test_saved_tables_give_the_same_features(tiny_bert, tmp_path):
    pytest.importorskip("model2vec")
    made = StaticFeatures(tiny_bert, pca_dims=8)
    made.save_model(tmp_path / "table")
    texts = ["a small cat", "[SEP] \u4e2d ox", "x" * 300]
    found = StaticFeatures(tmp_path / "table").transform(texts)
    np.testing.assert_array_equal(found, made.transform(texts))


@pytest.mark.long
@pytest.mark.slow
def test_static_models_do_not_import_torch(static_folder):
    code = (
        "import sys; from skactive.features import StaticFeatures;"
        f"StaticFeatures({static_folder!r}).transform(['sun']);"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_changed_folder_is_read_again(static_folder, tmp_path):
    static_model().save_pretrained(tmp_path)
    before = StaticFeatures(tmp_path).transform(TEXTS)
    static_model(rows=3, token_mapping=np.arange(8) % 3).save_pretrained(tmp_path)
    assert not np.allclose(StaticFeatures(tmp_path).transform(TEXTS), before)


def test_in_a_learner(static_folder):
    learner = ActiveLearner(
        make_pipeline(StaticFeatures(static_folder), LogisticRegression()),
        strategy="margin",
        random_state=0,
    )
    learner.fit(TEXTS[:2] * 2, [0, 1, 0, 1])
    assert len(learner.query(TEXTS, 3)) == 3


def test_copies(static_folder):
    features = StaticFeatures(static_folder, max_length=2)
    expected = features.transform(TEXTS)
    for copy in (clone(features), pickle.loads(pickle.dumps(features))):
        np.testing.assert_array_equal(copy.fit(TEXTS).transform(TEXTS), expected)


def test_saving(static_folder, tmp_path):
    """The parameters are saved, and the folder of the model is not."""
    features = StaticFeatures(static_folder, max_length=2)
    save(features, tmp_path / "saved")
    np.testing.assert_array_equal(
        load(tmp_path / "saved").transform(TEXTS), features.transform(TEXTS)
    )


def test_a_bundled_table_needs_no_other_folder(static_folder, tmp_path):
    here = shutil.copytree(static_folder, tmp_path / "here")
    features = StaticFeatures(here, max_length=2)
    expected = features.transform(TEXTS)
    save(make_pipeline(features, "passthrough"), tmp_path / "a", bundle=True)
    shutil.rmtree(here)
    loaded = load((tmp_path / "a").rename(tmp_path / "moved"))
    np.testing.assert_array_equal(loaded.transform(TEXTS), expected)
    union = FeatureUnion([("a", loaded[0]), ("b", clone(loaded[0]))])
    again = load(save(union, tmp_path / "again", bundle=True)).transform(TEXTS)
    assert len(list((tmp_path / "again" / "pretrained").iterdir())) == 1
    np.testing.assert_array_equal(again, np.hstack([expected, expected]))


def test_containers(static_folder):
    features = StaticFeatures(static_folder)
    frame = features.set_output(transform="pandas").transform(
        pd.Series(TEXTS, index=list("abcdefg"))
    )
    assert list(frame.columns) == [f"staticfeatures{i}" for i in range(5)]
    plain = StaticFeatures(static_folder).transform(np.array(TEXTS))
    np.testing.assert_array_equal(frame.to_numpy(), plain)


@pytest.mark.parametrize(
    ("X", "error", "match"),
    [
        ("sun", TypeError, "single str"),
        ([], ValueError, "holds no texts"),
        (["sun", 3], TypeError, r"1 \(int\)"),
        (["sun", "\ud800"], ValueError, "unpaired surrogates at positions: 1"),
    ],
)
def test_bad_input(static_folder, X, error, match):
    with pytest.raises(error, match=match):
        StaticFeatures(static_folder).transform(X)


@pytest.mark.parametrize(
    "params", [{"max_length": 0}, {"pca_dims": 0}, {"sif": 0.0}, {"normalize": 2}]
)
def test_bad_parameters(static_folder, params):
    with pytest.raises(ValueError, match=f"'{next(iter(params))}' parameter"):
        StaticFeatures(static_folder, **params).fit(TEXTS)


def test_models_that_are_not_there(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        StaticFeatures(tmp_path / "none").transform(TEXTS)
    with pytest.raises(ValueError, match="cannot be loaded from the hub"):
        StaticFeatures("nobody/no-such-model").transform(TEXTS)


def test_a_broken_folder(static_folder, tmp_path):
    static_model().save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(
        ValueError, match=r"a model of model2vec, got .* cannot be loaded"
    ):
        StaticFeatures(tmp_path).transform(TEXTS)


def test_without_the_library(static_folder, tmp_path, monkeypatch):
    static_model().save_pretrained(tmp_path)
    monkeypatch.setitem(sys.modules, "model2vec", None)
    with pytest.raises(ImportError, match=r"pip install skactive\[static\]"):
        StaticFeatures(tmp_path).transform(TEXTS)


def test_code_of_a_model_is_refused(tmp_path):
    save_encoder(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["auto_map"] = {"AutoModel": "evil.Model"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="never run"):
        StaticFeatures(tmp_path).transform(TEXTS)


def test_models_of_the_hub(static_folder, monkeypatch):
    """Files are asked for at the revision given, only tables and JSON files."""
    asked = []

    def snapshot_download(name, *, revision, allow_patterns):
        asked.append((name, revision, tuple(allow_patterns)))
        return static_folder

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    found = StaticFeatures("someone/table", revision="v1").transform(TEXTS)
    np.testing.assert_array_equal(found, StaticFeatures(static_folder).transform(TEXTS))
    assert asked == [
        ("someone/table", "v1", ("config.json", "modules.json")),
        ("someone/table", "v1", ("*.json", "*.safetensors")),
    ]
