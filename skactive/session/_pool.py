"""The pool of a session: its items, their ids, and changes between two openings."""

import hashlib
import io
from collections import Counter, deque
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .._storage._fingerprint import hash_ids, hash_items
from .._utils._containers import (
    as_container,
    as_list,
    concatenate,
    count_items,
    read_items,
    take_row,
)
from .._utils._random import round_rng
from .._utils._texts import as_texts

_SHOWN = 5


@dataclass(frozen=True)
class Batch:
    """Items to label, the most useful first.

    Iterating over a batch yields pairs of an id and its item. An empty batch, which is
    false, means that no item is left.

    Attributes
    ----------
    ids : tuple
        Ids of the items.
    items : container
        The items, in the container of the pool.
    number : int or None
        Number of the batch in the session, from 1; None for an empty one.
    annotator : str or None
        Name of the person who was asked.

    Examples
    --------
    >>> from skactive.session import Batch
    >>> batch = Batch(ids=("a7", "a9"), items=["a fine film", "no"], number=1)
    >>> [f"{id}: {item}" for id, item in batch]
    ['a7: a fine film', 'a9: no']
    >>> batch
    Batch(2 items, number=1: 'a7', 'a9')
    """

    ids: tuple[str | int, ...]
    items: Any = field(compare=False)
    number: int | None = None
    annotator: str | None = None

    def __len__(self):
        return len(self.ids)

    def __iter__(self):
        return ((id, take_row(self.items, i)) for i, id in enumerate(self.ids))

    def __repr__(self):
        shown = ", ".join(map(repr, self.ids[:5]))
        more = ", ..." if len(self) > 5 else ""
        return f"Batch({len(self)} items, number={self.number}: {shown}{more})"


class Pool:
    """The items of a session and their ids.

    `contents` holds a uint64 hash of each item, (n,); 0 for an object without
    comparable content. `ids_are_positions` is True if no ids were given.
    """

    def __init__(self, X, ids=None, contents=None):
        self.X, n = read_items(X)
        if ids is None and hasattr(X, "iloc") and hasattr(X, "index"):
            self.ids = _check_ids(X.index, n, "the index of 'X_pool'")
        elif ids is None:
            self.ids = range(n)
        else:
            self.ids = _check_ids(ids, n, "'ids'")
        self.ids_are_positions = ids is None and list(self.ids) == list(range(n))
        self._positions = {id: position for position, id in enumerate(self.ids)}
        self.contents = hash_items(self.X) if contents is None else contents
        if self.ids_are_positions and not self.contents.all():
            kind = type(as_list(X)[int(np.argmin(self.contents))]).__name__
            raise TypeError(
                f"'X_pool' must hold items whose content can be compared, got {kind}. "
                "Pass ids=, by which such items are then known."
            )

    def extended(self, items, ids=None):
        """Return a pool with further items at its end.

        `ids` are theirs, and None if the items are known by position; otherwise they
        default to the index of a pandas object. Raise a TypeError for items of another
        kind, and a ValueError for ids that exist.
        """
        items = as_container(items)
        count_items(items, name="items")
        X = concatenate(self.X, items, name="items")
        contents = np.concatenate([self.contents, hash_items(items)])
        if self.ids_are_positions:
            if ids is not None:
                raise ValueError(
                    f"'ids' must be None for a pool that is known by position, got "
                    f"{ids!r}. Nothing was added."
                )
            if hasattr(X, "iloc"):
                X = X.reset_index(drop=True)
            grown = Pool(X, None, contents)
        else:
            if ids is None and not (hasattr(items, "iloc") and hasattr(items, "index")):
                raise ValueError(
                    "'ids' must name each of the new items, got None, and the pool has "
                    f"ids such as {self.ids[0]!r}. Nothing was added."
                )
            ids = _check_ids(
                items.index if ids is None else ids,
                count_items(items),
                "'ids'",
                "items",
            )
            grown = Pool(X, [*self.ids, *ids], contents)
        if self.texts is not None and grown.texts is None:
            raise TypeError(
                "'items' must be texts as the pool holds them, got others. Nothing was "
                "added."
            )
        return grown

    def become(self, grown):
        """Replace the items by those of an extended pool."""
        # The items come first: a thread that trains finds what it has the ids of.
        self.X, self.contents = grown.X, grown.contents
        self._positions, self.ids = grown._positions, grown.ids
        for name in ("texts", "copies", "_by_content"):
            self.__dict__.pop(name, None)

    def __len__(self):
        return len(self.ids)

    def __contains__(self, id):
        return _is_id(id) and id in self._positions

    def positions(self, ids):
        """Return the positions of known ids, ndarray of int."""
        return np.array([self._positions[id] for id in ids], dtype=np.intp)

    @cached_property
    def texts(self):
        """The items as texts or pairs of texts; None if they are something else."""
        try:
            return as_texts(self.X)
        except (TypeError, ValueError):
            return None

    @cached_property
    def copies(self):
        """The first position of the same text for each item, (n,) of int."""
        if self.texts is None:
            return np.arange(len(self))
        _, first, group = np.unique(
            self.contents, return_index=True, return_inverse=True
        )
        return first[group]

    def copies_of(self, id):
        """Return the ids of the items with the same text, in order."""
        copies = self.copies
        same = np.flatnonzero(copies == copies[self._positions[id]])
        return [self.ids[position] for position in same.tolist()]

    def draw_keys(self, seed, purpose):
        """Return a random uint64 for each item, (n,).

        It depends on the seed, the purpose and the content of the item alone, and for
        equal items on their order; so it stays where a pool grows.
        """
        contents = self.contents.copy()
        unknown = np.flatnonzero(contents == 0)
        contents[unknown] = hash_ids([self.ids[i] for i in unknown])
        order = np.argsort(contents, kind="stable")
        _, first, group = np.unique(
            contents[order], return_index=True, return_inverse=True
        )
        earlier = np.empty(len(self), dtype=np.uint64)
        earlier[order] = np.arange(len(self)) - first[group]
        salt = round_rng(seed, 0, purpose).integers(2**64, dtype=np.uint64)
        return _mix((contents ^ salt) + (earlier + np.uint64(1)) * _GOLDEN)

    @cached_property
    def _by_content(self):
        found = {}
        for position, content in enumerate(self.contents.tolist()):
            found.setdefault(content, []).append(position)
        return found

    def find(self, content):
        """Return the positions of the items with a hash, in order."""
        return self._by_content.get(content, [])

    def agrees(self, id, content):
        """Whether an item has this hash, as far as its content is known."""
        own = int(self.contents[self._positions[id]])
        return content is None or own in (0, content)

    def read_ids(self, ids, *, name="ids"):
        """Return checked ids of the pool as a list, from one id, a sequence or a Batch.

        Raise a ValueError for ids that are unknown or occur twice, and a TypeError for
        containers without an order.
        """
        if isinstance(ids, Batch):
            ids = ids.ids
        if isinstance(ids, Mapping | Set) or not (
            isinstance(ids, int | np.generic) or hasattr(ids, "__iter__")
        ):
            raise TypeError(
                f"'ids' must be an id or a sequence of ids, got {ids!r}. Pass a list; "
                "nothing was recorded."
            )
        ids = [ids] if isinstance(ids, str | int | np.generic) else as_list(ids)
        ids = [id.item() if isinstance(id, np.generic) else id for id in ids]
        if not ids:
            raise ValueError("'ids' must name at least one item, got none.")
        unknown = [id for id in ids if id not in self]
        if unknown:
            raise ValueError(
                f"{name!r} must be ids of the pool, got {shorten(unknown)}, which "
                f"are not among its {len(self)} ids, such as {self.ids[0]!r}. Nothing "
                "was recorded."
            )
        if twice := _repeated(ids):
            raise ValueError(
                f"'ids' must name each item once, got {shorten(twice)} more than once. "
                "Nothing was recorded."
            )
        return ids

    def fingerprint(self):
        """Return the manifest entry of the pool, and hashes of ids and items (n, 2)."""
        hashes = np.empty((len(self), 2), dtype="<u8")
        hashes[:, 0] = hash_ids(self.ids)
        hashes[:, 1] = self.contents
        summary = {"n": len(self)}
        if hasattr(self.X, "columns"):
            summary["columns"] = [str(name) for name in self.X.columns]
        return summary | _digest_columns(hashes), hashes


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mix(keys):
    """Return uint64 keys (n,) as the finalizer of SplitMix64 scrambles them."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        keys = (keys ^ (keys >> np.uint64(shift))) * np.uint64(factor)
    return keys ^ (keys >> np.uint64(31))


def dump_hashes(hashes):
    """Return hashes (n, 2) as the bytes of a file."""
    stream = io.BytesIO()
    np.save(stream, hashes, allow_pickle=False)
    return stream.getvalue()


def load_hashes(path, summary):
    """Return the hashes (n, 2) of a summary; None if the file is missing or damaged."""
    size = 16 * summary.get("n", 0)
    try:
        with open(path, "rb") as stream:
            content = stream.read()
    except FileNotFoundError:
        return None
    if not 0 < size <= len(content):
        return None
    # The header of the file says nothing that the summary does not say.
    hashes = np.frombuffer(content[-size:], dtype="<u8").reshape(-1, 2)
    return hashes if _digest_columns(hashes).items() <= summary.items() else None


def _digest_columns(hashes):
    columns = zip(("ids", "items"), hashes.T, strict=True)
    return {
        f"{name}_sha256": hashlib.sha256(column.tobytes()).hexdigest()
        for name, column in columns
    }


def _is_id(id):
    return isinstance(id, str | int) and not isinstance(id, bool)


def _check_ids(ids, n, name, items="X_pool"):
    if isinstance(ids, str | Mapping | Set) or not hasattr(ids, "__len__"):
        raise TypeError(f"{name} must be a sequence of n ids, got {ids!r}.")
    ids = as_list(ids)
    if len(ids) != n:
        raise ValueError(
            f"{name} must name each of the {n} items of {items!r}, got {len(ids)} ids."
        )
    odd = [id for id in ids if not _is_id(id)]
    if odd:
        raise TypeError(
            f"{name} must hold str or int, got {odd[0]!r} ({type(odd[0]).__name__}). "
            "Pass ids=, for example ids=[str(i) for i in ...]."
        )
    if twice := _repeated(ids):
        raise ValueError(
            f"{name} must be unique, got {shorten(twice)} more than once. Pass "
            "different ids=."
        )
    return ids


def _repeated(ids):
    """Return the ids that occur more than once, each once."""
    if len(set(ids)) == len(ids):
        return []
    seen = set()
    return list(dict.fromkeys(id for id in ids if id in seen or seen.add(id)))


def shorten(ids):
    """Return the first few ids as text, and the number of others."""
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return ", ".join(map(repr, ids[:_SHOWN])) + more


def find_moves(before, pool, labeled, others):
    """Find the items of a session in the pool with which it is opened.

    Items with ids of their own are found by id, and their content must be unchanged.
    Items known by position are found by content; of several copies, one at its old
    position keeps its id. `before` are the hashes (n, 2) of the previous pool,
    `labeled` ids that must be found, and `others` further ids of the journal. Return a
    dict of changed ids, with None for items that are gone. Raise a ValueError that
    names missing labeled items or changed items.
    """
    by_position = pool.ids_are_positions and np.array_equal(
        before[:, 0], hash_ids(range(len(before)))
    )
    hint = ""
    if pool.ids_are_positions and not by_position:
        hint = ". Pass the ids of the session as ids="
    keys = hash_ids(pool.ids)
    column, now = (1, pool.contents) if by_position else (0, keys)
    # By sorting: the other way of numpy 2.0 overflows for hashes above 2**63.
    if not np.isin(before[:, column], now, kind="sort").any():
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
    """Match previous positions with positions of the same content now."""
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
    """Return the events of a journal with the ids that the items have now.

    An event "pool" lists changed ids. Items that are gone are removed from earlier
    events.
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
    for name in {"labels", "seconds"} & event.keys():
        event[name] = [event[name][i] for i in kept]
    for name in {"audit", "second"} & event.keys():
        moved = [now.get(id, id) for id in event[name]]
        event[name] = [id for id in moved if id is not None]
    return event


def assign_rows(rows, pool, preferred):
    """Return the id of the item of each row of a table, None if the pool lacks it.

    A row is a pair of an id and a hash of the content. Without a hash, the id alone
    decides; otherwise the content does, and the id only among copies of it. Of copies
    that no id distinguishes, those in `preferred` are first.
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
    """Return the positions of items that the learner was fitted to before the session.

    `contents` are the hashes of these items. Of several copies in the pool, as many are
    returned as the learner was fitted to.
    """
    counts = Counter(contents.tolist())
    del counts[0]  # contents that are not known
    return [p for content, n in counts.items() for p in pool.find(content)[:n]]
