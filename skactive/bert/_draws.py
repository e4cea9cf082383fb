"""Draws of a trained network: by dropout in its head or everywhere, or normal."""

from functools import partial
from numbers import Integral

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._utils._chunks import chunk_size, chunks
from .._utils._random import base_seed, fork_torch, round_seed
from .._utils._texts import as_texts
from .._utils._threads import in_torch_threads, one_torch_thread

# Bytes of a chunk of draws: on the processor what its cache holds.
_CHUNK = {"cpu": 2**20}
_LARGE_CHUNK = 2**26
_ROWS = 256  # of a chunk, at least: fewer make slow products


def draws_available(estimator):
    """Whether Monte-Carlo dropout is on; the reason, as an error, where it is not."""
    if estimator.mc_dropout is None:
        raise AttributeError(
            "Draws need mc_dropout='head' or 'full', or 'gaussian' for the linear "
            "head, got None. Pass one of them."
        )
    return True


class DrawsMixin:
    """How the fine-tuned estimators draw."""

    @property
    def draws_jointly(self):
        """Whether a draw is one model, the same for every text; else one per text."""
        return self.mc_dropout != "gaussian"

    def _draw_outputs(self, X, n_draws, random_state, link, *, relative=False):
        """Draw outputs (n, t, k), float64.

        Parameters
        ----------
        X : sequence of n str, or of (str, str)
        n_draws : int or None
        random_state : int, RandomState instance or None
        link : callable
            Applied to tensors (..., k) of outputs, a chunk at a time; gives tensors of
            the same shape, float64 on the processor.
        relative : bool, default=False
            Whether `link` looks at differences of the k outputs only.
        """
        n_draws = self.n_draws if n_draws is None else n_draws
        if not isinstance(n_draws, Integral) or n_draws < 1:
            raise ValueError(
                f"'n_draws' must be an int of at least 1, got {n_draws!r}."
            )
        check_is_fitted(self)
        if random_state is None:
            random_state = self.random_state
        seed = round_seed(base_seed(random_state), 0, "draws")
        head = self.net_.module_.head
        if self.mc_dropout == "gaussian":
            return self._draw_normal(X, int(n_draws), seed, link, relative)
        if self.mc_dropout == "head" and getattr(head, "draws_at_once", False):
            return self._draw_from_head(X, int(n_draws), seed, link, relative)
        return self._draw_passes(X, int(n_draws), seed, link)

    def _draw_from_head(self, X, n_draws, seed, link, relative):
        """Draw with dropout in the head: all draws by one product."""
        import torch

        from ._heads import DenseHead

        head = self.net_.module_.head
        masks = head.draw_masks(n_draws, torch.Generator().manual_seed(seed))
        with torch.no_grad():
            if type(head).draw is DenseHead.draw:
                draw = head.fold(masks, relative=relative)
            else:
                draw = partial(head.draw, masks=masks)
        width = max(linear.out_features for linear in head.dense)
        device = next(head.parameters()).device
        return self._draw_by_chunks(X, draw, 8 * n_draws * width, device, link)

    def _draw_normal(self, X, n_draws, seed, link, relative):
        """Draw from the normal distribution of the outputs under dropout."""
        import torch

        from ._dropout import GaussianOutputs, normal_points

        head = self.net_.module_.head
        if not getattr(head, "is_linear", False):
            raise ValueError(
                f"'mc_dropout' must be 'head' or 'full' for a {type(head).__name__}, "
                "got 'gaussian': outputs are normal where dropout is followed by one "
                "linear layer and nothing else. Pass head='linear', or mc_dropout="
                "'head'."
            )
        linear = head.dense[0]
        layer = GaussianOutputs(linear.weight, linear.bias, head.dropout.p, relative)
        points = normal_points(n_draws, layer.size, seed)
        draw = partial(layer.draw, points=points)
        row_bytes = 8 * layer.size * (n_draws + 4 * layer.size)
        return self._draw_by_chunks(X, draw, row_bytes, torch.device("cpu"), link)

    def _draw_by_chunks(self, X, draw, row_bytes, device, link):
        """Represent texts, then call a function on chunks of what the head takes."""
        import torch

        summaries = self._summaries(X)
        size = chunk_size(row_bytes, _CHUNK.get(device.type, _LARGE_CHUNK))
        out = None

        @torch.no_grad()
        def draw_rows(rows):
            # A copy, as what is kept is read-only, which torch does not know.
            return rows, link(draw(torch.tensor(summaries[rows], device=device)))

        with self._room():
            tasks = chunks(len(summaries), max(size, _ROWS))
            for rows, outputs in in_torch_threads(draw_rows, tasks, device):
                if out is None:
                    out = np.empty((len(summaries), *outputs.shape[1:]))
                out[rows] = outputs.numpy()
        return out

    def _summaries(self, X):
        """Compute what the head's first linear layer takes, (n, m)."""
        from ._heads import DenseHead

        network = self.net_.module_
        as_kept = type(network.head).summarize is DenseHead.summarize
        if self.cache_frozen and as_kept and network.cut == network.depth:
            # Nothing runs where the features of texts that are known are all it takes.
            with self._room():
                batches = self._batches(network, self._checkpoint(), as_texts(X))
            if isinstance(batches.prefix, np.ndarray):
                return batches.prefix[:, 0]
        return self._map(X, lambda network, inputs: network.summarize(**inputs))

    def _draw_passes(self, X, n_draws, seed, link):
        """Run the network, or a head that cannot draw by itself, once per draw."""
        import torch

        texts = as_texts(X)
        network = self.net_.module_
        full = self.mc_dropout == "full"
        seeds = [round_seed(seed, t, "draw") for t in range(n_draws)]
        out = None
        with fork_torch(seed), torch.no_grad(), self._room():
            # Below the cut there is dropout too: a whole draw starts from tokens.
            batches = self._batches(
                network, self._checkpoint(), texts, from_tokens=full
            )
            passes = _whole_passes if full else _head_passes
            for positions, t, rows in passes(network, batches, seeds, link):
                if out is None:
                    out = np.empty((len(texts), n_draws, rows.shape[1]))
                out[positions, t] = rows
        return out


def _whole_passes(network, batches, seeds, link):
    """Run the whole network under each draw."""
    import torch

    from ._dropout import SharedMasks, dropout_on
    from ._heads import HEADS

    @torch.no_grad()
    def run(task):
        positions, t, masks = task
        inputs = batches.take(positions)
        with masks:
            masks.begin("encoder", len(positions))
            states = network.represent(**inputs)
            masks.begin("head", len(positions))
            outputs = network.decode(*states)
        return positions, t, link(outputs).numpy()

    def tasks():
        for t, seed in enumerate(seeds):
            masks = SharedMasks(seed)
            for positions in batches.by_length():
                yield positions, t, masks

    with dropout_on(network):
        if network.takes_packed and type(network.head) in HEADS.values():
            yield from in_torch_threads(run, tasks(), batches.device)
        else:  # it may draw from torch's generator, in an order that must not vary
            with one_torch_thread():
                yield from map(run, tasks())


def _head_passes(network, batches, seeds, link):
    """Run the encoder once, and the head under each draw."""
    import torch

    from ._dropout import SharedMasks, dropout_on

    draws = [SharedMasks(seed) for seed in seeds]

    @torch.no_grad()
    def run(positions):
        return positions, network.represent(**batches.take(positions))

    tasks = batches.by_length()
    for positions, states in in_torch_threads(run, tasks, batches.device):
        for t, masks in enumerate(draws):
            with one_torch_thread():
                with dropout_on(network.head), masks:
                    masks.begin("head", len(positions))
                    outputs = network.decode(*states)
                rows = link(outputs).numpy()
            yield positions, t, rows
