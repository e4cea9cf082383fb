"""Training and encoding on a GPU: no step waits for it, and nothing mixes devices.

These tests need no GPU. They count on the processor what would wait for one, on the
padded batches that a GPU gets. A step on torch's device "meta", which has no numbers,
fails where one is read, and where tensors of two devices meet.
"""

from collections import Counter
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback
from torch.utils._python_dispatch import TorchDispatchMode

from skactive._encoders._encoder import PackedEncoder
from skactive._encoders._module import encode, forward
from skactive._encoders._pretrained import open_checkpoint
from skactive._encoders._tokens import collate, send, tokenize
from skactive._utils import _repeatable
from skactive._utils._repeatable import in_torch_threads
from skactive.bert import AdaptedFeatures, BertClassifier, BertFeatures, BertRegressor
from skactive.bert import _training as training
from skactive.bert._contrast import LOSSES
from skactive.bert._network import TextNetwork

from ._helpers import network, slow

pytestmark = [pytest.mark.usefixtures("fresh_cache"), pytest.mark.long]

# Every batch of four has texts of different lengths, so it has a mask.
TEXTS = [" ".join(["the film", "a joy", str(i)][: 1 + i % 3]) for i in range(32)]
LABELS = ["good" if i % 4 < 2 else "bad" for i in range(32)]

# Operations that read a number on the device, or a size that follows from numbers.
READS = ("_local_scalar_dense", "is_nonzero", "nonzero", "masked_select", "_unique2")


class Waits(TorchDispatchMode):
    """Count the operations in the block that would wait for a GPU."""

    def __init__(self):
        super().__init__()
        self.found = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.name().partition("::")[2].partition(".")[0]
        indices = args[1] if name in ("index", "index_put", "index_put_") else ()
        if name in READS or any(
            index is not None and index.dtype == torch.bool for index in indices
        ):
            self.found[name] += 1
        return function(*args, **(kwargs or {}))


@pytest.fixture
def padded(monkeypatch, set_threads):
    """Pad batches on the processor, as on a GPU; in one thread, which is watched."""
    set_threads(1)
    monkeypatch.setattr(PackedEncoder, "supports", staticmethod(lambda encoder: False))


def count_waits(work):
    with Waits() as waits:
        work()
    return waits.found


def fit(model, n_texts):
    return lambda: model.fit(TEXTS[:n_texts], LABELS[:n_texts])


def quick(make, folder, **params):
    return make(folder, device="cpu", batch_size=4, random_state=0, **params)


# What is counted ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.sum().item(),
        lambda x: float(x[0]),
        lambda x: bool(x.all()),
        lambda x: x.nonzero(),
        lambda x: x[x > 0],
        lambda x: x.masked_select(x > 0),
        lambda x: x.unique(),
        lambda x: x.clone().__setitem__(x > 0, 1.0),
    ],
)
def test_what_waits_is_counted(read):
    x = torch.ones(3)
    assert count_waits(lambda: read(x)).total() == 1


def test_what_does_not_wait_is_not_counted():
    x, rows = torch.ones(3, 2), torch.tensor([0, 2])
    assert not count_waits(lambda: x[rows].masked_fill(x[rows] > 0, 2.0) @ x.T)


# Whole fits --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"freeze": 1, "head": "mlp"},
        {"freeze": "all", "pooling": "last"},
        {"precision": "bfloat16", "early_stopping": True, "pooling": "max"},
        {"schedule": "linear", "warmup": 0.5, "layers": [1, 2], "pooling": "mean"},
    ],
)
@pytest.mark.parametrize("kind", ["Bert", slow("Roberta"), slow("Electra")])
def test_more_steps_of_training_wait_no_more(tiny_encoder, padded, kind, params):
    model = quick(BertClassifier, tiny_encoder(kind), max_epochs=1, **params)
    assert count_waits(fit(model, 32)) == count_waits(fit(model, 16))


def test_more_steps_of_regression_wait_no_more(tiny_bert, padded):
    model = quick(BertRegressor, tiny_bert, max_epochs=1)
    numbers = np.arange(32.0)
    few, many = (
        count_waits(lambda n=n: model.fit(TEXTS[:n], numbers[:n])) for n in (16, 32)
    )
    assert few == many


@pytest.mark.parametrize("loss", LOSSES)
def test_more_steps_of_adaptation_wait_no_more(tiny_bert, padded, loss):
    few, many = (
        quick(AdaptedFeatures, tiny_bert, loss=loss, cache=None, n_steps=n)
        for n in (2, 6)
    )
    assert count_waits(fit(many, 16)) == count_waits(fit(few, 16))


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "last"])
def test_encoding_waits_for_no_number(tiny_bert, padded, pooling):
    features = BertFeatures(
        tiny_bert, device="cpu", cache=None, batch_tokens=20, pooling=pooling
    )
    assert not count_waits(lambda: features.transform(TEXTS))


def test_the_masks_that_wait_for_nothing_give_the_same_states(tiny_bert):
    checkpoint = open_checkpoint(tiny_bert)
    module = checkpoint.module(torch.device("cpu"), torch.float32)
    batch = collate(tokenize(checkpoint, TEXTS[:3], 16), [0, 1, 2], 0, "cpu")
    assert "attention_mask" in batch
    with torch.inference_mode():
        expected = module(**batch).last_hidden_state
        got = forward(module, batch).last_hidden_state
    real = batch["attention_mask"].bool()
    torch.testing.assert_close(got[real], expected[real])


# A step on a device without numbers ---------------------------------------------------


def make_batch(folder):
    checkpoint = open_checkpoint(folder)
    tokens = tokenize(checkpoint, TEXTS[:4], 16)
    return collate(tokens, range(4), checkpoint.pad_id, "meta")


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"pooling": "mean", "freeze": 1, "head": "mlp"},
        {"pooling": "max", "layers": (0, 3)},
        {"pooling": "last", "freeze": -1},
    ],
)
def test_a_step_reads_nothing_and_stays_on_its_device(tiny_bert, monkeypatch, settings):
    # torch has no autocast for this device.
    monkeypatch.setattr(TextNetwork, "_autocast", lambda self: nullcontext())
    net = network(tiny_bert, **settings).to("meta").train()
    trained = [p for p in net.parameters() if p.requires_grad]
    optimizer = training.adamw([{"params": trained}], lr=1e-3)
    outputs = net(**make_batch(tiny_bert))
    torch.nn.functional.cross_entropy(outputs, outputs.new_zeros(4).long()).backward()
    torch.nn.utils.clip_grad_norm_(trained, 1.0)
    optimizer.step()
    assert {p.grad.device.type for p in trained} == {"meta"}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_of_pairs_stays_on_its_device(loss):
    rows = torch.ones(4, 3, device="meta", requires_grad=True)
    LOSSES[loss]()(rows, torch.ones(4, 3, device="meta")).backward()
    assert rows.grad.device.type == "meta"


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "last"])
def test_encoding_stays_on_its_device(tiny_bert, pooling):
    checkpoint = open_checkpoint(tiny_bert)
    module = checkpoint.module(torch.device("cpu"), torch.float32)
    module = type(module)(module.config).eval().to("meta")
    settings = {"layers": (0, 3), "pooling": (pooling, "cls"), "normalize": True}
    rows = encode(module, make_batch(tiny_bert), **settings)
    assert rows.device.type == "meta"
    assert rows.shape == (4, 4 * 16)


# Copies ------------------------------------------------------------------------------


@pytest.fixture
def copies(monkeypatch):
    """Replace the calls of a GPU, and return a list of those that were made."""
    asked = []

    class Event:
        def record(self, stream):
            asked.append(f"record on {stream}")

        def synchronize(self):
            asked.append("wait")

    def pin(tensor):
        asked.append("pin")
        return tensor

    def move(tensor, device, non_blocking=False):
        asked.append((str(device), non_blocking))
        return tensor

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    monkeypatch.setattr(torch.Tensor, "to", move)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(
        torch.cuda, "current_stream", lambda device: f"that of {device}"
    )
    return asked


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("cpu", [("cpu", False)]),
        ("mps", [("mps", False)]),
        ("cuda:1", ["pin", ("cuda:1", True)]),
    ],
)
def test_a_gpu_copies_from_pinned_memory_in_its_turn(copies, device, expected):
    array = np.arange(3)
    np.testing.assert_array_equal(send(array, device), array)
    assert copies == expected


def test_results_come_back_in_their_turn(copies):
    def run(task):
        return task, torch.tensor([task]), None

    first, second = in_torch_threads(run, [3, 4], torch.device("cuda:1"))
    begun = [("cpu", True), "record on that of cuda:1"]
    assert copies == [*begun, *begun, "wait", "wait"]
    assert [int(first[1]), int(second[1])] == [first[0], second[0]] == [3, 4]


# What is read later ------------------------------------------------------------------


class Losses(Callback):
    """Note the losses of the steps, as they are in the history and as they are."""

    def __init__(self, seen):
        self.seen = seen

    def __deepcopy__(self, memo):
        return type(self)(self.seen)

    def on_batch_end(self, net, loss=None, training=False, **kwargs):
        name = "train_loss" if training else "valid_loss"
        self.seen.append((name, loss.item(), net.history[-1, "batches", -1, name]))


def test_the_history_has_the_losses_of_all_steps_after_an_epoch(tiny_bert):
    seen = []
    model = quick(BertClassifier, tiny_bert, max_epochs=2, early_stopping=True)
    model.set_params(callbacks=[Losses(seen)]).fit(TEXTS, LABELS)
    history = model.net_.history
    for name in ("train_loss", "valid_loss"):
        kept = [history[i, "batches", :, name] for i in range(2)]
        kept = [loss for losses in kept for loss in losses]
        assert all(type(loss) is float for loss in kept)
        assert kept == [loss for which, loss, _ in seen if which == name]
    assert all(isinstance(then, torch.Tensor) for *_, then in seen)


class Bar:
    """A bar that is drawn at every third step."""

    def __init__(self, **settings):
        self.n, self.shown = 0, []

    def update(self):
        self.n += 1
        return self.n % 3 == 0

    def set_postfix(self, loss, refresh):
        self.shown.append(loss)

    def close(self):
        pass


def test_the_bar_reads_the_loss_where_it_was_drawn(tiny_bert, monkeypatch):
    bar, seen = Bar(), []
    monkeypatch.setattr(training, "progress_bar", lambda verbose, **settings: bar)
    model = quick(BertClassifier, tiny_bert, max_epochs=1, callbacks=[Losses(seen)])
    model.fit(TEXTS, LABELS)
    assert bar.n == 8
    assert bar.shown == [f"{seen[i][1]:.3f}" for i in (2, 5)]


def test_a_result_is_waited_for_after_the_next_was_begun(monkeypatch):
    done = []

    def copy_back(device, result):
        done.append(f"copy {result[0]}")
        return lambda: done.append(f"wait {result[0]}") or result

    def prepare():
        for i in range(3):
            done.append(f"prepare {i}")
            yield i

    def run(i):
        done.append(f"begin {i}")
        return i, i**2

    monkeypatch.setattr(_repeatable, "_copy_back", copy_back)
    results = in_torch_threads(run, prepare(), torch.device("cuda"))
    assert list(results) == [(0, 0), (1, 1), (2, 4)]
    assert done == [
        *("prepare 0", "begin 0", "copy 0"),
        *("prepare 1", "begin 1", "copy 1", "wait 0"),
        *("prepare 2", "begin 2", "copy 2", "wait 1"),
        "wait 2",
    ]


def test_no_task_gives_no_result():
    assert not list(in_torch_threads(abs, [], torch.device("cuda")))
