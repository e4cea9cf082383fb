"""What people look for: texts of a query, similar ones, and why a model predicts."""

import re
from copy import copy
from dataclasses import replace

import numpy as np
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import normalize

from .._utils._containers import take_row, take_rows
from .._utils._labels import key_of, marginals, predict_labels
from .._utils._pipelines import computes_features, split_estimator
from ._background import fit_front
from ._pool import fold

_MOST_TEXTS = 20_000  # at random, that are searched for a class or by meaning
_MOST_FOUND = 200  # by meaning
_MOST_WORDS = 60  # that are left out in turn
_N_NEIGHBORS = 3


def find_texts(core, query, how):
    """Return the ids of the texts that a query finds; see `Desk.search`."""
    if how == "meaning":
        return _find_by_meaning(core, query)
    pool, wanted = core.state.pool, query
    wanted = wanted if how == "regex" else re.escape(wanted.casefold())
    try:
        find, ids = re.compile(wanted, re.IGNORECASE).search, []
    except re.error as exc:
        raise ValueError(
            f"'query' must be a regular expression, got {wanted!r}: {exc}. "
            "Put a backslash before a character that stands for itself."
        ) from None
    for rows, texts in pool.batches() if pool.kind is not None else ():
        pairs = zip(rows, texts, strict=True)
        ids += [pool.ids[row] for row, text in pairs if find(fold(text))]
    return ids


def _find_by_meaning(core, phrase):
    """Return the ids of the texts most similar to a phrase, by frozen features."""
    rows = find_read(core)[:_MOST_TEXTS]
    features = find_features(core, take_rows(core.state.pool.X, rows))
    cosines = cosine_similarity(find_features(core, [phrase]), features)[0]
    best = np.argsort(-cosines, kind="stable")[:_MOST_FOUND]
    return [core.state.pool.ids[row] for row in rows[best].tolist()]


def find_read(core):
    """Return the positions (m,) of the texts that have features, in random order."""
    ready, rows = core.models.find_ready(), core.queue.draws.order
    return rows if ready is None else rows[ready[rows]]


def find_features(core, X):
    """Return unit features (n, d) that no label has changed."""
    estimator = core.models.estimator
    if not computes_features(estimator):
        raise TypeError(
            "the model has no features that need no training. Look for texts by words."
        )
    return normalize(fit_front(estimator, core.state.pool.X).transform(X))


def find_similar(core, id, n, answers):
    """Return a class, and the ids of the unlabeled items most similar to one of it.

    The model predicts the class for all of them. See `Desk.similar`; `answers` are
    those that are shown.
    """
    state, model, rows = _find_candidates(core)
    row = _find_row(state, id)
    X = take_rows(state.pool.X, np.concatenate([[row], rows]))
    labels, *_ = predict_labels(model.learner, X, model.classes, core.target, 0)
    label, *others = [state.name_since(one, model.seq) for one in labels]
    if id in answers:
        label = answers[id].label
    else:
        _refuse_blind(core, id)
    rows = rows[[key_of(one) == key_of(label) for one in others]]
    return label, [other for other, _ in _rank(state, model, row, rows, n)]


def find_of_class(core, label, doubtful, n):
    """Return the ids of unlabeled items that the model takes for a class.

    See `Desk.more`.
    """
    state, model, rows = _find_candidates(core)
    proba, names = predict_proba(model, take_rows(state.pool.X, rows))
    named = [state.name_since(name, model.seq) == label for name in names]
    if not any(named):
        raise ValueError(
            f"'label' must be a class that the model has seen, got {label!r:.100}. "
            "Label some of its texts first."
        )
    own = proba[:, named].sum(axis=1)  # of classes merged since
    other = 1 - own
    if core.target == "single-label":
        other = np.delete(proba, np.flatnonzero(named), axis=1).max(axis=1, initial=0)
    order = np.argsort(np.abs(own - other) if doubtful else -own, kind="stable")
    return [state.pool.ids[row] for row in rows[order[:n]].tolist()]


def explain(core, id):
    """Return what `Desk.explain` adds to an item, and "neighbors", dict."""
    state, model = core.state, _find_model(core)
    row = _find_row(state, id)
    _refuse_blind(core, id)
    with core.lock:
        labeled = state.pool.positions([x for x in state.answers if x != id])
    explanation = {"words": [], "error": "", "neighbors": []}
    try:
        unkept = replace(model, learner=_without_cache(model.learner))
        size, words = _weigh_words(unkept, take_row(state.pool.X, row), core.target)
        explanation["words"] = words
        if core.target != "regression":
            explanation["probability"] = size
    except (TypeError, ValueError, LookupError) as exc:  # such as stored features
        explanation["error"] = f"Words cannot be left out: {exc}"
    if split_estimator(model.learner.estimator_)[0] is not None:
        explanation["neighbors"] = _rank(state, model, row, labeled, _N_NEIGHBORS)
    return explanation


def _find_model(core):
    """Return the newest model; raise a ValueError if it cannot tell two classes."""
    model = core.models.newest()
    names = model.classes
    if names is None:
        names = getattr(model.learner, "classes_", ())
    if model.learner is None or (core.target != "regression" and len(names) < 2):
        raise ValueError("there is no prediction yet. Label some more texts.")
    return model


def _refuse_blind(core, id):
    if core.queue.is_blind(id):
        raise ValueError(
            "nothing is predicted for this text: it is one of those drawn at random, "
            "which are answered without help."
        )


def _find_candidates(core):
    """Return the state, the model and the positions (m,) of unlabeled items.

    They are in random order, have features, and are not blind.
    """
    if core.target == "regression":
        raise TypeError("numbers have no classes. Look for texts by their words.")
    model, rows = _find_model(core), core.queue.find_unaudited()
    ready = core.models.find_ready()
    rows = (rows if ready is None else rows[ready[rows]])[:_MOST_TEXTS]
    ids = [core.state.pool.ids[row] for row in rows.tolist()]
    rows = rows[~np.array(core.queue.find_blind(ids), dtype=bool)]
    if not len(rows):
        raise ValueError("no unlabeled text is left that is not for the audit.")
    return core.state, model, rows


def _find_row(state, id):
    """Return the position of an item."""
    return int(state.pool.positions(state.pool.read_ids([id], name="id"))[0])


def _rank(state, model, row, rows, n):
    """Return the n of some rows most similar to an item, pairs of id and cosine."""
    if not len(rows):
        return []
    learner = model.learner
    if computes_features(learner.estimator):  # those that no label has changed
        front = fit_front(learner.estimator, state.pool.X)
    else:
        front, _ = split_estimator(learner.estimator_)
    if front is None:
        raise TypeError("the model has no features to compare. It must be a pipeline.")
    features = front.transform(take_rows(state.pool.X, np.concatenate([[row], rows])))
    cosines = cosine_similarity(features[:1], features[1:])[0]
    order = np.argsort(-cosines, kind="stable")[:n]
    return [(state.pool.ids[int(rows[i])], float(cosines[i])) for i in order]


def predict_proba(model, X):
    """Return probabilities (n, k) and the names of their columns."""
    learner, names = model.learner, model.classes
    if not hasattr(learner, "predict_proba"):
        raise TypeError(
            "the model has no probabilities. Look for texts by their words."
        )
    proba = learner.predict_proba(X)
    if isinstance(proba, list):
        proba = marginals(proba, learner.classes_)
    names = np.asarray(learner.classes_).tolist() if names is None else names
    return np.asarray(proba)[:, : len(names)], names


def _without_cache(learner):
    """Return a learner that predicts the same, and keeps no features of texts."""
    front, final = split_estimator(learner.estimator_)
    if front is None:
        return learner
    learner = copy(learner)
    learner.estimator_ = Pipeline([("front", _uncached(front)), ("last", final)])
    return learner


def _uncached(step):
    """Return a copy of a fitted step that keeps no features."""
    step = copy(step)
    if hasattr(step, "cache"):
        step.set_params(cache=None)
    for name in ("steps", "transformer_list"):
        if hasattr(step, name):
            inner = [(key, _uncached(each)) for key, each in getattr(step, name)]
            setattr(step, name, inner)
    return step


def _weigh_words(model, text, target):
    """Return the size of the prediction of a text, and its words.

    A word is [part, start, end, fall of the size without it]. The size is the
    probability of the predicted class, the mean one of several, or a number; if none of
    several classes is predicted, that the most likely one is not.
    """
    parts = [text] if isinstance(text, str) else list(text)
    spans = [
        [number, *match.span()]
        for number, part in enumerate(parts)
        for match in re.finditer(r"\w+(?:['\u2019]\w+)*", part)
    ][:_MOST_WORDS]
    versions = [parts]
    for number, start, end in spans:
        shorter = parts[number][:start] + parts[number][end:].removeprefix(" ")
        versions.append([*parts[:number], shorter or " ", *parts[number + 1 :]])
    X = [one[0] if isinstance(text, str) else tuple(one) for one in versions]
    if target == "regression":
        first, *others = np.asarray(model.learner.predict(X), dtype=float).tolist()
    else:
        proba, names = predict_proba(model, X)
        columns = [proba[0].argmax()]
        if target == "multi-label":
            (said,), _, _ = predict_labels(model.learner, X[:1], names, target, 0)
            columns = [j for j, name in enumerate(names) if name in said] or columns
            proba = proba if said else 1 - proba
        first, *others = proba[:, columns].mean(axis=1).tolist()
    words = zip(spans, others, strict=True)
    return first, [[*word, first - other] for word, other in words]
