"""How far training moves each layer, against the state dicts before and after."""

import numpy as np
import pytest
from skorch.callbacks import Callback

from ._helpers import ARCHITECTURES, fitted_copy, grid, layer_of, pretrained
from ._helpers import REVIEW_LABELS as Y
from ._helpers import REVIEWS as X
from ._helpers import review_classifier as classifier

SMALL_CNN = {"heights": (1, 2), "n_maps": 3, "hidden_size": 4}


class Start(Callback):
    """Keeps the weights at the start; the copy that trains writes into one list."""

    kept = []

    def on_train_begin(self, net, **kwargs):
        state = net.module_.state_dict()
        self.kept[:] = [{name: t.numpy().copy() for name, t in state.items()}]


def recomputed(trained, before):
    """Collect the absolute changes of each layer in the order they are passed."""
    after = {n: p.detach().numpy() for n, p in trained.net_.module_.named_parameters()}
    changes = {}
    for name, values in after.items():
        layer = layer_of(name)
        if layer == "head":
            layer = name.removeprefix("head.").rpartition(".")[0]
        change = np.abs(values.astype(float) - before[name].astype(float)).ravel()
        changes.setdefault({"rest": "embeddings"}.get(layer, str(layer)), []).append(
            change
        )
    return {layer: np.concatenate(parts) for layer, parts in changes.items()}


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "freeze"),
    grid(
        [(kind, freeze) for kind in ARCHITECTURES for freeze in (0, 3)],
        lambda kind, freeze: (
            kind == "Bert" or (kind in ("Albert", "ModernBert") and freeze == 0)
        ),
    ),
)
def test_changes_are_those_of_the_state_dicts(tiny_encoder, kind, freeze):
    start = Start()
    trained = classifier(
        tiny_encoder(kind),
        head="cnn",
        head_params=SMALL_CNN,
        freeze=freeze,
        max_epochs=1,
        callbacks=[start],
    ).fit(X, Y)
    expected = recomputed(trained, Start.kept[0])
    found = trained.layer_changes_
    assert set(found["layer"]) == set(expected)
    for layer, mean, variance in zip(
        found["layer"], found["mean"], found["variance"], strict=True
    ):
        assert mean == pytest.approx(expected[layer].mean(), rel=1e-4)
        assert variance == pytest.approx(expected[layer].var(), rel=1e-3, abs=1e-12)


def test_changes_come_in_the_order_of_a_text(tiny_bert):
    changes = classifier(tiny_bert, head="mlp").fit(X, Y).layer_changes_
    layers = ["embeddings", "0", "1", "2", "dense.0", "dense.1"]
    assert changes["layer"].tolist() == layers
    assert changes["part"].tolist() == ["encoder"] * 4 + ["head"] * 2
    assert (changes["mean"] > 0).all()
    assert (changes["variance"] > 0).all()


@pytest.mark.long
@pytest.mark.parametrize(
    ("freeze", "frozen", "cached"),
    grid(
        [
            (freeze, frozen, cached)
            for freeze, frozen in (
                (1, ["embeddings", "0"]),
                (-2, ["1", "2"]),
                ("all", ["embeddings", "0", "1", "2"]),
            )
            for cached in (True, False)
        ],
        lambda freeze, frozen, cached: freeze == 1 or cached is (freeze == "all"),
    ),
)
def test_frozen_layers_have_not_changed_at_all(tiny_bert, freeze, frozen, cached):
    trained = classifier(tiny_bert, freeze=freeze, cache_frozen=cached).fit(X, Y)
    changes = trained.layer_changes_
    at_rest = changes["mean"] == 0
    assert changes["layer"][at_rest].tolist() == frozen
    assert (changes["variance"][at_rest] == 0).all()


def test_changes_are_since_the_pretrained_weights(tiny_bert):
    trained = classifier(tiny_bert).fit(X[:4], Y[:4])
    trained.fit(X, Y)  # starts anew
    before = {name: t.numpy() for name, t in pretrained(tiny_bert).items()}
    expected = recomputed(trained, {**start_of_head(trained), **before})
    means = [expected[layer].mean() for layer in ("embeddings", "0", "1", "2")]
    np.testing.assert_allclose(trained.layer_changes_["mean"][:4], means, rtol=1e-4)


def start_of_head(trained):
    state = trained.net_.module_.head.state_dict()
    return {f"head.{name}": np.zeros(tensor.shape) for name, tensor in state.items()}


def test_changes_of_going_on_are_since_then(tiny_bert):
    trained = classifier(tiny_bert, warm_start=True).fit(X, Y)
    before = {n: t.numpy().copy() for n, t in trained.net_.module_.state_dict().items()}
    trained.fit(X, Y)
    expected = recomputed(trained, before)
    means = [expected[layer].mean() for layer in trained.layer_changes_["layer"]]
    np.testing.assert_allclose(trained.layer_changes_["mean"], means, rtol=1e-4)


def test_no_epochs_no_changes(tiny_bert):
    changes = classifier(tiny_bert, max_epochs=0).fit(X, Y).layer_changes_
    assert not changes["mean"].any()


def test_a_data_frame_takes_the_changes(tiny_bert):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(fitted_copy(classifier, tiny_bert, X, Y).layer_changes_)
    assert list(frame.columns) == ["layer", "part", "mean", "variance"]
    assert len(frame) == 5
