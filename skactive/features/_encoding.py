"""One call of an encoder on texts, in this process or in workers."""

import os
import platform
import warnings
from concurrent.futures import BrokenExecutor
from contextlib import closing, nullcontext
from itertools import pairwise

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.base import clone

from .._encoders._module import choose_device, choose_layers, choose_precision, encode
from .._encoders._pretrained import first_line, open_checkpoint
from .._encoders._sentences import SentenceModules
from .._encoders._tokens import collate, cut, cut_parts, pack, tokenize, warn_of_cuts
from .._utils._format import progress_bar
from .._utils._repeatable import in_torch_threads, one_torch_thread

_MOST_TOKENS = 2**31
_BATCH_TOKENS = {"cpu": 2048, "cuda": 16384, "mps": 8192}


class EncodingRun:
    """One call of `transform`: the parameters, resolved for this machine and model.

    `width` counts the features of a text, `n_encoded` and `n_truncated` the texts
    encoded so far in this call and those of them that were cut, `n_tokens` their tokens
    and `n_lost` those that were cut off.
    """

    def __init__(self, estimator):
        self.estimator = estimator
        self.checkpoint = open_checkpoint(estimator.model, estimator.revision)
        self.device = choose_device(estimator.device)
        self.dtype = choose_precision(estimator.precision, self.device)
        self.layers = choose_layers(estimator.layers, self.checkpoint.depth)
        last, width = self.checkpoint.output_width, self.checkpoint.width
        self.width = sum(
            last if i == self.checkpoint.depth else width for i in self.layers
        )
        self.pooling, self.modules, self.prompt = estimator.pooling, None, ""
        self.normalize = bool(estimator.normalize)
        self.limit = self.checkpoint.max_positions or np.inf
        self.sentences = SentenceModules(self.checkpoint.source, estimator.prompt)
        if estimator.prompt is not None:
            self.prompt = self.sentences.prompt
        if self.pooling == "auto":
            self._follow_modules()
        self._cut_columns()
        self.max_length = int(min(estimator.max_length, self.limit))
        self.batch_tokens = (
            _BATCH_TOKENS.get(self.device.type, _BATCH_TOKENS["cpu"])
            if estimator.batch_tokens == "auto"
            else min(estimator.batch_tokens, _MOST_TOKENS)
        )
        self.revision = estimator.revision
        self.verbose = estimator.verbose
        self.n_encoded = self.n_truncated = self.n_tokens = self.n_lost = 0

    def _follow_modules(self):
        """Resolve `pooling="auto"`: the modules of the model, or else the mean."""
        modules = self.sentences
        is_last = self.layers == (self.checkpoint.depth,)
        if not modules.exist or modules.unsupported or not is_last:
            self.pooling = "mean"
            return
        self.limit = min(self.limit, modules.max_length)
        self.prompt = modules.prompt
        if self.normalize and not modules.differ_from("mean"):
            self.pooling = "mean"  # the same, with the same key in the cache
            return
        self.modules = modules
        self.pooling = modules.poolings
        self.width = modules.width(self.checkpoint.output_width)

    def _cut_columns(self):
        """Resolve `dimensions`; all of them are as good as None."""
        self.is_cut = (self.estimator.dimensions or self.width) != self.width
        if not self.is_cut:
            return
        if self.estimator.dimensions > self.width:
            raise ValueError(
                f"'dimensions' must be at most {self.width}, the number of features of "
                f"{self.checkpoint.name!r}, got {self.estimator.dimensions}. Pass a "
                "smaller number, or None for all."
            )
        self.width = self.estimator.dimensions

    @property
    def digests(self):
        """What must be the same in every worker."""
        opened = self.checkpoint
        digests = [opened.digest, opened.tokenizer_digest, self.prompt]
        return digests if self.modules is None else [*digests, self.modules.recipe()]

    def recipe(self):
        """List what the features depend on besides the text."""
        recipe = {
            "weights": self.checkpoint.digest,
            "revision": self.revision,
            "tokenizer": self.checkpoint.tokenizer_digest,
            "pooling": self.pooling,
            "layers": list(self.layers),
            "max_length": self.max_length,
            "normalize": self.normalize,
            "precision": str(self.dtype).removeprefix("torch."),
        }
        if self.prompt:
            recipe["prompt"] = self.prompt
        if self.is_cut:
            recipe["dimensions"] = self.width
        return recipe if self.modules is None else recipe | self.modules.recipe()

    def warn_of_modules(self):
        """Warn if a sentence-transformers model was trained for other features."""
        # The level of the caller, past the wrapper of set_output or of checks.
        if self.layers == (self.checkpoint.depth,):
            self.sentences.warn(self.checkpoint.name, self.estimator.pooling, 4)
        names = [name for name, text in self.sentences.prompts.items() if text]
        is_used = self.sentences.prompt or self.estimator.prompt is not None
        if names and not is_used and not self.checkpoint.told_of_prompts:
            self.checkpoint.told_of_prompts = True
            warnings.warn(
                f"{self.checkpoint.name!r} was trained with prompts, and none is put "
                f"before the texts. Pass the name of one as 'prompt', of "
                f"{', '.join(map(repr, names))}, or prompt='' for none.",
                UserWarning,
                stacklevel=4,
            )

    def warn_of_cuts(self):
        """Warn of the texts that were cut."""
        share = self.n_truncated / max(self.n_encoded, 1)
        of = f"the {self.n_encoded} texts encoded ({share:.0%})"
        lost = self.n_lost / max(self.n_tokens + self.n_lost, 1)
        shown = f"{lost:.0%}" if lost >= 0.01 else "less than 1%"
        lost = f", which leaves out {shown} of all tokens"
        # The level of the caller, past the wrapper of set_output or of checks.
        warn_of_cuts(self.n_truncated, of, self.max_length, self.limit, 4, lost)

    def encode(self, texts, out):
        """Fill `out`, here or in workers, yielding the positions that are done."""
        yield from self.encode_blocks(texts, (0, len(texts)), out)

    def encode_blocks(self, texts, bounds, out):
        """Encode as `encode` does, with no batch across the `bounds` of blocks."""
        parts = [
            start + part
            for start, stop in pairwise(bounds)
            if start < stop
            for part in cut_parts(texts[start:stop], self.max_length, self.batch_tokens)
        ]
        n_jobs = self.estimator.n_jobs
        if len(parts) > 1 and self.device.type == "cpu" and count_workers(n_jobs) > 1:
            yield from encode_in_workers(self, texts, parts, out)
        else:
            yield from self.encode_here(texts, parts, out)

    def encode_here(self, texts, parts, out):
        """Fill `out` part by part, yielding the positions of each batch."""
        from .._encoders._encoder import ArrangedLinear, PackedEncoder

        module = self.checkpoint.module(self.device, self.dtype)
        pad_id = self.checkpoint.pad_id
        self.checkpoint.refuse_blind_token(module, self.pooling)
        finish, lower = None, False
        if self.modules is not None:
            finish, lower = self.modules.build(self.device), self.modules.lower
        packs = self.device.type == "cpu" and PackedEncoder.supports(module)
        encoder = PackedEncoder(module, ArrangedLinear()) if packs else module

        def batches():
            for chunk in parts:
                part = [texts[i] for i in chunk]
                if self.prompt or lower:
                    part = [_prepare(text, self.prompt, lower) for text in part]
                tokens = tokenize(self.checkpoint, part, self.max_length)
                self.n_truncated += tokens.n_truncated
                self.n_lost += tokens.n_lost
                lengths = np.array([len(ids) for ids in tokens.ids])
                self.n_tokens += int(lengths.sum())
                if not lengths.all():  # no token at all, not even a special one
                    yield tokens, None, chunk[lengths == 0]
                for batch in cut(lengths, self.batch_tokens):
                    yield tokens, batch, chunk[batch]

        def run(task):
            tokens, batch, positions = task
            if batch is None:
                out[positions] = 0.0
                return positions, None
            features = encode(
                encoder,
                pack(tokens, batch, self.device)
                if packs
                else collate(tokens, batch, pad_id, self.device),
                layers=self.layers,
                pooling=self.pooling,
                normalize=self.normalize,
                finish=finish,
                width=self.width if self.is_cut else None,
            )
            return positions, features

        with self.progress(len(texts)) as progress:
            for positions, rows in in_torch_threads(run, batches(), self.device):
                if rows is not None:
                    out[positions] = rows.cpu().numpy()
                self.n_encoded += len(positions)
                progress.update(len(positions))
                yield positions

    def progress(self, total):
        """Show the texts encoded, as `verbose` says."""
        return progress_bar(self.verbose, total=total, desc="BertFeatures", unit="text")


def _prepare(text, prompt, lower):
    """Put a prompt before a text, or the first of a pair; lower its case."""
    if not isinstance(text, str):
        return _prepare(text[0], prompt, lower), _prepare(text[1], "", lower)
    text = prompt + text
    return text.lower() if lower else text


_DEATHS = 3  # of workers, before a call gives up


def count_workers(n_jobs):
    """Return the number of processes that joblib would use.

    It is 1 if joblib's backend uses threads: torch has its own.
    """
    backend, _ = get_active_backend()
    if getattr(backend, "uses_threads", False):
        return 1
    return effective_n_jobs(Parallel(n_jobs=n_jobs).n_jobs)


def spread(function, parts, n_jobs):
    """Yield (number, result) of a function of each part as processes finish them.

    Functions, arguments and results are pickled. The parts of a worker that dies go to
    another one; finished parts are kept. Raises `RuntimeError` if workers die
    repeatedly.
    """
    waiting = dict(enumerate(parts))
    for death in range(1, _DEATHS + 1):
        try:
            with closing(_run(function, list(waiting.items()), n_jobs)) as done:
                for number, result in done:
                    del waiting[number]
                    yield number, result
            return
        except BrokenExecutor as exc:
            if death == _DEATHS:
                raise RuntimeError(
                    f"workers died {death} times ({first_line(exc)}); "
                    f"{len(parts) - len(waiting)} of {len(parts)} parts were done. "
                    "Most often the memory was full: pass a smaller "
                    "'n_jobs', or n_jobs=1, which runs in this process and shows what "
                    "happens. With a cache the next call goes on where this one ended."
                ) from exc


def _run(function, parts, n_jobs):
    # Ray's backend, among others, gives its results all at once.
    backend, _ = get_active_backend()
    at_once = not getattr(backend, "supports_return_generator", False)
    workers = Parallel(
        n_jobs=n_jobs,
        batch_size=1,
        return_as="list" if at_once else "generator_unordered",
    )
    home = _process()
    yield from workers(delayed(_call)(home, function, *part) for part in parts)


def _call(home, function, number, arguments):
    # The user's own process keeps its threads: a sequential backend runs there.
    with nullcontext() if _process() == home else one_torch_thread():
        return number, function(*arguments)


def _process():
    return platform.node(), os.getpid()


# Encoding ----------------------------------------------------------------------------


def encode_in_workers(run, texts, parts, out):
    """Fill `out` (n, d) part by part, yielding the positions that are done.

    `run` is one call of `BertFeatures.transform`, which counts and reports what is
    done.
    """
    # Another folder or machine would resolve some of these otherwise.
    estimator = clone(run.estimator).set_params(
        model=run.checkpoint.name,
        device=str(run.device),
        precision=str(run.dtype).removeprefix("torch."),
        cache=None,
        n_jobs=1,
        verbose=0,
    )
    tasks = [
        (type(run), estimator, run.digests, [texts[i] for i in part]) for part in parts
    ]
    reported = set()
    with run.progress(len(texts)) as progress:
        for number, result in spread(_encode, tasks, run.estimator.n_jobs):
            features, counts, messages = result
            out[parts[number]] = features
            run.n_encoded += len(features)
            run.n_truncated += counts[0]
            run.n_tokens += counts[1]
            run.n_lost += counts[2]
            for message in sorted(messages - reported):
                reported.add(message)
                warnings.warn(message, UserWarning, stacklevel=2)
            progress.update(len(features))
            yield parts[number]


def _encode(make_run, estimator, digests, texts):
    """Encode a part, in a worker."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        run = make_run(estimator)
        if run.digests != digests:
            raise ValueError(
                f"'model' must be the same weights and tokenizer in every worker, and "
                f"{run.checkpoint.name!r} differs on {platform.node()!r}. Copy the "
                "folder there, or name a commit as 'revision'."
            )
        out = np.empty((len(texts), run.width), dtype=np.float32)
        for _ in run.encode_here(texts, [np.arange(len(texts))], out):
            pass
    messages = {str(w.message) for w in caught if w.category is UserWarning}
    return out, (run.n_truncated, run.n_tokens, run.n_lost), messages
