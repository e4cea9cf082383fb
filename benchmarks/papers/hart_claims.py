"""The claims of the paper of hart.py."""

import numpy as np
from verdicts import Claim, deviations


def pick(records, part, model, key="accuracy"):
    """Scores of one model, in the order of its folds or initializations."""
    found = [r for r in records if r["part"] == part and r["model"] == model]
    return np.array([r[key] for r in sorted(found, key=lambda r: r["index"])])


def make_claims(records, n_folds):
    """List the claims with what was measured; differences are in points.

    A repetition of the folds counts once, with the mean of its folds.
    """

    def difference(part, a, b, key="accuracy", spread=False):
        first, second = (100 * pick(records, part, m, key) for m in (a, b))
        if part == "folds":
            first, second = (x.reshape(-1, n_folds).mean(1) for x in (first, second))
        if spread:
            first, second = deviations(first), deviations(second)
        n = max(len(first), len(second))
        return {"tweets": np.resize(first, n) - np.resize(second, n)}

    def seconds(part, *models):
        """Seconds for one more seed: an initialization, or folds like the split."""
        one = sum(float(np.mean(pick(records, "split", m, "seconds"))) for m in models)
        return one * n_folds if part == "folds" else one

    def of(part, text, paper, a, b, *, key="accuracy", spread=False, **options):
        unit = "points of the mean deviation" if spread else "points"
        values = difference(part, a, b, key, spread)
        options |= {"digits": 2, "seconds": seconds(part, a, b), "unit": unit}
        return Claim(text, paper, values, **options)

    sparse = {m: pick(records, "folds", m).mean() for m in ("TF-IDF", "counts")}
    sparse["hashing"] = pick(records, "folds", "hashing").mean()
    order = sorted(sparse, key=sparse.get)
    best, worst, last = order[-1], order[0], "last two layers"
    return [
        of(
            "folds",
            "the three sparse features give about the same accuracy (± 1 point; the "
            "best less the worst)",
            "TF-IDF 0.795, counts 0.796, hashing 0.793",
            *(best, worst),
            kind="alike",
            shown=f"{best} less {worst}: ",
        ),
        of(
            "folds",
            "features of the frozen encoder are better than sparse ones (here under "
            "logistic regression too, on the same folds)",
            "0.824 against 0.795",
            *("last layer", best),
        ),
        of(
            "split",
            "their F1 is higher by far (at least 6.5 points, half of the paper's gap; "
            "frozen model of table 2 less TF-IDF, the disasters)",
            '0.872 against 0.742, "almost 10 points higher in some cases"',
            *("frozen", "TF-IDF"),
            key="f1",
            limit=6.5,
        ),
        of(
            "split",
            "unfreezing makes no significant difference to frozen",
            "t = -0.91, df = 13, p = 0.38",
            *("unfrozen", "frozen"),
            kind="same",
        ),
        of(
            "split",
            "nor does unfreezing the last two layers",
            "t = -1.5, df = 16, p = 0.14",
            *(last, "frozen"),
            kind="same",
        ),
        of(
            "split",
            "unfreezing makes the results of initializations scatter more",
            "a picture",
            *("unfrozen", "frozen"),
            spread=True,
            margin=0.2,
        ),
        of(
            "split",
            "with only the last two layers they scatter less than with all",
            "a picture",
            *(last, "unfrozen"),
            spread=True,
            margin=0.2,
            kind="less",
        ),
        of(
            "folds",
            "the last four layers give better features than the last one (advice that "
            "the paper passes on)",
            "no figure",
            *("last four layers", "last layer"),
        ),
    ]
