"""scikit-learn's own estimator checks on the meta-estimators."""

from unittest import SkipTest

import pytest
import sklearn
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from skactive import ActiveLearner
from skactive.simulation import SimulatedLearner

SIMULATED = SimulatedLearner(
    ActiveLearner(LogisticRegression(), random_state=0), n_initial=8, n_rounds=3
)


def expected_failures(estimator):
    if isinstance(estimator, SimulatedLearner):
        return {
            "check_fit2d_1sample": (
                "refuses a pool smaller than n_initial, in its own words: the check "
                "wants one of scikit-learn's phrases for a single sample"
            )
        }
    return {}


ESTIMATORS = [
    ActiveLearner(LogisticRegression()),
    ActiveLearner(LinearRegression(), strategy="random"),
    SIMULATED,
]


@pytest.mark.long
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    try:
        check(estimator)
    except SkipTest:
        # It needs SCIPY_ARRAY_API=1 in the environment before scipy is imported.
        assert check.func.__name__ == "check_array_api_input"
        raise


# A change means that the tags of an estimator or scikit-learn's checks have changed.
@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"),
    reason="the numbers are those of scikit-learn 1.9",
)
@pytest.mark.parametrize(
    ("estimator", "n_checks"),
    [(ESTIMATORS[0], 55), (ESTIMATORS[1], 53)],
    ids=["classifier", "regressor"],
)
def test_the_number_of_checks(estimator, n_checks):
    marks = test_scikit_learn_checks.pytestmark
    (mark,) = (mark for mark in marks if mark.name == "parametrize")
    checked = [repr(getattr(param, "values", param)[0]) for param in mark.args[1]]
    assert checked.count(repr(estimator)) == n_checks
