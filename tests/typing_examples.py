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
from skactive.analysis import (
    LabelsNeeded,
    LearningCurve,
    area_under_curve,
    describe_batches,
    diagnose,
    equal_time,
    group_runs,
    labels_needed,
    labels_to_reach,
    learning_curve,
    mean_jaccard,
    welch_t,
)
from skactive.analysis._diagnosis import Diagnosis
from skactive.bert import BertClassifier, BertFeatures, BertRegressor
from skactive.cli import main
from skactive.datasets import load_docstrings, load_table
from skactive.linear_model import SequentialLogisticRegression
from skactive.plotting import (
    ActiveLearningCurveDisplay,
    LabelsNeededDisplay,
    LayerChangeDisplay,
    LedgerDisplay,
    OverlapDisplay,
    ScoreTimeDisplay,
    write_report,
)
from skactive.simulation import Run, SimulatedLearner
from skactive.stopping import LabelBudget, StoppingRule
from skactive.strategies import PointwiseStrategy, Strategy
from skactive.view import PoolView


def loop(texts: Sequence[str], labels: NDArray[Any]) -> float:
    """Label with a cheap model, then fine-tune once."""
    learner = ActiveLearner(
        LogisticRegression(), strategy="margin", batch_size=20, random_state=0
    )
    learner = learner.fit(texts[:10], labels[:10])
    queried = learner.query(texts, 5, candidates=np.ones(len(texts), dtype=bool))
    picks, scores = learner.query(texts, return_scores=True)
    learner.teach([texts[i] for i in picks], labels[picks], refit=False).refit()
    learner.set_params(estimator=BertClassifier("bert-base-uncased", freeze=3))
    print(queried.shape, scores.shape, learner.predict(texts))
    return float(learner.score(texts, labels))


def misspell() -> None:
    """The type checker finds parameters that do not exist."""
    BertClassifier(frezee=2)  # type: ignore[call-arg]
    BertFeatures(poling="cls")  # type: ignore[call-arg]
    BertRegressor(warm_up=0.1)  # type: ignore[call-arg]


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


def analyze(margin: list[Run], random: list[Run], pool: NDArray[np.float64]) -> str:
    """Compare the runs of two strategies."""
    curve = learning_curve(margin, "accuracy", method="t")
    assert_type(curve, LearningCurve)
    assert_type(labels_to_reach(curve, 0.9), float | None)
    print(area_under_curve(curve, start=10) - area_under_curve(random[0]))
    print(mean_jaccard(margin, random).mean, describe_batches(margin[0], pool))
    groups = group_runs([*margin, *random], groupby=("learner", "strategy"))
    assert_type(labels_needed(groups, random, 500, scoring="f1"), LabelsNeeded)
    print(equal_time(groups, [10, 60]), equal_time(margin, phases=["query"]))
    print(welch_t([0.8, 0.9], np.array([0.7, 0.8])).p_value.is_integer())
    verdict = diagnose(margin, random, criterion="end")
    assert_type(verdict, Diagnosis)
    return str(verdict)


def draw(runs: dict[str, list[Run]], model: BertClassifier) -> None:
    """Each `from_*` method returns the display, which `plot` draws again."""
    display = ActiveLearningCurveDisplay.from_runs(runs, reference=0.95, band=None)
    assert_type(display.plot(score_name="accuracy"), ActiveLearningCurveDisplay)
    OverlapDisplay.from_runs(runs, "random", baseline=None)
    LabelsNeededDisplay.from_runs(runs, "random", 500).plot()
    LedgerDisplay.from_runs(runs, phases=["fit"], log=True)
    ScoreTimeDisplay.from_runs(runs, phases=["query"]).plot()
    ScoreTimeDisplay.from_history({"all layers": model})
    LayerChangeDisplay.from_estimator(model).plot(log=True)


def read(folder: str) -> int:
    """Read tables and folders of runs."""
    texts, labels = load_docstrings(max_per_library=100, return_X_y=True)
    table = load_table("pairs.csv", text=("first", "second"), label="y")
    print(texts, labels, table.data)
    text, written = write_report(folder)
    print(text, [path.name for path in written])
    return main(["report", folder])


def stop(run: Run, learner: ActiveLearner, texts: Sequence[str]) -> bool:
    """Rules combine to a rule."""
    rule: StoppingRule = LabelBudget(100) | LabelBudget(200)
    return rule.start().check(run, learner, texts)
