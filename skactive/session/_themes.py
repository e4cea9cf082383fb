"""Groups of similar texts, to discover classes before there are any."""

from collections import Counter

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics.pairwise import euclidean_distances

from .._utils._containers import take_rows
from .._utils._labels import list_classes, predict_labels
from ._lookup import find_features, find_read
from ._pool import fold

_MOST_TEXTS = 5_000  # at random, that are grouped
_N_WORDS = 6
_N_TEXTS = 20  # of a theme, the nearest to its center


def find_themes(core, n_themes):
    """Return groups of similar texts with ids, the largest first; see `Desk.themes`."""
    from sklearn.cluster import KMeans  # here, as importing it takes 50 ms

    pool, answers, model = core.state.pool, core.state.answers, core.models.newest()
    rows = find_read(core)[:_MOST_TEXTS]
    hidden = core.queue.find_blind([pool.ids[row] for row in rows.tolist()])
    rows = rows[~np.array(hidden, dtype=bool)]
    if len(rows) < n_themes:
        raise ValueError(
            "'n_themes' must be at most the number of texts that were read so far, "
            f"{len(rows)}, got {n_themes}. Wait for more texts, or pass fewer themes."
        )
    X = take_rows(pool.X, rows)
    features = find_features(core, X)
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
