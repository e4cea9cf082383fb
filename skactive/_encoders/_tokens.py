"""Tokenize, sort by length, cut into batches of a token budget, pad or pack."""

import warnings
from typing import NamedTuple

import numpy as np

from .._utils._repeatable import in_torch_threads
from ._store import (
    ActivationStore,
    NotCacheableError,
    in_use,
    open_activation_store,
)

BATCH_TOKENS = {"cpu": 1024, "cuda": 16384, "mps": 8192}  # of models that predict
_CHARACTERS = 4  # of a token, about
_PART_BATCHES, _PART_TEXTS = 4, 1024


class Tokens(NamedTuple):
    """Unpadded token ids of some texts.

    `types` are the token type ids or None, `n_truncated` counts the texts that were
    longer than the limit, `n_lost` the tokens that were cut off.
    """

    ids: list
    types: list | None
    n_truncated: int
    n_lost: int = 0


def tokenize(checkpoint, texts, max_length):
    """Return the unpadded `Tokens` of texts or pairs, cut at `max_length` tokens.

    Special tokens count. Of a pair, the longer part is cut first.
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
    # A tokenizer does not tell all that it cut (of pairs, tokenizers 0.23.2): ask it
    # again for those that came out full.
    full = [
        text for text, row in zip(texts, ids, strict=True) if len(row) >= max_length
    ]
    with checkpoint.tokenizer_lock:
        whole = tokenizer(full, verbose=False)["input_ids"] if full else []
    lost = [len(row) - max_length for row in whole]
    return Tokens(ids, types, sum(n > 0 for n in lost), sum(lost))


def make_reader(checkpoint, max_length, prompt=""):
    """Return a function of a text: the number of characters that are not cut off.

    `prompt` stands before each text. The number is None if nothing is cut off, or if
    the tokenizer does not tell. The function has a tokenizer of its own, so it never
    waits for an encoder.
    """
    backend = getattr(checkpoint.tokenizer, "backend_tokenizer", None)
    if backend is None:
        return lambda text: None
    n_read = max_length - checkpoint.tokenizer.num_special_tokens_to_add()

    with checkpoint.tokenizer_lock:
        own = type(backend).from_str(backend.to_str())
    own.no_truncation()
    own.no_padding()  # a padded text has positions that are not its tokens

    def count_read(text):
        if len(prompt) + len(text) <= n_read:  # a token has a character at least
            return None
        encoding = own.encode(prompt + text, add_special_tokens=False)
        if len(encoding) <= n_read:
            return None
        return max(encoding.offsets[n_read - 1][1] - len(prompt), 0)

    return count_read


def warn_of_cuts(n_truncated, of, max_length, limit, stacklevel, lost=""):
    """Warn if texts were truncated; `of` says of how many, `limit` is the model's.

    `lost` says how much of them was cut off.
    """
    if not n_truncated:
        return
    if max_length < limit:
        longest = "any number" if limit == np.inf else int(limit)
        advice = f"A higher 'max_length' uses more of them; the model takes {longest}."
    else:
        advice = "This is the most that the model takes."
    warnings.warn(
        f"{n_truncated} of {of} have more than {max_length} tokens and were cut "
        f"there{lost}. {advice}",
        UserWarning,
        stacklevel=stacklevel + 1,
    )


def _check_ids(checkpoint, ids, types):
    """Raise an error if the model has no embedding of a token."""
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
    """Yield (b,) positions of batches of similar `lengths` (n,), longest first.

    A batch has at most `batch_tokens` tokens, padding included; a longer text is a
    batch of its own. Texts without any token are in no batch.
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
    """Return the positions of parts of about equal work, longest texts first.

    A part has about four batches of `batch_tokens`. It is tokenized in one call and
    encoded by one process. Characters stand for the tokens that are not known yet.

    Examples
    --------
        >>> from skactive._encoders._tokens import cut_parts
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


def send(array, device):
    """Return an array or tensor of the processor as a tensor on a device.

    A GPU copies it from pinned memory in its turn, and nothing waits for that.
    """
    import torch

    tensor = torch.as_tensor(array)
    if torch.device(device).type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def collate(tokens, positions, pad_id, device):
    """Pad some texts to the longest among them: tensors (b, t).

    `attention_mask` is there only if something is padded: attention runs faster without
    it.
    """
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
        batch[name] = padded
    if not real.all():
        batch["attention_mask"] = real.astype(np.int64)
    return {name: send(array, device) for name, array in batch.items()}


def pack(tokens, positions, device):
    """Concatenate the tokens of some texts: tensors (T,), and `lengths` (b,)."""
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
    """Return (n_texts, n_tokens) of each run of neighbors of equal length."""
    lengths = np.asarray(lengths)
    starts = np.flatnonzero(np.diff(lengths, prepend=-1))
    counts = np.diff(starts, append=len(lengths))
    return list(zip(counts.tolist(), lengths[starts].tolist(), strict=True))


def single_tokens(lengths, pooling):
    """Return the (b,) positions of the tokens that `pooling` takes.

    None if it takes more than one token of each text, or if `pooling` is None.
    """
    if isinstance(pooling, tuple) and len(pooling) == 1:
        (pooling,) = pooling
    if pooling not in ("cls", "last"):
        return None
    return lengths.cumsum(0) - (lengths if pooling == "cls" else 1)


def pool_packed(states, lengths, pooling):
    """Pool packed `states` (T, d) into one float32 row per text, (b, d).

    Several values of `pooling` are concatenated. `states` may be those of the single
    tokens that `pooling` takes, (b, d).
    """
    import torch

    if not isinstance(pooling, str):
        parts = [pool_packed(states, lengths, each) for each in pooling]
        return torch.cat(parts, dim=1)
    tokens = single_tokens(lengths, pooling)
    if tokens is not None:
        return (states if len(states) == len(tokens) else states[tokens]).float()
    groups = runs(lengths.tolist())
    # Split, not sliced: each slice would get a whole gradient of its own.
    parts = states.float().split([n_texts * n_tokens for n_texts, n_tokens in groups])
    pooled = []
    for (n_texts, _), part in zip(groups, parts, strict=True):
        run = part.unflatten(0, (n_texts, -1))
        pooled.append(run.mean(dim=1) if pooling == "mean" else run.amax(dim=1))
    return torch.cat(pooled)


def unpack(states, lengths):
    """Pad packed `states` (T, d): states (b, t, d) and a mask (b, t) of real tokens."""
    import torch

    padded = torch.nn.utils.rnn.pad_sequence(
        states.split(lengths.tolist()), batch_first=True
    )
    positions = torch.arange(padded.shape[1], device=lengths.device)
    return padded, positions < lengths[:, None]


class Batches:
    """Tokenized texts as batches for a network, packed if the network takes those.

    The cut of `network` decides what is cached. `batch_tokens` limits a batch in
    prediction and below the cut. `use_cache` keeps the activations of the frozen
    layers and starts there; if they cannot be kept, every layer runs each time, with
    the same result. "own" shares them with no other batches, and "memory" keeps only
    what fits under the limit. `padded` pads batches even if the network takes packed
    ones.
    """

    def __init__(
        self,
        network,
        checkpoint,
        texts,
        max_length,
        *,
        batch_tokens,
        use_cache,
        padded=False,
    ):
        self.pad_id = checkpoint.pad_id
        self.device = next(network.parameters()).device
        self.max_length, self.batch_tokens = max_length, batch_tokens
        self.limit = checkpoint.max_positions or np.inf
        self.packed = network.takes_packed and not padded
        self.tokens = self.activations = None
        self.n_truncated = 0
        if use_cache and network.cut:
            try:
                with in_use():
                    self.activations = self._look_up(
                        network, checkpoint, texts, use_cache
                    )
                if isinstance(self.activations, np.ndarray):
                    self.lengths = np.ones(len(texts), dtype=np.int64)
                else:
                    self.lengths = np.array([len(rows) for rows in self.activations])
            except NotCacheableError as exc:
                if use_cache is True:
                    warnings.warn(
                        f"'cache_frozen' has no effect here: {exc}. All layers run "
                        "each time, with the same result.",
                        UserWarning,
                        stacklevel=2,
                    )
        # Above the cut of packed texts their lengths are all there is to know.
        if self.activations is None or (
            network.cut < network.depth and not self.packed
        ):
            tokens = tokenize(checkpoint, texts, max_length)
            self.n_truncated = tokens.n_truncated
            self.tokens = _at_least_one(tokens, self.pad_id)
            self.lengths = np.array([len(ids) for ids in self.tokens.ids])
        else:  # only a text that fills its room can have been cut
            full = np.flatnonzero(self.lengths >= max_length)
            if len(full):
                full = [texts[i] for i in full]
                self.n_truncated = tokenize(checkpoint, full, max_length).n_truncated

    def __len__(self):
        return len(self.lengths)

    def warn_of_cuts(self, stacklevel):
        """Warn of the texts that were cut."""
        of = f"{len(self)} texts"
        warn_of_cuts(self.n_truncated, of, self.max_length, self.limit, stacklevel + 1)

    def take(self, positions):
        """Return one batch, as :meth:`TextNetwork.forward` takes it."""
        if self.packed:
            return self._take_packed(positions)
        inputs = {}
        if self.tokens is not None:
            inputs = collate(self.tokens, positions, self.pad_id, self.device)
        if self.activations is not None:
            rows, lengths = self._join_rows(positions), self.lengths[positions]
            shape = (len(lengths), lengths.max(), rows.shape[1])  # (b, t, d)
            padded = np.zeros(shape, dtype=np.float32)
            real = np.arange(shape[1]) < lengths[:, None]  # (b, t)
            padded[real] = rows
            inputs["activations"] = send(padded, self.device)
            if self.tokens is None and not real.all():
                inputs["attention_mask"] = send(real.astype(np.int64), self.device)
        return inputs

    def _take_packed(self, positions):
        if self.activations is None:
            return pack(self.tokens, positions, self.device)
        import torch

        rows = self._join_rows(positions)
        lengths = torch.from_numpy(self.lengths[positions])
        return {"activations": torch.from_numpy(rows), "lengths": lengths}

    def _join_rows(self, positions):
        """Return the kept rows of some texts: (sum of their lengths, d)."""
        if isinstance(self.activations, np.ndarray):
            return self.activations[positions, 0]
        return np.concatenate([self.activations[i] for i in positions])

    def by_length(self):
        """Yield the positions of batches of similar length, for prediction."""
        return cut(self.lengths, self.batch_tokens)

    def _look_up(self, network, checkpoint, texts, use_cache):
        """Return the rows of each text, computing those that are missing."""
        pooled = network.cut == network.depth and not network.uses_tokens
        recipe = (
            network.checkpoint_digest,
            checkpoint.tokenizer_digest,
            network.cut,
            network.pooling if pooled else None,
            network.layers if network.cut == network.depth else tuple(network.lower),
            self.max_length,
            network.bfloat16,
            network.stack.path,
        )
        is_own = use_cache == "own"
        store = ActivationStore() if is_own else open_activation_store(recipe)
        missing = store.missing(texts)
        if missing:
            batches = Batches(
                network,
                checkpoint,
                missing,
                self.max_length,
                batch_tokens=self.batch_tokens,
                use_cache=False,
                padded=not self.packed,
            )
            self.n_truncated = batches.n_truncated
            n_rows = np.ones(len(missing), int) if pooled else batches.lengths

            def run(positions):
                return positions, network.below_cut(batches.take(positions))

            def fill(views):
                tasks = batches.by_length()
                with network.evaluated():
                    done = in_torch_threads(run, tasks, batches.device)
                    for positions, states in done:
                        states = states.cpu().numpy()
                        if batches.packed:
                            states = np.split(states, n_rows[positions].cumsum()[:-1])
                        for i, rows in zip(positions, states, strict=True):
                            views[i][:] = rows[: n_rows[i]]

            width, spills = network.activations_width, use_cache != "memory"
            store.add(missing, n_rows, width, fill, spills=spills)
        return store.get_single(texts)[:, None] if pooled else store.get(texts)


def _at_least_one(tokens, pad_id):
    """Add a padding token to texts without any token, not even a special one."""
    types = tokens.types
    return tokens._replace(
        ids=[ids or [pad_id] for ids in tokens.ids],
        types=None if types is None else [row or [0] for row in types],
    )
