"""The pool of a session: its items, their ids, and changes between two openings."""

import hashlib
import io
from collections import Counter, deque
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .._storage._files import BLOCK_ROWS
from .._storage._fingerprint import hash_ids, hash_items
from .._storage._hash_index import HashIndex, small_int
from .._utils._containers import (
    as_container,
    as_list,
    as_texts,
    concatenate,
    count_items,
    read_items,
    refuse_lone_texts,
    take_row,
    take_rows,
)
from .._utils._format import brief, reprs
from .._utils._repeatable import mix_bits, round_rng


@dataclass(frozen=True)
class Batch:
    """Items to label, the most useful first; see `LabelingSession.ask`."""

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

    def __init__(self, X, ids=None, contents=None, by_position=False):
        self.X, n = read_items(X)
        refuse_lone_texts(self.X, name="X_pool")
        self.ids_are_positions, name = by_position, "'ids'"
        if ids is None:
            ids, name = _own_ids(X, n)
            self.ids_are_positions = _are_positions(ids, n)
        if self.ids_are_positions:
            ids = range(n)
        self.ids = check_ids(ids, n, name)
        self._index = Ids(self.ids, name)
        self._looks: dict[int, int] = {}
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
        refuse_lone_texts(items, name="items")
        m = count_items(items, name="items")
        X = concatenate(self.X, items, name="items")
        if self.kind not in (None, _find_kind(items)):
            raise TypeError(
                f"'items' must be {self.kind}s, as the pool holds them, got "
                f"{items!r:.60}."
            )
        is_in_file, contents = hasattr(X, "hashes"), None
        if not is_in_file:
            contents = np.concatenate([self.contents, hash_items(items)])
        if self.ids_are_positions:
            if ids is not None:
                raise ValueError(
                    f"'ids' must be None for a pool that is known by position, got "
                    f"{ids!r}."
                )
            if hasattr(X, "iloc"):
                X = X.reset_index(drop=True)
        elif ids is None and is_in_file and not isinstance(self.ids, list):
            ids = X.ids
        else:
            if ids is None:
                ids, _ = _own_ids(items, None)
            if ids is None:
                raise ValueError(
                    "'ids' must name each of the new items, got None, and the pool has "
                    f"ids such as {self.ids[0]!r}."
                )
            ids = [*self.ids, *check_ids(ids, m, "'ids'", "items")]
        return Pool(X, ids, contents, self.ids_are_positions)

    def __len__(self):
        return len(self.ids)

    def __contains__(self, id):
        return id in self._index

    def positions(self, ids):
        """Return the positions of known ids, ndarray of int."""
        return self._index.positions(ids)

    @cached_property
    def kind(self):
        """What the items are: "text", "pair", or None for something else."""
        return _find_kind(self.X)

    def texts(self, positions):
        """Return the texts or pairs at positions (p,) as a list."""
        return as_texts(take_rows(self.X, positions)) if len(positions) else []

    def batches(self, size=BLOCK_ROWS):
        """Yield positions and texts or pairs of the whole pool, in lists."""
        for start in range(0, len(self), size):
            rows = np.arange(start, min(start + size, len(self)))
            yield rows.tolist(), self.texts(rows)

    @cached_property
    def _copies(self):
        """The first position of the same text for each item, (n,); None if all differ.

        Only texts and pairs of texts have copies.
        """
        return None if self.kind is None else self.by_content().find_first()

    @property
    def is_first(self):
        """Mask (n,) of the items without an earlier copy."""
        if self._copies is None:
            return np.ones(len(self), dtype=bool)
        return self._copies == np.arange(len(self), dtype=self._copies.dtype)

    def first_copies(self, positions):
        """Return the first positions of the same texts for positions (p,)."""
        return positions if self._copies is None else self._copies[positions]

    def copies_of(self, id):
        """Return the ids of the items with the same text, in order."""
        if self._copies is None:
            return [self.ids[position] for position in self.positions([id]).tolist()]
        (first,) = self.first_copies(self.positions([id]))
        same = np.flatnonzero(self._copies == first)
        return [self.ids[position] for position in same.tolist()]

    def find_looks(self, positions):
        """Return what texts are apart from capitals and blanks, as hashes, list of int.

        Texts of a pool in a file are not read for this: only exact copies look the
        same. Other items all differ.
        """
        if self.kind is None:
            return positions.tolist()
        if hasattr(self.X, "hashes"):
            return self.contents[positions].tolist()
        new = [row for row in positions.tolist() if row not in self._looks]
        for row, text in zip(new, self.texts(np.array(new)), strict=True):
            self._looks[row] = hash(" ".join(fold(text).split()))
        return [self._looks[row] for row in positions.tolist()]

    def draw_keys(self, seed, purpose):
        """Return a random uint64 for each item, (n,).

        It depends on the seed, the purpose and the content of the item alone, and for
        equal items on their order; so it stays where a pool grows.
        """
        contents = self.contents.copy()
        unknown = np.flatnonzero(contents == 0)
        contents[unknown] = hash_ids([self.ids[i] for i in unknown.tolist()])
        earlier = HashIndex(contents).count_earlier().astype(np.uint64)
        salt = round_rng(seed, 0, purpose).integers(2**64, dtype=np.uint64)
        return mix_bits(contents ^ salt, earlier + np.uint64(1))

    def draw_order(self, seed, start=0):
        """Return the positions from `start` on in a random order, of a small int type.

        The order is the same for the audit and for what is encoded first.
        """
        keys = self.draw_keys(seed, "audit")[start:]
        order = np.argsort(keys, kind="stable").astype(small_int(len(self)))
        return order + order.dtype.type(start)

    def by_content(self):
        """Return a HashIndex of the items; it is not kept, for the memory it takes."""
        return HashIndex(self.contents)

    def agrees(self, id, content):
        """Whether an item has this hash, as far as its content is known."""
        own = int(self.contents[self.positions([id])[0]])
        return content is None or own in (0, content)

    def read_ids(self, ids, *, name="ids"):
        """Return checked ids of the pool as a list, from one id or a sequence.

        Raise a ValueError for ids that are unknown or occur twice, and a TypeError for
        containers without an order.
        """
        if isinstance(ids, Mapping | Set) or not (
            isinstance(ids, int | np.generic) or hasattr(ids, "__iter__")
        ):
            raise TypeError(
                f"'ids' must be an id or a sequence of ids, got {brief(ids)}. Pass a "
                "list."
            )
        ids = [ids] if isinstance(ids, str | int | np.generic) else as_list(ids)
        ids = [id.item() if isinstance(id, np.generic) else id for id in ids]
        if not ids:
            raise ValueError("'ids' must name at least one item, got none.")
        unknown = [id for id in ids if id not in self]
        if unknown:
            raise ValueError(
                f"{name!r} must be ids of the pool, got {reprs(unknown)}, which "
                f"are not among its {len(self)} ids, such as {self.ids[0]!r}."
            )
        if twice := repeated(ids):
            raise ValueError(
                f"'ids' must name each item once, got {reprs(twice)} more than once."
            )
        return ids

    def hash_ids(self):
        """Return a uint64 hash of each id, (n,)."""
        return self._index.hash()

    def fingerprint(self):
        """Return the manifest entry of the pool, and hashes of ids and items (n, 2)."""
        hashes = np.empty((len(self), 2), dtype="<u8")
        hashes[:, 0] = self.hash_ids()
        hashes[:, 1] = self.contents
        summary = {"n": len(self)}
        if hasattr(self.X, "columns"):
            summary["columns"] = [str(name) for name in self.X.columns]
        return summary | _digest_columns(hashes), hashes


def _find_kind(X):
    """Return what items are: "text", "pair", or None for something else."""
    try:
        # A pool in a file holds texts: they are not read for this.
        items = X[:1] if hasattr(X, "hashes") else X
        first = as_texts(items)[0]
    except (TypeError, ValueError):
        return None
    return "text" if isinstance(first, str) else "pair"


def _own_ids(X, n):
    """Return the ids that items have of themselves, and what these are called."""
    if hasattr(X, "iloc") and hasattr(X, "index"):
        return X.index, "the index of 'X_pool'"
    if hasattr(X, "hashes"):  # a pool in a file
        return X.ids, "the ids of 'X_pool'"
    return (None if n is None else range(n)), "'ids'"


def _are_positions(ids, n):
    """Whether ids are the numbers from 0 to n - 1 in order."""
    if isinstance(ids, range) or len(ids) != n:
        return ids == range(n)
    return all(id == position for position, id in enumerate(ids))


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
    keys = pool.contents if by_position else pool.hash_ids()
    # By sorting: the other way of numpy 2.0 overflows for hashes above 2**63.
    if not np.isin(before[:, int(by_position)], keys, kind="sort").any():
        what = "items" if by_position else "ids"
        raise ValueError(f"none of its {len(pool)} {what} was in that pool{hint}")
    if not by_position:
        if faults := _find_faults(before, pool, keys, labeled):
            raise ValueError("; ".join(faults) + hint)
        return {id: None for id in others if id not in pool}
    contents, index = before[:, 1], pool.by_content()
    now_at = _match_contents(contents, pool, index, labeled)
    if lost := [id for id in labeled if id not in now_at]:
        raise ValueError(
            f"{len(lost)} labeled items are missing or changed: {reprs(lost)}"
        )
    others_at = _match_contents(contents, pool, index, others, set(now_at.values()))
    moves = {**now_at, **{id: others_at.get(id) for id in others}}
    return {id: now for id, now in moves.items() if id != now}


def _find_faults(before, pool, keys, labeled):
    faults = []
    if lost := [id for id in labeled if id not in pool]:
        faults.append(f"{len(lost)} labeled items are missing: {reprs(lost)}")
    rows = HashIndex(before[:, 0]).find(keys)
    was = before[rows, 1]
    changed = (rows >= 0) & (pool.contents != 0) & (pool.contents != was)
    if changed.any():
        ids = [pool.ids[position] for position in np.flatnonzero(changed).tolist()]
        faults.append(f"{len(ids)} items changed: {reprs(ids)}")
    return faults


def _match_contents(contents, pool, index, ids, taken=()):
    """Match previous positions with positions of the same content now."""
    stayed = {
        id
        for id in ids
        if id in pool and id not in taken and pool.contents[id] == contents[id]
    }
    now_at = {id: id for id in stayed}
    free = {}
    for id in ids:
        if id in stayed:
            continue
        content = int(contents[id])
        if content not in free:
            copies = index.get(content)
            free[content] = deque(
                p for p in copies if p not in stayed and p not in taken
            )
        if free[content]:
            now_at[id] = free[content].popleft()
    return now_at


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
    present = [i for i, id in enumerate(ids) if id is not None]
    event = {**event, "ids": [ids[i] for i in present]}
    for name in {"labels", "seconds", "shown", "confidences"} & event.keys():
        event[name] = [event[name][i] for i in present]
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
    ids = [
        id if id in pool and pool.agrees(id, content) else None for id, content in rows
    ]
    taken, index = set(ids), None
    for i, (_, content) in enumerate(rows):
        if ids[i] is None and content is not None:
            index = index or pool.by_content()
            copies = [pool.ids[position] for position in index.get(content)]
            free = [id for id in copies if id not in taken] or copies
            if free:
                ids[i] = next((id for id in free if id in preferred), free[0])
                taken.add(ids[i])
    return ids


def find_taught(pool, contents):
    """Return the positions of items that the learner was fitted to before the session.

    `contents` are the hashes of these items. Of several copies in the pool, as many are
    returned as the learner was fitted to.
    """
    counts = Counter(contents.tolist())
    del counts[0]  # contents that are not known
    index = pool.by_content() if counts else None
    return [p for content, n in counts.items() for p in index.get(content)[:n]]


FEW = 2**16  # so few ids are in a dict, which is faster than a search


class Ids:
    """The ids of a pool and their positions.

    `values` is a sequence of n ids. A range of ids takes no memory, a few ids are kept
    in a dict, and of others 12 bytes each: sorted hashes, and the positions of these.
    """

    def __init__(self, values, name="'ids'", items="X_pool"):
        self.values = values
        self._found = {}
        self._index = None
        if isinstance(values, range):
            return
        if len(values) <= FEW:
            self._found = {id: position for position, id in enumerate(values)}
            twice = [] if len(self._found) == len(values) else repeated(values)
        else:
            self._index = HashIndex(hash_ids(values))
            rows = self._index.find_repeated().tolist()
            twice = repeated([values[row] for row in rows])
        if twice:
            raise ValueError(
                f"{name} must be unique, got {reprs(twice)} more than once. Pass "
                "different ids=."
            )

    def __contains__(self, id):
        return is_id(id) and self._find(id) is not None

    def positions(self, ids):
        """Return the positions of known ids, ndarray of int."""
        if isinstance(self.values, range):
            is_position = self.values == range(len(self.values))
            positions = ids if is_position else map(self.values.index, ids)
            return np.fromiter(positions, dtype=np.intp)
        ids = list(ids)
        if self._index is not None:
            self._search([id for id in ids if id not in self._found])
        return np.array([self._found[id] for id in ids], dtype=np.intp)

    def _find(self, id):
        """Return the position of an id, None for another one."""
        if isinstance(self.values, range):
            is_known = isinstance(id, int) and id in self.values
            return self.values.index(id) if is_known else None
        if self._index is not None and id not in self._found:
            self._search([id])
        return self._found.get(id)

    def _search(self, ids):
        """Find ids by their hashes; they are kept, as they are asked for again."""
        for id, same in zip(ids, self._index.find_all(hash_ids(ids)), strict=True):
            for position in same:
                if self.values[position] == id:
                    self._found[id] = position

    def hash(self):
        """Return a uint64 hash of each id, (n,)."""
        return hash_ids(self.values) if self._index is None else self._index.hashes()


def is_list(values):
    """Whether a value is a container with an order, and no text."""
    return hasattr(values, "__len__") and not isinstance(values, str | Mapping | Set)


def is_id(id):
    """Whether a value can be an id."""
    return isinstance(id, str | int) and not isinstance(id, bool)


def check_ids(ids, n, name, items="X_pool"):
    """Return checked ids of n items as a list, or as a range or lazy sequence."""
    if not is_list(ids):
        raise TypeError(f"{name} must be a sequence of n ids, got {brief(ids)}.")
    if not isinstance(ids, range) and not hasattr(ids, "batches"):
        ids = as_list(ids)
    if len(ids) != n:
        raise ValueError(
            f"{name} must name each of the {n} items of {items!r}, got {len(ids)} ids."
        )
    for id in () if isinstance(ids, range) else ids:
        if not is_id(id):
            raise TypeError(
                f"{name} must hold str or int, got {id!r} ({type(id).__name__}). "
                "Pass ids=, for example ids=[str(i) for i in ...]."
            )
    return ids


def repeated(ids):
    """Return the ids that occur more than once, each once."""
    if len(set(ids)) == len(ids):
        return []
    seen = set()
    return list(dict.fromkeys(id for id in ids if id in seen or seen.add(id)))


def fold(text):
    """Return a text, or a pair as two lines, for a comparison in any case."""
    return (text if isinstance(text, str) else "\n".join(text)).casefold()
