"""Committees and perceptron ensembles against members trained one by one."""

import copy
import functools
import math

import numpy as np
import pytest
import scipy.stats
import torch
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skactive import ActiveLearner
from skactive.registry import resolve
from skactive.strategies import Committee, PerceptronEnsemble
from skactive.strategies._committee import perceptron_proba, train_perceptrons
from skactive.testing import check_strategy
from skactive.view import PoolView

LOADERS = {"iris": load_iris, "cancer": load_breast_cancer, "digits": load_digits}
MEMBERS = [GaussianNB(), KNeighborsClassifier(3), LogisticRegression(max_iter=500)]


def load(name):
    X, y = LOADERS[name](return_X_y=True)
    X = StandardScaler().fit_transform(X)
    order = np.random.default_rng(0).permutation(len(X))[:140]
    return X[order[:40]], y[order[:40]], X[order[40:]]


def make_view(strategy, X, X_labeled, y, seed=0):
    model = LogisticRegression(max_iter=500).fit(X_labeled, y)
    return PoolView(
        X,
        estimator=model,
        X_labeled=X_labeled,
        y_labeled=np.asarray(y),
        requires=strategy.requires,
        rng=np.random.default_rng(seed),
    )


def score(strategy, X, X_labeled, y, seed=0):
    return strategy.score(make_view(strategy, X, X_labeled, y, seed))


# Committee


@functools.cache
def train_apart(name):
    """Votes and probabilities of the members for one item after the other."""
    X_labeled, y, X = load(name)
    members = [clone(member).fit(X_labeled, y) for member in MEMBERS]
    votes = [[member.predict([x])[0] for member in members] for x in X]
    proba = [[member.predict_proba([x])[0] for member in members] for x in X]
    return members[0].classes_, votes, proba


def disagreement_of_item(classes, votes, proba, how):
    """Plain Python: one item."""
    t = len(votes)
    counts = [votes.count(c) for c in classes]
    if how == "vote_entropy":
        return -sum(c / t * math.log(c / t) for c in counts if c)
    if how == "variation_ratio":
        return 1 - max(counts) / t
    mean = sum(proba) / t
    if how == "consensus_entropy":
        return scipy.stats.entropy(mean)
    return sum(scipy.stats.entropy(p, mean) for p in proba) / t


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", LOADERS)
def test_committee_by_the_oracle_of_members_trained_apart(name):
    X_labeled, y, X = load(name)
    classes, votes, proba = train_apart(name)
    for how in ("vote_entropy", "variation_ratio", "kl", "consensus_entropy"):
        scores = score(Committee(MEMBERS, measure=how), X, X_labeled, y)
        expected = [
            disagreement_of_item(classes, v, p, how)
            for v, p in zip(votes, proba, strict=True)
        ]
        assert_allclose(scores, expected, rtol=1e-7, atol=1e-12, err_msg=how)
        assert np.ptp(scores) > 0.1


class Recorder(ClassifierMixin, BaseEstimator):
    """Votes for the commonest class, and tells a list what it was trained on."""

    fits = []

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.winner_ = self.classes_[counts.argmax()]
        self.fits.append((X, y))
        return self

    def predict(self, X):
        return np.full(len(X), self.winner_)


def test_committee_bags_one_classifier():
    X = np.arange(60.0)[:, None]
    y = np.array(["common"] * 57 + ["rare"] * 3)
    Recorder.fits.clear()
    score(Committee(Recorder(), n_members=200), X, X, y)
    assert len(Recorder.fits) == 200
    counts = np.zeros(60)
    for rows, labels in Recorder.fits:
        assert len(rows) == 60
        assert set(labels) == {"common", "rare"}
        drawn = rows[:, 0].astype(int)
        assert_array_equal(labels, y[drawn])
        assert len(set(drawn)) < 60
        counts += np.bincount(drawn, minlength=60)
    # About as often as not: 1 of 57, or of 3, is there for sure, the rest by chance.
    expected = 200 * (58 / 60 + np.array([1 / 57] * 57 + [1 / 3] * 3))
    assert scipy.stats.chisquare(counts, expected).pvalue > 1e-3


def test_committee_members_are_left_as_they_are():
    X_labeled, y, X = load("iris")
    members = [DecisionTreeClassifier(), DecisionTreeClassifier(random_state=3)]
    score(Committee(members), X, X_labeled, y)
    assert not hasattr(members[0], "tree_")
    assert members[0].random_state is None


def test_committee_seeds_its_members_by_the_view():
    X_labeled, y, X = load("digits")
    trees = [DecisionTreeClassifier(max_features=1)] * 5
    scores = [score(Committee(trees), X, X_labeled, y, seed) for seed in (0, 0, 1)]
    assert_array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])
    assert scores[0].any()  # the same tree five times would agree
    kept = [DecisionTreeClassifier(max_features=1, random_state=7)] * 5
    assert not score(Committee(kept), X, X_labeled, y).any()


def test_committee_takes_pairs_of_name_and_classifier():
    X_labeled, y, X = load("iris")
    pairs = [(type(member).__name__, member) for member in MEMBERS]
    assert_array_equal(
        score(Committee(pairs), X, X_labeled, y),
        score(Committee(MEMBERS), X, X_labeled, y),
    )


@pytest.mark.parametrize("how", ["vote_entropy", "kl"])
def test_committee_follows_labels_of_any_kind(how):
    X_labeled, y, X = load("iris")
    strategy = Committee(MEMBERS, measure=how)
    expected = score(strategy, X, X_labeled, y)
    for names in (np.array(["a", "b", "c"]), np.array([-5, 0, 99])):
        assert_allclose(score(strategy, X, X_labeled, names[y]), expected)


def test_committee_that_has_seen_one_class_has_nothing_to_say():
    view = PoolView(
        np.zeros((4, 2)),
        X_labeled=np.ones((3, 2)),
        y_labeled=np.array(["a"] * 3),
        requires=Committee.requires,
    )
    assert_array_equal(Committee().score(view), np.zeros(4))


def test_committee_of_voters_only():
    X_labeled, y, X = load("iris")
    members = [LinearSVC(), GaussianNB()]
    assert score(Committee(members), X, X_labeled, y).any()
    with pytest.raises(TypeError, match="'kl' needs members with predict_proba"):
        resolve(Committee(members, measure="kl"))


# Perceptrons


def train_by_torch(X, codes, sample_weight, start, n_steps, rate):
    """One perceptron alone, by autograd and torch's Adam."""
    weights = torch.tensor(start, requires_grad=True)
    bias = torch.zeros(start.shape[1], dtype=weights.dtype, requires_grad=True)
    adam = torch.optim.Adam([weights, bias], lr=rate)
    for _ in range(n_steps):
        adam.zero_grad()
        losses = torch.nn.functional.cross_entropy(
            torch.as_tensor(X) @ weights + bias, codes, reduction="none"
        )
        (losses * sample_weight).mean().backward()
        adam.step()
    return weights.detach().numpy(), bias.detach().numpy()


@pytest.mark.long
@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("measure", ["entropy", "disagreement"])
def test_perceptron_ensemble_by_the_oracle_of_torch(name, measure):
    X_labeled, y, X = load(name)
    codes, (d, k) = torch.as_tensor(y), (X.shape[1], len(set(y)))
    weight = torch.tensor([len(y) / (k * list(y).count(c)) for c in y])
    size = np.sqrt((X_labeled**2).mean())
    limit = np.sqrt(6 / (d + k))
    strategy = PerceptronEnsemble(
        4, measure, dropout=0, n_steps=40, batch_size=1000, lr=0.02
    )
    view = make_view(strategy, X, X_labeled, y)
    assert view.labeled_features.shape == X_labeled.shape  # and its seeds are drawn
    starts = copy.deepcopy(view.rng).uniform(-limit, limit, (d, 4, k))
    proba = []
    for j in range(4):
        weights, bias = train_by_torch(
            X_labeled / size, codes, weight, starts[:, j], 40, 0.02
        )
        logits = torch.as_tensor(X / size @ weights + bias)
        proba.append(torch.softmax(logits, dim=1).numpy())
    mean = sum(proba) / 4
    expected = scipy.stats.entropy(mean, axis=1)
    if measure == "disagreement":
        expected = sum(scipy.stats.entropy(p, mean, axis=1) for p in proba) / 4
    assert_allclose(strategy.score(view), expected, rtol=1e-5, atol=1e-12)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("dropout", [0, 0.5, 0.9])
def test_perceptrons_reach_the_rare_class(monkeypatch, dropout):
    seen = []

    def spy(*args):
        seen.append(perceptron_proba(*args))
        return seen[-1]

    def train(*args, **options):
        trained = train_perceptrons(*args, **options)
        seen.clear()  # the steps predict as well
        return trained

    monkeypatch.setattr("skactive.strategies._committee.perceptron_proba", spy)
    monkeypatch.setattr("skactive.strategies._committee.train_perceptrons", train)
    rng = np.random.default_rng(0)

    def draw(n_rare, n_common):
        X = rng.normal(size=(n_rare + n_common, 50))
        X[:n_rare] += 2
        return X, np.array(["rare"] * n_rare + ["common"] * n_common)

    X_labeled, y = draw(10, 90)
    X, truth = draw(100, 900)
    order = rng.permutation(100)
    score(PerceptronEnsemble(dropout=dropout), X, X_labeled[order], y[order])
    of_pool = seen
    votes = np.array(["common", "rare"])[np.concatenate(of_pool).argmax(axis=2)]
    assert votes.shape == (1000, 10)
    for member in votes.T:
        assert balanced_accuracy_score(truth, member) > 0.9


@pytest.mark.long
@pytest.mark.slow
def test_perceptrons_have_starts_and_seeds_of_their_own():
    X_labeled, y, X = load("iris")
    strategy = PerceptronEnsemble(measure="disagreement")
    scores = [score(strategy, X, X_labeled, y, seed) for seed in (0, 0, 1)]
    assert_array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])
    assert (scores[0] > 0).mean() > 0.9
    alone = PerceptronEnsemble(1, measure="disagreement")
    assert_allclose(score(alone, X, X_labeled, y), 0, atol=1e-12)


# Both


BOTH = pytest.mark.parametrize(
    "strategy",
    [
        Committee(measure="kl"),
        Committee(),
        PerceptronEnsemble(n_steps=50),
        PerceptronEnsemble(measure="disagreement", n_steps=50),
    ],
    ids=repr,
)


@pytest.mark.long
@BOTH
def test_scores_follow_the_candidates(strategy):
    X_labeled, y, X = load("digits")
    order = np.random.default_rng(1).permutation(len(X))
    scores = score(strategy, X, X_labeled, y)
    assert_allclose(score(strategy, X[order], X_labeled, y), scores[order], rtol=1e-9)


@pytest.mark.long
@BOTH
def test_float32_and_sparse_features(strategy):
    X_labeled, y, X = load("digits")
    X, X_labeled = np.maximum(X, 0), np.maximum(X_labeled, 0)
    expected = score(strategy, X, X_labeled, y)
    rows = [Z.astype(np.float32) for Z in (X, X_labeled)]
    assert np.corrcoef(score(strategy, *rows, y), expected)[0, 1] > 0.99
    rows = [sparse.csr_array(Z) for Z in (X, X_labeled)]
    assert np.corrcoef(score(strategy, *rows, y), expected)[0, 1] > 0.99


@pytest.mark.long
@BOTH
def test_no_answer_depends_on_chunks_or_threads(strategy, monkeypatch):
    X_labeled, y, X = load("digits")
    expected = score(strategy, X, X_labeled, y)
    monkeypatch.setattr("skactive.strategies._committee.chunk_size", lambda *_: 9)
    assert_allclose(score(strategy, X, X_labeled, y), expected, rtol=1e-12)
    with parallel_config(n_jobs=2):
        assert_allclose(score(strategy, X, X_labeled, y), expected, rtol=1e-12)


@BOTH
def test_a_loop_over_a_pipeline(strategy):
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    learner = ActiveLearner(model, strategy, random_state=0).fit(X[::30], y[::30])
    picks = learner.query(X, 10)
    assert len(set(picks)) == 10
    again = learner.teach(X[picks], y[picks]).query(X, 10)
    assert not np.array_equal(again, picks)


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy",
    [Committee(MEMBERS[::2], measure="kl"), PerceptronEnsemble(3, n_steps=9)],
)
def test_other_parameters_pass_the_kit(strategy):
    check_strategy(strategy)
