"""The claims of the paper of hart.py, and their verdicts."""

import numpy as np
from scipy.stats import levene
from scipy.stats import t as student
from verdicts import UNCORRECTED, above
from verdicts import said as written

from skactive.analysis import paired_t

PAPER_SPARSE = {
    "TF-IDF": (0.795, 0.742),
    "counts": (0.796, 0.746),
    "hashing": (0.793, 0.735),
}
PAPER_TUNED = {
    "frozen": (0.824, 0.872),
    "unfrozen": (0.833, 0.863),
    "last two layers": (0.831, 0.850),
}
PAPER_TESTS = {
    "unfrozen": "t = -0.91, df = 13, p = 0.38",
    "last two layers": "t = -1.5, df = 16, p = 0.14",
}
MARGIN = 0.01
FAR = (PAPER_TUNED["frozen"][1] - PAPER_SPARSE["TF-IDF"][1]) / 2
RULES = (
    "The verdicts are computed. *Better* and *more* are decided by the sign if p < "
    "0.05. *No difference* does not hold if p < 0.05, and *about the same* does not "
    "hold if the interval is beyond ± 0.01; both hold if the interval is within ± "
    "0.01. *By far* holds if the interval is above half of the gap in the paper, and "
    'does not hold if it is below. Otherwise the verdict is "cannot tell". There is '
    "no verdict if the paper's F1 cannot be that of the disasters. Folds are compared "
    "in pairs (their training texts overlap, so these p-values tend to be too small), "
    "initializations by Welch's test, and variances by the test of Brown and Forsythe. "
    f"Differences have 95 % intervals. {UNCORRECTED}"
)


def pick(records, part, model, key="accuracy"):
    """Scores of one model, in the order of its folds or initializations."""
    return np.array(
        [r[key] for r in records if r["part"] == part and r["model"] == model]
    )


def interval(test):
    """Limits of the 95 % interval of the difference that a t test looked at."""
    error = abs(test.difference / test.statistic) if test.statistic else 0.0
    half = student.ppf(0.975, test.df) * error
    return test.difference - half, test.difference + half


def said(test):
    """Write the interval of a difference, and its test."""
    low, high = interval(test)
    tail = str(test).partition(", ")[2]
    return f"{test.difference:+.3f} [{low:+.3f}, {high:+.3f}], {tail}"


def better(test):
    """Whether the first is better: by the sign of a difference that p < 0.05 shows."""
    return None if test.p_value >= 0.05 else test.difference > 0


def alike(tests):
    """Whether means differ by less than MARGIN: all intervals within, or one beyond."""
    limits = [interval(test) for test in tests]
    if all(low > -MARGIN and high < MARGIN for low, high in limits):
        return True
    outside = [low > MARGIN or high < -MARGIN for low, high in limits]
    return False if any(outside) else None


def insignificant(test):
    """Whether a difference is none: p < 0.05 refutes it, a narrow interval shows it."""
    return False if test.p_value < 0.05 else alike([test])


def spreads_more(a, b):
    """Whether a scatters more than b, by the test of Brown and Forsythe; and its p."""
    if np.ptp(a) == np.ptp(b) == 0:
        return None, 1.0
    p = levene(a, b, center="median").pvalue
    return (None if p >= 0.05 else bool(a.std() > b.std())), p


def share_needed(accuracy, f1):
    """Part of the texts that must be true positives for both scores to hold."""
    return f1 * (1 - accuracy) / (2 * (1 - f1))


def claims(records, folds, scores, tests):
    """Collect (claim, paper, here, verdict).

    Parameters
    ----------
    records : list of dict
    folds, scores : dict of str to ndarray
        Accuracies of each model, by fold, and by initialization.
    tests : dict of str to TestResult
        Of the frozen model against the others.
    """

    def paired(a, b, key="accuracy"):
        return paired_t(pick(records, "folds", a, key), pick(records, "folds", b, key))

    sparse = [
        paired("counts", "TF-IDF"),
        paired("counts", "hashing"),
        paired("TF-IDF", "hashing"),
    ]
    widest = max(sparse, key=lambda test: abs(test.difference))
    features = paired("last layer", "TF-IDF")
    four = paired("last four layers", "last layer")
    more, p_more = spreads_more(scores["unfrozen"], scores["frozen"])
    less, p_less = spreads_more(scores["unfrozen"], scores["last two layers"])
    std = {m: f"{values.std(ddof=1):.4f}" for m, values in scores.items()}
    means = ", ".join(f"{m} {np.mean(folds[m]):.3f}" for m in PAPER_SPARSE)
    last = "last two layers"
    return [
        (
            "the three sparse features give about the same accuracy",
            "TF-IDF 0.795, counts 0.796, hashing 0.793",
            f"{means}; widest gap {said(widest)}",
            alike(sparse),
        ),
        (
            "features of the frozen encoder are better than sparse ones (here under "
            "logistic regression too, on the same folds)",
            "0.824 against 0.795",
            f"{np.mean(folds['last layer']):.3f} against "
            f"{np.mean(folds['TF-IDF']):.3f}: {said(features)}",
            better(features),
        ),
        _claim_of_f1(records),
        (
            "unfreezing makes no significant difference to frozen",
            PAPER_TESTS["unfrozen"],
            said(tests["unfrozen"]),
            insignificant(tests["unfrozen"]),
        ),
        (
            "nor does unfreezing the last two layers",
            PAPER_TESTS[last],
            said(tests[last]),
            insignificant(tests[last]),
        ),
        (
            "unfreezing makes the results of initializations scatter more",
            "a picture",
            f"standard deviation {std['unfrozen']} against {std['frozen']}, "
            f"p = {p_more:.3f}",
            more,
        ),
        (
            "with only the last two layers they scatter less than with all",
            "a picture",
            f"{std[last]} against {std['unfrozen']}, p = {p_less:.3f}",
            less,
        ),
        (
            "the last four layers give better features than the last one (advice that "
            "the paper passes on)",
            "no figure",
            said(four),
            better(four),
        ),
    ]


def _claim_of_f1(records):
    """The frozen model of table 2 less TF-IDF, on the same texts, in F1."""
    leads = {
        key: pick(records, "split", "frozen", key)
        - pick(records, "split", "TF-IDF", key)
        for key in ("f1", "f1_other")
    }
    share = next(r["share"] for r in records if r["part"] == "split")
    known = share_needed(*PAPER_TUNED["frozen"]) <= share
    why = "" if known else "cannot be compared, see *On the paper's F1*; "
    return (
        f"their F1 is higher by far (at least {FAR:.3f}, half of the paper's gap)",
        '0.872 against 0.742, "almost 10 points higher in some cases"',
        f"{why}frozen model of table 2 less TF-IDF on the same texts: "
        f"{written(leads['f1'], 3)} for the disasters, "
        f"{written(leads['f1_other'], 3)} for the others (over initializations)",
        above(leads["f1"], FAR) if known else None,
    )
