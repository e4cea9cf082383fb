"""Which items a list shows: by their text, class, annotator and marks."""

from .._utils._labels import key_of, list_classes
from ._pool import fold

FILTERS = ("flag", "note", "skipped", "unlabeled")


def keep(state, ids, label=None, by=None, only=None):
    """Return the ids of items with a class, an annotator and a property of FILTERS."""
    answers, tests = state.answers, []
    if label is not None:
        wanted = key_of(label)
        tests.append(lambda a: wanted in map(key_of, list_classes([a.label])))
    if by is not None:
        tests.append(lambda a: by in [one.annotator for one in a.given])
    if tests:
        ids = [id for id in ids if id in answers]
        ids = [id for id in ids if all(test(answers[id]) for test in tests)]
    having = {"flag": state.flags, "note": state.notes, "skipped": state.skipped}
    if only == "unlabeled":
        return [id for id in ids if id not in answers]
    return [id for id in ids if only is None or id in having[only]]


def find_answered(state, ids, query):
    """Return the ids whose text or label contains a string, in any case."""
    if not query:
        return ids
    wanted, labels = query.casefold(), state.labels()
    texts = state.pool.texts(state.pool.positions(ids))
    return [
        id
        for id, text in zip(ids, texts, strict=True)
        if wanted in fold(text) or wanted in str(labels.get(id, "")).casefold()
    ]
