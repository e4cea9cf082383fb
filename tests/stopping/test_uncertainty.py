"""Overall uncertainty: the mean entropy of what is left, below a threshold."""

import math

import numpy as np
import pytest
import scipy.stats
from sklearn.svm import LinearSVC

from skactive import ActiveLearner
from skactive.simulation import Run
from skactive.stopping import OverallUncertainty

from ._helpers import Scripted, _decisions, _learner, _run


@pytest.mark.parametrize(
    ("proba", "expected"),
    [
        # As published with small-text, at the threshold 0.05.
        ([[0.5, 0.5]], False),
        ([[0, 0.5, 0.5, 0], [0, 1, 0, 0], [0, 0, 1, 0]], False),
        ([[0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0]], True),
    ],
)
def test_overall_uncertainty_on_given_probabilities(proba, expected):
    assert _decisions(OverallUncertainty(), [proba]) == [expected]


def test_overall_uncertainty_is_the_mean_over_what_is_left(data):
    X, y = data
    learner = _learner().fit(X[:20], y[:20])
    run = Run([{"queried": range(15)}, {"queried": range(15, 20)}])
    rule = OverallUncertainty()
    rule.check(run, learner, X)
    proba = learner.predict_proba(X[20:])
    expected = np.mean([scipy.stats.entropy(row, base=2) for row in proba])
    assert rule.uncertainties_ == pytest.approx([expected])


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([0.25, 0.25, 0.25, 0.25], 1.0),
        ([0.5, 0.5, 0, 0], 0.5),  # one bit of two
        ([0.2, 0.5, 0.3], 1.029653 / math.log(3)),
        ([0.1, 0.7, 0.2], 0.801819 / math.log(3)),
        ([1, 0, 0], 0.0),
    ],
)
def test_uncertainty_is_a_share_of_the_greatest(row, expected):
    rule = OverallUncertainty()
    _decisions(rule, [[row]])
    assert rule.uncertainties_ == pytest.approx([expected], abs=1e-6)


def test_items_labeled_since_the_stop_set_was_drawn_do_not_count():
    pool = np.arange(4)
    learner = Scripted([[0.5, 0.5], [0.5, 0.5], [1, 0], [1, 0]])
    rule = OverallUncertainty()
    assert not rule.check(_run(), learner, pool)
    assert rule.check(Run([{"queried": []}, {"queried": [0, 1]}]), learner, pool)
    assert rule.uncertainties_ == [0.5, 0.0]


def test_uncertainty_must_fall_below_the_threshold():
    proba = [[0.5, 0.5], [1.0, 0.0]]
    assert not _decisions(OverallUncertainty(0.5), [proba])[0]
    assert _decisions(OverallUncertainty(0.51), [proba])[0]


def test_with_nothing_left_there_is_no_uncertainty():
    learner = Scripted([[0.5, 0.5]] * 2)
    assert not OverallUncertainty().check(Run([{"queried": [0, 1]}]), learner, [0, 1])
    rule = OverallUncertainty(stop_set=[0])
    assert not rule.check(Run([{"queried": [0]}]), learner, [0, 1])
    assert rule.uncertainties_ == []


def test_a_model_without_probabilities_is_refused(data):
    X, y = data
    learner = ActiveLearner(LinearSVC()).fit(X[:20], y[:20])
    with pytest.raises(TypeError, match="needs predict_proba, which LinearSVC lacks"):
        OverallUncertainty().check(_run(), learner, X)
