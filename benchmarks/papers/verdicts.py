"""Verdicts on the claims of a paper, with their power and what a decision would cost.

A claim is about a mean of differences between runs of one seed: that it is above a
limit ("more"), below it ("less"), within a margin of it ("alike"), or not different
from it ("same": refuted by any significant difference). The mean is over
the data sets of the claim, each the same weight, and the interval is over seeds (Welch
and Satterthwaite): it says what other seeds would give on these data sets, not what
other data sets would give. Each claim has a two-sided t test against the limit and two
one-sided tests of equivalence within the margin; twice the smaller p is that of the
claim, and the p of all claims of a page are corrected by Benjamini and Hochberg.
"""

from dataclasses import dataclass, field
from itertools import groupby, product
from pathlib import Path

import numpy as np
from common import harness
from scipy.stats import false_discovery_control, nct, t

ALPHA, POWER, MOST_SEEDS = 0.05, 0.8, 10_000
SHOWN = 5  # data sets at most whose means are shown one by one


@dataclass
class Claim:
    """What a paper claims, and the differences that were measured here.

    Attributes
    ----------
    text, paper : str
    values : dict of str to list of float
        For each data set, one difference per seed.
    kind : {"more", "less", "alike", "same"}
    limit, margin : float
        In the unit of the values; a difference below the margin is called none.
    seconds : float
        Of the processor, for one more seed on all data sets of the claim.
    shown : str, optional
        What stands before the figure.
    p_value, holds : float and bool, optional
        Of another test, which has no power here; `values` is empty then.
    """

    text: str
    paper: str
    values: dict
    kind: str = "more"
    limit: float = 0.0
    margin: float = 1.0
    unit: str = "points"
    digits: int = 1
    seconds: float = 0.0
    shown: str = ""
    p_value: float | None = None
    holds: bool = False
    numbers: tuple = field(init=False, default=())

    def __post_init__(self):
        if self.p_value is None and self.n_seeds > 1:
            self.numbers = harness.stratified(self.values)
        elif self.p_value is None:  # one seed has no interval
            self.p_value = 1.0

    @property
    def n_seeds(self):
        return min(len(v) for v in self.values.values())

    def p_values(self):
        """P of a difference from the limit, of equivalence, and of a larger one."""
        mean, error, df = self.numbers
        away = mean - self.limit
        if not error:
            small = abs(away) < self.margin
            return float(not away), float(not small), float(small)
        differs = 2 * t.sf(abs(away) / error, df)
        if self.limit and self.kind != "alike":  # a limit has its room already
            return differs, 1.0, 1.0
        within = t.sf((self.margin - abs(away)) / error, df)
        return differs, within, t.sf((abs(away) - self.margin) / error, df)

    def p_claim(self):
        """P of the claim: twice that of the test that decides best."""
        if self.p_value is not None:
            return self.p_value
        differs, within, beyond = self.p_values()
        return min(1.0, 2 * min(beyond if self.kind == "alike" else differs, within))

    def verdict(self, level):
        """Decide, given the largest p of a test that the correction lets decide."""
        if self.p_claim() > level:
            return "cannot tell"
        if self.p_value is not None:
            return "holds" if self.holds else "does not hold"
        differs, within, beyond = self.p_values()
        if self.kind == "alike":
            return "holds" if within < beyond else "does not hold"
        is_different, is_small = 2 * differs <= level, 2 * within <= level
        if self.kind == "same":
            return "does not hold" if is_different else "holds"
        if not is_different:
            return f"no difference above {self.room()}"
        if (self.numbers[0] > self.limit) != (self.kind == "more"):
            return "does not hold"
        return f"holds, by less than {self.room()}" if is_small else "holds"

    def room(self):
        """Write the margin with its unit."""
        one = self.margin == 1
        return (
            f"{self.margin:g} {self.unit.replace('points', 'point' + 's' * (not one))}"
        )

    def power(self, n, alpha):
        """Power of n seeds for a difference of the margin, or for equivalence at 0."""
        _, error, df = self.numbers
        ratio = n / self.n_seeds
        error, df = error / np.sqrt(ratio), df * (n - 1) / (self.n_seeds - 1)
        if not error:
            return 1.0
        equal = 2 * t.cdf(self.margin / error - t.isf(alpha / 2, df), df) - 1
        if self.kind == "alike":
            return max(0.0, equal)
        equal = 1.0 if self.limit else equal
        detected = nct.sf(t.isf(alpha / 4, df), df, self.margin / error)
        return max(0.0, min(detected, equal))

    def seeds_needed(self, alpha):
        """Smallest number of seeds with a power of 80 %, in steps of 5 percent."""
        n = self.n_seeds
        while n < MOST_SEEDS and self.power(n, alpha) < POWER:
            n = max(n + 1, int(1.05 * n))
        return n


def read_claims(name, measure, loops=None):
    """Measure the claims that the TOML file of a script lists.

    A claim there has fields of :class:`Claim`, whose words in braces are filled in.
    "of" are arguments of `measure`. "each" names a loop: claims with the same one that
    stand together are made in turn for each of its items.

    Parameters
    ----------
    name : str
        Of the script.
    measure : callable
        `measure(item, **of)` returns further fields, or None if there is no such claim.
    loops : dict of str to list of dict, optional
        The items of each loop: words by their names in braces. Key None is for claims
        without "each".

    Returns
    -------
    claims : list of Claim
    """
    claims, loops = [], {None: [{}]} | (loops or {})
    entries = harness.read_toml(Path(__file__).with_name(name))["claims"]
    for each, block in groupby(entries, key=lambda entry: entry.get("each")):
        for item, entry in product(loops[each], block):
            found = measure(item, **entry.get("of", {}))
            if found is not None:
                fields = {k: v for k, v in entry.items() if k not in ("of", "each")}
                fields |= found
                for key in {"text", "paper", "shown"} & fields.keys():
                    fields[key] = fields[key].format(**item)
                claims.append(Claim(**fields))
    return claims


def differ(groups, difference):
    """Return the values and the seconds of a claim on groups of runs.

    Parameters
    ----------
    groups : dict of str to list of list of dict
        For each data set, groups of runs by seed; the seeds that all groups have count.
    difference : callable
        `difference(*groups)` returns one value per seed.
    """
    values, seconds = {}, 0.0
    for name, runs in groups.items():
        seeds = set.intersection(*({r["seed"] for r in group} for group in runs))
        both = [
            sorted((r for r in group if r["seed"] in seeds), key=lambda r: r["seed"])
            for group in runs
        ]
        values[name] = difference(*both)
        distinct = {id(r): r["processor"] for group in both for r in group}
        seconds += sum(distinct.values()) / len(seeds)
    return {"values": values, "seconds": seconds}


def deviations(scores):
    """Distances from the median over the runs, which Brown and Forsythe compare."""
    return np.abs(scores - np.median(scores, axis=0))


def judge(claims):
    """Return for each claim its corrected p and verdict, and the level of a test."""
    p_values = np.array([claim.p_claim() for claim in claims])
    corrected = false_discovery_control(p_values)
    level = ALPHA * max(1, np.sum(corrected <= ALPHA)) / len(claims)
    return corrected, [claim.verdict(level) for claim in claims], level


def judge_first(claims, make_claims, records, settings):
    """Judge the claims on the runs that were planned first, by the same rule.

    Claims without two seeds then are open, and the correction leaves them out.

    Parameters
    ----------
    claims : list of Claim
        On all records.
    make_claims : callable
        `make_claims(records, settings)` measures the claims.
    settings : argparse.Namespace
        `first_seeds` is how many seeds were planned first, and `first_data`, if there
        is one, the data sets; without `first_seeds` there is nothing to judge.

    Returns
    -------
    title : str
        What was planned first.
    cells : list of str
        Verdict and p of each claim, in bold where all records have another verdict.
    """
    n, data = (getattr(settings, k, None) for k in ("first_seeds", "first_data"))
    if n is None:
        return None
    first = [
        r
        for r in records
        if r.get("seed", r.get("index", 0)) < n and (not data or r["data"] in data)
    ]
    found = {claim.text: claim for claim in make_claims(first, settings)}
    if unknown := found.keys() - {claim.text for claim in claims}:
        raise ValueError(f"claims that all records do not have: {unknown}")
    tested = [claim for claim in found.values() if claim.numbers or not claim.values]
    corrected, verdicts, _ = judge(tested)
    texts = [claim.text for claim in tested]
    then = dict(zip(texts, zip(verdicts, corrected, strict=True), strict=True))
    cells = []
    for claim, now in zip(claims, judge(claims)[1], strict=True):
        verdict, q = then.get(claim.text, ("cannot tell", None))
        end = said_p(q) if q is not None else "one value"
        end = end if claim.text in found else "not run"
        mark = "" if kind_of(verdict) == kind_of(now) else "**"
        cells.append(f"{mark}{verdict}{mark}, {end}")
    return f"first {len(data)} data sets" if data else f"first {n} seeds", cells


def kind_of(verdict):
    """Return a verdict without its margin."""
    return verdict.partition(",")[0].partition(" above")[0]


def said_p(p):
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def claims_table(claims, first=None):
    """Write the claims with their verdicts, and what an open one would cost.

    `first` is a column from :func:`judge_first`.
    """
    rows = []
    corrected, verdicts, level = judge(claims)
    for claim, q, verdict in zip(claims, corrected, verdicts, strict=True):
        end = f"**{verdict}**, {said_p(q)}"
        if verdict == "cannot tell" and claim.values:
            n = claim.seeds_needed(level)
            if n > claim.n_seeds and not claim.seconds:
                raise ValueError(f"how long a seed takes is not known: {claim.text}")
            hours = (n - claim.n_seeds) * claim.seconds / 3600
            power = 100 * claim.power(claim.n_seeds, level)
            end += f"; power {power:.0f} %, for 80 % {n} seeds, {hours:,.1f} hours"
        rows.append([claim.text, claim.paper, said(claim), end])
    head = ["claim", "paper", "here", "verdict"]
    if first:
        head.append(first[0])
        rows = [[*row, cell] for row, cell in zip(rows, first[1], strict=True)]
    return harness.table(head, rows)


def summary_table(claims):
    """Count the verdicts."""
    _, verdicts, _ = judge(claims)
    names = [kind_of(verdict) for verdict in verdicts]
    kinds = ["holds", "does not hold", "no difference", "cannot tell"]
    return harness.table(kinds, [[names.count(kind) for kind in kinds]])


def claim_tables(make_claims, records, settings):
    """Make the tables of the claims that `make_claims` measures in the records."""
    claims = make_claims(records, settings)
    first = judge_first(claims, make_claims, records, settings)
    return {"summary": summary_table(claims), "claims": claims_table(claims, first)}


def said(claim):
    """Write the mean with its 95 % interval, and the means of the data sets."""
    if claim.p_value is not None:
        return claim.shown
    mean, error, df = claim.numbers
    half = t.isf(0.025, df) * error
    figures = [f"{x:+.{claim.digits}f}" for x in (mean, mean - half, mean + half)]
    text = f"{claim.shown}{figures[0]} [{figures[1]}, {figures[2]}] {claim.unit}"
    if len(claim.values) > 1:
        means = {name: np.mean(v) for name, v in claim.values.items()}
        parts = [f"{name} {mean:+.{claim.digits}f}" for name, mean in means.items()]
        if len(means) > SHOWN:
            above = sum(mean > claim.limit for mean in means.values())
            parts = [f"above {claim.limit:g} on {above} of {len(means)}"]
        text += f": {', '.join(parts)}"
    most = max(len(v) for v in claim.values.values())
    n = f"{claim.n_seeds} to {most}" if most > claim.n_seeds else claim.n_seeds
    return f"{text}; n = {n}"
