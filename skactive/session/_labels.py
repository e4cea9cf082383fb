"""Labels: their kind, the classes that are allowed, and doubtful new classes."""

import copy
import math
import re
from collections import Counter
from difflib import get_close_matches

import numpy as np
from sklearn.base import clone, is_regressor

from .._utils._containers import as_list, take_rows
from .._utils._format import brief, is_missing, reprs, trim, warn_caller
from .._utils._labels import is_names, list_classes
from .._utils._pipelines import has_descriptions
from .._utils._sklearn import check_bool
from ..semi_supervised import ClassDescriptions
from ._codebook import list_texts, read_entry
from ._pool import is_list


class Vocabulary:
    """The target, the kind and the classes of the labels of a session.

    `target` is the one that the session is opened with, or None; if the manifest has
    none either, the labels decide. The allowed classes name the columns of an indicator
    matrix that the learner was fitted to.
    """

    def __init__(self, journal, learner, target):
        self._state, before = journal.state, getattr(learner, "y_labeled_", None)
        self._declared = target or journal.manifest.get("target")
        self._kind = None if before is None else kind_of(before[0])
        self._before = [] if np.ndim(before) != 1 else np.unique(before).tolist()
        self._known = None  # the classes so far, or None if not collected yet
        self.columns = name_columns(before, self._declared, self._state.opened_with)

    @property
    def target(self):
        """The target of a session: "single-label", "multi-label" or others."""
        kind = self.find_kind(self._state) or ""
        has_lists = kind == "names" or kind.startswith("list")
        if self._declared == "regression":
            return "multi-output" if has_lists else "regression"
        return self._declared or ("multi-label" if has_lists else "single-label")

    def find_kind(self, state, classes=None):
        """Return the kind of the labels of a state, or None."""
        for answer in state.answers.values():
            return kind_of(answer.label)
        if self._declared == "multi-label" or self.columns is not None:
            return "names"
        return self._kind or (kind_of(classes[0]) if classes else None)

    def kind_of_file(self):
        """Return the kind of the labels in a file, which `find_reading` takes."""
        kind = self.find_kind(self._state, self._state.classes)
        if kind in (None, "number") and self._declared == "regression":
            return "number"
        if kind == "number" and all(isinstance(x, int) for x in self.collect()):
            return "integer"
        is_open = kind == "str" and not self._state.answers and self._declared is None
        return "str or names" if is_open and self._kind is None else kind

    def name_columns(self, state):
        """Return the names of the columns to train on, None for other labels."""
        if self.find_kind(state) != "names":
            return None
        return list(state.classes or self._collect(state))

    def read(self, labels, ids, allows_new=True):
        """Return checked labels as JSON accepts them; warn of doubtful new classes.

        `allows_new` says whether a session without `classes` accepts new ones.
        """
        classes, renamed = self._state.classes, self._state.renamed
        labels = self.normalize(labels, ids)
        if not (allows_new or self._declared == "regression"):
            for id, label in zip(ids, labels, strict=True):
                _check_class(label, id, self.collect(), renamed)
        new = {name for name in list_classes(labels) if isinstance(name, str)}
        if classes is None and not new <= (self._known or set()):
            names = set(map(str, self.collect()))
            warn_of_new_classes(labels, names, renamed)
            self._known = names | new
        return labels

    def normalize(self, labels, ids):
        """Return labels as JSON accepts them, checked against the allowed classes."""
        state = self._state
        if self._declared == "multi-label":
            labels = wrap_names(labels)
        kind = self.find_kind(state)
        labels = normalize_labels(labels, ids, kind, state.classes, state.renamed)
        check_kinds(labels, ids, self._declared)
        return labels

    def collect(self):
        """Return the classes of the session, also if it allows any, as a list.

        Those that the learner was fitted to come first, then those that were added, and
        those of the labels in their order. Numbers to predict are no classes.
        """
        return self._state.classes or self._collect(self._state)

    def _collect(self, state):
        if self._declared == "regression":
            return []
        classes = [state.renamed.get(name, name) for name in self._before + state.added]
        labels = list_classes(state.labels().values())
        classes += [name for name in labels if not isinstance(name, list)]
        return list({repr(name): name for name in classes}.values())

    def before(self):
        """Return the classes of the labels that the learner was fitted to, list."""
        before = [*self._before, *(self.columns or ())]
        return [self._state.renamed.get(name, name) for name in before]

    def check(self, name, argument, is_known=None):
        """Return the checked name of one class, which is one of the session or not."""
        classes = self.collect()
        kind = kind_of(classes[0]) if classes else None
        if is_missing(name):
            raise ValueError(f"{argument!r} must be the name of a class, got {name!r}.")
        (name,) = normalize_labels([name], [argument], kind)
        if isinstance(name, list):
            raise TypeError(f"{argument!r} must be a single label, got {name!r}.")
        if is_known is not None and is_known != (name in classes):
            expected = "a new class"
            if is_known:
                listed = reprs(classes) if classes else "which has none yet"
                expected = f"a class of the session, {listed}"
            raise ValueError(f"{argument!r} must be {expected}, got {name!r}.")
        return name

    def forget(self):
        """Collect the classes again when they are next needed."""
        self._known = None


def find_declared(learner, multi_label, classes):
    """Return the target that a session is opened with; None if labels decide it."""
    if multi_label is not None:
        check_bool("multi_label", multi_label)
    if not is_regressor(getattr(learner, "estimator", None)):
        several = {True: "multi-label", False: "single-label"}
        return None if multi_label is None else several[bool(multi_label)]
    if multi_label or classes is not None:
        name, value = ("multi_label", True) if multi_label else ("classes", classes)
        raise ValueError(
            f"{name!r} must be left out if the learner has a regressor, got "
            f"{brief(value)}. Its labels are numbers."
        )
    return "regression"


def name_columns(before, declared, opened):
    """Return the names of the columns of `before`, None if they have none.

    `before` are the labels that the learner was fitted to, or None. `declared` is the
    target, and `opened` are the allowed classes when the session was opened, or None.
    """
    is_named = opened is not None and isinstance(opened[0], str)
    if np.ndim(before) != 2 or not (is_named or declared == "multi-label"):
        return None
    k = before.shape[1]
    if opened is None or len(opened) < k:
        raise ValueError(
            f"'classes' must name the {k} columns of the labels that the learner was "
            f"fitted to, in their order, got {opened!r}. Pass all classes."
        )
    return list(opened[:k])


_REFUSED = {
    "regression": (("str", "bool", "names"), "numbers for a regressor"),
    "single-label": (("names", "list"), "single labels with multi_label=False"),
}


def check_kinds(labels, ids, declared):
    """Raise a TypeError for labels that a model of the declared target cannot learn."""
    refused, wanted = _REFUSED.get(declared, ((), ""))
    for id, label in zip(ids, labels, strict=True):
        names = label if isinstance(label, list | tuple) else [label]
        is_cut = any(isinstance(name, float) and name % 1 for name in names)
        expected = wanted if kind_of(label).startswith(refused) else ""
        if is_cut and declared != "regression":
            expected = "classes, and no fractions, for a classifier"
        if expected:
            raise TypeError(f"'labels' must be {expected}, got {label!r} for {id!r}.")


def wrap_names(labels):
    """Return labels of which a single name is a list of that name."""
    if not is_list(labels):
        return labels
    return [[label] if isinstance(label, str) else label for label in as_list(labels)]


def indicate(labels, classes):
    """Return lists of names as an indicator matrix (n, k) of at least two columns."""
    column = {name: j for j, name in enumerate(classes)}
    y = np.zeros((len(labels), max(2, len(classes))), dtype=np.int64)
    for row, names in zip(y, labels, strict=True):
        row[[column[name] for name in names]] = 1
    return y


def rename_class(classes, old, new):
    """Return classes with another name for one of them; two of one name are one."""
    return list(dict.fromkeys(new if name == old else name for name in classes))


def move_class(classes, name, place):
    """Return classes with one of them at another place, None for its own."""
    if place is None:
        return classes
    others = [other for other in classes if other != name]
    return [*others[:place], name, *others[place:]]


def restore_class(classes, event, keep):
    """Return classes as they are without an event that changed them.

    `keep` says that labels need the new name, too.
    """
    if "added" in event:
        return [name for name in classes if keep or name != event["added"]]
    was, new = event["was"], event.get("new")
    if event["event"] == "describe":
        return sorted(classes, key=[*was, *classes].index)
    if classes == event["classes"] and not keep:
        return was
    name = event.get("removed", event.get("old"))
    if new is not None and new not in was and new in classes and not keep:
        return rename_class(classes, new, name)
    position = was.index(name)
    if name in classes:
        return classes
    return [*classes[:position], name, *classes[position:]]


def check_annotator(annotator):
    """Return a checked name of an annotator, or None."""
    if annotator is not None and not isinstance(annotator, str):
        raise TypeError(f"'annotator' must be a str or None, got {annotator!r}.")
    return annotator


def check_classes(classes):
    """Return descriptions, or None, and checked classes as a list, or None."""
    if classes is None or classes == {}:
        return classes, None
    descriptions = classes if isinstance(classes, dict) else None
    if odd := [name for name in descriptions or () if not isinstance(name, str)]:
        raise TypeError(
            f"'classes' must be a dict of names to descriptions, got the key "
            f"{odd[0]!r}. Pass names as str."
        )
    classes = list(classes) if descriptions else classes
    if not is_list(classes) or len(classes) < 2 or any(map(is_missing, classes)):
        raise ValueError(
            "'classes' must be a sequence of at least two labels, none missing, got "
            f"{classes!r}."
        )
    places = [f"classes[{i}]" for i in range(len(classes))]
    classes = normalize_labels(classes, places, None)
    if isinstance(classes[0], list) or len(set(classes)) < len(classes):
        raise ValueError(
            f"'classes' must be different single labels, got {brief(classes)}."
        )
    return descriptions, classes


def describe_classes(learner, descriptions, manifest, target):
    """Return a learner that is trained on descriptions as well, and the descriptions.

    Without descriptions, those of the manifest are used, if it has any.
    """
    if descriptions is None:
        descriptions = (manifest or {}).get("descriptions")
    estimator = getattr(learner, "estimator", None)
    if descriptions is None or has_descriptions(estimator):
        return learner, None
    if target not in (None, "single-label"):
        raise ValueError(
            f"'classes' must be a list of names for {target} labels, got a dict. "
            "Descriptions are for one class per item."
        )
    learner = copy.copy(learner)
    texts = {x: y and list_texts(read_entry(y)) for x, y in descriptions.items()}
    learner.estimator = ClassDescriptions(estimator, texts)
    return learner, descriptions


def describe_now(estimator, data, ready=None):
    """Return an estimator with the descriptions of the classes that there are now.

    And with the texts that machines labeled, of the items of the mask `ready`.
    """
    descriptions, first = dict(data.described), estimator.descriptions
    is_blank = len(first) > 0 and all(first[name] is None for name in first)
    if is_blank and not any(descriptions.values()):
        return clone(estimator.estimator)  # nobody has said yet what classes mean
    for name in data.allowed or data.added:  # it is described by its name
        descriptions.setdefault(name, [])
    if len(descriptions) < 2:  # the others were merged or removed
        return clone(estimator.estimator)
    texts = _list_texts(data.machines, data.pool, ready, descriptions)
    texts = {"machine_texts": texts} if texts else {}
    return clone(estimator).set_params(descriptions=descriptions, **texts)


def _list_texts(machines, pool, ready, classes):
    """Return the texts that machines gave each class, dict of class to list of str.

    `machines` is a list of dicts of id to label. `ready` (n,) masks the items whose
    features are there; None stands for all.
    """
    rows_of = {}
    for labels in machines:
        rows = pool.positions(labels).tolist()
        for label, row in zip(labels.values(), rows, strict=True):
            if (ready is None or ready[row]) and label in classes:
                rows_of.setdefault(label, []).append(row)
    return {label: as_list(take_rows(pool.X, rows)) for label, rows in rows_of.items()}


def normalize_labels(labels, ids, kind, classes=None, renamed=()):
    """Return checked labels as JSON accepts them, one for each of `ids`.

    `kind` is the kind of earlier labels, and `classes` the allowed labels, or None.
    Raise a ValueError if a label is missing, not allowed or longer than 64 bits, and a
    TypeError for labels of other or several kinds.
    """
    if not is_list(labels):
        raise TypeError(
            f"'labels' must be a sequence with one label for each of the {len(ids)} "
            f"ids, got {brief(labels)}. Pass a list, or tell({{id: label, ...}})."
        )
    labels = as_list(labels)
    if len(labels) != len(ids):
        raise ValueError(
            f"'labels' must hold one label for each of the {len(ids)} ids, got "
            f"{len(labels)}."
        )
    read = []
    for id, label in zip(ids, labels, strict=True):
        read.append(_read(label, id))
        kind = kind or kind_of(read[-1])
        if kind_of(read[-1]) != kind:
            raise TypeError(
                f"'labels' must all be of one kind in a session, here {kind}; got "
                f"{label!r} for {id!r}."
            )
        if classes is not None:
            _check_class(read[-1], id, classes, dict(renamed))
        if is_names(read[-1]):
            read[-1].sort(key=None if classes is None else classes.index)
    return read


def _check_class(label, id, classes, renamed):
    for part in label if isinstance(label, list) else [label]:
        if classes and kind_of(part) == kind_of(classes[0]) and part in classes:
            continue
        close = _find_close(part, classes) if isinstance(part, str) else None
        hint = "" if close is None else f" Did you mean {close!r}?"
        if not isinstance(part, list) and part in renamed:
            hint = f" It was renamed to {renamed[part]!r}."
        shown = ", ".join(map(repr, classes[:20])) + ", ..." * (len(classes) > 20)
        raise ValueError(
            f"'labels' must be among the classes of the session, {shown}; got "
            f"{part!r} for {id!r}.{hint} To add a class, call add_class, or include it "
            "in classes= when you open the session."
        )


def warn_of_new_classes(labels, old, renamed):
    """Warn of new classes that resemble known ones, as a typing error does.

    `renamed` are the new names of former classes.
    """
    old = {label for label in old if isinstance(label, str)}
    names = (name for name in list_classes(labels) if isinstance(name, str))
    counts = Counter(names)
    hints = []
    for label, _ in counts.most_common():
        if label not in old and label in renamed:
            hints.append(f"{label!r} (renamed to {renamed[label]!r})")
        elif label not in old and (close := _find_close(label, old)) is not None:
            hints.append(f"{label!r} (did you mean {close!r}?)")
        old.add(label)
    if hints:
        shown = ", ".join(hints[:5]) + ", ..." * (len(hints) > 5)
        warn_caller(
            f"new classes look like others: {shown}. If that was a mistake, tell "
            "the items again, or undo(). Open the session with classes=[...] to "
            "refuse such labels."
        )


def _find_close(label, known):
    """Return a class that a label resembles, or None; numbers in names do not count."""
    names = sorted(name for name in known if isinstance(name, str))
    looks = {name.strip().casefold(): name for name in names}
    own = label.strip().casefold()
    stem = re.sub(r"[0-9]+", "", own)
    near = get_close_matches(own, looks, n=1, cutoff=0.8)
    if not near or (near[0] != own and re.sub(r"[0-9]+", "", near[0]) == stem):
        return None
    return looks[near[0]]


def kind_of(label):
    """Return the kind of a label.

    This is "str", "bool", "number", "names" for a list of str, or "list of <length>".
    """
    if isinstance(label, str):
        return "str"
    if is_names(label):
        return "names"
    if isinstance(label, list | np.ndarray):
        return f"list of {len(label)}"
    return "bool" if isinstance(label, bool | np.bool_) else "number"


def _read(label, id):
    if hasattr(label, "tolist"):
        label = label.tolist()
    if isinstance(label, list | tuple):
        return _check_parts([_read(part, id) for part in label], id)
    if is_missing(label) or (isinstance(label, float) and math.isinf(label)):
        raise ValueError(
            f"'labels' must hold a label for {id!r}, got {label!r}. Tell only items "
            "that have one, or skip the item."
        )
    if not isinstance(label, str | bool | int | float):
        raise TypeError(
            f"'labels' must hold str, int, bool or float, got {label!r} for {id!r}."
        )
    if isinstance(label, str) and label.endswith("\0"):
        raise ValueError(
            f"'labels' must not end in a null character, got {label!r} for {id!r}. "
            "Remove it."
        )
    if isinstance(label, int) and label.bit_length() > 63:
        raise ValueError(
            f"'labels' must hold int of at most 64 bits, got {label!r} for {id!r}. "
            "Pass it as a str."
        )
    return trim(label) if isinstance(label, str) else label


def _check_parts(label, id):
    """Return a label that is a list, checked."""
    if is_names(label) and len(set(label)) < len(label):
        raise ValueError(
            f"'labels' must hold each class of an item once, got {label!r} for {id!r}."
        )
    if any(isinstance(part, str) for part in label) and not is_names(label):
        raise TypeError(
            f"'labels' must hold lists of str or lists of numbers, got {label!r} for "
            f"{id!r}."
        )
    return label
