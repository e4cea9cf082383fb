"""The command `estimate`: shares of classes in a table."""

import csv
from pathlib import Path

import numpy as np
import pytest

import skactive
from skactive.cli import main
from skactive.estimation import estimate_mean, estimate_prevalence, plan_labels
from skactive.project import Project

from .._tables._helpers import write_columns


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Write a table of 600 texts, 80 of which have a label, and return its columns."""
    rng = np.random.default_rng(0)
    truth = rng.choice(["bug", "praise"], 600, p=[0.3, 0.7])
    guess = np.where(rng.random(600) < 0.1, "bug", truth)
    labeled = np.isin(np.arange(600), rng.choice(600, 80, replace=False))
    columns = {
        "text": [f"text {i}" for i in range(600)],
        "label": np.where(labeled, truth, "").tolist(),
        "machine": guess.tolist(),
        "year": np.where(np.arange(600) % 2, "2024", "2025").tolist(),
        "audit": labeled.astype(int).tolist(),
        "stars": np.where(labeled, np.where(truth == "bug", 1, 5), "").tolist(),
        "guess": np.where(guess == "bug", 1.5, 4.5).tolist(),
    }
    monkeypatch.chdir(tmp_path)
    write_columns("reviews.csv", columns)
    return {name: np.array(cells) for name, cells in columns.items()}


def run(capsys, *options):
    """Return what the command prints, and its errors."""
    status = main(["estimate", "reviews.csv", "--text", "text", *options])
    out, err = capsys.readouterr()
    assert status == (0 if out else 1)
    return out or err


def read_card(path):
    """Return the rows of all tables of a card, dict of name to text."""
    lines = Path(path).read_text("utf-8").splitlines()
    rows = [line[2:-2].split(" | ") for line in lines if line.startswith("| ")]
    return {name: text for name, text in rows if name.strip()}


def prevalence(table, rows=None, **options):
    rows = table["label"] != "" if rows is None else rows
    classes = ["bug", "praise"]
    proba = (table["machine"][:, None] == classes).astype(float)
    return estimate_prevalence(
        table["label"][rows, None] == classes,
        proba[rows],
        proba,
        classes=classes,
        **options,
    )


def test_the_table_has_the_shares_of_the_library(table, capsys):
    printed = run(
        capsys, "--label", "label", "--prediction", "machine", "--out", "shares.csv"
    )
    expected = prevalence(table)
    assert printed == f"{expected}\nshares.csv: 2 shares\n"
    with open("shares.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["class"] for row in rows] == ["bug", "praise"]
    bug = expected.estimates[None, "bug"]
    assert float(rows[0]["low"]) == pytest.approx(bug.interval[0])
    assert float(rows[0]["number"]) == pytest.approx(bug.value * 600)


def test_spaces_around_labels_make_no_class_and_no_label(table, capsys):
    expected = run(capsys, "--label", "label", "--prediction", "machine")
    columns = {name: cells.tolist() for name, cells in table.items()}
    rows = np.flatnonzero(table["label"])
    columns["label"] = [f"{x} " if i % 3 else x for i, x in enumerate(columns["label"])]
    columns["machine"][4] = " " + columns["machine"][4]
    assert columns["label"][np.flatnonzero(table["label"] == "")[1]] == " "
    write_columns("reviews.csv", columns)
    main(["estimate", "reviews.csv", "--label", "label", "--prediction", "machine"])
    out, err = capsys.readouterr()
    assert out == expected
    assert "labels of 'label' had spaces around them, which are removed" in err
    assert "1 labels of 'machine' had spaces around them, which are removed" in err
    assert f"{len(rows):,}" in out


def test_a_sample_of_one_class(table, capsys):
    columns = {name: cells.tolist() for name, cells in table.items()}
    columns["label"] = [x and "bug" for x in columns["label"]]
    write_columns("reviews.csv", columns)
    assert "bug    100.0 %" in run(capsys, "--label", "label")


def test_groups_samples_and_levels(table, capsys):
    options = ("--label", "label", "--prediction", "machine", "--group", "year")
    has = table["label"] != ""
    groups = {"groups": table["year"][has], "pool_groups": table["year"]}
    assert run(capsys, *options) == f"{prevalence(table, **groups)}\n"
    # Labels that are not of the sample are those of other rows.
    table["audit"][np.flatnonzero(has)[:30]] = 0
    write_columns("reviews.csv", {x: y.tolist() for x, y in table.items()})
    options = ("--label", "label", "--prediction", "machine", "--sample", "audit")
    expected = prevalence(table, table["audit"] == 1, confidence_level=0.9)
    assert run(capsys, *options, "--confidence-level", "0.9") == f"{expected}\n"


def test_several_classes_per_text(table, capsys):
    table["label"] = np.where(table["label"] == "bug", "bug|praise", table["label"])
    write_columns("reviews.csv", {x: y.tolist() for x, y in table.items()})
    printed = run(capsys, "--label", "label", "--separator", "|")
    assert printed.splitlines()[2].startswith("praise  100.0 %")


def test_the_mean_of_numbers(table, capsys):
    options = ("--label", "stars", "--prediction", "guess", "--regression")
    has, guess = table["stars"] != "", table["guess"].astype(float)
    y = table["stars"][has].astype(float)
    assert run(capsys, *options) == f"{estimate_mean(y, guess[has], guess)}\n"


def test_plans(table, capsys):
    printed = run(capsys, "--label", "label", "--prediction", "machine", "--plan", "3")
    needs = [
        plan_labels(0.03, share=x.value, r2=x.r2, n_pool=600)
        for x in prevalence(table).estimates.values()
    ]
    line = printed.splitlines()[-1]
    assert line == (
        f"About {max(needs) - 80:,} more random labels give shares within 3 points."
    )
    assert run(capsys, "--label", "label", "--plan", "20").endswith(
        "The shares that have an interval are within 20 points.\n"
    )
    table["label"][:] = ""
    write_columns("reviews.csv", {x: y.tolist() for x, y in table.items()})
    printed = run(capsys, "--label", "label", "--plan", "3")
    n = plan_labels(0.03, n_pool=600)
    assert printed == f"{n} random labels give every share within 3 points.\n"
    assert "has none. Label texts" in run(capsys, "--label", "label")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--label", "nothing"], "no column 'nothing'"),
        (["--label", "label", "--prediction", "year"], "--prediction: column 'year'"),
        (["--label", "label", "--sample", "year"], "--sample: column 'year'"),
        (["--label", "label", "--out", "x.json"], "--out: must end in .csv"),
        (
            ["--label", "label", "--regression"],
            "must hold numbers, got 'praise'",
        ),
        (["--label", "stars", "--regression", "--group", "year"], "--group: is not"),
    ],
)
def test_wrong_arguments_are_named(table, capsys, options, message):
    assert message in run(capsys, *options)


@pytest.mark.parametrize("option", ["--out", "--card"])
def test_the_table_is_not_replaced(table, capsys, option):
    before = Path("reviews.csv").read_bytes()
    Path("link.csv").symlink_to("reviews.csv")
    for name in ("reviews.csv", "link.csv"):
        message = run(capsys, "--label", "label", option, name)
        assert f"argument {option}: must be another file" in message
    assert Path("reviews.csv").read_bytes() == before
    assert {path.name for path in Path().iterdir()} == {"reviews.csv", "link.csv"}


def test_wrong_options_are_named(table, capsys):
    for option, value in (("--confidence-level", "95"), ("--plan", "60")):
        assert main(["estimate", "x.csv", "--label", "y", option, value]) == 2
        assert f"argument {option}: must be below" in capsys.readouterr().err
    assert main(["estimate", ".", "--label", "y"]) == 1
    assert "argument FILE: must be a table" in capsys.readouterr().err


@pytest.mark.slow
def test_a_project_is_estimated_from_its_audit(table, capsys, monkeypatch, tiny_bert):
    truth = dict(zip(table["text"], table["machine"], strict=True))
    options = {"classes": ["bug", "praise"], "annotator": "ann", "model": tiny_bert}
    project = Project("reviews.csv", "text", "topic", **options).open()
    for _ in range(60):
        item = project.desk.next("tab")[0]
        project.desk.answer(item["id"], truth[item["text"]], "tab")
    expected = project.session.prevalence(table["year"].tolist())
    estimates = expected.estimates.items()
    shares = {f"{name} in {year}": str(share) for (year, name), share in estimates}
    n = len(project.session._core.queue.choose_sample(blind=True)[0])
    project.close()
    place = ["--label", "topic", "--group", "year", "--model", tiny_bert]
    printed = run(capsys, *place, "--out", "shares.csv", "--card", "card.txt")
    shown, *said = printed.removesuffix("\n").rsplit("\n", 2)
    assert said == ["card.txt: the card", "shares.csv: 4 shares"]
    assert shown.splitlines()[0] == str(expected).splitlines()[0]
    # The texts say nothing of their class: rounding decides some held-out predictions.
    with open("shares.csv", encoding="utf-8", newline="") as file:
        found, known = list(csv.DictReader(file)), expected.to_dict()
    for name in ("counted", "n_labels", "n_pool"):
        values = [float(row[name]) for row in found]
        np.testing.assert_allclose(values, known[name], atol=0.02)
    card = read_card("card.txt")
    assert card["Random sample"].startswith(f"simple, without replacement: {n} of th")
    assert card["ann"].startswith("60 labels")
    assert {name: card[f"Share of {name}"] for name in shares} == shares
    assert f"skactive {skactive.__version__}" in card["Versions"]
    run(capsys, *place, "--card", "card.csv")
    with open("card.csv", encoding="utf-8", newline="") as file:
        assert {row["name"]: row["value"] for row in csv.DictReader(file)} == card


@pytest.mark.slow
def test_a_group_of_a_project_may_be_blank_and_its_column_in_capitals(
    table, capsys, tiny_bert
):
    years = ["" if i == 7 else str(x) for i, x in enumerate(table.pop("year"))]
    columns = {x: y.tolist() for x, y in table.items()} | {"Year": years}
    write_columns("reviews.csv", columns)
    options = {"classes": ["bug", "praise"], "model": tiny_bert}
    project = Project("reviews.csv", "text", "topic", **options).open()
    for _ in range(60):
        item = project.desk.next("tab")[0]
        project.desk.answer(item["id"], "bug", "tab")
    expected = project.session.prevalence(years)
    project.close()
    place = ["--label", "topic", "--group", "year", "--model", tiny_bert]
    found = run(capsys, *place, "--out", "shares.csv")
    assert found.splitlines()[0] == str(expected).splitlines()[0]
    with open("shares.csv", encoding="utf-8", newline="") as file:
        groups = {row["group"] for row in csv.DictReader(file)}
    assert groups == {str(group) for group, _ in expected.estimates}


def test_the_card_of_a_table_says_what_is_known(table, capsys):
    place = ["--label", "label", "--prediction", "machine", "--card", "card.txt"]
    printed = run(capsys, *place)
    card = read_card("card.txt")
    assert "80 of 600 rows, said to be a simple random sample" in card["Rows"]
    assert card["Columns of predictions"] == "machine"
    assert card["Share of praise"] == str(prevalence(table).estimates[None, "praise"])
    assert "PPI++" in card["Estimator"]
    assert card["Confidence"] == "95 % for each interval"
    run(capsys, *place[:-1], "other.md", "--confidence-level", "0.9")
    card = read_card("other.md")
    assert card["Confidence"] == "90 % for each interval"
    known = prevalence(table, confidence_level=0.9).estimates[None, "praise"]
    assert card["Share of praise"] == str(known)
    assert printed.endswith("card.txt: the card\n")
    Path("card.txt").write_text("mine")
    assert run(capsys, *place).endswith("what was there is card.1.txt now\n")
    assert Path("card.1.txt").read_text() == "mine"


@pytest.mark.parametrize("options", [["--out", "shares.csv"], ["--plan", "3"]])
def test_what_is_for_shares_is_refused_for_numbers(table, capsys, options):
    error = run(capsys, "--label", "stars", "--regression", *options)
    assert f"argument {options[0]}: is for shares, not for --regression" in error
    assert not Path("shares.csv").exists()


def test_a_prediction_that_looks_like_a_label_is_said(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs = [("yes", "Yes"), ("no", "no")] * 45
    rows = [f"t{i},{x},{y}" for i, (x, y) in enumerate(pairs)]
    Path("y.csv").write_text("\n".join(["text,label,llm", *rows]))
    assert main(["estimate", "y.csv", "--label", "label", "--prediction", "llm"]) == 0
    assert "the classes 'Yes' and 'yes' look the same" in capsys.readouterr().err
