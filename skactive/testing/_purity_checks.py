"""Checks of what a strategy leaves alone: data, model, generators, torch."""

import sys
from contextlib import contextmanager
from dataclasses import replace
from importlib.abc import MetaPathFinder
from types import ModuleType

import joblib
import numpy as np
from scipy import sparse

from ._cases import ask, ensure, make_case, score
from ._generators import global_states, restore_globals, seed_globals
from ._models import GivenProba


def check_input_is_unchanged(subject):
    """A query writes neither into the pool nor into what the view hands out."""
    for convert in (np.array, sparse.csr_array, np.ndarray.tolist):
        case = make_case().with_rows(convert)
        if convert is sparse.csr_array and not _takes(subject, case):
            continue
        before = joblib.hash([case.X, case.X_labeled, case.y_labeled])
        strategy = subject.make()
        view = case.view(strategy)
        strategy.select(view, 5)
        ensure(
            joblib.hash([case.X, case.X_labeled, case.y_labeled]) == before,
            "a query changed the data it was given; work on a copy, such as "
            "np.array(view.features).",
        )
        fresh = case.view(strategy)
        for name in sorted({"proba", "class_scores"} & set(strategy.requires or ())):
            ensure(
                np.array_equal(getattr(view, name), getattr(fresh, name)),
                f"a query changed view.{name}, which others share; work on a copy: "
                f"np.array(view.{name}).",
            )


def check_model_is_unchanged(subject):
    """A query changes nothing that a prediction depends on."""
    case = make_case()
    learner = case.learner(subject)
    before = joblib.hash(learner.estimator_)
    learner.query(case.X, 5)
    ensure(
        joblib.hash(learner.estimator_) == before,
        "a query changed the fitted estimator; train and set parameters on "
        "sklearn.base.clone(view.estimator) instead.",
    )


def check_no_global_generator(subject):
    """No global random generator is moved or relied on."""
    case = make_case()
    states = global_states()
    try:
        picks = []
        for seed in (1, 2):
            strategy = subject.make()
            seed_globals(seed)
            before = global_states()
            picks.append(ask(strategy, case, 6))
            after = global_states()
            moved = [name for name in before if before[name] != after[name]]
            ensure(
                not moved,
                f"a query moved the global generator of {' and '.join(moved)}; take "
                "random numbers from view.rng, and a seed for what wants an int from "
                "view.rng.integers(2**31).",
            )
        ensure(
            np.array_equal(*picks),
            "a query depends on a global random seed; take random numbers from "
            "view.rng only.",
        )
    finally:
        restore_globals(states)


def check_permuted_pool(subject):
    """A pointwise strategy follows an item wherever it stands in the pool."""
    case = make_case(model=GivenProba(fixed_draws=True))
    strategy = subject.make()
    scores = score(strategy, case)
    if not np.array_equal(scores, score(strategy, case, seed=1)):
        return  # its scores are random, so there is nothing to follow
    order = np.random.default_rng(3).permutation(len(case.X))
    permuted = replace(case, X=case.X[order])
    ensure(
        np.allclose(score(strategy, permuted), scores[order], rtol=1e-6),
        "the scores of the items change with their order in the pool; score an item "
        "by what the view says of it, not by its position, and take random numbers "
        "from view.rng, not from a generator with a fixed seed.",
    )
    if np.unique(scores).size < scores.size:
        return
    picks, again = ask(strategy, case, 6), ask(strategy, permuted, 6)
    ensure(
        np.array_equal(order[again], picks),
        f"it asked for {picks.tolist()}, and for {order[again].tolist()} when the same "
        "pool stood in another order; order by the scores alone.",
    )


def check_no_fixed_seed_for_ties(subject):
    """Another seed of the learner breaks ties in another way."""
    case = make_case(n=20, equal=True)
    answers = {
        tuple(case.learner(subject, random_state=seed).query(case.X, 5).tolist())
        for seed in range(5)
    }
    ensure(
        len(answers) > 1,
        "five seeds gave one and the same batch out of equal candidates; take random "
        "numbers from view.rng, and seed nothing with a constant.",
    )


def check_runs_without_torch(subject):
    """Neither the strategy's module nor a query imports torch."""
    strategy = subject.make()
    target = strategy.function if subject.is_function else type(strategy)
    module = sys.modules.get(getattr(target, "__module__", None))
    held = (
        [
            name
            for name, value in vars(module).items()
            if isinstance(value, ModuleType) and value.__name__.split(".")[0] == "torch"
        ]
        if module
        else []
    )
    ensure(
        not held,
        f"its module imports torch (as {held}); import it where it is needed, so that "
        "listing strategies stays quick.",
    )
    with _torch_hidden():
        try:
            ask(strategy, make_case(), 5)
        except _TorchImported as exc:
            raise AssertionError(
                "a query imported torch; the view gives NumPy arrays, compute with "
                "NumPy."
            ) from exc


def _takes(subject, case):
    """Whether the strategy answers on this input at all; another check judges that."""
    try:
        ask(subject.make(), case, 5)
    except Exception:
        return False
    return True


class _TorchImported(ImportError):
    """Tells our refusal from that of a machine without torch."""


class _RefuseTorch(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise _TorchImported(f"{name} is hidden during this check")


@contextmanager
def _torch_hidden():
    """Make `import torch` raise, whether or not it was imported before."""
    # Its submodules too: from torch.nn import Linear asks for no torch if it has one.
    names = [name for name in sys.modules if name.split(".")[0] == "torch"]
    loaded = {name: sys.modules.pop(name) for name in names}
    finder = _RefuseTorch()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        sys.modules.update(loaded)


#: In the order in which they run.
PURITY_CHECKS = (
    check_input_is_unchanged,
    check_model_is_unchanged,
    check_no_global_generator,
    check_permuted_pool,
    check_no_fixed_seed_for_ties,
    check_runs_without_torch,
)
