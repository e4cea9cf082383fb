"""One script for a GPU: encoding, training, adaptation and a loop, beside their peers.

    python benchmarks/gpu.py --out gpu-results     # less than 8 minutes, offline
    python benchmarks/gpu.py --parts train --models bert --precisions bfloat16
    python benchmarks/gpu.py --parts compile       # torch.compile and CUDA graphs
    python benchmarks/gpu.py --smoke               # on the processor, for CI

Every part prints its table as soon as it is ready, and adds its records (gpu.jsonl) and
its table (gpu.md) to the folder of --out. No part begins a row after --seconds: what is
left out is named. Texts are docstrings, cut at --max-length tokens. MiniLM has its own
weights; `bert` and `modernbert` have the sizes of BERT-base and of ModernBERT-base and
random weights. Times are those of the wall, with the device waited for at both ends;
the sides take turns, and the fastest turn counts. "share" is what the products of real
tokens would take at the peak, by what was taken. The peak is that of a large product in
the same precision, measured first. Nothing else may use the device.

peak       large products in float32, TF32 and bfloat16
attention  a layer's attention, forward and backward: padded with a mask, as nested
           tensors, and as FlashAttention over texts end to end (`varlen_attn`)
adapt      a fit of `AdaptedFeatures`, of a plain loop with the same batches and loss,
           and of SetFit where it is installed
prepal     rounds of an `ActiveLearner` that trains MiniLM and asks by entropy
train      the steps of `BertClassifier`, of a plain loop over transformers and, where
           accelerate is installed, of its Trainer, without what comes before; what
           waited for the device in them; the kernels and the Python functions that
           took longest
encode     `BertFeatures` and `encode` of sentence-transformers
compile    a step of the plain loop compiled, with and without CUDA graphs

Options:
    --parts {peak,attention,adapt,prepal,train,encode,compile}...  all but the last
    --models minilm bert modernbert
    --precisions float32 tf32 bfloat16
    --batches 16 64 256
    --texts 2048
    --steps 20             of a training; fewer where batches are large
    --calls 100            of attention
    --max-length 128
    --repeats 2
    --rounds 5
    --seconds 440
    --device auto
    --out FOLDER           keeps the records and tables
    --small                tiny models in place of all
Smoke: --small --texts 24 --batches 8 --steps 4 --calls 2 --repeats 1 --rounds 1
    --max-length 32 --precisions float32 bfloat16 --device cpu
"""

import copy
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter

import _gpu_sides as gpu_sides
import _harness as harness
import numpy as np
import torch
import transformers
from transformers import AutoModel, AutoTokenizer

from skactive import ActiveLearner
from skactive._encoders._module import choose_device
from skactive.bert import AdaptedFeatures, BertClassifier, BertFeatures, clear_cache

PARTS = ["peak", "attention", "adapt", "prepal", "train", "encode"]
SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2}


class Bench:
    """The settings, what is measured once, and what was found."""

    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.device = choose_device(args.device)
        self.on_cuda = self.device.type == "cuda"
        self.start, self.left_out = perf_counter(), []
        out = args.out or folder
        out.mkdir(parents=True, exist_ok=True)
        self.page = out / "gpu.md"
        self.records = harness.Records(out / "gpu.jsonl")
        texts, labels, _ = harness.read_texts(args.texts, True)
        order = np.random.default_rng(0).permutation(len(texts))
        self.texts, self.labels = [texts[i] for i in order], labels[order]
        self.folders, self.peaks, self.encoders = {}, {}, {}

    def model(self, name):
        """Return the folder of a model, and the operations and widths of its layers."""
        if name not in self.folders:
            folder = make_model(self.folder / name, name, self.args.small)
            module = AutoModel.from_pretrained(folder)
            linears = [m for m in module.modules() if isinstance(m, torch.nn.Linear)]
            weights = sum(m.weight.numel() for m in linears)
            pooler = getattr(module, "pooler", None)
            weights -= pooler.dense.weight.numel() if pooler else 0
            config = module.config
            self.folders[name] = (
                folder,
                2 * weights,
                4 * config.hidden_size * config.num_hidden_layers,
            )
        return self.folders[name]

    def encoder(self, folder):
        """Return a copy of the encoder of transformers on the device."""
        if folder not in self.encoders:
            self.encoders[folder] = AutoModel.from_pretrained(folder)
        return copy.deepcopy(self.encoders[folder]).to(self.device)

    def operations(self, name, texts):
        """Return the operations of the products of one pass over texts."""
        folder, per_token, per_pair = self.model(name)
        tokens = AutoTokenizer.from_pretrained(folder)(
            texts, truncation=True, max_length=self.args.max_length
        )
        lengths = np.array([len(ids) for ids in tokens["input_ids"]])
        return float(per_token * lengths.sum() + per_pair * (lengths**2).sum())

    def peak(self, precision):
        """Return the operations per second of a large product."""
        if precision not in self.peaks:
            n = 8192 if self.on_cuda else 256
            with precise(precision) as dtype:
                A = torch.randn(n, n, device=self.device, dtype=dtype)
                runs = [self.seconds(lambda: [A @ A for _ in range(10)])[0]]
                runs += [self.seconds(lambda: [A @ A for _ in range(10)])[0]]
            self.peaks[precision] = 20 * n**3 / min(runs)
        return self.peaks[precision]

    def seconds(self, function):
        """Return the seconds of a call, the device waited for, and its result.

        A function that returns a number has measured the seconds itself.
        """
        self.wait()
        start = perf_counter()
        result = function()
        self.wait()
        spent = perf_counter() - start
        return result if isinstance(result, float) else spent, result

    def wait(self):
        if self.on_cuda:
            torch.cuda.synchronize(self.device)

    def race(self, sides):
        """Return the least seconds of each side in turns; an error is told by its name.

        A side takes part in no turn after one that failed.
        """
        found = {}
        for _ in range(self.args.repeats + 1):  # the first turn warms up
            for name, side in sides.items():
                if isinstance(found.get(name, ()), str):
                    continue
                try:
                    found.setdefault(name, []).append(self.seconds(side)[0])
                except (ImportError, RuntimeError, ValueError, TypeError) as error:
                    found[name] = f"{type(error).__name__}: {error}".split("\n")[0][:60]
        return {
            name: each if isinstance(each, str) else min(each[1:])
            for name, each in found.items()
        }

    def has_time(self, what):
        """Return whether a row may begin."""
        has_time = perf_counter() - self.start < self.args.seconds
        if not has_time:
            self.left_out.append(what)
        return has_time

    def show(self, part, head, records, notes=()):
        """Print a table and notes, and keep them."""
        records = list(records)
        for record in records:
            self.records.add({"part": part, **record})
        rows = [[shown(record.get(name, "")) for name in head] for record in records]
        lines = harness.table(head, rows) if rows else ["nothing was measured"]
        spent = perf_counter() - self.start
        lines = [f"## {part}, after {spent:.0f} s", "", *lines, "", *notes, ""]
        print(*lines, sep="\n", flush=True)
        with self.page.open("a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


def shown(value):
    return f"{value:.4g}" if isinstance(value, float) else value


def make_model(folder, name, small):
    """Return the folder of a model: MiniLM, or a random one with its tokenizer."""
    if name == "minilm" and not small:
        return harness.minilm()
    kind = "ModernBert" if name == "modernbert" else "Bert"
    sizes = {**SMALL, "num_hidden_layers": 3} if small else {}
    if kind == "ModernBert":
        sizes |= {"vocab_size": 30522, "pad_token_id": 0}
        sizes |= dict.fromkeys(("bos_token_id", "cls_token_id"), 101)
        sizes |= dict.fromkeys(("eos_token_id", "sep_token_id"), 102)
    config = getattr(transformers, f"{kind}Config")(**sizes)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        getattr(transformers, f"{kind}Model")(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(harness.minilm()).save_pretrained(folder)
    return str(folder)


@contextmanager
def precise(precision):
    """Set what float32 products may do; yield the type of numbers."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        yield torch.bfloat16 if precision == "bfloat16" else torch.float32
    finally:
        torch.set_float32_matmul_precision(before)


def compared(found, *, size, operations=None, peak=None):
    """Return the columns of sides that raced over `size` texts or steps."""
    ours = found["skactive"]
    columns = {f"{name} s": taken for name, taken in found.items()}
    if isinstance(ours, str):
        return columns
    columns["each ms"] = 1e3 * ours / size
    if operations:
        columns["share"] = f"{operations / peak / ours:.1%}"
    for name, taken in found.items():
        if name != "skactive" and not isinstance(taken, str):
            columns[f"{name} ratio"] = taken / ours
    return columns


# Parts --------------------------------------------------------------------------------


def run_peak(bench):
    rows = [
        {"precision": precision, "TFLOP/s": bench.peak(precision) / 1e12}
        for precision in bench.args.precisions
    ]
    bench.show("peak", ["precision", "TFLOP/s"], rows)


def run_attention(bench):
    """Attention of a layer over a batch, in three ways."""
    rows, calls = [], bench.args.calls
    for heads, width in ((12, 32), (12, 64)):
        for batch in bench.args.batches:
            if not bench.has_time(f"attention {heads}x{width} {batch}"):
                continue
            lengths = np.random.default_rng(0).integers(8, bench.args.max_length, batch)
            ways = gpu_sides.make_attentions(lengths, heads, width, bench)
            found = bench.race({"skactive": ways.pop("padded"), **ways})
            size = {"heads": heads, "width": width, "batch": batch}
            rows.append(size | compared(found, size=calls))
    head = ["heads", "width", "batch", "skactive s"]
    head += [f"{way} {what}" for way in ("nested", "varlen") for what in ("s", "ratio")]
    bench.show("attention", head, rows, [f"{calls} calls in bfloat16; skactive pads."])


def run_encode(bench):
    from sentence_transformers import SentenceTransformer

    args, rows = bench.args, []
    for name, precision in pairs(args):
        folder = bench.model(name)[0]
        operations = bench.operations(name, bench.texts)
        with precise(precision) as dtype:
            dtype_name = str(dtype).removeprefix("torch.")
            peer = SentenceTransformer(
                folder, device=str(bench.device), model_kwargs={"dtype": dtype}
            )
            peer.max_seq_length = args.max_length
            for batch in args.batches:
                if not bench.has_time(f"encode {name} {precision} {batch}"):
                    continue
                features = BertFeatures(
                    folder,
                    pooling="mean",
                    max_length=args.max_length,
                    batch_tokens=batch * args.max_length,
                    precision=dtype_name,
                    cache=None,
                    device=str(bench.device),
                    verbose=0,
                )
                encode = partial(peer.encode, batch_size=batch, show_progress_bar=False)
                sides = {"skactive": features.transform, "encode": encode}
                found = bench.race(
                    {k: partial(f, bench.texts) for k, f in sides.items()}
                )
                columns = compared(
                    found,
                    size=len(bench.texts),
                    operations=operations,
                    peak=bench.peak(precision),
                )
                rows.append(
                    {"model": name, "precision": precision, "batch": batch, **columns}
                )
    head = ["model", "precision", "batch", "skactive s", "share", "encode s"]
    bench.show("encode", [*head, "encode ratio"], rows)


def pairs(args):
    return [(name, precision) for name in args.models for precision in args.precisions]


def run_train(bench):
    args, rows, notes = bench.args, [], []
    for name, precision in pairs(args):
        folder = bench.model(name)[0]
        with precise(precision) as dtype:
            for batch in args.batches:
                if not bench.has_time(f"train {name} {precision} {batch}"):
                    continue
                steps = max(2, min(args.steps, 2048 // batch))
                texts, labels = take(bench, steps * batch)
                model = classifier(bench, folder, batch, dtype)
                loop = gpu_sides.PlainLoop(bench, folder, batch, dtype)
                sides = {
                    "skactive": partial(step_ours, model, texts, labels),
                    "loop": partial(loop.train, texts, labels),
                    "Trainer": partial(gpu_sides.train_trainer, loop, texts, labels),
                }
                found = bench.race(sides)
                columns = compared(
                    found,
                    size=steps,
                    operations=3 * bench.operations(name, texts),
                    peak=bench.peak(precision),
                )
                rows.append(
                    {"model": name, "precision": precision, "batch": batch, **columns}
                )
                if batch == min(args.batches) and precision == args.precisions[-1]:
                    notes += [f"### {name}, {precision}, batches of {batch}", ""]
                    notes += [
                        "```",
                        *gpu_sides.look_into(bench, model, texts, labels),
                        "```",
                    ]
    head = ["model", "precision", "batch", "skactive s", "each ms", "share"]
    head += ["loop s", "loop ratio", "Trainer s", "Trainer ratio"]
    bench.show("train", head, rows, notes)


def take(bench, n):
    """Return n texts and labels, again from the first one if there are fewer."""
    rows = np.arange(n) % len(bench.texts)
    return [bench.texts[i] for i in rows], bench.labels[rows]


def classifier(bench, folder, batch, dtype, **params):
    return BertClassifier(
        folder,
        **{"pooling": "mean", "max_epochs": 1, "cache_frozen": False} | params,
        batch_size=batch,
        max_length=bench.args.max_length,
        precision=str(dtype).removeprefix("torch."),
        device=str(bench.device),
        random_state=0,
        verbose=0,
    )


def step_ours(model, texts, labels):
    """Return the seconds of the steps of a fit."""
    gpu_sides.train_ours(model, texts, labels)
    return model.history_[-1]["seconds"]


def run_adapt(bench):
    args, rows = bench.args, []
    for name, precision in pairs(args):
        if not bench.has_time(f"adapt {name} {precision}"):
            continue
        folder = bench.model(name)[0]
        few = [np.flatnonzero(bench.labels == c)[:16] for c in np.unique(bench.labels)]
        chosen = np.concatenate(few)
        texts, labels = [bench.texts[i] for i in chosen], bench.labels[chosen]
        with precise(precision) as dtype:
            features = AdaptedFeatures(
                folder,
                pooling="mean",
                cache=None,
                n_steps=args.steps,
                max_length=args.max_length,
                precision=str(dtype).removeprefix("torch."),
                device=str(bench.device),
                verbose=0,
            )
            found = bench.race(
                {
                    "skactive": partial(gpu_sides.train_ours, features, texts, labels),
                    "loop": partial(
                        gpu_sides.adapt_plainly, bench, features, texts, labels
                    ),
                    "SetFit": partial(
                        gpu_sides.adapt_setfit, bench, features, texts, labels
                    ),
                }
            )
        rows.append(
            {"model": name, "precision": precision, "labels": len(texts)}
            | compared(found, size=args.steps)
        )
    head = ["model", "precision", "labels", "skactive s", "each ms", "loop s"]
    bench.show("adapt", [*head, "loop ratio", "SetFit s", "SetFit ratio"], rows)


def run_prepal(bench):
    """Rounds of training on all labels and asking over the pool."""
    folder, rows = bench.model(bench.args.models[0])[0], []
    texts, labels = np.array(bench.texts, dtype=object), bench.labels
    size = max(2, min(50, len(texts) // 4))
    with precise("float32"):
        model = classifier(bench, folder, 16, torch.float32, max_epochs=3, freeze=3)
        model.set_params(precision="auto", cache_frozen=True)
        learner = ActiveLearner(
            model, strategy="entropy", batch_size=size, random_state=0
        )
        labeled = list(range(size))
        clear_cache()
        for i in range(bench.args.rounds):
            if not bench.has_time(f"prepal round {i}"):
                continue
            train = partial(
                gpu_sides.train_ours, learner, texts[labeled], labels[labeled]
            )
            rest = np.setdiff1d(np.arange(len(texts)), labeled)
            trained, _ = bench.seconds(train)
            asked, chosen = bench.seconds(partial(learner.query, texts[rest]))
            rows.append(
                {"labels": len(labeled), "training s": trained, "asking s": asked}
            )
            labeled += rest[chosen].tolist()
    bench.show("prepal", ["labels", "training s", "asking s"], rows)


def run_compile(bench):
    """Seconds of the first and of a later step of the plain loop, compiled."""
    rows = []
    for mode in ("default", "reduce-overhead"):  # the latter has CUDA graphs
        for precision in bench.args.precisions:
            if not bench.has_time(f"compile {mode} {precision}"):
                continue
            batch = min(bench.args.batches)
            texts, labels = take(bench, bench.args.steps * batch)
            with precise(precision) as dtype:
                folder = bench.model(bench.args.models[0])[0]
                loop = gpu_sides.PlainLoop(bench, folder, batch, dtype, compiled=mode)
                loop.train(texts, labels)
            spent = np.diff(loop.ends)
            rows.append(
                {
                    "mode": mode,
                    "precision": precision,
                    "first s": float(spent[0]),
                    "each ms": 1e3 * float(np.median(spent[1:])),
                }
            )
    bench.show("compile", ["mode", "precision", "first s", "each ms"], rows)


def main():
    args = harness.parse(__doc__, parts=PARTS)
    parts = {name: globals()[f"run_{name}"] for name in args.parts}
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, Path(folder))
        name = (
            torch.cuda.get_device_name(bench.device) if bench.on_cuda else "processor"
        )
        print(f"{name}, torch {torch.__version__}, {len(bench.texts):,} texts\n")
        for run in parts.values():
            run(bench)
        if bench.left_out:
            print(f"left out after {args.seconds} s:", *bench.left_out, sep="\n  ")
        failed = [r for r in bench.records if isinstance(r.get("skactive s"), str)]
        if failed:
            raise SystemExit(f"skactive failed: {failed[0]}")


if __name__ == "__main__":
    main()
