"""Gradient factors against autograd, text by text."""

import numpy as np
import pytest
import torch
from torch import nn

from ._helpers import NO_DROPOUT, fitted_copy, grid, padded
from ._helpers import REVIEW_LABELS as Y
from ._helpers import REVIEWS as X
from ._helpers import review_classifier as classifier


class TwoLinear(nn.Module):
    """A head of one's own whose last linear layer gives the outputs."""

    def __init__(self, in_features, n_outputs, dropout):
        super().__init__()
        self.hidden = nn.Linear(in_features, 6, bias=False)
        self.drop = nn.Dropout(dropout)
        self.out = nn.Linear(6, n_outputs)

    def forward(self, x):
        return self.out(self.drop(torch.sigmoid(self.hidden(x))))


HEADS = ["linear", "mlp", "cnn", TwoLinear]
CLASSES = {"two": Y, "three": [0, 1, 2, 0, 1, 2, 0, 1], "names": list("abababab")}


def autograd(model, trained):
    """Gradient of the log loss at the predicted label in the last layer's weights."""
    network = trained.net_.module_
    weight = [m for m in network.head.modules() if isinstance(m, nn.Linear)][-1].weight
    rows = []
    for text in X:
        outputs = network(**padded(model, [text]))
        loss = nn.functional.cross_entropy(outputs, outputs.argmax(dim=1))
        rows.append(torch.autograd.grad(loss, weight)[0].numpy())
    return np.array(rows)


@pytest.mark.long
@pytest.mark.parametrize(
    ("head", "labels", "freeze"),
    grid(
        [(h, labels, freeze) for h in HEADS for labels in CLASSES for freeze in (0, 2)],
        # Every head once, both depths, and all kinds of labels.
        lambda head, labels, freeze: (
            (head, labels, freeze)
            in {
                *(("linear", "three", 2), ("mlp", "names", 0)),
                *(("cnn", "names", 2), (TwoLinear, "two", 0)),
            }
        ),
    ),
)
def test_outer_products_are_the_gradients(tiny_encoder, head, labels, freeze):
    model = tiny_encoder("Bert", **NO_DROPOUT)
    trained = classifier(model, head=head, freeze=freeze).fit(X, CLASSES[labels])
    residuals, inputs = trained.gradient_factors(X)
    products = residuals[:, :, None] * inputs[:, None, :]
    np.testing.assert_allclose(products, autograd(model, trained), atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("head", HEADS)
def test_transform_is_the_second_factor(tiny_bert, head):
    trained = fitted_copy(classifier, tiny_bert, X, Y, head=head)
    np.testing.assert_array_equal(trained.transform(X), trained.gradient_factors(X)[1])


@pytest.mark.long
@pytest.mark.parametrize("head", HEADS)
def test_the_last_layer_makes_the_outputs_of_what_transform_gives(tiny_bert, head):
    trained = fitted_copy(classifier, tiny_bert, X, Y, head=head)
    layer = trained.net_.module_.last_linear
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    scores = np.exp(trained.transform(X) @ weight.T + bias)
    expected = scores / scores.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(trained.predict_proba(X), expected, atol=1e-6)


def test_residuals_sum_to_nought_and_are_negative_at_the_prediction(tiny_bert):
    trained = classifier(tiny_bert).fit(X, CLASSES["three"])
    residuals, _ = trained.gradient_factors(X)
    np.testing.assert_allclose(residuals.sum(axis=1), 0, atol=1e-12)
    predicted = trained.predict_proba(X).argmax(axis=1)
    assert (residuals[np.arange(8), predicted] < 0).all()
    assert ((residuals < 0).sum(axis=1) == 1).all()


def test_a_head_without_a_linear_layer_has_no_features(tiny_bert):
    class Bare(nn.Module):
        def __init__(self, in_features, n_outputs, dropout):
            super().__init__()
            self.out = nn.Parameter(torch.zeros(in_features, n_outputs))

        def forward(self, x):
            return x @ self.out

    trained = classifier(tiny_bert, head=Bare).fit(X, Y)
    with pytest.raises(TypeError, match="transform needs a linear layer in the head"):
        trained.transform(X)
