"""Items whose class follows from two of their numbers."""

import numpy as np
import pytest


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    return X, np.where(
        X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=300) > 0, "b", "a"
    )
