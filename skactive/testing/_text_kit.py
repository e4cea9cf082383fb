"""The conformance kit for estimators whose `X` are texts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ._common import collect, parametrize, run_all
from ._text_cases import TextSubject
from ._text_data_checks import TEXT_INPUT_CHECKS, TEXT_TARGET_CHECKS, takes_weights
from ._text_object_checks import TEXT_OBJECT_CHECKS

_CHECKS = (*TEXT_OBJECT_CHECKS, *TEXT_INPUT_CHECKS, *TEXT_TARGET_CHECKS)


def _is_classifier(subject):
    return subject.kind == "classifier"


def _is_regressor(subject):
    return subject.kind == "regressor"


def _predicts(subject):
    return subject.kind != "transformer"


def _transforms(subject):
    return hasattr(subject.given, "transform")


# When a check applies to an estimator; the others always do.
_APPLIES = {
    "check_fit_transform": _transforms,
    "check_feature_names_out": _transforms,
    "check_set_output": _transforms,
    "check_targets_are_needed": _predicts,
    "check_lengths_agree": _predicts,
    "check_missing_target_is_refused": _predicts,
    "check_targets_in_any_container": _predicts,
    "check_sample_weights_of_one": takes_weights,
    "check_string_labels": _is_classifier,
    "check_number_labels": _is_classifier,
    "check_bool_labels": _is_classifier,
    "check_three_classes": _is_classifier,
    "check_probabilities": lambda s: (
        _is_classifier(s) and hasattr(s.given, "predict_proba")
    ),
    "check_single_class_is_refused": _is_classifier,
    "check_mixed_labels_are_refused": _is_classifier,
    "check_unseen_class_in_score": _is_classifier,
    "check_predictions_are_numbers": _is_regressor,
    "check_whole_numbers": _is_regressor,
    "check_strings_as_numbers_are_refused": _is_regressor,
}


def text_estimator_checks(
    estimator: Any,
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the checks that every text estimator must pass.

    Parameters
    ----------
    estimator : estimator instance
        A transformer, classifier or regressor whose `X` is a collection of `str`,
        with the parameters to check it with.

    Yields
    ------
    name : str
        Name of the check.
    check : callable
        Takes no argument; raises an AssertionError that states the fault and the
        remedy.

    Raises
    ------
    TypeError
        If `estimator` is not an instance with a `fit` method.
    AssertionError
        If there is no check to run.

    Notes
    -----
    scikit-learn's own checks use numbers and skip estimators of texts. These checks use
    a dozen short texts. Parameters named `random_state` that are None are set to 0.
    Results that may differ by rounding are compared to three digits: check an estimator
    of lower precision in float32.

    Examples
    --------
    >>> from skactive.bert import BertFeatures
    >>> from skactive.testing import text_estimator_checks
    >>> names = [name for name, check in text_estimator_checks(BertFeatures())]
    >>> names[0]
    'check_tags_are_honest'
    """
    yield from collect(_CHECKS, _APPLIES, TextSubject(estimator))


def check_text_estimator(estimator: Any) -> list[str]:
    """Run every check on a text estimator up to the first failure.

    Parameters
    ----------
    estimator : estimator instance
        As for :func:`text_estimator_checks`.

    Returns
    -------
    names : list of str
        The checks that ran; all of them passed.

    Raises
    ------
    AssertionError
        States the check that failed, the fault and the remedy.

    Examples
    --------
    >>> from skactive.testing import check_text_estimator
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> check_text_estimator(CountVectorizer())
    Traceback (most recent call last):
        ...
    AssertionError: 'CountVectorizer' fails check_tags_are_honest: its input tags are \
{'string': True, 'one_d_array': False, 'two_d_array': False}; set string=True, \
one_d_array=True and two_d_array=False in __sklearn_tags__. (The input tags are \
one dimension of strings and no table.)
    """
    return run_all(text_estimator_checks(estimator))


def parametrize_with_text_checks(
    estimators: Iterable[Any],
    *,
    expected_failed: Mapping[str, str] | Callable[[Any], Any] | None = None,
) -> Callable:
    """Parametrize a pytest test with every check of every text estimator.

    Parameters
    ----------
    estimators : list of estimator instances
        The estimators to check.
    expected_failed : dict of str to str, callable or None, default=None
        Checks that are known to fail, with the reason; or a function that takes an
        estimator and returns such a dict. Such a test is marked
        `xfail(strict=True)`: pytest reports it if it passes.

    Returns
    -------
    decorator : callable
        Decorates a test function whose only argument is `check`, which it calls.

    Raises
    ------
    ValueError
        If there is no estimator, or `expected_failed` names an unknown check.

    Examples
    --------
    >>> from skactive.bert import BertFeatures
    >>> from skactive.testing import parametrize_with_text_checks
    >>> @parametrize_with_text_checks([BertFeatures()])
    ... def test_estimator(check):
    ...     check()
    """
    return parametrize(
        list(estimators),
        text_estimator_checks,
        lambda estimator: TextSubject(estimator).label,
        expected_failed,
        argument="estimators",
    )
