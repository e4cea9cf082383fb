"""Surprisal of some words of each text under a masked language model."""

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._storage._fingerprint import digest_text
from .._utils._containers import as_texts, refuse_surrogates
from .._utils._repeatable import base_seed, in_torch_threads
from ._module import choose_device, choose_precision, forward
from ._pretrained import open_checkpoint
from ._store import unique
from ._tokens import BATCH_TOKENS, collate, cut, tokenize

_CHUNK = 1024  # texts tokenized at a time
_LOGITS = 2**27  # most numbers that the language model gives for a batch
_TARGETS = 0.15  # part of the words, as in BERT's own training


class SurprisalMixin:
    """An estimator that names a pretrained model, a length, a device, a precision."""

    def surprisal(
        self, X: Any, random_state: int | np.random.RandomState | None = None
    ) -> NDArray[np.float32]:
        """Return the surprisal of some words under the pretrained language model.

        In each text 15 % of the words (at least one) are drawn as targets. The
        surprisal of a target is its negative log probability under the masked
        language model of `model`. The text itself is the input: nothing is masked.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
            Texts or pairs of texts.
        random_state : int, RandomState instance or None, default=None
            Seed of the targets. With the same int, a text has the same targets in every
            call. They do not depend on the other texts.

        Returns
        -------
        surprisal : ndarray of shape (n, max_length), float32
            One column for each position of a token, special tokens included; 0 for
            positions that are not targets.

        Raises
        ------
        TypeError, ValueError
            If `X` holds anything but texts, with their positions, and for a model
            without the weights of a masked-language-model head.

        Notes
        -----
        It needs no `fit`, and `fit` does not change it: the weights are those of
        `model`. With `precision="auto"` a processor computes in float32.

        References
        ----------
        M. Yuan, H.-T. Lin, J. Boyd-Graber (2020). Cold-start active learning through
        self-supervised language modeling. EMNLP.
        """
        return _compute(self, X, random_state)


def _compute(estimator, X, random_state):
    estimator._validate_params()
    texts = as_texts(X)
    if random_state is None:
        random_state = getattr(estimator, "random_state", None)
    seed = base_seed(random_state)
    checkpoint = open_checkpoint(estimator.model, estimator.revision)
    each = unique(texts)
    limit = int(min(estimator.max_length, checkpoint.max_positions or np.inf))
    out = np.zeros((len(each), limit), dtype=np.float32)
    try:
        for rows, columns, values in _surprises(
            estimator, checkpoint, each, limit, seed
        ):
            out[rows, columns] = values
    except (TypeError, UnicodeError):
        refuse_surrogates(texts)
        raise
    if len(each) < len(texts):
        row = dict(zip(each, range(len(each)), strict=True))
        out = out[[row[text] for text in texts]]
    return out


def _surprises(estimator, checkpoint, texts, max_length, seed):
    """Yield text, position and surprisal of the targets, batch by batch."""
    device = choose_device(estimator.device)
    # Differences of large logits: no bfloat16 unless it is asked for or a GPU's.
    on_cpu = estimator.precision == "auto" and device.type == "cpu"
    precision = "float32" if on_cpu else estimator.precision
    dtype = choose_precision(precision, device)
    module = checkpoint.module(device, dtype, masked_lm=True)
    pad_id = checkpoint.pad_id
    special = checkpoint.special_ids
    batch_tokens = BATCH_TOKENS.get(device.type, BATCH_TOKENS["cpu"])
    most = int(_LOGITS / (_TARGETS * checkpoint.config.vocab_size))
    batch_tokens = min(batch_tokens, max(1, most))
    # By characters first, so that a chunk already holds texts of like length.
    order = np.argsort([-len("".join(text)) for text in texts], kind="stable")

    def tasks():
        for start in range(0, len(texts), _CHUNK):
            chunk = order[start : start + _CHUNK]
            tokens = tokenize(checkpoint, [texts[i] for i in chunk], max_length)
            targets = [
                choose_targets(ids, special, seed, texts[i])
                for i, ids in zip(chunk, tokens.ids, strict=True)
            ]
            for batch in cut([len(ids) for ids in tokens.ids], batch_tokens):
                counts = [len(targets[i]) for i in batch]
                if any(counts):
                    rows = np.repeat(np.arange(len(batch)), counts)
                    columns = np.concatenate([targets[i] for i in batch])
                    inputs = collate(tokens, batch, pad_id, device)
                    yield chunk[batch[rows]], inputs, rows, columns

    def run(task):
        positions, inputs, rows, columns = task
        values = _negative_log_proba(module, inputs, rows, columns)
        return positions, columns, values

    yield from in_torch_threads(run, tasks(), device)


def choose_targets(ids, special_ids, seed, text):
    """Return positions of 15 % of the words of a text, rounded, at least one.

    `ids` are the text's tokens, of which those in `special_ids` are not words. The
    content of `text` and `seed` decide; none is returned if there is no word.
    """
    words = np.array([i for i, token in enumerate(ids) if token not in special_ids])
    if not len(words):
        return words.astype(np.intp)
    rng = np.random.default_rng([seed, int.from_bytes(digest_text(text), "big")])
    n_targets = max(1, round(_TARGETS * len(words)))
    return np.sort(rng.choice(words, n_targets, replace=False))


def _negative_log_proba(module, inputs, rows, columns):
    import torch
    from torch.nn import functional

    rows, columns = (
        torch.from_numpy(i).to(inputs["input_ids"].device) for i in (rows, columns)
    )
    with torch.inference_mode():
        logits = target_logits(module, inputs, rows, columns)
        truth = inputs["input_ids"][rows, columns]
        losses = functional.cross_entropy(logits.float(), truth, reduction="none")
    return losses.cpu().numpy()


def target_logits(module, inputs, rows, columns):
    """Run a masked language model, its head on the m targets only: (m, vocabulary).

    `inputs` are tensors (b, t), `rows` and `columns` (m,) the text and position of each
    target. For all tokens of a batch the head's outputs would take far more memory and
    time than the rest.
    """
    me = threading.get_ident()

    def keep_targets(base, args, output):
        if threading.get_ident() != me:  # the model is shared
            return output
        states = output[0][rows, columns][None]  # (1, m, d)
        if isinstance(output, tuple):
            return (states, *output[1:])
        output.last_hidden_state = states
        return output

    base = module.base_model
    if base is module:  # no encoder apart from the head
        return forward(module, inputs).logits[rows, columns]
    hook = base.register_forward_hook(keep_targets)
    try:
        return forward(module, inputs).logits[0]
    finally:
        hook.remove()
