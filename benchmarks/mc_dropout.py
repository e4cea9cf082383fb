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

Options:
    --data {ag_news,sst2}
    --texts 20000
    --distinct N              texts to encode; they are repeated beyond that
    --draws 50
    --repeats 5
    --stability-texts 4000
    --stability-draws 10 50 200 1000
    --reference-draws 10000
    --passes-texts 50
    --peers-python FILE       that of the peers' environment
    --device cpu
Smoke: --texts 150 --passes-texts 4 --draws 5 --repeats 1 --stability-draws 5
    --reference-draws 50
"""

import subprocess
import tempfile
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median

import _harness as harness
import numpy as np
import torch
from peers.mc_dropout import describe
from scipy.stats import spearmanr
from threadpoolctl import threadpool_limits

from skactive._encoders._module import choose_device
from skactive._math._scores import mutual_information
from skactive.bert import BertClassifier, clear_cache
from skactive.datasets import load_docstrings

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
        X, y = harness.read_part(name, "train")
    X, first = np.unique(np.asarray(X, dtype=str), return_index=True)
    order = np.random.default_rng(0).permutation(len(X))[:n]
    return X[order].astype(object), np.asarray(y)[first][order]


def start_baal(python, classifier, features, folder):
    """Start a process in the peers' environment that draws from the same head."""
    linear = classifier.net_.module_.head.dense[0]
    path = Path(folder) / "head.npz"
    np.savez(
        path,
        features=features,
        weight=linear.weight.detach().cpu().numpy(),
        bias=linear.bias.detach().cpu().numpy(),
        rate=classifier.dropout,
    )
    command = python.absolute(), "-m", "peers.mc_dropout", path
    return harness.Worker(*command, stderr=subprocess.DEVNULL)


def seconds_of(side, args):
    """Return the result, and seconds of the processor, or of the wall on a GPU."""
    answer, (wall, cpu) = harness.timed(side)
    is_cpu = choose_device(args.device).type == "cpu"
    return answer, cpu if is_cpu else wall, wall


def compare_draws(classifier, X, args, folder):
    n_draws, some = args.draws, min(SCALED, len(X))
    sides = {}
    for mode in ("head", "gaussian"):

        def ask(seed, mode=mode):
            classifier.set_params(mc_dropout=mode)
            draws, cpu, wall = seconds_of(
                lambda: classifier.sample_proba(X, n_draws, random_state=seed), args
            )
            spread, bald = describe(draws[:some].transpose(0, 2, 1))
            return {"cpu": cpu, "wall": wall, "spread": spread, "bald": bald}

        sides[mode] = ask
    baal = None
    if args.peers_python:
        features = classifier.transform(X[:some])
        baal = start_baal(args.peers_python, classifier, features, folder)
        for name, settings in BAAL.items():
            request = {"args": settings, "draws": n_draws}
            sides[name] = lambda seed, request=request: baal.ask(
                request | {"seed": seed}
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
    peak = harness.measure_peak(torch.float32)
    limit = 2 * len(X) * d * n_draws * k / peak
    print(
        f"\n{n_draws} draws, {len(X):,} texts with kept features, d = {d}, k = {k}, "
        f"one thread;\none product: {1e3 * limit:.0f} ms at {peak / 1e9:.0f} GFLOP/s"
    )
    rows = []
    for name, answers in runs.items():
        cpu, wall, spread, bald = (
            median(answer[key] for answer in answers)
            for key in ("cpu", "wall", "spread", "bald")
        )
        ratios = ["", ""]
        if baal and name not in BAAL:
            ratios = [f"{ratio_of(runs[other], answers):.1f}x" for other in BAAL]
        share = f"{limit / cpu:.0%}" if name == "head" else ""
        shown = f"{cpu:.3f}|{wall:.3f}|{spread:.4f}|{bald:.5f}"
        rows.append([name, *shown.split("|"), *ratios, share])
    harness.print_rows("side|s|s, wall|spread|BALD|to baal|to the quickest|limit", rows)


def ratio_of(slow, fast):
    return harness.ratio(*([answer["cpu"] for answer in side] for side in (slow, fast)))


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

    def alike(a, b):
        best = [set(np.argsort(-scores)[:top].tolist()) for scores in (a, b)]
        return f"{spearmanr(a, b)[0]:.4f}|{len(best[0] & best[1])}"

    def list_rows():
        for n_draws, mode in product(args.stability_draws, ("head", "gaussian")):
            draw = partial(bald_scores, classifier, X, mode, n_draws)
            scores, cpu, _ = seconds_of(lambda draw=draw: [draw(1), draw(2)], args)
            both = f"{alike(*scores)}|{alike(scores[0], many)}"
            yield f"{n_draws:,}|{mode}|{both}|{cpu:.2f}"

    head = "draws|way|seeds: correlation|top|masks: correlation|top|s"
    harness.print_rows(head, list_rows())


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
            sample, cpu, _ = seconds_of(
                lambda model=model: model.sample_proba(some, draws), args
            )
            spread = sample.std(axis=1).mean()
            runs[mode].append({"cpu": cpu, "spread": spread})
    print(f"\n{draws} draws, {len(some)} texts, nothing kept")
    for mode, answers in runs.items():
        per_text = 1e3 * median(answer["cpu"] for answer in answers) / len(some)
        print(f"{mode:10s} {per_text:8.1f} ms/text   spread {answers[0]['spread']:.4f}")
    print(f"ratio {ratio_of(runs['full'], runs['head']):.1f}x")


def main():
    args = harness.parse(__doc__)
    torch.set_num_threads(1)
    n_distinct = args.distinct or args.texts
    X, y = load(args.data, min(args.texts, n_distinct), args.smoke)
    m = min(500, len(X) // 2)
    classifier = BertClassifier(
        harness.minilm(),
        freeze="all",
        max_epochs=3,
        batch_size=16,
        head_lr=1e-2,
        schedule=None,
        warmup=0.0,
        random_state=0,
        device=args.device,
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
