"""Data of few informative columns, and scikit-learn's model at its exact end."""

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression


def make(k, n=120, d=12, dtype=np.float64):
    X, y = make_classification(
        n,
        d,
        n_informative=6,
        n_redundant=0,
        n_classes=k,
        flip_y=0.2,
        class_sep=0.7,
        random_state=0,
    )
    return X.astype(dtype), y


def exact(X, y, **params):
    weight = params.pop("sample_weight", None)
    model = LogisticRegression(tol=1e-10, max_iter=100_000, **params)
    return model.fit(np.asarray(X, dtype=np.float64), y, sample_weight=weight)


def error(model, other):
    return np.linalg.norm(model.coef_ - other.coef_) / np.linalg.norm(other.coef_)
