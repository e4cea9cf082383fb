"""What a session asks about at once."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Batch"]


@dataclass(frozen=True)
class Batch:
    """Items to label, the most useful first.

    An empty batch is falsy: nothing is left to ask about.

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
    >>> [f"{id}: {item}" for id, item in zip(batch.ids, batch.items)]
    ['a7: a fine film', 'a9: no']
    """

    ids: tuple
    items: object = field(compare=False)
    number: int | None = None
    annotator: str | None = None

    def __len__(self):
        return len(self.ids)
