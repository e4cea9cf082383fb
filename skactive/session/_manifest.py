"""What a session is begun with, in words that a later process can compare."""

import hashlib
import os
import warnings
from contextlib import suppress
from numbers import Integral

import numpy as np

from .._storage._files import write_atomic
from .._storage._fingerprint import class_name, describe_json, hash_items
from .._storage._versions import collect_versions, major
from .._utils._random import base_seed
from ..persistence._strategies import encode_choice
from ._pool import dump_hashes, find_moves, load_hashes
from ._state import State

HASHES = "pool.npy"
_LONGEST = 200


def new_manifest(learner, pool, classes=None):
    """Describe a new session.

    Parameters
    ----------
    learner : ActiveLearner
    pool : Pool
    classes : list, default=None

    Returns
    -------
    manifest : dict
    others : dict of str to bytes
        Files that go with it.
    """
    summary, hashes = pool.fingerprint()
    manifest = {
        "pool": summary,
        "learner": describe_learner(learner),
        "base_seed": base_seed(learner.random_state),
        "versions": collect_versions(),
    }
    if classes is not None:
        manifest["classes"] = classes
    return manifest, {HASHES: dump_hashes(hashes)}


def follow_pool(journal, pool):
    """Compare a pool with that of a session; note in the journal what changed.

    Items may be new, in another order, or gone if they have no label.

    Parameters
    ----------
    journal : Journal
        Its events have the ids of `pool` afterwards.
    pool : Pool

    Raises
    ------
    ValueError
        If a labeled item is missing or an item changed, naming them.
    """
    summary, now = pool.fingerprint()
    before, name = last_pool(journal.manifest, journal.events)
    if all(before.get(key, value) == value for key, value in summary.items()):
        return
    columns = before.get("columns"), summary.get("columns")
    if all(columns) and columns[0] != columns[1]:
        _refuse_pool(journal, "its columns were {} and are {}".format(*columns))
    hashes = load_hashes(journal.file(name), before)
    if hashes is None:
        _refuse_pool(
            journal,
            f"it held {before.get('n')} items and holds {summary['n']} now; which "
            f"ones cannot be told, as {name!r} is missing or damaged",
        )
    state = State()
    state.fold(journal.events)
    ids = (id for event in journal.events for id in event.get("ids", ()))
    others = [id for id in dict.fromkeys(ids) if id not in state.answers]
    try:
        moves = find_moves(hashes, pool, list(state.answers), others)
    except ValueError as exc:
        _refuse_pool(journal, exc)
    new_name = f"pool-{len(journal.events) + 1}.npy"
    write_atomic(journal.file(new_name), dump_hashes(now))
    journal.append(
        "pool",
        **summary,
        hashes=new_name,
        was=list(moves) or None,
        **{"is": list(moves.values()) or None},
    )
    journal.read_again()
    with suppress(OSError):
        os.unlink(journal.file(name))


def last_pool(manifest, events):
    """Give the summary of the pool that a session had last, and its file of hashes."""
    for event in reversed(events):
        if event["event"] == "pool":
            return event, event["hashes"]
    return manifest["pool"], HASHES


def read_contents(folder, manifest, events):
    """Read the hashes of a session's items.

    Parameters
    ----------
    folder : str
    manifest : dict
    events : list of dict

    Returns
    -------
    contents : dict of int to int
        By the hash of an id, that of the item.
    """
    summary, name = last_pool(manifest, events)
    hashes = load_hashes(os.path.join(folder, name), summary)
    if hashes is None:
        raise ValueError(
            f"{name!r} of the session in {str(folder)!r} is missing or damaged; "
            "without it, items cannot be compared. Restore it from a copy."
        )
    return dict(hashes.tolist())


def _refuse_pool(journal, fault):
    raise ValueError(
        f"'X_pool' must hold the labeled items of the session in {journal.folder!r} "
        f"as they were: {fault}. Restore these items; or begin a session in a new "
        f"folder and take over the labels of all others with "
        f"import_labels({journal.folder!r}, ignore_unknown=True)."
    )


def describe_learner(learner):
    """Describe a learner's class, parameters and strategy, as far as JSON goes.

    Parameters
    ----------
    learner : ActiveLearner

    Returns
    -------
    description : dict
        `class`, `params` (nested ones too, by their names), `strategy` with its
        distribution and version where it is registered, and `labels`, what the
        learner was fitted to before the session.
    """
    params = {
        name: describe_json(value)
        for name, value in sorted(learner.get_params().items())
        if name != "random_state"
    }
    labels = None
    if hasattr(learner, "X_labeled_"):
        content = [*hash_items(learner.X_labeled_), *hash_items(learner.y_labeled_)]
        digest = hashlib.sha256(np.array(content, dtype="<u8").tobytes())
        labels = {"n": len(learner.y_labeled_), "sha256": digest.hexdigest()}
    return {
        "class": class_name(learner),
        "params": params,
        "strategy": _describe_strategy(getattr(learner, "strategy", None)),
        "labels": labels,
    }


def find_changes(before, now):
    """Name the differences between two descriptions of a learner.

    Parameters
    ----------
    before, now : dict
        From :func:`describe_learner`.

    Returns
    -------
    changes : list of str
        Such as "batch_size (10, now 20)".
    """
    pairs = {
        "its class": (before.get("class"), now["class"]),
        "the labels it was fitted to": (before.get("labels"), now["labels"]),
    }
    params = before.get("params", {})
    offers = [_offer(description.get("strategy")) for description in (before, now)]
    if params.get("strategy") == now["params"].get("strategy"):
        pairs["who offers its strategy"] = offers
    for name in sorted({*params, *now["params"]}):
        pairs[name] = params.get(name), now["params"].get(name)
    return [
        f"{name} ({_shorten(old)}, now {_shorten(new)})"
        for name, (old, new) in pairs.items()
        if old != new
    ]


def choose_seed(learner, stored):
    """Choose the seed of a session that is opened again; warn of another one."""
    given = learner.random_state
    if not isinstance(given, Integral) or base_seed(given) == stored:
        return stored
    warnings.warn(
        f"'learner' has random_state={given}, and the session was begun with {stored}, "
        "by which it goes on.",
        UserWarning,
        stacklevel=4,
    )
    return stored


def _offer(strategy):
    """Name the distribution and the major version, where there are any."""
    if not isinstance(strategy, dict) or not {"dist", "version"} <= strategy.keys():
        return None
    return f"{strategy['dist']} {major(strategy['version'])}"


class _Describer:
    """What `encode_choice` needs for the parameters of a strategy."""

    def encode(self, value, where):
        return describe_json(value)


def _describe_strategy(strategy):
    try:
        node = encode_choice(strategy, "strategy", _Describer())
    except (TypeError, ValueError, AttributeError):
        return describe_json(strategy)  # a function, a local class, or no such name
    return {key: node[key] for key in ("name", "dist", "version")}


def _shorten(value):
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."
