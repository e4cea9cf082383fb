"""The members of an ensemble as draws from a posterior."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.utils.validation import validate_data

__all__ = ["MemberDraws", "find_obstacle", "is_ensemble"]

_FORESTS = (RandomForestClassifier, ExtraTreesClassifier)
_ENSEMBLES = (*_FORESTS, BaggingClassifier, VotingClassifier, CalibratedClassifierCV)


def is_ensemble(estimator):
    """Whether the estimator averages members that are models of their own.

    Parameters
    ----------
    estimator : estimator

    Returns
    -------
    is_ensemble : bool
    """
    return isinstance(estimator, _ENSEMBLES)


def find_obstacle(ensemble):
    """Say why an ensemble's members are no posterior.

    Parameters
    ----------
    ensemble : estimator
        One that `is_ensemble` accepts; fitted.

    Returns
    -------
    obstacle : str or None
        What it is and what would work, or None.
    """
    if isinstance(ensemble.classes_, list):
        return "predicts several outputs. Train one on each."
    if isinstance(ensemble, VotingClassifier) and ensemble.voting != "soft":
        return f"has voting={ensemble.voting!r}. Use voting='soft'."
    if len(_members(ensemble)) < 2:
        remedy = "several members"
        if isinstance(ensemble, CalibratedClassifierCV):
            remedy = "ensemble=True and an estimator that it fits itself"
        return f"has one member, which has no spread. Use {remedy}."
    return None


def _members(ensemble):
    if isinstance(ensemble, CalibratedClassifierCV):
        return ensemble.calibrated_classifiers_
    return ensemble.estimators_


def _member_weights(ensemble):
    if isinstance(ensemble, VotingClassifier) and ensemble.weights is not None:
        pairs = zip(ensemble.estimators, ensemble.weights, strict=True)
        return np.array([w for (_, part), w in pairs if part != "drop"], dtype=float)
    return np.ones(len(_members(ensemble)))


def _choose_members(weights, n_draws, rng):
    """Choose members by their weights, as evenly as whole numbers allow."""
    expected = n_draws * weights / weights.sum()
    counts = np.floor(expected + 1e-9).astype(int)
    rest = np.maximum(expected - counts, 0.0)
    left = n_draws - counts.sum()
    if left > 0:
        once_more = rng.choice(len(counts), left, replace=False, p=rest / rest.sum())
        counts[once_more] += 1
    return rng.permutation(np.repeat(np.arange(len(counts)), counts))


class MemberDraws:
    """Probabilities under chosen members of an ensemble.

    Parameters
    ----------
    ensemble : estimator
        Fitted; without an obstacle.
    n_draws : int
        How many members, t; some more than once where there are fewer.
    rng : numpy.random.Generator
    """

    def __init__(self, ensemble, n_draws, rng):
        self.ensemble = ensemble
        self.chosen = _choose_members(_member_weights(ensemble), n_draws, rng)

    def __call__(self, X):
        """Predict with the members.

        Parameters
        ----------
        X : container of n items

        Returns
        -------
        draws : ndarray of shape (n, t, k)
        """
        X = self._prepare(X)
        draws = None
        for member in np.unique(self.chosen):
            proba = self._predict(member, X)
            if draws is None:
                shape = (len(proba), len(self.chosen), proba.shape[1])
                draws = np.empty(shape, dtype=proba.dtype)
            draws[:, self.chosen == member] = proba[:, None]
        return draws

    def _prepare(self, X):
        """Check the items once instead of once for each member."""
        options = {"reset": False, "accept_sparse": "csr"}
        if isinstance(self.ensemble, _FORESTS):
            options.update(dtype=np.float32, ensure_all_finite="allow-nan")
        elif isinstance(self.ensemble, BaggingClassifier):
            options.update(dtype=None, ensure_all_finite=False)
        else:
            return X
        return validate_data(self.ensemble, X, **options)

    def _predict(self, position, X):
        member = _members(self.ensemble)[position]
        if isinstance(self.ensemble, CalibratedClassifierCV):
            return member.predict_proba(X)
        if isinstance(self.ensemble, _FORESTS):
            return member.predict_proba(X, check_input=sparse.issparse(X))
        if isinstance(self.ensemble, BaggingClassifier):
            features = self.ensemble.estimators_features_[position]
            if not np.array_equal(features, np.arange(X.shape[1])):
                X = X[:, features]
        # Members are trained on positions in `classes_`, and may miss some.
        k = len(self.ensemble.classes_)
        if not hasattr(member, "predict_proba"):
            return np.eye(k)[member.predict(X)]
        proba = member.predict_proba(X)
        if proba.shape[1] == k:
            return proba
        aligned = np.zeros((len(proba), k), dtype=proba.dtype)
        aligned[:, member.classes_] = proba
        return aligned
