"""Labels that follow logits of the rows, and the log-odds of what is drawn."""

import numpy as np

NAMES = np.array(["maybe", "no", "yes", "yes a", "yes b", "yes c", "yes d"])


def make_data(k, m=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) + 0.5
    truth = X @ rng.normal(size=(d, k)) + rng.gumbel(size=(m, k))
    return X, NAMES[:k][truth.argmax(axis=1)]


def log_odds(proba):
    return np.log(proba[..., 1:] / proba[..., :1])


X_ASKED = np.random.default_rng(9).normal(size=(5, 4))
