"""What machines answer: asked in chunks, recorded apart from the labels of people."""

import threading
import time
import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any

from scipy.stats import binomtest

from .._utils._containers import as_list, take_rows
from .._utils._format import is_missing
from .._utils._labels import key_of, name_now
from .._utils._repeatable import find_stop, stopped_by
from ..annotators import Annotator, describe_annotator
from ..estimation import alternative_annotator_test, estimate_quality, measure_agreement
from ._evidence import as_rows

_FIRST, _MOST = 16, 1024  # answers in one event of the journal
_QUICK = 1.0  # seconds; quicker machines are asked about twice as many next


@dataclass(frozen=True)
class MachineComparison:
    """How a machine answers, compared with people; see `LabelingSession.compare`.

    Parameters
    ----------
    quality : QualityEstimate
        Accuracy, F1 scores, precision and recall of its answers, and the confusion
        matrix, from the audit.
    agreement : dict of annotator to (kappa, (low, high), n_items)
        Cohen's kappa with each person, its interval, and the number of common items.
    replaces : AlternativeTest
        Whether it may replace people.
    n_silent : int
        Number of items of the audit without an answer of the machine. They are left
        out.
    """

    quality: Any
    agreement: dict[Any, Any]
    replaces: Any
    n_silent: int = 0

    def __str__(self):
        return f"{self.quality}; may it replace people? {self.replaces}"


def compare(core, annotator):
    """Return a MachineComparison; see `LabelingSession.compare`."""
    name = annotator if isinstance(annotator, str) else getattr(annotator, "name", None)
    with core.lock:
        if name not in core.state.machines:
            names = ", ".join(map(repr, core.state.machines)) or "none"
            raise ValueError(
                f"'annotator' must be a machine that was asked, {names}; got {name!r}. "
                "Call annotate first."
            )
        machine, answers = core.state.machine_labels(name), core.state.answers
        sample, _ = core.queue.choose_sample(blind=True)
        blind = {
            id: {one.annotator: one.label for one in answer.blind}
            for id, answer in answers.items()
        }
        ids, n_pool = (
            [id for id in sample if id in machine],
            len(core.queue.draws.order),
        )
        labels, classes = [sample[id] for id in ids], core.known_classes()
    if core.target in ("regression", "multi-output"):
        raise TypeError("compare is for classes; the labels are numbers.")
    if not ids:
        raise ValueError(
            "the audit has no blind answers to items that the machine answered. Label "
            "some more texts."
        )
    said = [machine[id] for id in ids]
    if core.target == "multi-label":
        labels, said = as_rows(labels, classes), as_rows(said, classes)
    options = {"classes": classes, "n_pool": n_pool, "cross_fitted": False}
    quality = estimate_quality(labels, said, **options)
    agreement = measure_agreement(blind, target=core.target, machines={name: machine})
    pairs = {a: value for (a, b), value in agreement.pairs.items() if b == name}
    test = alternative_annotator_test(blind, machine)
    return MachineComparison(quality, pairs, test, len(sample) - len(ids))


def annotate(core, annotator, ids=None):
    """Record the answers of a machine; see `LabelingSession.annotate`.

    The event of `stopped_by`, or the end of the session, stops the requests.
    """
    if not isinstance(annotator, Annotator):
        raise TypeError(
            "'annotator' must have a 'name' and a method 'annotate', got "
            f"{annotator!r}. See skactive.annotators.Annotator."
        )
    name, state, stop = annotator.name, core.state, find_stop()
    with core.lock:
        core.journal.sync()
        core.stops.add(stop)
        if any(one.annotator == name for one in state.list_answers()):
            raise ValueError(
                f"'annotator' must have a name that no person has, got {name!r}. "
                "Pass another name."
            )
        pool = state.pool
        ids = list(pool.ids) if ids is None else pool.read_ids(ids, name="items")
        earlier = state.find_machine_answers(name, describe_annotator(annotator))
        ids = [id for id in ids if earlier.get(id, (None,))[0] is None]
    if hasattr(annotator, "check_limits"):
        annotator.check_limits(_take_texts(state.pool, ids))
    n_refused, n_done, size = 0, 0, _FIRST
    while (part := ids[n_done : n_done + size]) and not stop.is_set():
        start = time.monotonic()
        texts = _take_texts(state.pool, part)
        with stopped_by(stop):
            pairs = _check_answers(annotator, texts)
        settings = describe_annotator(annotator)
        with core.lock:
            core.journal.sync()
            said, scores = zip(*pairs, strict=True)
            labels = [_read(core, *one) for one in zip(part, said, strict=True)]
            refused = [x for x, y in zip(said, labels, strict=True) if y is None]
            n_refused += sum(not is_missing(label) for label in refused)
            earlier = state.find_machine_answers(name, settings)
            rows = zip(part, labels, scores, strict=True)
            rows = [row for row in rows if row[0] not in earlier or row[1] is not None]
            if rows:
                _record(core, name, rows, settings)
        n_done += len(part)
        if time.monotonic() - start < _QUICK:
            size = min(2 * size, _MOST)
    if n_refused:
        warnings.warn(
            f"{n_refused} of {n_done} answers of {name!r} are no labels that the "
            "session allows. They count as no answer.",
            stacklevel=3,
        )
    return n_done


def _record(core, name, rows, settings):
    """Record rows of id, label and confidence, and the settings if they are new."""
    ids, labels, scores = map(list, zip(*rows, strict=True))
    is_new = core.state.machine_settings.get(name) != settings
    core.journal.record(
        "annotate",
        machine=True,
        by=name,
        ids=ids,
        labels=labels,
        confidences=scores if any(x is not None for x in scores) else None,
        settings=settings if is_new else None,
    )
    core.models.prepare()


def annotate_later(core, annotator, failures, stop):
    """Have a machine answer in a thread, which adds why it failed to a list.

    The event `stop` ends its requests.
    """

    def work():
        try:
            with stopped_by(stop):
                annotate(core, annotator)
        except Exception as exc:  # shown by the front ends
            if not stop.is_set():
                failures.append(f"the machine stopped: {type(exc).__name__}: {exc}")

    threading.Thread(target=work, daemon=True).start()


def _take_texts(pool, ids):
    return as_list(take_rows(pool.X, pool.positions(ids)))


def _check_answers(annotator, texts):
    """Return pairs of label and confidence for some texts, checked."""
    pairs = list(annotator.annotate(texts))
    if len(pairs) != len(texts):
        raise ValueError(
            f"'annotator' must return an answer for each of {len(texts)} texts, got "
            f"{len(pairs)}. Repair its method 'annotate'."
        )
    for _, score in pairs:
        is_number = isinstance(score, Real) and not isinstance(score, bool)
        if score is not None and not (is_number and 0 <= score <= 1):
            raise ValueError(
                "'annotator' must return confidences from 0 to 1 or None, got "
                f"{score!r}. Repair its method 'annotate'."
            )
    return [(label, None if x is None else float(x)) for label, x in pairs]


def _read(core, id, label):
    """Return a label as the session allows it, or None."""
    if is_missing(label):
        return None
    try:
        label = name_now(label, core.state.renamed)
        return core.vocabulary.normalize([label], [id])[0]
    except (ValueError, TypeError):
        return None


def compare_suggestions(core, labels, predicted):
    """Return how often labels agree with machines, with a 95 % interval; or None.

    "leads" says whether they agree more often than with `predicted`, the predictions
    that were shown, by id. It is true if neither was compared.
    Items that are blind do not count: the numbers would tell what a machine said.
    """
    state = core.state
    if not state.machines:
        return None
    blind = zip(labels, core.queue.find_blind(labels), strict=True)
    pairs = [(labels[id], state.find_machine(id)[0]) for id, no in blind if not no]
    pairs = [pair for pair in pairs if pair[1] is not None]
    labeled = [(id, said) for id, said in list(predicted.items()) if id in labels]
    shown = [(labels[id], state.name_since(x, seq)) for id, (x, _, seq) in labeled]
    right = [[key_of(x) == key_of(y) for x, y in both] for both in (pairs, shown)]
    agreed, of_model = map(sum, right)
    low, high = binomtest(agreed, len(pairs) or 1).proportion_ci(method="wilson")
    leads = (agreed + 1) * (len(shown) + 2) >= (of_model + 1) * (len(pairs) + 2)
    compared = {"compared": len(pairs), "agreed": agreed, "low": low, "high": high}
    return compared | {"leads": leads}
