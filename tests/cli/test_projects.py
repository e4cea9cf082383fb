"""Whose answers and whose files: the commands next to the files of a person."""

import _thread
import errno
import json
import os
import stat
import threading
import time
from pathlib import Path
from unittest.mock import Mock

import httpx
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from skactive import save
from skactive._storage import _files
from skactive.cli import _export, main

from .._tables._helpers import read_columns, write_columns

N_ROWS = 30
TEXTS = [f"a {['good', 'bad'][i % 2]} film number {i}" for i in range(N_ROWS)]
RULES = {
    "category": lambda text: "praise" if "good" in text else "complaint",
    "sentiment": lambda text: "sad" if "bad" in text else "happy",
}


def _read(path):
    columns = read_columns(Path(path))
    return columns


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {
        name: [rule(x) if i < 4 else None for i, x in enumerate(TEXTS)]
        for name, rule in RULES.items()
    }
    write_columns(tmp_path / "t.csv", {"text": TEXTS, **given})
    return tmp_path / "t.csv"


@pytest.fixture
def label(table, tiny_bert, monkeypatch, capsys):
    """Run `label` at the prompt for a column; the first `n` texts get its class."""

    def label(column, n, *options):
        shown, left = [], list(range(n))

        def read(prompt):
            if not left:
                raise EOFError
            left.pop()
            return RULES[column](next(x for x in shown[::-1] if x.startswith("a ")))

        command = ["label", str(table), "--text", "text", "--label", column]
        command += ["--model", tiny_bert, "--no-fine-tuning"]
        with monkeypatch.context() as patch:
            patch.setattr("builtins.input", read)
            patch.setattr("builtins.print", lambda *x, **_: shown.extend(map(str, x)))
            return main([*command, "--terminal", *options]), shown

    return label


def _answer_on_the_page(folder, rule, n):
    """Answer n texts of the page of a project over HTTP, then finish."""
    path, end = folder / "page.json", time.monotonic() + 60
    try:
        while not path.exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        page = json.loads(path.read_text())
        url = f"http://127.0.0.1:{page['port']}/{page['token']}/api"
        for _ in range(n):
            (item,) = _post(url, "next", client="a", n_queries=1)
            given = {"id": item["id"], "label": rule(item["text"])}
            _post(url, "answer", client="a", **given)
        _post(url, "finish")
    except BaseException:
        _thread.interrupt_main()  # else the command waits for answers
        raise


def _post(url, method, **arguments):
    reply = httpx.post(f"{url}/{method}", json=arguments, timeout=60)
    return reply.raise_for_status().json()


def _check(out, column, n_person):
    """Check that all labels of a table are of its own column."""
    rule, sources = RULES[column], out["label_source"]
    assert sources.count("person") == n_person
    assert set(out[column]) == set(map(rule, TEXTS))
    for text, name, source in zip(out["text"], out[column], sources, strict=True):
        assert source == "model" or name == rule(text)


@pytest.mark.slow
def test_two_codings_of_one_table(label, table, tiny_bert, tmp_path, capsys):
    before = table.read_bytes()
    # One person types answers for a column in the terminal.
    status, shown = label("category", 8)
    assert status == 0, shown
    # Another one answers for another column on the page.
    folder = tmp_path / "t.sentiment.skactive"
    answers = folder, RULES["sentiment"], 6
    thread = threading.Thread(target=_answer_on_the_page, args=answers, daemon=True)
    thread.start()
    command = ["label", str(table), "--text", "text", "--label", "sentiment"]
    command += ["--model", tiny_bert, "--no-fine-tuning", "--no-browser"]
    assert main(command) == 0
    thread.join(60)
    error = capsys.readouterr().err
    assert "30 texts, 4 labels given, 0 by people" in error
    assert "the answers are in t.sentiment.skactive" in error
    first, second = tmp_path / "t.labeled.csv", tmp_path / "t.sentiment.labeled.csv"
    _check(_read(first), "category", 8)
    _check(_read(second), "sentiment", 6)
    assert _read(first)["sentiment"] == _read(table)["sentiment"]
    assert _read(second)["category"] == _read(table)["category"]
    # A person corrects the first table, and continues.
    other = second.read_bytes()
    corrected = first.read_bytes().replace(b"complaint", b"question")
    first.write_bytes(corrected)
    status, shown = label("category", 2)
    assert "30 texts, 4 labels given, 8 by people" in shown
    assert any("it is kept as" in line and "t.labeled.1.csv" in line for line in shown)
    assert (tmp_path / "t.labeled.1.csv").read_bytes() == corrected
    _check(_read(first), "category", 10)
    assert second.read_bytes() == other
    assert table.read_bytes() == before
    assert len(list(tmp_path.glob("*.csv"))) == 4


def test_another_column_of_texts_is_named(label, table, capsys):
    label("category", 2)
    columns = _read(table)
    write_columns(table, {**columns, "id": [f"k{i}" for i in range(N_ROWS)]})
    assert main(["label", "t.csv", "--text", "id", "--label", "category"]) == 1
    error = "skactive: error: t.skactive was begun with --text text. Use that column, "
    assert capsys.readouterr().err == f"{error}or --folder NEW.\n"


@pytest.mark.long
@pytest.mark.slow
def test_a_full_disk_at_the_end_says_that_the_labels_are_safe(
    label, table, tmp_path, monkeypatch, capsys
):
    def fail(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("skactive._storage._outputs.hash_file", fail)
        status, shown = label("category", 3)
    assert status == 1
    assert "t.labeled.csv' could not be written: No space left" in shown[-1]
    assert "The labels by people are safe in t.skactive" in shown[-1]
    with monkeypatch.context() as patch:
        patch.setattr("skactive.project._model.save", fail)
        status, shown = label("category", 1)
    assert "t.skactive' was not saved: No space left" in shown[-1]
    assert "The labels by people are safe in t.skactive" in shown[-1]
    assert label("category", 0)[0] == 0
    assert _read(tmp_path / "t.labeled.csv")["label_source"].count("person") == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--text text Text", "--text: must be the name of one column, or of two diff"),
        ("--text text --suggest text", "--suggest: must be another column than the te"),
        ("--text text --strategy cvirs", "strategy 'cvirs' is defined for multi-label"),
        ("--text text --until f1:odd:5", "--until: must name a class of the session,"),
        ("--text text --dimensions 99999", "--dimensions: must be at most"),
    ],
)
def test_what_cannot_be_is_refused_before_a_text_is_asked(
    table, tiny_bert, monkeypatch, capsys, options, message
):
    monkeypatch.setattr("builtins.input", Mock(side_effect=EOFError))
    command = f"label t.csv --terminal --label category --model {tiny_bert} {options}"
    assert main(command.split()) == 1
    assert f"skactive: error: {message}" in capsys.readouterr().err.replace(
        "argument ", ""
    )


@pytest.fixture
def model(tmp_path, monkeypatch):
    """The folder of a model that `label` could have written."""
    monkeypatch.chdir(tmp_path)
    pipeline = make_pipeline(CountVectorizer(), MultinomialNB())
    pipeline.fit(TEXTS, list(map(RULES["sentiment"], TEXTS)))
    save(pipeline, tmp_path / "t.skactive" / "model")
    about = {"text": ["text"], "label": "sentiment"}
    (tmp_path / "t.skactive" / "model.json").write_text(json.dumps(about))
    about |= {"file": "t.csv", "label": ["sentiment"], "id": None, "separator": None}
    about["target"] = "single-label"
    (tmp_path / "t.skactive" / "project.json").write_text(json.dumps(about))
    write_columns(tmp_path / "new.csv", {"text": TEXTS[:3]})
    return tmp_path / "t.skactive" / "model"


def _predict(model, *options):
    return main(["predict", str(model), *map(str, options)])


def test_predictions_do_not_replace_the_table(model, tmp_path, capsys):
    before = (tmp_path / "new.csv").read_bytes()
    (tmp_path / "link.csv").symlink_to("new.csv")
    os.link("new.csv", "hard.csv")
    for out in ("new.csv", "../" + tmp_path.name + "/new.csv", "link.csv", "hard.csv"):
        assert _predict(model, "new.csv", "--out", out) == 1
        assert "argument --out: must be another file" in capsys.readouterr().err
    assert (tmp_path / "new.csv").read_bytes() == before
    assert (tmp_path / "link.csv").is_symlink()
    (tmp_path / "parts").mkdir()
    write_columns(tmp_path / "parts" / "a.parquet", {"text": TEXTS[:3]})
    for out in ("parts/a.parquet", "parts/b.parquet"):
        assert _predict(model, "parts", "--out", out) == 1
        assert "argument --out: must be another file" in capsys.readouterr().err


@pytest.mark.parametrize("out", ["new.txt", "missing/new.csv"])
def test_an_unusable_out_is_refused_before_any_work(model, capsys, out):
    assert _predict(model, "new.csv", "--out", out) == 1
    assert "argument --out: must end in .csv or .tsv" in capsys.readouterr().err


def test_predict_takes_as_many_columns_as_the_model_reads(model, tmp_path, capsys):
    write_columns(tmp_path / "new.csv", {"text": TEXTS, "more": TEXTS})
    assert _predict(model, "new.csv", "--text", "more") == 0
    assert _predict(model, "new.csv", "--text", "text", "more") == 1
    assert "argument --text: must name as many columns" in capsys.readouterr().err


def test_predictions_of_another_model_are_kept_and_said_to_be(model, tmp_path, capsys):
    assert _predict(model, "new.csv") == 0
    other = make_pipeline(CountVectorizer(), MultinomialNB())
    other.fit(TEXTS, list(map(RULES["category"], TEXTS)))
    save(other, "other/model")
    assert _predict("other/model", "new.csv", "--text", "text") == 0
    assert "or is of another model or program" in capsys.readouterr().err


def test_advice_names_options_of_the_command(model, capsys, monkeypatch):
    monkeypatch.setattr(_export, "export_onnx", Mock(side_effect=FileExistsError))
    assert main(["export", str(model), "exp"]) == 1
    error = capsys.readouterr().err
    assert "argument FOLDER: must be new" in error
    assert "overwrite" not in error
    command = "annotate new.csv --text text --classes a,b --machine localhost:1"
    assert main([*command.split(), "--machine-model", "m"]) == 1
    assert "argument --machine: must be an http" in capsys.readouterr().err


@pytest.mark.parametrize("source", ["new.csv", "parts"])
def test_a_file_with_the_name_of_the_predictions_is_kept(
    model, tmp_path, capsys, source
):
    (tmp_path / "parts").mkdir()
    write_columns(tmp_path / "parts" / "a.parquet", {"text": TEXTS[:3]})
    suffix = ".csv" if source == "new.csv" else ".parquet"
    name = source.removesuffix(".csv") + ".predicted"
    out, kept = (tmp_path / f"{name}{x}{suffix}" for x in ("", ".1"))
    out.write_text("mine")
    assert _predict(model, source) == 0
    shown = capsys.readouterr()
    assert f"it is kept as {kept.name}" in shown.err
    assert shown.out == f"{out.name}: 3 predictions\n"
    assert kept.read_text() == "mine"
    # The command replaces what it wrote.
    table = (
        tmp_path / source if source == "new.csv" else tmp_path / source / "b.parquet"
    )
    write_columns(table, {"text": TEXTS[:5] if source == "new.csv" else TEXTS[3:5]})
    assert _predict(model, source) == 0
    assert capsys.readouterr().err == ""
    assert len(list(tmp_path.glob(f"{name}*"))) == 2
    # Without the record of a project, it cannot know.
    (model.parent / "project.json").unlink()
    write_columns(table, {"text": TEXTS[:4] if source == "new.csv" else TEXTS[3:4]})
    assert _predict(model, source) == 0
    assert f"{name}.2{suffix}" in capsys.readouterr().err


def test_the_labeled_table_is_not_replaced_by_predictions(model, tmp_path, capsys):
    record = model.parent / "project.json"
    about = json.loads(record.read_text())
    _files.write_atomic(tmp_path / "t.labeled.csv", b"text\nx\n")
    digest = "3a3cf9dcd1a3ce4c5bc0a2dbb0ba2e2b4e0cbd05e07ad9a5ec0a5f5b97b4d56f"
    about["labeled"] = {os.path.join("..", "t.labeled.csv"): digest}
    record.write_text(json.dumps(about))
    assert _predict(model, "new.csv", "--out", "t.labeled.csv") == 0
    assert (tmp_path / "t.labeled.1.csv").read_bytes() == b"text\nx\n"


def test_columns_of_the_table_survive_the_predictions(model, tmp_path):
    table = {"text": TEXTS[:2], "prediction": ["rain", "sun"], "probability": ["1", ""]}
    write_columns(tmp_path / "new.csv", table)
    assert _predict(model, "new.csv") == 0
    out = _read("new.predicted.csv")
    assert list(out) == [*table, "skactive_prediction", "skactive_probability"]
    assert out["prediction"] == ["rain", "sun"]
    assert out["skactive_prediction"] == ["happy", "sad"]


@pytest.mark.posix
def test_predictions_are_no_more_readable_than_the_table(model, tmp_path):
    (tmp_path / "new.csv").chmod(0o600)
    assert _predict(model, "new.csv") == 0
    mode = (tmp_path / "new.predicted.csv").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


@pytest.mark.parametrize(
    "content",
    [
        b"\xff{",
        b"{",
        b"[1]",
        b'{"text": 5, "label": "a"}',
        b'{"text": "text", "label": "a", "classes": "ab"}',
        b'{"text": "text", "label": "a", "target": "multi-label"}',
        b'{"text": "text", "label": "a", "target": "several"}',
    ],
)
def test_a_damaged_description_of_a_model_is_named(model, capsys, content):
    (model.parent / "model.json").write_bytes(content)
    assert _predict(model, "new.csv") == 1
    error = capsys.readouterr().err
    assert "model.json' must be what `skactive label` wrote about the model" in error


@pytest.mark.posix
def test_files_of_a_large_table_are_no_more_readable_than_it(tiny_bert, tmp_path):
    table = tmp_path / "large.csv"
    write_columns(table, {"text": TEXTS[:4]})
    table.chmod(0o600)
    (tmp_path / "features.encoder.json").write_text("mine")
    command = ["encode", str(table), "--text", "text", "--model", tiny_bert]
    assert main([*command, "--folder", str(tmp_path / "features")]) == 0
    for folder in ("large.skactive", "features"):
        assert stat.S_IMODE((tmp_path / folder).stat().st_mode) == 0o700
    assert (tmp_path / "features.encoder.1.json").read_text() == "mine"
