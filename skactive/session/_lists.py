"""Lists of what was answered: found by a filter, looked through, changed at once."""

from typing import Any

from .._utils._labels import key_of, same_label
from .._utils._repeatable import synchronized
from ._arguments import checked
from ._lookup import find_added, find_answered, keep

_Json = dict[str, Any]


class Lists:
    """The part of a `Desk` that is about answers that were given."""

    _lock: Any
    _core: Any
    _who: Any
    _shown: Any
    _state: Any
    _doubts: Any
    _items: Any
    _check_later: Any

    @checked
    def history(
        self,
        query: str = "",
        start: int = 0,
        n_items: int = 50,
        where: Any = None,
        only_ids: bool = False,
    ) -> _Json:
        """Return answered and skipped items, the newest first.

        Parameters
        ----------
        query : str, default=""
            Part of the text or of the label, in any case.
        start : int, default=0
            Number of items to leave out.
        n_items : int, default=50
            Largest number of items.
        where : dict, default=None
            Further conditions, all optional: "label", a class of the item; "by", the
            name of an annotator who answered it; "only", one of "flag", "note",
            "skipped", "unlabeled" and "doubtful", which has the order of `check`;
            "before", a class that was added after the answer; and "likely", such a
            class that a model without the answer predicts, the most likely first. The
            items of the audit follow that have the labels of these, as nothing is
            predicted for them. If no model knows the class, they are all.
        only_ids : bool, default=False
            Whether to return the ids alone, but those of all items. `item` returns the
            rest of each.

        Returns
        -------
        page : dict
            "total", the number of items, "items", and "annotators", all who answered.
        """
        with self._lock:
            latest = self._keep(self._state.latest(), **(where or {}))
            people = [one.annotator for one in self._state.list_answers()]
        latest = find_answered(self._state, latest, query)
        return {
            **self._page(latest, start, n_items, only_ids),
            "annotators": list(dict.fromkeys(people)),
        }

    def _keep(self, ids, only=None, before=None, likely=None, **where):
        """Return the ids of a list that meet the conditions of `history`, in order."""
        with self._lock:
            order = None
            if only == "doubtful":
                only, order = None, [id for id, *_ in self._doubts.list_rows()]
            since = before if likely is None else likely
            ids = keep(self._state, ids, only=only, before=since, **where)
            if likely is not None and (both := self._doubts.find_likely(ids, likely)):
                order = [*both[0], *both[1]]
            members = {*ids}
            return ids if order is None else [id for id in order if id in members]

    def _page(self, ids, start, n_items, only_ids=False):
        """Return a part of a list of items."""
        if only_ids:
            return {"total": len(ids), "items": [{"id": id} for id in ids]}
        return {"total": len(ids), "items": self._items(ids[start : start + n_items])}

    @checked
    def check(self, n_items: int = 20) -> _Json:
        """Return answers that models without them contradict, the most doubtful first.

        They are computed in the background after each model, and this returns the last
        list at once.

        Parameters
        ----------
        n_items : int, default=20
            Largest number of items.

        Returns
        -------
        page : dict
            "items", whose "prediction" and "probability" are of a model that was
            trained without the answer; "total", their number; "n_labels", the number of
            labels that the list is of, None before the first list; and "computing",
            whether a newer one is on its way.

        Raises
        ------
        TypeError
            If the estimator cannot be used to find doubtful answers.
        """
        self._check_later()
        rows = self._doubts.list_rows()
        ids, predicted = [], []
        for id, _, *said in rows[:n_items]:
            ids.append(id)
            predicted.append(self._doubts.show(*said))
        return {
            "items": self._items(ids, predicted),
            "total": len(rows),
            "n_labels": self._doubts.n_labels,
            "computing": self._doubts.is_behind,
        }

    @checked
    def answer_all(
        self,
        ids: list[Any],
        label: Any,
        client: str,
        annotator: str | None = None,
        seconds: float | None = None,
        way: str | None = None,
    ) -> _Json:
        """Record one label for several items; `undo` takes all of it back at once.

        Items that have this label of the person already are left out.

        Parameters
        ----------
        ids : list of str or int
            Ids of the items.
        label, client, annotator, way
            As in `answer`.
        seconds : float, default=None
            How long the person needed for all of them.

        Raises
        ------
        ValueError
            If an item is unknown or the label is not one of the classes. Nothing was
            then recorded.
        """
        pool, who, same = self._state.pool, self._who(annotator), {}
        ids = pool.read_ids(ids)
        for id in ids:
            own = self._state.answers_of(id).get(who)
            if own is not None and key_of(own.label) == key_of(label):
                same[id] = own.way
        if len(same) == len(ids) and any(map(self._doubts.lists, ids)):
            way = "review"  # it is confirmed
        is_review = way == "review"
        new = [x for x in ids if x not in same or (is_review and same[x] != way)]
        if new:
            shown = [self._shown.get(x) for x in pool.find_looks(pool.positions(new))]
            options: _Json = {"seconds": seconds, "way": way, "allows_new": False}
            options |= {"unasked": True, "shown": shown if any(shown) else None}
            with self._core.recording() as answers:
                answers.tell(new, [label] * len(new), who, **options)
        return self._after(ids, client, annotator)

    def _after(self, ids, client, annotator):
        with self._lock:
            self._leases.hear(client)
            for id in ids:
                self._leases.give(self._who(annotator), id, None)
        return self.state(annotator)

    @synchronized
    def _describe_older(self):
        """Return how many answers are older than a class that was added, or None.

        It is the newest class that is predicted for some of them, or that no model
        knows yet. "label" is the one class that these have, None for several.
        """
        answers, classes = self._state.answers, self._core.known_classes()
        for name, since in reversed(find_added(self._state).items()):
            ids, label = [id for id in answers if answers[id].seq < since], None
            both = self._doubts.find_likely(ids, name) if name in classes else ([], [])
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
