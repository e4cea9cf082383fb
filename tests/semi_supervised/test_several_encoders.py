"""The recommended classifier with several encoders."""

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import Pipeline

import skactive
from skactive import ActiveLearner, LabelingSession, make_text_classifier
from skactive._utils._pipelines import ReadCounter, computes_features
from skactive.bert import BertFeatures
from skactive.view import PoolView

from ..conftest import save_encoder
from .test_adapted_mixture import LABELS, TEXTS


@pytest.fixture(scope="module")
def folders(tiny_bert, tmp_path_factory):
    """Two encoders, of 16 and 24 features."""
    folder = tmp_path_factory.mktemp("wider")
    return [tiny_bert, save_encoder(folder, hidden_size=24)]


def make(folders, adapt=False, **options):
    options = {"device": "cpu", "precision": "float32", **options}
    return make_text_classifier(folders, adapt=adapt, **options)


@pytest.fixture(scope="module")
def fitted(folders):
    return make(folders).fit(TEXTS[:30], LABELS[:30], X_unlabeled=TEXTS[30:])


def test_parts_and_options(folders):
    model = make(folders, True, max_length=[16, 32], prompt=["", "query: "])
    names = ["frozen", "adapted", "frozen2", "adapted2"]
    assert [name for name, _ in model.parts] == names
    first, adapted, second, again = (part[0] for _, part in model.parts)
    assert (first.model, second.model) == tuple(folders)
    assert (adapted.model, again.model) == tuple(folders)
    assert (first.max_length, adapted.max_length) == (16, 16)
    assert (second.max_length, again.max_length) == (32, 32)
    assert (first.prompt, second.prompt) == ("", "query: ")
    assert model.prior == 8.0
    assert isinstance(make(folders[:1]), Pipeline)


def test_the_second_encoder_is_centered_by_the_labeled_texts(fitted, folders):
    features = BertFeatures(folders[1], device="cpu", precision="float32")
    center = features.transform(TEXTS[:30]).mean(axis=0)
    expected = features.transform(TEXTS) - center
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    found = fitted.parts_["frozen2"][:-1].transform(TEXTS)
    assert_allclose(found, expected, atol=1e-5)
    # A pool that has grown changes nothing.
    again = make(folders).fit(TEXTS[:30], LABELS[:30], X_unlabeled=TEXTS[40:])
    assert_array_equal(again.parts_["frozen2"][:-1].transform(TEXTS), found)


def test_weights_are_those_of_held_out_labels(fitted):
    assert list(fitted.weights_) == ["frozen", "frozen2"]
    assert fitted.n_held_out_ == 30
    assert sum(fitted.weights_.values()) == pytest.approx(1)


def test_before_training_the_features_of_all_encoders_are_there(folders):
    model = make(folders, True)
    assert computes_features(model)
    view = PoolView(TEXTS, estimator=model)
    assert view.features.shape == (len(TEXTS), 40)
    learner = ActiveLearner(model, "uherding", batch_size=3, random_state=0)
    assert len(set(learner.query(TEXTS))) == 3
    counter = ReadCounter(make(folders, max_length=[8, 32]))
    end = time.monotonic() + 60
    while (n_read := counter.count(TEXTS[0] * 9)) is None:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert n_read < 60


def test_saved_loaded_and_exported(fitted, tmp_path):
    skactive.save(fitted, tmp_path / "model", bundle=True)
    found = skactive.load(tmp_path / "model")
    expected = fitted.predict_proba(TEXTS)
    assert_allclose(found.predict_proba(TEXTS), expected)
    pytest.importorskip("onnxruntime")
    skactive.export_onnx(found, tmp_path / "export")
    exported = skactive.runtime.load(tmp_path / "export")
    assert_allclose(exported.predict_proba(TEXTS), expected, atol=1e-3)


@pytest.mark.slow
@pytest.mark.usefixtures("adapted_soon")
def test_in_a_session_both_encoders_learn(folders, tmp_path):
    model = make(folders, True)
    quick = {"n_steps": 2, "batch_size": 8, "lr": 1e-2, "freeze": 1}
    for part in ("adapted", "adapted2"):
        model.set_params(
            **{f"{part}__adaptedfeatures__{k}": v for k, v in quick.items()}
        )
    learner = ActiveLearner(model, batch_size=2, random_state=0)
    options = {"refit": "background", "encode": "background"}
    with LabelingSession(learner, TEXTS, tmp_path / "session", **options) as session:
        session.ask(1)
        answers = {i: str(LABELS[i]) for i in range(30)}
        session.tell(answers, unasked=True)
        session.ask(1)
        end = time.monotonic() + 300
        while session.newest_model.adapted != 25:
            assert time.monotonic() < end
            time.sleep(0.05)
            session.ask(1, refit=None)
        parts = session.newest_model.learner.estimator_.parts_
        assert list(parts) == ["frozen", "adapted", "frozen2", "adapted2"]
        assert [parts[x][0].n_adapted_ for x in ("adapted", "adapted2")] == [25, 25]
        kept = {path.parent for path in (tmp_path / "session").rglob("*.npy")}
        assert len(kept) > 1


@pytest.mark.parametrize(
    ("model", "options", "match"),
    [
        ([], {}, r"'model' must name an encoder, got \[\]"),
        (["a", "b"], {"prompt": ["x"]}, "'prompt' must be one value or a list with a"),
    ],
)
def test_bad_input(model, options, match):
    with pytest.raises(ValueError, match=match):
        make_text_classifier(model, **options)
