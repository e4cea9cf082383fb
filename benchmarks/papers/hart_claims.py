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

    def seconds(*models):
        return sum(float(np.mean(pick(records, "split", m, "seconds"))) for m in models)

    def of_split(text, paper, a, b, **options):
        spread = options.pop("spread", False)
        unit = "points of the mean deviation" if spread else "points"
        values = difference("split", a, b, spread=spread)
        options |= {"digits": 2, "seconds": seconds(a, b), "unit": unit}
        return Claim(text, paper, values, **options)

    sparse = {m: pick(records, "folds", m).mean() for m in ("TF-IDF", "counts")}
    sparse["hashing"] = pick(records, "folds", "hashing").mean()
    order = sorted(sparse, key=sparse.get)
    best, worst, last = order[-1], order[0], "last two layers"
    return [
        Claim(
            "the three sparse features give about the same accuracy (± 1 point; the "
            "best less the worst)",
            "TF-IDF 0.795, counts 0.796, hashing 0.793",
            difference("folds", best, worst),
            kind="alike",
            digits=2,
            shown=f"{best} less {worst}: ",
        ),
        Claim(
            "features of the frozen encoder are better than sparse ones (here under "
            "logistic regression too, on the same folds)",
            "0.824 against 0.795",
            difference("folds", "last layer", best),
            digits=2,
        ),
        Claim(
            "their F1 is higher by far (at least 6.5 points, half of the paper's gap; "
            "frozen model of table 2 less TF-IDF, the disasters)",
            '0.872 against 0.742, "almost 10 points higher in some cases"',
            difference("split", "frozen", "TF-IDF", "f1"),
            limit=6.5,
            digits=2,
        ),
        of_split(
            "unfreezing makes no significant difference to frozen",
            "t = -0.91, df = 13, p = 0.38",
            *("unfrozen", "frozen"),
            kind="same",
        ),
        of_split(
            "nor does unfreezing the last two layers",
            "t = -1.5, df = 16, p = 0.14",
            *(last, "frozen"),
            kind="same",
        ),
        of_split(
            "unfreezing makes the results of initializations scatter more",
            "a picture",
            *("unfrozen", "frozen"),
            spread=True,
            margin=0.2,
        ),
        of_split(
            "with only the last two layers they scatter less than with all",
            "a picture",
            *(last, "unfrozen"),
            spread=True,
            margin=0.2,
            kind="less",
        ),
        Claim(
            "the last four layers give better features than the last one (advice that "
            "the paper passes on)",
            "no figure",
            difference("folds", "last four layers", "last layer"),
            digits=2,
        ),
    ]
