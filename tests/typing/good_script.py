"""What users write: mypy and pyright find no error in it. It is never run."""

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
    make_final_classifier,
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
from skactive.project import Project
from skactive.semi_supervised import MixtureClassifier, SelfTraining
from skactive.session._pool import Batch
from skactive.simulation import Run, SimulatedLearner, run_experiment
from skactive.stopping import LabelBudget, StoppingRule
from skactive.strategies import Density, PointwiseStrategy, Strategy
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


def know_results(learner: ActiveLearner, texts: list[str], y: list[str]) -> None:
    """Results have types: `assert_type` fails for Any."""
    assert_type(learner.fit(texts, y).teach(texts, y).refit(), ActiveLearner)
    assert_type(learner.query(texts), NDArray[np.intp])
    assert_type(learner.set_params(batch_size=3), ActiveLearner)
    learner.set_fit_request(sample_weight=True)
    assert_type(learner.predict(X=texts), NDArray[Any])
    assert_type(learner.predict_proba(texts), NDArray[Any])
    assert_type(learner.decision_function(texts), NDArray[Any])
    assert_type(learner.transform(texts), NDArray[Any])
    assert_type(learner.classes_, NDArray[Any])
    assert_type(learner.score(texts, y), float)
    assert_type(get_strategy("margin", aggregate="max"), Strategy)
    assert_type(make_final_classifier(learner), MixtureClassifier)
    assert_type(SelfTraining(LogisticRegression()).fit(texts, y), SelfTraining)
    assert_type(SelfTraining(None).predict_proba(texts), NDArray[Any])
    model = BertClassifier(pooling="cls", freeze="all", mc_dropout=None, lr="auto")
    assert_type(model.fit(texts, y).partial_fit(texts, y), BertClassifier)
    assert_type(model.predict_proba(texts), NDArray[np.float64])
    assert_type(model.history_, list[dict[str, Any]])
    assert_type(BertRegressor().fit(texts, [1.0]).predict(texts), NDArray[np.float64])


def know_loaded(folder: str, texts: list[str]) -> None:
    """A loaded estimator has the methods of every class, and each class its own."""
    model = skactive.load(folder)
    assert_type(model.fit(texts).predict(texts), NDArray[Any])
    assert_type(model.predict_proba(texts), NDArray[Any])
    if isinstance(model, ActiveLearner):
        assert_type(model.X_labeled_ is None, bool)
    assert_type(skactive.save(model, folder, overwrite=True), str)
    assert_type(skactive.export_onnx(model, folder, quantize="int8"), str)


def know_session(session: LabelingSession, project: Project) -> None:
    """The results of a session, and of a project."""
    assert_type(session.ask(3), Batch)
    assert_type(session.ask(refit="background").ids, tuple[str | int, ...])
    assert_type(session.learner.query(["a"]), NDArray[np.intp])
    assert_type(session.labels, dict[str | int, Any])
    assert_type(project.open(), Project)


def know_experiment(data: dict[str, Any]) -> None:
    """Options by their names."""
    runs = run_experiment(ActiveLearner(LogisticRegression()), data, initial="first")
    assert_type(runs, list[Run])
    assert_type(Density(measure="margin", similarity="shifted"), Density)


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
