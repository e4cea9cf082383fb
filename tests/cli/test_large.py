"""The commands `encode`, `label` and `predict` on tables larger than memory."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.pipeline import make_pipeline

from skactive._storage._text_file import TextFile
from skactive.cli import main
from skactive.features import PrecomputedFeatures
from skactive.project._model import add_encoder
from skactive.session import read_labels

from .._tables._helpers import write_columns
from ._helpers import override

N_ROWS, N_GIVEN = 40, 6


def truth(text):
    return "good" if "good" in text else "bad"


@pytest.fixture
def columns():
    words = ["red", "green", "blue", "old", "new"]
    texts = [f"a {words[i % 5]} {['good', 'bad'][i % 2]} {i}" for i in range(N_ROWS)]
    return {
        "key": [f"k{i:03d}" for i in range(N_ROWS)],
        "text": texts,
        "label": [truth(x) if i < N_GIVEN else None for i, x in enumerate(texts)],
    }


@pytest.fixture(params=[".parquet", ".csv"])
def folder(columns, tmp_path, request):
    """The table in two files of a folder."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for part, rows in enumerate((slice(0, 15), slice(15, None))):
        cells = {name: values[rows] for name, values in columns.items()}
        write_columns(folder / f"part-{part}{request.param}", cells)
    return folder


@pytest.fixture
def encode(tiny_bert, tmp_path):
    def encode(folder, *options):
        out = str(tmp_path / "features")
        place = ["encode", str(folder), "--text", "text", "--folder", out]
        return main([*place, "--model", tiny_bert, *options])

    return encode


@pytest.fixture
def label(tmp_path, monkeypatch, capsys):
    """Run `label` at the prompt; each of `n` texts gets its class."""

    def label(folder, n, *options, columns="label"):
        shown, n_left = [], [n]

        def read(prompt):
            if not n_left[0]:
                raise EOFError
            n_left[0] -= 1
            return truth(next(x for x in reversed(shown) if x.startswith("a ")))

        def show(*values, **_):
            shown.extend(map(str, values))

        with monkeypatch.context() as patch:
            patch.setattr("builtins.input", read)
            patch.setattr("builtins.print", show)
            place = ["label", str(folder), "--text", "text", "--label", columns]
            features = ["--features", str(tmp_path / "features")]
            status = main(override([*place, *features, "--terminal"], options))
        return status, shown

    return label


@pytest.mark.long
@pytest.mark.slow
def test_from_a_folder_to_a_labeled_table(encode, label, folder, columns, tmp_path):
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert encode(folder) == 0
    status, shown = label(folder, 8, "--id", "key")
    assert status == 0, shown
    assert f"{N_ROWS} texts, {N_GIVEN} labels given, 0 by people" in shown
    out = pq.read_table(tmp_path / "notes.labeled.parquet").to_pydict()
    assert out["id"] == columns["key"]
    assert out["text"] == columns["text"]
    sources = out["label_source"]
    assert [sources.count(x) for x in ("given", "person", "model")] == [6, 8, 26]
    assert sources[:N_GIVEN] == ["given"] * N_GIVEN
    for text, name, source in zip(out["text"], out["label"], sources, strict=True):
        assert source == "model" or name == truth(text)
    assert [x is not None for x in out["seconds"]] == [x == "person" for x in sources]
    assert out["flag"] == [False] * N_ROWS
    assert out["note"] == [None] * N_ROWS
    assert all(0.5 <= p <= 1 for p in out["probability"])
    labels = read_labels(tmp_path / "notes.skactive" / "session")
    by_key = dict(zip(columns["key"], columns["text"], strict=True))
    assert {id: truth(by_key[id]) for id in labels} == labels
    assert {path: path.read_bytes() for path in folder.iterdir()} == before

    status, shown = label(folder, 2, "--id", "key")  # the same session goes on
    assert f"{N_ROWS} texts, {N_GIVEN} labels given, 8 by people" in shown
    assert len(read_labels(tmp_path / "notes.skactive" / "session")) == 10


@pytest.mark.long
def test_flags_notes_and_skips_are_columns(encode, folder, tmp_path, monkeypatch):
    encode(folder)
    lines = iter(["s", "f", "n unclear", "1", "q"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(lines))
    place = ["label", str(folder), "--text", "text", "--label", "label"]
    assert main([*place, "--features", str(tmp_path / "features"), "--terminal"]) == 0
    out = pq.read_table(tmp_path / "notes.labeled.parquet").to_pydict()
    sources = out["label_source"]
    assert (sources.count("skipped"), sources.count("person")) == (1, 1)
    assert out["label"][sources.index("skipped")] is None
    assert None not in out["prediction"]
    person = sources.index("person")
    assert [row for row in range(N_ROWS) if out["flag"][row]] == [person]
    assert [row for row in range(N_ROWS) if out["note"][row]] == [person]


@pytest.mark.long
@pytest.mark.slow
def test_the_saved_model_predicts_new_texts(encode, label, folder, columns, tmp_path):
    encode(folder)
    _, shown = label(folder, 8)
    model = str(tmp_path / "notes.skactive" / "model")
    assert f"the model is in {model}" in shown
    assert main(["predict", model, str(folder)]) == 0
    out = pq.read_table(tmp_path / "notes.predicted.parquet").to_pydict()
    labeled = pq.read_table(tmp_path / "notes.labeled.parquet").to_pydict()
    assert out["id"] == labeled["id"] == list(range(N_ROWS))
    assert out["prediction"] == labeled["prediction"]
    # The features in the folder are of float16.
    np.testing.assert_allclose(out["probability"], labeled["probability"], atol=0.01)


@pytest.mark.long
def test_one_file_with_features_and_no_labels(encode, label, columns, tmp_path):
    write_columns(tmp_path / "notes.jsonl", {"text": columns["text"]})
    assert encode(tmp_path / "notes.jsonl", "--dtype", "float32") == 0
    features = PrecomputedFeatures(str(tmp_path / "features"))
    assert features.transform(columns["text"]).dtype == np.float32
    classes = "--classes", "good,bad"
    status, shown = label(tmp_path / "notes.jsonl", 4, *classes, columns="kind")
    assert status == 0, shown
    assert "a column 'kind' is added; the files have none" in shown
    out = pq.read_table(tmp_path / "notes.labeled.parquet").to_pydict()
    assert out["label_source"].count("person") == 4


def test_encoding_goes_on_after_an_interruption(encode, folder, monkeypatch, capsys):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("skactive.bert.BertFeatures.transform_to", interrupt)
        assert encode(folder) == 130
    assert "the same command goes on" in capsys.readouterr().err
    assert encode(folder) == 0
    assert encode(folder) == 0
    assert f"16 features of {N_ROWS} texts" in capsys.readouterr().out


def test_prompt_and_dimensions_are_those_of_the_saved_model(
    encode, folder, tmp_path, capsys
):
    options = ["--prompt", "the team ", "--dimensions", "9"]
    assert encode(folder, *options) == 0
    assert f"9 features of {N_ROWS} texts" in capsys.readouterr().out
    encoder = add_encoder(make_pipeline(None, None), tmp_path / "features")[0]
    assert (encoder.prompt, encoder.dimensions) == ("the team ", 9)
    assert encode(folder, *options, "--static") == 1
    assert (
        "argument --prompt: must be left out with --static" in capsys.readouterr().err
    )


@pytest.mark.parametrize("options", [[], ["--features", "missing"]])
def test_a_folder_without_features_names_the_command(folder, options, capsys):
    place = ["label", str(folder), "--text", "text", "--label", "label", "--terminal"]
    assert main([*place, *options]) == 1
    error = capsys.readouterr().err
    assert f"Run `skactive encode {folder} --text text --folder" in error


@pytest.mark.long
def test_texts_are_read_in_parts(encode, label, folder, tmp_path, monkeypatch):
    encode(folder)
    monkeypatch.setattr("skactive.project._project.ROWS", 4)
    sizes, read = [], TextFile.read_texts

    def spy(self, rows):
        sizes.append(len(rows))
        return read(self, rows)

    monkeypatch.setattr(TextFile, "read_texts", spy)
    assert label(folder, 3)[0] == 0
    assert max(sizes) <= N_GIVEN + 3
    out = pq.ParquetFile(tmp_path / "notes.labeled.parquet")
    assert out.num_row_groups == N_ROWS // 4


@pytest.mark.long
def test_several_classes_and_numbers(encode, label, columns, tmp_path):
    several = [["warm", "old"], ["cold"], [], ["warm"], None] * (N_ROWS // 5)
    numbers = [float(i) if i < 9 else None for i in range(N_ROWS)]
    table = {"text": columns["text"], "label": several, "size": numbers}
    write_columns(tmp_path / "notes.parquet", table)
    encode(tmp_path / "notes.parquet")
    status, shown = label(tmp_path / "notes.parquet", 0)
    assert status == 0, shown
    out = pq.read_table(tmp_path / "notes.labeled.parquet").to_pydict()
    given = [i for i, names in enumerate(several) if names is not None]
    assert [out["label"][i] for i in given] == [several[i] for i in given]
    options = "--regression", "--folder", str(tmp_path / "sizes")
    status, shown = label(tmp_path / "notes.parquet", 0, *options, columns="size")
    assert status == 0, shown
    out = pq.read_table(tmp_path / "notes.sizes.labeled.parquet").to_pydict()
    assert out["label"][:9] == numbers[:9]
    assert out["label_source"].count("model") == N_ROWS - 9
    assert json.loads((tmp_path / "sizes" / "model.json").read_text())["target"]


@pytest.mark.long
@pytest.mark.slow
def test_two_codings_of_a_large_table(encode, label, folder, tmp_path):
    encode(folder)
    (tmp_path / "notes.labeled.parquet").write_bytes(b"mine")
    status, shown = label(folder, 4)
    assert status == 0, shown
    kept = tmp_path / "notes.labeled.1.parquet"
    assert kept.read_bytes() == b"mine"
    assert any(f"it is kept as {kept}" in line for line in shown)
    status, shown = label(folder, 3, "--classes", "good,bad", columns="quality")
    assert status == 0, shown
    assert f"{N_ROWS} texts, 0 labels given, 0 by people" in shown
    first, second = (
        pq.read_table(tmp_path / f"notes{name}.labeled.parquet").to_pydict()
        for name in ("", ".quality")
    )
    assert first["label_source"].count("person") == 4
    assert second["label_source"].count("person") == 3
    assert not (tmp_path / "notes.quality.skactive" / "pool").exists()
    status, shown = label(folder, 0, "--id", "key")
    error = "notes.skactive was begun without --id. Use the same ids, or --folder NEW."
    assert status == 1
    assert shown[-1].endswith(error)


@pytest.mark.long
def test_labels_of_some_files_count(encode, label, folder, columns):
    first = sorted(folder.iterdir())[0]
    n = 15
    write_columns(first, {"key": columns["key"][:n], "text": columns["text"][:n]})
    cells = {name: values[n:] for name, values in columns.items()}
    cells["label"] = [
        truth(text) if i < 4 else None for i, text in enumerate(cells["text"])
    ]
    write_columns(first.with_stem("part-1"), cells)
    assert encode(folder) == 0
    status, shown = label(folder, 0)
    assert status == 0, shown
    assert f"{N_ROWS} texts, 4 labels given, 0 by people" in shown
    assert f"{first.name} has no column 'label': its texts have no labels" in shown


def test_a_file_with_some_columns_of_labels_is_refused(encode, label, folder, columns):
    first = sorted(folder.iterdir())[0]
    write_columns(first, {"text": columns["text"][:15], "price": [1] * 15})
    assert encode(folder) == 0
    status, shown = label(folder, 0, "--label", "price", "service")
    assert status == 1
    assert f"{str(first)!r} has no column 'service'" in "".join(shown)
