"""Estimators that take the wrong texts, or mix them up, for the checks to notice."""

import numpy as np

from skactive._utils._texts import as_texts

from .sound import WIDTH, Classifier, Regressor, Transformer

# Containers


class CutsFixedWidths(Transformer):
    def read(self, X):
        texts = super().read(X)
        fixed = getattr(getattr(X, "dtype", None), "kind", "") == "U"
        return [text[:5] for text in texts] if fixed else texts


class FitsByLabel(Regressor):
    def read_to_fit(self, X):
        texts = super().read_to_fit(X)
        return texts[::-1] if hasattr(X, "index") and hasattr(X, "loc") else texts


class LooksUpByLabel(Regressor):
    def read_to_fit(self, X):
        texts = super().read_to_fit(X)
        return [X[i] for i in range(len(texts))]


# What should be refused


class ReadsLetters(Classifier):
    def read(self, X):
        return as_texts(list(X) if isinstance(X, str) else X)


class SaysNothingOfLists(Classifier):
    def read_to_fit(self, X):
        if isinstance(X, str):
            raise ValueError("bad input")
        return super().read_to_fit(X)


class CountsTheColumns(Transformer):
    def read(self, X):
        return as_texts(list(X) if hasattr(X, "columns") else X)


class FlattensArrays(Regressor):
    def read_to_fit(self, X):
        is_column = isinstance(X, np.ndarray) and X.ndim == 2
        return super().read_to_fit(X.ravel() if is_column else X)


def is_missing(item):
    return item is None or item != item


class FillsGaps(Classifier):
    def read(self, X):
        if np.ndim(X) != 1 or hasattr(X, "to_list"):
            return as_texts(X)
        return as_texts(["" if is_missing(item) else item for item in X])


class NamesNoPosition(Transformer):
    def read_to_fit(self, X):
        if isinstance(X, list) and any(map(is_missing, X)):
            raise ValueError("there are missing texts")
        return super().read_to_fit(X)


class TripsOverGaps(Transformer):
    def read_to_fit(self, X):
        if isinstance(X, list):
            for text in X:
                if is_missing(text):
                    text.split()
        return super().read_to_fit(X)


class FillsGapsOfSeries(Regressor):
    def read(self, X):
        is_series = hasattr(X, "to_list")
        return as_texts([item or "" for item in X] if is_series else X)


class TurnsItemsIntoTexts(Classifier):
    def read(self, X):
        if isinstance(X, list):
            X = [str(v) if isinstance(v, bytes) or v == 3.5 else v for v in X]
        return as_texts(X)


class NothingForNothing(Transformer):
    def transform(self, X):
        if isinstance(X, list) and not X:
            return np.empty((0, WIDTH))
        return super().transform(X)


# Rows


class DropsEmptyTexts(Transformer):
    def read(self, X):
        return [text for text in super().read(X) if text]


class DividesByLength(Transformer):
    def transform(self, X):
        rows = super().transform(X)
        lengths = [len(text) for text in self.read(X)]
        with np.errstate(divide="ignore", invalid="ignore"):
            return rows / np.array(lengths)[:, None]


class WorksOnDifferentTexts(Transformer):
    def read(self, X):
        return list(dict.fromkeys(super().read(X)))


class CountsRepetitions(Transformer):
    def transform(self, X):
        rows, seen = super().transform(X), {}
        for row, text in zip(rows, self.read(X), strict=True):
            seen[text] = seen.get(text, 0) + 1
            row[0] += seen[text]
        return rows


class StaysSorted(Regressor):
    def rows(self, X):
        order = np.argsort([-len(text) for text in self.read(X)], kind="stable")
        return super().rows(X)[order]


class CentresEachCall(Transformer):
    def transform(self, X):
        rows = self.rows(X)
        return rows - rows.mean(axis=0)


class LosesItsOnlyRow(Classifier):
    def predict_proba(self, X):
        return np.squeeze(super().predict_proba(X))


# What is left alone


class NeedsToWrite(Classifier):
    def read_to_fit(self, X):
        if isinstance(X, np.ndarray) and not X.flags.writeable:
            raise ValueError("buffer source array is read-only")
        return super().read_to_fit(X)


class CentresInPlace(Regressor):
    def read_targets(self, y, n):
        found = super().read_targets(y, n)
        if isinstance(y, np.ndarray) and y.dtype.kind == "f" and y.flags.writeable:
            y -= y.mean()
        return found


class StripsInPlace(Transformer):
    def transform(self, X):
        rows = super().transform(X)
        if isinstance(X, np.ndarray) and X.dtype == object and X.flags.writeable:
            X[:] = ""
        return rows


class SortsTheList(Transformer):
    def fit(self, X, y=None):
        if isinstance(X, list):
            as_texts(X)
            X.sort()
        return super().fit(X)


MUTANTS = {
    "check_every_container_predicts_the_same": [
        (CutsFixedWidths(), "for a U array transform returns other values than for a"),
    ],
    "check_every_container_fits_the_same": [
        (FitsByLabel(), "after fit on a pandas Series of object predict returns other"),
    ],
    "check_single_text_is_refused": [
        (ReadsLetters(), "predict of a single str is accepted.*suggest a list"),
        (SaysNothingOfLists(), "fit of a single str is refused with ValueError: 'bad"),
    ],
    "check_frame_is_refused": [
        (CountsTheColumns(), "transform of a pandas DataFrame .*is accepted"),
    ],
    "check_column_array_is_refused": [
        (FlattensArrays(), r"fit of an array of shape \(n, 1\) is accepted"),
    ],
    "check_missing_text_is_refused": [
        (FillsGaps(), "with None at position 7 is accepted"),
        (NamesNoPosition(), "refused with ValueError: 'there are missing texts'"),
        (TripsOverGaps(), "fit of a list with None at position 7 raises AttributeErr"),
    ],
    "check_missing_value_of_a_series_is_refused": [
        (FillsGapsOfSeries(), "predict of a pandas Series of object .*is accepted"),
    ],
    "check_other_items_are_refused": [
        (TurnsItemsIntoTexts(), "predict of float at position 7 is accepted"),
    ],
    "check_nothing_is_refused": [
        (NothingForNothing(), "transform of an empty list is accepted"),
    ],
    "check_empty_text_is_allowed": [
        (DropsEmptyTexts(), "returns 11 rows for 12 texts, one of them empty"),
        (DividesByLength(), "returns NaN or infinity for an empty text"),
    ],
    "check_subset_of_texts": [
        (CentresEachCall(), "for 5 of 12 texts transform differs by up"),
    ],
    "check_read_only_input": [(NeedsToWrite(), "ValueError: buffer source array")],
    "check_input_is_unchanged": [
        (CentresInPlace(), "fit changed X or y; work on a copy"),
        (StripsInPlace(), "a method changed X; work on a copy"),
    ],
}
GRAVE = {
    "check_every_container_fits_the_same": [(LooksUpByLabel(), "KeyError: 0")],
    "check_one_row_per_text": [
        (WorksOnDifferentTexts(), "transform returns 11 rows for 12 texts"),
        (CountsRepetitions(), "of two equal texts in one call transform differs"),
    ],
    "check_order_of_texts": [
        (StaysSorted(), "in another order predict (returns|differs)")
    ],
    "check_subset_of_texts": [
        (
            LosesItsOnlyRow(),
            r"predict_proba returns the shape \(1, 2\) and then \(2,\)",
        ),
    ],
    "check_input_is_unchanged": [(SortsTheList(), "fit changed X or y")],
}
