"""The numbers of the paper of griesshaber2020.py, and those measured here."""

import numpy as np
from griesshaber2020_figures import as_runs, loops, name_of, select
from scipy.stats import ttest_1samp

from skactive.analysis import learning_curve

ORDER = ("MNLI", "QNLI", "SST-2", "SNLI")
# Tables 1 and 2, in percent: accuracy and its spread after 910 labels, width of the
# band over the rounds.
ACCURACY = {
    0: ((53, 2.1), (76, 1.0), (78, 5.9), (67, 1.5)),
    3: ((51, 2.1), (78, 0.3), (80, 4.5), (69, 0.2)),
    -3: ((52, 1.0), (78, 0.2), (84, 1.3), (69, 0.8)),
    6: ((51, 2.4), (75, 1.4), (81, 0.6), (63, 1.4)),
    -6: ((47, 2.0), (77, 1.0), (64, 9.4), (64, 6.7)),
}
WIDTH = {
    0: (5.4, 4.9, 10.8, 6.1),
    3: (4.3, 3.2, 7.8, 3.2),
    -3: (3.8, 2.4, 4.7, 2.8),
    6: (5.0, 3.3, 7.1, 8.2),
    -6: (5.0, 5.0, 11.3, 16.1),
}
# Table 3: labels of BALD and of chance, at 210 and at 910 labels.
IMBALANCE = {"MNLI": ((19, 3), (25, 9)), "QNLI": ((24, 2), (36, 4))}
# How many claims are of scatter, for Bonferroni's correction.
SCATTERS = 4


def of_paper(figures, data):
    """Look up the paper's figure; None if it has none of this data set."""
    name = name_of(data)
    return figures[ORDER.index(name)] if name in ORDER else None


def accuracies_of_paper(data, a, b):
    """Write the paper's differences between two freezings, in points."""
    found = []
    for name in data:
        pair = of_paper(ACCURACY[a], name), of_paper(ACCURACY[b], name)
        if None not in pair:
            found.append(f"{name_of(name)} {pair[0][0] - pair[1][0]:+d}")
    return ", ".join(found) or "none"


def widths_of_paper(a, b):
    """Pair the paper's widths with two freezings, by data set."""
    return dict(zip(ORDER, zip(WIDTH[a], WIDTH[b], strict=True), strict=True))


def finals(found):
    """Accuracies after the last round, in percent, by seed."""
    return np.array([100 * r["scores"][-1] for r in found])


def means(found):
    """Mean accuracies over the rounds after the initial labels, in percent."""
    return np.array([100 * np.mean(r["scores"][1:]) for r in found])


def imbalances(found):
    """Labels of the largest class less those of the smallest, by seed, at the end."""
    return np.array([r["imbalance"][-1] for r in found], dtype=float)


def width(found, first=0):
    """Mean width of the bootstrap interval from a round on, in percent.

    NaN for one seed. The paper does not say how its intervals were computed; for three
    runs, as in the paper, the bootstrap interval is the range of the runs.
    """
    if len(found) < 2:
        return np.nan
    curve = learning_curve(as_runs(found, first))
    return 100 * float(np.mean(curve.high - curve.low))


def shares(records, data, share):
    """Accuracies of a training on a share of the texts, in percent, by seed."""
    found = select(records, part="share", data=data, share=share)
    return np.array([100 * r["score"] for r in found])


def differences(records, data, function, a, b):
    """Subtract two settings, (strategy, freeze) each, by seed."""
    return function(loops(records, data, *a)) - function(loops(records, data, *b))


def encoder_changes(record):
    """Mean changes of the encoder's layers, the embeddings left out."""
    changes = record["changes"]
    pairs = zip(changes["part"], changes["layer"], changes["mean"], strict=True)
    return np.array([m for p, name, m in pairs if p == "encoder" and name.isdigit()])


def head_change(record):
    """Mean change of the head's layers."""
    changes = record["changes"]
    pairs = zip(changes["part"], changes["mean"], strict=True)
    return np.mean([mean for part, mean in pairs if part == "head"])


def pool_share(records, data, which="classes"):
    """Shares of the classes in a pool; with "test_classes", in the test texts."""
    (pool,) = select(records, part="pool", data=data)
    return np.array(pool[which]) / sum(pool[which])


def compare_scatter(pairs):
    """Test whether runs of one setting scatter less than those of another.

    One value for each data set: the logarithm of the ratio of the two scatters. Where
    the settings do not differ, it is symmetric around 0, however few the runs and
    however unlike the data sets. Student's t of these values therefore keeps its
    level: of 20,000 simulated tests at 0.05, with four data sets of three runs, 4 to
    5 % reject, and up to 25 % of F tests on pooled variances.

    Parameters
    ----------
    pairs : dict of str to (float, float)
        By data set, the scatter with one setting and with the other.

    Returns
    -------
    said : str
    verdict : bool or None
        Whether the first scatter less; None where p is not below 0.05.
    """
    each = ", ".join(f"{k} {a:.1f} against {b:.1f}" for k, (a, b) in pairs.items())
    values = np.array(list(pairs.values()))
    if len(values) < 2 or not (values > 0).all():
        return f"not tested; {each}", None
    logs = np.log(values[:, 0] / values[:, 1])
    p = min(1.0, SCATTERS * ttest_1samp(logs, 0).pvalue)
    ratio = np.exp(logs.mean())
    text = f"{ratio:.2f} times as large, corrected p = {p:.2f}"
    text += f", n = {len(logs)} data sets; {each}"
    return text, bool(ratio < 1) if p < 0.05 else None
