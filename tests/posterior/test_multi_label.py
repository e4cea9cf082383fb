"""Posterior samples of models of several labels."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier

from skactive import ActiveLearner
from skactive.posterior import sample_proba

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
Y = (X + rng.normal(scale=0.5, size=(80, 3)) > 0).astype(int)
POOL = rng.normal(size=(6, 3))


@pytest.mark.parametrize("wrapper", [OneVsRestClassifier, MultiOutputClassifier])
def test_the_draws_of_a_label_are_those_of_its_own_model(wrapper):
    model = wrapper(LogisticRegression()).fit(X, Y)
    draws = sample_proba(model, POOL, 4000, 0, X_train=X, y_train=Y)
    assert draws.shape == (6, 4000, 3)
    for label in range(3):
        part = LogisticRegression().fit(X, Y[:, label])
        alone = sample_proba(part, POOL, 4000, 1, X_train=X, y_train=Y[:, label])
        alone = alone[:, :, 1]
        error = 4 * alone.std(axis=1) / np.sqrt(4000)
        difference = draws[:, :, label].mean(axis=1) - alone.mean(axis=1)
        assert (abs(difference) < 1.5 * error).all()
        ratio = draws[:, :, label].std(axis=1) / alone.std(axis=1)
        np.testing.assert_allclose(ratio, 1.0, atol=0.1)


def test_labels_vary_independently():
    model = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    draws = sample_proba(model, POOL[:1], 4000, 0, X_train=X, y_train=Y)[0]
    correlation = np.corrcoef(draws.T)
    assert abs(correlation[np.triu_indices(3, 1)]).max() < 0.1


def test_a_label_that_no_item_has_is_constant():
    absent = Y.copy()
    absent[:, 1] = 0
    with pytest.warns(UserWarning, match="Label not 1 is present"):
        model = OneVsRestClassifier(LogisticRegression()).fit(X, absent)
    draws = sample_proba(model, POOL, 5, 0, X_train=X, y_train=absent)
    np.testing.assert_array_equal(draws[:, :, 1], 0.0)
    assert draws[:, :, 0].std() > 0


@pytest.mark.parametrize("forest", [RandomForestClassifier, ExtraTreesClassifier])
def test_the_members_of_a_forest_against_its_trees(forest):
    model = forest(5, random_state=0).fit(X, Y)
    draws = sample_proba(model, POOL, 5, 0)
    trees = [
        np.stack([proba[:, 1] for proba in tree.predict_proba(POOL)], axis=1)
        for tree in model.estimators_
    ]
    found = {draws[:, t].tobytes() for t in range(5)}
    assert found == {np.ascontiguousarray(tree).tobytes() for tree in trees}


def test_labels_for_training_must_be_a_matrix():
    model = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    with pytest.raises(ValueError, match="must be an indicator matrix"):
        sample_proba(model, POOL, 5, 0, X_train=X, y_train=Y[:, 0])


def test_besra_runs_on_the_laplace_draws():
    model = OneVsRestClassifier(LogisticRegression())
    learner = ActiveLearner(model, "besra", batch_size=5, random_state=0).fit(X, Y)
    assert len({*learner.query(np.vstack([POOL, X]))}) == 5


def test_lists_have_the_draws_of_arrays():
    model = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    listed = sample_proba(
        model, POOL.tolist(), 5, 0, X_train=X.tolist(), y_train=Y.tolist()
    )
    expected = sample_proba(model, POOL, 5, 0, X_train=X, y_train=Y)
    np.testing.assert_array_equal(listed, expected)
