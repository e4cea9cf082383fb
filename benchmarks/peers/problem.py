"""The rows that all libraries get, and how good what they ask for is."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from scipy.special import entr
from sklearn.linear_model import LogisticRegression

N_DRAWS = 20
CHUNK = 10_000


@dataclass
class Problem:
    """Labeled rows, then the pool, in one array; what to ask for."""

    rows: np.ndarray  # (m + n, d)
    labels: np.ndarray  # (m,)
    strategy: str
    batch: int
    folder: Path
    params: dict = field(default_factory=dict)
    seed: int = 0

    @property
    def m(self):
        return len(self.labels)

    @property
    def X_labeled(self):
        return self.rows[: self.m]

    @property
    def X_pool(self):
        return self.rows[self.m :]

    @property
    def classes(self):
        return np.unique(self.labels)

    def model(self):
        return LogisticRegression().fit(self.X_labeled, self.labels)

    def draws(self):
        """Class probabilities under draws of the model, (n, t, k), those of ours."""
        return np.load(self.draws_file)[: len(self.X_pool)]

    @property
    def draws_file(self):
        return self.folder / f"draws-{self.seed}.npy"

    def smaller(self, n=300, batch=10):
        """The same problem with fewer candidates."""
        return replace(self, rows=self.rows[: self.m + n], batch=batch)


def write_rows(folder, n, m, d, k, clusters=100, seed=0):
    """Write m labeled rows and n others; the first are the same for every n.

    Singular values fall as (1 + i)^(-1/4) (1 - i / d), those of MiniLM's embeddings of
    news do much the same; so are the distance to the nearest row, about 0.9, and the
    accuracy of the model, about 0.9.
    """
    rng = np.random.default_rng(seed)
    order = np.arange(d)
    spectrum = (1 + order) ** -0.25 * (1 - order / d)
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0] * spectrum[:, None]
    turn = turn.astype(np.float32)
    classes = rng.normal(size=(k, 1, d))
    centers = 0.25 * classes + rng.normal(size=(k, clusters, d))
    centers = centers.reshape(k * clusters, d).astype(np.float32)

    def make(n, *seed):
        rng = np.random.default_rng(seed)
        cluster = rng.integers(k * clusters, size=n)
        X = (rng.standard_normal((n, d), np.float32) + centers[cluster]) @ turn
        return X / np.linalg.norm(X, axis=1, keepdims=True), cluster // clusters

    labeled, y = make(m, seed, 0)
    np.save(folder / "labels.npy", y)
    with open(folder / "rows.f32", "wb") as file:
        labeled.tofile(file)
        for start in range(0, n, CHUNK):
            make(CHUNK, seed, 1 + start)[0][: n - start].tofile(file)


def read_problem(folder, d, n, strategy, batch, params):
    """Read n rows into place: no copy is left in the heap, nor in the peak."""
    labels = np.load(folder / "labels.npy")
    n += len(labels)
    rows = np.fromfile(folder / "rows.f32", np.float32, n * d).reshape(n, d)
    return Problem(rows, labels, strategy, batch, folder, params)


def covering_radius(problem, picks):
    found = nearest_squares(problem, np.r_[problem.X_labeled, problem.X_pool[picks]])
    return np.sqrt(found.max())


def distortion(problem, picks):
    found = nearest_squares(problem, problem.X_pool[picks])
    return found.mean()


def nearest_squares(problem, centers):
    """Of rows of unit length."""
    parts = range(0, len(problem.X_pool), CHUNK)
    near = [(problem.X_pool[i : i + CHUNK] @ centers.T).max(axis=1) for i in parts]
    return 2 - 2 * np.concatenate(near).astype(float)


def mean_entropy(problem, picks):
    proba = problem.model().predict_proba(problem.X_pool[picks]).astype(float)
    return entr(proba).sum(axis=1).mean()


def joint_information(problem, picks):
    """Sum over all configurations of the labels: a row of `joint` for each."""
    draws = problem.draws()[picks].astype(float)
    t = draws.shape[1]
    joint = np.ones((1, t))
    for item in draws[:-1]:
        joint = (joint[:, None] * item.T).reshape(-1, t)
    joint = (joint @ draws[-1]) / t  # the last label, and the mean over the draws
    own = entr(draws).sum(axis=2).mean(axis=1).sum()
    return entr(joint).sum() - own


# What an answer achieves: a name and a number. Radius and distortion are to be small.
QUALITY = {
    "batchbald": ("information", joint_information),
    "coreset": ("radius", covering_radius),
    "embedding_kmeans": ("distortion", distortion),
    "entropy": ("entropy", mean_entropy),
}
