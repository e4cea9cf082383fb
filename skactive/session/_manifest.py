"""Pool and learner of a session, described so that a later process can compare them."""

import hashlib
import json
import os
from contextlib import suppress
from numbers import Integral

import numpy as np

from .._storage._files import write_atomic
from .._storage._fingerprint import (
    class_name,
    collect_versions,
    describe_json,
    find_changes,
    hash_ids,
    hash_items,
    major,
    warn_of_versions,
)
from .._storage._hash_index import HashIndex
from .._utils._format import warn_caller
from .._utils._pipelines import has_descriptions
from .._utils._plugins import find, find_plugin
from .._utils._repeatable import base_seed
from ..registry import FunctionStrategy
from ._labels import name_columns, normalize_labels
from ._pool import dump_hashes, find_moves, load_hashes
from ._state import State

HASHES = "pool.npy"


class PoolChangedError(ValueError):
    """A pool lacks labeled items of its session, or they changed.

    :class:`skactive.LabelingSession` raises it.

    Attributes
    ----------
    fault : str
        What is missing or changed.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skactive import ActiveLearner, LabelingSession
    >>> from skactive.session import PoolChangedError
    >>> learner, folder = ActiveLearner(LogisticRegression()), mkdtemp()
    >>> with LabelingSession(learner, ["good", "bad"], folder) as session:
    ...     session.tell(0, "yes", unasked=True)
    >>> try:
    ...     LabelingSession(learner, ["very good", "bad"], folder)
    ... except PoolChangedError as error:
    ...     print(error.fault)
    1 labeled items are missing or changed: 0
    """

    fault = ""


def begin_or_resume(
    journal, pool, learner, classes, options, target=None, descriptions=None
):
    """Write the files of a new session, or record what differs from the last time.

    `target` is the declared one, or None. The journal has a state afterwards.
    """
    is_new = journal.manifest is None
    if is_new or classes is not None:
        name_columns(getattr(learner, "y_labeled_", None), target, classes)
    if is_new:
        manifest, hashes = new_manifest(learner, pool, classes, target)
        if descriptions is not None:
            manifest["descriptions"] = descriptions
        journal.begin(manifest, {HASHES: dump_hashes(hashes)})
    else:
        _check_opening(journal, learner, target)
        warn_of_versions(journal.manifest.get("versions", {}), stacklevel=5)
        follow_pool(journal, pool)
    estimator = getattr(learner, "estimator", None)
    own = estimator.descriptions if has_descriptions(estimator) else None
    words = journal.manifest.get("descriptions", own)
    journal.follow(State(pool, journal.manifest.get("classes"), words))
    _note_options(journal, options, is_new)
    if not is_new:
        _note_learner(journal, learner)
        _note_classes(journal, classes)


def _check_opening(journal, learner, target):
    """Refuse another target than that of the session; warn of another seed."""
    declared = journal.manifest.get("target")
    if None not in (declared, target) and declared != target:
        raise ValueError(
            f"'multi_label' must be that of the session in {journal.folder!r}, "
            f"which is {declared}, got {target}. Leave it out."
        )
    seed, stored = learner.random_state, journal.manifest["base_seed"]
    if isinstance(seed, Integral) and base_seed(seed) != stored:
        warn_caller(
            f"'learner' has random_state={seed}, but the session began with {stored}, "
            "which it continues to use."
        )


def _note_options(journal, options, is_new):
    now = {"settle": options.settle}
    if options.overlap is not None:
        now["overlap"] = float(options.overlap)
    before = {name: getattr(journal.state, name) for name in now}
    if not (changes := find_changes(before, now)):
        return
    if not is_new:
        warn_caller(
            f"this session used other options so far: {changes}. This is noted in the "
            "journal, and the session uses the new ones."
        )
    changed = {name: value for name, value in now.items() if value != before[name]}
    journal.record("options", **changed)


def _note_learner(journal, learner):
    description = json.loads(json.dumps(describe_learner(learner)))
    before = journal.state.learner or journal.manifest["learner"]
    if changes := find_changes(_flatten(before), _flatten(description)):
        warn_caller(
            f"'learner' is not the one that this session used so far: {changes}. This "
            "is noted in the journal, and the next batches use the new one."
        )
        journal.record("learner", learner=description)


def _note_classes(journal, classes):
    state = journal.state
    if classes in (None, state.opened_with):
        return
    labels = list(state.labels().values())
    normalize_labels(labels, list(state.answers), None, classes, state.renamed)
    journal.record("classes", classes=classes)


def new_manifest(learner, pool, classes=None, target=None):
    """Return the manifest of a new session, and the hashes of its pool (n, 2)."""
    summary, hashes = pool.fingerprint()
    manifest = {
        "pool": summary,
        "learner": describe_learner(learner),
        "base_seed": base_seed(learner.random_state),
        "versions": collect_versions(),
    }
    if classes is not None:
        manifest["classes"] = classes
    if target in ("single-label", "multi-label"):
        manifest["target"] = target
    return manifest, hashes


def follow_pool(journal, pool):
    """Compare a pool with that of a session; record changes in the journal.

    Items may be new, in another order, or gone if they have no label. Raise a
    ValueError that names missing labeled items or changed items.
    """
    summary, _ = pool.fingerprint()
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
            f"ones is unknown, as {name!r} is missing or damaged",
        )
    state = State()
    state.fold(journal.events)
    ids = (id for event in journal.events for id in event.get("ids", ()))
    others = [id for id in dict.fromkeys(ids) if id not in state.answers]
    try:
        moves = find_moves(hashes, pool, list(state.answers), others)
    except ValueError as exc:
        _refuse_pool(journal, exc)
    moved = {"was": list(moves) or None, "is": list(moves.values()) or None}
    record_pool(journal, pool, **moved)
    journal.read_again()


def record_pool(journal, pool, **fields):
    """Record the present pool of a session, and replace its file of hashes."""
    summary, hashes = pool.fingerprint()
    _, old_name = last_pool(journal.manifest, journal.events)
    name = f"pool-{len(journal.events) + 1}.npy"
    write_atomic(journal.file(name), dump_hashes(hashes))
    journal.append("pool", **summary, hashes=name, **fields)
    with suppress(OSError):
        os.unlink(journal.file(old_name))


def last_pool(manifest, events):
    """Return the summary of the last pool of a session, and its file of hashes."""
    for event in reversed(events):
        if event["event"] == "pool":
            return event, event["hashes"]
    return manifest["pool"], HASHES


def read_contents(folder, manifest, events, ids):
    """Return the hashes of some items of a session as a list."""
    summary, name = last_pool(manifest, events)
    hashes = load_hashes(os.path.join(folder, name), summary)
    if hashes is None:
        raise ValueError(
            f"{name!r} of the session in {str(folder)!r} is missing or damaged; "
            "without it, items cannot be compared. Restore it from a copy."
        )
    rows = HashIndex(hashes[:, 0]).find(hash_ids(ids))
    if (rows < 0).any():
        unknown = ids[int(np.argmin(rows))]
        raise ValueError(
            f"{name!r} of the session in {str(folder)!r} must hold its labeled items; "
            f"it lacks {unknown!r}. Restore it from a copy."
        )
    return hashes[rows, 1].tolist()


def _refuse_pool(journal, fault):
    error = PoolChangedError(
        f"'X_pool' must hold the labeled items of the session in {journal.folder!r} "
        f"as they were: {fault}. Restore these items; or begin a session in a new "
        f"folder and import the labels of all others with "
        f"import_labels({journal.folder!r}, ignore_unknown=True)."
    )
    error.fault = str(fault)
    raise error


def describe_learner(learner):
    """Return class, parameters, strategy and labels of a learner as JSON values.

    Nested parameters have their full names. A registered strategy has its distribution
    and version. The labels are those that the learner was fitted to before the session.
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


def _flatten(description):
    """Return a description as one dict; of a version, the first number counts.

    Where features are cached is no matter of the model.
    """
    strategy, offer = description.get("strategy"), None
    params = description.get("params", {})
    if isinstance(strategy, dict) and {"dist", "version"} <= strategy.keys():
        offer = f"{strategy['dist']} {major(strategy['version'])}"
    return {
        "class": description.get("class"),
        "labels of the first fit": description.get("labels"),
        "distribution of the strategy": offer,
        **{x: y for x, y in params.items() if not x.endswith("cache")},
    }


def _describe_strategy(strategy):
    try:
        plugin = _find_plugin(strategy)
    except (TypeError, ValueError, AttributeError):
        plugin = None
    if plugin is None:
        return describe_json(strategy)  # a function, a local class, or no such name
    return {"name": plugin.name, "dist": plugin.dist, "version": plugin.version}


def _find_plugin(strategy):
    """Return the plugin of a strategy or of its name; None if it or a part has none."""
    if isinstance(strategy, str):
        return find(strategy)
    parts = [getattr(strategy, name) for name in getattr(strategy, "parts", ())]
    if not hasattr(strategy, "select") or None in map(_find_plugin, parts):
        return None
    is_function = type(strategy) is FunctionStrategy
    return find_plugin(strategy.function if is_function else type(strategy))
