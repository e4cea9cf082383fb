"""Distances to the decision boundary: closed form, brute force, and moves that flip."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from skactive.bert._heads import deepfool

from ._helpers import REVIEW_LABELS as Y
from ._helpers import REVIEWS as X
from ._helpers import fitted_copy, grid, slow
from ._helpers import review_classifier as classifier

THREE = np.array([0, 1, 2, 0, 1, 2, 0, 1])
LABELS = {2: Y, 3: THREE}


class OwnReLU(nn.Module):
    """A head of one's own that takes features."""

    def __init__(self, in_features, n_outputs, dropout):
        super().__init__()
        self.hidden = nn.Linear(in_features, 200)
        self.out = nn.Linear(200, n_outputs)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x)))


def random_layers(*sizes, seed=0, scale=1.0):
    """A network of random weights, with ReLU between its layers."""
    generator = torch.Generator().manual_seed(seed)
    layers = []
    for a, b in pairwise(sizes):
        layer = nn.Linear(a, b)
        with torch.no_grad():
            layer.weight.copy_(torch.randn(b, a, generator=generator) * scale)
            layer.bias.copy_(torch.randn(b, generator=generator) * scale)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1]).requires_grad_(False)


def points(n, *shape, seed=1):
    return torch.randn(n, *shape, generator=torch.Generator().manual_seed(seed))


def least_distances(network, x, radius=10.0, step=0.025):
    """Look for the nearest point of a grid in the plane that has another label."""
    side = torch.arange(-radius, radius, step)
    grid = torch.cartesian_prod(side, side)
    seen, labels = network(grid).argmax(dim=1), network(x).argmax(dim=1)
    square = seen.reshape(len(side), len(side))
    edge = torch.zeros_like(square, dtype=torch.bool)
    for axis in (0, 1):  # only points next to one of another label can be the nearest
        differs = square.diff(dim=axis) != 0
        edge.narrow(axis, 0, len(side) - 1).logical_or_(differs)
        edge.narrow(axis, 1, len(side) - 1).logical_or_(differs)
    grid, seen = grid[edge.ravel()], seen[edge.ravel()]
    least = []
    for row, label in zip(x, labels, strict=True):
        others = grid[seen != label]
        least.append((others - row).norm(dim=1).min() if len(others) else np.inf)
    return np.array(least)


@pytest.mark.parametrize("n_outputs", [2, 3, slow(7)])
def test_dfal_closed_form_oracle_of_a_linear_head(tiny_bert, n_outputs):
    labels = np.arange(8) % n_outputs
    trained = fitted_copy(classifier, tiny_bert, X, labels)
    layer = trained.net_.module_.head.dense[0]
    weight, bias = (t.detach().double().numpy() for t in (layer.weight, layer.bias))
    features = trained.transform(X).astype(float)
    expected = []
    for x in features:
        scores = weight @ x + bias
        a = scores.argmax()
        expected.append(
            min(
                (scores[a] - scores[c]) / np.linalg.norm(weight[a] - weight[c])
                for c in range(n_outputs)
                if c != a
            )
        )
    found = trained.boundary_distance(X)
    assert found.shape == (8,)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("n_outputs", [2, 4])
def test_deepfool_is_exact_where_all_is_linear(n_outputs):
    layer, x = random_layers(5, n_outputs), points(50, 5)
    found = deepfool(lambda x, rows: layer(x), x)
    weight, scores = layer[0].weight, layer(x)
    for i, row in enumerate(scores):
        a = row.argmax()
        others = [c for c in range(n_outputs) if c != a]
        gaps = [(row[a] - row[c]) / (weight[a] - weight[c]).norm() for c in others]
        assert found[i].item() == pytest.approx(min(gaps).item(), rel=1e-3, abs=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("n_outputs", [2, 3])
@pytest.mark.parametrize("seed", [slow(0), slow(1), 2])
def test_deepfool_is_near_the_least_distance_in_the_plane(n_outputs, seed):
    network, x = random_layers(2, 16, n_outputs, seed=seed), points(40, 2) * 2
    found = deepfool(lambda x, rows: network(x), x).numpy()
    least = least_distances(network, x)
    assert np.isfinite(found).mean() >= 0.9
    ratio = (found / least)[np.isfinite(found)]
    assert (found > least - 0.025).all()  # never nearer than the nearest
    assert np.median(ratio) < 1.05


def smooth(x):
    """Label 1 outside the unit circle: the least distance is known."""
    return torch.stack([torch.ones(len(x)), (x**2).sum(dim=1)], dim=1)


def test_deepfool_finds_a_curved_boundary():
    x = points(60, 3)
    found = deepfool(lambda x, rows: smooth(x), x)
    np.testing.assert_allclose(found, abs(x.norm(dim=1) - 1), rtol=1e-4, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize(
    ("n_labels", "head"),
    grid(
        [(n, head) for n in LABELS for head in ("mlp", "cnn", OwnReLU)],
        lambda n_labels, head: (n_labels, head) in {(3, "mlp"), (3, "cnn")},
    ),
)
def test_no_move_of_another_direction_flips_earlier(tiny_bert, head, n_labels):
    trained = fitted_copy(
        classifier, tiny_bert, X, LABELS[n_labels], head=head, pooling="mean"
    )
    network, distance = trained.net_.module_, trained.boundary_distance(X)
    inputs = taken_by(trained)
    label = through(network, inputs).argmax(dim=1)
    generator = torch.Generator().manual_seed(0)
    assert np.isfinite(distance).all()
    assert (distance > 0).all()
    ways = torch.randn(200, *inputs.shape, generator=generator)
    ways *= 0.98 * torch.from_numpy(distance)[:, None] / ways.norm(dim=2, keepdim=True)
    moved = through(network, (inputs + ways.float()).flatten(0, 1))
    assert (moved.argmax(dim=1).reshape(200, -1) == label).all()


def taken_by(trained):
    """What the head's own layers take of each text, one by one."""
    network = trained.net_.module_
    with torch.no_grad():
        batches = trained._fitted.batches(X)
        each = [batches.take(np.array([i])) for i in range(len(X))]
        if hasattr(network.head, "dense"):
            return torch.cat([network.summarize(**batch) for batch in each])
        return torch.cat([network.represent(**batch)[0] for batch in each])


def through(network, inputs):
    """Outputs of the head, layer by layer."""
    head = network.head
    if not hasattr(head, "dense"):
        return head(inputs)
    for layer in head.dense[:-1]:
        inputs = torch.relu(layer(inputs))
    return head.dense[-1](inputs)


@pytest.mark.long
@pytest.mark.parametrize(
    ("n_labels", "head"),
    grid(
        [(n, head) for n in LABELS for head in ("linear", "mlp", "cnn", OwnReLU)],
        lambda *case: case in {(3, "linear"), (2, "cnn"), (2, OwnReLU)},
    ),
)
def test_dfal_oracle_a_move_of_that_length_flips_the_label(tiny_bert, head, n_labels):
    trained = fitted_copy(classifier, tiny_bert, X, LABELS[n_labels], head=head)
    network, inputs = trained.net_.module_, taken_by(trained)
    outputs = through(network, inputs)
    label = outputs.argmax(dim=1)
    distance = trained.boundary_distance(X)
    radius = torch.from_numpy(distance).float()[:, None]

    def lead(way, c):
        out = through(network, inputs + way)
        return out.gather(1, label[:, None])[:, 0] - out[:, c]

    leads = []
    for c in range(outputs.shape[1]):
        # The oracle searches itself: descend on the lead within the sphere.
        way = torch.zeros_like(inputs)
        for _ in range(60):
            way.requires_grad_()
            (grad,) = torch.autograd.grad(lead(way, c).sum(), way)
            length = grad.norm(dim=1, keepdim=True).clamp(min=1e-30)  # 0 for the label
            way = way.detach() - 0.2 * radius * grad / length
            size = way.norm(dim=1, keepdim=True).clamp(min=1e-30)
            way *= (1.02 * radius / size).clamp(max=1.0)
        leads.append(lead(way, c).detach().masked_fill(label == c, torch.inf))
    assert (torch.stack(leads).amin(dim=0) <= 0).all()


class OwnTokens(nn.Module):
    """A head of one's own that takes all states."""

    uses_tokens = True

    def __init__(self, in_features, n_outputs, dropout):
        super().__init__()
        self.out = nn.Linear(in_features, n_outputs)

    def forward(self, x, mask):
        mean = x.masked_fill(~mask[:, :, None], 0).sum(dim=1) / mask.sum(dim=1)[:, None]
        return self.out(mean)


class DeepTokens(OwnTokens):
    """Another whose texts need different numbers of steps."""

    def __init__(self, in_features, n_outputs, dropout):
        super().__init__(200, n_outputs, dropout)
        self.hidden = nn.Linear(in_features, 200)

    def forward(self, x, mask):
        return super().forward(torch.relu(self.hidden(x)), mask)


def test_a_head_of_tokens_is_moved_in_the_states_of_all(tiny_bert):
    trained = fitted_copy(classifier, tiny_bert, X, Y, head=OwnTokens)
    network = trained.net_.module_
    layer = network.last_linear
    weight, bias = layer.weight.detach(), layer.bias.detach()
    normal = (weight[1] - weight[0]).norm()
    scores = torch.from_numpy(trained.transform(X)) @ weight.T + bias
    lengths = trained._fitted.batches(X).lengths
    # Each of t states moves by the same: sqrt(t) times what their mean has to.
    gap = (scores[:, 1] - scores[:, 0]).abs().numpy()
    expected = gap / normal.item() * np.sqrt(lengths)
    np.testing.assert_allclose(trained.boundary_distance(X), expected, rtol=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("head", [*map(slow, ("linear", "cnn")), "mlp", DeepTokens])
def test_other_texts_and_batches_do_not_matter(tiny_bert, head, monkeypatch):
    trained = fitted_copy(classifier, tiny_bert, X, THREE, head=head)
    whole = trained.boundary_distance(X)
    order = np.array([5, 0, 0, 7])
    found = trained.boundary_distance([X[i] for i in order])
    np.testing.assert_allclose(found, whole[order], rtol=2e-3)
    monkeypatch.setattr("skactive.bert._heads._ELEMENTS", 1)
    monkeypatch.setattr("skactive._encoders._tokens.BATCH_TOKENS", {"cpu": 1})
    np.testing.assert_allclose(trained.boundary_distance(X), whole, rtol=2e-3)


@pytest.mark.parametrize("head", [slow("mlp"), "cnn"])
def test_the_network_stays_as_it_was(tiny_bert, head):
    trained = classifier(tiny_bert, head=head, dropout=0.5).fit(X, Y)
    network, proba = trained.net_.module_, trained.predict_proba(X)
    trains = [p.requires_grad for p in network.parameters()]
    trained.net_.optimizer_.zero_grad()
    first = trained.boundary_distance(X)
    np.testing.assert_array_equal(trained.boundary_distance(X), first)
    assert [p.requires_grad for p in network.parameters()] == trains
    assert all(p.grad is None for p in network.parameters())
    assert not any(part.training for part in network.modules())
    np.testing.assert_array_equal(trained.predict_proba(X), proba)


def test_a_tie_is_on_the_boundary():
    def equal(x, rows):
        return torch.stack([x[:, 0], x[:, 0]], dim=1)

    assert deepfool(equal, points(3, 2)).tolist() == [0, 0, 0]


def test_where_nothing_changes_the_label_the_distance_is_infinite():
    def constant(x, rows):
        return torch.tensor([1.0, 0.0]) + 0 * x[:, :1]

    def never(x, rows):  # comes nearer for ever and never arrives
        return torch.stack([(-x[:, 0]).exp(), 0 * x[:, 0]], dim=1)

    assert deepfool(constant, points(3, 2)).tolist() == [np.inf] * 3
    assert deepfool(never, points(3, 2), max_iter=5).tolist() == [np.inf] * 3


def test_dead_neurons_are_no_error():
    def dead(x, rows):  # flat for the first row only
        return torch.stack([1 - torch.relu(x[:, 0]), 0 * x[:, 0]], dim=1)

    found = deepfool(dead, torch.tensor([[-1.0, 0.0], [0.25, 0.0]]))
    assert found[0] == np.inf
    assert found[1].item() == pytest.approx(0.75, rel=1e-5)


def test_bad_number_of_iterations(tiny_bert):
    trained = fitted_copy(classifier, tiny_bert, X, Y)
    for max_iter in (0, -1, 2.0, "many"):
        with pytest.raises(ValueError, match="'max_iter' must be an int of at least 1"):
            trained.boundary_distance(X, max_iter=max_iter)
