"""The recommended classifier whose encoder learns."""

import json
import re
import shutil

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import skactive
from skactive import (
    ActiveLearner,
    ClassDescriptions,
    get_strategy_names,
    make_text_classifier,
)
from skactive.bert import clear_cache

WORDS = ["film", "match", "stocks", "team", "game", "minute", "friday", "long", "joy"]
FIRST = ["the joy of a", "a dull slow", "an even", "no naïve", "again in the", "a"]
TEXTS = [f"{first} {word}" for word in WORDS for first in FIRST]
LABELS = np.array(["weather", "sport", "money"])[np.arange(len(TEXTS)) % 3]


_MODELS = "sentence_transformers.models"


def make(model, adapt=True, **params):
    options = {"device": "cpu", "precision": "float32"}
    classifier = make_text_classifier(model, adapt=adapt, **options)
    if adapt:
        quick = {"n_steps": 2, "batch_size": 8, "lr": 1e-2, "freeze": 1, **params}
        names = {f"adapted__adaptedfeatures__{k}": v for k, v in quick.items()}
        classifier.set_params(**names)
    return classifier


@pytest.fixture(scope="module")
def fitted(tiny_bert):
    return make(tiny_bert).fit(TEXTS[:30], LABELS[:30], X_unlabeled=TEXTS[30:])


def test_below_the_first_point_it_is_the_frozen_part(tiny_bert):
    model = make(tiny_bert).fit(TEXTS[:24], LABELS[:24])
    assert model.weights_ == {"frozen": 1.0}
    expected = model.parts_["frozen"].predict_proba(TEXTS)
    assert_allclose(model.predict_proba(TEXTS), expected)


def test_parts_and_weights(fitted):
    assert list(fitted.weights_) == ["frozen", "adapted"]
    assert fitted.parts_["adapted"][0].n_adapted_ == 25
    assert fitted.n_held_out_ == 30


def test_no_fold_sees_its_labels(tiny_bert, monkeypatch):
    seen = []
    fit = skactive.bert.AdaptedFeatures.fit

    def spy(self, X, y, sample_weight=None, n_labeled=None):
        fit(self, X, y, sample_weight, n_labeled)
        seen.append((list(X), self.n_adapted_))
        return self

    monkeypatch.setattr(skactive.bert.AdaptedFeatures, "fit", spy)
    model = make(tiny_bert).fit(TEXTS[:40], LABELS[:40])
    (whole, m), *folds = seen
    assert (len(whole), m) == (40, 25)
    assert len(folds) == 3
    held = [set(whole) - set(part) for part, _ in folds]
    assert set().union(*held) == set(whole)
    for part, n in folds:
        assert n == len(set(whole[:25]) & set(part))
        assert part[:n] == [text for text in whole[:25] if text in part]
    assert model.n_held_out_ == 40


def test_teach_and_fit_agree(tiny_bert):
    def learner():
        return ActiveLearner(make(tiny_bert), "random", random_state=0)

    clear_cache()
    one = learner().fit(TEXTS[:10], LABELS[:10])
    for start in range(10, 50, 10):
        rows = slice(start, start + 10)
        one.teach(TEXTS[rows], LABELS[rows])
    clear_cache()
    two = learner().fit(TEXTS[:50], LABELS[:50])
    adapted = [x.estimator_.parts_["adapted"][0].transform(TEXTS) for x in (one, two)]
    assert_array_equal(*adapted)


def what_strategies_do(classifier):
    """Return for each strategy how many texts it asks for, or the error it raises."""
    learner = ActiveLearner(classifier, random_state=0)
    learner.fit(TEXTS[:30], LABELS[:30], X_unlabeled=TEXTS[30:])
    found = {}
    for name in get_strategy_names():
        learner.set_params(strategy=name)
        try:
            found[name] = len(set(learner.query(TEXTS[30:], 2)))
        except (TypeError, ValueError, ImportError) as exc:
            found[name] = re.sub(r"\w+Training|\w+Classifier", "it", str(exc))[:80]
    return found


@pytest.mark.slow
def test_every_strategy_takes_or_refuses_it_as_the_classifier_that_does_not_learn(
    tiny_bert,
):
    before = what_strategies_do(make(tiny_bert, adapt=False))
    assert list(before.values()).count(2) > 20
    assert what_strategies_do(make(tiny_bert)) == before


def test_what_a_strategy_sees(fitted):
    from skactive.view import PoolView

    view = PoolView(TEXTS, estimator=fitted)
    assert view.features.shape == (len(TEXTS), 32)
    parts = [part[:-1].transform(TEXTS) for part in fitted.parts_.values()]
    assert_array_equal(view.features, np.hstack(parts))
    assert_allclose(view.proba, fitted.predict_proba(TEXTS), rtol=1e-6)
    strongest = max(fitted.weights_, key=fitted.weights_.get)
    own = PoolView(TEXTS, estimator=fitted.parts_[strongest])
    for ours, theirs in zip(view.gradients, own.gradients, strict=True):
        assert_allclose(ours, theirs)


def test_descriptions_and_weights(tiny_bert):
    about = {"weather": "rain", "sport": "a team", "money": "stocks"}
    model = ClassDescriptions(make(tiny_bert), about)
    model.fit(TEXTS[:30], LABELS[:30], X_unlabeled=TEXTS)
    assert model.estimator_.parts_["adapted"][0].n_adapted_ == 25
    assert model.estimator_.n_held_out_ == 30
    assert model.fit([], []).estimator_.weights_ == {"frozen": 1.0}


def test_saved_and_loaded(fitted, tmp_path):
    skactive.save(fitted, tmp_path / "model")
    found = skactive.load(tmp_path / "model")
    assert found.weights_ == fitted.weights_
    assert_allclose(found.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


def test_an_export_predicts_the_same(fitted, tmp_path):
    pytest.importorskip("onnxruntime")
    skactive.export_onnx(fitted, tmp_path / "export")
    found = skactive.runtime.load(tmp_path / "export")
    expected = fitted.predict_proba(TEXTS)
    assert_allclose(found.predict_proba(TEXTS), expected, atol=1e-3)


def test_without_a_part_that_has_learned_all_are_kept(tiny_bert):
    model = make(tiny_bert)
    model.set_params(parts=model.parts[1:]).fit(TEXTS[:12], LABELS[:12])
    assert model.weights_ == {"adapted": 1.0}


def test_a_bundle_has_its_encoder_once(tiny_bert, tmp_path):
    folder = tmp_path / "sentences"
    shutil.copytree(tiny_bert, folder)
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    modules = [("Transformer", ""), ("Pooling", "1_Pooling")]
    listed = [
        {"idx": i, "name": str(i), "path": path, "type": f"{_MODELS}.{name}"}
        for i, (name, path) in enumerate(modules)
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    model = make(folder).fit(TEXTS[:30], LABELS[:30])
    skactive.save(model, tmp_path / "model", bundle=True)
    assert len(list((tmp_path / "model" / "pretrained").rglob("*.safetensors"))) == 1
    expected = model.predict_proba(TEXTS)
    shutil.rmtree(folder)
    found = skactive.load(tmp_path / "model")
    assert_allclose(found.predict_proba(TEXTS), expected)


def test_several_labels_per_text(tiny_bert, tmp_path):
    options = {"device": "cpu", "precision": "float32"}
    model = make_text_classifier(tiny_bert, multi_label=True, adapt=True, **options)
    quick = {"n_steps": 2, "batch_size": 8, "lr": 1e-2, "freeze": 1}
    model.set_params(**{f"adapted__adaptedfeatures__{k}": v for k, v in quick.items()})
    Y = (LABELS[:, None] == np.unique(LABELS)).astype(int)
    Y[::5, 0] = 1
    learner = ActiveLearner(model, "uherding", batch_size=5, random_state=0)
    learner.fit(TEXTS[:30], Y[:30])
    assert len(set(learner.query(TEXTS[30:]))) == 5
    fitted = learner.estimator_
    assert list(fitted.weights_) == ["frozen", "adapted"]
    assert fitted.n_held_out_ == 30
    assert fitted.predict(TEXTS).shape == Y.shape
    skactive.save(fitted, tmp_path / "model")
    found = skactive.load(tmp_path / "model")
    assert_array_equal(found.predict(TEXTS), fitted.predict(TEXTS))
    pytest.importorskip("onnxruntime")
    names = ["money", "sport", "weather"]
    skactive.export_onnx(fitted, tmp_path / "export", classes=names)
    exported = skactive.runtime.load(tmp_path / "export")
    proba = fitted.predict_proba(TEXTS)
    assert_allclose(exported.predict_proba(TEXTS), proba, atol=1e-3)
    clear = np.abs(proba - fitted.thresholds_).min(axis=1) > 1e-2
    expected = [
        [names[j] for j in np.flatnonzero(row)] for row in fitted.predict(TEXTS)[clear]
    ]
    said = exported.predict(TEXTS)
    assert [said[i] for i in np.flatnonzero(clear)] == expected
