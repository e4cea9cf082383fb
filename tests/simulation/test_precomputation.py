"""Features that are kept are computed before the first round, and only those."""

from time import process_time, sleep

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skactive import ActiveLearner, simulate
from skactive.bert import BertFeatures

from ._helpers import X, y


class Slow(TransformerMixin, BaseEstimator):
    """Double what comes; like BertFeatures, without a fit."""

    seen = ()

    def __init__(self, cache="memory"):
        self.cache = cache

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        type(self).seen += (len(X),)
        end = process_time() + 0.01
        while process_time() < end:
            pass
        return 2 * X

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


def run_slowly(*steps, **options):
    Slow.seen = ()
    learner = ActiveLearner(
        make_pipeline(*steps, LogisticRegression()), batch_size=5, random_state=0
    )
    options = {
        "n_initial": 6,
        "n_rounds": 2,
        "X_test": X[:50],
        "y_test": y[:50],
    } | options
    return simulate(learner, X, y, **options), Slow.seen


@pytest.mark.parametrize("front", [(Slow(),), ("passthrough", Slow(None), Slow())])
def test_features_that_are_kept_come_first(front):
    run, seen = run_slowly(*front)
    n = sum(isinstance(step, Slow) for step in front)
    assert seen[: 2 * n] == (80,) * n + (50,) * n
    assert seen[2 * n] == 6
    assert run.ledger["precomputation"] >= 0.02 * n

    plain, seen = run_slowly(*front, precompute=False)
    assert seen[0] == 6
    assert plain == run
    assert plain.ledger["precomputation"] == 0
    _, seen = run_slowly(*front, X_test=None, y_test=None)
    assert seen[: n + 1] == (80,) * n + (6,)


@pytest.mark.long
def test_seconds_are_those_of_the_processor():
    class Waiting(Slow):
        def transform(self, X):
            sleep(0.3)
            return X

    run, _ = run_slowly(Waiting())
    assert sum(run.ledger.values()) < 0.6  # it waits for 0.3 s in each of many calls


@pytest.mark.parametrize("front", [(Slow(None),), (StandardScaler(), Slow())])
def test_only_cached_first_steps_are_precomputed(front):
    run, seen = run_slowly(*front)
    assert seen[0] == 6
    assert run.ledger["precomputation"] == 0


@pytest.mark.long
def test_bert_features_are_precomputed(tiny_bert):
    texts = [f"a story of number {i}" for i in range(30)]
    learner = ActiveLearner(
        make_pipeline(BertFeatures(tiny_bert, max_length=64), LogisticRegression()),
        random_state=0,
        batch_size=5,
    )
    run = simulate(learner, texts, np.arange(30) % 2, n_initial=5, n_rounds=2)
    assert run.ledger["precomputation"] > 0
