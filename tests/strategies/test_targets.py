"""What strategies are defined for: any other target is refused before any work."""

import re
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skactive import ActiveLearner, get_strategy, registry
from skactive.strategies import PointwiseStrategy, ProbCover, WholeCluster

BUILTIN = [entry.name for entry in registry.available() if entry.builtin]
# These use no more than features, so any target will do.
ANY = {"coreset", "dal", "embedding_kmeans", "one_shot", "probcover", "typiclust"}
ANY |= {"lcmd", "random"}
DEFINED = {
    "multi-label": ANY
    | {"badge", "bald", "committee", "dfal", "egl", "mc_dropout"}
    | {"anchoral", "besra", "cal", "cvirs", "density", "dropquery", "entropy", "lci"}
    | {"least_confidence", "margin", "preclustering", "prefilter", "representative"}
    | {"seals", "subsample", "switch", "uherding", "variation_ratio", "whole_cluster"}
    | {"partitioned"},
    "regression": ANY
    | {"bald", "batchbald", "committee", "egl", "greedy_sampling", "mc_dropout"}
    | {"bait", "partitioned"},
}

X = np.random.default_rng(0).normal(size=(40, 3))
Y = (X > 0).astype(int)
MODELS = {
    "one-vs-rest": (OneVsRestClassifier(LogisticRegression()), Y),
    "multi-output": (MultiOutputClassifier(LogisticRegression()), Y),
    "neighbors": (KNeighborsClassifier(), Y),
    "perceptron": (MLPClassifier((3,), max_iter=5), Y),
    "regression": (make_pipeline(StandardScaler(), Ridge()), X[:, 0]),
}
PREDICTS = {"regression": "Ridge is a regressor"}


def make_learner(kind, strategy):
    model, y = MODELS[kind]
    return ActiveLearner(model, strategy, random_state=0).fit(X[:20], y[:20])


def fits(name, kind):
    """Whether a model has what a strategy that is defined for its target requires."""
    of_linear = name in ("besra", "bald", "mc_dropout", "egl", "badge", "dfal")
    return not of_linear or kind in ("one-vs-rest", "multi-output", "regression")


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("kind", MODELS)
def test_every_strategy_is_defined_or_refused(kind):
    target = "regression" if kind == "regression" else "multi-label"
    predicts = PREDICTS.get(kind, "an indicator matrix")
    learner = make_learner(kind, "random")
    for name in sorted(set(BUILTIN) - {"alps"}):  # which has no target, but wants texts
        learner.set_params(strategy=name)
        if name in DEFINED[target]:
            # Neighbors have no gradients, and a perceptron no draws.
            lacks = pytest.raises(TypeError, match=f"strategy '{name}' needs ")
            with nullcontext() if fits(name, kind) else lacks:
                assert len(set(learner.query(X, 4))) == 4
            continue
        with pytest.raises(TypeError, match=rf"strategy '{name}' is defined for") as e:
            learner.query(X, 4)
        assert predicts in str(e.value)
        assert "CalibratedClassifierCV" not in str(e.value)


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize(
    ("model", "y", "strategy"),
    [
        *((*MODELS[kind], "goral") for kind in MODELS),
        (LinearSVC(), Y[:, 0], "entropy"),
        (RidgeClassifier(), Y[:, 0], "bald"),
        (KNeighborsClassifier(), Y[:, 0], "badge"),
        (VotingClassifier([("a", LogisticRegression())]), Y[:, 0], "margin"),
        (LogisticRegression(), Y[:, 0], "alps"),
        (Ridge(), X[:, 0], lambda view: view.proba[:, 0]),
    ],
)
def test_the_strategies_that_an_error_names_work(model, y, strategy):
    learner = ActiveLearner(model, strategy, random_state=0).fit(X[:20], y[:20])
    with pytest.raises(TypeError, match="Strategies that suit it: ") as caught:
        learner.query(X, 2)
    named = re.findall(r"'(\w+)'", str(caught.value).split("suit it: ")[1])
    assert named[-1] == "random"
    assert len(named) == 3
    assert strategy not in named
    for name in named:
        assert len(learner.set_params(strategy=name).query(X, 2)) == 2


def test_the_target_is_checked_before_the_pool_is_transformed():
    class Untouched(StandardScaler):
        def transform(self, X):
            assert len(X) == 20, "the pool was transformed"
            return super().transform(X)

    learner = ActiveLearner(make_pipeline(Untouched(), Ridge()), "goral")
    learner.fit(X[:20], X[:20, 0])
    with pytest.raises(TypeError, match="'goral' is defined for single-label"):
        learner.query(X)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("goral", "single-label"),
        ("margin", "single-label multi-label"),
        ("random", "single-label multi-label regression"),
        (WholeCluster(measure=None), "single-label multi-label regression"),
        (WholeCluster(), "single-label multi-label"),
        (get_strategy("subsample", strategy="goral"), "single-label"),
        (
            get_strategy("subsample", strategy="coreset"),
            "single-label multi-label regression",
        ),
        (get_strategy("class_balanced", strategy="random"), "single-label"),
        (
            get_strategy("prefilter", first="random", second="margin"),
            "single-label multi-label",
        ),
    ],
    ids=repr,
)
def test_targets_follow_from_requires_and_from_parts(strategy, expected):
    assert registry.resolve(strategy).targets == {*expected.split()}


def test_a_class_may_declare_other_targets():
    class MeanMargin(PointwiseStrategy):
        requires = frozenset({"proba"})
        targets = frozenset({"multi-label"})

        def score(self, view):
            return -np.abs(view.proba - 0.5).mean(axis=1)

    learner = make_learner("one-vs-rest", MeanMargin())
    assert len(set(learner.query(X, 3))) == 3
    learner = ActiveLearner(LogisticRegression(), MeanMargin()).fit(X, Y[:, 0])
    with pytest.raises(TypeError, match="LogisticRegression predicts one class per it"):
        learner.query(X, 3)


def test_a_function_may_look_at_the_probabilities_of_several_labels():
    learner = make_learner("one-vs-rest", lambda view: -view.proba.mean(axis=1))
    assert len(set(learner.query(X, 3))) == 3


def test_a_cold_start_must_suit_the_target_as_well():
    learner = ActiveLearner(Ridge(), cold_start="goral")
    with pytest.raises(TypeError, match=r"Ridge is a regressor.*'random'"):
        learner.query(X, 3)


def test_targets_that_are_no_classes_do_not_count_as_clusters(monkeypatch):
    asked = []

    def k_means(X, n_clusters, *args, **kwargs):
        asked.append(n_clusters)
        return None, np.arange(len(X)) % n_clusters

    monkeypatch.setattr("skactive.strategies._coverage.k_means", k_means)
    make_learner("regression", ProbCover()).query(X, 2)
    make_learner("one-vs-rest", ProbCover()).query(X, 2)
    learner = ActiveLearner(LogisticRegression(), ProbCover()).fit(X, np.arange(40) % 3)
    learner.query(X, 2)
    assert asked == [10, 10, 3]
