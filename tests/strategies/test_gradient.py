"""EGL, EGL of embeddings and DFAL against autograd and explicit perturbations."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC

from skactive import ActiveLearner
from skactive.strategies import DFAL, EGL, EGLEmbedding
from skactive.testing import check_strategy
from skactive.testing._strategy_cases import GivenProba
from skactive.view import PoolView

LOADERS = {2: load_breast_cancer, 3: load_iris, 10: load_digits}


def load(k, n=40, pool=60):
    """Labeled rows, their labels and a pool of a real data set with k classes."""
    X, y = LOADERS[k](return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))[: n + pool]
    X, y = scale(X[order]), y[order]
    return X[:n], y[:n], X[n:]


def score(strategy, X, model):
    view = PoolView(X, estimator=model, requires=strategy.requires)
    return strategy.score(view)


def assert_asks_highest(learner, X, expected, n=12):
    """The picks are the highest of what an oracle expects, best first."""
    picks = learner.query(X, n)
    assert_allclose(expected[picks], np.sort(expected)[::-1][:n], rtol=1e-9)
    assert len(set(picks)) == n


# Expected gradient length


def softmax_layer(model):
    """Weights and biases with one row per class, whatever scikit-learn keeps."""
    weights, biases = model.coef_, model.intercept_
    if len(weights) == 1:
        weights = np.vstack([-weights / 2, weights / 2])
        biases = np.r_[-biases / 2, biases / 2]
    return [torch.tensor(part, requires_grad=True) for part in (weights, biases)]


def expected_length(model, x, squared, intercept=True):
    """One backward pass for each label that an item could have."""
    weights, biases = softmax_layer(model)
    total = 0.0
    for label in range(len(weights)):
        logits = weights @ torch.tensor(x) + biases
        loss = torch.nn.functional.cross_entropy(logits, torch.tensor(label))
        parts = [weights, biases] if intercept else [weights]
        gradients = torch.autograd.grad(loss, parts)
        square = sum(float((part**2).sum()) for part in gradients)
        p = float(torch.softmax(logits.detach(), 0)[label])
        total += p * (square if squared else square**0.5)
    return total


@pytest.mark.long
@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("k", LOADERS)
def test_egl_by_the_oracle_of_autograd(k, squared):
    X_seed, y_seed, X_pool = load(k)
    learner = ActiveLearner(LogisticRegression(), EGL(squared=squared))
    learner.fit(X_seed, y_seed)
    model = learner.estimator_
    expected = np.array([expected_length(model, x, squared) for x in X_pool])
    assert_allclose(score(EGL(squared=squared), X_pool, model), expected, rtol=1e-9)
    assert_asks_highest(learner, X_pool, expected)


@pytest.mark.long
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("intercept", [True, False, "auto"])
def test_egl_counts_the_intercept_oracle(fit_intercept, intercept):
    X_seed, y_seed, X_pool = load(3)
    model = LogisticRegression(fit_intercept=fit_intercept).fit(X_seed, y_seed)
    counted = fit_intercept if intercept == "auto" else intercept
    expected = [expected_length(model, x, False, counted) for x in X_pool]
    found = score(EGL(intercept=intercept), X_pool, model)
    assert_allclose(found, expected, rtol=1e-9)


def test_egl_finds_the_intercept_of_one_vs_rest():
    X_seed, y_seed, X_pool = load(3)
    for fit_intercept in (True, False):
        inner = LogisticRegression(fit_intercept=fit_intercept)
        model = OneVsRestClassifier(inner).fit(X_seed, y_seed)
        expected = score(EGL(intercept=fit_intercept), X_pool, model)
        assert_array_equal(score(EGL(), X_pool, model), expected)
        other = score(EGL(intercept=not fit_intercept), X_pool, model)
        assert not np.allclose(expected, other)


def test_egl_of_hand_made_rows():
    X = np.array([[0.5, 0.5, 3.0, 4.0], [1.0, 0.0, 3.0, 4.0], [0.8, 0.2, 0.0, 0.0]])
    model = GivenProba().fit(X, [0, 1, 1])
    # ||p - e_c|| is (1 - p_c) sqrt(2) for two classes.
    expected = np.sqrt(2) * np.array([0.5 * np.sqrt(26), 0.0, 0.32])
    assert_allclose(score(EGL(), X, model), expected)
    expected = 2 * np.array([0.25 * 25, 0.0, 0.0])
    assert_allclose(score(EGL(squared=True, intercept=False), X, model), expected)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.sampled_from([2, 7]), sharp=st.booleans())
def test_egl_of_permuted_rows_is_permuted(seed, k, sharp):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(k, 0.5), 30)
    if sharp:
        proba = np.eye(k)[proba.argmax(axis=1)]
    X = np.hstack([proba, rng.normal(size=(30, 4))])
    X[20:] = X[:10]
    model = GivenProba().fit(X, np.arange(30) % k)
    order = rng.permutation(30)
    for strategy in (EGL(), EGL(squared=True), DFAL(), EGLEmbedding()):
        scores = score(strategy, X, model)
        assert_array_equal(scores[20:], scores[:10])
        assert_array_equal(score(strategy, X[order], model), scores[order])
        if sharp and isinstance(strategy, EGL):
            assert_array_equal(scores, 0)


@pytest.mark.parametrize("strategy", [EGL(), EGL(squared=True), DFAL()])
def test_sparse_and_float32_features_score_alike(strategy):
    X_seed, y_seed, X_pool = load(3)
    model = LogisticRegression().fit(X_seed, y_seed)
    expected = score(strategy, X_pool, model)
    found = score(strategy, sparse.csr_array(X_pool), model)
    assert_allclose(found, expected, rtol=1e-9)
    found = score(strategy, X_pool.astype(np.float32), model)
    assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("strategy", [EGL(), DFAL()])
def test_texts_behind_a_pipeline_with_sparse_features(strategy):
    texts = ["good film", "bad film", "good plot", "a plot", "bad", "good bad film"]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    learner = ActiveLearner(model, strategy, random_state=0)
    picks = learner.fit(texts[:3], ["+", "-", "+"]).query(texts[3:], 3)
    assert sorted(picks) == [0, 1, 2]


@pytest.mark.parametrize(
    ("strategy", "model"),
    [(EGL(), GaussianNB()), (EGL(), SGDClassifier()), (DFAL(), GaussianNB())],
)
def test_models_that_cannot_say_are_refused(strategy, model):
    X_seed, y_seed, X_pool = load(3)
    learner = ActiveLearner(model, strategy).fit(X_seed, y_seed)
    with pytest.raises(TypeError, match=r"needs .*Use LogisticRegression"):
        learner.query(X_pool)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("squared", "intercept"),
    [(True, False), (True, True), (False, True), (False, False)],
)
def test_every_form_of_egl_passes_the_kit(squared, intercept):
    check_strategy(EGL(squared=squared, intercept=intercept))


# Gradients of embeddings


class BagOfEmbeddings(ClassifierMixin, BaseEstimator):
    """Mean of word vectors, then a softmax layer, both drawn instead of trained."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        rng = np.random.default_rng(0)
        self.embeddings_ = rng.normal(size=(26, 5))
        self.weights_ = rng.normal(size=(len(self.classes_), 5))
        return self

    def predict_proba(self, X):
        means = [self.embeddings_[words(text)].mean(axis=0) for text in X]
        scores = np.exp(np.array(means) @ self.weights_.T)
        return scores / scores.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def embedding_gradients(self, X):
        proba = self.predict_proba(X)
        # A word's gradient is its share of the text times what reaches the mean.
        share = np.array([np.bincount(words(text)).max() / len(text) for text in X])
        errors = proba[:, None, :] - np.eye(proba.shape[1])
        lengths = np.linalg.norm(errors @ self.weights_, axis=2)
        return share * (proba * lengths).sum(axis=1)


def words(text):
    return [ord(letter) - ord("a") for letter in text]


def largest_expected_gradient(model, text):
    """Backward passes to the table of embeddings, a row of it at a time."""
    table = torch.tensor(model.embeddings_, requires_grad=True)
    expected = torch.zeros(26, dtype=torch.float64)
    for label in range(len(model.classes_)):
        mean = torch.stack([table[word] for word in words(text)]).mean(dim=0)
        logits = torch.tensor(model.weights_) @ mean
        loss = -torch.log_softmax(logits, 0)[label]
        (gradient,) = torch.autograd.grad(loss, table)
        expected += torch.softmax(logits, 0)[label].detach() * gradient.norm(dim=1)
    return max(float(expected[word]) for word in set(words(text)))


@pytest.mark.parametrize("labels", ["ab", "abcdefg"])
def test_egl_embedding_by_the_oracle_of_autograd(labels):
    rng = np.random.default_rng(1)
    # No repeats and no text with a label: a query leaves those out.
    texts = {"".join(rng.choice(list("abcdefgh"), size=2 + i % 9)) for i in range(40)}
    texts = sorted(texts)
    learner = ActiveLearner(BagOfEmbeddings(), EGLEmbedding(), random_state=0)
    learner.fit(list(labels), list(labels))
    expected = [largest_expected_gradient(learner.estimator_, text) for text in texts]
    assert_asks_highest(learner, texts, np.array(expected))


def test_egl_embedding_needs_a_model_with_embeddings():
    learner = ActiveLearner(LogisticRegression(), EGLEmbedding())
    learner.fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(TypeError, match="has no embedding_gradients"):
        learner.query([[0.5]])


# Smallest adversarial perturbation


def smallest_perturbation(model, x):
    """Shortest way to a point where another class's score reaches the winner's."""

    def ahead(z, winner, rival):
        found = model.coef_ @ z + model.intercept_
        found = np.r_[-found, found] if len(found) == 1 else found
        return found[winner] - found[rival]

    k = len(model.classes_)
    winner = int(np.flatnonzero(model.classes_ == model.predict(x[None])[0])[0])
    ways = []
    for rival in set(range(k)) - {winner}:
        constraint = {"type": "eq", "fun": ahead, "args": (winner, rival)}
        found = minimize(
            lambda z: ((z - x) ** 2).sum(),
            x + 0.1,
            jac=lambda z: 2 * (z - x),
            constraints=constraint,
            options={"ftol": 1e-14, "maxiter": 300},
        )
        ways.append(found.x - x)
    return min(ways, key=np.linalg.norm)


@pytest.mark.long
@pytest.mark.parametrize("model", [LogisticRegression(), LinearSVC(random_state=0)])
@pytest.mark.parametrize("k", [2, 3])
def test_dfal_by_the_oracle_of_explicit_perturbations(k, model):
    X_seed, y_seed, X_pool = load(k, pool=8)
    X_seed, X_pool = X_seed[:, :4], X_pool[:, :4]
    learner = ActiveLearner(model, DFAL(), random_state=0).fit(X_seed, y_seed)
    fitted = learner.estimator_
    ways = np.array([smallest_perturbation(fitted, x) for x in X_pool])
    label = fitted.predict(X_pool)
    assert (fitted.predict(X_pool + (1 - 1e-5) * ways) == label).all()
    assert (fitted.predict(X_pool + (1 + 1e-5) * ways) != label).all()
    distances = np.linalg.norm(ways, axis=1)
    assert_allclose(score(DFAL(), X_pool, fitted), -distances, rtol=1e-5)
    picks = learner.query(X_pool, 5)
    assert_allclose(distances[picks], np.sort(distances)[:5], rtol=1e-5)


def test_dfal_and_margin_agree_on_two_classes_only():
    answers = {}
    for k in (2, 10):
        X_seed, y_seed, X_pool = load(k)
        learners = [ActiveLearner(LinearSVC(), s) for s in (DFAL(), "margin")]
        picks = [m.fit(X_seed, y_seed).query(X_pool, 20) for m in learners]
        answers[k] = np.array_equal(*picks)
    assert answers == {2: True, 10: False}
