"""What the tests of fine-tuning share."""

from itertools import pairwise

import numpy as np
import torch
from skorch.callbacks import Callback
from transformers import AutoModel, AutoTokenizer

from skactive._utils._random import fork_torch
from skactive.bert import BertClassifier
from skactive.bert._network import TextNetwork

ARCHITECTURES = (
    *("Bert", "Roberta", "DistilBert", "Electra"),
    *("Albert", "DebertaV2", "MPNet", "ModernBert"),
)
# Rates of the encoders' own dropout, by all the names they have for it.
NO_DROPOUT = dict.fromkeys(
    (
        *("hidden_dropout_prob", "attention_probs_dropout_prob"),
        *("dropout", "attention_dropout", "embedding_dropout", "mlp_dropout"),
    ),
    0.0,
)
X = [
    "a joyful film",
    "a dull and slow film that ends too late",
    "the best of the year",
    "bad",
    "what a fine day for a walk in the park, is it not?",
    "no one should see this film",
    "a joy",
    "it was late and it rained",
]
Y = np.array([1, 0, 1, 0, 1, 0, 1, 0])


class Recorder(Callback):
    """Writes what it sees into a list that copies of it share."""

    def __init__(self, seen):
        self.seen = seen

    def __deepcopy__(self, memo):
        return type(self)(self.seen)


def classifier(model, **params):
    """Make a classifier that trains for two short epochs."""
    settings = {"max_epochs": 2, "batch_size": 4, "lr": 1e-3, "random_state": 0}
    return BertClassifier(model, **{**settings, **params})


def network(model, **settings):
    """Build a network with a random head."""
    defaults = {
        "revision": None,
        "head": "linear",
        "head_params": None,
        "n_outputs": 2,
        "dropout": 0.1,
        "pooling": "cls",
        "freeze": 0,
        "layers_attr": None,
        "bfloat16": False,
    }
    with fork_torch(0):
        return TextNetwork(model, **{**defaults, **settings}).eval()


def padded(model, texts):
    """Tokenise into one padded batch, past the library."""
    batch = AutoTokenizer.from_pretrained(model)(
        list(texts), padding=True, return_tensors="pt"
    )
    return {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"]}


def pretrained(model):
    """Load the encoder's weights anew, past the library."""
    state = AutoModel.from_pretrained(model).state_dict()
    return {f"encoder.{name}": t for name, t in state.items() if "pooler" not in name}


def layer_of(name):
    """Read a parameter's layer from its name: a number, "top", "rest" or "head"."""
    if name.startswith("head."):
        return "head"
    if "final_norm" in name:
        return "top"
    if "albert_layer" in name:
        return 0
    parts = name.split(".")
    after = [b for a, b in pairwise(parts) if a.startswith("layer")]
    return int(after[0]) if after and after[0].isdigit() else "rest"


def weights_of(estimator):
    """Copy all weights of a trained network."""
    state = estimator.net_.module_.state_dict()
    return {name: tensor.clone() for name, tensor in state.items()}


def assert_same_weights(a, b, **tolerance):
    """Compare the weights of two estimators, exactly unless told how closely."""
    a, b = weights_of(a), weights_of(b)
    assert a.keys() == b.keys()
    for name, tensor in a.items():
        torch.testing.assert_close(
            tensor, b[name], **(tolerance or {"rtol": 0, "atol": 0})
        )
