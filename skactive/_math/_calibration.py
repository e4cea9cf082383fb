"""Folds of cross-validation, weights of mixtures, and temperatures of probabilities."""

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


def shrink_temperature(temperature, n_held, n_prior=50):
    """Return a temperature nearer to 1, the fewer held-out labels it was fitted to.

    The temperature 1 counts for `n_prior` labels.
    """
    return temperature ** (n_held / (n_held + n_prior))


def deal_in_order(codes, n_splits):
    """Return the fold (n,) of each row.

    Each row goes to the fold with the fewest rows of its class, then the fewest rows:
    later rows move none.
    """
    counts = np.zeros((codes.max(initial=-1) + 1, n_splits), dtype=np.intp)
    folds = np.empty(len(codes), dtype=np.intp)
    for i, code in enumerate(codes):
        folds[i] = np.lexsort([counts.sum(axis=0), counts[code]])[0]
        counts[code, folds[i]] += 1
    return folds


def mixture_weights(likelihood, weight, prior):
    """Return the weights (k,) of k models that make labels most likely.

    `likelihood` (h, k) is the probability of each label by each model, and `weight`
    (h,) says how often it counts. Equal weights count for `prior` labels. It is
    computed by expectation maximization; the likelihood has a single maximum.
    """
    n, k = likelihood.shape
    shares = np.full(k, 1 / k)
    if not n:
        return shares
    likelihood, total = np.maximum(likelihood, 1e-9), weight.sum() + prior
    for _ in range(10_000):
        ratios = likelihood * shares
        ratios *= (weight / ratios.sum(axis=1))[:, None]
        before = shares
        shares = (ratios.sum(axis=0) + prior / k) / total
        if np.abs(shares - before).max() < 1e-8:
            break
    return shares
