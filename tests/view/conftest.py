"""A view of a small pool through a step that counts."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive.view import PoolView

from ._helpers import Counting, X, y


@pytest.fixture
def view():
    model = make_pipeline(Counting(), LogisticRegression()).fit(X, y)
    Counting.rows = 0
    return PoolView(X, estimator=model, X_labeled=X[:5], y_labeled=y[:5])
