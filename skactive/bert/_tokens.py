"""Tokenise, sort by length, cut into batches of a token budget, pad."""

from typing import NamedTuple

import numpy as np

_CHARACTERS = 4  # of a token, about
_PART_BATCHES, _PART_TEXTS = 4, 1024


class Tokens(NamedTuple):
    """Token ids of some texts, unpadded.

    Attributes
    ----------
    ids : list of list of int
    types : list of list of int or None
        Token type ids, which part of a pair a token belongs to.
    n_truncated : int
        How many texts were longer than the limit.
    """

    ids: list
    types: list | None
    n_truncated: int


def tokenize(checkpoint, texts, max_length):
    """Tokenise texts or pairs of texts, cut at `max_length` tokens, without padding.

    Parameters
    ----------
    checkpoint : Checkpoint
        Whose tokenizer to use.
    texts : list of str or of (str, str)
    max_length : int
        In tokens, the special ones included. Of a pair, the longer part is cut first.

    Returns
    -------
    tokens : Tokens

    Raises
    ------
    ValueError
        If `max_length` leaves no room beside the special tokens, and if the model has
        no embedding of a token.
    """
    tokenizer = checkpoint.tokenizer
    n_special = tokenizer.num_special_tokens_to_add(pair=isinstance(texts[0], tuple))
    if max_length <= n_special:
        raise ValueError(
            f"'max_length' must be more than the {n_special} special tokens that this "
            f"tokenizer puts around each text, got {max_length}. Pass a larger one."
        )
    with checkpoint.tokenizer_lock:
        out = tokenizer(
            texts,
            truncation=True,
            max_length=max_length,
            padding=False,
            return_attention_mask=False,
        )
    ids, types = out["input_ids"], out.get("token_type_ids")
    _check_ids(checkpoint, ids, types)
    encodings = getattr(out, "encodings", None)
    if encodings is not None:
        n_truncated = sum(bool(encoding.overflowing) for encoding in encodings)
    else:
        # A tokenizer in Python does not tell what it cut: ask it again for those
        # that came out full.
        full = [
            text for text, row in zip(texts, ids, strict=True) if len(row) >= max_length
        ]
        with checkpoint.tokenizer_lock:
            whole = tokenizer(full, verbose=False)["input_ids"] if full else []
        n_truncated = sum(len(row) > max_length for row in whole)
    return Tokens(ids, types, n_truncated)


def _check_ids(checkpoint, ids, types):
    """Raise an error where tokens have no embedding in the model."""
    config = checkpoint.config
    for what, rows, count in (
        ("token ids", ids, getattr(config, "vocab_size", None)),
        ("token types", types, getattr(config, "type_vocab_size", None)),
    ):
        largest = max((max(row) for row in rows or () if row), default=0)
        if count and largest >= count:
            raise ValueError(
                "'model' must have a tokenizer that fits its weights, got "
                f"{checkpoint.name!r}, whose tokenizer makes {what} up to {largest}, "
                f"whereas the model has embeddings up to {count - 1}. Save the "
                "tokenizer that the model was trained with in its folder."
            )


def cut(lengths, batch_tokens):
    """Cut texts into batches of like length, longest first.

    Parameters
    ----------
    lengths : array-like of int of shape (n,)
        Tokens per text.
    batch_tokens : int
        Most tokens in a batch, padding included. A text longer than that is a batch
        of its own.

    Yields
    ------
    positions : ndarray of int of shape (b,)
        Of the texts of one batch. Texts without any token are in none.

    Examples
    --------
    >>> from skactive.bert._tokens import cut
    >>> [batch.tolist() for batch in cut([3, 9, 2, 4], batch_tokens=8)]
    [[1], [3, 0], [2]]
    """
    lengths = np.asarray(lengths)
    order = np.argsort(-lengths, kind="stable")
    order = order[lengths[order] > 0]
    start = 0
    while start < len(order):
        stop = start + max(1, batch_tokens // int(lengths[order[start]]))
        yield order[start:stop]
        start = stop


def cut_parts(texts, max_length, batch_tokens):
    """Cut texts into parts of about equal work, longest texts first.

    A part is tokenised at once, and encoded by one process. Characters stand for the
    tokens that are not known yet.

    Parameters
    ----------
    texts : list of str or of (str, str)
    max_length : int
        Tokens after which a text is cut.
    batch_tokens : int
        Most tokens in a batch. A part has some four batches.

    Returns
    -------
    parts : list of ndarray of int
        Positions in `texts`, each once.

    Examples
    --------
    >>> from skactive.bert._tokens import cut_parts
    >>> texts = ["short"] * 1500 + ["long " * 20] * 1000
    >>> [len(part) for part in cut_parts(texts, max_length=64, batch_tokens=1024)]
    [328, 328, 328, 987, 529]
    """
    n_characters = np.array(
        [len(text) if isinstance(text, str) else sum(map(len, text)) for text in texts]
    )
    order = np.argsort(-n_characters, kind="stable")
    room = _CHARACTERS * _PART_BATCHES * max(batch_tokens, 2048)
    work = np.minimum(n_characters[order], _CHARACTERS * max_length)
    work = np.maximum(work, room // _PART_TEXTS)  # a text takes some anyway
    numbers = (work.cumsum() - work) // room
    return np.split(order, np.flatnonzero(np.diff(numbers)) + 1)


def collate(tokens, positions, pad_id, device):
    """Pad some texts to the longest among them.

    Parameters
    ----------
    tokens : Tokens
    positions : ndarray of int of shape (b,)
    pad_id : int
    device : torch.device

    Returns
    -------
    batch : dict of str to torch.Tensor of shape (b, t)
        `input_ids`, `token_type_ids` where the tokenizer makes them, and
        `attention_mask` where something is padded: attention runs faster without.
    """
    import torch

    lengths = np.array([len(tokens.ids[i]) for i in positions])
    shape = (len(positions), lengths.max())
    real = np.arange(shape[1]) < lengths[:, None]  # (b, t)
    rows = {"input_ids": (tokens.ids, pad_id)}
    if tokens.types is not None:
        rows["token_type_ids"] = (tokens.types, 0)
    batch = {}
    for name, (values, fill) in rows.items():
        padded = np.full(shape, fill, dtype=np.int64)
        padded[real] = np.concatenate([values[i] for i in positions])
        batch[name] = torch.from_numpy(padded)
    if not real.all():
        batch["attention_mask"] = torch.from_numpy(real.astype(np.int64))
    return {name: tensor.to(device) for name, tensor in batch.items()}


def pack(tokens, positions, device):
    """Lay some texts end to end.

    Parameters
    ----------
    tokens : Tokens
    positions : sequence of int of length b
        Which texts, in the order wanted. Each has a token at least.
    device : torch.device

    Returns
    -------
    batch : dict of str to torch.Tensor
        `input_ids` (T,), `token_type_ids` (T,) where the tokenizer makes them, and
        `lengths` (b,), the tokens of each text; T is their sum.

    Examples
    --------
    >>> from skactive.bert._tokens import Tokens
    >>> from skactive.bert._tokens import pack
    >>> tokens = Tokens([[2, 7, 3], [2, 3]], types=None, n_truncated=0)
    >>> batch = pack(tokens, [1, 0], device="cpu")
    >>> batch["input_ids"].tolist(), batch["lengths"].tolist()
    ([2, 3, 2, 7, 3], [2, 3])
    """
    import torch

    rows = {"input_ids": tokens.ids}
    if tokens.types is not None:
        rows["token_type_ids"] = tokens.types
    flat = {
        name: np.concatenate([np.asarray(values[i], dtype=np.int64) for i in positions])
        for name, values in rows.items()
    }
    flat["lengths"] = np.array([len(tokens.ids[i]) for i in positions], dtype=np.int64)
    return {name: torch.from_numpy(row).to(device) for name, row in flat.items()}


def runs(lengths):
    """Find the neighbours of equal length among packed texts.

    Parameters
    ----------
    lengths : sequence of int

    Returns
    -------
    runs : list of (n_texts, n_tokens)
        Of each run, from first to last; `n_tokens` are those of one text.

    Examples
    --------
    >>> from skactive.bert._tokens import runs
    >>> runs([9, 9, 4, 4, 4, 9])
    [(2, 9), (3, 4), (1, 9)]
    """
    lengths = np.asarray(lengths)
    starts = np.flatnonzero(np.diff(lengths, prepend=-1))
    counts = np.diff(starts, append=len(lengths))
    return list(zip(counts.tolist(), lengths[starts].tolist(), strict=True))


def pool_packed(states, lengths, pooling):
    """Pool the states of each text's tokens into one float32 row.

    Parameters
    ----------
    states : torch.Tensor of shape (T, d)
    lengths : torch.Tensor of int of shape (b,)
    pooling : {"mean", "cls", "max", "last"} or tuple of these
        Several are concatenated.

    Returns
    -------
    pooled : torch.Tensor of shape (b, d), float32

    Examples
    --------
    >>> import torch
    >>> from skactive.bert._tokens import pool_packed
    >>> states = torch.tensor([[1.0], [3.0], [8.0]])
    >>> pool_packed(states, torch.tensor([2, 1]), "mean").tolist()
    [[2.0], [8.0]]
    """
    import torch

    if not isinstance(pooling, str):
        parts = [pool_packed(states, lengths, each) for each in pooling]
        return torch.cat(parts, dim=1)
    if pooling in ("cls", "last"):
        ends = lengths.cumsum(0)
        return states[ends - (lengths if pooling == "cls" else 1)].float()
    groups = runs(lengths.tolist())
    # Split, not sliced: each slice would get a whole gradient of its own.
    parts = states.float().split([n_texts * n_tokens for n_texts, n_tokens in groups])
    pooled = []
    for (n_texts, _), part in zip(groups, parts, strict=True):
        run = part.unflatten(0, (n_texts, -1))
        pooled.append(run.mean(dim=1) if pooling == "mean" else run.amax(dim=1))
    return torch.cat(pooled)


def unpack(states, lengths):
    """Pad packed states, for what takes them padded.

    Parameters
    ----------
    states : torch.Tensor of shape (T, d)
    lengths : torch.Tensor of int of shape (b,)

    Returns
    -------
    states : torch.Tensor of shape (b, t, d)
        With zeros behind the shorter texts.
    mask : torch.Tensor of shape (b, t), bool
        Where there is a token.
    """
    import torch

    padded = torch.nn.utils.rnn.pad_sequence(
        states.split(lengths.tolist()), batch_first=True
    )
    places = torch.arange(padded.shape[1], device=lengths.device)
    return padded, places < lengths[:, None]
