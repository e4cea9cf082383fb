"""The checks that our text estimators pass, with those of them as objects."""

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from skactive.testing._strategy_cases import (
    changed_names,
    collect,
    ensure,
    read_contents,
    restore_pickled,
    run_with_global_seeds,
)

from ._text_cases import METHODS, TEXTS, TextSubject, agree, answers, fit
from ._text_data_checks import TEXT_INPUT_CHECKS, TEXT_TARGET_CHECKS, takes_weights


def check_tags_are_honest(subject):
    """The input tags are one dimension of strings and no table."""
    tags = get_tags(subject.given).input_tags
    said = {
        name: getattr(tags, name) for name in ("string", "one_d_array", "two_d_array")
    }
    ensure(
        said == {"string": True, "one_d_array": True, "two_d_array": False},
        f"its input tags are {said}; set string=True, one_d_array=True and "
        "two_d_array=False in __sklearn_tags__.",
    )


def check_init_only_stores(subject):
    """`__init__` stores its parameters as they are and sets nothing else."""
    params = subject.given.get_params(deep=False)
    state = vars(type(subject.given)(**params))
    ensure(
        state.keys() == params.keys(),
        f"__init__ sets {sorted(state.keys() ^ params.keys())} more or less than its "
        "parameters; set each under its own name, and compute the rest in fit.",
    )
    changed = [name for name in params if state[name] is not params[name]]
    ensure(
        not changed,
        f"__init__ converts {changed}; store arguments as they are, and convert in "
        "fit.",
    )


def check_fit_returns_self(subject):
    """`fit` returns the estimator."""
    estimator, y = subject.make(), subject.targets()
    X = list(TEXTS)
    ensure(
        (estimator.fit(X) if y is None else estimator.fit(X, y)) is estimator,
        "fit returns another object; return self.",
    )


def check_parameters_are_untouched(subject):
    """Neither `fit` nor a prediction changes a parameter."""
    estimator = subject.make()
    before = estimator.get_params(deep=False)
    contents = read_contents(before)
    answers(fit(estimator, list(TEXTS), subject.targets()), list(TEXTS))
    after = estimator.get_params(deep=False)
    changed = [name for name in before if before[name] is not after[name]]
    changed = changed or changed_names(contents, read_contents(after))
    ensure(
        not changed,
        f"fit changed the parameters {changed}; store results in attributes that "
        "end in an underscore.",
    )


def check_unfitted_is_refused(subject):
    """Before `fit`, an estimator that requires it raises NotFittedError."""
    estimator = subject.make()
    methods = [name for name in METHODS if hasattr(estimator, name)]
    for name in methods:
        call = getattr(estimator, name)
        if not get_tags(estimator).requires_fit:
            call(list(TEXTS))
            continue
        try:
            call(list(TEXTS))
        except NotFittedError:
            continue
        except Exception as exc:
            raise AssertionError(
                f"{name} before fit raises {type(exc).__name__}: {exc}; call "
                "check_is_fitted(self) first."
            ) from exc
        raise AssertionError(
            f"{name} works before fit; call check_is_fitted(self) first, or set the "
            "tag requires_fit=False if there is nothing to learn."
        )


def check_fitting_twice(subject):
    """With a seed, every fit returns the same model, also after another fit."""
    expected = answers(subject.fit(), list(TEXTS))
    fault = agree(expected, answers(subject.fit(), list(TEXTS)))
    ensure(
        not fault,
        f"of two copies fitted alike, {fault} in the second; take random numbers from "
        "random_state only, and do not iterate over sets.",
    )
    again = subject.fit(list(TEXTS[::-1]))
    fit(again, list(TEXTS), subject.targets())
    fault = agree(expected, answers(again, list(TEXTS)))
    ensure(
        not fault,
        f"fitted before on something else, {fault}; let fit start from scratch.",
    )


def check_clone(subject):
    """A clone is unfitted, and fits to the same model."""
    fitted = subject.fit()
    copied = clone(fitted)
    kept = sorted(vars(copied).keys() - copied.get_params(deep=False).keys())
    ensure(
        not [name for name in kept if name.endswith("_")],
        f"a clone has {kept}; set nothing but the parameters in __init__.",
    )
    fit(copied, list(TEXTS), subject.targets())
    fault = agree(answers(fitted, list(TEXTS)), answers(copied, list(TEXTS)))
    ensure(not fault, f"from a fitted clone, {fault}; keep all settings in parameters.")


def check_pickle(subject):
    """A pickle restores fitted and unfitted estimators."""
    fitted = subject.fit()
    expected = answers(fitted, list(TEXTS))
    restored, fresh = restore_pickled(fitted), restore_pickled(subject.make())
    fault = agree(expected, answers(restored, list(TEXTS)))
    ensure(
        not fault,
        f"from a pickle, {fault}; leave out nothing that predictions depend on.",
    )
    fit(fresh, list(TEXTS), subject.targets())
    fault = agree(expected, answers(fresh, list(TEXTS)))
    ensure(not fault, f"fitted after pickling, {fault}; leave no parameter out.")


def check_no_global_generator(subject):
    """No global random generator is used."""
    found, moved = run_with_global_seeds(
        subject.make,
        lambda estimator: answers(
            fit(estimator, list(TEXTS), subject.targets()), list(TEXTS)
        ),
    )
    ensure(
        not moved,
        f"it moved the global generator of {' and '.join(moved)}; take random numbers "
        "from check_random_state(self.random_state), and fork torch's generator.",
    )
    fault = agree(*found)
    ensure(
        not fault,
        f"with another global seed {fault}; take random numbers from random_state "
        "only.",
    )


def check_failed_fit_changes_nothing(subject):
    """A `fit` that fails leaves the estimator as it was."""
    bad = [*TEXTS[:-1], None]
    fitted, fresh = subject.fit(), subject.make()
    expected, attributes = answers(fitted, list(TEXTS)), set(vars(fresh))
    for estimator in (fitted, fresh):
        try:
            fit(estimator, bad, subject.targets())
        except Exception:  # of which kind is for another check to judge
            continue
        return  # another check says that it has to be refused
    left = sorted(set(vars(fresh)) - attributes)
    ensure(
        not left,
        f"a failed fit leaves {left}; check everything before setting an attribute.",
    )
    fault = agree(expected, answers(fitted, list(TEXTS)))
    ensure(
        not fault,
        f"after a failed fit {fault}; check everything before setting an attribute.",
    )


def check_fit_transform(subject):
    """`fit_transform` returns the result of `fit` and `transform`."""
    found = _call_fit_transform(subject)
    expected = answers(subject.fit(), list(TEXTS))["transform"]
    fault = agree({"fit_transform": expected}, {"fit_transform": found})
    ensure(not fault, f"{fault} than transform after fit; make both the same.")


def _call_fit_transform(subject):
    y = subject.targets()
    arguments = (list(TEXTS),) if y is None else (list(TEXTS), y)
    found = subject.make().fit_transform(*arguments)
    return found.toarray() if hasattr(found, "toarray") else np.asarray(found)


def check_feature_names_out(subject):
    """Each column of `transform` has a unique name."""
    fitted = subject.fit()
    n = answers(fitted, list(TEXTS))["transform"].shape[1]
    ensure(
        hasattr(fitted, "get_feature_names_out"),
        "there is no get_feature_names_out; derive from "
        "ClassNamePrefixFeaturesOutMixin, and set _n_features_out.",
    )
    names = fitted.get_feature_names_out()
    ensure(
        len(names) == n == len(set(names)) and all(isinstance(v, str) for v in names),
        f"get_feature_names_out returns {len(names)} names, {len(set(names))} of "
        f"them different, for {n} columns; return a unique str for each.",
    )


def check_set_output(subject):
    """`set_output` returns a data frame with the names of the features."""
    try:
        import pandas as pd
    except ImportError:
        return
    ensure(
        hasattr(subject.make(), "set_output"),
        "there is no set_output; define transform in a class that derives from "
        "TransformerMixin, and get_feature_names_out.",
    )
    expected = subject.fit()
    rows = answers(expected, list(TEXTS))["transform"]
    X = pd.Series(list(TEXTS), index=range(10, 10 + len(TEXTS)), dtype=object)
    frame = subject.fit().set_output(transform="pandas").transform(X)
    ensure(
        isinstance(frame, pd.DataFrame),
        f"after set_output(transform='pandas'), transform returns "
        f"{type(frame).__name__}; define transform in a class that derives from "
        "TransformerMixin.",
    )
    ensure(
        list(frame.columns) == list(expected.get_feature_names_out())
        and list(frame.index) == list(X.index),
        "the data frame of set_output has other columns than get_feature_names_out, "
        "or another index than X; leave both to TransformerMixin.",
    )
    ensure(
        np.array_equal(frame.to_numpy(), rows),
        "the data frame of set_output has other values; leave it to TransformerMixin.",
    )


#: In the order in which they run.
TEXT_OBJECT_CHECKS = (
    check_tags_are_honest,
    check_init_only_stores,
    check_fit_returns_self,
    check_parameters_are_untouched,
    check_unfitted_is_refused,
    check_fitting_twice,
    check_clone,
    check_pickle,
    check_no_global_generator,
    check_failed_fit_changes_nothing,
    check_fit_transform,
    check_feature_names_out,
    check_set_output,
)


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


def check_text_estimator(estimator):
    """Run every check on a text estimator up to the first failure; return the names.

    Results that may differ by rounding are compared to three digits: check an estimator
    of lower precision in float32.
    """
    names = []
    for name, check in collect(_CHECKS, _APPLIES, TextSubject(estimator)):
        check()
        names.append(name)
    return names
