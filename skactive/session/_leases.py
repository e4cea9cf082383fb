"""Which front end shows which item, so that no two people get the same."""

import time

from .._utils._repeatable import synchronized

_STALE_SECONDS = 90.0  # of inactivity, after which items are released
_MOST_CLIENTS = 1000  # front ends that are remembered
_MOST_ANNOTATORS = 100  # people who have texts waiting for them


class Leases:
    """The waiting items of each front end."""

    def __init__(self, state, queue, lock):
        self._state, self._queue, self._lock = state, queue, lock
        self._owners = {}  # (annotator, id) -> its front end
        self._seen = {}  # front end -> time of its last call

    @synchronized
    def take(self, client, annotator, n):
        """Return at most `n` ids for a front end, and the number the annotator has.

        If texts are drawn at random only, others come when none of these waits.
        """
        now = self.hear(client)
        waiting = [(annotator, id) for id in self._state.waiting_for(annotator)]
        self._owners = {
            key: owner
            for key, owner in self._owners.items()
            if (key in waiting or key[0] != annotator)
            and (owner == client or now - self._seen.get(owner, -1e9) < _STALE_SECONDS)
        }
        own = [key for key in waiting if self._owners.get(key) == client]
        free = [key for key in waiting if key not in self._owners]
        keys, n_waiting = own + free, len(own) + len(free)
        if self._queue.random_only:
            drawn = [key for key in keys if key[1] in self._state.audited]
            keys, n_waiting = drawn or keys, len(drawn)
        leased = keys[:n]
        self._owners.update(dict.fromkeys(leased, client))
        return [id for _, id in leased], n_waiting

    @synchronized
    def hear(self, client):
        """Note that a front end is there, and return the time; forget the oldest."""
        self._seen.pop(client, None)
        self._seen[client] = now = time.monotonic()
        while len(self._seen) > _MOST_CLIENTS:
            del self._seen[next(iter(self._seen))]
        return now

    @synchronized
    def give(self, annotator, id, client):
        """Assign an item to a front end, or to none."""
        self._owners.pop((annotator, id), None)
        if client is not None:
            self._owners[annotator, id] = client

    @synchronized
    def release(self, client):
        """Release the items of a closed front end."""
        self._seen.pop(client, None)
        self._owners = {key: c for key, c in self._owners.items() if c != client}

    @synchronized
    def check_annotators(self, annotator):
        """Raise an error if texts wait for very many other annotators."""
        waiting = {self._state.batches[number][1] for number in [*self._state.open]}
        if len(waiting - {annotator}) >= _MOST_ANNOTATORS:
            raise ValueError(
                f"'annotator' must be a known annotator, got {annotator!r:.100}: "
                f"texts wait for {_MOST_ANNOTATORS} annotators already. Answer or "
                "release some first."
            )
