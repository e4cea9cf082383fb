"""Targets of one-label classifiers: what they refuse, and how they serve others."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from skactive.linear_model import (
    FewLabelClassifier,
    PrototypeClassifier,
    SequentialLogisticRegression,
)
from skactive.semi_supervised import SelfTraining

MODELS = [
    FewLabelClassifier(random_state=0),
    PrototypeClassifier(),
    SequentialLogisticRegression(),
    SelfTraining(LogisticRegression(), cv=None, random_state=0),
]
X = np.random.default_rng(0).normal(size=(60, 4))
Y = (X[:, :3] > 0).astype(int)
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)


@every_model
@pytest.mark.parametrize("convert", [np.array, np.ndarray.tolist, pd.DataFrame])
def test_an_indicator_matrix_is_refused_with_a_remedy(model, convert):
    name = type(model).__name__
    match = rf"one label per item for {name}, .*OneVsRestClassifier\({name}\(...\)\)"
    with pytest.raises(TypeError, match=match):
        model.fit(X, convert(Y))


def test_a_sparse_indicator_matrix_is_refused():
    with pytest.raises(TypeError, match=r"got the shape \(60, 3\)"):
        FewLabelClassifier().fit(X, sparse.csr_array(Y))


@every_model
def test_numbers_are_refused_with_a_remedy(model):
    match = rf"Unknown label type: continuous\. {type(model).__name__} is a classifier"
    with pytest.raises(ValueError, match=match):
        model.fit(X, X[:, 0])


@every_model
def test_the_remedy_works(model):
    fitted = OneVsRestClassifier(model).fit(X, Y)
    assert (fitted.predict(X) == Y).mean() > 0.8
