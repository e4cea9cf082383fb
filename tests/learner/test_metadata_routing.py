"""The recommended models, and loops around them, with metadata routing switched on."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skactive import (
    ActiveLearner,
    ClassDescriptions,
    LabelingSession,
    load,
    make_final_classifier,
    make_text_classifier,
    save,
    simulate,
)
from skactive.estimation import out_of_fold
from skactive.linear_model import FewLabelClassifier
from skactive.semi_supervised import MixtureClassifier, SelfTraining
from skactive.simulation import SimulatedLearner

TEXTS = [f"text {i} {'law court' if i % 2 else 'sport match'}" for i in range(24)]
Y = np.array(["a", "b"] * 12)
WEIGHTS = np.linspace(0.5, 2, 24)
NAMES = {"a": "sport and matches", "b": "courts of law"}
MODELS = ["recommended", "descriptions", "few labels", "self-training", "mixture"]


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def numbers(X):
    return HashingVectorizer(n_features=32).transform(X).toarray()


def words(last):
    return make_pipeline(FunctionTransformer(numbers), last)


@pytest.fixture
def model(request, tiny_bert):
    recommended = make_text_classifier(tiny_bert, adapt=False, max_length=16)
    linear = words(LogisticRegression())
    return {
        "recommended": lambda: recommended,
        "descriptions": lambda: ClassDescriptions(recommended, NAMES),
        "few labels": lambda: words(FewLabelClassifier()),
        "self-training": lambda: words(
            SelfTraining(FewLabelClassifier(), teacher=FewLabelClassifier())
        ),
        "mixture": lambda: MixtureClassifier(
            [("recommended", recommended), ("linear", linear)]
        ),
    }[request.param]()


every_model = pytest.mark.parametrize("model", MODELS, indirect=True)


def learner(model):
    return ActiveLearner(model, "margin", batch_size=2, random_state=0)


def request(model):
    """Return a copy whose last step requests weights."""
    model = clone(model)
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    last.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    return model


@pytest.mark.slow
@every_model
def test_a_loop_simulation_and_session_give_what_they_give_without_it(model, tmp_path):
    def run(folder):
        asked = simulate(learner(model), TEXTS, Y, n_initial=6, n_rounds=2).rounds
        asked = [each["queried"] for each in asked]
        with LabelingSession(learner(model), TEXTS, folder / "s.jsonl") as session:
            for _ in range(3):
                batch = session.ask(4)
                session.tell(batch.ids, [Y[i] for i in batch.ids])
            proba = session.learner.predict_proba(TEXTS)
        held_out = out_of_fold(model, TEXTS[:16], Y[:16], TEXTS[16:]).proba
        looped = SimulatedLearner(learner(model), n_initial=6, n_rounds=1)
        return (*asked, held_out, proba, looped.fit(TEXTS, Y).predict(TEXTS))

    folders = tmp_path / "on", tmp_path / "off"
    for folder in folders:
        folder.mkdir()
    routed = run(folders[0])
    with sklearn.config_context(enable_metadata_routing=False):
        plain = run(folders[1])
    for one, other in zip(routed, plain, strict=True):
        assert_array_equal(one, other)


@every_model
def test_weights_that_nobody_requests_are_refused_in_scikit_learns_words(model):
    for fit in (
        lambda: learner(model).fit(TEXTS, Y, sample_weight=WEIGHTS),
        lambda: cross_validate(
            *(learner(model), TEXTS, Y),
            params={"sample_weight": WEIGHTS},
            error_score="raise",
        ),
        lambda: GridSearchCV(
            learner(model), {"strategy": ["random"]}, error_score="raise"
        ).fit(TEXTS, Y, sample_weight=WEIGHTS),
    ):
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            fit()


@pytest.mark.slow
@every_model
def test_requested_weights_are_those_of_a_fit_without_routing(model):
    routed = learner(request(model))
    routed.fit(TEXTS[:12], Y[:12], sample_weight=WEIGHTS[:12])
    routed.teach(TEXTS[12:], Y[12:], sample_weight=WEIGHTS[12:])
    with sklearn.config_context(enable_metadata_routing=False):
        prefix = f"{model.steps[-1][0]}__" if hasattr(model, "steps") else ""
        first, then = ({f"{prefix}sample_weight": w} for w in np.split(WEIGHTS, 2))
        plain = learner(model).fit(TEXTS[:12], Y[:12], **first)
        plain.teach(TEXTS[12:], Y[12:], **then)
        unweighted = learner(model).fit(TEXTS[:12], Y[:12]).teach(TEXTS[12:], Y[12:])
    found = routed.predict_proba(TEXTS)
    assert_array_equal(found, plain.predict_proba(TEXTS))
    assert not np.array_equal(found, unweighted.predict_proba(TEXTS))


def test_a_search_over_a_learner_trains_with_requested_weights():
    routed = learner(request(words(LogisticRegression())))
    grid = {"estimator__logisticregression__C": [0.1, 10.0]}
    search = GridSearchCV(routed, grid, cv=2, error_score="raise")
    weights = np.where(np.arange(24) % 3, 0.01, 5.0)
    search.fit(TEXTS, Y, sample_weight=weights)
    expected = clone(routed).set_params(**search.best_params_)
    expected.fit(TEXTS, Y, sample_weight=weights)
    found = search.predict_proba(TEXTS)
    assert_array_equal(found, expected.predict_proba(TEXTS))
    assert not np.array_equal(found, expected.fit(TEXTS, Y).predict_proba(TEXTS))


@pytest.mark.slow
@every_model
def test_searches_route_requested_weights_and_texts_without_labels(model):
    routed = learner(request(model))
    params = {"sample_weight": WEIGHTS}
    if model.__class__.__name__ != "Pipeline" or "selftraining" in model.named_steps:
        params["X_unlabeled"] = ["more law", "more sport", "more text"]
    found = cross_validate(routed, TEXTS, Y, cv=2, params=params, error_score="raise")
    assert found["test_score"].shape == (2,)
    grid = {"strategy": ["random", "margin"]}
    search = GridSearchCV(routed, grid, cv=2, error_score="raise")
    search.fit(TEXTS, Y, **params)
    # The models of the search got what it was given: one of all labels is equal.
    plain = clone(routed).set_params(**search.best_params_).fit(TEXTS, Y, **params)
    found, expected = (x.predict_proba(TEXTS) for x in (search, plain))
    assert_array_equal(found, expected)
    found = cross_validate(model, TEXTS, Y, cv=2, error_score="raise")
    assert found["test_score"].shape == (2,)


def test_the_final_model_and_descriptions_without_labels(tiny_bert, tmp_path):
    recommended = make_text_classifier(tiny_bert, adapt=False, max_length=16)
    described = ClassDescriptions(recommended, NAMES).fit([], [])
    assert described.classes_.tolist() == ["a", "b"]
    final = make_final_classifier(
        recommended, tiny_bert, max_length=16, max_epochs=1, random_state=0
    )
    final.fit(TEXTS[:12], Y[:12], sample_weight=WEIGHTS[:12], X_unlabeled=TEXTS[12:])
    save(final, tmp_path / "model")
    again = load(tmp_path / "model")
    assert_array_equal(again.predict_proba(TEXTS), final.predict_proba(TEXTS))


@pytest.mark.parametrize("kind", ["pipeline", "search"])
def test_a_member_gets_weights_that_it_does_not_request(kind):
    inner = LogisticRegression()
    if kind == "search":
        inner = GridSearchCV(inner, {"C": [1.0]}, cv=2)
    model = ClassDescriptions(words(inner), NAMES, weight=1, random_state=0)
    routed = clone(model).fit(TEXTS, Y).predict_proba(TEXTS)
    with sklearn.config_context(enable_metadata_routing=False):
        assert_array_equal(clone(model).fit(TEXTS, Y).predict_proba(TEXTS), routed)
