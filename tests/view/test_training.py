"""What the model was trained on: rows, labels and weights behind posterior draws."""

import numpy as np
import pytest
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import make_pipeline as make_sampling_pipeline
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skactive import ActiveLearner
from skactive.strategies import GORAL, PointwiseStrategy

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
y = (X[:, 0] + 0.5 * rng.normal(size=40) > 0) * 1
POOL = rng.normal(size=(5, 2))
WEIGHTS = np.full(40, 25.0)


class Peek(PointwiseStrategy):
    """Keep the spread of the draws' logits."""

    requires = frozenset({"draws"})

    def score(self, view):
        draws = np.array(view.draws(4000))
        Peek.seen = np.log(draws[..., 1] / draws[..., 0]).std(axis=1)
        return np.zeros(len(view))


def spread(learner):
    learner.query(POOL, 1)
    return Peek.seen


def make(estimator=None, strategy=None):
    estimator = estimator or LogisticRegression()
    return ActiveLearner(estimator, strategy or Peek(), random_state=0)


COPIES = np.repeat(X, 25, axis=0), np.repeat(y, 25)


@pytest.mark.parametrize("again", [False, True])
def test_sample_weights_reach_the_draws(again):
    learner = make().fit(X[:30], y[:30], sample_weight=WEIGHTS[:30])
    learner.teach(X[30:], y[30:], sample_weight=WEIGHTS[30:])
    if again:
        learner.refit()
    assert_allclose(spread(learner), spread(make().fit(*COPIES)), rtol=0.1)


def test_sample_weights_reach_the_draws_through_a_pipeline_and_a_search():
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    expected = spread(make(pipe).fit(*COPIES))
    weights = {"logisticregression__sample_weight": WEIGHTS}
    assert_allclose(spread(make(pipe).fit(X, y, **weights)), expected, rtol=0.1)
    search = GridSearchCV(pipe, {"logisticregression__C": [1.0]}, cv=2)
    assert_allclose(spread(make(search).fit(X, y, **weights)), expected, rtol=0.1)


@pytest.mark.parametrize("alias", [True, "importance"])
def test_sample_weights_reach_the_draws_by_metadata_routing(alias):
    expected = spread(make().fit(*COPIES))
    with config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=alias)
        name = "sample_weight" if alias is True else alias
        learner = make(inner).fit(X, y, **{name: WEIGHTS})
        assert_allclose(spread(learner), expected, rtol=0.1)
        piped = make(make_pipeline(inner)).fit(X, y, **{name: WEIGHTS})
        assert_allclose(spread(piped), expected, rtol=0.1)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_sample_weights_reach_the_influences(class_weight):
    model = LogisticRegression(tol=1e-10, max_iter=1000, class_weight=class_weight)
    rounded = np.arange(40) % 3 + 1
    weighted = make(model, GORAL()).fit(X, y, sample_weight=rounded)
    copies = make(model, GORAL()).fit(np.repeat(X, rounded, 0), np.repeat(y, rounded))
    scores = [
        learner.query(POOL, 5, return_scores=True) for learner in (weighted, copies)
    ]
    assert_array_equal(scores[0][0], scores[1][0])
    assert_allclose(scores[0][1], scores[1][1], rtol=1e-5)


@pytest.mark.parametrize("strategy", ["bald", "batchbald", "mc_dropout", "goral"])
def test_labels_of_a_new_class_that_were_only_stored_change_no_query(strategy):
    learner = make(strategy=strategy).fit(X, y)
    learner.teach(X[:2], [7, 7], refit=False)
    assert learner.query(POOL, 2).shape == (2,)


def test_labels_that_were_only_stored_are_not_in_the_draws():
    learner = make().fit(X[:20], y[:20])
    expected = spread(learner)
    learner.teach(np.repeat(X, 10, axis=0), np.repeat(y, 10), refit=False)
    # Other labels, other draws, so equal but for the error of 4,000 draws.
    assert_allclose(spread(learner), expected, rtol=0.1)


def test_labels_that_were_only_stored_are_not_in_the_influences():
    learner = make(strategy=GORAL()).fit(X[:20], y[:20])
    _, expected = learner.query(POOL, 5, return_scores=True)
    learner.teach(X, y, refit=False)
    assert_allclose(learner.query(POOL, 5, return_scores=True)[1], expected)


def test_draws_are_those_of_the_resampled_training_data():
    few = np.r_[np.flatnonzero(y == 0)[:3], np.flatnonzero(y == 1)]
    sampler = RandomOverSampler(random_state=0)
    pipe = make_sampling_pipeline(StandardScaler(), sampler, LogisticRegression())
    found = spread(make(pipe).fit(X[few], y[few]))
    scaled = StandardScaler().fit(X[few])
    rows, labels = sampler.fit_resample(scaled.transform(X[few]), y[few])
    learner = make().fit(rows, labels)
    learner.query(scaled.transform(POOL), 1)
    assert_allclose(found, Peek.seen, rtol=0.1)
