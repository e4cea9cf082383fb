"""Coverage of the intervals of `skactive.estimation`, in simulated pools.

Each cell is a kind of pool, of proxy and of sample, of which samples are drawn. The
measures are estimated by the public functions and compared with the truth of the pool.
Shares from labels alone are exact: each count of the sample has its probability. Run
from the repository:

    python benchmarks/interval_coverage.py --out coverage.jsonl --again 2000

`--quick` runs a third of the cells, by default with 100 samples. Records of the same
code are read from the file and not repeated.

Options:
    --out FILE        JSON lines, read and continued
    --samples N       by default 300, or 100 for a part
    --again N         samples for cells below 92 %
    --only MEASURE
    --families {exact,classes,trained,draws,means}...
    --jobs 1
    --shown 15        cases named a measure
    --quick
Smoke: --quick --samples 2
"""

import hashlib
import sys
import time
import warnings
from collections import defaultdict, namedtuple
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from _harness import Records, parse, print_rows
from estimates import predict_all
from scipy.stats import hypergeom, t
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from skactive import estimation

Cell = namedtuple("Cell", "family n_pool n profile proxy")
PARTS = ("precision", "recall", "f1")
MEASURES = ("share", "accuracy", *PARTS, "macro F1", "overconfidence")
LEAST_ANSWERS = 50  # cases with fewer have no coverage
LOW, N_POOLS = 0.92, 10
SIZES = [
    (n_pool, n)
    for n_pool in (50, 100, 400, 2000, 20_000)
    for n in sorted({12, 20, 40, 100, 300, n_pool * 8 // 10, n_pool * 9 // 10})
    if n < n_pool and (n <= 300 or n_pool == 400)
]
SHARES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.6)
PROFILES = {f"{share:g}": (share, 1 - share) for share in SHARES} | {
    "3 classes": (0.05, 0.35, 0.6),
    "4 equal": (0.25,) * 4,
    "5 classes": (0.02, 0.08, 0.2, 0.3, 0.4),
    "10 classes": tuple(1.5**j / 113.33 for j in range(10)),
}


# Pools --------------------------------------------------------------------------------


def draw_classes(n_pool, shares):
    """Return classes (n_pool,) of given shares, at least one item of each."""
    counts = [max(1, round(share * n_pool)) for share in shares[:-1]]
    return np.repeat(np.arange(len(shares)), [*counts, n_pool - sum(counts)])


def hard(guess, k, confidence=1.0):
    """Return probabilities (n, k): a confidence for the guess, the rest in parts."""
    confidence = np.broadcast_to(confidence, guess.shape)
    proba = np.repeat((1 - confidence)[:, None] / (k - 1), k, axis=1)
    proba[np.arange(len(guess)), guess] = confidence
    return proba


def posterior(y, k, n, rng, signal=2.0, sharpness=1.0, tails=None):
    """Return the true posterior of Gaussian features, made sharper or with tails."""
    shape = len(y), k
    noise = rng.standard_t(tails, shape) if tails else rng.normal(size=shape)
    noise[np.arange(len(y)), y] += signal
    logits = np.log(np.bincount(y, minlength=k) / len(y)) + signal * noise
    logits = np.clip(sharpness * (logits - logits.max(axis=1)[:, None]), -700, 0)
    proba = np.exp(logits)
    return proba / proba.sum(axis=1)[:, None]


def constant(y, k, n, rng, confidence, accuracy=None):
    """Return guesses of one confidence: the largest class, a model's, or at random."""
    guess = posterior(y, k, n, rng).argmax(axis=1)
    if accuracy == "majority":
        guess = np.full(len(y), np.bincount(y).argmax())
    elif accuracy is not None:
        wrong = rng.random(len(y)) > accuracy
        guess = np.where(wrong, (y + rng.integers(1, k, len(y))) % k, y)
    return hard(guess, k, confidence)


def confident_errors(y, k, n, rng):
    """Return confident guesses that take a fifth of the last class for the first."""
    guess = np.where((y == k - 1) & (rng.random(len(y)) < 0.2), 0, y)
    return hard(guess, k, rng.uniform(0.97, 1, len(y)))


def rare_errors(y, k, n, rng, kind, rate, soft=False):
    """Return guesses with `rate` errors in a sample of n, all of one kind."""
    to = 0 if kind == "alarms" else 1
    among = np.flatnonzero(y != 0 if kind == "alarms" else y == 0)
    n_wrong = min(max(1, round(rate * len(y) / n)), len(among))
    guess = y.copy()
    guess[rng.choice(among, n_wrong, replace=False)] = to
    return hard(guess, k, rng.uniform(0.9, 1, len(y)) if soft else 1.0)


PROXIES = {
    "perfect": lambda y, k, n, rng: hard(y, k),
    "weak": partial(posterior, signal=0.7),
    "good": posterior,
    "strong": partial(posterior, signal=4.0),
    "overconfident": partial(posterior, signal=1.5, sharpness=4.0),
    "overconfident strong": partial(posterior, signal=3.0, sharpness=3.0),
    "heavy tails": partial(posterior, tails=1.5),
    "majority .6": partial(constant, confidence=0.6, accuracy="majority"),
    "majority .97": partial(constant, confidence=0.97, accuracy="majority"),
    "shares": lambda y, k, n, rng: np.tile(np.bincount(y) / len(y), (len(y), 1)),
    "constant .6": partial(constant, confidence=0.6),
    "constant .8": partial(constant, confidence=0.8),
    "constant .9": partial(constant, confidence=0.9, accuracy=0.9),
    "constant .95": partial(constant, confidence=0.95, accuracy=0.97),
    "constant .99": partial(constant, confidence=0.99, accuracy=0.8),
    "wrong way round": lambda *a: np.roll(posterior(*a), 1, axis=1),
    "independent": lambda y, k, n, rng: hard(rng.permutation(y), k, 0.98),
    "confident errors": confident_errors,
}
RARE = {
    f"{kind} {rate:g}/n{', soft' * soft}": partial(
        rare_errors, kind=kind, rate=rate, soft=soft
    )
    for kind in ("alarms", "misses", "A for B")
    for rate in (1, 1.5, 2, 3)
    for soft in (False, True)
}
NUMBERS = {
    "normal": lambda m, rng: rng.normal(5, 2, m),
    "lognormal 1": lambda m, rng: rng.lognormal(0, 1, m),
    "lognormal 1.5": lambda m, rng: rng.lognormal(0, 1.5, m),
    "ratings": lambda m, rng: rng.choice(5, m, p=[0.05, 0.05, 0.1, 0.3, 0.5]) + 1.0,
} | {
    f"{zeros:.0%} zeros": lambda m, rng, zeros=zeros: (
        (rng.random(m) > zeros) * (1.0 + rng.poisson(2, m))
    )
    for zeros in (0.6, 0.8, 0.9, 0.97)
}


def list_cells():
    """Return all cells: factors of the families are crossed, except for proxies.

    Each proxy meets six sizes and profiles, by strides that share no factor with them.
    """
    exact = [(*size, share) for size, share in product(SIZES, SHARES)]
    exact += [(20_000, n, round(0.17 / n, 5)) for n in (20, 40, 100, 300)]
    cells = [Cell("exact", n_pool, n, f"{share:g}", "") for n_pool, n, share in exact]
    profiles = [*PROFILES]
    for i, proxy in enumerate(PROXIES):
        for j in range(6):
            size = SIZES[(5 * i + 7 * j) % len(SIZES)]
            profile = profiles[(3 * i + 5 * j) % len(profiles)]
            cells.append(Cell("classes", *size, profile, proxy))
    small = ((50, 20), (400, 100), (400, 300), (2000, 100), (20_000, 300))
    for proxy in RARE:
        own = ("4 equal",) if proxy[0] == "A" else ("0.5", "0.2")
        if "soft" in proxy:
            own = own[:1] if "1.5" in proxy else ()
        cells += [Cell("classes", *size, one, proxy) for size in small for one in own]
    sizes = ((400, 40), (400, 100), (2000, 100), (2000, 300))
    kinds = (("0.5", "1.5"), ("0.1", "3"), ("4 equal", "2"))
    cells += [Cell("trained", *size, *kind) for size, kind in product(sizes, kinds)]
    sizes, shares = ((400, 40), (400, 200), (2000, 100)), ("0.02", "0.05", "0.2", "0.5")
    kinds = product(sizes, shares, ("half", "half, model", ".95", ".95, model"))
    cells += [Cell("draws", *size, *kind) for size, *kind in kinds]
    sizes = ((100, 40), (400, 20), (2000, 12), (2000, 100), (20_000, 300))
    kinds = product(sizes, NUMBERS, ("none", "good", "useless"))
    cells += [Cell("means", *size, *kind) for size, *kind in kinds]
    return cells


# Tallies ------------------------------------------------------------------------------


def wilson(share, n_items, left):
    """Return limits of Wilson's interval of labels alone, in a finite pool."""
    size, z = n_items / left, 1.959964
    center = (share + z**2 / (2 * size)) / (1 + z**2 / size)
    half = np.sqrt(share * (1 - share) / size + z**2 / (4 * size**2)) * z
    half /= 1 + z**2 / size
    return max(0.0, center - half), min(1.0, center + half)


class Tally:
    """How often the intervals of each measure hold, and how wide they are."""

    def __init__(self, only=""):
        self.only, self.counts = only, defaultdict(lambda: np.zeros(8))

    def add(self, measure, part, found, truth, limits=None, weight=1.0, most=1.0):
        """Add an estimate; `limits` are those of labels alone, `most` the widest."""
        if not measure.startswith(self.only) or not np.isfinite(truth):
            return
        row = self.counts[f"{measure}|{part}"]
        row[0] += weight
        if found is None or found.value is None or found.interval is None:
            row[1] += weight
            return
        low, high = found.interval
        row[3] += weight * (truth > high + 1e-9)
        row[4] += weight * (truth < low - 1e-9)
        if not high - low < most - 1e-9:
            row[2] += weight
        elif limits is not None:
            row[5:] += weight * np.array([high - low, limits[1] - limits[0], 1])

    def figures(self):
        """Return a dict of measure and part to figures."""
        names = ("n", "refused", "whole", "above", "below", "width", "plain", "widths")
        return {
            key: dict(zip(names, row.round(6).tolist(), strict=True))
            for key, row in self.counts.items()
        }


class Pool:
    """Classes (n,) and probabilities (n, k) of all items, and the true measures."""

    def __init__(self, y, proba):
        self.y, self.proba, self.k = y, proba, proba.shape[1]
        self.predicted = proba.argmax(axis=1)
        self.shares = np.bincount(y, minlength=self.k) / len(y)
        self.confidence = proba.max(axis=1).mean()
        self.truth = measure(y, self.predicted, self.k)


def measure(y, predicted, k):
    """Return measures of predictions, a number or one for each class."""
    both = np.bincount(y[y == predicted], minlength=k)
    right, found = np.bincount(y, minlength=k), np.bincount(predicted, minlength=k)
    with np.errstate(invalid="ignore", divide="ignore"):
        f1 = 2 * both / (right + found)
        return {
            "accuracy": both.sum() / len(y),
            "precision": both / found,
            "recall": both / right,
            "f1": f1,
            "macro F1": np.nanmean(f1),
        }


def compare(tally, pool, rows, *, way="", rest=None, alone=False):
    """Estimate shares and quality from some rows, and add them to a tally.

    `rest` are the measures of the items without a label, another truth. `alone` are
    estimates without the probabilities of the pool as well.
    """
    y, guess, own, k = pool.y[rows], pool.predicted[rows], pool.proba[rows], pool.k
    n, known = len(rows), {"classes": list(range(k))}
    left = 1 - n / len(pool.y)
    shown = sorted({0, 1, k - 1})
    if tally.only in ("", "share"):
        found = estimation.estimate_prevalence(y, own, pool.proba, **known).estimates
        for j in shown:
            plain = wilson(np.mean(y == j), n, left)
            key = f"share{way}", j, found[None, j], pool.shares[j]
            tally.add(*key, plain, most=left)
    if tally.only == "share":
        return
    right, plain = y == guess, {"accuracy": wilson(np.mean(y == guess), n, left)}
    for j in shown:
        parts = {"precision": guess == j, "recall": y == j}
        for name, part in (parts | {"f1": (guess == j) | (y == j)}).items():
            limits = np.array(
                wilson(right[part].mean(), part.sum(), left) if part.any() else (0, 1)
            )
            plain[name, j] = 2 * limits / (1 + limits) if name == "f1" else limits
    for both in ((own, pool.proba), (own,))[: 1 + alone]:
        options = {"n_pool": len(pool.y), "cross_fitted": rest is not None}
        quality = estimation.estimate_quality(y, guess, *both, **options, **known)
        truths = [("", pool.truth)] + ([(" of the rest", rest)] if rest else [])
        for ending, truth in truths:
            name = f"{way}{ending}{', labels alone' * (len(both) == 1)}"
            add_quality(tally, name, quality, truth, plain, shown)
        gap, limits = pool.confidence - pool.truth["accuracy"], plain["accuracy"]
        name = f"overconfidence{way}{', no pool_proba' * (len(both) == 1)}"
        tally.add(name, "", quality.overconfidence, gap, limits, most=left)


def add_quality(tally, ending, quality, truth, plain, shown):
    """Add the measures of a QualityEstimate to a tally."""
    accuracy = quality.accuracy, truth["accuracy"], plain["accuracy"]
    left = 1 - quality.accuracy.n_labels / quality.accuracy.n_pool
    tally.add(f"accuracy{ending}", "", *accuracy, most=left)
    tally.add(f"macro F1{ending}", "", quality.macro_f1, truth["macro F1"], (0, 1))
    for j in shown:
        for name in PARTS:
            one = getattr(quality.classes[j], name)
            tally.add(f"{name}{ending}", j, one, truth[name][j], plain[name, j])


# Families of cells --------------------------------------------------------------------


def run_exact(cell, tally, n_samples, rng):
    """Estimate a share from each count of the sample, with its probability."""
    n_pool, n = cell.n_pool, cell.n
    n_true = max(1, round(float(cell.profile) * n_pool))
    for count in range(n + 1):
        chance = hypergeom.pmf(count, n_pool, n_true, n)
        if chance > 1e-9:
            y, left = np.arange(n) < count, 1 - n / n_pool
            found = estimation.estimate_share(y, n_pool=n_pool)
            plain = wilson(y.mean(), n, left)
            key = "share, labels alone", "", found, n_true / n_pool, plain
            tally.add(*key, weight=chance, most=left)


def run_classes(cell, tally, n_samples, rng):
    """Draw samples of pools with a proxy."""
    y = draw_classes(cell.n_pool, PROFILES[cell.profile])
    make = (PROXIES | RARE)[cell.proxy]
    alone = cell.proxy in PROXIES or " 1/n" in cell.proxy
    for place in range(n_samples):
        if place % -(-n_samples // N_POOLS) == 0:
            pool = Pool(y, make(y, y[-1] + 1, cell.n, rng))
        rows = rng.choice(len(y), cell.n, replace=False)
        compare(tally, pool, rows, alone=alone)


def run_trained(cell, tally, n_samples, rng):
    """Train a model on each sample, which it predicts out-of-fold."""
    y = draw_classes(cell.n_pool, PROFILES[cell.profile])
    k = int(y.max()) + 1
    for place in range(n_samples):
        if place % -(-n_samples // N_POOLS) == 0:
            X = rng.normal(size=(len(y), 10)) + float(cell.proxy) * np.eye(10)[y]
        rows = rng.choice(len(y), cell.n, replace=False)
        pool = Pool(y, predict_all(X, y, rows, k, seed=place))
        left = np.delete(np.arange(len(y)), rows)
        rest = measure(y[left], pool.predicted[left], k)
        compare(tally, pool, rows, way=", trained", rest=rest)


def run_draws(cell, tally, n_samples, rng):
    """Draw one after another by the doubt of a model, and estimate a share."""
    y = draw_classes(cell.n_pool, PROFILES[cell.profile])
    part = 0.5 if cell.proxy.startswith("half") else 0.95
    for place in range(n_samples):
        if place % -(-n_samples // N_POOLS) == 0:
            proba = posterior(y, 2, cell.n, rng)
            doubt = 1 - proba.max(axis=1)
            chance = (1 - part) / len(y) + part * doubt / doubt.sum()
        rows = np.argsort(rng.exponential(size=len(y)) / chance)[: cell.n]
        left = 1 - np.r_[0, np.cumsum(chance[rows])[:-1]]
        both = (proba[rows, 0], proba[:, 0]) if "model" in cell.proxy else ()
        own, q = y[rows] == 0, np.minimum(chance[rows] / left, 1)
        found = estimation.estimate_share(own, *both, n_pool=len(y), draw_proba=q)
        plain = wilson(np.mean(y == 0), cell.n, 1 - cell.n / len(y))
        tally.add("share, draw_proba", "", found, np.mean(y == 0), plain)


def run_means(cell, tally, n_samples, rng):
    """Estimate means of numbers from samples of pools."""
    for place in range(n_samples):
        if place % -(-n_samples // N_POOLS) == 0:
            values = NUMBERS[cell.profile](cell.n_pool, rng)
            noise = rng.normal(0, values.std(), cell.n_pool)
            proxy = 0.4 * noise + values if cell.proxy == "good" else noise
        rows = rng.choice(cell.n_pool, cell.n, replace=False)
        both = () if cell.proxy == "none" else (proxy[rows], proxy)
        found = estimation.estimate_mean(values[rows], *both, n_pool=cell.n_pool)
        half = t.isf(0.025, cell.n - 1) * values[rows].std(ddof=1)
        half *= np.sqrt(1 / cell.n - 1 / cell.n_pool)
        tally.add("mean", "", found, values.mean(), (-half, half), most=np.inf)


FAMILIES = {
    "exact": (run_exact, ("share",)),
    "classes": (run_classes, MEASURES),
    "trained": (run_trained, MEASURES),
    "draws": (run_draws, ("share",)),
    "means": (run_means, ("mean",)),
}


def run(cell, n_samples, only, code):
    """Return the record of a cell."""
    name, tally, began = name_of(cell), Tally(only), time.perf_counter()
    seed = hashlib.sha256(f"{name} {n_samples}".encode()).digest()
    rng = np.random.default_rng(list(seed))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        FAMILIES[cell.family][0](cell, tally, n_samples, rng)
    record = {"cell": name, "samples": n_samples, "only": only, "code": code}
    seconds = round(time.perf_counter() - began, 3)
    return record | {"seconds": seconds, "figures": tally.figures()}


# Summary ------------------------------------------------------------------------------


def find_cases(records):
    """Return a dict of measure to (coverage, cell, class, figures) of its cases."""
    cases = defaultdict(list)
    for record in records:
        for key, row in record["figures"].items():
            answers, exact = row["n"] - row["refused"], row["n"] < 1.5
            coverage = np.nan
            if answers >= LEAST_ANSWERS or exact:
                coverage = 1 - (row["above"] + row["below"]) / answers
            name, part = key.split("|")
            cases[name].append((coverage, record["cell"], part, row))
    return cases


def list_figures(measure, found):
    """Return the row of a measure."""
    coverage = np.array([case[0] for case in found])
    total = {key: sum(row[key] for *_, row in found) for key in found[0][3]}
    total = {key: value / total["n"] for key, value in total.items()}
    refusing = np.mean([row["refused"] > row["n"] / 2 for *_, row in found])
    widths = [row["width"] / row["plain"] for *_, row in found if row["plain"]]
    return (
        f"{measure}|{len(found)}|{np.nanmean(coverage):.1%}|{np.nanmin(coverage):.1%}|"
        f"{(coverage < LOW).sum()}|{total['above']:.1%} : {total['below']:.1%}|"
        f"{refusing:.0%}|{total['whole']:.1%}|{np.mean(widths or np.nan):.2f}"
    )


def write_summary(records, n_shown):
    """Print a table of the measures and the cases whose coverage is low.

    Widths are relative to those of labels alone, for macro F1 to one. Cases are a class
    of a cell, or a cell.
    """
    cases = find_cases(records)
    head = "measure|cases|coverage|least|below 92 %|truth above : below"
    rows = (list_figures(*case) for case in cases.items())
    print_rows(f"{head}|refuses most|0 to 1|width", rows)
    for measure, found in cases.items():
        low = sorted((case for case in found if case[0] < LOW), key=lambda c: c[0])
        if low:
            print(f"\n{measure}: {len(low)} cases below 92 %, the worst first")
        for coverage, cell, part, row in low[:n_shown]:
            answers = row["n"] - row["refused"]
            above, below = row["above"] / answers, row["below"] / answers
            print(
                f"  {coverage:.1%} (truth above {above:.1%}, below {below:.1%}; "
                f"{answers:.0f} answers of {row['n']:.0f}) {cell}"
                + (f", class {part}" if part else "")
            )


def name_of(cell):
    return ", ".join(map(str, cell))


def choose_cells(args):
    """Return the cells of the families; a third of them if it has to be quick."""
    families = args.families
    if args.only:
        families = [f for f in families if args.only in FAMILIES[f][1]]
    if not families:
        sys.exit(f"--only must be one of {', '.join((*MEASURES, 'mean'))}.")
    cells = [cell for cell in list_cells() if cell.family in families]
    if args.quick:
        codes = {c: hashlib.sha256(repr(c).encode()).digest() for c in cells}
        cells = sorted(cells, key=lambda c: (c.family, codes[c]))[::3]
    if args.smoke:
        cells = [*{cell.family: cell for cell in cells}.values(), *cells[::30]]
    return list(dict.fromkeys(cells))


def main():
    args = parse(__doc__, only="")
    n_samples = args.samples or (100 if args.quick else 300)
    cells = choose_cells(args)
    files = [*sorted(Path(estimation.__file__).parent.glob("*.py")), Path(__file__)]
    code = hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()[:8]
    kept = Records(args.out)
    print(f"skactive of {files[0].parent}, {code}", file=sys.stderr)

    def find():
        """Return the records of this code by cell: the last ones."""
        wanted = code, args.only
        return {r["cell"]: r for r in kept if (r["code"], r["only"]) == wanted}

    def play(chosen, n_samples):
        known = find()
        had = {name for name, r in known.items() if r["samples"] >= n_samples}
        chosen = [cell for cell in chosen if name_of(cell) not in had]
        kept.run(run, [(c, n_samples, args.only, code) for c in chosen], args.jobs)
        known = find()
        return [known[name_of(cell)] for cell in cells]

    warnings.filterwarnings("ignore", "Mean of empty slice|All-NaN")
    records = play(cells, n_samples)
    if args.again:
        cases = [case for found in find_cases(records).values() for case in found]
        low = {cell for coverage, cell, *_ in cases if coverage < LOW}
        again = [c for c in cells if name_of(c) in low and c.family != "exact"]
        records = play(again, args.again)
    write_summary(records, args.shown)
    seconds = sum(record["seconds"] for record in records)
    print(f"\n{len(records)} cells, {seconds:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
