"""The end of labeling: what is written, for the page and for the terminal."""

import logging
import shlex
import time
import warnings
from contextlib import suppress

from .._utils._format import report_progress
from ..estimation import MeanEstimate
from ._record import show

LOG = logging.getLogger("skactive.project")
LABELS, FEATURES = "Writing the labels", "Reading the texts"
PREDICTIONS, SAVING = "Predicting the other texts", "Saving the model"
_STEPS = {
    "features": FEATURES,
    "training": "Training the model",
    "fine-tuning": "Fine-tuning the encoder",
}


class Ending:
    """What the page shows while a result is written, and then."""

    stamp = None  # of what is written

    def __init__(self, project, command=None):
        self._project, self._command = project, command
        self._steps, self._since, self._share = [], 0.0, None
        n_labeled = len(project.session.labels)
        self._result = {"source": project.file_.name, "n_labeled": n_labeled}

    def run(self):
        """Write the labels, train, write the predictions, and save the model.

        Return the numbers of rows by the source of their label, None if all is current.
        """
        try:
            with report_progress(self.report):
                sources = self._run(self._project)
            self.finish()
            return sources
        except BaseException as exc:
            self.finish(str(exc) or type(exc).__name__)
            if not isinstance(exc, OSError):
                raise
            folder = show(self._project.folder_)
            raise OSError(
                f"{exc}. The labels by people are safe in {folder}: the same command "
                "continues"
            ) from exc

    def _run(self, project):
        n_labeled = len(project.session.labels)
        self.stamp = project.stamp()
        if project.is_current(self.stamp):
            LOG.info("nothing was answered since the table and the model were written")
            model = show(project.folder_ / "model")
            self.add(file=show(project.output), model=model)
            return None
        failures: list[Exception] = []
        # First what people said: nothing below can lose it.
        self.begin(LABELS)
        self._write_or_keep(failures)
        n_skipped = len(project.session.skipped)
        LOG.info(f"{n_labeled:,} labels by people, {n_skipped:,} skipped")
        newest = project.session.newest_model.learner
        if reason := getattr(getattr(newest, "estimator_", None), "reason_", None):
            LOG.info(f"the names and descriptions of the classes are {reason}")
        if not failures:
            LOG.info(f"labels are in {project.output}")
        try:
            if (model := project.train_final()) is not None:
                LOG.info("predicting the other texts; Ctrl-C leaves them blank")
                self.begin(PREDICTIONS)
                self._write_or_keep(failures, model)
                if saved := project.save(model):
                    predict = ["skactive", "predict", show(saved), "NEW_FILE"]
                    self.add(model=show(saved), predict=shlex.join(predict))
            self.measure()
        except KeyboardInterrupt:
            LOG.info("stopped" if failures else "stopped; the labels are written")
        if failures:
            raise failures[-1]
        return project.sources

    def _write_or_keep(self, failures, *model):
        """Write the table; after a failure, which is kept, the model is saved."""
        try:
            self._project.write(*model)
            self.write_labels()
        except (OSError, ValueError) as exc:
            LOG.info(f"the table is not written: {exc}")
            failures.append(exc)
        self._project.tell()

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
                share = self._project.session.encoded
            seconds = 0 if is_past else int(time.monotonic() - self._since)
            steps.append({"name": name, "past": is_past, "seconds": seconds})
            steps[-1]["share"] = None if is_past else share
        return {"steps": steps, "command": self._command, **self._result}

    def write_labels(self):
        """Show the table of the labels, which is written."""
        project, counts = self._project, list(self._project.counts)
        self.add(file=show(project.output), sources=project.sources, classes=counts)

    def describe(self, classes):
        """Return what the model card says of labels, accuracy and shares, dict of str.

        The estimates are from the audit; `classes` are those of several per text.
        """
        session, sources = self._project.session, self._project.sources or {}
        people, given = sources.get("person", 0), sources.get("given", 0)
        table = self._project.table
        facts = {"Table": f"{table.path.name}, {table.label}"}
        facts["Labels"] = f"{people:,} by people, {given:,} of the table"
        facts |= {"Classes": ", ".join(map(str, classes))} if classes else {}
        estimates = {}
        try:
            with warnings.catch_warnings(action="ignore"):
                with suppress(ValueError, TypeError):
                    estimates["Accuracy without fine-tuning"] = (
                        session.quality().accuracy
                    )
                with suppress(ValueError, TypeError):
                    shares = session.prevalence()
                    if isinstance(shares, MeanEstimate):
                        estimates["Mean"] = shares
                    else:
                        for (_, name), share in shares.estimates.items():
                            estimates[f"Share of {name}"] = share
        except KeyboardInterrupt:
            LOG.info("stopped; the model card has no estimates")
        return facts | {k: str(x) for k, x in estimates.items() if x.value is not None}

    def measure(self):
        """Estimate the accuracy of the model; show and print it with the counts."""
        for entry in self._project.counts:
            shown = [f"{entry[x]:,} {x}" for x in ("given", "person", "model")]
            LOG.info(f"{entry['name']}: {', '.join(shown)}")
        estimate = None
        with suppress(ValueError, TypeError):  # what is known of these answers
            estimate = self._project.session.estimate()
        if estimate is not None and estimate.n_audited:
            accuracy = f"{estimate.say_accuracy()}."
            self.add(accuracy=accuracy)
            LOG.info(accuracy)
