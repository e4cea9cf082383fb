"""AdaptedFeatures: an encoder that learns from pairs of labeled texts."""

import copy
import functools
import itertools
import pickle
import shutil
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator_cloneable, check_mixin_order

import skactive.bert._adapted
from skactive import ActiveLearner
from skactive.bert import AdaptedFeatures, BertFeatures, clear_cache
from skactive.bert._adapted import _canonical
from skactive.bert._contrast import LOSSES, draw_batches
from skactive.bert._parts import cut_evenly

from ._helpers import PAIRS, module_of, network, padded, slow
from ._text_checks import check_text_estimator

WORDS = ["film", "match", "stocks", "team", "game", "minute", "friday", "long", "joy"]
TEXTS = [
    f"{first} {word}"
    for word in WORDS
    for first in ("the joy of a", "a dull slow", "an even", "no naïve", "again in the")
]
LABELS = np.array(["weather", "sport", "money"])[np.arange(len(TEXTS)) % 3]
QUICK = {"n_steps": 3, "batch_size": 8, "lr": 1e-2, "freeze": 1, "device": "cpu"}


def adapted(model, **params):
    return AdaptedFeatures(model, **{**QUICK, **params})


def rows(model, texts=TEXTS, y=LABELS, cached=False, sample_weight=None, **params):
    """Return the features of TEXTS after learning from texts, made anew."""
    if not cached:
        clear_cache()
    features = adapted(model, **params).fit(texts, y, sample_weight=sample_weight)
    return features.transform(TEXTS)


@pytest.fixture
def fits(monkeypatch):
    """List how many texts each training learned from."""
    seen = []
    fit = skactive.bert._adapted.ContrastiveEncoder.fit

    def count(self, labeled, *args):
        seen.append(len(labeled.texts))
        return fit(self, labeled, *args)

    monkeypatch.setattr(skactive.bert._adapted.ContrastiveEncoder, "fit", count)
    return seen


# The loss and its gradient -----------------------------------------------------------


def brute_force(name, rows, Y, weight):
    """Compute a loss pair by pair."""
    n = len(rows)
    cosine = [[float(a @ b) for b in rows] for a in rows]
    sets = [set(np.flatnonzero(y)) for y in Y]
    sums = np.zeros(4)
    for i, j in itertools.permutations(range(n), 2):
        union = sets[i] | sets[j]
        same = len(sets[i] & sets[j]) / len(union) if union else 1.0
        pair = weight[i] * weight[j]
        if name == "cosine":
            sums += pair * np.array(
                [
                    same * (cosine[i][j] - 1) ** 2,
                    same,
                    (1 - same) * cosine[i][j] ** 2,
                    1 - same,
                ]
            )
        elif name == "supervised_contrastive":
            others = [np.exp(cosine[i][k] / 0.1) for k in range(n) if k != i]
            loss = -np.log(np.exp(cosine[i][j] / 0.1) / sum(others))
            sums[:2] += pair * same * np.array([loss, 1])
        else:
            for k in set(range(n)) - {i, j}:
                union = sets[i] | sets[k]
                far = 1 - (len(sets[i] & sets[k]) / len(union) if union else 1.0)
                triple = pair * same * weight[i] * weight[k] * far
                loss = max(cosine[i][k] - cosine[i][j] + 0.25, 0)
                sums[:2] += triple * np.array([loss, 1])
    first = sums[0] / sums[1]
    return (first + sums[2] / sums[3]) / 2 if name == "cosine" else first


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_oracle_of_the_losses(name, multi_label):
    rng = np.random.default_rng(0)
    features = torch.nn.functional.normalize(torch.from_numpy(rng.normal(size=(9, 4))))
    Y = np.eye(3)[np.arange(9) % 3]
    if multi_label:
        Y = (rng.random((9, 3)) < 0.5).astype(float)
        Y[:2] = 0
    weight = rng.random(9)
    targets = torch.from_numpy(np.column_stack([Y, weight]))
    expected = brute_force(name, features.numpy(), Y, weight)
    assert float(LOSSES[name]()(features, targets)) == pytest.approx(expected)


@pytest.mark.parametrize("name", LOSSES)
def test_oracle_of_the_gradient_autograd_on_a_padded_batch(
    tiny_bert, name, monkeypatch
):
    monkeypatch.setattr("skactive.bert._parts._TOKENS", 16)
    monkeypatch.setattr("skactive.bert._parts._TOKENS_OF_TWO", 16)
    texts, codes = TEXTS[:12], np.arange(12) % 3
    targets = torch.from_numpy(np.column_stack([np.eye(3)[codes], np.ones(12)])).float()
    parts = network(tiny_bert, head=None, n_outputs=16, pooling="mean", freeze=1)
    inputs = _packed(tiny_bert, texts)
    assert len(cut_evenly(inputs["lengths"])) > 1
    LOSSES[name]()(parts(**inputs), targets).backward()

    plain = copy.deepcopy(module_of(tiny_bert)).requires_grad_(True)
    inputs = padded(tiny_bert, texts)
    states = plain(**inputs).last_hidden_state
    mask = inputs["attention_mask"][..., None]
    pooled = (states * mask).sum(dim=1) / mask.sum(dim=1)
    LOSSES[name]()(torch.nn.functional.normalize(pooled), targets).backward()
    expected = dict(plain.named_parameters())
    n_trained = 0
    for key, parameter in parts.encoder.named_parameters():
        assert parameter.requires_grad == (
            key.startswith("encoder.layer.") and key[14] != "0"
        )
        if parameter.requires_grad:
            n_trained += 1
            torch.testing.assert_close(
                parameter.grad, expected[key].grad, rtol=1e-3, atol=1e-5
            )
    assert n_trained == 32


def _packed(model, texts):
    from ._helpers import tokenizer_of

    ids = tokenizer_of(model)(texts)["input_ids"]
    return {
        "input_ids": torch.tensor([i for row in ids for i in row]),
        "lengths": torch.tensor([len(row) for row in ids]),
    }
