"""The command `encoders`: compare encoders on the labels of a table."""

from collections import Counter
from pathlib import Path
from time import process_time

import numpy as np
from scipy.stats import norm
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from .._math._calibration import deal_in_order
from .._tables._labels import find_own
from .._tables._reader import TableFile
from .._utils._format import format_table
from .._utils._lazy import need_bert
from .._utils._pipelines import seeded_clone
from ..semi_supervised import make_text_classifier, packaged_model
from ._parser import one_or_several, say, show_line
from ._simulate import read_labeled

_FOLDS, _MOST, _LEAST = 5, 1000, 30


def run_encoders(file, text, label, model, prompt, **options):
    """Run the command `encoders`."""
    need_bert("the comparison of encoders")
    models = [packaged_model(), *model] if len(model) == 1 else model
    options |= {"cache": "memory", "adapt": False}
    options["prompt"] = one_or_several(prompt) if prompt else None
    every = make_text_classifier(models, **options)  # checked before any work
    X, y, _ = read_labeled(file, text, [label])
    rows = np.random.default_rng(0).permutation(len(X))[:_MOST]
    X, y = [X[i] for i in rows], y[rows]
    n_often = sum(n > 1 for n in Counter(y.tolist()).values())
    if len(X) < _LEAST or n_often < 2:
        raise ValueError(
            f"the table must hold at least {_LEAST} labels, and two classes with two "
            f"labels each, got {len(X)} labels and {n_often} such classes. Label more "
            "texts."
        )
    if find_own(TableFile(Path(file).expanduser()).names, "label_source") is not None:
        say(
            "labels that a model has chosen favor the encoder that chose them; random "
            "ones compare fairly"
        )
    seconds = []
    for _, part in every.parts:
        part[0].transform(X[:1])  # opens the encoder
        start = process_time()
        part[0].transform(X)
        seconds.append(1000 * (process_time() - start) / len(X))
    candidates = [part for _, part in every.parts] + [every]
    right = [predict_held_out(each, X, y) == y for each in candidates]
    names = [*models, "all of them"]
    header = ["encoder", "accuracy", "difference from the first", "s per 1,000 texts"]
    table = []
    for name, own, spent in zip(names, right, [*seconds, sum(seconds)], strict=True):
        gain, low, high = (100 * x for x in compare_right(own, right[0]))
        compared = "" if own is right[0] else f"{gain:+.1f} ({low:+.1f} to {high:+.1f})"
        table.append([name, f"{100 * own.mean():.1f} %", compared, f"{spent:.1f}"])
    show_line(format_table(header, table))
    show_line(
        f"Of {len(X):,} labels, each predicted by a model of four fifths of the "
        "others. The intervals are for 95 %, and not corrected for several comparisons."
    )
    for name, own in list(zip(names, right, strict=True))[1:]:
        if n := labels_to_tell(own, right[0]):
            show_line(f"{name}: about {n:,} labels would tell this difference from 0.")
    return 0


def predict_held_out(model, X, y):
    """Return the predictions of labels by models that were trained without them."""
    folds = deal_in_order(np.unique(y, return_inverse=True)[1], _FOLDS)
    model = seeded_clone(model, np.random.default_rng(0))
    return cross_val_predict(model, X, y, cv=PredefinedSplit(folds))


def compare_right(right, other):
    """Return the difference of two paired shares, and its 95 % interval.

    The adjusted Wald interval of D. G. Bonett and R. M. Price, Journal of Educational
    and Behavioral Statistics 37, 2012: a pair of each kind is added.
    """
    n = len(right) + 2
    gained, lost = (right & ~other).sum() + 1, (~right & other).sum() + 1
    center = (gained - lost) / n
    half = norm.ppf(0.975) * np.sqrt((gained + lost) / n - center**2) / np.sqrt(n)
    return right.mean() - other.mean(), max(center - half, -1), min(center + half, 1)


def labels_to_tell(right, other):
    """Return how many labels would exclude 0, or None if these do or there is none."""
    difference, low, high = compare_right(right, other)
    if not difference or not low <= 0 <= high:
        return None
    return int(np.ceil(len(right) * ((high - low) / (2 * difference)) ** 2 / 100)) * 100
