"""Parameters of strategies: a wrong one is named before any work is done."""

import math
from inspect import signature

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from skactive import ActiveLearner, get_strategy, registry
from skactive._utils import _plugins
from skactive.strategies import GORAL, Committee, Strategy
from skactive.testing._strategy_cases import GivenProba, make_case

BUILTIN = [entry.name for entry in registry.available() if entry.builtin]

ENDLESS = [  # these would run for ever, or fill the memory
    *(("bald", "n_draws"), ("batchbald", "n_draws"), ("batchbald", "n_samples")),
    *(("mc_dropout", "n_draws"), ("dropquery", "n_draws")),
    *(("committee", "n_members"), ("perceptron_ensemble", "n_members")),
    ("perceptron_ensemble", "n_steps"),
]
WRONG = [
    *(("bald", "n_draws", value) for value in [0, -1, 2.5, "3", True, 1, None]),
    ("batchbald", "n_draws", 0),
    ("mc_dropout", "n_draws", 0),
    ("batchbald", "n_samples", 0),
    *(("bald", "selection", value) for value in ["best", ["top"]]),
    *(("bald", "coldness", value) for value in [0, "1", math.inf, math.nan, print]),
    *(("mc_dropout", "measure", value) for value in ["bald", ["entropy"]]),
    ("bald", "n_draws", 2**70),
    *((*name, 1_000_001) for name in ENDLESS),
    ("dropquery", "n_draws", 0),
    ("committee", "measure", "votes"),
    ("committee", "n_members", 0),
    *(("committee", "estimators", value) for value in [[], 5, [StandardScaler]]),
    ("perceptron_ensemble", "measure", "bald"),
    ("perceptron_ensemble", "n_members", 0),
    ("perceptron_ensemble", "n_steps", 0),
    ("perceptron_ensemble", "batch_size", 0),
    *(("perceptron_ensemble", "dropout", value) for value in [1, -0.1, math.nan]),
    *(("perceptron_ensemble", "lr", value) for value in [0, math.inf]),
    ("perceptron_ensemble", "class_weight", "even"),
    *(("egl", "squared", value) for value in ["yes", None, 1.0]),
    *(("egl", "intercept", value) for value in ["yes", None]),
    ("goral", "objective", "accuracy"),
    ("goral", "aggregate", "mean"),
    *(("goral", "penalty", value) for value in [0, "none", math.nan]),
    *(("goral", "max_dense", value) for value in [-1, 1.5]),
    *(("coreset", "metric", value) for value in ["l1", None]),
    *(("probcover", "delta", value) for value in [-1, math.nan, "best", True]),
    *(("probcover", "purity", value) for value in [0, 1.5]),
    ("probcover", "n_clusters", 0),
    ("probcover", "metric", "l1"),
    *(("uherding", "measure", value) for value in ["bald", 3]),
    *(("uherding", "radius", value) for value in [0, -1, math.inf, "wide", None]),
    *(("uherding", "temperature", value) for value in [0, "1", math.nan]),
    ("uherding", "sample_size", 0),
    *(("embedding_kmeans", "normalize", value) for value in ["no", None, "yes"]),
    ("whole_cluster", "n_clusters", 0),
    *(("whole_cluster", "measure", value) for value in ["bald", 3, ["entropy"]]),
    ("typiclust", "n_neighbors", 0),
    ("typiclust", "max_clusters", 0),
    ("typiclust", "min_cluster_size", 0),
    ("density", "measure", "variance"),
    *(("density", "beta", value) for value in [-1, math.inf, "1"]),
    ("density", "similarity", "dot"),
    ("density", "n_neighbors", 0),
    ("preclustering", "n_clusters", 0),
    *(("preclustering", "bandwidth", value) for value in [0.0, "wide", math.inf]),
    *(("dropquery", "rate", value) for value in [1, -0.1, math.nan, "half"]),
    *(("representative", "margin", value) for value in [0, "wide"]),
    *(("representative", "factor", value) for value in [0.5, None]),
    ("dal", "n_batches", 0),
    *(("dal", "ratio", value) for value in [0, "all"]),
    *(("dal", "estimator", value) for value in [StandardScaler(), 5]),
    ("cal", "n_neighbors", 0),
    *(("subsample", "sample_size", value) for value in [0, 1.5, True, "10"]),
    *(("prefilter", "factor", value) for value in [0.5, "10"]),
    ("seals", "n_neighbors", 0),
    *(("anchoral", name, 0) for name in ["n_anchors", "n_neighbors", "sample_size"]),
    ("switch", "after", 0),
    *(("switch", name, value) for name in ["first", "second"] for value in [3, None]),
    *(("class_balanced", "strategy", value) for value in [3, None]),
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "parameter", "value"), WRONG)
def test_a_wrong_parameter_is_named(name, parameter, value):
    with pytest.raises((ValueError, TypeError), match=f"'{parameter}'"):
        get_strategy(name, **{parameter: value})
    strategy = get_strategy(name).set_params(**{parameter: value})
    with pytest.raises((ValueError, TypeError), match=f"'{parameter}'"):
        registry.resolve(strategy)


def test_a_learner_names_it_before_it_trains():
    trained = []

    class Noted(LogisticRegression):
        def fit(self, X, y):
            trained.append(y)
            return super().fit(X, y)

    strategy = get_strategy("bald").set_params(coldness=print)
    learner = ActiveLearner(Noted(), strategy)
    with pytest.raises(ValueError, match="The 'coldness' parameter of BALD must be a"):
        learner.fit([[0.0], [1.0]], [0, 1])
    assert not trained


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "loss"}, "objective='loss' needs X_val and y_val"),
        ({"y_val": ["a"]}, "objective='entropy' uses no labels"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        registry.resolve(GORAL(**options))


def test_members_of_a_committee_must_have_what_the_measure_needs():
    strategy = Committee([StandardScaler()], measure="kl")
    with pytest.raises(TypeError, match="'kl' needs members with predict_proba, which"):
        registry.resolve(strategy)


def test_constraints_of_a_plugin_are_checked_like_those_of_the_built_ins():
    class Limited(Strategy):
        _parameter_constraints = {"size": [int]}

        def __init__(self, size="none"):
            self.size = size

        def select(self, view, n_queries):
            return range(n_queries)

    with pytest.raises(ValueError, match="The 'size' parameter of Limited must be"):
        registry.resolve(Limited())


VALUES = [
    None,
    True,
    -1,
    0,
    1,
    2,
    0.5,
    1.5,
    math.nan,
    math.inf,
    3 + 2j,
    "no",
    "",
    "auto",
    "margin",
    b"x",
    [],
    ["a"],
    ("a",),
    {},
    {"a": 1},
    object(),
    len,
    int,
    np.array([1, 2]),
    np.array(2),
    np.float64(3.0),
    LogisticRegression,
    LogisticRegression(),
    [LogisticRegression()],
]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[pytest.mark.slow] * (n == "perceptron_ensemble"))
        for n in BUILTIN
    ],
)
def test_any_value_of_any_parameter_works_or_is_named(name):
    case = make_case(n=12, k=2)
    unnamed = []
    for parameter in signature(_plugins.load(_plugins.find(name))).parameters:
        for value in VALUES:
            try:
                strategy = get_strategy(name, **{parameter: value})
                learner = ActiveLearner(GivenProba(), strategy, random_state=0)
                learner.fit(case.X_labeled, case.y_labeled)
                learner.query(case.X, 3)
            except (ValueError, TypeError) as exc:
                if parameter not in str(exc) and repr(value) not in str(exc):
                    unnamed.append((parameter, value, exc))
    assert unnamed == []
