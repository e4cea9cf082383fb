"""The end of `skactive label`: what is written, for the page and for the terminal."""

import time
import warnings
from contextlib import suppress

from ..cli._parser import say
from ..estimation import MeanEstimate
from ..session import describe_accuracy
from ._record import show

LABELS, FEATURES = "Writing the labels", "Reading the texts"
PREDICTIONS, SAVING = "Predicting the other texts", "Saving the model"
_STEPS = {
    "features": FEATURES,
    "training": "Training the model",
    "fine-tuning": "Fine-tuning the encoder",
}


class Ending:
    """What the page shows while a result is written, and then."""

    def __init__(self, project, command):
        self._project, self._command = project, command
        self._steps, self._since, self._share = [], 0.0, None
        n_labeled = len(project.session.labels)
        self._result = {"source": project.path.name, "n_labeled": n_labeled}

    def begin(self, step):
        """Begin a step; those before it are done."""
        self._steps.append(_STEPS.get(step, step))
        self._since, self._share = time.monotonic(), None

    def report(self, share):
        """Keep how far the step is, from 0 to 1."""
        self._share = share

    def add(self, **result):
        """Add what is known now to what the page shows."""
        self._result |= result

    def finish(self, error=None):
        """End the last step; `error` is a message or None."""
        self._steps = self._steps[:-1] if error else self._steps
        self.add(done=error is None, error=error)

    def state(self):
        """Return what the page shows, a JSON object."""
        has_ended, last = "done" in self._result, len(self._steps) - 1
        steps = []
        for place, name in enumerate(self._steps):
            is_past, share = has_ended or place < last, self._share
            if name == FEATURES:
                share = self._project.session.models.encoded
            seconds = 0 if is_past else int(time.monotonic() - self._since)
            steps.append({"name": name, "past": is_past, "seconds": seconds})
            steps[-1]["share"] = None if is_past else share
        return {"steps": steps, "command": self._command, **self._result}

    def write_labels(self, sources):
        """Show the table of the labels, which is written."""
        project = self._project
        self.add(
            file=show(project.output), sources=sources, classes=list(project.counts)
        )

    def describe(self, sources, classes):
        """Return what the model card says of labels, accuracy and shares, dict of str.

        The estimates are from the audit; `classes` are those of several per text.
        """
        session = self._project.session
        people, given = sources.get("person", 0), sources.get("given", 0)
        facts = {"Table": f"{self._project.path.name}, {self._project.label}"}
        facts["Labels"] = f"{people:,} by people, {given:,} of the table"
        facts |= {"Classes": ", ".join(map(str, classes))} if classes else {}
        found = {}
        try:
            with warnings.catch_warnings(action="ignore"):
                with suppress(ValueError, TypeError):
                    found["Accuracy without fine-tuning"] = session.quality().accuracy
                with suppress(ValueError, TypeError):
                    shares = session.prevalence()
                    if isinstance(shares, MeanEstimate):
                        found["Mean"] = shares
                    else:
                        for (_, name), share in shares.estimates.items():
                            found[f"Share of {name}"] = share
        except KeyboardInterrupt:
            say("stopped; the model card has no estimates")
        return facts | {k: str(x) for k, x in found.items() if x.value is not None}

    def measure(self):
        """Estimate the accuracy of the model; show and print it with the counts."""
        for entry in self._project.counts:
            shown = [f"{entry[x]:,} {x}" for x in ("given", "person", "model")]
            say(f"{entry['name']}: {', '.join(shown)}")
        estimate = None
        with suppress(ValueError, TypeError):  # what is known of these answers
            estimate = self._project.session.estimate()
        if estimate is not None and estimate.n_audited:
            accuracy = f"{describe_accuracy(estimate)}."
            self.add(accuracy=accuracy)
            say(accuracy)
