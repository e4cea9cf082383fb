"""What every strategy shares: scores are checked, ties are spread, functions serve."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from skactive import ActiveLearner
from skactive.registry import FunctionStrategy
from skactive.strategies import PointwiseStrategy, Strategy
from skactive.view import PoolView

X = np.arange(8.0)[:, None]
y = np.array([0, 0, 0, 0, 1, 1, 1, 1])


class Fixed(PointwiseStrategy):
    """Give the scores that it was made with."""

    def __init__(self, scores=None):
        self.scores = scores

    def score(self, view):
        return self.scores


def select(scores, n_queries=2, size=4):
    view = PoolView(X[:size], rng=np.random.default_rng(0))
    return Fixed(scores).select(view, n_queries)


def test_the_highest_scores_are_chosen():
    assert_array_equal(select([0.1, 0.4, 0.3, 0.2]), [1, 2])


def test_scores_may_be_infinite():
    assert_array_equal(select([-np.inf, 0.0, np.inf, -1.0], 4), [2, 1, 3, 0])


@pytest.mark.parametrize(
    "scores", [[0, 3, 2, 1], [False, True, False, False]], ids=["int", "bool"]
)
def test_scores_may_be_whole_numbers(scores):
    assert select(scores, 1) == [1]


@pytest.mark.parametrize(
    ("scores", "shape", "dtype"),
    [
        ([1.0, 2.0], r"\(2,\)", "float64"),
        (np.zeros((4, 1)), r"\(4, 1\)", "float64"),
        (3.0, r"\(\)", "float64"),
        (["a", "b", "c", "d"], r"\(4,\)", "<U1"),
        ([1j, 2, 3, 4], r"\(4,\)", "complex128"),
        ([None] * 4, r"\(4,\)", "object"),
    ],
    ids=["too few", "a column", "one number", "texts", "complex", "objects"],
)
def test_what_is_no_number_per_candidate_is_refused(scores, shape, dtype):
    message = rf"one number per candidate.*\(4,\), got shape {shape} and dtype {dtype}"
    with pytest.raises(ValueError, match=message):
        select(scores)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_is_refused_with_the_place_and_the_remedy(dtype):
    scores = np.array([0, np.nan, 1, np.nan], dtype=dtype)
    message = r"NaN for 2 of 4 candidates, the first at position 1.*-inf ranks it"
    with pytest.raises(ValueError, match=message):
        select(scores)


def test_errors_name_the_strategy():
    with pytest.raises(ValueError, match=r"the strategy Fixed\(scores=\[1\]\)"):
        select([1])


def test_a_strategy_has_to_write_its_method():
    with pytest.raises(TypeError, match=r"abstract method '?select"):
        Strategy()
    with pytest.raises(TypeError, match=r"abstract method '?score"):
        PointwiseStrategy()


def test_a_function_serves_as_a_strategy():
    learner = ActiveLearner(LogisticRegression(), strategy=lambda view: -view.X[:, 0])
    assert_array_equal(learner.fit(X, y).query(X, 3), [0, 1, 2])


def test_a_function_may_look_at_what_the_estimator_gives():
    learner = ActiveLearner(LogisticRegression(), strategy=lambda v: v.proba[:, 1])
    assert_array_equal(learner.fit(X, y).query(X, 3), [7, 6, 5])


def test_a_function_that_looks_at_what_is_not_there_is_told():
    learner = ActiveLearner(GaussianNB(), strategy=lambda view: view.draws(5)[:, 0, 0])
    with pytest.raises(TypeError, match="GaussianNB has no sample_proba"):
        learner.fit(X, y).query(X, 3)


def test_a_wrapped_function_can_be_cloned_and_set():
    strategy = clone(FunctionStrategy(len))
    assert strategy.function is len
    assert strategy.set_params(function=max).function is max


def test_looking_at_more_than_was_declared_is_an_error():
    class Careless(PointwiseStrategy):
        def score(self, view):
            return view.proba[:, 0]

    learner = ActiveLearner(LogisticRegression(), strategy=Careless()).fit(X, y)
    with pytest.raises(AttributeError, match="Add 'proba' to its `requires`"):
        learner.query(X, 2)
