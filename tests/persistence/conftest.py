"""A fitted learner as it lies in its folder."""

from pathlib import Path

import pytest

from skactive import save

from ._helpers import X, Y, _learner


@pytest.fixture
def saved(tmp_path):
    """Folder of a fitted learner."""
    return Path(save(_learner().fit(X[:20], Y[:20]), tmp_path / "saved"))
