"""Lists of what was answered: found by a filter, looked through, changed at once."""

from .._utils._containers import take_row
from .._utils._labels import key_of, list_classes, same_label
from ._coders import SETTLED, find_disputed, find_visible, keep_unsettled
from ._pool import fold

FILTERS = ("flag", "note", "skipped", "unlabeled", "doubtful", "disputed")
_N_RECENT = 10  # answers that are shown with the next item


def _keep(state, answers, ids, label=None, by=None, only=None, before=None):
    """Return the ids of items with a class, an annotator and a property of FILTERS.

    Their `answers` are older than the class `before`, if it was added.
    """
    tests = []
    if label is not None:
        wanted = key_of(label)
        tests.append(lambda a: wanted in map(key_of, list_classes([a.label])))
    if by is not None:
        tests.append(lambda a: by in [one.annotator for one in a.given])
    if before is not None:
        since = find_added(state).get(before, 0)
        tests.append(lambda a: a.seq < since)
    if tests:
        ids = [id for id in ids if id in answers]
        ids = [id for id in ids if all(test(answers[id]) for test in tests)]
    having = {"flag": state.flags, "note": state.notes, "skipped": state.skipped}
    having["disputed"] = find_disputed(state) if only == "disputed" else ()
    if only == "unlabeled":
        return [id for id in ids if id not in answers]
    return [id for id in ids if only is None or id in having[only]]


def find_added(state):
    """Return the classes that were added, dict of name to the number of the event.

    A new name counts as the class that had the old one; a class that was merged with
    another one is gone.
    """
    added = {}
    for event in state.undoable:
        if event["event"] == "add":
            added[event["added"]] = event["seq"]
        elif event["event"] == "rename" and event["old"] in added:
            since = added.pop(event["old"])
            if event["new"] not in (event["was"] or ()):
                added.setdefault(event["new"], since)
    return added


def _find_answered(state, ids, query):
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


def keep_listed(core, doubts, ids, where, query, annotator):
    """Return the ids of a list that meet the conditions of `Desk.history`, in order.

    They are not chosen by answers that the annotator may not see. Without ids, all
    answered and skipped items are listed.
    """
    where = {"only": None, "before": None, "likely": None, **(where or {})}
    only, before, likely = map(where.pop, ("only", "before", "likely"))
    with core.lock:
        order, answers = None, find_visible(core, annotator)
        ids = core.state.latest(answers) if ids is None else ids
        if only == "doubtful":
            only, order = None, [id for id, *_ in doubts.list_rows()]
        since = before if likely is None else likely
        ids = _keep(core.state, answers, ids, only=only, before=since, **where)
        if likely is not None and (both := doubts.find_likely(ids, likely)):
            order = [*both[0], *both[1]]
        members = {*ids}
        ids = ids if order is None else [id for id in order if id in members]
    return _find_answered(core.state, ids, query)


def describe_added(core, doubts, answers):
    """Return the classes that were "added", and what is "older" than one, or None.

    That is the newest class that is predicted for some older answers, or that no model
    knows yet. "label" is the one class that these have, None for several. `answers` are
    those that are shown.
    """
    with core.lock:
        added = find_added(core.state)
        return {
            "added": list(added),
            "older": _describe_older(core, doubts, added, answers),
        }


def _describe_older(core, doubts, added, answers):
    """Return what is "older" than one of the added classes; see `describe_added`."""
    classes = core.known_classes()
    for name, since in reversed(added.items()):
        ids, label = [id for id in answers if answers[id].seq < since], None
        both = doubts.find_likely(ids, name) if name in classes else ([], [])
        likely, blind = both or ([], [])
        if likely:
            first = answers[likely[0]].label
            alike = {id for id in ids if same_label(answers[id].label, first)}
            if alike >= {*likely}:
                ids, label = alike, first
        if likely or (ids and both is None):
            n = {"n_likely": len(likely), "n_blind": len(blind)}
            return {"name": name, "label": label, "n_items": len(ids), **n}
    return None


def record_answers(core, doubts, ids, label, annotator, shown, way, **options):
    """Record one label for items, without those that have it of the annotator already.

    `shown` is what was shown of a machine, by the look of an item. Return the ids that
    were recorded.
    """
    pool, same = core.state.pool, {}
    if way == SETTLED:
        ids = keep_unsettled(core, ids, label, annotator)
    for id in ids if way != SETTLED else ():
        own = core.state.answers_of(id).get(annotator)
        if own is not None and key_of(own.label) == key_of(label):
            same[id] = own.way
    if len(same) == len(ids) and any(map(doubts.lists, ids)):
        way = "review"  # it is confirmed
    is_review = way == "review"
    new = [x for x in ids if x not in same or (is_review and same[x] != way)]
    if new:
        looks = [shown.get(x) for x in pool.find_looks(pool.positions(new))]
        options |= {"way": way, "shown": looks if any(looks) else None}
        options |= {"unasked": True, "allows_new": False}
        with core.recording() as answers:
            answers.tell(new, [label] * len(new), annotator, **options)
    return new


def list_recent(core, annotator, predicted, answers):
    """Return the last answers and skips of an annotator, the newest first.

    `predicted` is what the model said before: label, score and event, by id. `answers`
    are those that the annotator may see.
    """
    state, ids = core.state, {}
    for event in reversed(state.undoable):
        is_own = event.get("by") == annotator and event["event"] in ("tell", "skip")
        if is_own and len(event["ids"]) == 1:
            ids.setdefault(event["ids"][0])
        if len(ids) == _N_RECENT:
            break
    entries = []
    for id in ids:
        with core.lock:
            pool, answer = state.pool, answers.get(id)
            text = take_row(pool.X, int(pool.positions([id])[0]))
        label, _, seq = predicted.get(id, (None, None, 0))
        entries.append(
            {
                "id": id,
                "label": answer and answer.label,
                "predicted": state.name_since(label, seq),
                "text": str(text if isinstance(text, str) else text[0])[:200],
            }
        )
    return entries
