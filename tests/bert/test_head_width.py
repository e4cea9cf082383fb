"""A head must give one output per class."""

import numpy as np
import pytest
from torch import nn

from ._helpers import REVIEW_LABELS as Y
from ._helpers import REVIEWS as X
from ._helpers import review_classifier as classifier


def head_of(width):
    class Head(nn.Module):
        def __init__(self, in_features, n_outputs, dropout):
            super().__init__()
            self.linear = nn.Linear(in_features, width)

        def forward(self, features):
            return self.linear(features)

    return Head


@pytest.mark.parametrize("width", [2, 7])
def test_a_head_of_another_width_is_refused_by_fit(tiny_bert, width):
    y = np.array(["a", "b", "c"])[np.arange(8) % 3]
    message = rf"'head' must return outputs .* \(4, 3\), got \(4, {width}\) from Head"
    with pytest.raises(ValueError, match=message):
        classifier(tiny_bert, head=head_of(width)).fit(X, y)


def test_a_head_without_a_class_axis_is_refused(tiny_bert):
    class Flat(head_of(1)):
        def forward(self, features):
            return super().forward(features)[:, 0]

    with pytest.raises(ValueError, match=r"'head' must return .*got \(4,\) from Flat"):
        classifier(tiny_bert, head=Flat).fit(X, Y)


def test_a_head_of_the_right_width_trains(tiny_bert):
    assert classifier(tiny_bert, head=head_of(2)).fit(X, Y).predict_proba(X).shape == (
        8,
        2,
    )
