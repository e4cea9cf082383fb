"""Read what fine-tuning has recorded of its epochs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sklearn.exceptions import NotFittedError

__all__ = ["read_history"]


def read_history(history, name, score):
    """Read one score of each epoch.

    Parameters
    ----------
    history : estimator or list of dict
        Fitted, or its `history_`.
    name : str
        What to call it in error messages.
    score : str

    Returns
    -------
    seconds, scores : ndarray of shape (n_epochs,)

    Raises
    ------
    ValueError
        If there are no epochs, or one has no such score.
    """
    if hasattr(history, "fit"):
        if not hasattr(history, "history_"):
            raise NotFittedError(
                f"{name!r}, a {type(history).__name__}, has no 'history_'. Fit it "
                "first, and pass a BertClassifier or BertRegressor."
            )
        history = history.history_
    if not isinstance(history, list | tuple) or not all(
        isinstance(epoch, Mapping) and "seconds_total" in epoch for epoch in history
    ):
        raise TypeError(
            f"the history of {name!r} must be a fitted estimator or its 'history_', a "
            f"list of one dict for each epoch; got a {type(history).__name__}."
        )
    if not history:
        raise ValueError(f"the history of {name!r} has no epochs: there was no fit.")
    missing = [i for i, epoch in enumerate(history) if epoch.get(score) is None]
    if missing:
        remedy = ""
        if score in ("valid_score", "valid_loss"):
            remedy = (
                " It is measured on texts set aside with early_stopping=True. Train "
                "so, or pass score='train_loss'."
            )
        raise ValueError(
            f"'score' must be one that every epoch holds; the history of {name!r} has "
            f"no {score!r}, only {sorted(history[missing[0]])}.{remedy}"
        )
    return tuple(
        np.array([epoch[key] for epoch in history], dtype=float)
        for key in ("seconds_total", score)
    )
