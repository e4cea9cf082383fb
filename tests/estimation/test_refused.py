"""Arguments that no estimate can be made of, each named in its error."""

import numpy as np
import pytest

from skactive.estimation import (
    alternative_annotator_test,
    estimate_mean,
    estimate_prevalence,
    estimate_quality,
    estimate_share,
    measure_agreement,
    plan_labels,
)

NAN = float("nan")
Y = ["a"] * 12 + ["b"] * 12
PROBA = np.tile([0.4, 0.6], (24, 1))
ANSWERS = {i: {"Ann": "x", "Bob": "y", "Eve": "x"} for i in range(40)}


@pytest.mark.parametrize("estimate", [estimate_prevalence, estimate_quality])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: 100 * p, "'proba' must hold probabilities from 0 to 1, got 40 to"),
        (lambda p: p - 0.5, "'proba' must hold probabilities from 0 to 1, got -0.1"),
        (lambda p: 0.3 * p, "'proba' must .* sum to 1 in each row .* got 0.3 to 0.3"),
        (lambda p: p[:5], "'proba' must have 24 rows and a column for each"),
    ],
)
def test_probabilities(estimate, change, message):
    given = (Y,) if estimate is estimate_prevalence else (Y, Y)
    with pytest.raises(ValueError, match=message):
        estimate(*given, change(PROBA), PROBA)
    if "24 rows" not in message:
        with pytest.raises(ValueError, match=message.replace("proba'", "pool_proba'")):
            estimate(*given, PROBA, change(PROBA))


def test_several_classes_of_an_item_need_not_sum_to_1():
    y = np.array([[1, 1], [0, 1]] * 12)
    assert estimate_quality(y, y, np.full((24, 2), 0.9)).overconfidence is not None
    assert estimate_prevalence(y, 0.9 * y, 0.9 * y).estimates[None, 0].value == 0.5


def test_several_predictions_may_have_rows_without_a_class():
    said = np.stack([PROBA, np.zeros_like(PROBA)], axis=2)
    assert estimate_prevalence(Y, said, said).estimates[None, "a"].value == 0.5


@pytest.mark.parametrize("draw_proba", [1e-300, 5e-324])
def test_draws_that_cannot_be(draw_proba):
    options = {"n_pool": 100, "draw_proba": [draw_proba] * 24}
    y = [1, 0] * 12
    for estimate in (
        lambda: estimate_share(y, **options),
        lambda: estimate_mean(y, **options),
        lambda: estimate_quality(y, y[::-1], **options),
        lambda: estimate_prevalence(y, **options),
    ):
        with pytest.raises(ValueError, match="'draw_proba' must have 24 probabilities"):
            estimate()


@pytest.mark.parametrize("shift", [0, 1e182])
def test_numbers_without_a_finite_result(shift):
    with pytest.raises(ValueError, match="'y' must have a finite mean and variance"):
        estimate_mean([1e200 + shift, -1e200] * 12)


@pytest.mark.parametrize("n_pool", [NAN, -5, 0, 100.5, "9", True])
def test_the_size_of_the_pool(n_pool):
    for estimate in (
        lambda: estimate_share([1, 0] * 12, n_pool=n_pool),
        lambda: estimate_prevalence(Y, n_pool=n_pool),
        lambda: estimate_quality(Y, Y, n_pool=n_pool),
        lambda: plan_labels(0.05, n_pool=n_pool),
    ):
        with pytest.raises(ValueError, match="'n_pool' must be an int of at least 1"):
            estimate()


@pytest.mark.parametrize("level", ["a", None, [0.9], NAN, 95, True])
def test_the_confidence_level(level):
    for estimate in (
        lambda **level: estimate_share([1, 0] * 12, **level),
        lambda **level: estimate_prevalence(Y, **level),
        lambda **level: estimate_quality(Y, Y, **level),
        lambda **level: plan_labels(0.05, **level),
    ):
        with pytest.raises(ValueError, match="'confidence_level' must be between 0 an"):
            estimate(confidence_level=level)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"half_width": "a"}, "'half_width' must be between 0 and 1, got 'a'"),
        ({"half_width": None}, "'half_width' must be between 0 and 1, got None"),
        ({"half_width": 0.1, "share": 30}, "'share' must be between 0 and 1, got 30"),
        ({"half_width": 0.1, "r2": None}, "'r2' must be from 0 to below 1, got None"),
        ({"half_width": 0.1, "r2": 1}, "'r2' must be from 0 to below 1, got 1"),
        ({"half_width": 0.1, "f1": "a"}, "'f1' must be between 0 and 1, got 'a'"),
    ],
)
def test_plans(options, message):
    with pytest.raises(ValueError, match=message):
        plan_labels(**options)


@pytest.mark.parametrize(
    "classes", [5, "ab", ["a", "b", 1], ["a", "b", "b"], [["a"], ["b"]], [{}], []]
)
def test_classes(classes):
    for estimate in (
        lambda: estimate_prevalence(Y, classes=classes),
        lambda: estimate_quality(Y, Y, classes=classes),
    ):
        with pytest.raises(ValueError, match="'classes' must hold names, got"):
            estimate()


@pytest.mark.parametrize("labels", [[("a", "b"), ("a",)] * 10, [[1, 0], [1]]])
def test_rows_of_several_lengths(labels):
    with pytest.raises(ValueError, match="'labels' must be a list of classes, or a"):
        estimate_prevalence(labels)
    with pytest.raises(ValueError, match="'y' must be a list of classes, or a column"):
        estimate_quality(labels, labels)


def test_predictions_of_another_kind():
    with pytest.raises(TypeError, match="mixes labels of the kinds"):
        estimate_quality(Y, [1] * 24)


@pytest.mark.parametrize("group", [("a", "b"), None, ["a"], [["a"], ["a", "b"]]])
def test_groups(group):
    groups = group if isinstance(group, list) and len(group) > 1 else ["a", group]
    options = {"groups": groups * 12, "pool_groups": groups * 15}
    with pytest.raises(ValueError, match="'groups' and 'pool_groups' must hold a name"):
        estimate_prevalence(Y, **options)


def test_groups_of_another_length_than_the_probabilities():
    options = {"groups": ["a"] * 24, "pool_groups": ["a"] * 30}
    with pytest.raises(ValueError, match="'pool_proba' must have 30 rows and a column"):
        estimate_prevalence(Y, PROBA, PROBA, **options)


@pytest.mark.parametrize("answers", [None, [1], {1: ["a", "b"]}])
def test_answers(answers):
    message = "'answers' must hold a dict of labels, got"
    with pytest.raises(TypeError, match=message):
        alternative_annotator_test(answers, {})
    if isinstance(answers, dict):
        with pytest.raises(TypeError, match=message):
            measure_agreement(answers)


def test_answers_of_machines():
    with pytest.raises(TypeError, match="'machine' must hold a dict of labels, got No"):
        alternative_annotator_test(ANSWERS, None)
    with pytest.raises(TypeError, match="'machines' must hold a dict of labels, got"):
        measure_agreement(ANSWERS, machines={"m": ["x"]})


def test_distances_need_numbers():
    with pytest.raises(TypeError, match="'answers' must hold numbers"):
        alternative_annotator_test(ANSWERS, {0: 1.0}, measure="distance")
    with pytest.raises(TypeError, match="'answers' must hold numbers"):
        measure_agreement(ANSWERS, target="regression")


@pytest.mark.parametrize("missing", [None, "", NAN])
def test_a_missing_answer_is_none(missing):
    answers = {i: {**labels, "Eve": missing} for i, labels in ANSWERS.items()}
    machine = dict.fromkeys(answers, missing)
    found = alternative_annotator_test(answers, dict.fromkeys(answers, "x"))
    assert found.verdict == "cannot tell"
    assert "Eve" not in found.n_items
    assert alternative_annotator_test(ANSWERS, machine).n_items == {}
    agreement = measure_agreement(answers, machines={"m": machine})
    assert agreement.pairs.keys() == {("Ann", "Bob")}


def test_a_class_that_nothing_has_in_a_pool_that_is_all_labeled():
    found = estimate_quality(Y, Y, classes=["a", "b", "c"], n_pool=24)
    assert found.accuracy.value == 1
    assert found.macro_f1.value is None
