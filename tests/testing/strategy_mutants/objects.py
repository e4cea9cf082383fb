"""Strategies that are faulty as objects, for the checks of that kind to notice."""

import functools

import numpy as np

from skactive.strategies import PointwiseStrategy


class Sound(PointwiseStrategy):
    """Pass every check."""

    requires = frozenset({"proba"})

    def __init__(self, weight=1.0):
        self.weight = weight

    def score(self, view):
        return -view.proba.max(axis=1)


class ListOfNeeds(Sound):
    requires = ["proba"]


class NoNeeds(Sound):
    requires = None


class UnknownNeed(Sound):
    requires = frozenset({"proba", "logits"})


def other_signature(view):
    """Lend its signature to a method."""


class SelectSaysOneArgument(Sound):
    @functools.wraps(other_signature)
    def select(self, view, n_queries):
        return super().select(view, n_queries)


class SelectTakesMore(Sound):
    def select(self, view, n_queries, rng):
        return super().select(view, n_queries)


class SelectIsNoMethod(Sound):
    select = None


class InitSetsMore(Sound):
    def __init__(self, weight=1.0):
        self.weight = weight
        self.cache = {}


class InitConverts(Sound):
    def __init__(self, weight=1.0):
        self.weight = float(weight)


class InitCopies(Sound):
    def __init__(self, weight=1.0):
        self.weight = np.asarray(weight)


class InitForgets(Sound):
    def __init__(self, weight=1.0):
        pass

    def get_params(self, deep=True):
        return {"weight": 1.0}

    def set_params(self, **params):
        if params.keys() - {"weight"}:
            raise ValueError(params)
        return self


class InitTakesAnything(Sound):
    def __init__(self, weight=1.0, **others):
        self.weight = weight


class InitPrints(Sound):
    def __init__(self, weight=1.0):
        self.weight = weight
        print("made")  # noqa: T201


class SetParamsGivesNothing(Sound):
    def set_params(self, **params):
        super().set_params(**params)


class SetParamsTakesAnything(Sound):
    def set_params(self, **params):
        known = self.get_params()
        return super().set_params(**{k: params[k] for k in params.keys() & known})


class SetParamsConverts(Sound):
    def set_params(self, weight=1.0, **params):
        super().set_params(**params)
        self.weight = np.array(weight)
        return self


class HiddenSetting(Sound):
    """What decides is set from outside and is no parameter."""

    sign = 1

    def score(self, view):
        return self.sign * super().score(view)


def hidden_setting():
    strategy = HiddenSetting()
    strategy.sign = -1
    return strategy


class CloneOfAnotherClass(Sound):
    def __sklearn_clone__(self):
        return Sound(self.weight)


class CloneOfOtherParameters(Sound):
    def __sklearn_clone__(self):
        return type(self)(self.weight + 1)


class RemembersScores(Sound):
    def score(self, view):
        self.scores_ = super().score(view)
        return self.scores_


class CountsInPlace(Sound):
    def score(self, view):
        self.weight.append(len(view))
        return super().score(view)


class WithCalls:
    """A function, which has no hash, and the number of its calls."""

    def __init__(self):
        self.sign = lambda scores: -scores
        self.n_calls = 0


class CountsBesideAFunction(Sound):
    def score(self, view):
        for part in self.weight:
            part.n_calls += 1
        return super().score(view)


class PicklesNotAll(Sound):
    sign = 1

    def score(self, view):
        return self.sign * super().score(view)

    def __deepcopy__(self, memo):
        copied = type(self)(self.weight)
        copied.sign = self.sign
        return copied

    def __sklearn_clone__(self):
        return self.__deepcopy__({})

    def __getstate__(self):
        return {"weight": self.weight}


def pickles_not_all():
    strategy = PicklesNotAll()
    strategy.sign = -1
    return strategy


def local_class():
    class Local(Sound):
        pass

    return Local()


#: check -> strategies that fail it and no other, each with what the check says.
MUTANTS = {
    "check_requires_known_names": [
        (NoNeeds(), r"`requires` is None; make it a frozenset"),
    ],
    "check_select_is_a_method": [
        (
            SelectSaysOneArgument(),
            r"select does not take \(view, n_queries\): too many pos",
        ),
    ],
    "check_init_only_stores": [
        (InitSetsMore(), r"__init__ sets \['cache'\] in addition to its"),
        (InitConverts(), r"__init__ works on its parameters \(TypeError: float"),
        (InitCopies(), r"__init__ does not store \['weight'\] as given"),
        (InitForgets(), r"__init__ does not store \['weight'\] as given"),
        (InitPrints(), r"__init__ prints 'made\\n'; leave it out"),
        (InitTakesAnything(), r"__init__ takes \*args or \*\*kwargs; name every"),
    ],
    "check_get_and_set_params": [
        (SetParamsGivesNothing(), "set_params does not return self; inherit it"),
        (SetParamsTakesAnything(), "took the unknown name 'no_such_parameter'"),
        (SetParamsConverts(), r"set_params\(\*\*get_params\(\)\) turned {'weight'"),
    ],
    "check_clone": [
        (hidden_setting(), "a clone asks for other items; keep everything"),
        (CloneOfAnotherClass(), "clone returns an object of another class"),
        (CloneOfOtherParameters(), r"clone turned .* into .*\(weight=2\.0\)"),
    ],
    "check_keeps_no_state": [
        (RemembersScores(), r"select changed the attributes \['scores_'\]; keep"),
        (CountsInPlace([]), r"select changed the attributes \['weight'\]; keep"),
    ],
    "check_pickle": [
        (local_class(), r"it cannot be pickled \(.*local_class.*\); define classes"),
        (pickles_not_all(), "after pickling it asks for other items; keep every"),
    ],
}

#: Faults that no query or no pickle survives: they fail other checks as well.
GRAVE = {
    "check_keeps_no_state": [
        (
            CountsBesideAFunction([WithCalls()]),
            r"select changed the attributes \['weight'\]; keep",
        ),
    ],
    "check_requires_known_names": [
        (ListOfNeeds(), r"`requires` must be a frozenset of names, got \['proba'\]"),
        (
            UnknownNeed(),
            r"`requires` holds 'logits', which is unknown\. .*'class_scores'",
        ),
    ],
    "check_select_is_a_method": [
        (
            SelectTakesMore(),
            r"select does not take \(view, n_queries\): missing a required",
        ),
        (SelectIsNoMethod(), "no method select"),
    ],
}
