"""Exports of models that read several columns of a table."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from skactive import export_onnx, runtime
from skactive.bert import BertFeatures
from skactive.cli import main
from skactive.features import StaticFeatures

from ..conftest import TEXTS

FRAME = pd.DataFrame(
    {
        "text": [*TEXTS, "a long day " * 40],
        "n": np.arange(9) * 1e5 + 1.7e9,  # large, as times are
        "gaps": [1.0, None, 3.0, None, 2.0, 8.0, 5.0, 4.0, 0.5],
        "title": ["one", "two words", "three of them"] * 3,
    }
)
NAMES = np.array(list("abcabcabc"))


def features(folder, **params):
    return BertFeatures(folder, **{"max_length": 40, "precision": "float32"} | params)


def fit(front, head=None, y=NAMES, frame=FRAME):
    return make_pipeline(front, head or LogisticRegression()).fit(frame, y)


def export(model, tmp_path):
    return runtime.load(export_onnx(model, tmp_path / "exported"))


@pytest.fixture
def text_and_number(tiny_bert):
    columns = (features(tiny_bert), "text"), (StandardScaler(), ["n"])
    return fit(make_column_transformer(*columns))


def check_equal(model, exported, frame=FRAME):
    expected = model.predict_proba(frame)
    assert np.abs(exported.predict_proba(frame) - expected).max() < 1e-5
    assert exported.predict(frame) == model.predict(frame).tolist()


def test_text_and_number(text_and_number, tmp_path):
    exported = export(text_and_number, tmp_path)
    assert exported.columns == ["text", "n"]
    check_equal(text_and_number, exported)


def test_rows_columns_and_frames_are_read_alike(text_and_number, tmp_path):
    exported = export(text_and_number, tmp_path)
    expected = exported.predict_proba(FRAME)
    columns = FRAME.to_dict("list")
    texts = columns | {"n": [str(n) for n in columns["n"]]}  # as in a CSV file
    for X in (FRAME.to_dict("records"), columns, texts, FRAME[["n", "text"]]):
        assert np.array_equal(exported.predict_proba(X), expected)
    assert exported.predict_proba(FRAME[:0]).shape == (0, 3)
    assert exported.predict([]) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda f: ColumnTransformer(
            [("t", f, "text"), ("n", "passthrough", ["gaps"]), ("x", "drop", ["n"])],
            transformer_weights={"t": 0.5, "n": 3.0},
        ),
        lambda f: make_column_transformer(
            (make_pipeline(f, MinMaxScaler()), 0),
            (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), [2]),
            (StandardScaler(with_mean=False), slice(1, 2)),
        ),
        lambda f: make_column_transformer(
            (f, "title"), ("drop", ["text"]), remainder=SimpleImputer()
        ),
        lambda f: make_column_transformer((f, ["text", "title"])),  # pairs
    ],
)
def test_column_transformers(make, tiny_bert, tmp_path):
    transformer, frame = make(features(tiny_bert)), FRAME
    if any(step == "passthrough" for _, step, _ in transformer.transformers):
        frame = FRAME.assign(gaps=FRAME["gaps"].fillna(7))
    model = fit(transformer, frame=frame)
    check_equal(model, export(model, tmp_path), frame)


def test_columns_of_two_encoders(tiny_bert, tmp_path):
    parts = features(tiny_bert), StaticFeatures(tiny_bert, pca_dims=None)
    model = fit(make_column_transformer((parts[0], "text"), (parts[1], "title")))
    exported = export(model, tmp_path)
    check_equal(model, exported)
    assert [x["columns"] for x in exported._readings] == [["text"], ["title"]]


def test_numbers_from_text_and_number(tiny_bert, tmp_path):
    front = make_column_transformer(
        (features(tiny_bert), "text"), ("passthrough", ["n"])
    )
    model = fit(front, Ridge(), np.arange(9.0))
    assert np.allclose(export(model, tmp_path).predict(FRAME), model.predict(FRAME))


def test_a_gap_is_filled_only_if_each_use_fills_it(tiny_bert, tmp_path):
    uses = (SimpleImputer(), ["gaps"]), ("passthrough", ["gaps"])
    front = make_column_transformer((features(tiny_bert), "text"), *uses)
    filled = FRAME.assign(gaps=FRAME["gaps"].fillna(1))
    exported = export(fit(front, frame=filled), tmp_path)
    with pytest.raises(
        ValueError, match=r"'gaps' must hold finite numbers.*position 1"
    ):
        exported.predict(FRAME)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"text": [None]}, TypeError, "column 'text' must hold texts.* got None"),
        ({"n": ["many"]}, ValueError, "column 'n' must hold finite numbers.*'many'"),
        ({"n": [None]}, ValueError, "'n' must hold finite numbers: None at position 0"),
        ({"n": [float("inf")]}, ValueError, "'n' must hold finite numbers: inf"),
        ({"n": [[1, 2]]}, ValueError, "column 'n' must hold finite numbers"),
        ({"n": [1, 2]}, ValueError, "'X' must hold columns of one length"),
    ],
)
def test_bad_cells_are_named(text_and_number, tmp_path, change, kind, message):
    exported = export(text_and_number, tmp_path)
    with pytest.raises(kind, match=message):
        exported.predict({"text": ["a"], "n": [1.0]} | change)


@pytest.mark.slow
@pytest.mark.parametrize("X", [["a text"], "a text", {"text": ["a"]}, [{"n": 1}], None])
def test_other_input_names_the_columns(text_and_number, tmp_path, X):
    with pytest.raises(TypeError, match=r"'X' must be a data frame.* with 'text', 'n'"):
        export(text_and_number, tmp_path).predict(X)


def test_columns_without_names_are_refused(tiny_bert, tmp_path):
    model = fit(
        make_column_transformer((features(tiny_bert), 0), (StandardScaler(), [1])),
        frame=FRAME[["text", "n"]].to_numpy(),
    )
    with pytest.raises(TypeError, match="must have been fitted on a data frame"):
        export_onnx(model, tmp_path / "exported")


@pytest.mark.parametrize(
    ("step", "name"),
    [(OneHotEncoder(), "OneHotEncoder"), (SimpleImputer(add_indicator=True), "Simple")],
)
def test_other_steps_of_columns_are_refused(step, name, tiny_bert, tmp_path):
    front = make_column_transformer((features(tiny_bert), "text"), (step, ["gaps"]))
    with pytest.raises(TypeError, match=f"columns of numbers and scalers.*got {name}"):
        export_onnx(fit(front), tmp_path / "exported")


def test_a_model_without_texts_is_refused(tmp_path):
    model = fit(make_column_transformer((StandardScaler(), ["n"])))
    with pytest.raises(TypeError, match="'model' must be a pipeline of BertFeatures"):
        export_onnx(model, tmp_path / "exported")


def test_the_command_predicts_a_table(text_and_number, tmp_path, capsys):
    folder = export_onnx(text_and_number, tmp_path / "exported")
    frame = FRAME[:3]  # an empty cell is no text
    frame.to_csv(tmp_path / "new.csv", index=False)
    assert main(["predict", folder, str(tmp_path / "new.csv")]) == 0
    found = pd.read_csv(tmp_path / "new.predicted.csv")
    assert found["prediction"].tolist() == text_and_number.predict(frame).tolist()
    assert list(found) == [*FRAME, "prediction", "probability"]
    for more in (["--text", "text"], []):
        source = tmp_path / "new.csv" if more else tmp_path
        out = ["--out", str(tmp_path.parent / "out.parquet")]
        assert main(["predict", folder, str(source), *more, *out]) == 1
        assert "this model reads the columns text, n" in capsys.readouterr().err


def test_an_export_of_one_reading_is_still_read(tiny_bert, tmp_path):
    model = make_pipeline(features(tiny_bert), LogisticRegression())
    model.fit(FRAME["text"].tolist(), NAMES)
    folder = tmp_path / "exported"
    expected = export(model, tmp_path).predict_proba(["a text"])
    config = json.loads((folder / "config.json").read_text())
    (reading,) = config.pop("readings")  # as skactive 0.2.0 wrote it
    reading.pop("tokenizer"), reading.pop("columns"), config.pop("numbers")
    (folder / "config.json").write_text(json.dumps(config | reading))
    old = runtime.OnnxModel(folder)
    assert np.array_equal(old.predict_proba(["a text"]), expected)


def test_a_column_may_be_named_like_the_key_of_weights_elsewhere(tiny_bert, tmp_path):
    frame = FRAME.rename(columns={"n": "location"})
    columns = (features(tiny_bert), "text"), (StandardScaler(), ["location"])
    labels = np.array(["location", "external_data"] * 5)[:9]
    model = fit(make_column_transformer(*columns), y=labels, frame=frame)
    exported = export(model, tmp_path)
    check_equal(model, exported, frame)
