"""Folds of cross-validation, and the temperature of probabilities."""

import numpy as np
from scipy.optimize import minimize_scalar


def assign_folds(codes, n_splits, seed, least=2):
    """Return the fold (n,) of each row, -1 for classes with less than `least` rows."""
    order = np.random.default_rng(seed).permutation(len(codes))
    order = order[np.bincount(codes)[codes[order]] >= least]
    order = order[np.argsort(codes[order], kind="stable")]
    # Class after class is dealt out, so that no fold is empty or much larger.
    folds = np.full(len(codes), -1, dtype=np.intp)
    folds[order] = np.arange(len(order)) % n_splits
    return folds


def calibrate(logits, codes, weight):
    """Return the log loss at the best temperature, and this temperature."""
    logits = logits - logits[np.arange(len(codes)), codes, None]
    highest = logits.max(axis=1)
    logits -= highest[:, None]
    weight = weight / weight.sum()
    mean = weight @ highest

    def loss(log_temperature):
        scale = np.exp(-log_temperature)
        total = np.exp(logits * scale).sum(axis=1)
        return mean * scale + weight @ np.log(total)

    options = {"xatol": 0.01}
    result = minimize_scalar(loss, bounds=(-5, 5), method="bounded", options=options)
    return float(result.fun), float(np.exp(result.x))
