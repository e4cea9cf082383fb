"""The harness itself can fail: a function with a fault is counted as faulty."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skactive._utils._positions import as_positions
from skactive._utils._repeatable import round_rng
from skactive._utils._sklearn import check_count

from .judging import Counts, judge
from .targets import Target, perform
from .test_fuzz import run_group


def _judged(function, names):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        function()
    return judge(caught.value, names)


def _raise_with_note():
    try:
        check_count("n_draws", 0)
    except ValueError as exc:
        exc.add_note("It came from 'trees'.")
        raise


@pytest.mark.parametrize(
    ("function", "names", "kind"),
    [
        (lambda: as_positions("a", 3), ["candidates"], "clean"),
        (lambda: as_positions("a", 3), ["X"], "clean"),
        (lambda: as_positions("a", 3), ["y"], "named"),
        (lambda: round_rng("seed", 0, ""), ["seed"], "obscure"),
        (lambda: check_count("n_draws", 0), ["n_draws"], "clean"),
        (_raise_with_note, ["trees"], "clean"),
        (lambda: LogisticRegression(C="a").fit([[0], [1]], [0, 1]), ["C"], "clean"),
        (lambda: LogisticRegression().fit([[np.nan]], [0]), ["X"], "clean"),
        (lambda: LogisticRegression().fit([0, 1], [0, 1]), ["X"], "obscure"),
        (lambda: int("a"), ["a"], "obscure"),
        (lambda: {}["a"], ["a"], "obscure"),
    ],
)
def test_a_judgement(function, names, kind):
    assert _judged(function, names) == kind


def test_an_error_of_another_package_is_obscure_though_it_names_the_argument():
    def function():
        raise ValueError("'X' must be an array.")

    assert _judged(function, ["X"]) == "obscure"


def test_an_error_of_another_type_is_obscure_though_skactive_raises_it():
    import skactive

    with pytest.raises(AttributeError, match="no attribute 'X'") as caught:
        skactive.X  # noqa: B018
    assert judge(caught.value, ["X"]) == "obscure"


def test_an_english_word_in_a_message_does_not_name_an_argument():
    with pytest.raises(ValueError, match="at least 1, got 0") as caught:
        check_count("n", 0)
    assert judge(caught.value, ["at"]) == "named"


def test_an_obscure_function_is_counted():
    target = Target("open", lambda: {"n": 3}, lambda s, n: [0] * n + [n.real])
    counts = run_group([target], 60, seed="0")
    assert counts.obscure > 20
    assert counts.calls == 60
    assert "obscure TypeError" in counts.report()


def _faults(target, **wrong):
    counts = Counts()
    wrong = {name: ("wrong", lambda v=value: v) for name, value in wrong.items()}
    perform(target, wrong, counts, judge)
    return counts.silent


def _target(call, **more):
    return Target("f", lambda: {"X": [1, 2], "y": ["a", "b"]}, call, **more)


def test_a_dict_for_labels_is_found():
    assert "no order" in _faults(_target(lambda s, X, y: 0, ordered="y"), y={"a": 1})[0]
    assert not _faults(_target(lambda s, X, y: 0, ordered="y"), y=("a", "b"))


def test_labels_of_another_kind_are_found():
    target = _target(lambda s, X, y: 0, same_kind={"y": "X"})
    assert "another kind" in _faults(target, y=["a", "b"])[0]
    assert not _faults(target, y=[3.0, 4.0])


def test_a_state_that_a_failed_call_changed_is_found():
    def fail(state, X, y):
        state.append(1)
        raise ValueError("'X'")

    target = _target(fail, subject=list, state=tuple)
    assert "changed the state" in _faults(target, X=1)[0]


def test_a_repeat_with_another_result_is_found():
    results = iter(range(9))
    target = _target(lambda s, X, y: next(results), repeats=True)
    assert "another result" in _faults(target, X=1)[0]


@pytest.mark.parametrize(
    ("picks", "fault"),
    [([0, 0], "repeat"), ([0.5], "no int"), ([9], "outside"), ([1, 0], None)],
)
def test_picks_are_checked(picks, fault):
    from .groups import _check_picks

    found = _check_picks(np.array(picks), None, {"X": [1, 2, 3]})
    assert fault in found if fault else found is None
