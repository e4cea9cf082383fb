"""Runs made by hand, and a watch over pyplot's figures and settings."""

import matplotlib as mpl
import pytest

mpl.use("Agg")

from skactive.simulation import Run


def _make_run(scores, *, queried=None, batch=10, **info):
    """A run with these scores, one second of training and a half of asking a round."""
    queried = queried or [range(i * batch, (i + 1) * batch) for i in range(len(scores))]
    rounds = [
        {
            "queried": batch,
            "scores": {}
            if score is None
            else {"accuracy": score, "f1_macro": score / 2},
            "fit_seconds": 1.0,
            "query_seconds": 0.5 * (i > 0),
        }
        for i, (batch, score) in enumerate(zip(queried, scores, strict=True))
    ]
    return Run(rounds, info=info)


@pytest.fixture
def make_run():
    """A function that makes a run of given scores."""
    return _make_run


@pytest.fixture(autouse=True)
def no_pyplot_state():
    """Nothing outside a display's own figure is touched; no figure is left behind."""
    import matplotlib.pyplot as plt

    plt.close("all")
    before = dict(mpl.rcParams)
    yield
    assert dict(mpl.rcParams) == before
    plt.close("all")


@pytest.fixture
def ax():
    """Axes of the user's own, in a figure that pyplot does not know."""
    from matplotlib.figure import Figure

    return Figure().subplots()


@pytest.fixture
def three_strategies():
    """Two strategies and random, three seeds each, one metric with means by hand."""
    scores = {
        "margin": [[0.5, 0.75, 0.75], [0.25, 0.5, 1.0], [0.75, 1.0, 0.5]],
        "random": [[0.5, 0.5, 0.5], [0.25, 0.5, 0.75], [0.75, 0.5, 0.25]],
        "badge": [[0.5, 0.75, 1.0], [0.25, 0.75, 0.75], [0.75, 0.75, 0.875]],
    }
    return [
        _make_run(row, strategy=name, seed=seed)
        for name, rows in scores.items()
        for seed, row in enumerate(rows)
    ]
