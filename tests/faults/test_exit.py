"""Python exits while a thread of a session is in C++ code, and must not abort."""

import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, LabelingSession

started = threading.Event()


def never_return():
    X = torch.ones(200, 200)
    started.set()
    while True:
        X @ X


class Endless(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        never_return()


class EndlessFeatures(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        never_return()


def leave(path, what):
    encode = None
    estimator = Endless()
    if what == "encoding":
        encode = "background"
        estimator = make_pipeline(EndlessFeatures(), LogisticRegression())
    session = LabelingSession(
        ActiveLearner(estimator), np.eye(4), path, refit="background", encode=encode
    )
    session.tell(0, "no", unasked=True)
    session.tell(1, "yes", unasked=True)
    assert started.wait(60)
    if what == "closed":
        session.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "what", [pytest.param("open", marks=pytest.mark.slow), "closed", "encoding"]
)
def test_python_exits_at_once_and_without_an_error(tmp_path, what):
    from ._helpers import run_apart  # not at the top: this file is the script, too

    assert run_apart(__file__, tmp_path, what) == "left"


if __name__ == "__main__":
    leave(Path(sys.argv[1]) / "session", sys.argv[2])
    sys.stdout.write("left")
