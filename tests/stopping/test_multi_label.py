"""Rules that look at predictions, for several labels per item."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier

from skactive import ActiveLearner, simulate
from skactive.stopping import (
    ClassificationChange,
    KappaAverage,
    OverallUncertainty,
)

from ._helpers import Scripted, _run

RNG = np.random.default_rng(0)
ANSWERS = (RNG.random((4, 30, 3)) < 0.3).astype(int)
POOL = np.arange(30)


def tell(rule, answers, y):
    rule.start()
    for i, answer in enumerate(answers):
        rule.check(_run(i + 1), Scripted(answer, classes=range(3), y=y), POOL)
    return rule


def test_an_item_changes_if_one_of_its_labels_does():
    rule = tell(ClassificationChange(), ANSWERS, ANSWERS[0])
    expected = []
    for before, after in pairwise(ANSWERS):
        changed = sum(
            a.tolist() != b.tolist() for a, b in zip(before, after, strict=True)
        )
        expected.append(changed / 30)
    assert rule.changes_ == pytest.approx(expected)
    assert tell(ClassificationChange(), ANSWERS[[0, 0]], ANSWERS[0]).changes_ == [0]


def test_kappa_compares_each_decision():
    rule = tell(KappaAverage(stop_set=None), ANSWERS, ANSWERS[0])
    expected = [
        cohen_kappa_score(before.ravel(), after.ravel())
        for before, after in pairwise(ANSWERS)
    ]
    assert rule.kappas_ == pytest.approx(expected)


def test_uncertainty_is_the_mean_entropy_of_each_label():
    proba = RNG.random((30, 2))
    rule = tell(OverallUncertainty(), [proba], np.ones((5, 2), dtype=int))
    expected = -np.mean(proba * np.log2(proba) + (1 - proba) * np.log2(1 - proba))
    assert rule.uncertainties_ == pytest.approx([expected])


@pytest.mark.parametrize(
    "model",
    [OneVsRestClassifier(LogisticRegression()), KNeighborsClassifier(3)],
    ids=repr,
)
@pytest.mark.parametrize(
    "rule",
    [
        ClassificationChange(threshold=0.5),
        KappaAverage(n_rounds=1, threshold=0.1),
        OverallUncertainty(0.99),
    ],
    ids=repr,
)
def test_rules_end_a_loop_of_several_labels(model, rule):
    X = RNG.normal(size=(120, 3))
    y = (X > 0).astype(int)
    learner = ActiveLearner(model, "random", batch_size=5, random_state=0)
    run = simulate(
        learner, X, y, n_initial=20, n_rounds=15, stopping=rule, scoring="f1_micro",
        X_test=X, y_test=y,
    )  # fmt: skip
    assert len(run.rounds) < 16
    assert run.stopped_by
