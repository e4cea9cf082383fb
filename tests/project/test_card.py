"""The card of a project: what a paper says about its labels."""

import re

import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, Project
from skactive._tables._card import dump_card

from .._tables._helpers import write_columns


@pytest.fixture
def project(tmp_path):
    """An open project of 40 texts with 30 answers by ann and 12 by bob."""
    texts = [f"{'goal' if i % 2 else 'bank'} number {i}" for i in range(40)]
    write_columns(tmp_path / "news.csv", {"text": texts})
    classes = {"sport": "games | matches", "money": None}
    options = {"classes": classes, "annotator": "ann"}
    project = Project(tmp_path / "news.csv", "text", "topic", **options)
    model = make_pipeline(CountVectorizer(), MultinomialNB())
    with project.open(ActiveLearner(model, "margin", random_state=0)):
        for _ in range(30):
            item = project.desk.next("tab")[0]
            label = "sport" if "goal" in item["text"] else "money"
            project.desk.answer(item["id"], label, "tab", seconds=4.0)
        for i, (id, label) in enumerate([*project.session.labels.items()][:12]):
            other = "money" if i < 2 else label
            project.session.tell(id, other, annotator="bob", unasked=True)
        yield project


def read(page):
    """Return the rows of each part of a card, dict of title to dict."""
    parts = {}
    for part in page.split("\n## ")[1:]:
        title, *lines = part.splitlines()
        rows = [re.split(r" \| ", x[2:-2], maxsplit=1) for x in lines if x[:2] == "| "]
        parts[title] = {name: text for name, text in rows if name.strip()}
    return parts


def test_it_says_what_a_paper_asks_for(project):
    project.desk.edit_class("money", "ann", description="banks")
    project.desk.add_class("art", "ann")
    project.desk.edit_class("art", "ann", new="arts")
    card = read(dump_card("news", project.describe()))
    session = project.session
    n = len(session._core.queue.choose_sample(blind=True)[0])
    assert card["Sample"]["Question"] == "topic, one class per text"
    assert card["Sample"]["Texts"] == "40 that differ"
    assert f"without replacement: {n} of these" in card["Sample"]["Random sample"]
    assert card["Sample"]["Other labels"].startswith(f"{30 - n}, of texts")
    assert "strategy margin" in card["Sample"]["Other labels"]
    assert card["Coders"]["ann"] == "30 labels, 4.0 s each in the median"
    assert card["Coders"]["bob"] == "12 labels"
    coders, agreement = card["Coders"], session.agreement()
    assert coders["Agreement"].startswith("ann and bob agree on 10 of 12 texts (83 %, ")
    assert f"Krippendorff's alpha {agreement.alpha:.2f} (" in coders["Agreement"]
    kappa = agreement.pairs["ann", "bob"][0]
    assert coders["Cohen's kappa"].startswith(f"ann and bob {kappa:.2f} (")
    assert coders["Alpha"] == "Krippendorff's, for nominal data"
    assert coders["Disagreements"] == "2, of which 0 are settled"
    assert "Overlap" not in coders
    assert card["Codebook"]["sport"] == r"games \| matches"
    assert card["Codebook"]["arts"] == "not described"
    version, *changes = card["Codebook"]["Version"].split("; ")
    said = ["new words about money", "art was added", "art became arts"]
    assert version == "4"
    assert [change.rpartition(" (")[0] for change in changes] == said
    steps = "Pipeline of CountVectorizer, MultinomialNB"
    assert card["Model"]["Model"] == f"ClassDescriptions of {steps}"
    assert card["Estimates"]["Share of money"] == str(
        session.prevalence().estimates[None, "money"]
    )
    assert card["Estimates"]["Confidence"].startswith("95 %")
    assert card["Software"]["Versions"].startswith("python ")


def test_it_says_how_two_coders_shared_numbers(tmp_path):
    texts = [f"goal number {i}" for i in range(40)]
    write_columns(tmp_path / "news.csv", {"text": texts})
    options = {"coders": ("bob", "ann"), "overlap": 1.0, "regression": True}
    project = Project(tmp_path / "news.csv", "text", "size", **options)
    model = make_pipeline(CountVectorizer(), Ridge())
    with project.open(ActiveLearner(model, "lcmd", random_state=0)):
        desk = project.desk
        for who in ("bob", "ann"):
            for i in range(12):
                item = desk.next(who, who, 1)[0]
                number = int(item["text"].split()[-1]) + (who == "bob" and i == 0)
                desk.answer(item["id"], float(number), who, who)
        assert desk.quality()["goal"] == ""  # which is about shares of classes
        (found,) = desk.history(where={"only": "disputed"}, annotator="ann")["items"]
        desk.answer(found["id"], 3.0, "ann", "ann", way="settled")
        page = dump_card("news", project.describe())
    coders, sample = read(page)["Coders"], read(page)["Sample"]
    assert sample["Question"] == "size, numbers"
    assert [*coders][:2] == ["ann", "bob"]
    assert coders["Overlap"].startswith("100 % of the texts, drawn at random; nobody")
    assert coders["Agreement"].startswith("ann and bob agree on 11 of 12 texts (92 %, ")
    assert coders["Alpha"] == "Krippendorff's, for interval data"
    assert "Cohen's kappa" not in coders
    assert coders["Disagreements"] == "1, of which 1 are settled"


def test_it_shows_no_value_as_python_writes_it(project):
    page = dump_card("news", project.describe())
    assert not re.search(r"None|nan|\bobject at|[{}\[\]=]", page)


def test_a_change_that_was_undone_is_no_change(project):
    state = project.desk.edit_class("money", "ann", description="banks")
    project.desk.undo(state["undo"]["seq"], "tab", "ann")
    card = read(dump_card("news", project.describe()))
    assert card["Codebook"]["Version"] == "1"
    assert card["Codebook"]["money"] == "not described"


def test_a_class_that_only_moved_has_no_new_words(project):
    project.desk.edit_class("money", "ann", place=0)
    card = read(dump_card("news", project.describe()))
    assert card["Codebook"]["Version"] == "1"
    assert [*card["Codebook"]] == ["Version", "money", "sport"]


def test_the_level_of_the_intervals_is_that_of_the_shares(project):
    shares = project.session.prevalence(confidence_level=0.8)
    estimates = read(dump_card("news", project.describe(shares, 0.8)))["Estimates"]
    assert estimates["Confidence"] == "80 % for each interval"
    assert estimates["Share of money"] == str(shares.estimates[None, "money"])
    accuracy = project.session.quality(confidence_level=0.8).accuracy
    assert estimates["Accuracy without fine-tuning"] == str(accuracy)


def test_finish_writes_it(project):
    project.finish()
    assert project.progress()["card"].endswith("news.card.md")
    assert read((project.file_.parent / "news.card.md").read_text("utf-8"))["Model"]
