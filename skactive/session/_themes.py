"""What a query finds, and groups of similar texts, to discover classes."""

import re
from collections import Counter

import numpy as np
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics.pairwise import cosine_similarity, euclidean_distances
from sklearn.preprocessing import normalize

from .._utils._containers import take_rows
from .._utils._labels import list_classes, predict_labels
from .._utils._pipelines import computes_features
from ._background import fit_front
from ._pool import fold

_MOST_TEXTS = 5_000  # at random, that are grouped
_MOST_SEARCHED = 20_000  # at random, that are compared with a phrase
_MOST_FOUND = 200
_N_WORDS = 6
_N_TEXTS = 20  # of a theme, the nearest to its center


def find_texts(core, query, how):
    """Return the ids of the texts that a query finds; see `Desk.search`."""
    if how == "meaning":
        return find_by_meaning(core, query)
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


def find_by_meaning(core, phrase):
    """Return the ids of the texts most similar to a phrase, by frozen features."""
    rows = _find_read(core)[:_MOST_SEARCHED]
    features = _find_features(core, take_rows(core.state.pool.X, rows))
    cosines = cosine_similarity(_find_features(core, [phrase]), features)[0]
    best = np.argsort(-cosines, kind="stable")[:_MOST_FOUND]
    return [core.state.pool.ids[row] for row in rows[best].tolist()]


def _find_read(core):
    """Return the positions (m,) of the texts that have features, in random order."""
    ready, rows = core.models.find_ready(), core.queue.draws.order
    return rows if ready is None else rows[ready[rows]]


def _find_features(core, X):
    """Return unit features (n, d) that no label has changed."""
    estimator = core.models.estimator
    if not computes_features(estimator):
        raise TypeError(
            "the model has no features that need no training. Look for texts by words."
        )
    return normalize(fit_front(estimator, core.state.pool.X).transform(X))


def find_themes(core, n_themes):
    """Return groups of similar texts with ids, the largest first; see `Desk.themes`."""
    pool, answers, model = core.state.pool, core.state.answers, core.models.newest()
    rows = _find_read(core)[:_MOST_TEXTS]
    hidden = core.queue.find_blind([pool.ids[row] for row in rows.tolist()])
    rows = rows[~np.array(hidden, dtype=bool)]
    if len(rows) < n_themes:
        raise ValueError(
            "'n_themes' must be at most the number of texts that were read so far, "
            f"{len(rows)}, got {n_themes}. Wait for more texts, or pass fewer themes."
        )
    X = take_rows(pool.X, rows)
    features = _find_features(core, X)
    groups = KMeans(n_themes, n_init=3, random_state=0).fit(features)
    words = _find_words(map(fold, pool.texts(rows)), groups.labels_, n_themes)
    learner = None if core.target == "regression" else model.learner
    predicted = predict_labels(learner, X, model.classes, core.target, 0)[0]
    themes = []
    for theme in range(n_themes):
        inside = np.flatnonzero(groups.labels_ == theme)
        center = groups.cluster_centers_[[theme]]
        far = euclidean_distances(features[inside], center)[:, 0]
        ids = [pool.ids[rows[i]] for i in inside[np.argsort(far, kind="stable")]]
        said = [answers[id].label for id in ids if id in answers]
        guessed = [predicted[i] for i in inside if predicted[i] is not None]
        summary = {
            "size": len(inside) / len(rows),
            "words": words[theme],
            "labels": Counter(list_classes(said)).most_common(3),
            "predictions": Counter(list_classes(guessed)).most_common(3),
        }
        themes.append((summary, [id for id in ids if id not in answers][:_N_TEXTS]))
    return sorted(themes, key=lambda theme: -theme[0]["size"])


def _find_words(texts, themes, n_themes):
    """Return for each theme the words that most set its texts apart.

    That is the share of its texts with the word less that of the others, weighted by
    the inverse document frequency, so that common words come last in any language.
    """
    counter = CountVectorizer(binary=True, min_df=2, token_pattern=r"\b[^\W\d_]{2,}\b")
    try:
        counts = counter.fit_transform(texts)
    except ValueError:  # no word occurs twice
        return [[]] * n_themes
    names, total, typical = counter.get_feature_names_out(), counts.sum(axis=0), []
    rarity = np.log(len(themes) / np.asarray(total))[0]
    for theme in range(n_themes):
        inside = themes == theme
        own = np.asarray(counts[inside].sum(axis=0))
        other = np.asarray(total - own) / max(np.sum(~inside), 1)
        gain = (own / inside.sum() - other)[0] * rarity
        best = np.argsort(-gain, kind="stable")[:_N_WORDS]
        typical.append([str(names[j]) for j in best if gain[j] > 0])
    return typical
