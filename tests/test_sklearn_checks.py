"""Every public estimator under scikit-learn's checks, and each exception by name."""

import importlib
import inspect
import pkgutil
from unittest import SkipTest

import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.utils import InputTags
from sklearn.utils.estimator_checks import (
    check_estimator_cloneable,
    check_estimator_repr,
    check_get_params_invariance,
    check_mixin_order,
    check_no_attributes_set_in_init,
    check_set_params,
    estimator_checks_generator,
    parametrize_with_checks,
)
from sklearn.utils.fixes import parse_version
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

import skactive
from skactive import ActiveLearner, ClassDescriptions
from skactive.bert import AdaptedFeatures, BertClassifier, BertFeatures, BertRegressor
from skactive.features import PrecomputedFeatures, StaticFeatures
from skactive.linear_model import (
    FewLabelClassifier,
    PrototypeClassifier,
    SequentialLogisticRegression,
    TunedOneVsRestClassifier,
)
from skactive.registry import FunctionStrategy, PointwiseStrategy, Strategy
from skactive.semi_supervised import MixtureClassifier, SelfTraining
from skactive.simulation import SimulatedLearner
from skactive.stopping import StoppingRule
from skactive.strategies import Random, WrapperStrategy

# Estimators of texts ------------------------------------------------------------------


def write(X):
    """Return rows of numbers as texts."""
    return [" ".join(f"{value:.2f}" for value in row[:8]) for row in X]


def reading(name):
    """Return a method that passes rows of numbers as texts, if the estimator has it."""

    def find(self):
        return getattr(super(OfNumbers, self), name)

    def call(self, X):
        check_is_fitted(self)
        return find(self)(write(validate_data(self, X, reset=False)))

    return available_if(lambda self: find(self) or True)(call)


class OfNumbers:
    """Reads rows of numbers as texts: scikit-learn's checks have no texts."""

    transform, predict = reading("transform"), reading("predict")
    predict_proba = reading("predict_proba")
    predict_log_proba = reading("predict_log_proba")
    decision_function = reading("decision_function")

    def fit(self, X, y=None, sample_weight=None):
        weights = {}
        if y is not None or self.__sklearn_tags__().target_tags.required:
            X, y = validate_data(self, X, y, multi_output=True)
        else:
            X = validate_data(self, X)
        if sample_weight is not None:
            weights["sample_weight"] = sample_weight
        return super().fit(write(X), y, **weights)

    @available_if(lambda self: super().partial_fit or True)
    def partial_fit(self, X, y, classes=None):
        X, y = validate_data(self, X, y, reset=not hasattr(self, "n_features_in_"))
        known = {} if classes is None else {"classes": classes}
        return super().partial_fit(write(X), y, **known)

    @available_if(lambda self: super().score or True)
    def score(self, X, y, sample_weight=None):
        return super().score(X, y, sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags = InputTags()
        for part in (tags.classifier_tags, tags.regressor_tags):
            if part is not None:
                part.poor_score = True  # the letters of numbers say little
        return tags


class NumberFeatures(OfNumbers, BertFeatures):
    def fit(self, X, y=None):
        return super().fit(X, y)


class NumberTables(OfNumbers, StaticFeatures):
    def fit(self, X, y=None):
        return super().fit(X, y)


class NumberAdapted(OfNumbers, AdaptedFeatures):
    pass


class NumberClassifier(OfNumbers, BertClassifier):
    pass


class NumberRegressor(OfNumbers, BertRegressor):
    pass


class NumberDescriptions(OfNumbers, ClassDescriptions):
    @property
    def n_features_in_(self):
        return self._n_columns

    @n_features_in_.setter
    def n_features_in_(self, n):
        self._n_columns = n


# The estimators, and the checks that each fails ---------------------------------------

# With older versions of scikit-learn, some of these checks are others.
OLD = parse_version(sklearn.__version__) < parse_version("1.9")
WEIGHTS = "check_sample_weight_equivalence_on_dense_data"
SPARSE_WEIGHTS = "check_sample_weight_equivalence_on_sparse_data"
REPEATS = "a repeated row may be in two folds of the cross-validation"
BATCHES = "a repeated text is in several batches, and in each at most once"
COUNTED = "the temperature counts held-out labels, whatever their weights are"
ROUNDED = "predicts float32: the log of a probability that is rounded to 1 is 0"
LINE = LogisticRegression()
ADAPTED = {"n_steps": 2, "batch_size": 8, "lr": 1e-2, "freeze": 1, "device": "cpu"}
TUNED = {"max_epochs": 1, "lr": 1e-3, "batch_size": 8, "device": "cpu"}
TUNED |= {"random_state": 0}
CHECKED = [
    (ActiveLearner(LINE), {}),
    (ActiveLearner(LinearRegression(), strategy="random"), {}),
    (
        SimulatedLearner(ActiveLearner(LINE, random_state=0), n_initial=8, n_rounds=3),
        {
            "check_fit2d_1sample": "refuses a pool smaller than n_initial, in its own "
            "words: the check wants one of scikit-learn's phrases for a single sample"
        },
    ),
    (SequentialLogisticRegression(), {}),
    (SequentialLogisticRegression(warm_start=True), {}),
    (PrototypeClassifier(), {"check_classifiers_train(X_dtype=float32)": ROUNDED}),
    (
        FewLabelClassifier(random_state=0),
        {WEIGHTS: REPEATS, "check_classifiers_train(X_dtype=float32)": ROUNDED},
    ),
    (
        TunedOneVsRestClassifier(LINE, random_state=0),
        {"check_classifier_multioutput": "predicts by tuned thresholds, not by 0.5"},
    ),
    (SelfTraining(LINE, random_state=0), {WEIGHTS: COUNTED, SPARSE_WEIGHTS: COUNTED}),
    (
        MixtureClassifier([("a", LINE), ("b", LogisticRegression(C=10))]),
        {WEIGHTS: REPEATS, SPARSE_WEIGHTS: REPEATS},
    ),
    (
        NumberDescriptions(
            make_pipeline(
                HashingVectorizer(n_features=32, alternate_sign=False), MultinomialNB()
            ),
            {0: "0.5", 1: "1.0"},
        ),
        {"check_classifiers_classes": "predicts described classes too"} if OLD else {},
    ),
    (NumberFeatures("tiny", precision="float32"), {}),
    (NumberTables("tiny"), {}),
    (NumberAdapted("tiny", **ADAPTED), {WEIGHTS: BATCHES}),
    (NumberAdapted("tiny", refit=8, **ADAPTED), {WEIGHTS: BATCHES}),
    # The check has fewer rows than it learns from first.
    (NumberAdapted("tiny", refit="doubling", **ADAPTED), {}),
    (NumberClassifier("tiny", **TUNED), {WEIGHTS: BATCHES}),
    (NumberRegressor("tiny", **TUNED), {WEIGHTS: BATCHES}),
]
SLOW = NumberAdapted, NumberClassifier, NumberRegressor, SelfTraining
SKIPPED = {
    "check_array_api_input": "SCIPY_ARRAY_API=1 is not set before scipy",
    "check_classifiers_multilabel_output_format_decision_function": (
        "BertClassifier has probabilities only"
    ),
}
NOT_CHECKED = {PrecomputedFeatures: "knows only the rows of its file"}


def name_of(check):
    """Return the name of a check with the type of its rows."""
    kind = check.keywords.get("X_dtype")
    return check.func.__name__ + (f"(X_dtype={kind})" if kind else "")


QUICK = [each for each, _ in CHECKED if not isinstance(each, SLOW)]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(QUICK)
def test_scikit_learn_checks(estimator, check, request):
    run(estimator, check, request)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([each for each, _ in CHECKED if isinstance(each, SLOW)])
def test_scikit_learn_checks_of_what_trains_longer(estimator, check, request):
    run(estimator, check, request)


def run(estimator, check, request):
    """Run a check, which fails if the table says so."""
    (failures,) = (each for other, each in CHECKED if other is estimator)
    if reason := failures.get(name_of(check)):
        request.applymarker(pytest.mark.xfail(reason=reason, strict=not OLD))
    if "model" in estimator.get_params():
        model = request.getfixturevalue("tiny_bert")
        estimator = clone(estimator).set_params(model=model)
    try:
        check(estimator)
    except SkipTest:
        assert name_of(check) in SKIPPED
        raise


def checks_of(estimator):
    """Return the names of the checks of an estimator."""
    return [name_of(check) for _, check in estimator_checks_generator(estimator)]


@pytest.mark.parametrize("pair", CHECKED, ids=lambda pair: type(pair[0]).__name__)
def test_each_exception_names_a_check(pair):
    estimator, failures = pair
    assert failures.keys() <= set(checks_of(estimator))


# A change means that the tags of an estimator or scikit-learn's checks have changed.
@pytest.mark.skipif(OLD, reason="the numbers are those of scikit-learn 1.9")
@pytest.mark.parametrize(("place", "n_checks"), [(0, 55), (1, 53), (3, 65), (4, 65)])
def test_the_number_of_checks(place, n_checks):
    assert len(checks_of(CHECKED[place][0])) == n_checks


# None is forgotten --------------------------------------------------------------------


def find_public():
    """Return the public classes with parameters, from the `__all__` of each module."""
    names = (x.name for x in pkgutil.walk_packages(skactive.__path__, "skactive."))
    public = [name for name in names if "._" not in name and name[-4:] != "main"]
    modules = [importlib.import_module(name) for name in public]
    found = {
        getattr(module, name)
        for module in modules
        for name in getattr(module, "__all__", ())
    }
    return [x for x in found if inspect.isclass(x) and issubclass(x, BaseEstimator)]


PUBLIC = sorted(find_public(), key=lambda cls: cls.__name__)


def test_every_public_estimator_is_checked():
    checked = {cls for estimator, _ in CHECKED for cls in type(estimator).__mro__}
    checked |= NOT_CHECKED.keys()
    assert [cls for cls in PUBLIC if hasattr(cls, "fit") and cls not in checked] == []
    assert len(PUBLIC) > 50


# What the constructors of estimators, strategies and stopping rules need.
ARGUMENTS = {
    "annotator": "a machine",
    "descriptions": {0: "no", 1: "yes"},
    "error_cost": 1.0,
    "estimator": LINE,
    "function": len,
    "label_cost": 1.0,
    "n_initial": 4,
    "n_labels": 10,
    "n_rounds": 2,
    "parts": [("a", LINE)],
    "query_strategy": Random(),
    "seconds": 1.0,
    "source": "rows.npy",
    "until": 0.9,
}
ABSTRACT = (Strategy, PointwiseStrategy, WrapperStrategy, StoppingRule)


@pytest.mark.parametrize("cls", [x for x in PUBLIC if x not in ABSTRACT])
def test_parameters_are_those_of_a_scikit_learn_object(cls):
    needed = [
        name
        for name, p in inspect.signature(cls).parameters.items()
        if p.default is p.empty and p.kind is not p.VAR_KEYWORD
    ]
    made = cls(**{name: ARGUMENTS[name] for name in needed})
    for check in (
        check_estimator_cloneable,
        check_estimator_repr,
        check_get_params_invariance,
        check_mixin_order,
        check_no_attributes_set_in_init,
        check_set_params,
    ):
        check(cls.__name__, made)
    assert cls is FunctionStrategy or repr(clone(made)) == repr(made)
