"""baal's draws of a linear head, in a process of its own: see benchmarks/mc_dropout.py.

Reads `features`, `weight`, `bias`, `rate` from a file of arrays; for every line on its
input it draws, and answers with seconds, mean spread and mean BALD.
"""

import json
import sys
from time import perf_counter, process_time

import numpy as np
import torch


def load(path):
    with np.load(path) as file:
        features, weight, bias = (
            torch.from_numpy(file[name]) for name in ("features", "weight", "bias")
        )
        linear = torch.nn.Linear(*reversed(weight.shape))
        with torch.no_grad():
            linear.weight.copy_(weight)
            linear.bias.copy_(bias)
        dropout = torch.nn.Dropout(float(file["rate"]))
    labels = torch.zeros(len(features), dtype=torch.long)
    data = torch.utils.data.TensorDataset(features, labels)
    return torch.nn.Sequential(dropout, linear), data


def describe(proba):
    """Mean spread of a probability, and mean BALD, of draws (n, k, t)."""

    def entropy(p):
        return -(p * np.log(np.maximum(p, 1e-30))).sum(axis=1)

    bald = entropy(proba.mean(axis=2)) - entropy(proba).mean(axis=1)
    return float(proba.std(axis=2).mean()), float(bald.mean())


def main():
    from baal.bayesian.dropout import MCDropoutModule
    from baal.modelwrapper import ModelWrapper, TrainingArgs

    out, sys.stdout = sys.stdout, sys.stderr
    torch.set_num_threads(1)
    head, data = load(sys.argv[1])
    head = MCDropoutModule(head)
    for line in sys.stdin:
        request = json.loads(line)
        wrapper = ModelWrapper(
            head, TrainingArgs(workers=0, use_cuda=False, **request["args"])
        )
        torch.manual_seed(request["seed"])
        start, clock = process_time(), perf_counter()
        logits = wrapper.predict_on_dataset(
            data, iterations=request["draws"], verbose=False
        )
        proba = torch.from_numpy(logits).softmax(dim=1).numpy()
        cpu, wall = process_time() - start, perf_counter() - clock
        spread, bald = describe(proba)
        answer = {"cpu": cpu, "wall": wall, "spread": spread, "bald": bald}
        out.write(json.dumps(answer) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
