"""The kit for text estimators: which checks run, their messages, what they find.

The faulty estimators are in the folder `text_mutants`, each with a part of the message
of the check. Those in `MUTANTS` fail one check only, those in `GRAVE` several.
"""

import pickle
import random

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from skactive.testing import (
    _text_checks,
    check_text_estimator,
    parametrize_with_text_checks,
    text_estimator_checks,
)

from .text_mutants import inputs, objects, targets
from .text_mutants.sound import Classifier, Regressor, Transformer

SOUND = [Transformer(), Classifier(), Regressor()]
COUNTS = {"Transformer": 28, "Classifier": 38, "Regressor": 33}


def names_of(estimator):
    return [name for name, _ in text_estimator_checks(estimator)]


def failures(estimator):
    """Run every check, and return the messages of those that failed."""
    said = {}
    for name, check in text_estimator_checks(estimator):
        try:
            check()
        except AssertionError as exc:
            said[name] = str(exc)
    return said


def rows(table):
    """Return a row for each check and mutant: the check, the mutant, the message."""
    return [
        pytest.param(check, mutant, message, id=f"{check}-{type(mutant).__name__}")
        for module in (objects, inputs, targets)
        for check, mutants in getattr(module, table).items()
        for mutant, message in mutants
    ]


# Which checks run


@pytest.mark.parametrize("estimator", SOUND, ids=lambda e: type(e).__name__)
def test_a_sound_estimator_passes_every_check(estimator):
    names = check_text_estimator(estimator)
    assert names == names_of(estimator)
    assert len(names) == len(set(names)) == COUNTS[type(estimator).__name__]


def test_some_checks_apply_by_kind():
    by_kind = {type(e).__name__: set(names_of(e)) for e in SOUND}
    assert "check_set_output" not in by_kind["Classifier"]
    assert "check_bool_labels" not in by_kind["Regressor"]
    assert "check_lengths_agree" not in by_kind["Transformer"]
    assert set.union(*by_kind.values()) == {c.__name__ for c in _text_checks._CHECKS}


def test_every_check_states_its_rule():
    for check in _text_checks._CHECKS:
        assert check.__doc__.splitlines()[0].endswith("."), check.__name__
    known = {check.__name__ for check in _text_checks._CHECKS}
    assert set(_text_checks._APPLIES) <= known


def test_a_kit_without_checks_fails(monkeypatch):
    monkeypatch.setattr(_text_checks, "_CHECKS", ())
    with pytest.raises(AssertionError, match="no check was collected for 'Regressor'"):
        check_text_estimator(Regressor())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Regressor, "must be an instance with a fit method, got Regressor. Pass it"),
        ("bert", "must be an instance with a fit method, got 'bert'"),
    ],
)
def test_no_instance_is_refused(given, message):
    with pytest.raises(TypeError, match=message):
        check_text_estimator(given)


# What fails


@pytest.mark.parametrize(
    ("check", "estimator", "message"), [*rows("MUTANTS"), *rows("GRAVE")]
)
def test_a_check_finds_its_mutant(check, estimator, message):
    label = type(estimator).__name__
    with pytest.raises(AssertionError, match=f"'{label}' fails {check}: .*{message}"):
        dict(text_estimator_checks(estimator))[check]()


@pytest.mark.slow
@pytest.mark.parametrize(("check", "estimator", "message"), rows("MUTANTS"))
def test_a_mutant_fails_no_other_check(check, estimator, message):
    assert set(failures(estimator)) == {check}


def test_every_check_has_a_mutant():
    mutated = {row.values[0] for row in [*rows("MUTANTS"), *rows("GRAVE")]}
    assert mutated == {check.__name__ for check in _text_checks._CHECKS}


def test_sparse_features_are_compared_like_dense_ones():
    said = failures(TfidfVectorizer())
    assert "check_order_of_texts" not in said
    assert "check_subset_of_texts" not in said
    assert "position 7" in said["check_missing_text_is_refused"]


# Around it


def test_each_estimator_and_check_has_an_id_of_its_own():
    mark = parametrize_with_text_checks(SOUND)
    ids = [param.id for param in mark.args[1]]
    assert len(set(ids)) == len(ids) == sum(COUNTS.values())
    assert "Regressor-check_clone" in ids


def test_known_failures_are_marked_as_strict_xfail():
    mark = parametrize_with_text_checks(
        [Regressor()], expected_failed={"check_clone": "not yet"}
    )
    marks = {param.id: param.marks for param in mark.args[1]}
    (xfail,) = marks.pop("Regressor-check_clone")
    assert xfail.kwargs == {"reason": "not yet", "strict": True}
    assert not any(marks.values())


def test_nothing_to_check_is_refused():
    message = "'estimators' is empty, so that nothing .* at least one estimator"
    with pytest.raises(ValueError, match=message):
        parametrize_with_text_checks([])


def test_an_unknown_check_among_the_expected_is_refused():
    message = (
        r"checks of these estimators, got \['check_clon'\]\. Did you mean 'check_clo"
    )
    with pytest.raises(ValueError, match=message):
        parametrize_with_text_checks(SOUND, expected_failed={"check_clon": "?"})


def test_the_kit_leaves_the_global_generators_and_the_estimator_alone():
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    before = pickle.dumps((np.random.get_state(), random.getstate()))  # noqa: NPY002
    said = dict(text_estimator_checks(objects.MovesNumpy()))
    with pytest.raises(AssertionError, match="moved the global generator"):
        said["check_no_global_generator"]()
    estimator = Classifier()
    check_text_estimator(estimator)
    after = pickle.dumps((np.random.get_state(), random.getstate()))  # noqa: NPY002
    assert after == before
    assert vars(estimator) == vars(Classifier())
