"""The BERT estimators among the tools of scikit-learn, and in an ActiveLearner."""

import copy
import pickle
import random
import shutil

import joblib
import numpy as np
import pytest
import torch
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator_cloneable, check_mixin_order

from skactive import ActiveLearner
from skactive.bert import BertClassifier, BertFeatures, BertRegressor
from skactive.testing import check_text_estimator, text_estimator_checks

from ..conftest import save_encoder
from .finetuning import assert_same_weights
from .quick import NUMBERS, X, Y, classifier, regressor

QUICK = {"max_epochs": 2, "lr": 1e-3, "batch_size": 4, "device": "cpu"}
UNDER_TEST = {
    "features": (BertFeatures, {"precision": "float32", "device": "cpu"}),
    "features without cache": (
        BertFeatures,
        {"precision": "float32", "device": "cpu", "cache": None, "layers": (-2, -1)},
    ),
    "classifier": (BertClassifier, QUICK),
    "frozen classifier": (
        BertClassifier,
        QUICK
        | {"freeze": 2, "head": "mlp", "early_stopping": True}
        # A third, so that the validation part has both classes, or all three.
        | {"validation_fraction": 0.34},
    ),
    "wholly frozen CNN": (
        BertClassifier,
        QUICK | {"freeze": "all", "head": "cnn", "mc_dropout": "full"},
    ),
    "regressor": (BertRegressor, QUICK),
    "frozen regressor": (BertRegressor, QUICK | {"freeze": 3, "pooling": "mean"}),
}
COUNTS = {"BertFeatures": 28, "BertClassifier": 41, "BertRegressor": 36}


@pytest.fixture(params=["classifier", "regressor"])
def fitted(request, tiny_bert):
    if request.param == "classifier":
        return classifier(tiny_bert).fit(X, Y)
    return regressor(tiny_bert).fit(X, NUMBERS)


def outputs(estimator):
    """All that an estimator says of X."""
    names = ("predict", "predict_proba", "transform")
    return [getattr(estimator, name)(X) for name in names if hasattr(estimator, name)]


def assert_equal_outputs(first, second):
    for one, other in zip(outputs(first), outputs(second), strict=True):
        np.testing.assert_array_equal(one, other)


# The kit


@pytest.mark.parametrize(
    ("label", "check"),
    [
        pytest.param(label, name, id=f"{label}-{name}")
        for label, (cls, params) in UNDER_TEST.items()
        for name, _ in text_estimator_checks(cls(**params))
    ],
)
def test_text_checks(tiny_bert, label, check):
    cls, params = UNDER_TEST[label]
    dict(text_estimator_checks(cls(tiny_bert, **params)))[check]()


@pytest.mark.parametrize("cls", [BertFeatures, BertClassifier, BertRegressor])
def test_the_number_of_checks(cls):
    names = [name for name, _ in text_estimator_checks(cls())]
    assert len(names) == len(set(names)) == COUNTS[cls.__name__]


def test_all_checks_in_one_call(tiny_bert):
    features = BertFeatures(tiny_bert, precision="float32", device="cpu")
    assert len(check_text_estimator(features)) == COUNTS["BertFeatures"]


@pytest.mark.parametrize("cls", [BertFeatures, BertClassifier, BertRegressor])
def test_what_scikit_learn_itself_can_check(cls):
    check_estimator_cloneable(cls.__name__, cls())
    check_mixin_order(cls.__name__, cls())


def test_tags():
    assert is_classifier(BertClassifier())
    assert is_regressor(BertRegressor())
    for cls in (BertClassifier, BertRegressor):
        tags = get_tags(cls())
        assert tags.input_tags.string
        assert not tags.input_tags.two_d_array
        assert tags.target_tags.required
        assert tags.requires_fit
        assert tags.transformer_tags.preserves_dtype == []
    assert get_tags(BertClassifier()).classifier_tags.multi_label


# Searches


@pytest.mark.parametrize(
    "parallel",
    [{"n_jobs": 2}, {"n_jobs": 2, "backend": "threading"}],
    ids=["processes", "threads"],
)
def test_a_grid_over_freeze_scores_alike_for_every_n_jobs(tiny_bert, parallel):
    grid = {"freeze": [0, 1, -1, 3, -3, "all"], "max_epochs": [1, 3]}
    settings = {"cv": 2, "scoring": ["accuracy", "neg_log_loss"], "refit": False}
    one = GridSearchCV(classifier(tiny_bert), grid, **settings).fit(X, Y)
    with joblib.parallel_config(**parallel):
        two = GridSearchCV(classifier(tiny_bert), grid, **settings).fit(X, Y)
    for key, scores in one.cv_results_.items():
        if key.endswith("accuracy"):
            np.testing.assert_array_equal(scores, two.cv_results_[key])
        elif key.endswith("log_loss"):
            # Rounding differs with what is cached already and with the threads; a
            # float32 probability near 1 moves in steps of 6e-8.
            np.testing.assert_allclose(
                scores, two.cv_results_[key], rtol=1e-4, atol=1e-6
            )
    assert len(set(one.cv_results_["mean_test_neg_log_loss"])) > 6


def test_a_search_refits_the_best(tiny_bert):
    search = GridSearchCV(classifier(tiny_bert), {"freeze": [0, 3]}, cv=2).fit(X, Y)
    assert search.predict(X).shape == (len(X),)
    assert search.predict_proba(X).shape == (len(X), 2)
    assert search.score(X, Y) == search.best_estimator_.score(X, Y)
    assert search.classes_.tolist() == ["bad", "good"]


def test_a_depth_that_the_model_does_not_have_fails_that_candidate_only(tiny_bert):
    search = GridSearchCV(
        classifier(tiny_bert), {"freeze": [0, 6]}, cv=2, error_score=-1.0
    )
    with pytest.warns(match="the model has 3 layers"):
        search.fit(X, Y)
    assert search.cv_results_["mean_test_score"][1] == -1.0
    assert search.best_params_ == {"freeze": 0}


def test_a_grid_over_the_steps_of_a_pipeline(tiny_bert):
    features = BertFeatures(tiny_bert, precision="float32")
    pipe = Pipeline([("features", features), ("classify", LogisticRegression())])
    grid = [
        {"classify__C": [0.1, 10.0]},
        {
            "features": ["passthrough"],
            "classify": [classifier(tiny_bert)],
            "classify__freeze": [0, "all"],
        },
    ]
    results = [
        GridSearchCV(pipe, grid, cv=2, n_jobs=n_jobs).fit(X, Y) for n_jobs in (1, 2)
    ]
    scores = [search.cv_results_["mean_test_score"] for search in results]
    assert len(scores[0]) == 4
    np.testing.assert_array_equal(*scores)
    assert np.isfinite(scores[0]).all()


def test_as_the_last_step_of_a_pipeline(tiny_bert):
    pipe = make_pipeline("passthrough", classifier(tiny_bert))
    pipe.fit(X, Y, bertclassifier__sample_weight=np.ones(len(X)))
    assert_equal_outputs(pipe, classifier(tiny_bert).fit(X, Y))
    assert cross_val_score(pipe, X, Y, cv=2).shape == (2,)


def test_as_a_step_before_another_classifier(tiny_bert):
    pipe = make_pipeline(classifier(tiny_bert), LogisticRegression())
    assert pipe.fit(X, Y).predict(X).shape == (len(X),)


# Copies


def test_clone_has_the_parameters_and_nothing_else(fitted):
    copied = clone(fitted)
    assert vars(copied) == fitted.get_params()


def test_clone_of_arrays_and_callbacks(tiny_bert):
    model = classifier(tiny_bert, classes=np.array(["good", "bad"]), callbacks=[])
    assert clone(model).classes is not model.classes
    assert clone(model).classes.tolist() == ["good", "bad"]


@pytest.mark.parametrize("freeze", [0, 1, -1, "all"])
@pytest.mark.parametrize("head", ["linear", "cnn"])
def test_a_pickle_restores_the_trained_weights(tiny_bert, freeze, head):
    model = classifier(tiny_bert, freeze=freeze, head=head).fit(X, Y)
    restored = pickle.loads(pickle.dumps(model))
    assert_same_weights(restored, model)
    assert_equal_outputs(restored, model)
    assert restored.history_ == model.history_
    draws = [m.sample_proba(X, 3, random_state=0) for m in (model, restored)]
    np.testing.assert_array_equal(*draws)


def test_copies_of_a_fitted_model_are_independent(fitted):
    copied = copy.deepcopy(fitted)
    expected = outputs(fitted)
    copied.partial_fit(X[::-1], Y if is_classifier(fitted) else NUMBERS)
    for one, other in zip(outputs(fitted), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def n_bytes(model, which=lambda p: True):
    return sum(4 * p.numel() for p in model.net_.module_.parameters() if which(p))


def test_a_pickle_holds_no_state_of_the_optimiser(tiny_bert):
    model = classifier(tiny_bert).fit(X, Y)
    size = len(pickle.dumps(model))
    assert n_bytes(model) < size < 1.3 * n_bytes(model)


@pytest.mark.parametrize("freeze", [1, 2, -2, "all"])
def test_a_pickle_holds_no_pretrained_weights(tiny_bert, freeze):
    model = classifier(tiny_bert, freeze=freeze).fit(X, Y)
    trained = n_bytes(model, lambda p: p.requires_grad)
    assert trained < n_bytes(model)
    assert len(pickle.dumps(model)) < trained + 8000


def test_a_pickle_of_an_unfitted_model_is_small(tiny_bert):
    assert len(pickle.dumps(classifier(tiny_bert))) < 2000


def test_a_pickle_does_not_depend_on_later_parameters(tiny_bert, tmp_path):
    model = classifier(tiny_bert, pooling="mean", head="mlp").fit(X, Y)
    expected = outputs(model)
    model.set_params(model=str(tmp_path), pooling="cls", freeze=2, head="linear")
    restored = pickle.loads(pickle.dumps(model))
    for one, other in zip(outputs(restored), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert restored.freeze == 2


def test_a_pickle_after_unfreezing_holds_all_that_was_trained(tiny_bert):
    model = classifier(tiny_bert, freeze="all", warm_start=True).fit(X, Y)
    model.set_params(freeze=1).fit(X, Y)
    assert_equal_outputs(pickle.loads(pickle.dumps(model)), model)


def test_a_changed_checkpoint_is_refused(tmp_path):
    folder = save_encoder(tmp_path / "model")
    model = classifier(folder, freeze=2).fit(X, Y)
    pickled = pickle.dumps(model)
    save_encoder(tmp_path / "other", initializer_range=0.4)
    shutil.copy(tmp_path / "other" / "model.safetensors", folder)
    message = "'model' must hold the weights that this BertClassifier was trained from"
    with pytest.raises(ValueError, match=message):
        pickle.loads(pickled)


def test_a_vanished_checkpoint_is_named(tmp_path):
    folder = save_encoder(tmp_path / "model")
    pickled = pickle.dumps(classifier(folder).fit(X, Y))
    shutil.rmtree(folder)
    with pytest.raises(
        ValueError, match=r"'model' must be a local folder .* not exist"
    ):
        pickle.loads(pickled)


def test_a_pickle_from_a_device_that_is_not_here(tiny_bert):
    model = classifier(tiny_bert).fit(X, Y)
    expected = outputs(model)
    pickled = pickle.dumps(model.set_params(device="cuda:7"))
    with pytest.warns(UserWarning, match="got 'cuda:7'.* loaded on the processor"):
        restored = pickle.loads(pickled)
    for one, other in zip(outputs(restored), expected, strict=True):
        np.testing.assert_array_equal(one, other)


# Output and metadata


def test_set_output(fitted):
    pd = pytest.importorskip("pandas")
    rows = fitted.transform(X)
    name = type(fitted).__name__.lower()
    frame = fitted.set_output(transform="pandas").transform(pd.Series(X, index=X))
    assert list(frame.columns) == [f"{name}{i}" for i in range(16)]
    assert list(frame.index) == X
    np.testing.assert_array_equal(frame.to_numpy(), rows)
    pl = pytest.importorskip("polars")
    assert isinstance(fitted.set_output(transform="polars").transform(X), pl.DataFrame)


@pytest.mark.parametrize("make", [classifier, regressor])
def test_sample_weights_are_routed(tiny_bert, make):
    y = Y if make is classifier else NUMBERS
    weights = np.linspace(0.1, 3.0, len(X))
    with config_context(enable_metadata_routing=True):
        model = make(tiny_bert).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"freeze": [0]}, cv=2)
        search.fit(X, y, sample_weight=weights)
        assert_same_weights(
            search.best_estimator_, make(tiny_bert).fit(X, y, sample_weight=weights)
        )
        pipe = make_pipeline(model).fit(X, y, sample_weight=weights)
    assert_same_weights(pipe[-1], search.best_estimator_)


# Random numbers


@pytest.mark.parametrize("head", ["linear", "mlp", "cnn"])
@pytest.mark.parametrize("freeze", [0, 2, "all"])
def test_a_seed_gives_the_same_bits(tiny_bert, freeze, head):
    first, second = (
        classifier(tiny_bert, freeze=freeze, head=head, early_stopping=True).set_params(
            validation_fraction=0.25
        )
        for _ in range(2)
    )
    torch.rand(3)
    first.fit(X, Y)
    torch.manual_seed(5)
    second.fit(X, Y)
    assert_same_weights(first, second)
    losses = [[r["train_loss"] for r in m.history_] for m in (first, second)]
    assert losses[0] == losses[1]


def test_another_seed_gives_other_weights(tiny_bert):
    seeds = (0, 1, None, np.random.RandomState(3))
    models = [classifier(tiny_bert, random_state=s).fit(X, Y) for s in seeds]
    heads = [m.net_.module_.head.dense[0].weight.sum().item() for m in models]
    assert len(set(heads)) == 4


def test_a_random_state_moves_on(tiny_bert):
    model = classifier(tiny_bert, random_state=np.random.RandomState(3))
    first, second = (model.fit(X, Y).predict_proba(X) for _ in range(2))
    assert not np.array_equal(first, second)
    again = clone(model).set_params(random_state=np.random.RandomState(3)).fit(X, Y)
    np.testing.assert_array_equal(again.predict_proba(X), first)


def global_states():
    numpy_state = np.random.get_state()  # noqa: NPY002
    states = (numpy_state, random.getstate(), torch.get_rng_state().numpy().tobytes())
    return pickle.dumps(states)


@pytest.mark.parametrize("seed", [0, None])
def test_no_call_moves_a_global_generator(tiny_bert, seed):
    before = global_states()
    model = classifier(tiny_bert, random_state=seed, head="cnn").fit(X, Y)
    model.partial_fit(X, Y).predict_proba(X)
    model.sample_proba(X, 2)
    model.set_params(mc_dropout="full").sample_proba(X, 2)
    pickle.loads(pickle.dumps(model)).transform(X)
    with pytest.raises(ValueError, match="freeze"):
        model.set_params(freeze=9).fit(X, Y)
    assert global_states() == before


# In a loop


def test_an_active_learner_queries_and_teaches(tiny_bert):
    learner = ActiveLearner(
        classifier(tiny_bert, random_state=None), "margin", batch_size=3, random_state=0
    ).fit(X[:4], Y[:4])
    open_ones = np.arange(4, len(X))
    for _ in range(2):
        picks = learner.query(X, candidates=open_ones)
        proba = np.sort(learner.predict_proba([X[i] for i in open_ones]), axis=1)
        margins = proba[:, -1] - proba[:, -2]
        np.testing.assert_array_equal(
            np.sort(picks), np.sort(open_ones[np.argsort(margins)[:3]])
        )
        learner.teach([X[i] for i in picks], Y[picks])
        open_ones = np.setdiff1d(open_ones, picks)
    assert len(learner.X_labeled_) == 10
    assert learner.score(X, Y) >= 0.0


def test_a_loop_gives_the_same_answers_again(tiny_bert):
    def picks():
        learner = ActiveLearner(
            classifier(tiny_bert, random_state=None), "entropy", random_state=7
        ).fit(X[:4], Y[:4])
        first = learner.query(X[4:], 4)
        learner.teach([X[4:][i] for i in first], Y[4:][first])
        return [*first, *learner.query(X[4:], 4)]

    assert picks() == picks()


def test_a_loop_may_begin_with_one_class(tiny_bert):
    learner = ActiveLearner(classifier(tiny_bert), batch_size=4, random_state=0)
    learner.fit(X[:1], Y[:1]).query(X)
    learner.teach(X[1:4], Y[1:4])
    assert isinstance(learner.estimator_, BertClassifier)


def test_a_loop_with_texts_in_every_container(tiny_bert, texts):
    learner = ActiveLearner(classifier(tiny_bert), batch_size=2, random_state=0)
    learner.fit(X[:4], Y[:4])
    assert sorted(learner.query(texts, len(texts))) == list(range(len(texts)))


def test_swapping_the_model_at_the_end(tiny_bert):
    features = BertFeatures(tiny_bert, precision="float32")
    learner = ActiveLearner(make_pipeline(features, LogisticRegression()), "margin")
    learner.fit(X[:6], Y[:6])
    picks = learner.query(X[6:], 4)
    learner.teach([X[6:][i] for i in picks], Y[6:][picks])
    learner.set_params(estimator=classifier(tiny_bert, freeze=1)).refit()
    expected = classifier(tiny_bert, freeze=1).fit(
        learner.X_labeled_, learner.y_labeled_
    )
    np.testing.assert_array_equal(learner.predict_proba(X), expected.predict_proba(X))
    restored = pickle.loads(pickle.dumps(learner))
    np.testing.assert_array_equal(restored.predict(X), learner.predict(X))
