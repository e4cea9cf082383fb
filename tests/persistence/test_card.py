"""The model card of a saved folder."""

import json
import shutil

import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from skactive import load, make_text_classifier, save
from skactive._utils._format import escape_markdown

from ._helpers import LABELS, TEXTS, X, Y, _learner


def _model():
    return make_pipeline(CountVectorizer(), MultinomialNB()).fit(TEXTS, LABELS)


def _card(folder):
    return (folder / "README.md").read_text(encoding="utf-8")


def test_it_says_what_the_model_is(tmp_path):
    save(_learner().fit(X, Y), tmp_path / "films", facts={"Accuracy": "87 %, 50 texts"})
    card = _card(tmp_path / "films")
    assert card.startswith("---\nlibrary_name: skactive\n")
    assert "\n# films\n" in card
    for row in (
        "| Estimator | ActiveLearner of LogisticRegression |",
        "| Classes | cold, warm |",
        "| Labels | 60 |",
        "| Accuracy | 87 %, 50 texts |",
        "| Versions | python 3.",
    ):
        assert row in card
    assert 'skactive.load("films")' in card


def test_the_encoder_and_its_license(tmp_path, tiny_bert):
    model = shutil.copytree(tiny_bert, tmp_path / "tiny")
    text = "---\nlicense: mit\n---\n# Tiny BERT\n\nlicense: another\n"
    (model / "README.md").write_text(text)
    save(make_text_classifier(model), tmp_path / "saved")
    assert "| Encoder | Tiny BERT (license: mit) |" in _card(tmp_path / "saved")
    assert str(tmp_path) not in _card(tmp_path / "saved")


def test_an_encoder_of_the_hub_is_the_base_model(tmp_path):
    save(make_text_classifier("owner/no-such-model"), tmp_path / "saved")
    card = _card(tmp_path / "saved")
    assert '\nbase_model: ["owner/no-such-model"]\n' in card
    assert "| Encoder | owner/no-such-model (license: see its page) |" in card


def test_names_cannot_break_the_table(tmp_path):
    facts = {"a|b": "x\ny <script>"}
    save(_model(), tmp_path / "saved", facts=facts)
    assert "| a\\|b | x y &lt;script&gt; |" in _card(tmp_path / "saved")


def test_many_classes_are_counted(tmp_path):
    names = [f"class {i:03}" for i in range(150)]
    save(_model().fit(names, names), tmp_path / "saved")
    assert "class 099, and 50 more |" in _card(tmp_path / "saved")


def test_a_card_that_was_edited_is_kept(tmp_path):
    folder = tmp_path / "saved"
    save(_model(), folder, facts={"Accuracy": "1 %"})
    save(_model(), folder, facts={"Accuracy": "2 %"}, overwrite=True)
    assert "| Accuracy | 2 % |" in _card(folder)
    (folder / "README.md").write_text("mine")
    save(_model(), folder, facts={"Accuracy": "3 %"}, overwrite=True)
    save(_model(), folder, facts={"Accuracy": "4 %"}, overwrite=True)
    assert _card(folder) == "mine"
    assert load(folder).predict(TEXTS).tolist() == LABELS


@pytest.mark.parametrize(
    "name", ["README.md", ".gitattributes", ".cache/huggingface/download/x.metadata"]
)
def test_files_that_the_hub_adds_are_not_read(tmp_path, name):
    folder = tmp_path / "saved"
    save(_model(), folder)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("of the hub")
    assert load(folder).predict(TEXTS).tolist() == LABELS
    files = json.loads((folder / "manifest.json").read_text())["files"]
    assert name not in files


@pytest.mark.parametrize("text", ["no title", "---\n{odd: [\n---\n", "\x00"])
def test_an_encoder_with_another_card(tmp_path, tiny_bert, text):
    model = shutil.copytree(tiny_bert, tmp_path / "tiny")
    (model / "README.md").write_text(text)
    save(make_text_classifier(model), tmp_path / "saved")
    assert "| Encoder | tiny (license: see its page) |" in _card(tmp_path / "saved")


@pytest.mark.parametrize("name", ["README.md", ".gitattributes"])
def test_a_folder_of_somebody_else_is_left_alone(tmp_path, name):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_text("mine")
    with pytest.raises(FileExistsError, match="which holds other files"):
        save(_model(), tmp_path / "mine", overwrite=True)
    assert (tmp_path / "mine" / name).read_text() == "mine"


def test_facts_must_be_a_dict(tmp_path):
    with pytest.raises(ValueError, match="'facts'"):
        save(_model(), tmp_path / "saved", facts=["87 %"])


def test_nothing_outside_runs_or_is_loaded_by_a_card(tmp_path):
    names = ["![x](http://evil/x.png)", "[c](javascript:a)", "<img src=x>", "&lt;b>"]
    names.append("a\x1b[2J\nb")
    model = _model().fit(["a text"] * len(names), names)
    folder = tmp_path / "a\n# b ![x](y.png)"
    save(model, folder, facts={"`![x](y)`": "\x07![x](y)", 1: 2})
    card = _card(folder)
    table, heading = card.split("```python")[0], "\n# a \\# b !\\[x\\](y.png)\n"
    assert heading in card
    assert "| 1 | 2 |" in table
    assert all(x.isprintable() for x in table.replace("\n", ""))
    rows = table.partition("\n# ")[2].replace("\\[", "").replace("\\]", "")
    assert not {"[", "]", "<"} & {*rows}
    for shown in ("!\\[x\\](http://evil/x.png), ", "\\[c\\](javascript:a)"):
        assert shown in table


def test_text_of_a_card_that_means_something_in_html():
    assert escape_markdown("&lt;b> `a` \\ *c*") == r"&amp;lt;b&gt; \`a\` \\ \*c\*"
