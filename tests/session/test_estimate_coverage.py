"""How often the intervals of estimates hold, in simulated sessions on real texts."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner, LabelingSession
from skactive.bert import BertFeatures
from skactive.session._evidence import find_evidence

pytestmark = [
    pytest.mark.slow,
    pytest.mark.shared_data,
    pytest.mark.weights,
    pytest.mark.filterwarnings("ignore:.* texts encoded .* have more than:UserWarning"),
]

N_SESSIONS = 50  # per data set
N_LABELS, HORIZON = 160, 100
TEXTS = {"ag_news/test": 1000, "sst2/train": 1000}


@pytest.fixture(scope="module")
def features(shared_data, minilm):
    """Return features and classes of the texts of each data set."""
    options = {"max_length": 32, "normalize": True, "precision": "float32"}
    encoder = BertFeatures(minilm, **options)
    found = {}
    for name, n in TEXTS.items():
        table = shared_data(name).sample(n, random_state=0)
        X = encoder.fit_transform(table["text"].tolist())
        found[name] = np.asarray(X, dtype=float), table["label"].to_numpy()
    return found


def simulate_session(X, y, folder, seed):
    """Return the estimate with 160 labels, the truth, and the realized gain.

    The truth is the accuracy on all texts of the pool, each predicted by a model
    without its label, and the gain is that on the texts that are still not labeled
    after 100 more.
    """
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))
    X, y = X[rows], y[rows].tolist()
    learner = ActiveLearner(
        LogisticRegression(), "margin", batch_size=20, random_state=seed
    )
    n_pool = len(y) - 200
    with LabelingSession(learner, X[:n_pool], folder, audit_every=5) as session:

        def label(n):
            while len(session.labels) < n:
                batch = session.ask()
                session.tell(batch.ids, [y[id] for id in batch.ids])
            left = np.ones(len(y), dtype=bool)
            left[list(session.labels)] = False
            return session.learner.predict(X) == y, left

        right, _ = label(N_LABELS)
        estimate = session.estimate(horizon=HORIZON)
        evidence = find_evidence(session._core, blind=True)
        guesses = np.array(evidence.classes)[evidence.predicted.argmax(axis=1)]
        truth = np.mean(guesses == np.array(y)[evidence.positions])
        later, still_left = label(N_LABELS + HORIZON)
    gain = later[still_left].mean() - right[still_left].mean()
    return estimate, truth, gain


@pytest.fixture(scope="module")
def sessions(features, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sessions")
    return {
        name: [
            simulate_session(X, y, folder / f"{i}-{seed}", seed)
            for seed in range(N_SESSIONS)
        ]
        for i, (name, (X, y)) in enumerate(features.items())
    }


def covers(interval, value):
    low, high = interval
    return low <= value <= high


def test_the_interval_of_the_accuracy_holds(sessions, record_property):
    found = [one for of in sessions.values() for one in of]
    assert min(estimate.n_audited for estimate, *_ in found) >= 32
    covered = [covers(e.accuracy_interval, truth) for e, truth, _ in found]
    halves = [
        covers((np.array(e.accuracy_interval) + e.accuracy) / 2, truth)
        for e, truth, _ in found
    ]
    widths = [np.diff(e.accuracy_interval)[0] for e, *_ in found]
    errors = [e.accuracy - truth for e, truth, _ in found]
    record_property("coverage", float(np.mean(covered)))
    record_property("width", float(np.mean(widths)))
    record_property("bias", float(np.mean(errors)))
    # Rounding differs between machines, and with it which items are chosen: the share
    # of 100 sessions has a standard error of 1.4 points around the 98 % that were seen,
    # that of half as wide intervals one of 4.1 around 78 %, and the mean error one of
    # 0.7 points.
    assert np.mean(covered) >= 0.92
    assert 0.65 <= np.mean(halves) <= 0.91
    assert abs(np.mean(errors)) < 0.025
    assert np.mean(widths) < 0.38  # from 33 labels in the mean


def test_the_interval_of_the_gain_holds(sessions, record_property):
    found = [one for of in sessions.values() for one in of]
    given = [(e, gain) for e, _, gain in found if e.gain is not None]
    covered = [covers(e.gain_interval, gain) for e, gain in given]
    widths = [np.diff(e.gain_interval)[0] for e, _ in given]
    record_property("given", len(given))
    record_property("coverage", float(np.mean(covered)))
    record_property("width", float(np.mean(widths)))
    assert len(given) >= 0.8 * len(found)
    assert np.mean(covered) >= 0.92
    assert np.mean(widths) < 0.07
