"""Candidates judged where they lie in the pool, and gaps without probabilities."""

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

from skactive._math import _scores as measures
from skactive.view import PoolView

WIDE = np.random.default_rng(0).normal(size=(3000, 100)).astype(np.float32)
SIDES = (WIDE[:, 0] > 0).astype(int)


@pytest.mark.long
@pytest.mark.parametrize("model", [LogisticRegression(), LinearDiscriminantAnalysis()])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
@pytest.mark.parametrize(
    "candidates",
    [
        np.delete(np.arange(3000), [5, 6, 900]),  # close together: no copy
        np.random.default_rng(1).permutation(3000)[:2500],
        np.arange(0, 3000, 7),  # far apart
        np.array([2999]),
    ],
    ids=["close", "mixed", "apart", "one"],
)
def test_a_linear_model_judges_candidates_where_they_lie(
    model, k, method, candidates, monkeypatch
):
    monkeypatch.setattr("skactive.view._quantities.chunk_size", lambda *_: 700)
    y = SIDES + (WIDE[:, 1] > 1) if k == 3 else SIDES
    fitted = clone(model).fit(WIDE[:500], y[:500])
    if method == "decision_function":
        monkeypatch.delattr(type(fitted), "predict_proba")
    view = PoolView(WIDE, estimator=fitted).take(candidates)
    expected = getattr(fitted, method)(WIDE[candidates])
    if expected.ndim == 1:
        expected = np.stack([-expected / 2, expected / 2], axis=1)
    assert_allclose(view.class_scores, expected, rtol=1e-4, atol=1e-5)
    # Looking at a part of the part is the same.
    part = view.take(np.arange(len(candidates))[::-1])
    assert_allclose(part.class_scores, view.class_scores[::-1])


def test_what_is_not_finite_matters_among_the_candidates_only():
    X = WIDE.copy()
    X[700, 3], X[900, 5] = np.nan, np.inf
    fitted = LogisticRegression().fit(WIDE[:500], SIDES[:500])
    view = PoolView(X, estimator=fitted)
    fine = np.delete(np.arange(3000), [700, 900])
    assert_allclose(
        view.take(fine).proba, fitted.predict_proba(X[fine]), rtol=1e-4, atol=1e-6
    )
    for bad in (700, 900):
        with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
            view.take(np.arange(bad, 3000, 100)).margins  # noqa: B018


def test_margins_are_the_gaps_of_the_scores_or_order_as_they_do():
    linear = LogisticRegression().fit(WIDE[:500], SIDES[:500])
    view = PoolView(WIDE, estimator=linear)
    assert_allclose(view.margins, np.abs(linear.decision_function(WIDE)), rtol=1e-6)
    gaps = measures.margin(linear.predict_proba(WIDE))
    assert_array_equal(np.argsort(view.margins)[:500], np.argsort(gaps)[:500])
    assert "proba" not in view._computed
    # Where probabilities are known, three classes, or a model that is not linear.
    view = PoolView(WIDE, estimator=linear)
    assert len(view.proba) == 3000
    assert_allclose(view.margins, gaps, rtol=1e-4, atol=1e-6)
    for model, y in (
        (LogisticRegression(), SIDES + (WIDE[:, 1] > 1)),
        (RandomForestClassifier(5, random_state=0), SIDES),
    ):
        model.fit(WIDE[:200], y[:200])
        found = PoolView(WIDE, estimator=model).margins
        assert_allclose(found, measures.margin(model.predict_proba(WIDE)), rtol=1e-4)
    view = PoolView(WIDE, estimator=linear, requires=frozenset({"proba"}))
    with pytest.raises(AttributeError, match="class_scores"):
        view.margins  # noqa: B018


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blas_is_on_one_thread_while_a_small_pool_is_judged(n_jobs, monkeypatch):
    seen = []
    # Another test may have loaded a library since it was looked for them.
    monkeypatch.setattr("skactive._utils._repeatable._GATE.controller", None)

    class Spy(LogisticRegression):
        def decision_function(self, X):
            info = threadpool_info()
            seen.extend(i["num_threads"] for i in info if i["user_api"] == "blas")
            return super().decision_function(X)

    model = Spy().fit(WIDE[:500], SIDES[:500])

    def look():
        seen.clear()
        with (
            threadpool_limits(2, user_api="blas"),
            parallel_config("threading", n_jobs=n_jobs),
        ):
            PoolView(WIDE, estimator=model).margins  # noqa: B018
        return set(seen)

    assert look() == {1}
    monkeypatch.setattr("skactive.view._quantities._SMALL", 1000)
    assert look() == ({2} if n_jobs == 1 else {1})
