"""Lists of what was answered: found by a filter, looked through, changed at once."""

from .._utils._containers import take_row
from .._utils._labels import key_of, list_classes, same_label
from ._coders import SETTLED, find_disputed, find_visible, keep_unsettled
from ._pool import fold

FILTERS = ("flag", "note", "skipped", "unlabeled", "doubtful", "disputed")
_N_RECENT = 10  # answers that are shown with the next item


def find_changed(state):
    """Return the classes that were added or described, dict of name to two numbers.

    These are of the event that added the class, or 0, and of the last of both kinds. A
    new name counts as the class that had the old one; a class that was merged with
    another one is gone.
    """
    changed = {}
    for event in state.undoable:
        kind, seq = event["event"], event["seq"]
        if kind == "add":
            changed[event["added"]] = seq, seq
        elif kind == "describe" and "entry" in event:
            added, _ = changed.get(event["name"], (0, 0))
            changed[event["name"]] = added, seq
        elif kind == "rename" and event["old"] in changed:
            since = changed.pop(event["old"])
            if event["new"] not in (event["was"] or ()):
                changed.setdefault(event["new"], since)
    return changed


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
    names = "label", "by", "only", "before", "likely"
    label, by, only, before, likely = map((where or {}).get, names)
    before, order = before if likely is None else likely, None
    with core.lock:
        state, answers = core.state, find_visible(core, annotator)
        ids = state.latest(answers) if ids is None else ids
        since = find_changed(state).get(before, (0, 0))[1]
        having = {"flag": state.flags, "note": state.notes, "skipped": state.skipped}
        if only == "disputed":
            ids = [id for id in find_disputed(state) if id in {*ids}]
        elif only == "doubtful":
            order = [id for id, *_ in doubts.list_rows()]
        elif only is not None:
            wanted, has = having.get(only, answers), only != "unlabeled"
            ids = [id for id in ids if (id in wanted) == has]
        if (label, by, before) != (None,) * 3:
            ids = [id for id in ids if id in answers]
        if label is not None:
            key = key_of(label)
            keys = {x: map(key_of, list_classes([answers[x].label])) for x in ids}
            ids = [id for id in ids if key in keys[id]]
        if by is not None:
            ids = [x for x in ids if by in [one.annotator for one in answers[x].given]]
        if before is not None:
            ids = [id for id in ids if answers[id].seq < since]
            if order is None and (rank := doubts.rank(ids, before)):
                order, *n = rank
                order = order if likely is None else order[: sum(n)]
        members = {*ids}
        ids = ids if order is None else [id for id in order if id in members]
    return _find_answered(state, ids, query)


def describe_changed(core, doubts, answers):
    """Return the classes that were "added", and what is "older" than a change, or None.

    That is the newest class, or its description if it is "described", that models see
    otherwise for some older answers, or an added one that no model knows yet. "label"
    is the one class that these answers have, None for several. `answers` are those
    that are shown.
    """
    with core.lock:
        changed = find_changed(core.state)
        added = [name for name, (since, _) in changed.items() if since]
        return {
            "added": added,
            "older": _describe_older(core, doubts, changed, answers),
        }


def _describe_older(core, doubts, changed, answers):
    """Return what is "older" than one of the changed classes."""
    classes = core.known_classes()
    for name, (added, since) in sorted(changed.items(), key=lambda x: -x[1][1]):
        ids, label = [id for id in answers if answers[id].seq < since], None
        rank = doubts.rank(ids, name) if name in classes else ((), 0, 0)
        order, n_likely, n_blind = rank or ((), 0, 0)
        if n_likely:
            first = answers[order[0]].label
            alike = {id for id in ids if same_label(answers[id].label, first)}
            if alike >= {*order[:n_likely]}:
                ids, label = alike, first
        if n_likely or (ids and added and rank is None):
            n = {"n_items": len(ids), "n_likely": n_likely, "n_blind": n_blind}
            return {"name": name, "label": label, "described": since > added, **n}
    return None


def record_answers(core, doubts, ids, label, annotator, shown, way, **options):
    """Record one label for items, without those that have it of the annotator already.

    `shown` is what was shown of a machine, by the look of an item. An item that is
    blind has shown nothing, also on a page that is older than this process. Return the
    ids that were recorded.
    """
    pool, same = core.state.pool, {}
    if way == SETTLED:
        ids = keep_unsettled(core, ids, label, annotator)
    for id in ids if way != SETTLED else ():
        own = core.state.answers_of(id).get(annotator)
        if own is not None and key_of(own.label) == key_of(label):
            same[id] = own.way
    if way is None and len(same) == len(ids) and any(map(doubts.lists, ids)):
        way = "review"  # it is confirmed
    is_review = way == "review"
    new = [x for x in ids if x not in same or (is_review and same[x] != way)]
    if way == "repeat":
        new = [x for x in ids if core.state.waits_for(x, annotator)]
    if new:
        seen = pool.find_looks(pool.positions(new)), core.queue.find_blind(new)
        pairs = zip(*seen, strict=True)
        looks = [shown.get(look, "none" if blind else None) for look, blind in pairs]
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
