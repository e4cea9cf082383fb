"""Rounds of a loop: one label at a time, few labels, and what a session adds."""

import tempfile
from argparse import Namespace
from pathlib import Path
from time import process_time

from . import size


class Sequential:
    """One label at a time, vs. a plain loop over scikit-learn."""

    unit = "share"
    timeout = 600

    def track_share_of_scikit_learn(self):
        from sequential import SIDES, race
        from session import make_pool

        X, y = make_pool(size(20_000, 500), 384, 2)
        loops = {name: side(X, y, 0) for name, side in SIDES.items()}
        race(loops, 2)  # warms up
        _, cpu, _ = race(loops, size(150, 10))
        return cpu["skactive"] / cpu["plain scikit-learn"]


class FewLabels:
    """The recommended classifier with 500 labels, vs. a logistic regression."""

    params = size((4, 77), (4,))
    param_names = ("classes",)
    unit = "share"
    timeout = 600
    turns = size(3, 1)

    def setup_cache(self):
        import numpy as np
        from heads import measure

        args = Namespace(
            labels=size(500, 100), pool=size(10_000, 300), turns=self.turns
        )
        return {
            k: {
                name: float(np.median(seconds / found["LogisticRegression"]))
                for name, seconds in found.items()
            }
            for k in self.params
            for found in [measure(k, args)]
        }

    setup_cache.timeout = 900

    def track_few_label_classifier(self, shares, classes):
        return shares[classes]["FewLabelClassifier"]

    def track_text_classifier(self, shares, classes):
        return shares[classes]["make_text_classifier"]

    def track_round(self, shares, classes):
        return shares[classes]["round"]


class Rounds:
    """Rounds of one label in a session, vs. the product and the fit that each needs."""

    unit = "share"
    timeout = 600

    def setup_cache(self):
        from session import make_pool, run_rounds
        from sklearn.linear_model import LogisticRegression
        from threadpoolctl import threadpool_limits

        X, y = make_pool(size(20_000, 2_000), 384, 4)
        with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
            n_rounds = size(200, 30)
            seconds = run_rounds(Path(folder) / "rounds", X, y, n_rounds)
            product = fit = 0
            for n in range(10, n_rounds):
                start = process_time()
                model = LogisticRegression(max_iter=50).fit(X[:n], y[:n])
                middle = process_time()
                X @ model.coef_.T
                fit += middle - start
                product += process_time() - middle
        limits = {"asking": product, "training": fit}
        return {name: seconds[name][1] / limit for name, limit in limits.items()}

    setup_cache.timeout = 600

    def track_share_of_the_product(self, shares):
        return shares["asking"]

    def track_share_of_the_fit(self, shares):
        return shares["training"]


class Session:
    """An answer that is on the disk, vs. a write and an fsync of the same line."""

    unit = "share"

    def track_share_of_fsync(self):
        from session import compare_tell, make_pool

        X, y = make_pool(size(2_000, 300), 384, 4)
        with tempfile.TemporaryDirectory() as folder:
            return compare_tell(Path(folder), X, y, size(200, 20))
