"""Expected gradients of word embeddings against autograd in the embedding table."""

import numpy as np
import pytest
import torch

from ._helpers import ARCHITECTURES, fitted_copy, grid, some, tokenizer_of, weights_of
from ._helpers import REVIEW_LABELS as Y
from ._helpers import REVIEWS as X
from ._helpers import review_classifier as classifier
from .test_gradients import TwoLinear

THREE = np.array([0, 1, 2, 0, 1, 2, 0, 1])
PAIRS = [(a, b) for a, b in zip(X, X[::-1], strict=True)]
# A word again and again: its gradients add up before their length is taken.
REPEATED = ["a film film film film of a film", "film of a joy", "the the the the"]
TEXTS = {"X": X, "again": REPEATED, "pairs": PAIRS}
FREEZE = [0, 2, "all"]


def by_hand(model, trained, text):
    """Differentiate each loss in the whole table of embeddings, for one text."""
    network = trained.net_.module_
    pair = isinstance(text, tuple)
    batch = tokenizer_of(model)(
        *(text if pair else (text,)),
        truncation=True,
        max_length=trained.max_length,
        return_tensors="pt",
    )
    table = network.encoder.get_input_embeddings().weight
    was_frozen = not table.requires_grad
    table.requires_grad_(True)
    outputs = network(**batch)[0]
    proba = outputs.softmax(dim=0).detach()
    change = torch.zeros(len(table))
    for c, p in enumerate(proba):
        loss = -outputs.log_softmax(dim=0)[c]
        (grad,) = torch.autograd.grad(loss, table, retain_graph=True)
        change += p * grad.norm(dim=1)
    table.requires_grad_(not was_frozen)
    words = set(batch["input_ids"][0].tolist()) - {0, 2, 3}
    return max((change[i].item() for i in words), default=0.0)


@pytest.mark.long
@pytest.mark.parametrize(
    ("texts", "labels", "freeze"),
    grid(
        [
            (texts, labels, freeze)
            for freeze in FREEZE
            for labels in (Y, THREE)
            for texts in TEXTS
        ],
        # Every text, label and freeze once at least.
        lambda texts, labels, freeze: (
            (texts, len(set(labels)), freeze)
            in {("X", 3, 0), ("again", 3, "all"), ("pairs", 2, 2)}
        ),
    ),
)
def test_egl_embedding_is_that_of_the_oracle(tiny_bert, texts, labels, freeze):
    texts = TEXTS[texts]
    kind = PAIRS if texts is PAIRS else X
    trained = fitted_copy(classifier, tiny_bert, kind, labels, freeze=freeze)
    expected = [by_hand(tiny_bert, trained, text) for text in texts]
    found = trained.embedding_gradients(texts)
    assert found.shape == (len(texts),)
    assert found.min() > 0
    np.testing.assert_allclose(found, expected, rtol=2e-4)


@pytest.mark.long
@pytest.mark.parametrize("kind", some(ARCHITECTURES, "Roberta", "ModernBert"))
def test_egl_embedding_oracle_in_every_architecture(tiny_encoder, kind):
    model = tiny_encoder(kind)
    trained = classifier(model, freeze="all", pooling="mean").fit(X, THREE)
    expected = [by_hand(model, trained, text) for text in X]
    np.testing.assert_allclose(trained.embedding_gradients(X), expected, rtol=2e-4)


@pytest.mark.long
@pytest.mark.parametrize(
    ("head", "pooling"),
    grid(
        [(h, pooling) for h in ("mlp", "cnn", TwoLinear) for pooling in ("cls", "max")],
        lambda *case: case in {("mlp", "max"), (TwoLinear, "cls")},
    ),
)
def test_egl_embedding_oracle_for_every_head(tiny_bert, head, pooling):
    trained = fitted_copy(classifier, tiny_bert, X, THREE, head=head, pooling=pooling)
    expected = [by_hand(tiny_bert, trained, text) for text in X]
    np.testing.assert_allclose(trained.embedding_gradients(X), expected, rtol=2e-4)


def test_unknown_words_are_words_and_special_tokens_are_none(tiny_bert):
    trained = fitted_copy(classifier, tiny_bert, X, Y)
    assert trained.embedding_gradients(["東", ""])[0] > 0
    assert trained.embedding_gradients(["", "[SEP]", "a film"])[:2].tolist() == [0, 0]
    assert trained.embedding_gradients([""]).tolist() == [0]


def test_what_is_cut_off_has_no_part(tiny_bert):
    trained = classifier(tiny_bert, max_length=6).fit(X, Y)
    found = trained.embedding_gradients(["a film of the year", "a film of the minute"])
    assert found[0] == pytest.approx(found[1], rel=1e-5)


def test_other_texts_and_batches_do_not_matter(tiny_bert, monkeypatch):
    trained = fitted_copy(classifier, tiny_bert, X, THREE, freeze=2)
    whole = trained.embedding_gradients(X)
    order = np.array([5, 0, 0, 7])
    found = trained.embedding_gradients([X[i] for i in order])
    np.testing.assert_allclose(found, whole[order], rtol=1e-4)
    monkeypatch.setattr("skactive._encoders._tokens.BATCH_TOKENS", {"cpu": 1})
    np.testing.assert_allclose(trained.embedding_gradients(X), whole, rtol=1e-4)


@pytest.mark.parametrize(
    ("freeze", "cached"),
    grid(
        [(freeze, cached) for freeze in (0, 2, "all") for cached in (True, False)],
        lambda freeze, cached: freeze == 2 and cached,
    ),
)
def test_the_network_stays_as_it_was(tiny_bert, freeze, cached):
    trained = classifier(
        tiny_bert, head="cnn", freeze=freeze, dropout=0.5, cache_frozen=cached
    ).fit(X, Y)
    network = trained.net_.module_
    proba, weights = trained.predict_proba(X), weights_of(trained)
    trains = [p.requires_grad for p in network.parameters()]
    grads = [p.grad for p in network.parameters()]
    grads = [None if grad is None else grad.clone() for grad in grads]
    generator = torch.get_rng_state()
    first = trained.embedding_gradients(X)
    np.testing.assert_array_equal(trained.embedding_gradients(X), first)
    assert torch.equal(torch.get_rng_state(), generator)
    assert not any(part.training for part in network.modules())
    assert [p.requires_grad for p in network.parameters()] == trains
    for parameter, grad in zip(network.parameters(), grads, strict=True):
        same = parameter.grad is grad is None or torch.equal(parameter.grad, grad)
        assert same
    for name, tensor in weights_of(trained).items():
        assert torch.equal(tensor, weights[name])
    assert not network.encoder.get_input_embeddings()._forward_hooks
    np.testing.assert_array_equal(trained.predict_proba(X), proba)


def test_a_confident_model_still_has_an_order(tiny_bert):
    trained = fitted_copy(classifier, tiny_bert, X, THREE)
    layer = trained.net_.module_.last_linear
    with torch.no_grad():
        layer.weight *= 20 / trained._outputs(X).max()
        layer.bias.zero_()
    found = trained.embedding_gradients(X)
    assert (found > 0).all()
    assert len(np.unique(found)) > 6


def test_two_classes_take_one_backward_pass_and_three_take_three(
    tiny_bert, monkeypatch
):
    calls, grad = [], torch.autograd.grad
    monkeypatch.setattr(
        torch.autograd, "grad", lambda *a, **k: calls.append(1) or grad(*a, **k)
    )
    for labels, passes in [(Y, 1), (THREE, 3)]:
        trained = classifier(tiny_bert, batch_size=16).fit(X, labels)
        calls.clear()
        trained.embedding_gradients(X)  # all of them in one batch
        assert len(calls) == passes


@pytest.mark.long
def test_batches_are_no_larger_than_those_of_training(tiny_bert):
    trained = classifier(tiny_bert, batch_size=2, max_length=20).fit(X, Y)
    seen = []
    hook = trained.net_.module_.encoder.register_forward_pre_hook(
        lambda module, args, kwargs: seen.append(kwargs["input_ids"].numel()),
        with_kwargs=True,
    )
    trained.embedding_gradients(X * 10)
    hook.remove()
    assert 20 < max(seen) <= 2 * 20


def test_several_labels_per_text_are_refused(tiny_bert):
    trained = classifier(tiny_bert).fit(X, np.stack([Y, 1 - Y], axis=1))
    message = "embedding_gradients needs a model of one label per text"
    with pytest.raises(TypeError, match=message):
        trained.embedding_gradients(X)


@pytest.mark.parametrize("times", [0, 2])
def test_an_encoder_that_looks_nothing_up_is_refused(tiny_bert, times, monkeypatch):
    trained = fitted_copy(classifier, tiny_bert, X, Y)
    encoder = trained.net_.module_.encoder

    def refuse():
        raise NotImplementedError

    if times == 0:
        monkeypatch.setattr(encoder, "get_input_embeddings", refuse)
    else:
        table = encoder.get_input_embeddings()

        def look_up(module, args, kwargs):
            table(kwargs["input_ids"])

        encoder.register_forward_pre_hook(look_up, with_kwargs=True)
    with pytest.raises(TypeError, match=f"BertModel does so {times} times"):
        trained.embedding_gradients(X)


def test_before_fit_there_is_nothing(tiny_bert):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        classifier(tiny_bert).embedding_gradients(X)
    with pytest.raises(TypeError, match="must be a str"):
        fitted_copy(classifier, tiny_bert, X, Y).embedding_gradients([1, 2])
