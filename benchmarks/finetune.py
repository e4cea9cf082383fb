"""Fine-tune MiniLM: seconds against transformers' own loop, accuracy by frozen depth.

    SKACTIVE_DATA=.../data python benchmarks/finetune.py           # SST-2 and AG News
    SKACTIVE_DATA=.../data python benchmarks/finetune.py --parts tasks  # pairs, numbers
    python benchmarks/finetune.py --device cuda                    # wall times on a GPU
    python benchmarks/finetune.py --smoke                          # seconds, for CI

Speed: an epoch of `BertClassifier` against one of transformers' model in a plain loop:
batches padded to their longest text, AdamW in its fused form, frozen weights without
gradients and frozen layers in evaluation mode. Both sides have the same texts, order,
head, rates and clipping, and no dropout, so they have to reach the same losses: the
largest difference between those of a step is given with the ratio. The sides take
turns on one thread, or on `--threads`. Seconds are those of the processor, with those
on the wall behind them, or both of the wall; ratios are the median over the turns.
"share" is what the layers' products alone would take at the processor's peak, measured
here, by what the epoch takes. With freeze=5 the frozen bottom is kept from an earlier
fit, as from the second round of active learning on; "from nothing" is a whole fit that
begins with texts and computes the bottom first.

Accuracy: 1,000 labels, 3 epochs, on the dev set, mean and standard deviation (n - 1)
over the seeds. A seed draws the labeled texts, the head and the order.

Options:
    --labels 1000
    --epochs 3
    --seeds 3
    --freeze 0 2 -2 4 all
    --speed-texts 128
    --speed-freeze 5 0
    --data ag_news sst2
    --threads 1
    --repeats 3
    --tasks mrpc rte stsb
    --task-freeze VALUE
    --device auto
    --precision auto
    --parts {speed,accuracy,tasks}...
Smoke: --labels 40 --epochs 1 --seeds 1 --repeats 1 --speed-texts 16 --freeze 4 all
    --data docstrings
"""

import copy
import json
import math
import shutil
import tempfile
from functools import partial
from pathlib import Path

import _harness as harness
import numpy as np
import torch
from scipy.stats import spearmanr
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, f1_score
from skorch.callbacks import Callback
from transformers import AutoModel, AutoTokenizer, DataCollatorWithPadding

from skactive._encoders._module import choose_device
from skactive.bert import BertClassifier, BertRegressor, clear_cache
from skactive.bert._training import learning_rate
from skactive.datasets import load_docstrings

SETTINGS = {
    "pooling": "mean",
    "batch_size": 16,
    "lr": 5e-5,
    "head_lr": 1e-3,
    "schedule": "linear",
    "warmup": 0.1,
}
PAIR = ("text_a", "text_b")
LOSS_TOLERANCE = {"float32": 3e-5, "bfloat16": 1e-3}


def read(name, part, columns=("text",)):
    parts = [harness.read_part(name, part, text=column) for column in columns]
    texts = [list(X) for X, _ in parts]
    X = texts[0] if len(texts) == 1 else list(zip(*texts, strict=True))
    return np.array(X, dtype=object), np.asarray(parts[0][1])


def load(name, smoke):
    """Read texts and labels of the training part, then those to score on."""
    if smoke:
        X, y = load_docstrings(max_per_library=40, return_X_y=True)
        X, y = np.array(X, dtype=object), np.asarray(y)
        return X[:80], y[:80], X[80:], y[80:]
    parts = ("train", "dev") if name == "sst2" else ("train", "test")
    (X, y), (X_dev, y_dev) = (read(name, part) for part in parts)
    return X, y, X_dev, y_dev


def without_dropout(folder):
    """Copy a model with every dropout rate of its configuration at 0."""
    folder = Path(shutil.copytree(harness.minilm(), folder))
    config = json.loads((folder / "config.json").read_text())
    config |= {name: 0.0 for name in config if "dropout" in name and config[name]}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


class Order(torch.utils.data.Sampler):
    """Another order in each epoch, the same for both sides."""

    def __init__(self, n):
        self.n, self.epoch = n, 0

    def __len__(self):
        return self.n

    def __iter__(self):
        self.epoch += 1
        return iter(np.random.default_rng(self.epoch).permutation(self.n).tolist())


class Watch(Callback):
    """Note the head at the start, the loss of each step, the clocks of each epoch."""

    def __init__(self, notes):
        self.notes = notes

    def __deepcopy__(self, memo):
        return Watch(self.notes)

    def on_train_begin(self, net, **kwargs):
        self.notes.update(head=copy.deepcopy(net.module_.head.dense[0]))
        self.notes.update(losses=[], clocks=[])

    def on_epoch_begin(self, net, **kwargs):
        self.notes["clocks"].append(harness.clocks())

    def on_batch_end(self, net, training, loss, **kwargs):
        self.notes["losses"].append(loss.item())

    def on_epoch_end(self, net, **kwargs):
        self.notes["clocks"].append(harness.clocks())


def train_skactive(model, X, y, freeze, precision, epochs, device):
    """Train; give (wall, CPU) seconds of an epoch, of the fit, and the notes."""
    notes = {}
    classifier = BertClassifier(
        model,
        freeze=freeze,
        dropout=0.0,
        max_epochs=epochs,
        precision=precision,
        random_state=0,
        device=str(device),
        net_params={
            "iterator_train__shuffle": False,
            "iterator_train__sampler": Order(len(X)),
        },
        callbacks=[Watch(notes)],
        **SETTINGS,
    )
    _, whole = harness.timed(classifier.fit, X, y)
    passed = np.array(notes["clocks"]).reshape(epochs, 2, 2)  # epoch, begin/end, clock
    return np.median(passed[:, 1] - passed[:, 0], axis=0), whole, notes


def train_transformers(model, X, y, freeze, head, epochs, device):
    """Train as :func:`train_skactive` does, with transformers alone."""
    encoder = AutoModel.from_pretrained(model).to(device)
    encoder.pooler = None
    head = copy.deepcopy(head).to(device)
    tokenizer = AutoTokenizer.from_pretrained(model)
    collator = DataCollatorWithPadding(tokenizer)
    encoder.train()
    if freeze:
        for part in (encoder.embeddings, *encoder.encoder.layer[:freeze]):
            part.requires_grad_(False).eval()
    trained = [p for p in encoder.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(
        [
            {"params": trained, "lr": SETTINGS["lr"]},
            {"params": head.parameters(), "lr": SETTINGS["head_lr"]},
        ],
        weight_decay=0.0,
        fused=True,
    )
    batch_size = SETTINGS["batch_size"]
    n_steps = epochs * -(-len(X) // batch_size)
    factor = partial(
        learning_rate,
        schedule=SETTINGS["schedule"],
        power=1.0,
        n_steps=n_steps,
        n_warmup=math.ceil(SETTINGS["warmup"] * n_steps),
    )
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    order, losses, seconds = Order(len(X)), [], []
    start = harness.clocks()
    tokens = tokenizer(list(X), truncation=True, max_length=128)["input_ids"]
    codes = torch.from_numpy(np.unique(y, return_inverse=True)[1]).to(device)
    for _ in range(epochs):
        begun = harness.clocks()
        positions = list(order)
        for first in range(0, len(X), batch_size):
            chosen = positions[first : first + batch_size]
            batch = collator([{"input_ids": tokens[i]} for i in chosen]).to(device)
            states = encoder(**batch).last_hidden_state
            mask = batch["attention_mask"].unsqueeze(-1)
            pooled = (states * mask).sum(dim=1) / mask.sum(dim=1)
            loss = torch.nn.functional.cross_entropy(head(pooled), codes[chosen])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_([*trained, *head.parameters()], 1.0)
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        seconds.append(np.subtract(harness.clocks(), begun))
    return np.median(seconds, axis=0), np.subtract(harness.clocks(), start), losses


def speed(name, X, y, args):
    """Print a row for each frozen depth and precision, vs. transformers."""
    peaks = {
        precision: harness.measure_peak(getattr(torch, precision), args.device)
        for precision in ("float32", "bfloat16")
    }
    print(f"\n{name}, {len(X):,} texts, {args.device}, ", end="")
    print(f"{args.threads} thread(s), {args.repeats} turns of 3 epochs")
    print("peak:", *(f"{k} {v / 1e9:.0f} GFLOP/s" for k, v in peaks.items()))
    head = "freeze|precision|s/epoch (wall)|transformers|ratio (wall)|from nothing"
    harness.print_rows(f"{head}|loss difference|share", list_speeds(X, y, peaks, args))


def list_speeds(X, y, peaks, args):
    """Yield the rows of the table; stop at the end if the losses differ."""
    differ = False
    # A processor may wait for a GPU, or for other threads.
    clock = 0 if args.device.type != "cpu" or args.threads > 1 else 1
    with tempfile.TemporaryDirectory() as folder:
        model = without_dropout(Path(folder) / "model")
        tokens = AutoTokenizer.from_pretrained(model)(
            list(X), truncation=True, max_length=128
        )
        n_tokens = sum(map(len, tokens["input_ids"]))
        for freeze in args.speed_freeze:
            depths = 6 - freeze  # 2 passes back for 1 forth
            operations = n_tokens * 21.7e6 / 6 * 3 * depths
            turns = {precision: [] for precision in peaks}
            ours = partial(
                train_skactive, model, X, y, freeze, epochs=3, device=args.device
            )
            head = ours("float32")[2]["head"]
            for _ in range(args.repeats):
                theirs = train_transformers(model, X, y, freeze, head, 3, args.device)
                for precision, found in turns.items():
                    clear_cache()
                    fresh = ours(precision)
                    kept = ours(precision)
                    difference = np.abs(np.subtract(kept[2]["losses"], theirs[2]))
                    found.append(
                        (kept[0], theirs[0], fresh[1], theirs[1], difference.max())
                    )
            for precision, found in turns.items():
                mine, others, whole, whole_others, difference = map(
                    np.array, zip(*found, strict=True)
                )
                wall, used = (np.median(others / mine, axis=0)[i] for i in (0, clock))
                fresh = np.median(whole_others[:, clock] / whole[:, clock])
                seconds = np.median(mine, axis=0)
                share = operations / peaks[precision] / seconds[clock]
                yield (
                    f"{freeze}|{precision}|{seconds[clock]:.2f} ({seconds[0]:.2f})|"
                    f"{np.median(others[:, clock]):.2f}|{used:.2f}x ({wall:.2f}x)|"
                    f"{fresh:.2f}x|{difference.max():.1e}|{share:.0%}"
                )
                differ |= difference.max() > LOSS_TOLERANCE[precision]
    if differ:
        raise SystemExit("the losses differ")


def make(cls, args, freeze, seed):
    """Return the estimator of the accuracies and of the tasks."""
    return cls(
        harness.minilm(),
        freeze=freeze,
        max_epochs=args.epochs,
        random_state=seed,
        device=str(args.device),
        precision=args.precision,
        **SETTINGS,
    )


def list_accuracies(X, y, X_dev, y_dev, args):
    """Yield a row for each frozen depth."""
    for freeze in args.freeze:
        scores, seconds = [], []
        for seed in range(args.seeds):
            rng = np.random.default_rng(seed)
            chosen = rng.permutation(len(X))[: args.labels]
            clear_cache()
            classifier = make(BertClassifier, args, freeze, seed)
            seconds.append(harness.timed(classifier.fit, X[chosen], y[chosen])[1][0])
            scores.append(classifier.score(X_dev, y_dev))
        yield f"{freeze}|{harness.mean_std(scores)}|{np.mean(seconds):.1f}"


def list_tasks(args):
    """Yield rows of pairs and regression through the same class."""
    classification = {
        "mrpc": {"F1": f1_score, "accuracy": accuracy_score},
        "rte": {"accuracy": accuracy_score},
    }
    for name in args.tasks:
        (X, y), (X_dev, y_dev) = (read(name, part, PAIR) for part in ("train", "dev"))
        if name == "stsb":
            regressor = make(BertRegressor, args, args.task_freeze, 0).fit(X, y)
            rho = spearmanr(y_dev, regressor.predict(X_dev)).statistic
            yield f"stsb|Spearman|0.000|{rho:.3f}"
            continue
        guess = DummyClassifier().fit(X, y).predict(X_dev)
        classifier = make(BertClassifier, args, args.task_freeze, 0)
        predicted = classifier.fit(X, y).predict(X_dev)
        for metric, score in classification[name].items():
            trivial, tuned = score(y_dev, guess), score(y_dev, predicted)
            yield f"{name}|{metric}|{trivial:.3f}|{tuned:.3f}"


def main():
    args = harness.parse(__doc__, parts=["speed", "accuracy"], task_freeze=0)
    args.device = choose_device(args.device)
    if "speed" in args.parts:
        n_threads = torch.get_num_threads()
        torch.set_num_threads(args.threads)
        for name in args.data:
            X, y = load(name, args.smoke)[:2]
            rows = np.random.default_rng(0).permutation(len(X))[: args.speed_texts]
            speed(name, X[rows], y[rows], args)
        torch.set_num_threads(n_threads)
    if "accuracy" in args.parts:
        X, y, X_dev, y_dev = load("sst2", args.smoke)
        print(f"\naccuracy on {len(X_dev):,} texts of dev, {args.labels:,} labels")
        rows = list_accuracies(X, y, X_dev, y_dev, args)
        harness.print_rows("freeze|accuracy|training s", rows)
    if "tasks" in args.parts:
        print()
        harness.print_rows("task|metric|trivial|fine-tuned", list_tasks(args))


if __name__ == "__main__":
    main()
