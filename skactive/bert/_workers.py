"""Spread the encoding of many texts over worker processes of one thread each."""

import os
import platform
import warnings
from concurrent.futures import BrokenExecutor
from contextlib import closing, nullcontext

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.base import clone

from .._utils._threads import one_torch_thread

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
                    f"workers died {death} times ({type(exc).__name__}: "
                    f"{_first_line(exc)}); {len(parts) - len(waiting)} of {len(parts)} "
                    "parts were done. Most often the memory was full: pass a smaller "
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


def _first_line(exc):
    return (str(exc).strip().splitlines() or [""])[0]


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
            features, n_truncated, messages = result
            out[parts[number]] = features
            run.n_encoded += len(features)
            run.n_truncated += n_truncated
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
                f"'model' must be the same weights and tokenizer in every worker, got "
                f"others in {run.checkpoint.name!r} on {platform.node()!r}. Copy the "
                "folder there, or name a commit as 'revision'."
            )
        out = np.empty((len(texts), run.width), dtype=np.float32)
        for _ in run.encode_here(texts, [np.arange(len(texts))], out):
            pass
    messages = {str(w.message) for w in caught if w.category is UserWarning}
    return out, run.n_truncated, messages
