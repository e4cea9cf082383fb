"""Estimators of texts that are faulty with labels or numbers, for the checks."""

import numpy as np

from skactive._utils._labels import as_labels

from .sound import Classifier, Regressor

# Any targets


class MakesUpTargets(Regressor):
    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X, range(len(X)) if y is None else y, sample_weight)


class FitsWhatThereIs(Classifier):
    def fit(self, X, y, sample_weight=None):
        if y is not None and not hasattr(X, "columns"):
            X = X[: len(y)]
        return super().fit(X, y, sample_weight)


class FillsMissingLabels(Classifier):
    def read_targets(self, y, n):
        if isinstance(y, list):
            y = ["no" if v is None or v != v else v for v in y]
        return as_labels(y, n)


class FillsMissingNumbers(Regressor):
    def read_targets(self, y, n):
        if isinstance(y, list):
            y = [0.0 if v is None or v != v else v for v in y]
        return as_labels(y, n)


class TakesATupleForSomethingElse(Regressor):
    def read_targets(self, y, n):
        return as_labels(y[::-1] if isinstance(y, tuple) else y, n)


class TakesNoSeries(Classifier):
    def read_targets(self, y, n):
        return as_labels([y[i] for i in range(len(y))] if y is not None else y, n)


class WeighsTwice(Regressor):
    def fit(self, X, y, sample_weight=None):
        if sample_weight is not None:
            sample_weight = 2 * np.asarray(sample_weight)
        return super().fit(X, y, sample_weight)


class TakesAnyWeights(Classifier):
    def fit(self, X, y, sample_weight=None):
        if sample_weight is not None:
            sample_weight = np.resize(sample_weight, len(X))
        return super().fit(X, y, sample_weight)


# Labels


class Renames(Classifier):
    """Convert the classes to another type, for labels of one kind."""

    kind = ""
    dtype = object

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        if self.classes_.dtype.kind == self.kind and len(self.classes_) == 2:
            self.classes_ = self.classes_.astype(self.dtype)
        return self


class StringsAsObjects(Renames):
    kind = "U"


class BoolsAsNumbers(Renames):
    kind, dtype = "b", int


class PredictsColumns(Classifier):
    def predict(self, X):
        predicted = super().predict(X)
        if predicted.dtype.kind == "i":
            return np.searchsorted(self.classes_, predicted)
        return predicted


class ComputesWithLabels(Classifier):
    def decision_function(self, X):
        scores = super().decision_function(X)
        if self.classes_.dtype.kind == "i":
            return scores + self.classes_ / 10
        return scores


class TwoClassesOnly(Classifier):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.classes_, self.means_ = self.classes_[:2], self.means_[:2]
        return self


class SumsToTwo(Classifier):
    def predict_proba(self, X):
        return 2 * super().predict_proba(X)


class OneColumn(Classifier):
    def predict_proba(self, X):
        return super().predict_proba(X)[:, 1:]


class PredictsTheLeast(Classifier):
    def predict(self, X):
        proba = self.predict_proba(X)
        return self.classes_[proba.argmin(axis=1)]


class ContentWithOneClass(Classifier):
    def fit(self, X, y, sample_weight=None):
        if isinstance(y, list) and set(y) == {"yes"}:
            return self
        return super().fit(X, y, sample_weight)


class SaysNothingOfClasses(Classifier):
    def fit(self, X, y, sample_weight=None):
        if isinstance(y, list) and set(y) == {"yes"}:
            raise ValueError("cannot train")
        return super().fit(X, y, sample_weight)


class TurnsLabelsIntoStrings(Classifier):
    def read_targets(self, y, n):
        is_mixed = isinstance(y, list) and {"yes", 1} <= set(y)
        return as_labels(list(map(str, y)) if is_mixed else y, n)


class ScoresWhatItKnows(Classifier):
    def score(self, X, y, sample_weight=None):
        known = np.isin(y, self.classes_)
        return np.mean((self.predict(X) == y)[known])


# Numbers


class PredictsAColumn(Regressor):
    def predict(self, X):
        return super().predict(X)[:, None]


class PredictsWholeNumbers(Regressor):
    def predict(self, X):
        return super().predict(X).astype(int)


class DividesInWholeNumbers(Regressor):
    def read_targets(self, y, n):
        y = super().read_targets(y, n)
        return y // 2 if y.dtype.kind == "i" else y


class NumbersTheStrings(Regressor):
    def read_targets(self, y, n):
        y = super().read_targets(y, n)
        return np.unique(y, return_inverse=True)[1] if y.dtype.kind == "U" else y


MUTANTS = {
    "check_targets_are_needed": [(MakesUpTargets(), "fit with y=None is accepted")],
    "check_lengths_agree": [(FitsWhatThereIs(), "12 texts and 11 targets is accept")],
    "check_missing_target_is_refused": [
        (FillsMissingLabels(), "fit with None at position 7 of y is accepted"),
        (FillsMissingNumbers(), "fit with None at position 7 of y is accepted"),
    ],
    "check_targets_in_any_container": [
        (TakesATupleForSomethingElse(), "in a tuple predict returns other values"),
        (TakesNoSeries(), "KeyError: 0"),
    ],
    "check_sample_weights_of_one": [
        (WeighsTwice(), "with weights of 1 predict returns other values"),
        (TakesAnyWeights(), "fit with 12 texts and 11 weights is accepted"),
    ],
    "check_string_labels": [(StringsAsObjects(), "np.unique")],
    "check_number_labels": [
        (PredictsColumns(), r"of the labels \[-3, 8\], predict returns \[[01], "),
        (ComputesWithLabels(), r"labels \[-3, 8\] in place .* returns other values"),
    ],
    "check_bool_labels": [(BoolsAsNumbers(), r"classes_ is \[.*0.*1.*\]; keep")],
    "check_three_classes": [(TwoClassesOnly(), r"labels \['a', 'b', 'c'\], classes_")],
    "check_probabilities": [
        (SumsToTwo(), "sums of rows from 2 to 2"),
        (OneColumn(), r"the shape \(12, 1\)"),
        (PredictsTheLeast(), "other classes than the largest of predict_proba"),
    ],
    "check_single_class_is_refused": [
        (ContentWithOneClass(), "fit with labels of one class only is accepted"),
        (SaysNothingOfClasses(), "refused with ValueError: 'cannot train'"),
    ],
    "check_mixed_labels_are_refused": [
        (TurnsLabelsIntoStrings(), "strings and integers as labels is accepted"),
    ],
    "check_unseen_class_in_score": [
        (ScoresWhatItKnows(), "with a class that is not in classes_, score is"),
    ],
    "check_predictions_are_numbers": [
        (PredictsAColumn(), r"predict returns the shape \(12, 1\) of float64"),
        (PredictsWholeNumbers(), r"predict returns the shape \(12,\) of int"),
    ],
    "check_whole_numbers": [(DividesInWholeNumbers(), "targets of float predict")],
    "check_strings_as_numbers_are_refused": [
        (NumbersTheStrings(), "a regressor with strings as targets is accepted"),
    ],
}
GRAVE = {}
