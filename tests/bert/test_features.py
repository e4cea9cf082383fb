import copy
import inspect
import os
import pickle
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from transformers import AutoModel, AutoTokenizer

from skactive.bert import BertFeatures

from ..conftest import TEXTS, save_encoder, save_tokenizer

PAIRS = [
    ("the film is", "a joy"),
    ("no", "the team won the match"),
    ("", "a"),
    ("a", ""),
]


@pytest.fixture
def exact(tiny_bert):
    return BertFeatures(tiny_bert, precision="float32", cache=None)


def plain(folder, texts, pooling="mean", layers=(-1,), max_length=64):
    """One text at a time, no batch and no padding: what the features should be."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
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


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("layers", [-1, 0, 2, (-4 + 1, 0, -1), [1]])
def test_equals_a_plain_forward(tiny_bert, exact, pooling, layers):
    exact.set_params(pooling=pooling, layers=layers)
    several = (layers,) if isinstance(layers, int) else layers
    expected = plain(tiny_bert, TEXTS, pooling, several)
    np.testing.assert_allclose(exact.transform(TEXTS), expected, atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("texts", [TEXTS, PAIRS], ids=["texts", "pairs"])
@pytest.mark.parametrize("kind", ["Roberta", "DistilBert", "Electra", "MPNet"])
def test_equals_a_plain_forward_for_other_encoders(tmp_path, kind, texts, pooling):
    overrides = {"embedding_size": 8} if kind == "Electra" else {}
    if kind in ("Roberta", "MPNet"):
        overrides["type_vocab_size"] = 2
    folder = save_encoder(tmp_path, kind, **overrides)
    got = BertFeatures(
        folder, pooling=pooling, precision="float32", cache=None
    ).transform(texts)
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
    monkeypatch.setattr("skactive.bert.batches._PART_TEXTS", 3)
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
    # With the special tokens the seven different texts have 7, 7, 7, 2, 17, 18 and 3.
    message = "5 of the 7 texts encoded have more than 6 tokens"
    with pytest.warns(UserWarning, match=message) as w:
        got = exact.transform(TEXTS)
    assert len(w) == 1
    assert w[0].filename == __file__
    np.testing.assert_allclose(got, plain(tiny_bert, TEXTS, max_length=6), atol=1e-5)


def test_no_warning_where_nothing_is_cut(exact):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exact.transform(TEXTS)


@pytest.mark.parametrize("kind", ["Bert", "Roberta", "MPNet"])
def test_max_length_never_exceeds_the_positions(tmp_path, kind):
    # 20 rows of position embeddings; RoBERTa's first one belongs to padding.
    folder = save_encoder(tmp_path, kind, max_position_embeddings=20)
    save_tokenizer(tmp_path, model_max_length=10**30)
    n = 20 if kind == "Bert" else 19
    if kind == "MPNet":
        n = 18  # counts from padding index 1 whatever its configuration says
    features = BertFeatures(folder, max_length=512, precision="float32", cache=None)
    with pytest.warns(UserWarning, match=f"more than {n} tokens.*model takes {n}"):
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


# Bad input ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ("one text", TypeError, r"single str\. Wrap it in a list: \[X\]"),
        (["a", None, "b", float("nan")], TypeError, r"1 \(NoneType\), 3 \(float\)"),
        ([], ValueError, "holds no texts"),
        (np.array([["a"], ["b"]], dtype=object), ValueError, r"shape \(2, 1\)"),
        (np.array([["a", "b", "c"]]), ValueError, r"shape \(1, 3\)"),
        ([1, 2], TypeError, r"0 \(int\), 1 \(int\)"),
        ([("a", None)], TypeError, "a pair of str"),
        ({"a": 1}, TypeError, "got dict"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "transform", "fit_transform"])
def test_refuses_what_is_no_texts(exact, method, X, error, message):
    with pytest.raises(error, match=message):
        getattr(exact, method)(X)


def test_refuses_broken_unicode_with_its_position(exact):
    with pytest.raises(ValueError, match=r"'X'.*surrogates.* positions: 1, 3"):
        exact.transform(["fine", "\ud800", "fine too", "a\udfff"])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"layers": 4}, r"'layers' must be .* in \[-3, 3\], got 4.* has 3 layers"),
        ({"layers": (-4, -1)}, r"got \(-4, -1\)"),
        ({"layers": ()}, r"got \(\)"),
        ({"layers": [1.5]}, r"got \[1\.5\]"),
        ({"layers": "last"}, "got 'last'"),
        ({"layers": None}, "'layers' parameter"),
        ({"pooling": "average"}, "'pooling' parameter"),
        ({"max_length": 0}, "'max_length' parameter"),
        ({"batch_tokens": 0}, "'batch_tokens' parameter"),
        ({"precision": "float16"}, "'precision' parameter"),
        ({"cache": 3}, "'cache' parameter"),
        ({"model": None}, "'model' parameter"),
        ({"device": "gpu"}, "'device' must be 'auto' or a device of torch.*'gpu'"),
    ],
)
def test_refuses_bad_parameters(exact, params, message):
    with pytest.raises(ValueError, match=message):
        exact.set_params(**params).transform(TEXTS)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_refuses_cuda_where_there_is_none(exact):
    with pytest.raises(ValueError, match=r"'device'.*got 'cuda'.*no cuda.*'cpu'"):
        exact.set_params(device="cuda").transform(TEXTS)


def test_refuses_a_folder_that_does_not_exist(tmp_path):
    missing = str(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=f"'model'.*{missing}.*does not exist"):
        BertFeatures(missing).transform(TEXTS)


def test_refuses_a_file_as_model(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"'model'.*is a file"):
        BertFeatures(path).transform(TEXTS)


def test_refuses_a_folder_without_model(tmp_path):
    with pytest.raises(ValueError, match=r"'model'.*no config\.json"):
        BertFeatures(str(tmp_path)).transform(TEXTS)


def test_refuses_a_folder_without_tokenizer(tmp_path):
    save_encoder(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).unlink()
    with pytest.raises(ValueError, match=r"tokenizer cannot be loaded") as info:
        BertFeatures(str(tmp_path)).transform(TEXTS)
    assert info.value.__cause__ is not None


def test_refuses_a_folder_without_weights(tmp_path):
    save_encoder(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="'model' must hold weights"):
        BertFeatures(str(tmp_path)).transform(TEXTS)


def test_refuses_damaged_weights(tmp_path):
    save_encoder(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"'model'.*weights cannot be loaded"):
        BertFeatures(str(tmp_path), cache=None).transform(TEXTS)


def test_warns_of_weights_that_are_not_there(tmp_path):
    from safetensors.torch import load_file, save_file

    save_encoder(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, path, metadata={"format": "pt"})
    with pytest.warns(UserWarning, match="lack 1 of the encoder's parameters"):
        BertFeatures(str(tmp_path), cache=None).transform(TEXTS)


def test_hub_out_of_reach_says_pass_a_local_folder(tmp_path):
    script = (
        "from skactive.bert import BertFeatures\n"
        "try: BertFeatures('nobody/no-such-model', revision='v1').transform(['a'])\n"
        "except ValueError as exc: print(exc, type(exc.__cause__).__name__)\n"
    )
    out = run_python(script, HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path))
    assert "'model' must be a local folder or a name on the hub" in out.stdout
    assert "'nobody/no-such-model' at revision 'v1'" in out.stdout
    assert "pass a local folder" in out.stdout
    assert out.stdout.strip().endswith("OSError")


def test_model_by_name_from_the_hub_cache(tmp_path, tiny_bert, exact):
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "hub" / "models--someone--tiny"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    (repository / "snapshots").mkdir()
    (repository / "snapshots" / commit).symlink_to(tiny_bert)
    script = (
        "from skactive.bert import BertFeatures\n"
        "import numpy as np, sys\n"
        "b = BertFeatures('someone/tiny', precision='float32')\n"
        "np.save(sys.argv[1], b.transform(['the film is a joy']))\n"
    )
    target = tmp_path / "out.npy"
    out = run_python(script, target, HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path))
    assert out.returncode == 0, out.stderr
    assert out.stderr == ""
    np.testing.assert_allclose(
        np.load(target), exact.transform(["the film is a joy"]), atol=1e-5
    )


def run_python(script, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


# Quiet, and leaving everything else alone --------------------------------------------


def test_silent_by_default(tmp_path, capfd):
    folder = save_encoder(tmp_path)
    capfd.readouterr()
    BertFeatures(folder, cache=None).transform(TEXTS)
    assert capfd.readouterr() == ("", "")


def test_load_restores_the_verbosity_of_transformers(tmp_path):
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_info()
    try:
        BertFeatures(save_encoder(tmp_path), cache=None).transform(TEXTS)
        assert logging.get_verbosity() == logging.INFO
        assert logging.is_progress_bar_enabled() == before[1]
    finally:
        logging.set_verbosity(before[0])


def test_progress_on_stderr_when_verbose(exact, capfd):
    exact.set_params(verbose=1).transform(TEXTS)
    out, err = capfd.readouterr()
    assert out == ""
    assert "7/7" in err
    assert "text/s" in err


def test_no_global_state_moves(tmp_path):
    # A checkpoint without pooler: transformers draws one at random on loading.
    folder = save_encoder(tmp_path)
    np.random.seed(3)  # noqa: NPY002
    torch.manual_seed(3)
    numpy_before = np.random.get_state()[1].copy()  # noqa: NPY002
    torch_before = torch.get_rng_state()
    threads, grad = torch.get_num_threads(), torch.is_grad_enabled()
    environment = dict(os.environ)
    BertFeatures(folder, cache=None).fit(TEXTS).transform(TEXTS)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), torch_before)
    assert (torch.get_num_threads(), torch.is_grad_enabled()) == (threads, grad)
    assert not torch.is_inference_mode_enabled()
    assert dict(os.environ) == environment


def test_random_pooler_does_not_move_the_generator(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = save_encoder(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = {k: v for k, v in load_file(path).items() if "pooler" not in k}
    save_file(tensors, path, metadata={"format": "pt"})
    before = torch.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BertFeatures(folder, cache=None).transform(TEXTS)
    assert torch.equal(torch.get_rng_state(), before)


def test_constructing_cloning_and_unpickling_import_no_torch(tiny_bert):
    script = (
        "import pickle, sys\n"
        "from sklearn.base import clone\n"
        "from skactive.bert import BertFeatures\n"
        "b = pickle.loads(pickle.dumps(clone(BertFeatures('a/b'))))\n"
        "repr(b)\n"
        "print('torch' in sys.modules, 'transformers' in sys.modules)\n"
    )
    assert run_python(script).stdout.split() == ["False", "False"]


# scikit-learn ------------------------------------------------------------------------


def test_fit_returns_self_and_learns_nothing(exact):
    before = dict(vars(exact))
    assert exact.fit(TEXTS) is exact
    assert vars(exact) == before


def test_tags(exact):
    tags = get_tags(exact)
    assert not tags.requires_fit
    assert tags.input_tags.string
    assert tags.input_tags.one_d_array
    assert not tags.input_tags.two_d_array
    assert tags.transformer_tags.preserves_dtype == []


@pytest.mark.parametrize(
    "copier", [clone, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))]
)
def test_copies_keep_parameters_and_no_weights(tiny_bert, copier):
    features = BertFeatures(tiny_bert, layers=(-2, -1), cache="memory")
    result = features.transform(TEXTS)
    copied = copier(features)
    assert copied.get_params() == features.get_params()
    assert len(pickle.dumps(copied)) < 1000 + len(tiny_bert)
    np.testing.assert_array_equal(copied.transform(TEXTS), result)


def test_feature_names(exact):
    names = exact.get_feature_names_out()
    assert list(names) == [f"bertfeatures{i}" for i in range(16)]
    assert len(exact.set_params(layers=(0, -1)).get_feature_names_out()) == 32


@pytest.mark.parametrize("cache", ["memory", None])
def test_set_output_pandas(exact, cache):
    pd = pytest.importorskip("pandas")
    expected = exact.set_params(cache=cache).transform(TEXTS)
    series = pd.Series(TEXTS, index=list("abcdefgh"))
    frame = exact.set_output(transform="pandas").transform(series)
    assert list(frame.index) == list("abcdefgh")
    assert frame.columns[0] == "bertfeatures0"
    assert frame.dtypes.unique().tolist() == [np.dtype("float32")]
    np.testing.assert_array_equal(frame.to_numpy(), expected)


def test_writing_into_a_data_frame_does_not_reach_the_cache(tiny_bert):
    pytest.importorskip("pandas")
    features = BertFeatures(tiny_bert).set_output(transform="pandas")
    expected = features.transform(TEXTS).to_numpy().copy()
    frame = features.transform(TEXTS)
    try:
        frame.iloc[0, 0] = 99.0
    except ValueError as exc:
        assert "read-only" in str(exc)  # noqa: PT017
    np.testing.assert_array_equal(features.transform(TEXTS).to_numpy(), expected)


def test_set_output_polars(exact):
    pl = pytest.importorskip("polars")
    expected = exact.transform(TEXTS)
    frame = exact.set_output(transform="polars").transform(pl.Series(TEXTS))
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns[-1] == "bertfeatures15"
    np.testing.assert_array_equal(frame.to_numpy(), expected)


def test_grid_search_gives_the_same_for_every_n_jobs(tiny_bert):
    X = [f"{text} {i}" for i in range(4) for text in TEXTS]
    y = ["film" if "film" in text else "other" for text in X]
    pipeline = make_pipeline(
        BertFeatures(tiny_bert, precision="float32"), LogisticRegression()
    )
    grid = {"bertfeatures__pooling": ["mean", "cls"], "logisticregression__C": [1, 10]}
    scores = []
    for n_jobs in (1, 2):
        search = GridSearchCV(pipeline, grid, cv=2, n_jobs=n_jobs).fit(X, y)
        scores.append(search.cv_results_["mean_test_score"])
        assert search.predict(X[:3]).shape == (3,)
    np.testing.assert_array_equal(scores[0], scores[1])


def test_threads_get_what_one_thread_gets(tiny_bert):
    pools = [
        [f"{text} {i}" for text in TEXTS for i in range(j, j + 9)] for j in range(8)
    ]
    one = BertFeatures(tiny_bert, precision="float32", cache=None)
    expected = [one.transform(pool) for pool in pools]
    several = clone(one).set_params(cache="memory")
    got = joblib.Parallel(n_jobs=4, backend="threading")(
        joblib.delayed(several.transform)(pool) for pool in pools
    )
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_retraining_into_the_same_folder_is_noticed(tmp_path):
    folder = save_encoder(tmp_path)
    features = BertFeatures(folder)
    before = features.transform(TEXTS)
    save_encoder(tmp_path, initializer_range=0.3)
    assert not np.allclose(features.transform(TEXTS), before)


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


@pytest.mark.weights
def test_bfloat16_is_near_float32_on_real_weights(minilm):
    params = {"max_length": 256, "normalize": True, "cache": None}
    exact = BertFeatures(minilm, precision="float32", **params).transform(SENTENCES)
    half = BertFeatures(minilm, precision="bfloat16", **params).transform(SENTENCES)
    assert (exact * half).sum(axis=1).min() >= 0.999
