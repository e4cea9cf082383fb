"""The classes of a project: of its file, of the session, and what describes them."""

from collections import Counter

from .._tables._labels import to_indicator
from .._utils._format import brief
from .._utils._labels import as_class, list_classes


def find_classes(table, given):
    """Return the classes of a table with labels `given`, the most frequent first."""
    if table.target == "regression":
        return []
    if table.cells is not None and table.cells.several:
        return list(table.cells.columns)
    counts = Counter(list_classes(given.values()))
    return [label for label, _ in counts.most_common()]


def add_classes(session, wanted):
    """Add the classes that the session does not have; return what was done."""
    messages = []
    known, renamed = session.known_classes, session._core.state.renamed
    names = [renamed.get(name, name) for name in as_given(wanted, known)]
    for name in dict.fromkeys(names):
        if name not in known:
            session.add_class(name)
            messages.append(f"added the class {name}")
    if others := [str(name) for name in known if name not in names]:
        messages.append(
            f"the session keeps the classes that were not named: {', '.join(others)}"
        )
    return messages


def teach(learner, table, given, classes, is_named):
    """Pass the labels of a table to a learner; `classes` are those of the session."""
    known = find_classes(table, given)
    labels = list(given.values())
    is_open = table.target == "single-label" and not is_named
    if is_open and len(known) > max(100, len(labels) / 2):
        raise ValueError(
            f"column {table.label!r} of {str(table.path)!r} must hold classes, got "
            f"{len(known)} different values in {len(labels)} rows. Name another "
            "column, or all classes with classes=."
        )
    if not labels:
        return
    if table.target == "multi-label":
        if classes is None:
            raise ValueError(
                f"column {table.label!r} of {str(table.path)!r} must hold at least "
                f"two classes, got {known}. Name all with classes=."
            )
        if new := [name for name in known if name not in classes]:
            raise ValueError(
                f"column {table.label!r} of {str(table.path)!r} must hold classes of "
                f"the session, {', '.join(map(repr, classes))}; got {new[0]!r}. "
                "Use folder= with another folder."
            )
        labels, _ = to_indicator(labels, classes)
    learner.teach(table.take(given), labels, refit=False)


def as_given(classes, known):
    """Return classes in the type of the labels of the file."""
    if classes is None or not known or isinstance(known[0], str):
        return classes
    typed = [as_class(name, known) for name in classes]
    if any(isinstance(label, str) for label in typed):
        raise ValueError(
            f"'classes' must be of the kind of the labels of the file, such as "
            f"{known[0]!r}; got {brief(classes)}."
        )
    return typed


def as_entries(classes):
    """Return the descriptions of classes, texts or dicts, as dicts."""
    return {
        name: entry if isinstance(entry, dict) else {"description": entry}
        for name, entry in classes.items()
    }
