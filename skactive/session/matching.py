"""Find the items of one pool in another, so that a label stays with its text."""

from __future__ import annotations

from collections import Counter, deque

import numpy as np

from skactive.session.pool import hash_ids, shorten

__all__ = ["assign_rows", "find_moves", "find_taught", "renumber"]


def find_moves(before, pool, labeled, others):
    """Find the items of a session in the pool that it is opened with.

    Items with ids of their own are found by id, and their content must be the same.
    Where ids are positions, items are found by content. Of several copies of one
    content, one that stayed in its place keeps its id.

    Parameters
    ----------
    before : ndarray of uint64, shape (n, 2)
        Hashes of the ids and contents of the pool before.
    pool : Pool
        The pool now.
    labeled : list of ids
        Items that must be found.
    others : list of ids
        Other items that occur in the journal.

    Returns
    -------
    moves : dict of id to id
        Those whose id is another now; None for an item that is gone.

    Raises
    ------
    ValueError
        If a labeled item is missing, or the content of an item changed, naming them.
    """
    by_position = pool.ids_are_positions and np.array_equal(
        before[:, 0], hash_ids(range(len(before)))
    )
    hint = ""
    if pool.ids_are_positions and not by_position:
        hint = ". Pass the ids of the session as ids="
    keys = hash_ids(pool.ids)
    column, now = (1, pool.contents) if by_position else (0, keys)
    if not np.isin(before[:, column], now).any():
        what = "items" if by_position else "ids"
        raise ValueError(f"none of its {len(pool)} {what} was in that pool{hint}")
    if not by_position:
        if faults := _find_faults(before, pool, keys, labeled):
            raise ValueError("; ".join(faults) + hint)
        return {id: None for id in others if id not in pool}
    found = _match_contents(before[:, 1].tolist(), pool, labeled)
    if lost := [id for id in labeled if id not in found]:
        raise ValueError(
            f"{len(lost)} labeled items are missing or changed: {shorten(lost)}"
        )
    rest = _match_contents(before[:, 1].tolist(), pool, others, set(found.values()))
    moves = {**found, **{id: rest.get(id) for id in others}}
    return {id: now for id, now in moves.items() if id != now}


def _find_faults(before, pool, keys, labeled):
    faults = []
    if lost := [id for id in labeled if id not in pool]:
        faults.append(f"{len(lost)} labeled items are missing: {shorten(lost)}")
    was = dict(before.tolist())
    now = zip(pool.ids, keys.tolist(), pool.contents.tolist(), strict=True)
    changed = [
        id for id, key, content in now if content and was.get(key, content) != content
    ]
    if changed:
        faults.append(f"{len(changed)} items changed: {shorten(changed)}")
    return faults


def _match_contents(contents, pool, ids, taken=()):
    """Match positions before with positions of the same content now."""
    stayed = {
        id
        for id in ids
        if id in pool and id not in taken and pool.contents[id] == contents[id]
    }
    found = {id: id for id in stayed}
    free = {}
    for id in ids:
        if id in stayed:
            continue
        if contents[id] not in free:
            copies = pool.find(contents[id])
            free[contents[id]] = deque(
                p for p in copies if p not in stayed and p not in taken
            )
        if free[contents[id]]:
            found[id] = free[contents[id]].popleft()
    return found


def renumber(events):
    """Give the events of a journal with the ids that the items have now.

    Parameters
    ----------
    events : list of dict
        As they were written. An event "pool" says which ids changed there.

    Returns
    -------
    events : list of dict
        As many; an item that is gone is left out of those before it went.
    """
    if not any(event["event"] == "pool" for event in events):
        return events
    now, renumbered = {}, []
    for event in reversed(events):
        if now and "ids" in event:
            event = _rename(event, now)
        renumbered.append(event)
        if event["event"] == "pool":
            moves = zip(event.get("was", ()), event.get("is", ()), strict=True)
            now |= {was: now.get(new, new) for was, new in moves}
    return renumbered[::-1]


def _rename(event, now):
    ids = [now.get(id, id) for id in event["ids"]]
    kept = [i for i, id in enumerate(ids) if id is not None]
    event = {**event, "ids": [ids[i] for i in kept]}
    if "labels" in event:
        event["labels"] = [event["labels"][i] for i in kept]
    return event


def assign_rows(rows, pool, preferred):
    """Find the items that the rows of a table are about.

    Parameters
    ----------
    rows : list of (id, content)
        The content is a hash, or None where the row does not say; then the id counts
        alone. Otherwise the content decides, and the id only among copies of it.
    pool : Pool
    preferred : container of ids
        Items to take first among copies that no id tells apart.

    Returns
    -------
    ids : list of ids
        None where the pool has no such item.
    """
    found = [
        id if id in pool and pool.agrees(id, content) else None for id, content in rows
    ]
    taken = set(found)
    for i, (_, content) in enumerate(rows):
        if found[i] is None and content is not None:
            copies = [pool.ids[position] for position in pool.find(content)]
            free = [id for id in copies if id not in taken] or copies
            if free:
                found[i] = next((id for id in free if id in preferred), free[0])
                taken.add(found[i])
    return found


def find_taught(pool, contents):
    """Find items that a learner was taught before the session, by their content.

    Parameters
    ----------
    pool : Pool
    contents : ndarray of uint64
        Hashes of the items that the learner was taught.

    Returns
    -------
    positions : list of int
        Of several copies in the pool, as many as were taught.
    """
    counts = Counter(contents.tolist())
    del counts[0]  # contents that are not known
    return [p for content, n in counts.items() for p in pool.find(content)[:n]]
