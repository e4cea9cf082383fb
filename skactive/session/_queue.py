"""The batches of a session: open ones, second opinions, and new items."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

import numpy as np
from sklearn.base import clone
from sklearn.metrics.pairwise import cosine_similarity

from .._storage._files import utc_now
from .._storage._fingerprint import hash_items
from .._utils._checks import check_count, check_share
from .._utils._containers import take_rows
from .._utils._pipelines import computes_features
from .._utils._repeatable import round_seed
from ._background import fit_front
from ._coders import SETTLED
from ._pool import Batch, find_taught
from ._state import settle

NO_AUDIT = (
    "the session has no audit, a random sample of the pool. Open it with "
    "audit_every=10, for one in ten."
)
_REPEAT_AFTER = timedelta(hours=1)
_N_FIRST = 10  # texts of the audit that come first, so that estimates come early


@dataclass(frozen=True)
class Options:
    """Checked options of the batches of a session; see `LabelingSession`."""

    settle: str = "majority"
    overlap: float | None = 0.0
    audit_every: int | None = None
    max_similarity: float | None = None
    repeat: float = 0.0

    def __post_init__(self):
        if not isinstance(self.settle, str) or not self.settle:
            raise ValueError(
                "'settle' must be 'latest', 'majority' or the name of an annotator, "
                f"got {self.settle!r}."
            )
        shares = {"overlap": self.overlap or 0.0, "repeat": self.repeat}
        shares |= {"max_similarity": self.max_similarity or 0.0}
        for name, value in shares.items():
            check_share(name, value, limits=(0, 1))
        if self.audit_every is not None:
            check_count("audit_every", self.audit_every)

    @property
    def every(self):
        """Every how many items one is drawn at random: so many that all overlap is.

        The share of these that two annotators get is `overlap` times this number.
        """
        if self.audit_every is None or not self.overlap:
            return self.audit_every
        return min(self.audit_every, int(1 / self.overlap))


class Draws:
    """What is drawn from a pool at random: the audit and the second opinions.

    `known` are hashes of the items that the learner was fitted to before the session.
    A grown pool gets new draws.
    """

    def __init__(self, pool, known, seed, options):
        self._pool = pool
        self._known = known
        self._seed = seed
        self._options = options

    @cached_property
    def taught(self):
        """First copies of the items that the learner was fitted to before, (m,)."""
        taught = np.array(find_taught(self._pool, self._known), dtype=np.intp)
        return self._pool.first_copies(taught)

    def list_taught(self, ids):
        """Return those of some ids that the learner was fitted to before, list."""
        copies = self._pool.first_copies(self._pool.positions(ids))
        is_taught = np.isin(copies, self.taught).tolist()
        return [id for id, taught in zip(ids, is_taught, strict=True) if taught]

    @cached_property
    def shares(self):
        """For each item the overlap from which on two annotators get it, (n,)."""
        return self._pool.draw_keys(self._seed, "overlap") / 2.0**64

    @cached_property
    def repeated(self):
        """Mask (n,) of the items that come to an annotator again."""
        keys = self._pool.draw_keys(self._seed, "repeat")
        return keys < self._options.repeat * 2.0**64

    @cached_property
    def reserved(self):
        """Mask (n,) of the texts that the audit can draw until all are labeled.

        Its items are the first ones of the `order`, about one in `audit_every`; the
        keys belong to the texts, so a text stays reserved where the pool grows.
        """
        every = self._options.every
        if every is None:
            return np.zeros(len(self._pool), dtype=bool)
        keys = self._pool.draw_keys(self._seed, "audit")
        copies = self._pool.first_copies(np.arange(len(keys)))
        return (keys < 2.0**64 / every)[copies]

    @cached_property
    def order(self):
        """The first positions of all texts in random order, (t,).

        The keys belong to the texts: what a pool gains is anywhere in the order.
        """
        distinct = self._pool.is_first
        distinct[self.taught] = False
        order = self._pool.draw_order(self._seed)
        return order[distinct[order]]


class Queue:
    """Chooses batches and records them.

    `choosing` is held while a batch is chosen; it is acquired before the lock of the
    journal. Items that `learner` was fitted to before the session are not chosen.
    """

    def __init__(self, journal, learner, models, choosing, options):
        self._journal = journal
        self._state = journal.state
        self.states = [self._state]  # of all questions about the texts
        self.find_asked = None  # by id, whether a question is asked that depends on one
        self._lock = journal.lock
        self._models = models
        self._choosing = choosing
        self._known = hash_items(getattr(learner, "X_labeled_", ()))
        self._options = options
        self._front = None
        self.follow_pool()
        self._release_taught()
        # Batches that were open are shown once more before any new one.
        self._to_show = list(self._state.open)

    def _release_taught(self):
        """Release items that wait since before the learner was fitted to them."""
        state = self._state
        waiting = [id for batch in state.open.values() for id in batch]
        waiting = list(dict.fromkeys(id for id in waiting if id not in state.answers))
        if waiting and (ids := self.draws.list_taught(waiting)):
            self._journal.record("release", ids=ids, taught=True)

    def follow_pool(self):
        """Draw from the present pool."""
        seed = self._journal.manifest["base_seed"]
        self.draws = Draws(self._state.pool, self._known, seed, self._options)
        self._hidden = None  # what texts look like with which no machine is shown

    def ask(self, n_queries, annotator, refit):
        """Return the next Batch; see `LabelingSession.ask`."""
        with self._choosing:
            if (batch := self._show(annotator)) is not None:
                return batch
            model = self._models.get(refit, wait=False)
            n = n_queries or model.learner.batch_size
            while True:
                with self._lock:
                    pool, seq, free = self._state.pool, self._state.seq, self.free()
                    second = self.second_opinions(annotator)[:n]
                    slots = self._audit_slots(min(n - len(second), int(free.sum())))
                audit = self._draw(len(slots), free)
                fixed = [*pool.positions(second).tolist(), *audit]
                picks = self._choose(model, n - len(fixed), free, fixed)
                for slot, position in zip(slots, audit, strict=True):
                    picks.insert(slot, position)
                if not picks and not second:
                    items = take_rows(pool.X, np.empty(0, dtype=np.intp))
                    return Batch((), items, None, annotator)
                with self._lock:
                    self._journal.sync()
                    # Another thread may have answered some in the meantime.
                    if seq == self._state.seq or (
                        self.free()[picks].all()
                        and {*second} <= {*self.second_opinions(annotator)}
                    ):
                        return self._record(second, picks, audit, annotator, model)

    def show_again(self, ids):
        """Show the open batches of some items once more."""
        for number, waiting in self._state.open.items():
            if number not in self._to_show and not waiting.keys().isdisjoint(ids):
                self._to_show.append(number)

    def _show(self, annotator):
        """Return a batch that is to be shown again to an annotator, or None."""
        with self._lock:
            self._journal.sync()
            for number in self._to_show:
                is_open = number in self._state.open
                if is_open and annotator == self._state.batches[number][1]:
                    self._to_show.remove(number)
                    return self._batch(number)
        return None

    def _record(self, second, picks, audit, annotator, model):
        state, ids = self._state, self._state.pool.ids
        number = len(state.batches) + 1
        self._journal.record(
            "ask",
            batch=number,
            ids=[*second, *(ids[pick] for pick in picks)],
            by=annotator,
            n_labeled=len(state.answers),
            model=model.seq,
            adapted=model.adapted,
            second=second or None,
            audit=[ids[position] for position in audit] or None,
        )
        return self._batch(number)

    def share(self, ids, audited, annotator):
        """Record that items wait here which another session of the pool asks for.

        Those that are free or need a second opinion are recorded; `audited` are those
        that the audit has drawn there.
        """
        with self._lock:
            self._journal.sync()
            pool, free = self._state.pool, self.free()
            second = [id for id in self.second_opinions(annotator) if id in ids]
            picks = [i for i in pool.positions(ids).tolist() if free[i]]
            audit = [i for i in picks if pool.ids[i] in audited]
            if picks or second:
                self._record(second, picks, audit, annotator, self._models.newest())

    def _batch(self, number):
        """Return the open items of a batch."""
        state = self._state
        ids = tuple(state.open[number])
        items = take_rows(state.pool.X, state.pool.positions(ids))
        return Batch(ids, items, number, state.batches[number][1])

    def open_batches(self):
        """Return the open items of all batches, list of Batch."""
        with self._lock:
            return [self._batch(number) for number in sorted(self._state.open)]

    def free(self):
        """Return a mask (n,) of the items that can be queried.

        Of several copies of a text, only the first can be, and only if no copy is
        labeled, skipped, waiting, or known to the learner from before the session.
        """
        state, pool = self._state, self._state.pool
        free = pool.is_first
        free[self.draws.taught] = False
        for ids in (state.answers, state.skipped, *state.open.values()):
            free[pool.first_copies(pool.positions(ids))] = False
        if self.find_asked is not None:
            asked = [id for id, is_asked in self.find_asked().items() if is_asked]
            free &= np.isin(np.arange(len(pool)), pool.positions(asked))
        return free

    def find_unaudited(self):
        """Return free positions that are not reserved, in random order, (m,)."""
        with self._lock:
            order, draws = self.draws.order, self.draws
            return order[(self.free() & ~draws.reserved)[order]]

    def is_blind(self, id):
        """Whether nothing of a machine is shown with an item."""
        return self.find_blind([id])[0]

    def find_blind(self, ids):
        """Return a list of whether nothing of a machine is shown with each item.

        The audit can draw it, or a text that differs from it in blanks and capitals.
        """
        with self._lock:
            pool, states = self._state.pool, self.states
            drawn = [id for state in states for id in list(state.audited)]
            if self._hidden is None:
                rows = np.flatnonzero(self.draws.reserved)
                self._hidden, self._n_hidden = {*pool.find_looks(rows)}, 0
            if len(drawn) != self._n_hidden:
                self._hidden.update(pool.find_looks(pool.positions(drawn)))
                self._n_hidden = len(drawn)
            looks = pool.find_looks(pool.positions(ids))
            return [look in self._hidden for look in looks]

    def _is_drawn(self, id):
        """Whether the audit has drawn an item, or can draw it until all are labeled."""
        return id in self._state.audited or self.is_reserved(id)

    def is_reserved(self, id):
        """Whether each session of the same pool knows that the audit can draw an item.

        What it draws behind these items is known to its own session alone.
        """
        return bool(self.draws.reserved[self._state.pool.positions([id])[0]])

    def has_more(self, annotator):
        """Whether an annotator has open items, or can get new ones."""
        with self._lock:
            return bool(
                self._state.open or self.free().any() or self.second_opinions(annotator)
            )

    def second_opinions(self, annotator):
        """Return the ids that an annotator gets after somebody else, or again."""
        state, ids = self._state, []
        for id, queried in state.queried.items() if self.overlap else ():
            answers = state.answers[id].given if id in state.answers else ()
            people = {*queried, *(answer.annotator for answer in answers)}
            if len(people) == 1 and annotator not in people:
                (first,) = people
                if answers or state.waits_for(id, first):
                    ids.append(id)
        return self.find_shared(ids) + self._find_repeat(annotator)

    def _find_repeat(self, annotator):
        """Return an id that an annotator answered long ago, as a list, or no id."""
        state, before = self._state, utc_now() - _REPEAT_AFTER
        asked = state.queried if self._options.repeat else {}
        chosen = self.draws.repeated[state.pool.positions([*asked])]
        for id, is_chosen in zip(asked, chosen, strict=True):
            own = is_chosen and state.answers_of(id).get(annotator)
            is_due = own and datetime.fromisoformat(own.time) < before
            if is_due and asked[id].get(annotator) == 1 and not self.is_blind(id):
                return [id]
        return []

    @property
    def overlap(self):
        """The share of the items that two annotators get."""
        return self._options.overlap

    def find_shared(self, ids):
        """Return those of some ids that two annotators get, list.

        With an audit, they are drawn at random among its items.
        """
        every, drawn = self._options.every, self._state.audited
        ids = [id for id in ids if self.overlap and (not every or id in drawn)]
        keys = self.draws.shares[self._state.pool.positions(ids)] if ids else ()
        rates = [self.overlap * (every if every and not drawn[id] else 1) for id in ids]
        rows = zip(ids, keys, rates, strict=True)
        return [id for id, key, rate in rows if key < rate]

    def find_hidden(self, annotator):
        """Return the ids of which an annotator may see no answer of others, set.

        The audit drew them for two people, and of these the annotator has not answered.
        """
        with self._lock:
            state, waits = self._state, []
            for id in state.audited if self.overlap else ():
                answer = state.answers.get(id)
                people = [one.annotator for one in answer.given] if answer else ()
                if len(people) < 2 and annotator not in people:
                    waits.append(id)
            return {*self.find_shared(waits)}

    # The audit ------------------------------------------------------------------------

    @property
    def random_only(self):
        """Whether all items are drawn at random, None without an audit."""
        return self._options.every and bool(self._state.random_only)

    @property
    def audit_every(self):
        """Every how many items one is drawn at random now, None without an audit."""
        every = self._options.every
        return every and (1 if self._n_first(1) > 0 else every)

    def draw_at_random(self, only, by=None):
        """Draw all items at random from now on, or as many as the audit needs."""
        if self._options.audit_every is None:
            raise ValueError(NO_AUDIT)
        with self._lock:
            self._journal.sync()
            self._journal.record("options", random_only=only, by=by)

    def _n_first(self, n):
        """Return how many of `n` new items are drawn at random before any other.

        The first ones of a session are, where a model can come before the first label.
        """
        with self._lock:
            drawn = self._state.audited.keys() - self._state.skipped.keys()
            n_drawn = len(drawn) - len(self.draws.list_taught(drawn))
        n_first = _N_FIRST - n_drawn if self._models.in_background else 0
        return n if self.random_only else n_first

    def _audit_slots(self, n):
        """Return which of `n` new items belong to the audit."""
        every, n_first = self._options.every, self._n_first(n)
        start = len(self._state.queried) + 1
        return [
            i for i in range(n) if every and (i < n_first or (start + i) % every == 0)
        ]

    def _draw(self, n, free):
        """Return the positions of the next `n` free items of the sample, a list."""
        order = self.draws.order
        return order[free[order]][:n].tolist() if n else []

    def audited(self):
        """Return the ids of the answered part of the sample; see `LabelingSession`."""
        state, pool = self._state, self._state.pool
        if not state.audited:
            return []
        asked = self.find_asked() if self.find_asked else {}
        others = [id for id, is_asked in asked.items() if not is_asked]
        answered, skipped = (
            dict(zip(pool.first_copies(pool.positions(ids)).tolist(), ids, strict=True))
            for ids in (state.answers.keys() - others, [*state.skipped, *others])
        )
        ids = []
        for position in map(int, self.draws.order):
            if position in answered:
                ids.append(answered[position])
            elif position not in skipped:
                break
        return ids

    def choose_sample(self, blind):
        """Return the labels of the sample, dict of id, and the ids that are left out.

        The first blind answers count. Where there is none, the item is left out with
        `blind`, and else its label counts. The audit can go on behind the reserved
        texts, where answers may have been given with help. With `blind`, it then ends
        with them.
        """
        with self._lock:
            sample, answers = self.audited(), self._state.answers
            if blind and not all(answers[id].blind for id in sample):
                sample = [id for id in sample if self._is_drawn(id)]
            labels = {}
            for id in sample:
                if answers[id].way == SETTLED and answers[id].shown == "none":
                    labels[id] = answers[id].label
                elif blind_answers := answers[id].blind:
                    labels[id] = settle(blind_answers, self._state.settle).label
                elif not blind:
                    labels[id] = answers[id].label
            return labels, [id for id in sample if id not in labels]

    # New items ------------------------------------------------------------------------

    def _choose(self, model, n, free, fixed):
        """Return `n` positions that are not in `fixed`, or fewer; as a list."""
        free = free.copy()
        free[fixed] = False
        if n < 1 or not free.any():
            return []
        learner = _seeded_for(model.learner, len(self._state.batches) + 1)
        count, is_first = n, True
        while True:
            picks = self._models.choose(learner, count, free, self.draws.order).tolist()
            distinct = self._drop_similar(learner, picks, fixed)
            if len(distinct) >= n or len(picks) == free.sum() or len(picks) < count:
                return distinct[:n]
            free[np.setdiff1d(picks, distinct)] = False
            if not is_first:  # many copies: look further at once
                count *= 2
            is_first = False

    def _drop_similar(self, learner, picks, fixed):
        """Return the picks that resemble neither earlier ones nor those in `fixed`."""
        limit = self._options.max_similarity
        is_compared = limit is not None and computes_features(learner.estimator)
        if not is_compared or self._models.is_early(learner):
            return picks
        ready = self._models.find_ready()
        if ready is not None and not ready[[*fixed, *picks]].all():
            return picks
        rows = take_rows(self._state.pool.X, np.array([*fixed, *picks]))
        if self._front is None:
            self._front = fit_front(learner.estimator, self._state.pool.X)
        similar = cosine_similarity(self._front.transform(rows)) > limit
        chosen = list(range(len(fixed)))
        for i in range(len(fixed), len(similar)):
            if not similar[i, chosen].any():
                chosen.append(i)
        return [picks[i - len(fixed)] for i in chosen[len(fixed) :]]


def _seeded_for(learner, number):
    """Return the learner with the seed of a batch; `number` counts from 1."""
    if hasattr(learner, "X_labeled_"):
        # As after this number of rounds of teach: a plain loop asks for the same.
        learner.n_rounds_ = number - 1
    elif number > 1:
        seed = round_seed(learner.random_state, number, "batch")
        learner = clone(learner).set_params(random_state=seed)
    return learner
