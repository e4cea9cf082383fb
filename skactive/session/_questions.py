"""What a session asks: batches that are open, and the next items."""

import numpy as np

from .._utils._containers import take_rows
from ._models import seeded_for
from ._pool import Batch


class Questions:
    """Chooses batches and records them.

    `choosing` is held while a batch is chosen; it is acquired before the lock of the
    log. `taught` are positions that the learner was fitted to before the session.
    """

    def __init__(self, log, pool, models, choosing, taught):
        self._log = log
        self._pool = pool
        self._models = models
        self._choosing = choosing
        self._taught = taught
        # Batches that were open are shown once more before any new one.
        self._to_show = list(log.state.open)

    def ask(self, n, annotator, refit):
        """Return the next Batch; see `LabelingSession.ask`."""
        log = self._log
        with self._choosing:
            if (batch := self._show(annotator)) is not None:
                return batch
            model = self._models.get(refit)
            while True:
                with log.lock:
                    seq, free = log.state.seq, self.free()
                if not free.any():
                    items = take_rows(self._pool.X, np.empty(0, dtype=np.intp))
                    return Batch((), items, None, annotator)
                learner = seeded_for(model.learner, len(log.state.batches) + 1)
                picks = self._models.choose(learner, n, free)
                with log.lock:
                    log.sync()
                    # Another thread may have answered some in the meantime.
                    if seq == log.state.seq or self.free()[picks].all():
                        return self._record(picks, annotator, model)

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

    def _record(self, picks, annotator, model):
        state = self._log.state
        number = len(state.batches) + 1
        self._log.record(
            "ask",
            batch=number,
            ids=[self._pool.ids[pick] for pick in picks],
            by=annotator,
            n_labeled=len(state.answers),
            model=model.seq,
        )
        return self.batch(number)

    def batch(self, number):
        """Return the open items of a batch."""
        state = self._log.state
        ids = tuple(state.open[number])
        items = take_rows(self._pool.X, self._pool.positions(ids))
        return Batch(ids, items, number, state.batches[number][1])

    def free(self):
        """Return a mask (n,) of the items that may be asked.

        Of several copies of a text, only the first may be, and only if no copy is
        labeled, skipped, waiting, or known to the learner from before the session.
        """
        state, copies = self._log.state, self._pool.copies
        taken = np.zeros(len(self._pool), dtype=bool)
        taken[copies[self._taught]] = True
        for ids in (state.answers, state.skipped, *state.open.values()):
            taken[copies[self._pool.positions(ids)]] = True
        return (copies == np.arange(len(copies))) & ~taken
