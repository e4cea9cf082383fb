"""The journal of a session together with the state that follows from it."""


class Log:
    """Records events: on the disk first, then in the state.

    `lock` guards both. `then` is called after each event.
    """

    def __init__(self, journal, state, lock):
        self.journal = journal
        self.state = state
        self.lock = lock
        self.then = None

    def sync(self):
        """Apply events that an interruption kept from being applied."""
        self.journal.catch_up()
        self.state.fold(self.journal.events)

    def record(self, event, **fields):
        """Add an event; fields that are None are left out."""
        self.journal.append(event, **fields)
        self.state.fold(self.journal.events)
        if self.then is not None:
            self.then()

    @property
    def classes(self):
        """The allowed labels, list; None allows any."""
        return self.state.classes or self.journal.manifest.get("classes")


class Bar:
    """A progress bar of the labels, with the age of the model."""

    def __init__(self, state, models, total):
        from tqdm import tqdm

        self._state = state
        self._models = models
        n = len(state.answers)
        self._bar = tqdm(desc="labels", total=total, initial=n, unit="label")

    def update(self):
        """Show the current numbers."""
        self._bar.n = len(self._state.answers)
        self._bar.set_postfix(model_age=self._models.age())

    def close(self):
        """Leave the bar as it is."""
        self._bar.close()
