"""What a session asks about at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from skactive._containers import take_row

__all__ = ["Batch"]


@dataclass(frozen=True)
class Batch:
    """Items to label, the most useful first.

    An empty batch is falsy: nothing is left to ask about. A batch iterates over pairs
    of an id and its item.

    Attributes
    ----------
    ids : tuple
        Their ids.
    items : container
        The items, in the container of the pool.
    number : int or None
        Which batch of the session, from 1; None for an empty one.
    annotator : str or None
        Whom it was asked.

    Examples
    --------
    >>> from skactive.session import Batch
    >>> batch = Batch(ids=("a7", "a9"), items=["a fine film", "no"], number=1)
    >>> [f"{id}: {item}" for id, item in batch]
    ['a7: a fine film', 'a9: no']
    >>> batch
    Batch(2 items, number=1: 'a7', 'a9')
    """

    ids: tuple
    items: object = field(compare=False)
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
