"""What a session asks: batches that are open, second opinions, and new items."""

from dataclasses import dataclass
from functools import cached_property
from numbers import Real

import numpy as np
from sklearn.base import clone
from sklearn.metrics.pairwise import cosine_similarity

from .._utils._containers import take_rows
from .._utils._pipelines import computes_features, split_estimator
from .._utils._sklearn import check_count
from ._models import seeded_for
from ._pool import Batch, find_taught


@dataclass(frozen=True)
class Options:
    """Checked options of what a session asks; see `LabelingSession`."""

    settle: str = "majority"
    overlap: float = 0.0
    audit_every: int | None = None
    max_similarity: float | None = None

    def __post_init__(self):
        if not isinstance(self.settle, str) or not self.settle:
            raise ValueError(
                "'settle' must be 'latest', 'majority' or the name of an annotator, "
                f"got {self.settle!r}."
            )
        for name, value in (
            ("overlap", self.overlap),
            ("max_similarity", self.max_similarity or 0.0),
        ):
            is_number = isinstance(value, Real) and not isinstance(value, bool)
            if not is_number or not 0.0 <= value <= 1.0:
                raise ValueError(f"{name!r} must be from 0 to 1, got {value!r}.")
        if self.audit_every is not None:
            check_count("audit_every", self.audit_every)


class Queue:
    """Chooses batches and records them.

    `choosing` is held while a batch is chosen; it is acquired before the lock of the
    log. `taught` are hashes of the items that the learner was fitted to before the
    session.
    """

    def __init__(self, log, pool, models, choosing, taught, options):
        self._log = log
        self._pool = pool
        self._models = models
        self._choosing = choosing
        self._known = taught
        self._options = options
        self._front = None
        # Batches that were open are shown once more before any new one.
        self._to_show = list(log.state.open)

    def ask(self, n_queries, annotator, refit):
        """Return the next Batch; see `LabelingSession.ask`."""
        log = self._log
        with self._choosing:
            if (batch := self._show(annotator)) is not None:
                return batch
            model = self._models.get(refit)
            n = n_queries or model.learner.batch_size
            while True:
                with log.lock:
                    seq, free = log.state.seq, self.free()
                    second = self.second_opinions(annotator)[:n]
                    slots = self._audit_slots(min(n - len(second), int(free.sum())))
                audit = self._draw(len(slots), free)
                fixed = [*self._pool.positions(second).tolist(), *audit]
                picks = self._choose(model, n - len(fixed), free, fixed)
                for slot, position in zip(slots, audit, strict=True):
                    picks.insert(slot, position)
                if not picks and not second:
                    items = take_rows(self._pool.X, np.empty(0, dtype=np.intp))
                    return Batch((), items, None, annotator)
                with log.lock:
                    log.sync()
                    # Another thread may have answered some in the meantime.
                    if seq == log.state.seq or (
                        self.free()[picks].all()
                        and {*second} <= {*self.second_opinions(annotator)}
                    ):
                        return self._record(second, picks, audit, annotator, model)

    def show_again(self, ids):
        """Show the open batches of some items once more."""
        for number, waiting in self._log.state.open.items():
            if number not in self._to_show and not waiting.keys().isdisjoint(ids):
                self._to_show.append(number)

    def _show(self, annotator):
        """Return a batch that is to be shown again to an annotator, or None."""
        with self._log.lock:
            self._log.sync()
            state = self._log.state
            for number in self._to_show:
                if number in state.open and annotator == state.batches[number][1]:
                    self._to_show.remove(number)
                    return self.batch(number)
        return None

    def _record(self, second, picks, audit, annotator, model):
        state = self._log.state
        number = len(state.batches) + 1
        self._log.record(
            "ask",
            batch=number,
            ids=[*second, *(self._pool.ids[pick] for pick in picks)],
            by=annotator,
            n_labeled=len(state.answers),
            model=model.seq,
            second=second or None,
            audit=[self._pool.ids[position] for position in audit] or None,
        )
        return self.batch(number)

    def batch(self, number):
        """Return the open items of a batch."""
        state = self._log.state
        ids = tuple(state.open[number])
        items = take_rows(self._pool.X, self._pool.positions(ids))
        return Batch(ids, items, number, state.batches[number][1])

    def free(self):
        """Return a mask (n,) of the items that may be queried.

        Of several copies of a text, only the first may be, and only if no copy is
        labeled, skipped, waiting, or known to the learner from before the session.
        """
        state, pool = self._log.state, self._pool
        free = pool.is_first
        free[pool.first_copies(self._taught)] = False
        for ids in (state.answers, state.skipped, *state.open.values()):
            free[pool.first_copies(pool.positions(ids))] = False
        return free

    @cached_property
    def _taught(self):
        """Positions of the items that the learner was fitted to before the session."""
        return np.array(find_taught(self._pool, self._known), dtype=np.intp)

    def follow_pool(self):
        """Work out again what depends on the pool."""
        for name in ("_taught", "_shared", "_order"):
            self.__dict__.pop(name, None)

    # Second opinions ------------------------------------------------------------------

    def second_opinions(self, annotator):
        """Return the ids that an annotator is to be asked after somebody else."""
        state = self._log.state
        if not self._options.overlap:
            return []
        found = []
        for id, queried in state.queried.items():
            given = state.answers[id].given if id in state.answers else ()
            people = {*queried, *(answer.annotator for answer in given)}
            if len(people) == 1 and annotator not in people:
                (first,) = people
                if given or state.waits_for(id, first):
                    found.append(id)
        shared = self._shared[self._pool.positions(found)]
        return [id for id, chosen in zip(found, shared, strict=True) if chosen]

    @cached_property
    def _shared(self):
        """Mask (n,) of the items that two people are asked."""
        keys = self._pool.draw_keys(self._seed, "overlap")
        return keys < self._options.overlap * 2.0**64

    @property
    def _seed(self):
        return self._log.journal.manifest["base_seed"]

    # The audit ------------------------------------------------------------------------

    @cached_property
    def _order(self):
        """The first positions of all texts in random order, (t,).

        The keys belong to the texts: what a pool gains is anywhere in the order.
        """
        distinct = self._pool.is_first
        distinct[self._pool.first_copies(self._taught)] = False
        order = self._pool.draw_order(self._seed)
        return order[distinct[order]]

    def _audit_slots(self, n):
        """Return which of `n` new items belong to the audit."""
        every = self._options.audit_every
        start = len(self._log.state.queried) + 1
        return [i for i in range(n) if every and (start + i) % every == 0]

    def _draw(self, n, free):
        """Return the positions of the next `n` free items of the sample, a list."""
        return self._order[free[self._order]][:n].tolist() if n else []

    def audited(self):
        """Return the ids of the answered part of the sample; see `LabelingSession`."""
        state, pool = self._log.state, self._pool
        if not state.audited:
            return []
        answered, skipped = (
            dict(zip(pool.first_copies(pool.positions(ids)).tolist(), ids, strict=True))
            for ids in (state.answers, state.skipped)
        )
        found = []
        for position in map(int, self._order):
            if position in answered:
                found.append(answered[position])
            elif position not in skipped:
                break
        return found

    # New items ------------------------------------------------------------------------

    def _choose(self, model, n, free, fixed):
        """Return `n` positions that are not in `fixed`, or fewer; as a list."""
        free = free.copy()
        free[fixed] = False
        if n < 1 or not free.any():
            return []
        learner = seeded_for(model.learner, len(self._log.state.batches) + 1)
        count, is_first = n, True
        while True:
            picks = self._models.choose(learner, count, free).tolist()
            kept = self._drop_similar(learner, picks, fixed)
            if len(kept) >= n or len(picks) == free.sum() or len(picks) < count:
                return kept[:n]
            free[np.setdiff1d(picks, kept)] = False
            if not is_first:  # many copies: look further at once
                count *= 2
            is_first = False

    def _drop_similar(self, learner, picks, fixed):
        """Return the picks that resemble neither earlier ones nor those in `fixed`."""
        limit = self._options.max_similarity
        if limit is None or not computes_features(learner.estimator):
            return picks
        if not self._models.has_features([*fixed, *picks]):
            return picks
        rows = take_rows(self._pool.X, np.array([*fixed, *picks]))
        features = self._fit_front(learner.estimator).transform(rows)
        similar = cosine_similarity(features) > limit
        kept = list(range(len(fixed)))
        for i in range(len(fixed), len(similar)):
            if not similar[i, kept].any():
                kept.append(i)
        return [picks[i - len(fixed)] for i in kept[len(fixed) :]]

    def _fit_front(self, estimator):
        if self._front is None:
            front, _ = split_estimator(estimator)
            self._front = clone(front).fit(take_rows(self._pool.X, np.arange(1)))
        return self._front
