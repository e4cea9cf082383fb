"""Saving scikit-learn estimators around those of skactive."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import Normalizer, OneHotEncoder, StandardScaler

from skactive import load, save
from skactive.bert import BertClassifier, BertFeatures

from ..conftest import TEXTS
from ._helpers import _rewrite

FRAME = pd.DataFrame({"text": TEXTS * 2, "n": np.arange(16.0), "kind": ["a", "b"] * 8})
LABELS = np.array(["u", "v"] * 7 + ["v", "u"])


def features(folder):
    return BertFeatures(Path(folder), max_length=40, precision="float32")


def classifier(folder):
    return make_pipeline(features(folder), LogisticRegression())


def columns(*parts, **params):
    return make_pipeline(
        make_column_transformer(*parts, **params), LogisticRegression()
    )


def parts(folder):
    return [("a", classifier(folder)), ("b", classifier(folder))]


TUNED = {"max_length": 40, "max_epochs": 1, "random_state": 0}
MODELS = {
    "columns": lambda f: columns(
        (features(f), "text"), (StandardScaler(), ["n"]), (OneHotEncoder(), ["kind"])
    ),
    "nested": lambda f: columns(
        (make_pipeline(features(f), Normalizer()), 0),
        ("passthrough", slice(1, 2)),
        ("drop", ["kind"]),
    ),
    "selected": lambda f: columns(
        (features(f), "text"),
        (StandardScaler(), make_column_selector(dtype_include="number")),
    ),
    "union": lambda f: make_pipeline(
        make_union(features(f), make_pipeline(features(f), Normalizer())),
        LogisticRegression(),
    ),
    "voting": lambda f: VotingClassifier(parts(f), voting="soft"),
    "tuned": lambda f: VotingClassifier(
        [("a", classifier(f)), ("b", BertClassifier(f, **TUNED))], voting="soft"
    ),
    "stacking": lambda f: StackingClassifier(parts(f), cv=2),
    "calibrated": lambda f: CalibratedClassifierCV(classifier(f), cv=2),
}
OF_COLUMNS = {"columns", "nested", "selected"}


def _fit(name, folder):
    X = FRAME if name in OF_COLUMNS else FRAME["text"].tolist()
    return MODELS[name](folder).fit(X, LABELS), X


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("bundle", [False, True])
def test_predictions_are_bit_equal(name, bundle, tiny_bert, tmp_path):
    model, X = _fit(name, tiny_bert)
    loaded = load(save(model, tmp_path / "saved", bundle=bundle))
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_an_unfitted_model(tiny_bert, tmp_path):
    model = MODELS["columns"](tiny_bert)
    loaded = load(save(model, tmp_path / "saved")).fit(FRAME, LABELS)
    expected = model.fit(FRAME, LABELS).predict_proba(FRAME)
    assert np.array_equal(loaded.predict_proba(FRAME), expected)


def test_a_part_that_has_two_names_is_saved_once(tiny_bert, tmp_path):
    model, _ = _fit("tuned", tiny_bert)
    folder = Path(save(model, tmp_path / "saved"))
    loaded = load(folder)
    assert loaded.named_estimators_["b"] is loaded.estimators_[1]
    assert len(list((folder / "weights").iterdir())) == 1


def test_saving_leaves_the_model_as_it_is(tiny_bert, tmp_path):
    model, _ = _fit("voting", tiny_bert)
    before = model.estimators_[0][0]
    save(model, tmp_path / "saved")
    assert model.estimators_[0][0] is before
    assert isinstance(model.named_estimators_["a"][0], BertFeatures)


def test_the_encoder_of_a_part_can_be_moved(tiny_bert, tmp_path):
    model, X = _fit("columns", tiny_bert)
    folder, expected = save(model, tmp_path / "saved"), model.predict_proba(X)
    moved = Path(tiny_bert).rename(tmp_path / "moved")
    try:
        loaded = load(folder, model=moved)
        assert np.array_equal(loaded.predict_proba(X), expected)
    finally:
        moved.rename(tiny_bert)


def test_a_cache_of_a_part_is_not_read(tiny_bert, tmp_path):
    model = MODELS["columns"](tiny_bert)
    model[0].transformers[0][1].set_params(cache=str(tmp_path / "cache"))
    loaded = load(save(model, tmp_path / "saved"))
    assert loaded[0].transformers[0][1].cache == "memory"


def test_requests_of_a_part_are_kept(tiny_bert, tmp_path):
    with config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        model = columns((features(tiny_bert), "text"), (scaler, ["n"]))
        loaded = load(save(model, tmp_path / "saved"))
        routing = loaded[0].transformers[1][1].get_metadata_routing()
    assert routing.fit.requests == {"sample_weight": True}


def test_a_part_must_be_of_a_known_class(tiny_bert, tmp_path):
    model, _ = _fit("columns", tiny_bert)
    folder = save(model, tmp_path / "saved")

    def change(content):
        text = json.dumps(content).replace('"BertFeatures"', '"Popen"')
        return json.loads(text)

    _rewrite(folder, "object.json", change)
    with pytest.raises(ValueError, match=r"class 'Popen'.* may not be loaded"):
        load(folder)


def test_a_part_that_is_missing_is_found(tiny_bert, tmp_path):
    folder = save(_fit("columns", tiny_bert)[0], tmp_path / "saved")

    def change(content):
        steps = content["object"]["params"]["steps"]
        steps[0]["items"][1]["parts"].pop()

    _rewrite(folder, "object.json", change)
    with pytest.raises(ValueError, match=r"cannot be understood at 'steps\[0\]\[1\]'"):
        load(folder)
