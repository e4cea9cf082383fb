"""Which model labels and which is kept."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, simulate
from skactive.bert import BertClassifier, BertFeatures
from skactive.simulation import _protocols as protocols
from skactive.simulation import al_ft, al_lr, prepal, proxy, transfer

rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(-1, 1, (60, 2)), rng.normal(1, 1, (60, 2))])
y = np.repeat(["no", "yes"], 60)
OPTIONS = {"n_initial": 8, "n_rounds": 3, "X_test": X, "y_test": y}

light, heavy = LogisticRegression(), GaussianNB()


class Encoder(GaussianNB):
    def __init__(self, model="tiny"):
        super().__init__()
        self.model = model

    def get_params(self, deep=True):
        return {"model": self.model}


def make(estimator=light):
    return ActiveLearner(estimator, "entropy", batch_size=5, random_state=0)


@pytest.mark.parametrize(
    ("protocol", "name"), [(al_lr, "AL+LR"), (al_ft, "AL+FT")], ids=["al_lr", "al_ft"]
)
def test_the_model_in_the_loop_is_kept(protocol, name):
    run = protocol(make(), X, y, estimator=heavy, **OPTIONS)
    alone = simulate(make(heavy), X, y, **OPTIONS)
    assert_array_equal(run.queried, alone.queried)
    assert_array_equal(run.scores, alone.scores)
    assert run.final_scores == {"accuracy": run.scores[-1]}
    assert run.info == {**alone.info, "protocol": name}
    assert run.ledger["final_training"] == 0
    own = protocol(make(heavy), X, y, **OPTIONS)
    assert own == run


@pytest.mark.parametrize(
    ("protocol", "name"),
    [(prepal, "PRepAL"), (transfer, "Transfer"), (proxy, "proxy")],
    ids=["prepal", "transfer", "proxy"],
)
def test_labels_are_handed_over(protocol, name):
    learner = make(heavy)
    run = protocol(learner, X, y, estimator=light, final_estimator=heavy, **OPTIONS)
    # Algorithm 1 of PRepAL, written out.
    loop = make(light).fit(X[run.rounds[0]["queried"]], y[run.rounds[0]["queried"]])
    for record in run.rounds[1:]:
        unlabeled = ~np.isin(np.arange(120), run.queried[: record["n_labeled"] - 5])
        ask = loop.query(X, candidates=unlabeled)
        assert ask.tolist() == record["queried"]
        loop.teach(X[ask], y[ask])
        assert record["scores"] == {"accuracy": loop.score(X, y)}
    loop.set_params(estimator=heavy).refit()
    assert run.final_scores == {"accuracy": loop.score(X, y)}
    assert run.info["protocol"] == name
    assert run.ledger["final_training"] > 0
    assert learner.estimator is heavy
    assert not hasattr(learner, "estimator_")


def test_transfer_is_to_another_encoder():
    with pytest.raises(
        ValueError, match=r"'final_estimator' must have another .*'tiny' for both"
    ):
        transfer(make(Encoder()), X, y, final_estimator=Encoder(), **OPTIONS)
    with pytest.raises(ValueError, match="must have another encoder"):
        transfer(
            make(),
            X,
            y,
            estimator=Encoder("b"),
            final_estimator=Encoder("b"),
            **OPTIONS,
        )
    run = transfer(make(Encoder()), X, y, final_estimator=Encoder("large"), **OPTIONS)
    assert run.final_scores


def test_final_estimators_where_they_belong():
    with pytest.raises(ValueError, match=r"AL\+LR keeps the model of its last round"):
        al_lr(make(), X, y, final_estimator=heavy)
    with pytest.raises(ValueError, match="PRepAL trains last, got None"):
        prepal(make(), X, y, final_estimator=None)


def test_encoders(tiny_bert):
    texts = [f"{'good' if i % 2 else 'bad'} film number {i}" for i in range(40)]
    labels = np.arange(40) % 2
    features = make_pipeline(BertFeatures(tiny_bert), LogisticRegression())
    tune = BertClassifier(tiny_bert, max_epochs=1)
    options = {"n_initial": 6, "n_rounds": 2, "X_test": texts, "y_test": labels}
    prepared = prepal(make(features), texts, labels, final_estimator=tune, **options)
    tuned = al_ft(make(features), texts, labels, estimator=tune, **options)
    assert prepared.score_names == tuned.score_names == ["accuracy"]
    assert set(prepared.final_scores) == {"accuracy"}
    assert min(prepared.ledger.values()) > 0
    assert tuned.ledger["precomputation"] == 0
    with pytest.raises(ValueError, match="must have another encoder"):
        transfer(make(features), texts, labels, final_estimator=tune, **options)


def test_a_protocol_can_be_interrupted(tmp_path):
    options = {**OPTIONS, "final_estimator": heavy}
    run = prepal(make(), X, y, folder=tmp_path, **options)
    path = tmp_path / "rounds.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))
    assert prepal(make(), X, y, folder=tmp_path, **options) == run


class AskedFor(BaseEstimator):
    """A strategy that takes no time."""

    requires = frozenset()
    optional = frozenset()

    def select(self, view, n_queries):
        return np.arange(n_queries)


SCHEDULES = {
    "PREPAL": (2000, 39, 50, 20_100),
    "PREPAL_SEQUENTIAL": (2000, 1950, 50, 20_100),
    "GRIESSHABER": (910, 9, 10, 20_000),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_numbers_of_schedules(name):
    schedule = getattr(protocols, name)
    n_labels, n_rounds, first, _ = SCHEDULES[name]
    assert (schedule["n_initial"], schedule["n_rounds"]) == (first, n_rounds)
    assert first + n_rounds * schedule["batch_size"] == n_labels
    with pytest.raises(TypeError):
        schedule["n_rounds"] = 1


@pytest.mark.parametrize(
    "name",
    [
        "PREPAL",
        pytest.param("PREPAL_SEQUENTIAL", marks=pytest.mark.slow),
        "GRIESSHABER",
    ],
)
def test_simulations_of_schedules(name):
    n_labels, n_rounds, first, pool = SCHEDULES[name]

    class Still(GaussianNB):
        """Learn nothing, quickly."""

        def fit(self, X, y):
            self.classes_ = np.array([0, 1])
            return self

    learner = ActiveLearner(Still(), AskedFor(), cold_start=AskedFor(), random_state=0)
    schedule = getattr(protocols, name)
    many = np.arange(20_100).reshape(-1, 1)
    run = al_lr(learner, many, many.ravel() % 2, **schedule)
    assert run.n_labeled[-1] == n_labels
    assert len(run.rounds) == n_rounds + 1
    assert run.n_labeled[0] == first
    assert run.info["pool_size"] == pool
    if name == "GRIESSHABER":
        assert_array_equal(run.queried, range(910))
