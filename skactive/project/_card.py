"""The card of a project: what a paper says about its labels."""

import warnings
from contextlib import suppress

import numpy as np

from .._encoders._names import describe_estimator, find_encoders
from .._tables._card import ESTIMATOR, list_software, name_estimates, name_level
from ._record import KINDS

_CHANGES = {
    "add": "{added} was added",
    "remove": "{removed} was removed",
    "rename": "{old} became {new}",
    "describe": "new words about {name}",
}


def describe_project(project, shares=None, confidence_level=0.95):
    """Return the parts of the card of an open project; see `write_card`.

    `shares` is a Prevalence or a MeanEstimate with intervals of this level, and
    defaults to that of the session.
    """
    session, core = project.session, project.session._core
    with warnings.catch_warnings(action="ignore"):  # of answers that are left out
        estimates = estimate_all(session, shares, confidence_level)
    parts = {
        "Sample": _describe_sample(project, core),
        "Coders": _describe_coders(core.state) + _describe_overlap(project, core),
        "Codebook": _describe_codebook(session, core.state),
        "Model": _describe_model(session),
        "Estimates": [*estimates.items()],
        "Software": list_software(),
    }
    if estimates:
        parts["Estimates"].append(name_level(confidence_level))
        # The sample of a question that depends on another one stands for itself.
        parts["Estimates"] += [ESTIMATOR] * (project.only_if is None)
    return {title: rows for title, rows in parts.items() if rows}


def estimate_all(session, shares=None, confidence_level=0.95):
    """Return the estimates of a session that have a value, dict of name."""
    estimates, level = {}, {"confidence_level": confidence_level}
    with suppress(ValueError, TypeError):
        estimates["Accuracy without fine-tuning"] = session.quality(**level).accuracy
    with suppress(ValueError, TypeError):
        shares = session.prevalence(**level) if shares is None else shares
        estimates |= name_estimates(shares)
    return {name: one for name, one in estimates.items() if one.value is not None}


def _describe_condition(only_if):
    """Return which texts a question is about, "" for all."""
    if only_if is None:
        return ""
    return f"texts with the label {only_if[1]} of {only_if[0]}; the shares are of these"


def _describe_sample(project, core):
    session, text = project.session, project.text
    columns = [text] if isinstance(text, str) else text
    kind = KINDS[project.target].removesuffix(" (regression=True)")
    sample, seen = core.queue.choose_sample(blind=True)
    strategy = core.models.taught()[0].strategy
    chosen = strategy if isinstance(strategy, str) else type(strategy).__name__
    rows = [
        ("Table", f"{project.file_.name}: {', '.join(columns)}"),
        ("Question", f"{project.table.label}, {kind}"),
        ("Texts", f"{len(core.queue.draws.order):,} that differ"),
        ("Asked about", _describe_condition(project.only_if)),
        ("Skipped", f"{len(session.skipped):,}, which the shares do not count"),
        ("Labels", f"{len(session.labels):,} by people, {len(project.given):,} given"),
        (
            "Random sample",
            f"simple, without replacement: {len(sample):,} of these labels. Nothing of "
            "a machine was shown before these answers; other labels of the sample, "
            f"which are left out: {len(seen):,}",
        ),
        (
            "Other labels",
            f"{len(session.labels) - len(sample):,}, of texts that the strategy "
            f"{chosen} or people chose",
        ),
    ]
    rows = [row for row in rows if row[0] != "Skipped" or session.skipped]
    return [row for row in rows if row[1]]


def _describe_coders(state):
    rows, answers = [], state.list_answers()
    for name in sorted({one.annotator or "" for one in answers}):
        own = [one.seconds for one in answers if (one.annotator or "") == name]
        seconds = [x for x in own if x is not None]
        pace = f", {np.median(seconds):.1f} s each in the median" if seconds else ""
        rows.append((name or "without a name", f"{len(own):,} labels{pace}"))
    return rows


def _describe_overlap(project, core):
    """Return what is known of the texts that several people answered."""
    rows, kappas, agreement = [], [], project.session.agreement()
    if share := core.queue.overlap:
        said = f"{100 * share:.0f} % of the texts, drawn at random"
        rows.append(("Overlap", f"{said}; nobody sees the other answer first"))
    if not agreement.n_items:
        return rows
    is_number = project.target == "regression"
    for pair, (kappa, interval, _) in agreement.pairs.items():
        if kappa is not None and not is_number:
            names, (low, high) = " and ".join(sorted(map(str, pair))), interval
            kappas.append(f"{names} {kappa:.2f} ({low:.2f}-{high:.2f})")
    n_settled = sum(x.way == "settled" for x in core.state.answers.values())
    n_open = project.desk.state()["n_disputed"]
    said = project.desk.quality()["agreement"]
    rows += [
        ("Agreement", said if "alpha" in said else str(agreement)),
        ("Alpha", f"Krippendorff's, for {'interval' if is_number else 'nominal'} data"),
        ("Cohen's kappa", "; ".join(kappas)),
        ("Intervals", "95 %; of alpha and kappa by 1,000 bootstrap samples of texts"),
        (
            "Disagreements",
            f"{n_open + n_settled:,}, of which {n_settled:,} are settled",
        ),
    ]
    return [row for row in rows if row[1]]


def _describe_codebook(session, state):
    """Return the version of the codebook, its changes, and what describes classes."""
    events = [x for x in state.undoable if x["event"] in _CHANGES]
    if not session.known_classes:
        return []
    changes = [
        f"{_CHANGES[x['event']].format(**x)} ({x['t'][:10]})"
        for x in events
        if x["event"] != "describe" or "entry" in x  # else it has another place
    ]
    rows = [("Version", "; ".join([str(len(changes) + 1), *changes]))]
    for name, entry in session.codebook.items():
        texts = [entry["description"], *entry["examples"], *entry["taken"]]
        rows.append((str(name), "; ".join(filter(None, texts)) or "not described"))
    return rows


def _describe_model(session):
    learner = session.newest_model.learner
    if learner is None:
        return []
    estimator = learner.estimator_
    encoders = find_encoders(estimator)
    shown = [f"{name} (license: {x or 'see its page'})" for name, x in encoders]
    weights = getattr(getattr(estimator, "estimator_", estimator), "weights_", {})
    parts = [f"{name} {weight:.2f}" for name, weight in weights.items()]
    rows = [
        ("Model", describe_estimator(estimator)),
        ("Weights of its parts", ", ".join(parts)),
        ("Encoder", ", ".join(shown)),
    ]
    return [row for row in rows if row[1]]
