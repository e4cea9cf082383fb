"""The random numbers of the BERT estimators: by their seed, and none but their own."""

import pickle
import random

import numpy as np
import pytest
import torch
from sklearn.base import clone

from ._helpers import X, Y, assert_same_weights, classifier, grid, slow


@pytest.mark.long
@pytest.mark.parametrize(
    ("head", "freeze"),
    grid(
        [(h, freeze) for h in ("linear", "mlp", "cnn") for freeze in (0, 2, "all")],
        lambda *case: case in {("mlp", "all"), ("cnn", 2)},
    ),
)
def test_a_seed_gives_the_same_bits(tiny_bert, freeze, head):
    first, second = (
        classifier(tiny_bert, freeze=freeze, head=head, early_stopping=True).set_params(
            validation_fraction=0.25
        )
        for _ in range(2)
    )
    torch.rand(3)
    first.fit(X, Y)
    torch.manual_seed(5)
    second.fit(X, Y)
    assert_same_weights(first, second)
    losses = [[r["train_loss"] for r in m.history_] for m in (first, second)]
    assert losses[0] == losses[1]


@pytest.mark.long
def test_another_seed_gives_other_weights(tiny_bert):
    seeds = (0, 1, None, np.random.RandomState(3))
    models = [classifier(tiny_bert, random_state=s).fit(X, Y) for s in seeds]
    heads = [m.net_.module_.head.dense[0].weight.sum().item() for m in models]
    assert len(set(heads)) == 4


@pytest.mark.long
def test_a_random_state_moves_on(tiny_bert):
    model = classifier(tiny_bert, random_state=np.random.RandomState(3))
    first, second = (model.fit(X, Y).predict_proba(X) for _ in range(2))
    assert not np.array_equal(first, second)
    again = clone(model).set_params(random_state=np.random.RandomState(3)).fit(X, Y)
    np.testing.assert_array_equal(again.predict_proba(X), first)


def global_states():
    numpy_state = np.random.get_state()  # noqa: NPY002
    states = (numpy_state, random.getstate(), torch.get_rng_state().numpy().tobytes())
    return pickle.dumps(states)


@pytest.mark.long
@pytest.mark.parametrize("seed", [slow(0), None])
def test_no_call_moves_a_global_generator(tiny_bert, seed):
    before = global_states()
    model = classifier(tiny_bert, random_state=seed, head="cnn").fit(X, Y)
    model.partial_fit(X, Y).predict_proba(X)
    model.sample_proba(X, 2)
    model.set_params(mc_dropout="full").sample_proba(X, 2)
    pickle.loads(pickle.dumps(model)).transform(X)
    with pytest.raises(ValueError, match="freeze"):
        model.set_params(freeze=9).fit(X, Y)
    assert global_states() == before
