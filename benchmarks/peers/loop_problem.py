"""The texts, labels and settings that every library gets, and the seconds it takes."""

import json
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from time import perf_counter, process_time

PHASES = ("precomputation", "fit", "query", "final_training")


@dataclass
class LoopProblem:
    """A pool whose labels are known, and how it is to be labeled."""

    texts: list
    labels: list  # of int from 0
    test_texts: list
    test_labels: list
    initial: list  # for each seed, positions
    model: str  # folder of the encoder
    batch: int = 50
    rounds: int = 10
    batches: list | None = None  # instead, where they differ
    max_length: int = 64
    normalize: bool = True  # rows of fixed features to unit length, in loop_features
    epochs: int = 3
    batch_size: int = 16
    lr: float = 2e-4
    freeze: int = 0  # layers, of the encoder that skactive trains in the end
    precision: str = "float32"  # of that training
    device: str = "cpu"

    @property
    def steps(self):
        """How many labels each round asks for."""
        same = [self.batch] * self.rounds
        return same if self.batches is None else self.batches

    @property
    def n_classes(self):
        return max(self.labels) + 1

    def write(self, path):
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path):
        return cls(**json.loads(path.read_text(encoding="utf-8")))


class Ledger:
    """Seconds on the clock, and of the processor, in each phase."""

    def __init__(self):
        self.wall = dict.fromkeys(PHASES, 0.0)
        self.cpu = dict.fromkeys(PHASES, 0.0)
        self.load = [os.getloadavg()[0]]

    @contextmanager
    def phase(self, name):
        clock, start = perf_counter(), process_time()
        yield
        self.wall[name] += perf_counter() - clock
        self.cpu[name] += process_time() - start
        self.load.append(os.getloadavg()[0])
