"""BertClassifier on indicator matrices: weights of ones, thresholds, gradients."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from skactive import load, save
from skactive._math._scores import tune_thresholds
from skactive._utils._labels import find_target
from skactive.bert import BertClassifier

from ._helpers import NO_DROPOUT, X, classifier, fitted_copy, padded, weights_of

Y = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 0], [1, 0, 0]])[np.arange(len(X)) % 4]


def forward(model, trained, text):
    return trained.net_.module_(**padded(model, [text]))


# Weights of the ones


def first_loss(model, class_weight):
    """Return the loss of the untrained model, and its outputs."""
    settings = {"dropout": 0.0, "lr": 0.0, "max_epochs": 1, "batch_size": len(X)}
    trained = classifier(model, class_weight=class_weight, **settings).fit(X, Y)
    return trained.history_[0]["train_loss"], trained.predict_proba(X)


@pytest.mark.long
@pytest.mark.parametrize(
    ("class_weight", "expected"),
    [
        (None, [1, 1, 1]),
        ("balanced", [(Y[:, j] == 0).sum() / Y[:, j].sum() for j in range(3)]),
        ({1: 7.0}, [1, 7, 1]),
    ],
)
def test_the_loss_weights_the_ones_of_each_column(tiny_encoder, class_weight, expected):
    loss, p = first_loss(tiny_encoder("Bert", **NO_DROPOUT), class_weight)
    ones, zeros = Y * np.array(expected) * np.log(p), (1 - Y) * np.log(1 - p)
    assert loss == pytest.approx(-(ones + zeros).mean(), rel=1e-5)


def test_rare_and_constant_columns(tiny_bert):
    from skactive.bert._estimators import weigh_positives

    y = np.zeros((1000, 4))
    y[:1, 0], y[:20, 1], y[:, 2] = 1, 1, 1
    assert weigh_positives("balanced", y).tolist() == [100.0, 49.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "class_weight", [{3: 1.0}, {"joy": 2.0}, {0: 0.0}, {0: np.inf}, {1: "much"}]
)
def test_bad_weights(tiny_bert, class_weight):
    with pytest.raises(ValueError, match="'class_weight' must map columns of 'y'"):
        classifier(tiny_bert, class_weight=class_weight).fit(X, Y)


# Thresholds


@pytest.mark.long
@pytest.mark.parametrize(
    "thresholds", [0.2, [0.1, 0.5, 0.9], np.array([0.3, 0.4, 0.6])]
)
def test_labels_above_their_thresholds_are_predicted(tiny_bert, thresholds):
    trained = fitted_copy(classifier, tiny_bert, X, Y, thresholds=thresholds)
    expected = np.broadcast_to(thresholds, 3)
    np.testing.assert_array_equal(trained.thresholds_, expected)
    predicted = trained.predict_proba(X) > expected
    np.testing.assert_array_equal(trained.predict(X), predicted.astype(int))


@pytest.mark.long
def test_auto_is_tuned_on_texts_that_are_held_out(tiny_bert):
    settings = {"thresholds": "auto", "validation_fraction": 0.5}
    trained = classifier(tiny_bert, **settings).fit(X, Y)
    again = classifier(tiny_bert, **settings).fit(X, Y)
    np.testing.assert_array_equal(trained.thresholds_, again.thresholds_)
    assert trained.thresholds_.shape == (3,)
    # As the split for early stopping, which scores the same texts.
    seen = []

    def scorer(estimator, texts, y):
        seen.append(texts)
        return float(len(seen))

    settings |= {"early_stopping": scorer, "n_iter_no_change": 100}
    stopped = classifier(tiny_bert, **settings).fit(X, Y)
    held_out = Y[[X.index(text) for text in seen[-1]]]
    expected = tune_thresholds(stopped.predict_proba(seen[-1]), held_out)
    np.testing.assert_allclose(stopped.thresholds_, expected, rtol=1e-6)


def test_going_on_keeps_tuned_thresholds(tiny_bert):
    trained = fitted_copy(
        classifier, tiny_bert, X, Y, thresholds="auto", validation_fraction=0.5
    )
    before = trained.thresholds_.copy()
    trained.partial_fit(X, Y)
    np.testing.assert_array_equal(trained.thresholds_, before)
    first = classifier(tiny_bert, thresholds="auto").partial_fit(X[:4], Y[:4])
    assert first.thresholds_.tolist() == [0.5] * 3


def test_all_texts_are_trained_on_without_auto(tiny_bert):
    plain = fitted_copy(classifier, tiny_bert, X, Y)
    other = fitted_copy(classifier, tiny_bert, X, Y, thresholds=0.2)
    for name, weight in weights_of(plain).items():
        np.testing.assert_array_equal(weights_of(other)[name], weight)


@pytest.mark.parametrize(
    ("thresholds", "y", "match"),
    [
        (
            "auto",
            Y[:, 0],
            "'thresholds' must be 0.5 for one label per text, got 'auto'",
        ),
        (0.4, Y[:, 0], "'thresholds' must be 0.5 for one label per text"),
        ([0.5, 0.5], Y, "one for each of 3 labels"),
        ([0.5, 0.5, 1.0], Y, "between 0 and 1"),
        (1.5, Y, "The 'thresholds' parameter of BertClassifier"),
        ("best", Y, "The 'thresholds' parameter of BertClassifier"),
    ],
)
def test_bad_thresholds(tiny_bert, thresholds, y, match):
    with pytest.raises(ValueError, match=match):
        classifier(tiny_bert, thresholds=thresholds).fit(X, y)


def test_too_few_texts_to_tune_on(tiny_bert):
    with pytest.raises(
        ValueError, match=r"'thresholds' must have texts .*thresholds=0\.5"
    ):
        classifier(tiny_bert, thresholds="auto").fit(X[:1], Y[:1])


@pytest.mark.long
@pytest.mark.parametrize("copied", [copy.deepcopy, None], ids=["pickle", "folder"])
def test_thresholds_are_saved(tiny_bert, tmp_path, copied):
    settings = {"thresholds": "auto", "class_weight": "balanced"}
    trained = classifier(tiny_bert, validation_fraction=0.5, **settings).fit(X, Y)
    other = copied(trained) if copied else load(save(trained, tmp_path / "saved"))
    np.testing.assert_array_equal(other.thresholds_, trained.thresholds_)
    np.testing.assert_array_equal(other.predict(X), trained.predict(X))
    assert other.multi_label_ is True
    other.partial_fit(X, Y)


# Its target, gradients and boundaries


def test_the_target_is_known_without_labels(tiny_bert):
    several = fitted_copy(classifier, tiny_bert, X, Y)
    single = fitted_copy(classifier, tiny_bert, X, Y[:, 0])
    assert (several.multi_label_, single.multi_label_) == (True, False)
    assert find_target(several) == "multi-label"
    assert find_target(single) == "single-label"
    assert not hasattr(BertClassifier(tiny_bert), "multi_label_")


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_factors_are_the_gradients_at_the_likelier_labels(tiny_encoder, head):
    model = tiny_encoder("Bert", **NO_DROPOUT)
    trained = classifier(model, head=head, thresholds=0.1).fit(X, Y)
    network = trained.net_.module_
    weight = [m for m in network.head.modules() if isinstance(m, nn.Linear)][-1].weight
    residuals, inputs = trained.gradient_factors(X)
    for i in (0, 5, 9):
        outputs = forward(model, trained, X[i])
        target = (outputs > 0).float()
        loss = nn.functional.binary_cross_entropy_with_logits(
            outputs, target, reduction="sum"
        )
        (gradient,) = torch.autograd.grad(loss, weight)
        product = np.outer(residuals[i], inputs[i])
        np.testing.assert_allclose(product, gradient.numpy(), atol=1e-5)


def test_moving_by_the_distance_reaches_a_boundary(tiny_encoder):
    model = tiny_encoder("Bert", **NO_DROPOUT)
    trained = classifier(model).fit(X, Y)
    layer = trained.net_.module_.last_linear
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    for x, distance in zip(
        trained.transform(X), trained.boundary_distance(X), strict=True
    ):
        before, reached = weight @ x + bias, []
        for w, score in zip(weight, before, strict=True):
            step = -np.sign(score) * w / np.linalg.norm(w)
            after = weight @ (x + 1.001 * distance * step) + bias
            near = weight @ (x + 0.999 * distance * step) + bias
            assert ((near > 0) == (before > 0)).all()
            reached.append(((after > 0) != (before > 0)).any())
        assert any(reached)


def test_other_heads_have_no_distance(tiny_bert):
    trained = classifier(tiny_bert, head="mlp").fit(X[:4], Y[:4])
    with pytest.raises(TypeError, match="boundary_distance needs the linear head"):
        trained.boundary_distance(X)
