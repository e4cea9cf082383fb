"""Projects: which answers and which files belong to which table and columns."""

import json
import os
import re
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from skactive import (
    ActiveLearner,
    ClassDescriptions,
    LabelingSession,
    make_text_classifier,
)
from skactive._storage._files import LockedError
from skactive.bert._adapted import ContrastiveEncoder
from skactive.project import Project, ProjectSettings
from skactive.project._model import Trainer
from skactive.project._record import RECORD
from skactive.semi_supervised import MixtureClassifier

from .._tables._helpers import read_columns, write_columns

COLUMNS = {
    "id": [f"k{i}" for i in range(12)],
    "text": [f"{'good' if i % 2 else 'bad'} film number {i}" for i in range(12)],
    "category": ["bad", "good", *[None] * 10],
    "sentiment": ["sad", "happy", *[None] * 10],
    "topics": ["a|b", "a", *[None] * 10],
    "score": ["1.5", "2", *[None] * 10],
}


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_columns(tmp_path / "t.csv", COLUMNS)
    return tmp_path / "t.csv"


@pytest.fixture
def begin(table):
    """Open a project, give an answer to some rows, write the table; return it."""

    def begin(text="text", label="category", answers=(), file=table, **options):
        classes = list(dict.fromkeys(answers)) if len(set(answers)) > 1 else None
        project = Project(file, text, label, classes=classes, **options)
        project.open(
            ActiveLearner(make_pipeline(TfidfVectorizer(), LogisticRegression()))
        )
        try:
            for row, name in enumerate(answers, 2):
                project.session.tell(row, name, unasked=True)
            project.write()
        finally:
            project.close()
        return project

    return begin


def _read(path):
    columns = read_columns(path)
    return columns


def test_another_column_of_labels_is_another_project(begin, table, tmp_path):
    before = table.read_bytes()
    begin(answers=["good", "bad"])
    other = begin(label="sentiment", answers=["happy", "sad", "happy"])
    assert other.folder_ == tmp_path / "t.sentiment.skactive"
    assert other.messages == [
        "the answers are in t.sentiment.skactive; the labeled table will be "
        f"{tmp_path / 't.sentiment.labeled.csv'}"
    ]
    first, second = (
        _read(tmp_path / f"t{name}.labeled.csv") for name in ("", ".sentiment")
    )
    assert first["category"][2:5] == ["good", "bad", None]
    assert first["sentiment"] == second["sentiment"][:2] + [None] * 10
    assert second["sentiment"][2:6] == ["happy", "sad", "happy", None]
    assert second["category"] == COLUMNS["category"]
    assert second["label_source"].count("person") == 3
    again = begin()  # each continues where it was
    assert len(again.session.labels) == 2
    assert len(begin(label="sentiment").session.labels) == 3
    assert table.read_bytes() == before


def test_labels_with_one_name_for_files_have_different_folders(begin, tmp_path):
    begin()
    folders = [begin(label=name).folder_.name for name in ("a/b", "a?b", "A b", "a/b")]
    assert folders[:2] == ["t.a_b.skactive", "t.a_b-2.skactive"]
    assert folders[0] == folders[3]
    assert len(set(folders)) == 3
    assert begin(label=["x y", "z"]).folder_.name == "t.x_y+z.skactive"
    assert begin(label=["z", "x y"]).folder_.name == "t.x_y+z.skactive"


@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "then", "message"),
    [
        ({"text": "id"}, {}, "with text=id. Use that column"),
        ({}, {"text": ["text", "id"]}, "with text=text. Use that column"),
        ({}, {"label": "sentiment", "folder": "t.skactive"}, "with label=category."),
        ({"label": "topics"}, {"separator": "|"}, "without separator=. Use the same"),
        ({"separator": "|"}, {"separator": ","}, "with separator='|'. Use the same"),
        ({"label": "score"}, {"regression": True}, "for one class per text. Use that"),
        ({"regression": True}, {"label": "score"}, r"for numbers \(regression=True\)."),
    ],
)
def test_the_other_options_of_a_project_stay(begin, first, then, message):
    names = {"separator": "topics", "regression": "score"}
    label = next((names[x] for x in [*first, *then] if x in names), "category")
    label = first.get("label", label)
    begin(**{"label": label, **first})
    pattern = f"^t.skactive was begun {message}.*, or folder=NEW.$"
    with pytest.raises(ValueError, match=pattern):
        begin(**{"label": label, **then})


def test_tables_of_one_name_do_not_share_a_folder(begin, tmp_path):
    begin(answers=["good", "bad"])
    write_columns(tmp_path / "t.tsv", COLUMNS)
    message = r"^t.skactive belongs to t.csv. For t.tsv, add folder=NEW"
    with pytest.raises(ValueError, match=message):
        begin(file=tmp_path / "t.tsv")
    # The person can say that the texts are the same.
    project = begin(file=tmp_path / "t.tsv", folder="t.skactive")
    assert len(project.session.labels) == 2
    assert project.output == tmp_path / "t.labeled.tsv"


def test_a_session_elsewhere_has_its_own_output(begin, tmp_path):
    begin(answers=["good", "bad"])
    outputs = [
        begin(folder=name).output.name for name in ("other", "t", "d/t.skactive")
    ]
    assert outputs == ["t.other.labeled.csv", "t.t.labeled.csv", "t.t.labeled.csv"]
    assert begin(folder="t.skactive").output.name == "t.labeled.csv"
    assert _read(tmp_path / "t.labeled.csv")["category"][2:4] == ["good", "bad"]


def test_a_session_of_unknown_columns_is_refused(begin, tmp_path):
    begin(answers=["good", "bad"])
    record = tmp_path / "t.skactive" / RECORD
    record.unlink()
    for options in ({}, {"label": "sentiment"}, {"folder": "t.skactive"}):
        with pytest.raises(ValueError, match=r"no project.json, so that its columns"):
            begin(**options)
    with pytest.raises(ValueError, match="Only if its answers are") as error:
        begin()
    command = re.search(r"after (echo .*)$", str(error.value)).group(1)
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    assert len(begin().session.labels) == 2


@pytest.mark.parametrize("content", [b"\xff{", b"[]", b'{"name": "my-package"}'])
def test_a_damaged_record_is_named_and_kept(begin, tmp_path, content):
    begin(answers=["good", "bad"])
    record = tmp_path / "t.skactive" / RECORD
    record.write_bytes(content)
    with pytest.raises(ValueError, match=r"t.skactive/project.json is damaged, or not"):
        begin()
    assert record.read_bytes() == content


@pytest.mark.parametrize(
    "questions",
    [
        [],
        {"kinds": []},
        {"kinds": [["a"]], "only_if": None},
        {"kinds": 3, "only_if": 0},
    ],
)
def test_damaged_questions_of_a_record_are_named(begin, tmp_path, questions):
    begin(answers=["good", "bad"])
    record = tmp_path / "t.skactive" / RECORD
    content = json.loads(record.read_bytes()) | {"questions": questions}
    record.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=r"t.skactive/project.json is damaged, or not"):
        begin()


def test_files_of_another_program_in_the_folder_are_refused(begin, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.json").write_text("{}")
    with pytest.raises(ValueError, match=r"^mine holds 'model.json', and no project"):
        begin(folder="mine")
    assert os.listdir(tmp_path / "mine") == ["model.json"]


def test_other_texts_are_refused_in_the_words_of_the_command(begin, tmp_path):
    begin(answers=["good", "bad"])
    columns = {**COLUMNS, "text": [f"new {i}" for i in range(12)]}
    write_columns(tmp_path / "t.csv", columns)
    message = r"'.*t.csv' must hold the labeled texts of t.skactive .*, or use folder="
    with pytest.raises(ValueError, match=message) as error:
        begin()
    assert "X_pool" not in str(error.value)


def test_a_damaged_manifest_is_named(begin, tmp_path):
    begin(answers=["good", "bad"])
    path = tmp_path / "t.skactive" / "session" / "manifest.json"
    content = path.read_bytes()
    path.write_bytes(b"\xff" + content[1:])
    with pytest.raises(
        ValueError, match=r"session/manifest.json' must be the manifest"
    ):
        begin()
    path.unlink()
    with pytest.raises(ValueError, match=r"Restore 'manifest.json'"):
        begin()
    with pytest.raises(ValueError, match=r"^t.skactive was begun with text=text"):
        begin(text="id")  # it is still a session of these columns


def test_a_project_that_is_open_is_not_taken(begin, table):
    project = Project(table, "text", "category")
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    project.open(ActiveLearner(model))
    with pytest.raises(LockedError, match="is open for writing"):
        begin()
    assert begin(label="sentiment").folder_.name == "t.sentiment.skactive"
    project.close()


def test_an_output_that_a_person_changed_is_kept(begin, tmp_path):
    output = tmp_path / "t.labeled.csv"
    output.write_text("a file of mine\n")
    project = begin(answers=["good", "bad"])
    assert project.messages == [
        f"{output} was changed, or is of another program: it is kept as "
        f"{tmp_path / 't.labeled.1.csv'}"
    ]
    assert (tmp_path / "t.labeled.1.csv").read_text() == "a file of mine\n"
    assert not begin().messages  # what the command wrote is replaced
    corrected = output.read_bytes().replace(b"bad", b"awful")
    output.write_bytes(corrected)
    begin()
    assert (tmp_path / "t.labeled.2.csv").read_bytes() == corrected
    assert b"awful" not in output.read_bytes()
    os.replace(output, tmp_path / "elsewhere.csv")
    output.symlink_to(tmp_path / "elsewhere.csv")
    before = (tmp_path / "elsewhere.csv").read_bytes()
    begin()
    assert (tmp_path / "t.labeled.3.csv").is_symlink()
    assert (tmp_path / "elsewhere.csv").read_bytes() == before
    assert len(list(tmp_path.glob("t.labeled*"))) == 4


@pytest.mark.posix
@pytest.mark.parametrize(("mode", "folder"), [(0o600, 0o700), (0o644, 0o755)])
def test_nothing_is_more_readable_than_the_table(begin, table, tmp_path, mode, folder):
    mask = os.umask(0o022)
    try:
        table.chmod(mode)
        begin(answers=["good", "bad"])
    finally:
        os.umask(mask)
    for path, expected in (("t.labeled.csv", mode), ("t.skactive", folder)):
        assert stat.S_IMODE((tmp_path / path).stat().st_mode) == expected
    table.chmod(0o600)  # later
    begin()
    for path, expected in (("t.labeled.csv", 0o600), ("t.skactive", 0o700)):
        assert stat.S_IMODE((tmp_path / path).stat().st_mode) == expected


def test_the_record_of_a_project(begin, tmp_path):
    begin(label="topics", separator="|")
    record = json.loads((tmp_path / "t.skactive" / RECORD).read_bytes())
    assert list(record.pop("labeled")) == ["../t.labeled.csv"]
    assert record == {
        "file": "t.csv",
        "text": ["text"],
        "label": ["topics"],
        "id": None,
        "separator": "|",
        "target": "multi-label",
    }


@pytest.mark.parametrize("content", [b"[1]", b"\xff", b"5"])
def test_a_damaged_description_of_the_model_is_written_again(begin, tmp_path, content):
    project = begin(answers=["good", "bad"])
    (tmp_path / "t.skactive" / "model.json").write_bytes(content)
    assert not project._is_current("a stamp")


def test_a_saved_model_names_no_folder_of_the_project(tmp_path, tiny_bert):
    """Neither in the parameters nor in the fitted parts of a composed model."""
    texts, labels = ["good a", "bad b", "good c", "bad d"], ["p", "n", "p", "n"]
    cache = str(tmp_path / "features")
    loop = make_text_classifier(tiny_bert, adapt=False, cache=cache)
    parts = [("described", ClassDescriptions(loop, ["p", "n"])), ("loop", loop)]
    model = MixtureClassifier(parts)
    trainer = Trainer(ProjectSettings("t.csv"), "single-label", tmp_path)
    folder = trainer.save(model.fit(texts, labels), {"text": ["text"]})
    assert cache not in Path(folder, "object.json").read_text(encoding="utf-8")


def test_two_encoders(table, tiny_bert):
    prompts = ["", "query: "]
    options = {"model": [tiny_bert, tiny_bert], "prompt": prompts, "adapt": False}
    with Project(table, "text", "category", **options).open() as project:
        model = project.session.learner.estimator
        assert [part[0].prompt for _, part in model.parts] == prompts
        project.session.tell(dict.fromkeys(range(2, 8), "good"), unasked=True)
        fitted = project.train_final()
        assert list(fitted.parts_) == ["frozen", "frozen2"]
        assert project.save(fitted) is not None
    with pytest.raises(ValueError, match="'model' must be one encoder for numbers"):
        Project(table, "text", "score", model=["a", "b"], regression=True).open()


def test_the_encoder_learns_unless_the_session_began_without_it(
    table, tiny_bert, caplog, monkeypatch
):
    caplog.set_level("INFO", "skactive.project")

    def learns(label="category", **options):
        with Project(
            table, "text", label, model=tiny_bert, **options
        ).open() as project:
            estimator = project.session._core.models.estimator
        return "adapted" in str(estimator)

    said = "the encoder does not learn from the labels"
    assert learns()
    assert said not in caplog.text
    default = partial(LabelingSession, max_adapted_pool=5)
    monkeypatch.setattr("skactive.project._opening.LabelingSession", default)
    assert learns(), "resumed"
    assert said in caplog.text
    caplog.clear()
    assert learns(adapt=True)
    assert said not in caplog.text
    assert not learns("sentiment", adapt=False)
    assert not learns("sentiment"), "the session began without it"
    with pytest.warns(UserWarning, match="learner"):
        assert learns("sentiment", adapt=True)
    with pytest.raises(ValueError, match="'adapt' must be None or False"):
        learns("score", regression=True, adapt=True)


@pytest.mark.parametrize(
    ("n", "adapted", "options", "expected"),
    [
        (99, None, {}, None),
        (100, None, {}, (0, True)),
        (100, 0, {}, (0, True)),  # of a pool that is not encoded again
        (128, 100, {}, None),
        (150, 100, {}, (None, False)),
        (199, 100, {}, (None, False)),
        (200, 200, {}, (200, True)),
        (300, 200, {}, (None, True)),
        (300, 200, {"fine_tuning": False}, None),
        (300, None, {"features": "folder"}, None),
    ],
)
def test_what_the_last_training_does(tmp_path, n, adapted, options, expected):
    trainer = Trainer(ProjectSettings("t.csv", **options), "single-label", tmp_path)
    trained = []
    trainer._train_on_all = lambda learner, *how: trained.append(how[:2])
    learner = SimpleNamespace(estimator_=None)
    session = SimpleNamespace(encoded=1, labels={0: "a"}, refit=lambda: None)
    session.newest_model = SimpleNamespace(
        learner=learner, adapted=adapted, classes=None
    )
    trainer.train(session, (["text"] * n, (["a", "b"] * n)[:n], []))
    assert trained == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("n", "adapted", "pace", "options", "expected"),
    [
        (60, 50, 6.0, {}, 1.0),  # nothing is trained but the last step
        (75, 50, 6.0, {}, 8.5),
        (200, 200, 6.0, {}, 21.0),
        (200, 200, None, {}, None),
        (200, 200, 6.0, {"fine_tuning": False}, 1.0),
        (0, None, None, {}, 1.0),
    ],
)
def test_how_long_the_end_takes_is_from_the_pace_of_the_session(
    tmp_path, n, adapted, pace, options, expected
):
    trainer = Trainer(ProjectSettings("t.csv", **options), "single-label", tmp_path)
    session = SimpleNamespace(encoded=1, labels={i: "ab"[i % 2] for i in range(n)})
    session.newest_model = SimpleNamespace(adapted=adapted)
    assert trainer.forecast(session, {}, pace) == expected
    given = {0: "a", 1: "b"}
    shorter = SimpleNamespace(**vars(session) | {"labels": dict.fromkeys(range(n - 2))})
    assert trainer.forecast(shorter, given, pace) == (expected if n else 1.0)
    session.encoded = 0.5
    assert trainer.forecast(session, {}, pace) is None


@pytest.mark.slow
@pytest.mark.parametrize(("learned", "is_tuned"), [(None, False), (25, True)])
def test_the_last_training_keeps_what_the_session_has_learned(
    tiny_bert, tmp_path, monkeypatch, learned, is_tuned
):
    loop = make_text_classifier(tiny_bert, cache=str(tmp_path / "cache"))
    quick = {"n_steps": 2, "batch_size": 8, "freeze": 1, "cache": str(tmp_path / "own")}
    loop.set_params(**{f"adapted__adaptedfeatures__{k}": v for k, v in quick.items()})
    texts = [f"{word} {i}" for i in range(20) for word in ("good", "bad")]
    learner = ActiveLearner(ClassDescriptions(loop, ["p", "n"]), random_state=0)
    learner.fit(texts, ["p", "n"] * 20)
    trainer = Trainer(ProjectSettings("t.csv", model=tiny_bert), "single-label", "t")
    if learned:  # nothing is trained again
        monkeypatch.setattr(ContrastiveEncoder, "fit", None)
    trainer._train_on_all(learner, learned, is_tuned, ["good"])
    model = trainer.model if is_tuned else trainer.model.estimator_
    assert ["frozen", "adapted", "tuned"][: 2 + is_tuned] == list(model.parts_)
    assert model.parts_["adapted"][0].n_adapted_ == (learned or 40)
    assert type(model.parts_["frozen"]) is (ClassDescriptions if is_tuned else Pipeline)


def test_classes_that_are_added_describe_themselves(tmp_path):
    texts = ["a good day", "bad luck", "good", "bad", "so good"] * 3
    write_columns(tmp_path / "new.csv", {"text": texts, "label": [None] * 15})
    project = Project(tmp_path / "new.csv", "text", "label")
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    project.open(ActiveLearner(model))
    try:
        project.session.ask(1)
        project.desk.add_class("good")
        project.desk.add_class("bad")
        project.session.ask(1)
        predicted = project.session.learner.predict(["good luck", "a bad day"])
        assert predicted.tolist() == ["good", "bad"]
        assert not project.session.labels
    finally:
        project.close()


def test_a_label_that_is_added_to_the_table_is_no_other_model(begin, table, recwarn):
    begin(answers=["good", "bad"])
    for n in (4, 5):
        more = {**COLUMNS, "category": ["bad", "good"] * 2 + [None] * 8}
        more["category"][n] = "good"
        write_columns(table, more)
        begin()
        assert [one for one in recwarn if "'learner'" in str(one.message)] == []
    learner = ActiveLearner(make_pipeline(TfidfVectorizer(), LogisticRegression(C=3)))
    with pytest.warns(UserWarning, match="is not the one .*C was"):
        Project(table, "text", "category").open(learner).close()


def test_nothing_is_asked_of_a_table_that_is_labeled(table):
    write_columns(table, {**COLUMNS, "category": ["bad", "good"] * 6})
    learner = ActiveLearner(make_pipeline(TfidfVectorizer(), LogisticRegression()))
    with Project(table, "text", "category", fine_tuning=False).open(learner) as project:
        assert project.desk.next("tab") == []
        assert project.finish()["given"] == 12
        quality = project.desk.quality()
    assert quality["goal"] == "nothing is left to label"
    assert quality["sentence"].endswith("no text is left to draw at random.")


def test_rows_that_come_while_people_label_belong_to_the_next_time(begin, tmp_path):
    project = begin(answers=["good", "bad"])
    stamp, table = project._make_stamp(), tmp_path / "t.csv"
    table.write_text(table.read_text() + "new,,,,,\n")
    assert project._make_stamp() == stamp
    assert begin()._make_stamp() != stamp


@pytest.mark.weights
def test_the_model_of_the_packaged_encoder_is_made_without_torch():
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from skactive.project import ProjectSettings\n"
        "from skactive.project._model import Trainer\n"
        "settings = ProjectSettings('t.csv', text='text', label='label')\n"
        "assert Trainer(settings, 'single-label', Path('folder')).make_learner()\n"
        "assert not {'torch', 'transformers'} & {*sys.modules}\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
