"""The end of labeling: its steps, for the page and for the terminal."""

import logging
import shlex
import time
import warnings
from contextlib import suppress

from ._card import estimate_all
from ._record import show
from ._result import write_card

LOG = logging.getLogger("skactive.project")
LABELS, FEATURES = "Writing the labels", "Reading the texts"
PREDICTIONS, SAVING = "Predicting the other texts", "Saving the model"
_STEPS = {
    "features": FEATURES,
    "training": "Training the model",
    "fine-tuning": "Fine-tuning the encoder",
}


class Progress:
    """How far the end of labeling is, in steps, for the page.

    `encoded()` returns the share of the features that are there.
    """

    def __init__(self, encoded):
        self._encoded, self._result = encoded, {}
        self._steps, self._since, self._share = [], 0.0, None

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
        """Return what the page shows, a JSON object; None if nothing was added."""
        if not self._result:
            return None
        has_ended, last = "done" in self._result, len(self._steps) - 1
        steps = []
        for position, name in enumerate(self._steps):
            is_past, share = has_ended or position < last, self._share
            if name == FEATURES:
                share = self._encoded()
            seconds = 0 if is_past else int(time.monotonic() - self._since)
            steps.append({"name": name, "past": is_past, "seconds": seconds})
            steps[-1]["share"] = None if is_past else share
        return {"steps": steps, **self._result}


def finish(project, progress):
    """Write the labels of a project, train, write the predictions, and save the model.

    Return the numbers of rows by the source of their label.
    """
    session, failures = project.session, []
    # First what people said: nothing below can lose it.
    progress.begin(LABELS)
    _write_or_keep(project, progress, failures)
    n_labeled, n_skipped = len(session.labels), len(session.skipped)
    LOG.info(f"{n_labeled:,} labels by people, {n_skipped:,} skipped")
    newest = session.newest_model.learner
    if reason := getattr(getattr(newest, "estimator_", None), "reason_", None):
        LOG.info(f"the names and descriptions of the classes are {reason}")
    if not failures:
        LOG.info(f"labels are in {project.output}")
    try:
        if (model := project.train_final()) is not None:
            LOG.info("predicting the other texts; Ctrl-C leaves them blank")
            progress.begin(PREDICTIONS)
            _write_or_keep(project, progress, failures, model)
            if saved := project.save(model):
                predict = ["skactive", "predict", show(saved), "NEW_FILE"]
                progress.add(model=show(saved), predict=shlex.join(predict))
        _measure(project, progress)
        if not failures:
            progress.add(card=show(write_card(project)))
    except KeyboardInterrupt:
        LOG.info("stopped" if failures else "stopped; the labels are written")
    if failures:
        raise failures[-1]
    return project.sources


def _write_or_keep(project, progress, failures, *model):
    """Write the table; after a failure, which is kept, the model is saved."""
    try:
        sources = project.write(*model)
        classes = list(project.counts)
        progress.add(file=show(project.output), sources=sources, classes=classes)
        if any(any(about.values()) for about in project.session.codebook.values()):
            progress.add(codebook=show(project.write_codebook()))
    except (OSError, ValueError) as exc:
        LOG.info(f"the table is not written: {exc}")
        failures.append(exc)
    project.tell()


def _measure(project, progress):
    """Estimate the accuracy of the model; show and print it with the counts."""
    for entry in project.counts:
        shown = [f"{entry[x]:,} {x}" for x in ("given", "person", "model")]
        LOG.info(f"{entry['name']}: {', '.join(shown)}")
    estimate = None
    with suppress(ValueError, TypeError):  # what is known of these answers
        estimate = project.session.estimate()
    quality = project.desk.quality()
    accuracy = quality["sentence"]  # or why it is unknown
    if estimate is not None and estimate.n_audited:
        accuracy = f"{estimate.say_accuracy()}."
    if agreement := quality["agreement"]:
        accuracy = f"{accuracy} {agreement[0].upper()}{agreement[1:]}."
    progress.add(accuracy=accuracy)
    LOG.info(accuracy)


def describe_model(session, table, sources, classes):
    """Return what a model card says of labels, accuracy and shares, dict of str.

    The estimates are from the audit. `sources` are the numbers of rows by the source of
    their label; `classes` are those of several per text.
    """
    people, given = sources.get("person", 0), sources.get("given", 0)
    facts = {"Table": f"{table.path.name}, {table.label}"}
    facts["Labels"] = f"{people:,} by people, {given:,} of the table"
    facts |= {"Classes": ", ".join(map(str, classes))} if classes else {}
    agreement, estimates = session.agreement(), {}
    facts |= {"Agreement": str(agreement)} if agreement.n_items else {}
    try:
        with warnings.catch_warnings(action="ignore"):
            estimates = estimate_all(session)
    except KeyboardInterrupt:
        LOG.info("stopped; the model card has no estimates")
    return facts | {name: str(found) for name, found in estimates.items()}
