"""How much the embedding of a text's most affected word is expected to change."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import torch

__all__ = ["expected_word_change"]


def expected_word_change(network, inputs, special_ids):
    """Compute, for each text, the largest expected gradient of a word's embedding.

    The expectation is over the label, by the model's own probabilities. A word that
    occurs several times in a text has one embedding, so its gradients are added.

    Parameters
    ----------
    network : TextNetwork
        In evaluation mode. Its parameters gather no gradients.
    inputs : dict of str to torch.Tensor of shape (b, t)
        Token ids and what goes with them, without a prefix.
    special_ids : collection of int
        Ids of tokens that stand for no word.

    Returns
    -------
    change : torch.Tensor of shape (b,)
        0 for a text without words.

    Raises
    ------
    TypeError
        For an encoder that does not look each token's embedding up once.
    """
    with torch.enable_grad(), _looked_up(network.encoder) as found:
        outputs = network(**inputs)
    if len(found) != 1:
        raise TypeError(
            "embedding_gradients needs an encoder that looks the embedding of each "
            f"token up once; {type(network.encoder).__name__} does so {len(found)} "
            "times. Use an encoder such as BERT."
        )
    ids, vectors = found[0]
    special = torch.tensor(sorted(special_ids), device=ids.device, dtype=ids.dtype)
    rows, places = torch.isin(ids, special, invert=True).nonzero(as_tuple=True)
    change = outputs.new_zeros(len(ids))
    if not len(rows):
        return change
    # Words are told apart within a text: the same word of another text is another.
    n_ids = int(ids.max()) + 1
    words, word_of = torch.unique(rows * n_ids + ids[rows, places], return_inverse=True)
    text_of = words // n_ids
    expected = outputs.new_zeros(len(words))
    for weight, residual in _weighted_residuals(outputs):
        grads = torch.autograd.grad(outputs, vectors, residual, retain_graph=True)[0]
        grads = grads[rows, places].float()
        summed = grads.new_zeros(len(words), grads.shape[1])
        summed.index_add_(0, word_of, grads)
        expected += weight[text_of] * summed.norm(dim=1)
    return change.scatter_reduce_(0, text_of, expected, "amax")


def _weighted_residuals(outputs):
    """Yield the weight (b,) and the gradient in the outputs (b, k) of each loss."""
    # In float64, on the processor, as not every device has it: what a confident
    # model leaves for the other classes would round to nothing.
    proba = outputs.detach().cpu().double().softmax(dim=1)
    if proba.shape[1] == 2:  # both gradients are multiples of the same one
        opposite = torch.tensor([1.0, -1.0]).expand(len(proba), 2)
        yield (2 * proba.prod(dim=1)).to(outputs), opposite.to(outputs)
        return
    for c, weight in enumerate(proba.T):
        residual = proba.clone()
        residual[:, c] -= 1.0
        yield weight.to(outputs), residual.to(outputs)


@contextmanager
def _looked_up(encoder):
    """Collect the token ids and the vectors looked up for them, as leaves of a graph.

    What other threads compute with the same encoder is left alone.
    """
    found = []
    me = threading.get_ident()

    def cut_off(module, args, output):
        if threading.get_ident() != me:
            return output
        vectors = output.detach().requires_grad_()
        found.append((args[0], vectors))
        return vectors.clone()  # some encoders add to it in place

    try:
        lookup = encoder.get_input_embeddings()
    except (NotImplementedError, AttributeError):
        lookup = torch.nn.Identity()  # never called: nothing is found
    hook = lookup.register_forward_hook(cut_off)
    try:
        yield found
    finally:
        hook.remove()
