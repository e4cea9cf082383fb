"""Prompts and dimensions, against those of sentence-transformers."""

import json
import pickle
import shutil
import warnings

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize
from sklearn.base import clone

from skactive import load, make_text_classifier, save
from skactive.bert import BertFeatures

from ..bert._helpers import PAIRS, uncached
from .test_sentences import WORDS, dense, save_sentences

PROMPTS = {"query": "the team ", "passage": "a film is "}
GEMMA = {
    "head_dim": 8,
    "num_key_value_heads": 1,
    "use_bidirectional_attention": True,
    "sliding_window": 8,
}


def widened(out):
    """Return a dense layer after a dense layer to 24, as EmbeddingGemma has them."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return Dense(24, out, bias=False, activation_function=torch.nn.Identity())


# Architecture, its settings, pooling and modules after it, the prompt and dimensions.
MODELS = {
    "e5": ("Bert", {}, "mean", (Normalize(),), "query: ", None),
    "nomic": ("NomicBert", {"head_dim": 8}, "mean", (), "classification: ", 6),
    "gte": ("Gte", {}, "cls", (Normalize(),), "", 8),
    "EmbeddingGemma": (
        "Gemma3Text",
        GEMMA,
        "mean",
        (dense(24, torch.nn.Identity()), widened(16), Normalize()),
        "task: classification | query: ",
        12,
    ),
}


@pytest.fixture(scope="module")
def with_prompts(tmp_path_factory):
    """Folder of a model with two prompts, of which none is the default."""
    folder = tmp_path_factory.mktemp("prompts")
    return save_sentences(folder, "cls", Normalize(), prompts=PROMPTS)


@pytest.fixture
def copy(with_prompts, tmp_path):
    return str(shutil.copytree(with_prompts, tmp_path / "copy"))


def automatic(folder, **params):
    return uncached(folder, **{"pooling": "auto", "normalize": True, **params})


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_features_are_those_of_sentence_transformers(tmp_path, name):
    kind, sizes, pooling, modules, prompt, dimensions = MODELS[name]
    folder = save_sentences(
        tmp_path, pooling, *modules, kind=kind, sizes=sizes, prompts={"task": prompt}
    )
    expected = SentenceTransformer(folder, device="cpu").encode(
        WORDS,
        prompt_name="task",
        truncate_dim=dimensions,
        normalize_embeddings=True,
    )
    features = automatic(folder, prompt="task", dimensions=dimensions)
    found = features.transform(WORDS)
    assert found.shape == (len(WORDS), dimensions or 16)
    assert len(features.get_feature_names_out()) == found.shape[1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    named = automatic(folder, prompt=prompt, dimensions=dimensions)
    np.testing.assert_array_equal(named.transform(WORDS), found)
    if prompt:
        other = automatic(folder, prompt="", dimensions=dimensions).transform(WORDS)
        assert abs(other - found).max() > 0.01


def test_a_prompt_stands_before_the_first_of_a_pair(with_prompts):
    expected = automatic(with_prompts, prompt="").transform(
        [("the team " + a, b) for a, b in PAIRS]
    )
    found = automatic(with_prompts, prompt="query").transform(PAIRS)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("params", [{"pooling": "mean"}, {"layers": (1, -1)}])
def test_a_prompt_is_used_with_any_pooling_and_layers(with_prompts, params):
    expected = automatic(with_prompts, prompt="", **params).transform(
        ["the team " + text for text in WORDS]
    )
    found = automatic(with_prompts, prompt="query", **params).transform(WORDS)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_without_a_prompt_the_default_one_is_used_and_none_for_a_blank(tmp_path):
    folder = save_sentences(
        tmp_path, "mean", prompts=PROMPTS, default_prompt_name="passage"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        default = automatic(folder).transform(WORDS)
        named = automatic(folder, prompt="passage").transform(WORDS)
        none = automatic(folder, prompt="").transform(WORDS)
        by_hand = automatic(folder, prompt="").transform(
            [f"a film is {w}" for w in WORDS]
        )
    np.testing.assert_array_equal(default, named)
    np.testing.assert_allclose(default, by_hand, rtol=0, atol=1e-6)
    assert abs(default - none).max() > 0.01


def test_warns_once_of_prompts_that_are_not_used(copy):
    with pytest.warns(UserWarning, match=r"trained with prompts.*'passage'.*''"):
        automatic(copy).transform(WORDS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        automatic(copy).transform(WORDS[:2])


@pytest.mark.parametrize("prompt", ["", "query", "my own: "])
def test_does_not_warn_of_prompts_if_one_is_named_or_none_is_wanted(copy, prompt):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        automatic(copy, prompt=prompt).transform(WORDS)
    assert not caught


def test_empty_prompts_are_no_reason_to_warn(tmp_path):
    # sentence-transformers writes these for every model.
    folder = save_sentences(tmp_path, "mean", prompts={"query": "", "document": ""})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plain = automatic(folder).transform(WORDS)
        named = automatic(folder, prompt="document").transform(WORDS)
    assert not caught
    np.testing.assert_array_equal(named, plain)


def test_names_the_prompts_for_a_misspelled_one(with_prompts, tiny_bert):
    message = r"'prompt' must be .*got 'qeury'. Names are: 'passage', 'query'"
    with pytest.raises(ValueError, match=message):
        automatic(with_prompts, prompt="qeury").transform(WORDS)
    with pytest.raises(ValueError, match=r"got 'query'\. Names are: none"):
        automatic(tiny_bert, prompt="query").transform(WORDS)
    automatic(tiny_bert, prompt="query ").transform(WORDS)


def test_dimensions_are_the_first_features_of_unit_length(with_prompts):
    whole = automatic(with_prompts, prompt="").transform(WORDS)
    found = automatic(with_prompts, prompt="", dimensions=5).transform(WORDS)
    length = np.linalg.norm(whole[:, :5], axis=1, keepdims=True)
    np.testing.assert_allclose(found, whole[:, :5] / length, rtol=0, atol=1e-6)
    plain = automatic(with_prompts, prompt="", dimensions=5, normalize=False)
    found = plain.transform(WORDS)
    np.testing.assert_allclose(found, whole[:, :5], rtol=0, atol=1e-6)


def test_more_dimensions_than_there_are_name_the_width(with_prompts):
    with pytest.raises(ValueError, match=r"'dimensions' must be at most 16, .*got 17"):
        automatic(with_prompts, dimensions=17).transform(WORDS)


@pytest.mark.parametrize(
    "params", [{"prompt": "query"}, {"dimensions": 5}, {"prompt": "", "dimensions": 15}]
)
def test_the_cache_tells_prompts_and_dimensions_apart(with_prompts, tmp_path, params):
    where = {"cache": str(tmp_path / "cache"), "prompt": ""}
    first = automatic(with_prompts, **where).transform(WORDS)
    other = automatic(with_prompts, **{**where, **params})
    np.testing.assert_array_equal(
        other.transform(WORDS), other.set_params(cache=None).transform(WORDS)
    )
    again = automatic(with_prompts, **where, dimensions=16)
    np.testing.assert_array_equal(again.transform(WORDS), first)
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_a_name_and_its_text_share_the_features(with_prompts, counter, fresh_cache):
    for prompt in ("query", "the team "):
        features = automatic(with_prompts, prompt=prompt, cache="memory")
        features.transform(WORDS)
    assert counter.take() == len(set(WORDS))


@pytest.mark.cpu_only("only there worker processes encode")
def test_workers_put_the_prompt_first(with_prompts, parts_of_two, monkeypatch):
    features = automatic(with_prompts, prompt="query", dimensions=6)
    expected = features.transform(WORDS)

    def in_turn(function, parts, n_jobs):
        return ((i, function(*part)) for i, part in enumerate(parts))

    monkeypatch.setattr("skactive.features._encoding.spread", in_turn)
    found = clone(features).set_params(n_jobs=2).transform(WORDS)
    np.testing.assert_array_equal(found, expected)


def test_written_features_have_prompt_and_dimensions(with_prompts, tmp_path):
    features = automatic(with_prompts, prompt="query", dimensions=6)
    stored = features.transform_to(WORDS, tmp_path / "f", dtype="float32")
    np.testing.assert_allclose(
        stored.transform(WORDS), features.transform(WORDS), rtol=0, atol=1e-6
    )
    with pytest.raises(ValueError, match="prompt"):
        features.set_params(prompt="passage").transform_to(WORDS, tmp_path / "f")


@pytest.mark.parametrize("pooling", ["auto", "mean"])
@pytest.mark.parametrize("is_known", [True, False])
def test_a_bundle_knows_the_prompts(copy, tmp_path, pooling, is_known):
    if not is_known:
        path = tmp_path / "copy" / "modules.json"
        modules = json.loads(path.read_text())
        path.write_text(json.dumps([*modules, {**modules[-1], "type": "own.Layer"}]))
    features = automatic(copy, prompt="query", dimensions=6, pooling=pooling)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the layer, of the pooling
        expected = features.transform(WORDS)
        saved = save(features, tmp_path / "bundle", bundle=True)
        shutil.rmtree(copy)
        found = load(saved).transform(WORDS)
    np.testing.assert_array_equal(found, expected)


def test_copies_keep_prompt_and_dimensions(with_prompts):
    features = automatic(with_prompts, prompt="query", dimensions=6)
    expected = features.transform(WORDS)
    for each in (clone(features), pickle.loads(pickle.dumps(features))):
        np.testing.assert_array_equal(each.transform(WORDS), expected)
    model = make_text_classifier(
        with_prompts, adapt=False, prompt="query", dimensions=6
    )
    assert model[0].get_params()["prompt"] == "query"
    assert model[0].transform(WORDS).shape == (len(WORDS), 6)


def test_the_reader_counts_the_prompt(tiny_bert):
    words = "the film is a joy the team won the match"
    count = BertFeatures(tiny_bert, max_length=7).__skactive_reader__()
    assert words[: count(words)] == "the film is a joy"
    count = BertFeatures(tiny_bert, max_length=7, prompt="a a ").__skactive_reader__()
    assert words[: count(words)] == "the film is"
    count = BertFeatures(tiny_bert, max_length=7, prompt="a " * 9).__skactive_reader__()
    assert count(words) == 0
