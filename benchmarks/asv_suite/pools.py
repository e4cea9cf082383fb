"""Queries: what a learner adds to a prediction, and pools in a file."""

import tempfile
from pathlib import Path
from time import process_time

from . import share, size


class Overhead:
    """`query` by entropy vs. predict_proba, entropy and argpartition alone."""

    params = size(("whole pool", "candidates=mask"), ("candidates=mask",))
    param_names = ("rows",)
    unit = "share"

    def setup(self, rows):
        import numpy as np
        from session import make_pool
        from sklearn.linear_model import LogisticRegression

        from skactive import ActiveLearner

        self.X, y = make_pool(size(100_000, 2_000), 384, 4)
        estimator = LogisticRegression(max_iter=50)
        self.learner = ActiveLearner(estimator, strategy="entropy", random_state=0)
        self.learner.fit(self.X[:500], y[:500])
        everything = rows == "whole pool"
        self.candidates = None if everything else np.arange(len(self.X)) >= 500

    def select(self):
        """Return what scikit-learn and NumPy alone select."""
        import numpy as np
        from scipy.special import xlogy

        X = self.X if self.candidates is None else self.X[self.candidates]
        proba = self.learner.estimator_.predict_proba(X)
        entropy = -xlogy(proba, proba).sum(axis=1)
        top = np.argpartition(-entropy, 100)[:100]
        top = top[np.argsort(-entropy[top])]
        return top + (len(self.X) - len(X))  # the first rows are no candidates

    def query(self):
        return self.learner.query(self.X, 100, candidates=self.candidates)

    def track_share_of_the_prediction(self, rows):
        if set(self.select()) != set(self.query()):
            raise RuntimeError("the two sides select different items")
        return share(self.query, self.select, size(9, 1))


class FilePool:
    """A query for 100 of a memory-mapped pool of float16."""

    params = size(
        ("margin", "entropy", "bald", "badge", "coreset", "embedding_kmeans"),
        ("margin", "coreset"),
    )
    param_names = ("strategy",)
    timeout = 600
    timer = process_time
    number = 1

    def setup(self, strategy):
        import numpy as np
        from memory import write_pool
        from sklearn.linear_model import LogisticRegression

        from skactive import ActiveLearner

        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name)
        write_pool(path, size(50_000, 2_000), 384)
        labeled = np.load(path / "labeled.npz")
        self.X = np.load(path / "pool.npy", mmap_mode="r")
        self.learner = ActiveLearner(LogisticRegression(), strategy, random_state=0)
        self.learner.fit(labeled["X"], labeled["y"])
        self.learner.query(labeled["X"], 5)  # so that all code is loaded

    def teardown(self, strategy):
        self.folder.cleanup()

    def time_query(self, strategy):
        self.learner.query(self.X, 100)

    def track_memory(self, strategy):
        """Growth of the process's own memory during a query."""
        from memory import Peak, own_memory

        before = own_memory()
        with Peak() as peak:
            self.learner.query(self.X, 100)
        return (peak.highest - before) / 1e6

    track_memory.unit = "MB"
