"""What users write, for the type checker: no test runs this file."""

from collections.abc import Sequence
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import skactive
from skactive import (
    ActiveLearner,
    LabelingSession,
    get_strategy,
    get_strategy_names,
    simulate,
)
from skactive.bert import BertClassifier, BertFeatures
from skactive.linear_model import SequentialLogisticRegression
from skactive.simulation import Run, SimulatedLearner
from skactive.strategies import PointwiseStrategy, Strategy
from skactive.view import PoolView


def loop(texts: Sequence[str], labels: NDArray[Any]) -> float:
    """Label with a cheap model, then fine-tune once."""
    learner = ActiveLearner(
        LogisticRegression(), strategy="margin", batch_size=20, random_state=0
    )
    learner = learner.fit(texts[:10], labels[:10])
    asked = learner.query(texts, 5, candidates=np.ones(len(texts), dtype=bool))
    picks, scores = learner.query(texts, return_scores=True)
    learner.teach([texts[i] for i in picks], labels[picks], refit=False).refit()
    learner.set_params(estimator=BertClassifier("bert-base-uncased", freeze=3))
    print(asked.shape, scores.shape, learner.predict(texts))
    return float(learner.score(texts, labels))


class Longest(PointwiseStrategy):
    """Ask for the longest texts."""

    def score(self, view: PoolView) -> NDArray[np.float64]:
        """Return the length of each text."""
        return np.array([len(text) for text in view.X], dtype=float)


def strategies(texts: Sequence[str]) -> None:
    """Strategies come by name, as instances and as functions."""
    margin: Strategy = get_strategy("margin")
    names: Sequence[str] = get_strategy_names()
    ActiveLearner(SequentialLogisticRegression(), Longest())
    ActiveLearner(LogisticRegression(), lambda view: view.uniform())
    print(margin, names, texts)


def run(X: NDArray[np.float64], y: NDArray[Any], folder: str) -> None:
    """Simulate, save and load."""
    learner = ActiveLearner(LogisticRegression())
    result = simulate(learner, X, y, n_initial=10, n_rounds=5, X_test=X, y_test=y)
    assert_type(result, Run)
    SimulatedLearner(learner, n_initial=10, n_rounds=5).fit(X, y).predict(X)
    skactive.save(learner, folder)
    skactive.load(folder)


def label(texts: Sequence[str], folder: str) -> dict[Any, Any]:
    """Label by hand."""
    features = BertFeatures(pooling="mean", cache="memory", device="cpu")
    print(features.fit_transform(texts).shape)
    with LabelingSession(
        ActiveLearner(LogisticRegression()), texts, folder, classes=["ham", "spam"]
    ) as session:
        batch = session.ask(3)
        for _, text in batch:
            print(text)
        session.tell(batch.ids[:2], ["ham", "spam"])
        session.skip(batch.ids[2:])
        return dict(session.labels)
