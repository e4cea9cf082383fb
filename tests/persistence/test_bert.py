"""Saving and loading BERT estimators: alone, in pipelines and in learners."""

import copy
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline

from skactive import ActiveLearner, load, save
from skactive.bert import BertClassifier, BertFeatures, BertRegressor
from skactive.bert._heads import LinearHead

from ..conftest import save_encoder
from ._helpers import FILMS as TEXTS
from ._helpers import SMALL, _change_object, _classifier
from ._helpers import VERDICTS as LABELS

PAIRS = [(text, "why") for text in TEXTS]


@pytest.fixture
def model(tiny_bert, tmp_path):
    """Folder of an encoder that a test may remove."""
    return shutil.copytree(tiny_bert, tmp_path / "model")


def _elsewhere(folder, model, tmp_path):
    """Load on another machine: the model is not there, and the folder moved."""
    shutil.rmtree(model)
    return load(shutil.move(folder, tmp_path / "elsewhere"))


@pytest.mark.long
@pytest.mark.parametrize("freeze", [0, 1, -1, "all"])
def test_predictions_need_no_other_folder(model, tmp_path, freeze):
    original = _classifier(model, freeze=freeze, mc_dropout="full", n_draws=3)
    original.fit(TEXTS, LABELS)
    folder = save(original, tmp_path / "saved")
    proba, features = original.predict_proba(TEXTS), original.transform(TEXTS)
    draws = original.sample_proba(TEXTS)
    loaded = _elsewhere(folder, model, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), proba)
    np.testing.assert_array_equal(loaded.transform(TEXTS), features)
    np.testing.assert_array_equal(loaded.sample_proba(TEXTS), draws)
    assert loaded.predict(TEXTS).tolist() == original.classes_[proba.argmax(1)].tolist()


@pytest.mark.long
@pytest.mark.parametrize("head", ["linear", "mlp", "cnn"])
def test_every_head_comes_back(model, tmp_path, head):
    params = {"hidden_sizes": (5,)} if head == "mlp" else None
    original = _classifier(model, head=head, head_params=params).fit(PAIRS, LABELS)
    loaded = load(save(original, tmp_path / "saved"))
    np.testing.assert_array_equal(
        loaded.predict_proba(PAIRS), original.predict_proba(PAIRS)
    )


def test_an_indicator_matrix_comes_back(model, tmp_path):
    y = np.array([[0, 1], [1, 1], [0, 0], [1, 0], [0, 1], [1, 1]])
    original = _classifier(model).fit(TEXTS, y)
    loaded = load(save(original, tmp_path / "saved"))
    np.testing.assert_array_equal(loaded.predict(TEXTS), original.predict(TEXTS))


def test_a_regressor_comes_back_with_its_scale(model, tmp_path):
    original = BertRegressor(model, **SMALL).fit(TEXTS, [10.0, 20, 30, 40, 50, 60])
    folder = save(original, tmp_path / "saved")
    predictions = original.predict(TEXTS)
    loaded = _elsewhere(folder, model, tmp_path)
    np.testing.assert_array_equal(loaded.predict(TEXTS), predictions)
    assert predictions.mean() > 5


def test_parameters_and_what_was_recorded_are_the_same(model, tmp_path):
    original = _classifier(
        model, classes=["bad", "good"], class_weight={"good": 2.0}, tol=np.float32(0.1)
    ).fit(TEXTS, LABELS)
    loaded = load(save(original, tmp_path / "saved"))
    assert loaded.get_params() == original.get_params()
    assert type(loaded.model) is type(model)
    assert loaded.history_ == original.history_
    for key, values in original.layer_changes_.items():
        np.testing.assert_array_equal(loaded.layer_changes_[key], values)


@pytest.mark.long
def test_training_again_gives_the_same_model(model, tmp_path):
    original = _classifier(model, freeze=1).fit(TEXTS, LABELS)
    folder = save(original, tmp_path / "saved")
    again = clone(original).fit(TEXTS, LABELS).predict_proba(TEXTS)
    loaded = _elsewhere(folder, model, tmp_path)
    assert loaded.model.startswith(str(tmp_path / "elsewhere" / "pretrained"))
    fitted = clone(loaded).fit(TEXTS, LABELS)
    np.testing.assert_array_equal(fitted.predict_proba(TEXTS), again)


@pytest.mark.long
def test_partial_fit_goes_on_from_where_it_was(model, tmp_path):
    original = _classifier(model).fit(TEXTS, LABELS)
    folder = save(original, tmp_path / "saved")
    original.partial_fit(TEXTS, LABELS)
    proba = original.predict_proba(TEXTS)
    loaded = _elsewhere(folder, model, tmp_path).partial_fit(TEXTS, LABELS)
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), proba)
    assert [record["epoch"] for record in loaded.history_] == [1, 2, 3]


@pytest.mark.long
def test_models_of_one_name_and_other_weights_are_kept_apart(
    model, tiny_bert, tmp_path
):
    first = _classifier(model, freeze=2).fit(TEXTS, LABELS)
    loaded = [load(save(first, tmp_path / "first"))]
    shutil.rmtree(model)
    save_encoder(model, initializer_range=0.3)
    second = _classifier(model, freeze=2).fit(TEXTS, LABELS)
    loaded.append(load(save(second, tmp_path / "second")))
    both = FeatureUnion([("first", loaded[0]), ("second", loaded[1])])
    expected = both.transform(TEXTS)
    again = load(save(both, tmp_path / "both"))
    np.testing.assert_array_equal(again.transform(TEXTS), expected)


def test_a_hub_name_that_is_not_cached_becomes_the_copy(model, tmp_path):
    folder = Path(save(_classifier(model).fit(TEXTS, LABELS), tmp_path / "saved"))

    def change(content):
        content["object"]["params"]["model"] = "someone/no-such-model"
        content["models"][0]["model"] = "someone/no-such-model"

    _change_object(folder, change)
    loaded = load(folder)
    assert loaded.model.startswith(str(folder / "pretrained"))
    clone(loaded).fit(TEXTS, LABELS)


@pytest.mark.long
def test_what_was_loaded_can_be_copied_and_saved_again(model, tmp_path):
    original = _classifier(model).fit(TEXTS, LABELS)
    folder = save(original, tmp_path / "saved")
    proba = original.predict_proba(TEXTS)
    loaded = _elsewhere(folder, model, tmp_path)
    second = save(copy.deepcopy(loaded), tmp_path / "second")
    shutil.rmtree(tmp_path / "elsewhere")
    again = load(second)
    np.testing.assert_array_equal(again.predict_proba(TEXTS), proba)
    assert again.model.startswith(second)
    clone(again).fit(TEXTS, LABELS)


@pytest.mark.long
def test_what_was_loaded_can_replace_the_folder_it_came_from(model, tmp_path):
    original = _classifier(model).fit(TEXTS, LABELS)
    loaded = _elsewhere(save(original, tmp_path / "saved"), model, tmp_path)
    loaded.partial_fit(TEXTS, LABELS)
    proba = loaded.predict_proba(TEXTS)
    folder = save(loaded, tmp_path / "elsewhere", overwrite=True)
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), proba)
    np.testing.assert_array_equal(load(folder).predict_proba(TEXTS), proba)


@pytest.mark.long
def test_weights_of_a_pickle_are_written_as_safetensors(model, tmp_path):
    from safetensors.torch import load_file

    torch.save(load_file(model / "model.safetensors"), model / "pytorch_model.bin")
    (model / "model.safetensors").unlink()
    original = _classifier(model, freeze=1).fit(TEXTS, LABELS)
    folder = save(original, tmp_path / "saved")
    suffixes = {path.suffix for path in Path(folder).rglob("*") if path.is_file()}
    assert suffixes == {".json", ".md", ".npy", ".safetensors"}
    proba = original.predict_proba(TEXTS)
    loaded = _elsewhere(folder, model, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), proba)
    save(loaded, tmp_path / "elsewhere", overwrite=True)
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), proba)


def test_the_tokenizer_is_saved_as_it_was_before_any_text_was_cut(model, tmp_path):
    with pytest.warns(UserWarning, match="were cut there"):
        original = _classifier(model, max_length=4).fit(TEXTS, LABELS)
    folder = Path(save(original, tmp_path / "saved"))
    (tokenizer,) = folder.glob("pretrained/*/tokenizer.json")
    assert json.loads(tokenizer.read_text())["truncation"] is None


def test_another_folder_than_was_trained_from_is_refused(model, tmp_path):
    original = _classifier(model).fit(TEXTS, LABELS)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="'model' must hold the weights that the esti"):
        save(original, tmp_path / "saved")


@pytest.mark.parametrize("cls", [BertClassifier, BertRegressor, BertFeatures])
def test_an_unfitted_estimator_is_its_parameters(tmp_path, cls):
    original = cls("no/such-model", max_length=np.int64(9), revision="v1")
    folder = Path(save(original, tmp_path / "saved"))
    assert {path.name for path in folder.iterdir()} == {
        "README.md",
        "manifest.json",
        "object.json",
    }
    loaded = load(folder)
    assert type(loaded) is cls
    assert loaded.get_params() == original.get_params()


def test_features_are_parameters_only_and_give_the_same(model, tmp_path):
    original = BertFeatures(model, layers=(-2, -1)).set_output(transform="pandas")
    folder = save(original.fit(TEXTS), tmp_path / "saved")
    assert not list(Path(folder).rglob("*.safetensors"))
    loaded = load(folder)
    assert loaded.layers == (-2, -1)
    assert loaded.transform(TEXTS).equals(original.transform(TEXTS))


@pytest.mark.long
def test_a_pipeline_of_features_and_a_model_comes_back(model, tmp_path):
    union = FeatureUnion([("cls", BertFeatures(model, pooling="cls"))])
    original = make_pipeline(union, LogisticRegression()).fit(TEXTS, LABELS)
    loaded = load(save(original, tmp_path / "saved"))
    np.testing.assert_array_equal(
        loaded.predict_proba(TEXTS), original.predict_proba(TEXTS)
    )


@pytest.mark.long
def test_a_learner_goes_on_without_the_model_of_its_classifier(model, tmp_path):
    learner = ActiveLearner(
        _classifier(model, random_state=None, freeze=1), batch_size=2, random_state=1
    )
    learner.fit(TEXTS[:4], LABELS[:4])
    folder = save(learner, tmp_path / "saved")
    assert len(list(Path(folder).glob("pretrained/*"))) == 1
    asked = learner.query(TEXTS)
    learner.teach([TEXTS[4]], [LABELS[4]])
    proba, next_asked = learner.predict_proba(TEXTS), learner.query(TEXTS)

    loaded = _elsewhere(folder, model, tmp_path)
    np.testing.assert_array_equal(loaded.query(TEXTS), asked)
    loaded.teach([TEXTS[4]], [LABELS[4]])
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), proba)
    np.testing.assert_array_equal(loaded.query(TEXTS), next_asked)
    assert loaded.X_labeled_ == TEXTS[:5]


def test_metadata_requests_come_back(tmp_path):
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        original = BertClassifier("no/such").set_fit_request(sample_weight="w")
        loaded = load(save(original, tmp_path / "saved"))
        requests = loaded.get_metadata_routing().fit.requests
    assert requests == {"sample_weight": "w"}


class Head(LinearHead):
    """A head of a user's own."""


class Callback:
    """No skorch callback, but an object."""


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"head": Head}, "'head' cannot be saved without pickle"),
        ({"callbacks": [Callback()]}, r"'callbacks\[0\]' cannot be saved"),
        ({"net_params": {"optimizer": torch.optim.SGD}}, "'net_params.optimizer' cann"),
        ({"device": torch.device("cpu")}, "'device' cannot be saved"),
    ],
    ids=["head", "callbacks", "net_params", "device"],
)
def test_parameters_that_need_code_are_refused(tmp_path, params, match):
    with pytest.raises(TypeError, match=match):
        save(BertClassifier(**params), tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []


def _features_pipeline(model):
    features = BertFeatures(model, precision="float32", cache=None)
    return make_pipeline(features, LogisticRegression()).fit(TEXTS, LABELS)


def test_bundled_features_need_no_other_folder(model, tmp_path):
    original = _features_pipeline(model)
    proba = original.predict_proba(TEXTS)
    folder = save(original, tmp_path / "saved", bundle=True)
    loaded = _elsewhere(folder, model, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), proba)
    again = load(save(loaded, tmp_path / "again", bundle=True))
    np.testing.assert_array_equal(again.predict_proba(TEXTS), proba)


def test_one_encoder_of_several_steps_is_bundled_once(model, tmp_path):
    steps = [BertFeatures(model, pooling=pooling) for pooling in ("mean", "cls")]
    folder = save(make_pipeline(*steps), tmp_path / "saved", bundle=True)
    assert len(list(Path(folder).glob("pretrained/*"))) == 1


@pytest.mark.parametrize("by_name", [False, True])
def test_a_moved_model_folder_is_named_when_loading(model, tmp_path, by_name):
    original = _features_pipeline(model)
    proba = original.predict_proba(TEXTS)
    folder = save(original, tmp_path / "saved")
    moved = shutil.move(model, tmp_path / "moved")
    loaded = load(folder, model={str(model): moved} if by_name else moved)
    assert loaded[0].model == moved
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), proba)


def test_a_model_that_replaces_nothing_is_refused(tiny_bert, tmp_path):
    folder = save(_features_pipeline(tiny_bert), tmp_path / "saved")
    with pytest.raises(ValueError, match=r"'model' must replace an .* named no"):
        load(folder, model={"no such": tiny_bert})
    folder = save(make_pipeline("passthrough"), tmp_path / "plain")
    with pytest.raises(ValueError, match="'model' must replace an encoder"):
        load(folder, model=tiny_bert)
