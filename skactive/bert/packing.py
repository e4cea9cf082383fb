"""Texts end to end, without padding: pack them, pool them, and pad them again."""

from __future__ import annotations

import numpy as np

__all__ = ["pack", "pool_packed", "runs", "unpack"]


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
    >>> from skactive.bert.batches import Tokens
    >>> from skactive.bert.packing import pack
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
    >>> from skactive.bert.packing import runs
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
    >>> from skactive.bert.packing import pool_packed
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
