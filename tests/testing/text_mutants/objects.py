"""Estimators of texts that are faulty as objects, for the checks to notice."""

import random

import numpy as np
from sklearn.utils import check_random_state

from .sound import WIDTH, Classifier, Regressor, Transformer, count_words


class SaysTables(Transformer):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


class InitSetsMore(Classifier):
    def __init__(self, scale=2.5, words=None, random_state=None):
        super().__init__(scale, words, random_state)
        self.seen = {}


class InitConverts(Transformer):
    def __init__(self, scale=2.5, words=None, random_state=None):
        super().__init__(np.float64(scale), words, random_state)


class FitReturnsNothing(Classifier):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)


class FitReplacesAParameter(Regressor):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.words = []
        return self


class FitCopiesAParameter(Regressor):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.words = list(self.words)
        return self


class FitFillsAParameter(Regressor):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.words.append("and")
        return self


class TripsBeforeFit(Classifier):
    def rows(self, X):
        return count_words(self.read(X)) / self.scale


class WorksBeforeFit(Transformer):
    def transform(self, X):
        return count_words(self.read(X))


class GoesOn(Transformer):
    def fit(self, X, y=None):
        before = getattr(self, "mean_", 0)
        super().fit(X)
        self.mean_ = self.mean_ + before
        return self


class UnseededNoise(Classifier):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.means_ = self.means_ + np.random.default_rng().normal(size=WIDTH)
        return self


class CloneIsItself(Transformer):
    def __sklearn_clone__(self):
        return self


class CloneForgets(Transformer):
    def __sklearn_clone__(self):
        return type(self)()


class HoldsALambda(Classifier):
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.link_ = lambda x: x
        return self


class PickleForgets(Regressor):
    def __getstate__(self):
        state = dict(super().__getstate__())
        if "weights_" in state:
            state["weights_"] = state["weights_"].round(1)
        return state


class SeedsNumpy(Classifier):
    def predict(self, X):
        np.random.seed(0)  # noqa: NPY002
        return super().predict(X)


class MovesNumpy(Transformer):
    def fit(self, X, y=None):
        np.random.random_sample()  # noqa: NPY002
        return super().fit(X)


class MovesPython(Regressor):
    def predict(self, X):
        random.random()
        return super().predict(X)


class ReadsTheGlobalSeed(Transformer):
    """Moves nothing, and yet depends on what the user seeded."""

    def fit(self, X, y=None):
        super().fit(X)
        state = np.random.get_state()  # noqa: NPY002
        copied = check_random_state(np.random.RandomState())
        copied.set_state(state)
        self.mean_ = self.mean_ + copied.normal()
        return self


class SetsBeforeItChecks(Classifier):
    def fit(self, X, y, sample_weight=None):
        self.n_texts_ = len(X)
        return super().fit(X, y, sample_weight)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "means_")


class ForgetsBeforeItChecks(Regressor):
    def fit(self, X, y, sample_weight=None):
        if hasattr(self, "weights_"):
            self.weights_ = np.zeros(WIDTH)
        return super().fit(X, y, sample_weight)


class ShortCut(Transformer):
    def fit_transform(self, X, y=None):
        self.fit(X)
        return count_words(self.read(X)) / self.scale


class OneNameForAll(Transformer):
    def get_feature_names_out(self, input_features=None):
        return np.array(["count"] * WIDTH, dtype=object)


class TooFewNames(Transformer):
    def get_feature_names_out(self, input_features=None):
        return np.array(["count"], dtype=object)


class NoNames(Transformer):
    @property
    def get_feature_names_out(self):
        raise AttributeError("get_feature_names_out")


class NoFrame(Transformer, auto_wrap_output_keys=None):
    pass


class _TransformsElsewhere:
    def transform(self, X):
        return self.rows(X)


class FrameByNobody(_TransformsElsewhere, Transformer):
    pass


class NumbersTheRows(Transformer):
    def transform(self, X):
        found = super().transform(X)
        return found.reset_index(drop=True) if hasattr(found, "index") else found


class Rounds(Transformer):
    def transform(self, X):
        found = super().transform(X)
        return found.round(1) if hasattr(found, "index") else found


def _wrapped(cls):
    """Leave the frame to the parent's `transform`, which is wrapped already."""
    cls.transform = cls.__dict__["transform"].__wrapped__
    return cls


MUTANTS = {
    "check_tags_are_honest": [(SaysTables(), "two_d_array': True.*set string=True")],
    "check_init_only_stores": [
        (InitSetsMore(), r"sets \['seen'\] more or less than its parameters"),
    ],
    "check_fit_returns_self": [(FitReturnsNothing(), "return self")],
    "check_parameters_are_untouched": [
        (FitReplacesAParameter(), r"changed the parameters \['words'\]"),
        (FitCopiesAParameter(words=["the"]), r"changed the parameters \['words'\]"),
        (FitFillsAParameter(words=["the"]), r"changed the parameters \['words'\]"),
    ],
    "check_unfitted_is_refused": [
        (TripsBeforeFit(), "before fit raises AttributeError.*check_is_fitted"),
        (WorksBeforeFit(), "transform works before fit.*requires_fit=False"),
    ],
    "check_fitting_twice": [(GoesOn(), "fitted before on something else, transform")],
    "check_clone": [
        (CloneIsItself(), "a clone has .*'mean_'"),
        (
            CloneForgets(scale=3.5),
            "from a fitted clone, transform returns other values",
        ),
    ],
    "check_pickle": [
        (HoldsALambda(), "cannot be pickled .*define classes"),
        (PickleForgets(), "from a pickle, predict returns other values"),
    ],
    "check_no_global_generator": [
        (SeedsNumpy(), "moved the global generator of numpy.random"),
        (MovesNumpy(), "moved the global generator of numpy.random"),
        (MovesPython(), "moved the global generator of random"),
        (ReadsTheGlobalSeed(), "with another global seed transform returns other"),
    ],
    "check_failed_fit_changes_nothing": [
        (SetsBeforeItChecks(), r"a failed fit leaves \['n_texts_'\]"),
        (ForgetsBeforeItChecks(), "after a failed fit predict returns other values"),
    ],
    "check_fit_transform": [(ShortCut(), "fit_transform returns other values than")],
    "check_feature_names_out": [
        (OneNameForAll(), "returns 8 names, 1 of them different, for 8 columns"),
    ],
    "check_set_output": [
        (NoFrame(), "there is no set_output"),
        (FrameByNobody(), "transform returns ndarray"),
        (_wrapped(NumbersTheRows)(), "another index than X"),
        (_wrapped(Rounds)(), "has other values"),
    ],
}
GRAVE = {
    "check_init_only_stores": [(InitConverts(), r"__init__ converts \['scale'\]")],
    "check_fitting_twice": [(UnseededNoise(), "predict.* returns other values in the")],
    "check_feature_names_out": [
        (TooFewNames(), "returns 1 names"),
        (NoNames(), "there is no get_feature_names_out"),
    ],
}
