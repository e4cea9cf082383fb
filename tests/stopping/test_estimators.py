"""Every rule as a scikit-learn object: copies, starts, bad parameters, resuming."""

import copy
import pickle

import pytest
from sklearn.base import clone

from skactive.simulation import Run
from skactive.stopping import (
    ClassificationChange,
    KappaAverage,
    LabelBudget,
    OverallUncertainty,
    Plateau,
    RoundBudget,
    SelectedAccuracy,
    TimeBudget,
)

from ._helpers import _learner, _run, _simulate

RULES = [
    LabelBudget(30),
    RoundBudget(3),
    TimeBudget(1e-9),
    ClassificationChange(2, threshold=0.1),
    KappaAverage(2, threshold=0.5, stop_set=40),
    OverallUncertainty(0.6),
    SelectedAccuracy(0.6),
    Plateau(patience=2),
    LabelBudget(30) | Plateau(),
    LabelBudget(30) & KappaAverage(2, threshold=0.5),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda r: type(r).__name__)
def test_rules_can_be_cloned_compared_and_pickled(rule):
    twin = clone(rule)
    assert repr(twin) == repr(rule)
    assert twin.get_params().keys() == rule.get_params().keys()
    assert repr(pickle.loads(pickle.dumps(rule))) == repr(rule)
    for name, value in rule.get_params(deep=False).items():
        assert getattr(type(rule)(**{**rule.get_params(deep=False)}), name) is value


@pytest.mark.long
@pytest.mark.parametrize(
    "rule",
    [
        *(pytest.param(rule, marks=pytest.mark.slow) for rule in RULES[:6]),
        *RULES[6:],
    ],
    ids=lambda r: type(r).__name__,
)
def test_a_rule_is_the_same_in_every_simulation(data, rule):
    before = copy.deepcopy(vars(rule))
    first = _simulate(data, rule)
    assert first == _simulate(data, rule)
    assert first == _simulate(data, clone(rule))
    assert repr(vars(rule)) == repr(before)
    assert len(first.rounds) < 21
    assert first.stopped_by is not None


@pytest.mark.parametrize("rule", RULES, ids=lambda r: type(r).__name__)
def test_start_forgets_the_loop_before(data, rule):
    X, y = data
    rule = clone(rule)
    learner = _learner().fit(X[:10], y[:10])

    def answers():
        run = Run(info={"seed": 1})
        for i in range(4):
            run.append({"queried": range(10 * i, 10 * i + 10), "scores": {"f1": 0.5}})
            yield rule.check(run, learner, X)

    first = list(answers())
    rule.start()
    assert list(answers()) == first
    again = clone(rule).start()
    public = {name for name in vars(rule) if name.endswith("_")}
    assert public == {name for name in vars(again) if name.endswith("_")}
    assert rule.n_checks_ == 4


@pytest.mark.parametrize(
    "rule",
    [
        LabelBudget(0),
        RoundBudget(0),
        TimeBudget(0),
        TimeBudget(1, clock=5),
        ClassificationChange(0),
        ClassificationChange(threshold=1),
        KappaAverage(0),
        KappaAverage(threshold=1.1),
        KappaAverage(stop_set=0),
        KappaAverage(stop_set="all"),
        KappaAverage(random_state="x"),
        OverallUncertainty(0),
        OverallUncertainty(1.0),
        SelectedAccuracy(0),
        SelectedAccuracy(1.1),
        SelectedAccuracy(n_rounds=0),
        Plateau(5),
        Plateau(patience=0),
        Plateau(min_delta=-1),
    ],
    ids=repr,
)
def test_bad_parameters_are_named_before_any_work(data, rule):
    kind = type(rule).__name__
    with pytest.raises(ValueError, match=rf"The '\w+' parameter of {kind} must be"):
        _simulate(data, rule)
    with pytest.raises(ValueError, match=rf"The '\w+' parameter of {kind} must be"):
        (rule | LabelBudget(5)).check(_run(), None, None)


@pytest.mark.long
@pytest.mark.parametrize("rule", RULES[3:8], ids=lambda r: type(r).__name__)
def test_a_resumed_simulation_stops_where_an_uninterrupted_one_does(
    tmp_path, data, rule
):
    whole = _simulate(data, rule)
    n_last = len(whole.rounds) - 1

    def scoring(learner, X, y):
        if learner.n_rounds_ == n_last and not (tmp_path / "once").exists():
            (tmp_path / "once").touch()
            raise KeyboardInterrupt
        return learner.score(X, y)

    params = {"scoring": {"accuracy": scoring}, "folder": tmp_path / "kept"}
    with pytest.raises(KeyboardInterrupt):
        _simulate(data, rule, **params)
    assert _simulate(data, rule, **params) == whole
