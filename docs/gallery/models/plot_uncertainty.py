"""
Monte-Carlo dropout or an ensemble?
===================================

Both turn a network into many networks, whose disagreement shows what the labels do not
decide. An ensemble trains each of them. Monte-Carlo dropout trains one, and switches
random units off. The pictures compare their boundaries and what BALD selects.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_moons
from sklearn.ensemble import VotingClassifier
from torch import nn

from skactive import ActiveLearner
from skactive.posterior import sample_proba

# %%
# The network has two hidden layers with dropout. Its method ``sample_proba`` is all
# that a strategy needs: draw t has one mask of units for all points, so that it is one
# network.


class SharedDropout(nn.Module):
    """Switch the same random units off for all rows."""

    def forward(self, H):
        mask = nn.functional.dropout(torch.ones(1, H.shape[1]), 0.2, self.training)
        return H * mask


class Net(ClassifierMixin, BaseEstimator):
    """Classify points in the plane."""

    def __init__(self, random_state=0):
        self.random_state = random_state

    @torch.random.fork_rng()  # the global generator stays as it is
    def fit(self, X, y):
        self.classes_, codes = np.unique(y, return_inverse=True)
        torch.manual_seed(self.random_state)
        self.net_ = nn.Sequential(
            *(nn.Linear(2, 64), nn.ReLU(), SharedDropout()),
            *(nn.Linear(64, 64), nn.ReLU(), SharedDropout()),
            nn.Linear(64, len(self.classes_)),
        )
        optimizer = torch.optim.AdamW(self.net_.parameters(), lr=0.01)
        X, codes = torch.tensor(X, dtype=torch.float32), torch.tensor(codes)
        for _ in range(300):
            optimizer.zero_grad()
            nn.functional.cross_entropy(self.net_(X), codes).backward()
            optimizer.step()
        self.net_.eval()
        return self

    @torch.no_grad()
    def predict_proba(self, X):
        X = torch.tensor(X, dtype=torch.float32)
        return self.net_(X).softmax(dim=1).double().numpy()

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    @torch.random.fork_rng()
    def sample_proba(self, X, n_draws=50, random_state=None):
        torch.manual_seed(np.random.RandomState(random_state).randint(2**31))
        self.net_.train()
        draws = [self.predict_proba(X) for _ in range(n_draws)]
        self.net_.eval()
        return np.stack(draws, axis=1)


# %%
# Fifty labeled points lie on two arcs. The pool covers a much larger region. The
# ensemble is a ``VotingClassifier`` of ten networks with different first weights.

X, y = make_moons(50, noise=0.15, random_state=0)
X_pool = np.random.default_rng(0).uniform([-4, -3], [5, 3.5], size=(600, 2))
ensemble = VotingClassifier(
    [(f"net {seed}", Net(random_state=seed)) for seed in range(10)], voting="soft"
)
Net().fit(X, y)  # the first run in a process is slower: leave it out
models = {}
for name, model in [("Monte-Carlo dropout", Net()), ("ensemble", ensemble)]:
    start = time.perf_counter()
    models[name] = model.fit(X, y)
    print(f"{name}: {time.perf_counter() - start:.1f} s of training")

# %%
# The upper row shows the boundaries of ten networks. The lower row shows their
# disagreement: the entropy of the mean prediction minus the mean entropy of the ten,
# the value that BALD maximizes. Crosses are the ten points that ``"bald"`` selects.

side = np.linspace(-4, 5, 100), np.linspace(-3, 3.5, 75)
grid = np.stack(np.meshgrid(*side), axis=-1)


def entropy(proba):
    return -np.sum(proba * np.log(np.maximum(proba, 1e-12)), axis=-1)


fig, axes = plt.subplots(
    2, 2, figsize=(10, 7.5), sharex=True, sharey=True, layout="constrained"
)
for (above, below), (name, model) in zip(axes.T, models.items()):
    draws = sample_proba(model, grid.reshape(-1, 2), 10, random_state=0)
    for t in range(10):
        own = draws[:, t, 1].reshape(grid.shape[:2])
        above.contour(*side, own, levels=[0.5], colors="#555555", linewidths=0.8)
    above.set_title(f"{name}: ten boundaries")

    disagreement = entropy(draws.mean(axis=1)) - entropy(draws).mean(axis=1)
    picture = below.pcolormesh(
        *side,
        disagreement.reshape(grid.shape[:2]),
        cmap="Blues",
        vmin=0,
        vmax=np.log(2),
        shading="gouraud",
    )
    batch = ActiveLearner(model, "bald", random_state=0).fit(X, y).query(X_pool, 10)
    below.plot(*X_pool[batch].T, "kx", ms=8, mew=2, label="selected")
    below.set_title(f"{name}: disagreement")
    for ax in (above, below):
        ax.scatter(*X[y == 0].T, c="#0072B2", marker="s", s=14, label="class 0")
        ax.scatter(*X[y == 1].T, c="#D55E00", marker="^", s=18, label="class 1")
        ax.set(xlim=(-4, 5), ylim=(-3, 3.5))
axes[1, 1].legend(loc="lower right", fontsize="small")
fig.colorbar(picture, ax=axes[1], label="nats")
plt.show()

# %%
# Between the arcs, where labels are, the ten boundaries are close to each other. Where
# no labels are, they fan out, and ``"bald"`` selects there. The fans of the ensemble
# are wider: its networks start from different weights, while those of dropout share
# what one training found. On the far left, no point is labeled and all networks agree:
# agreement is no proof that a prediction is right.
#
# Dropout costs one training, and its fans depend on the dropout rate, here 0.2. The
# ensemble costs ten. The picture shows one data set in the plane. It does not show
# which of them selects better labels: compare them on data of your own.
#
# :class:`~skactive.bert.BertClassifier` has ``sample_proba`` by Monte-Carlo dropout.
# Its parameter ``mc_dropout`` sets where dropout stays on.
