"""Each line with a comment has one mistake, which mypy and pyright report there."""

from typing import Any

from sklearn.linear_model import LogisticRegression

import skactive
from skactive import ActiveLearner, LabelingSession, Project, get_strategy, simulate
from skactive.analysis import diagnose, learning_curve
from skactive.bert import AdaptedFeatures, BertClassifier, BertFeatures, BertRegressor
from skactive.datasets import load_table
from skactive.estimation import measure_agreement
from skactive.linear_model import PrototypeClassifier, SequentialLogisticRegression
from skactive.plotting import ActiveLearningCurveDisplay
from skactive.project import Questions
from skactive.semi_supervised import MixtureClassifier, SelfTraining
from skactive.simulation import Run, SimulatedLearner, run_experiment
from skactive.stopping import LabelBudget
from skactive.strategies import BALD, CoreSet, Density, Margin, UHerding


def methods(learner: ActiveLearner, texts: list[str], y: list[str]) -> None:
    """Methods and attributes."""
    learner.querry(texts)  # mistake
    learner.fit(texts, y).teech(texts, y)  # mistake
    learner.predict_probability(texts)  # mistake
    learner.predict(texts).shap  # mistake
    learner.clases_  # mistake
    learner.X_labelled_  # mistake
    learner.predict()  # mistake
    learner.teach(texts)  # mistake
    learner.teach(texts, y, refit=None)  # mistake
    learner.query(texts, candidate=[0])  # mistake
    learner.query(texts, "ten")  # mistake
    learner.query(texts, return_scores=True).shape  # mistake
    BertClassifier().fit(texts, y).historie_  # mistake
    BertFeatures().fit_transfrom(texts)  # mistake
    SelfTraining(learner).predict_prob(texts)  # mistake
    SelfTraining(learner).decision_function()  # mistake
    MixtureClassifier([]).weight_  # mistake
    PrototypeClassifier().fit([[1]], [1]).coeff_  # mistake
    SequentialLogisticRegression().intercept  # mistake
    SimulatedLearner(learner).predict_log_prob(texts)  # mistake
    get_strategy("margin").selekt(texts, 1)  # mistake
    Margin().score()  # mistake
    LabelBudget(10).chek(texts, learner, texts)  # mistake


def parameters(learner: ActiveLearner, X: Any, y: list[str]) -> None:
    """Names of parameters, and their types."""
    model = LogisticRegression()
    ActiveLearner(model, strategy=5)  # mistake
    ActiveLearner(model, cold_start=1.0)  # mistake
    ActiveLearner(model, batchsize=5)  # mistake
    ActiveLearner(model, batch_size="ten")  # mistake
    BertClassifier("m", frezee=2)  # mistake
    BertFeatures("m", poling="cls")  # mistake
    BertRegressor("m", warm_up=0.1)  # mistake
    AdaptedFeatures("m", layer=1)  # mistake
    SelfTraining(model, compares="all")  # mistake
    MixtureClassifier([], weight=None)  # mistake
    PrototypeClassifier(temprature=1.0)  # mistake
    LabelBudget(n_label=10)  # mistake
    CoreSet(metrics="cosine")  # mistake
    SimulatedLearner(learner, rounds=3)  # mistake
    simulate(learner, X, y, n_round=3)  # mistake
    simulate(model, X)  # mistake
    run_experiment(learner, X, seed=3)  # mistake
    run_experiment(learner, X, n_jobs="all")  # mistake
    skactive.save(learner, "f", overwrites=True)  # mistake
    skactive.save(learner)  # mistake
    skactive.load("f", models="m")  # mistake
    skactive.load("f", trusted=3)  # mistake
    skactive.load("f").predikt(X)  # mistake
    skactive.export_onnx(model, "f", quantise="int8")  # mistake
    load_table("t.csv", texts="a")  # mistake


def options(learner: ActiveLearner, X: Any, y: list[str]) -> None:
    """Options that have names."""
    BertClassifier("m", freeze="everything")  # mistake
    BertClassifier("m", mc_dropout="hed")  # mistake
    BertClassifier("m", pooling="auto")  # mistake
    BertClassifier("m", head="mpl")  # mistake
    BertClassifier("m", schedule="liner")  # mistake
    BertClassifier("m", precision="float16")  # mistake
    BertClassifier("m", class_weight="ballanced")  # mistake
    BertClassifier("m", max_epochs="all")  # mistake
    BertRegressor("m", lr="automatic")  # mistake
    BertFeatures("m", pooling="avg")  # mistake
    BertFeatures("m", cache_dtype="half")  # mistake
    AdaptedFeatures("m", loss="cosin")  # mistake
    AdaptedFeatures("m", refit="double")  # mistake
    SelfTraining(learner, compare="teachers")  # mistake
    SequentialLogisticRegression(class_weight="ballanced")  # mistake
    CoreSet("manhattan")  # mistake
    UHerding(measure="entropie")  # mistake
    Density(similarity="cos")  # mistake
    Margin(aggregate="sum")  # mistake
    BALD(selection="best")  # mistake
    simulate(learner, X, y, verbose="yes")  # mistake
    run_experiment(learner, X, verbose="yes")  # mistake
    skactive.export_onnx(learner, "f", quantize="int4")  # mistake
    load_table("t.csv", text="a", missing_labels="skip")  # mistake
    measure_agreement({}, target="multilabel")  # mistake


def people(learner: ActiveLearner, X: list[str], session: LabelingSession) -> None:
    """Sessions and projects."""
    LabelingSession(learner, X, "f", refit="sometimes")  # mistake
    LabelingSession(learner, X, "f", encode="later")  # mistake
    LabelingSession(learner, X, "f", klasses=["a", "b"])  # mistake
    LabelingSession(3, X, "f")  # mistake
    session.ask(n=3)  # mistake
    session.ask().idz  # mistake
    session.ask(refit="later")  # mistake
    session.tel([1], ["a"])  # mistake
    session.tell([1], ["a"], shown="all")  # mistake
    session.export("f.csv", what="label")  # mistake
    session.export("f.csv", format="doccanno")  # mistake
    session.learner.querry(X)  # mistake
    session.labels.kees()  # mistake
    session.estimate().acuracy  # mistake
    Project("f.csv", "text", "label", klasses=["a"])  # mistake
    Project("f.csv", "text", "label").opened()  # mistake
    Questions("f.csv", "text", {}).feetures  # mistake


def runs(margin: list[Run], random: list[Run]) -> None:
    """Analysis."""
    learning_curve(margin, method="boot")  # mistake
    learning_curve(margin).meen  # mistake
    diagnose(margin, random, criterion="start")  # mistake
    diagnose(margin, random).verdickt  # mistake
    margin[0].querried  # mistake
    ActiveLearningCurveDisplay.from_runs(margin, band="boot")  # mistake
    ActiveLearningCurveDisplay.from_runs(margin).plod()  # mistake
