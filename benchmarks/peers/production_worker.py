"""A process that predicts texts whenever a line arrives, for export_onnx.py.

    python production_worker.py KIND FOLDER TEXTS

KIND is "runtime" (an export), "skactive" (a saved model) or "sentence-transformers"
(the ONNX file of its encoder: embeddings only). TEXTS is a JSON list. The word "all"
predicts all texts, "one" 50 of them, one at a time. The answer is a line of JSON with
processor seconds, seconds and the peak of memory in MB; with "all" also probabilities.
"""

import json
import os
import re
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"


def make_predict(kind, folder):
    """Return a function of texts."""
    if kind == "runtime":
        from skactive import runtime

        return runtime.load(folder, n_threads=1).predict_proba
    if kind == "skactive":
        import torch

        import skactive

        torch.set_num_threads(1)
        model = skactive.load(folder)
        caches = [name for name in model.get_params() if name.endswith("cache")]
        return model.set_params(**dict.fromkeys(caches)).predict_proba
    import onnxruntime
    from sentence_transformers import SentenceTransformer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = SentenceTransformer(
        folder, backend="onnx", model_kwargs={"session_options": options}
    )
    model.max_seq_length = 64
    return lambda texts: model.encode(texts, batch_size=32)


def main():
    """Answer lines until there are none."""
    kind, folder, path = sys.argv[1:]
    with open(path, encoding="utf-8") as stream:
        texts = json.load(stream)
    predict = make_predict(kind, folder)
    predict(texts[:2])
    for line in sys.stdin:
        is_whole = json.loads(line) == "all"
        chunks = [texts] if is_whole else [[text] for text in texts[:50]]
        start = time.process_time(), time.perf_counter()
        found = [predict(chunk) for chunk in chunks]
        seconds = time.process_time() - start[0], time.perf_counter() - start[1]
        with open("/proc/self/status") as status:
            memory = int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]) / 1e3
        answer = {"processor": seconds[0], "wall": seconds[1], "memory": memory}
        if is_whole:
            answer["proba"] = found[0].tolist()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
