"""Whether a machine may replace people: the alternative annotator test."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.stats import false_discovery_control, ttest_1samp

from .._utils._checks import check_count, check_option, check_share
from .._utils._labels import key_of
from ._agreement import drop_missing, read_answers
from ._mean import as_numbers

_Verdict = Literal["yes", "no", "cannot tell"]
_MIN_PEOPLE = 3  # fewer say "cannot tell"


@dataclass(frozen=True)
class AlternativeTest:
    """Result of :func:`alternative_annotator_test`.

    Parameters
    ----------
    verdict : {"yes", "no", "cannot tell"}
        Whether the machine may replace people.
    winning_rate : float or None
        Share of the people for whom the test finds the machine to be as good. None for
        fewer than three people with enough items.
    advantage : float or None
        Probability that the machine agrees with the others at least as well as a person
        does, the mean over people.
    p_values : dict of annotator to float
        Corrected p-value for each person with enough items.
    n_items : dict of annotator to int
        Number of items that were compared for each of them.

    Examples
    --------
    >>> from skactive.estimation import AlternativeTest
    >>> print(AlternativeTest("cannot tell"))
    cannot tell: this needs three people with 30 common items each
    """

    verdict: _Verdict
    winning_rate: float | None = None
    advantage: float | None = None
    p_values: dict[Any, float] = field(default_factory=dict)
    n_items: dict[Any, int] = field(default_factory=dict)

    def __str__(self):
        if self.winning_rate is None:
            return f"{self.verdict}: this needs three people with 30 common items each"
        text = (
            f"{self.verdict}: as good as {self.winning_rate:.0%} of "
            f"{len(self.p_values)} people; it agrees at least as well as a person on "
            f"{self.advantage:.0%} of the items"
        )
        return text.replace("%", " %")


def alternative_annotator_test(
    answers: "Mapping[Any, Mapping[Any, Any]]",
    machine: Mapping[Any, Any],
    *,
    epsilon: float = 0.2,
    alpha: float = 0.05,
    min_items: int = 30,
    measure: Literal["accuracy", "distance"] = "accuracy",
) -> AlternativeTest:
    """Test whether a machine may replace people as annotators.

    Each person is left out in turn. On every item, the machine and this person are
    compared by how well they agree with the other people. The machine wins against the
    person if it is at least as good on a share of the items that is not lower by
    `epsilon` or more, at a corrected level. It may replace people if it wins against
    half of them.

    Parameters
    ----------
    answers : dict of id to dict of annotator to label
        The answers of people, given without seeing those of the machine. See
        :attr:`skactive.LabelingSession.answers`.
    machine : dict of id to label
        The answers of the machine. Items without one are left out.
    epsilon : float, default=0.2
        How much worse the machine may be, as it is cheaper: .2 for experts as people,
        .15 for trained and .1 for untrained ones, as the authors advise.
    alpha : float, default=0.05
        False discovery rate over the people.
    min_items : int, default=30
        Fewest items of a person to be counted.
    measure : {"accuracy", "distance"}, default="accuracy"
        How agreement with the others is measured: by the share of equal labels, or for
        numbers by the root of the mean squared difference.

    Returns
    -------
    result : AlternativeTest
        The verdict is "no" if the opposite test finds the machine to be worse than half
        of the people, and "cannot tell" if neither is found, or fewer than three people
        have `min_items` items.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    The tests are one-sided t tests of the mean difference on the items, with the
    correction of Benjamini and Yekutieli for any dependence.

    References
    ----------
    N. Calderon, R. Reichart, R. Dror (2025). The alternative annotator test for
    LLM-as-a-judge: how to statistically justify replacing human annotators with LLMs.
    ACL.

    Examples
    --------
    >>> from skactive.estimation import alternative_annotator_test
    >>> truth = {i: "yes" if i % 3 else "no" for i in range(90)}
    >>> people = {
    ...     i: {j: "no" if (i + j) % 9 == 0 else label for j in range(3)}
    ...     for i, label in truth.items()
    ... }
    >>> alternative_annotator_test(people, truth).verdict
    'yes'
    """
    for name, value in (("epsilon", epsilon), ("alpha", alpha)):
        check_share(name, value, limits=(0,))
    check_count("min_items", min_items, least=2)
    check_option("measure", measure, ("accuracy", "distance"))
    machine, answers = drop_missing("machine", machine), read_answers(answers)
    score = _share_of_equal if measure == "accuracy" else _rms
    wins = _compare(answers, machine, score)
    wins = {by: np.array(rows) for by, rows in wins.items() if len(rows) >= min_items}
    n_items = {by: len(rows) for by, rows in wins.items()}
    if len(wins) < _MIN_PEOPLE:
        return AlternativeTest("cannot tell", n_items=n_items)
    better, worse = (
        _correct([_test(rows, epsilon, side) for rows in wins.values()])
        for side in ("less", "greater")
    )
    rate = float((better <= alpha).mean())
    verdict: _Verdict = "cannot tell"
    if rate >= 0.5:
        verdict = "yes"
    elif (worse <= alpha).mean() >= 0.5:
        verdict = "no"
    advantage = float(np.mean([rows[:, 0].mean() for rows in wins.values()]))
    p_values = dict(zip(wins, better.tolist(), strict=True))
    return AlternativeTest(verdict, rate, advantage, p_values, n_items)


def _compare(answers, machine, score):
    """Return pairs of 0 and 1 by person: whether the machine and the person won."""
    wins = {}
    for id, labels in answers.items():
        if id not in machine:
            continue
        for by in labels:
            others = [label for other, label in labels.items() if other != by]
            if others:
                scores = score(machine[id], others), score(labels[by], others)
                wins.setdefault(by, []).append(
                    (scores[0] >= scores[1], scores[1] >= scores[0])
                )
    return wins


def _share_of_equal(label, others):
    return sum(key_of(label) == key_of(other) for other in others) / len(others)


def _rms(value, others):
    value, *others = as_numbers("answers", [value, *others])
    return -np.sqrt(np.mean(np.square(np.subtract(others, value))))


def _test(rows, epsilon, side):
    """Return the p-value that the person wins more often by less than `epsilon`."""
    difference = rows[:, 1].astype(float) - rows[:, 0]
    if np.ptp(difference) == 0:  # no t test without a variance
        is_below = difference[0] < epsilon
        return float(is_below != (side == "less"))
    return ttest_1samp(difference, epsilon, alternative=side).pvalue


def _correct(p_values):
    return false_discovery_control(p_values, method="by")
