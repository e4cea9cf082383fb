"""What a labeled table can hold, and what is said about the labels of a file."""

import json
from datetime import date

import pytest
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner
from skactive.project import Project
from skactive.project._table import LargeTable

from .._tables._helpers import read_columns, write_columns

TEXTS = [f"{'good' if i % 2 else 'bad'} film number {i}" for i in range(12)]


@pytest.fixture
def open_project(tmp_path):
    """Write a table and open its project, which is closed at the end."""
    opened = []

    def open_project(labels, name="t.csv", texts=TEXTS, options=(), **more):
        cells = [*labels, *[None] * (len(texts) - len(labels))]
        write_columns(tmp_path / name, {"text": texts, "label": cells})
        project = Project(tmp_path / name, "text", "label", **dict(options), **more)
        model = make_pipeline(TfidfVectorizer(), LogisticRegression())
        project.open(ActiveLearner(model, "random", random_state=0))
        opened.append(project)
        return project

    yield open_project
    for project in opened:
        project.close()


@pytest.fixture
def open_columns(tmp_path):
    """Open the project of a table with a column for the class "a"."""
    opened = []

    def open_columns(classes):
        write_columns(tmp_path / "c.csv", {"text": TEXTS, "a": [1, *[None] * 11]})
        opened.append(Project(tmp_path / "c.csv", "text", ["a"], classes=classes))
        model = OneVsRestClassifier(DummyClassifier())
        learner = ActiveLearner(make_pipeline(TfidfVectorizer(), model), "random")
        return opened[0].open(learner)

    yield open_columns
    opened[0].close()


def test_spaces_around_labels_are_removed_and_counted(open_project, tmp_path):
    project = open_project(["ironic", "ironic ", " not ironic", "not ironic", "  "])
    assert project.session.known_classes == ["ironic", "not ironic"]
    assert (
        "2 labels of 'label' had spaces around them, which are removed"
        in project.messages
    )
    project.write()
    out = read_columns(project.output)
    assert out["label"][:5] == ["ironic", "ironic", "not ironic", "not ironic", None]
    assert out["label_source"][:5] == ["given"] * 4 + [None]


def test_spaces_around_the_names_in_lists_are_removed(open_project):
    labels = [["a", "b "], ["a"], ["b", " b"]]
    project = open_project(labels, "t.jsonl")
    assert list(project.given.values()) == [["a", "b"], ["a"], ["b"]]
    assert (
        "2 labels of 'label' had spaces around them, which are removed"
        in project.messages
    )
    project.write()
    out = read_columns(project.output)
    assert out["label"][:3] == [["a", "b"], ["a"], ["b"]]


def test_classes_that_differ_in_case_are_said(open_project):
    project = open_project(["ironic", "Ironic", "other"])
    message = "the classes 'ironic' and 'Ironic' look the same"
    assert message in project.messages


def test_the_character_nul_is_said(open_project):
    project = open_project(["a", "b"], texts=["a\0b", *TEXTS])
    message = "1 texts hold the character NUL, which other programs may not read"
    assert message in project.messages


def test_half_of_a_character_in_a_text_is_refused(open_project):
    match = r"column 'text' .* whole characters, got '\\ud800' at line 2"
    with pytest.raises(ValueError, match=match):
        open_project(["a", "b"], "t.jsonl", texts=["good", "a \ud800 b"])


def test_a_number_among_the_texts_is_refused(open_project):
    with pytest.raises(ValueError, match=r"must hold text, got 7 at line 3\. Name a"):
        open_project(["a", "b"], "t.jsonl", texts=["good", "bad", 7])


def test_false_can_be_named_as_a_class(open_project):
    project = open_project([True, False], "t.jsonl", classes=["True", "False"])
    assert project.session.known_classes == [True, False]
    assert project.messages == []


def test_bool_classes_can_only_be_true_and_false(open_project):
    with pytest.raises(ValueError, match=r"'classes' must be of the kind .* 'maybe'"):
        open_project([True, False], "t.jsonl", classes=["True", "False", "maybe"])


def test_classes_that_a_person_types_are_numbers_where_classes_are(open_project):
    project = open_project([1, 2, 2], "t.jsonl")
    project.desk.add_class("3 ")
    project.desk.edit_class(1, new="4")
    assert project.session.known_classes == [2, 4, 3]
    project.desk.add_class(3.5)
    assert project.session.known_classes[-1] == 3.5
    with pytest.raises(TypeError, match=r"all be of one kind .* got 'three'"):
        project.desk.add_class("three")
    project.write()
    out = read_columns(project.output)
    assert out["label"][:3] == [4, 2, 2]


def test_many_classes_with_one_text_each_are_named(open_project):
    classes = [f"class {i}" for i in range(101)]
    texts = [f"text {i}" for i in range(110)]
    match = r"'label' .* got 101 different values in 101 rows\. .* with classes=\."
    with pytest.raises(ValueError, match=match):
        open_project(classes, texts=texts)
    for given in (classes, None):  # the second time, the session knows them
        project = open_project(classes, texts=texts, classes=given)
        assert project.session.known_classes == classes
        project.close()


def test_an_infinite_label_is_refused(open_project):
    with pytest.raises(ValueError, match=r"labels of one type.* got inf at line 2"):
        open_project([1.5, float("inf")], "t.jsonl")


UNWRITABLE = [
    ("t.csv", "a\ud800"),
    ("t.parquet", "a\udfff"),
    ("t.xlsx", "a\x07"),
    ("t.xlsx", "a\uffff"),
]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("name", "text"), UNWRITABLE)
def test_a_name_that_the_format_cannot_hold_is_refused(open_project, name, text):
    for given in ({"classes": ["p", "n", text]}, {"annotator": text}):
        with pytest.raises(ValueError, match=r"the (class|annotator) .* cannot hold"):
            open_project(["p", "n"], name, **given)
    desk = open_project(["p", "n"], name).desk
    id = desk.next("tab", n_queries=1)[0]["id"]
    for call in (
        lambda: desk.add_class(text),
        lambda: desk.edit_class("p", new=text),
        lambda: desk.answer(id, "p", "tab", text),
        lambda: desk.skip(id, "tab", text),
        lambda: desk.note(id, f"{text}\x07\ud800"),
    ):
        before = desk.session._core.state.seq
        with pytest.raises(ValueError, match=r"\.(tsv|csv|parquet|xlsx) file cannot"):
            call()
        assert desk.session._core.state.seq == before


@pytest.mark.parametrize(("name", "text"), UNWRITABLE)
def test_what_is_refused_could_not_be_written(tmp_path, name, text):
    with pytest.raises(ValueError, match=r"cannot hold|half of a"):
        write_columns(tmp_path / name, {"label": [text]})


@pytest.mark.long
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.parquet", "t.xlsx"])
def test_other_names_are_written_as_they_are(open_project, name):
    names = ["é 漢", 'a "b", c', "d;e|f", "\N{PILE OF POO}", "x" * 99]
    names += ["a\tb", "a\nb"]
    project = open_project([], name, classes=names)
    for id, label in enumerate(names):
        project.desk.answer(id, label, "tab", label)
    project.write()
    out = read_columns(project.output)
    assert out["label"][: len(names)] == out["annotator"][: len(names)] == names


def test_a_separator_in_a_name_is_refused(open_project):
    several = {"separator": "|"}
    with pytest.raises(ValueError, match=r"'a\|b' must not hold '\|'"):
        open_project(["p|n"], options=several, classes=["p", "n", "a|b"])
    desk = open_project(["p|n"], options=several, annotator="me|you").desk
    with pytest.raises(ValueError, match=r"'a\|b' must not hold '\|'"):
        desk.add_class("a|b")


def test_a_name_beside_ids_is_refused(open_project):
    desk = open_project(json.loads("[[1, 2], [2]]"), "t.jsonl").desk
    with pytest.raises(ValueError, match="'new' must be an integer"):
        desk.add_class("new")
    desk.add_class("3")


def test_flags_notes_and_skips_are_columns(open_project):
    project = open_project(["good"], texts=[*TEXTS, TEXTS[3]], classes=["good", "bad"])
    desk = project.desk
    desk.answer(1, "bad", "tab", "ann")
    desk.flag(1)
    desk.note(2, "=unclear")
    desk.skip(3, "tab")
    desk.skip(0, "tab")  # a text with a label of the file
    model = project.session.learner
    assert project.write(model) == {"given": 1, "person": 1, "model": 9, "skipped": 2}
    out = read_columns(project.output)
    assert list(out)[-2:] == ["flag", "note"]
    assert out["flag"] == [str(row == 1) for row in range(13)]
    assert out["note"] == [None, None, "'=unclear", *[None] * 10]
    sources = ["given", "person", "model", "skipped", *["model"] * 8, "skipped"]
    assert out["label_source"] == sources
    skipped = [row for row, source in enumerate(sources) if source == "skipped"]
    assert [row for row, label in enumerate(out["label"]) if label is None] == skipped
    assert None not in out["prediction"]


@pytest.mark.parametrize("name", ["t.tsv", "t.csv", "t.xlsx"])
def test_a_note_can_have_several_lines(open_project, name):
    project = open_project([], name, classes=["p", "n"])
    project.desk.note(1, "first\n\tsecond")
    project.write()
    out = read_columns(project.output)
    assert project.output.name == f"t.labeled.{name[2:]}"
    assert out["note"][1] == "first\n\tsecond"


def test_a_model_can_know_a_former_name_of_a_class(open_project):
    options = {"separator": "|"}
    project = open_project(["a", "a"], options=options, classes=["a", "b"])
    project.session.rename_class("b", "c")
    model = OneVsRestClassifier(DummyClassifier(strategy="constant", constant=1))
    with pytest.warns(UserWarning, match="is present in all training"):
        model.fit([[0], [0]], [[1, 1], [1, 1]])
    project.texts = [[0]] * len(TEXTS)
    project.write(model, ["b", "a"])
    out = read_columns(project.output)
    assert out["prediction"][5] == "a|b"


@pytest.mark.parametrize(
    ("given", "options", "expected"),
    [("sprot", {}, "sport"), ("sport|sprot", {"separator": "|"}, "sport")],
)
def test_labels_of_the_file_have_the_present_names(
    open_project, given, options, expected
):
    project = open_project(["sport", given, "news"], options=options)
    project.session.rename_class("sprot", "sport")  # merged
    project.write()
    out = read_columns(project.output)
    assert out["label"][:3] == ["sport", expected, "news"]
    _, trained_on, _ = project._find_labeled()
    several = [["sport"], ["sport"], ["news"]]
    assert trained_on == (several if options else ["sport", "sport", "news"])


@pytest.mark.parametrize("name", ["note", "flag", "prediction", "annotator"])
def test_a_class_can_be_named_like_a_column(open_columns, name):
    project = open_columns(["a", name])
    project.desk.answer(4, [name], "tab")
    project.desk.note(5, "unclear")
    project.write()
    out = read_columns(project.output)
    assert (out["a"][4], out[name][4]) == ("0", "1")
    assert out["skactive_note" if name == "note" else "note"][5] == "unclear"


def test_classes_with_the_new_name_of_another_have_their_own_columns(open_columns):
    project = open_columns(["a", "text", "skactive_text"])
    project.desk.answer(4, ["text"], "tab")
    project.desk.answer(5, ["skactive_text"], "tab")
    project.write()
    out = read_columns(project.output)
    assert out["skactive_text"][4:6] == ["0", "1"]
    assert out["skactive_skactive_text"][4:6] == ["1", "0"]
    assert out["text"] == TEXTS


def test_names_in_a_cell_have_the_order_of_the_file(open_project):
    labels = ["food|price", "price", "price|service"]
    project = open_project(labels, options={"separator": "|"}, classes=None)
    assert project.session.known_classes[0] == "price"  # the most frequent
    project.desk.answer(5, ["service", "price", "food"], "tab")
    project.desk.answer(6, ["food", "price"], "tab")
    project.write()
    out = read_columns(project.output)
    assert out["label"][:3] == labels
    assert out["label"][5:7] == ["food|price|service", "food|price"]


def test_a_class_that_is_a_formula_is_no_header(open_columns):
    project = open_columns(["a", "=1+1"])
    project.desk.answer(4, ["=1+1"], "tab")
    project.write()
    out = read_columns(project.output)
    assert out["'=1+1"][4] == "1"
    assert "=1+1" not in out


@pytest.mark.parametrize("name", ["t.tsv", "t.xlsx", "t.parquet"])
def test_what_a_format_cannot_hold_is_written_as_jsonl(open_project, name):
    project = open_project(["p", "n"], name)
    project.session.tell(4, "p", unasked=True, annotator="a\tb\x07\ud800")
    project.write()
    assert project.output.name == "t.labeled.jsonl"
    assert not project.output.with_suffix(project.file_.suffix).exists()
    assert f"{project.output.stem}{project.file_.suffix} is not written" in " ".join(
        project.messages
    )
    out = read_columns(project.output)
    assert (out["label"][4], out["annotator"][4]) == ("p", "a\tb\x07\ud800")


def test_a_long_note_does_not_cost_the_labels_in_excel(open_project):
    project = open_project(["p", "n"], "t.xlsx")
    project.desk.answer(4, "p", "tab")
    project.desk.note(4, "x" * 40000)
    project.write()
    out = read_columns(project.output)
    assert project.output.name == "t.labeled.jsonl"
    assert (out["label"][4], len(out["note"][4])) == ("p", 40000)


def test_cells_without_json_are_texts_in_the_other_format(tmp_path):
    write_columns(
        tmp_path / "d.xlsx", {"text": TEXTS, "day": [date(2026, 1, 2)] * len(TEXTS)}
    )
    project = Project(tmp_path / "d.xlsx", "text", "label", classes=["p", "n"])
    project.open(ActiveLearner(DummyClassifier(), "random"))
    project.session.note(4, "\x07")
    project.write()
    project.close()
    out = read_columns(project.output)
    assert out["day"][0].startswith("2026-01-02")


def test_labels_of_a_large_table_stand_at_the_rows_with_a_text(tmp_path):
    (tmp_path / "parts").mkdir()
    for i, label in enumerate(["label", "Label "]):
        columns = {"text": ["", "a", "b"], label: ["x", "y", None], "n": [1, 2, 3]}
        write_columns(tmp_path / "parts" / f"{i}.jsonl", columns)
    settings = Project(tmp_path / "parts", "text", "label")
    table = LargeTable(settings)
    with pytest.warns(UserWarning, match=r"left out: rows .* 0, 3"):
        assert list(table.open_texts(tmp_path / "folder")) == ["a", "b", "a", "b"]
    assert table.read_given() == {0: "y"}
    assert "1.jsonl has no column 'label': its texts have no labels" in table.messages


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.parquet"])
@pytest.mark.parametrize("form", ["joined", "lists"])
def test_several_classes_come_back_however_often(tmp_path, name, form):
    given = [["=a", "b"], ["b"], [], ["-c", "=a"]]
    cells = given if form == "lists" else ["|".join(x) or "|" for x in given]
    path, options = tmp_path / name, {} if form == "lists" else {"separator": "|"}
    write_columns(path, {"text": TEXTS, "label": [*cells, *[None] * 8]})
    model = OneVsRestClassifier(LogisticRegression())
    learner = ActiveLearner(make_pipeline(TfidfVectorizer(), model), "random")
    for _ in range(3):
        with Project(path, "text", "label", **options).open(learner) as project:
            assert [sorted(x) for x in project.given.values()] == [
                sorted(x) for x in given
            ]
            project.session.tell({5: ["=a"]}, unasked=True)
            project.write()
            given = [*given[:4], ["=a"]]
        path = project.output
