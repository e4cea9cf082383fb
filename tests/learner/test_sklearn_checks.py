"""scikit-learn's own estimator checks on the meta-estimators."""

import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils.estimator_checks import (
    check_estimator,
    parametrize_with_checks,
)

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


@parametrize_with_checks(
    [
        ActiveLearner(LogisticRegression()),
        ActiveLearner(LinearRegression(), strategy="random"),
        SIMULATED,
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# How many checks scikit-learn 1.9 has for each; a change means that tags changed, or
# that scikit-learn did, and wants a look.
@pytest.mark.parametrize(
    ("estimator", "n_checks"),
    [
        (ActiveLearner(LogisticRegression()), 55),
        (ActiveLearner(LinearRegression(), strategy="random"), 53),
    ],
    ids=["classifier", "regressor"],
)
def test_the_whole_suite_runs(estimator, n_checks):
    records = check_estimator(estimator, on_skip=None)
    assert len(records) == n_checks
    assert {r["check_name"] for r in records if r["status"] == "skipped"} <= {
        # Needs SCIPY_ARRAY_API=1 in the environment before scipy is imported.
        "check_array_api_input"
    }
    passed = sum(record["status"] == "passed" for record in records)
    assert passed >= n_checks - 1
