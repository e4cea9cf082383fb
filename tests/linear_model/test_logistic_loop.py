"""In the loop: a solution is carried from model to model, and threads are few."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

from skactive import ActiveLearner, get_strategy, simulate
from skactive._utils._pipelines import carries_over
from skactive._utils._repeatable import one_blas_thread
from skactive.linear_model import SequentialLogisticRegression

from ._helpers import error, exact, make

# In the loop


def test_a_learner_carries_the_solution_from_model_to_model():
    X, y = make(2)
    learner = ActiveLearner(SequentialLogisticRegression(warm_start=True))
    learner.fit(X[:60], y[:60]).teach(X[60:61], y[60:61])
    last = learner.estimator_
    inverse = last._inverse.copy()
    learner.teach(X[61:62], y[61:62])
    assert learner.estimator_ is not last
    np.testing.assert_array_equal(last._inverse, inverse)
    assert learner.estimator_.n_iter_[0] < 12
    assert error(learner.estimator_, exact(X[:62], y[:62])) <= 1e-3
    assert not hasattr(learner.estimator, "coef_")
    # `fit` forgets: what follows is what a new learner does.
    learner.fit(X[:70], y[:70])
    fresh = clone(learner).fit(X[:70], y[:70])
    np.testing.assert_array_equal(learner.estimator_.coef_, fresh.estimator_.coef_)


def test_a_learner_carries_the_last_step_of_a_pipeline_over():
    X, y = make(2)
    pipeline = make_pipeline(
        StandardScaler(), SequentialLogisticRegression(warm_start=True)
    )
    learner = ActiveLearner(pipeline).fit(X[:60], y[:60])
    learner.teach(X[60:62], y[60:62]).refit()
    assert learner.estimator_[-1].n_iter_[0] == 0
    scaled = learner.estimator_[0].transform(X[:62])
    assert error(learner.estimator_[-1], exact(scaled, y[:62])) <= 1e-3


def test_a_learner_gives_scikit_learns_own_models_a_fresh_start():
    X, y = make(2)
    learner = ActiveLearner(LogisticRegression(warm_start=True))
    learner.fit(X[:60], y[:60]).teach(X[60:], y[60:])
    fresh = LogisticRegression().fit(X, y)
    np.testing.assert_array_equal(learner.estimator_.coef_, fresh.coef_)


def test_what_carries_a_solution_over():
    on, off = (SequentialLogisticRegression(warm_start=w) for w in (True, False))
    assert carries_over(on)
    assert carries_over(make_pipeline(StandardScaler(), on))
    assert not carries_over(off)
    assert not carries_over(make_pipeline(on, off))
    assert not carries_over(LogisticRegression(warm_start=True))


def test_training_that_fails_leaves_the_last_model():
    X, y = make(2)
    learner = ActiveLearner(SequentialLogisticRegression(warm_start=True))
    learner.fit(X[:60], y[:60]).teach(X[60:61], y[60:61])
    before = learner.predict_proba(X)
    X_bad = X[61:62].copy()
    X_bad[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        learner.teach(X_bad, y[61:62])
    np.testing.assert_array_equal(learner.predict_proba(X), before)
    assert len(learner.y_labeled_) == 61


@pytest.mark.long
@pytest.mark.parametrize("stop_after", [1, 7])
def test_a_simulation_that_goes_on_is_that_of_one_go(tmp_path, stop_after):
    X, y = make(2, n=200)
    model = SequentialLogisticRegression(warm_start=True, tol=1e-2)
    learner = ActiveLearner(model, batch_size=1, random_state=0)
    given = {"n_initial": 10, "n_rounds": 30, "X_test": X, "y_test": y}
    whole = simulate(learner, X, y, **given)

    calls = iter(range(stop_after + 2))

    def scoring(estimator, X, y):
        next(calls)
        return estimator.score(X, y)

    scoring.__qualname__ = "scoring"
    given["scoring"] = scoring
    with pytest.raises(Exception):  # noqa: B017, PT011
        simulate(learner, X, y, folder=tmp_path, **given)
    calls = iter(range(100))
    resumed = simulate(learner, X, y, folder=tmp_path, **given)
    np.testing.assert_array_equal(resumed.queried, whole.queried)
    np.testing.assert_array_equal(resumed.scores, whole.scores)


@pytest.mark.long
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", ["bald", "badge", "egl", "dfal", "entropy", "coreset"])
def test_strategies_that_look_into_a_logistic_model(name, k):
    X, y = make(k)
    strategy = get_strategy(name)
    picks = [
        ActiveLearner(model, strategy, random_state=0)
        .fit(X[:60], y[:60])
        .query(X[60:], 5)
        for model in (
            SequentialLogisticRegression(tol=1e-10),
            LogisticRegression(tol=1e-10, max_iter=10_000),
        )
    ]
    np.testing.assert_array_equal(*picks)


# Threads


def blas_threads():
    info = threadpool_info()
    return {lib["num_threads"] for lib in info if lib["user_api"] == "blas"}


def test_the_limit_of_threads_ends_with_the_last_inside():
    with threadpool_limits(limits=2, user_api="blas"):
        outer, inner = one_blas_thread(), one_blas_thread()
        outer.__enter__()
        inner.__enter__()
        assert blas_threads() == {1}
        outer.__exit__(None, None, None)  # not in the order of entry
        assert blas_threads() == {1}
        inner.__exit__(None, None, None)
        assert blas_threads() == {2}
        with pytest.raises(KeyError), one_blas_thread():
            raise KeyError
        assert blas_threads() == {2}
        with one_blas_thread(False):
            assert blas_threads() == {2}


def test_a_limit_that_another_library_has_lifted_is_set_again():
    with threadpool_limits(limits=2, user_api="blas"):
        outer, inner = one_blas_thread(), one_blas_thread()
        theirs = threadpool_limits(limits=1, user_api="blas")
        outer.__enter__()
        theirs.restore_original_limits()  # in another thread
        assert blas_threads() == {2}
        inner.__enter__()
        assert blas_threads() == {1}
        inner.__exit__(None, None, None)
        outer.__exit__(None, None, None)


@pytest.mark.parametrize("n", [50, 3000])
def test_a_learner_trains_with_one_thread_of_blas(n):
    seen = []

    class Spy(LogisticRegression):
        def fit(self, X, y):
            seen.append(blas_threads())
            return super().fit(X, y)

    X, y = make(2, n=3000)
    with threadpool_limits(limits=2, user_api="blas"):
        ActiveLearner(Spy()).fit(X[:n], y[:n])
        assert blas_threads() == {2}
    assert seen == [{1}]
