"""Fine-tuning vs. a plain loop over transformers, and in bfloat16."""

import tempfile
from pathlib import Path
from statistics import median

from . import make_texts, size


class FineTune:
    """Seconds of an epoch; the sides have the same texts, order, head and rates."""

    params = size((5, 0), (5,))
    param_names = ("freeze",)
    unit = "share"
    timeout = 900

    def setup(self, freeze):
        import torch
        from finetune import without_dropout

        torch.set_num_threads(1)
        self.X, self.y = make_texts(size(64, 16))
        self.folder = tempfile.TemporaryDirectory()
        self.model = without_dropout(Path(self.folder.name) / "model")
        # Later fits find the activations of the frozen layers.
        self.head = self.train(freeze, "float32")[1]["head"]

    def teardown(self, freeze):
        self.folder.cleanup()

    def train(self, freeze, precision):
        """Return wall and CPU seconds of an epoch, and the notes."""
        from finetune import train_skactive

        epoch, _, notes = train_skactive(
            self.model, self.X, self.y, freeze, precision, self.n_epochs, "cpu"
        )
        return epoch, notes

    n_epochs = size(2, 1)

    def track_share_of_transformers(self, freeze):
        import numpy as np
        from finetune import LOSS_TOLERANCE, train_transformers

        ratios = []
        for _ in range(size(3, 1)):
            ours, notes = self.train(freeze, "float32")
            theirs, _, expected = train_transformers(
                self.model, self.X, self.y, freeze, self.head, self.n_epochs, "cpu"
            )
            error = np.abs(np.subtract(notes["losses"], expected)).max()
            if error > LOSS_TOLERANCE["float32"]:
                raise RuntimeError(f"the losses differ by {error}")
            ratios.append(ours[1] / theirs[1])
        return median(ratios)

    def track_share_of_two_threads(self, freeze):
        """Seconds on the wall of one thread; 0.5 on two idle cores."""
        import torch

        ratios = []
        for _ in range(size(3, 1)):
            seconds = []
            for n_threads in (2, 1):
                torch.set_num_threads(n_threads)
                seconds.append(self.train(freeze, "float32")[0][0])
            ratios.append(seconds[0] / seconds[1])
        return median(ratios)

    def track_share_of_float32_in_bfloat16(self, freeze):
        self.train(freeze, "bfloat16")
        return median(
            self.train(freeze, "bfloat16")[0][1] / self.train(freeze, "float32")[0][1]
            for _ in range(size(3, 1))
        )
