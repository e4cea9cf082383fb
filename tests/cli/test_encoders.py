"""The command `encoders`, and its interval of a difference of paired shares."""

import re

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.neighbors import KNeighborsClassifier

from skactive.cli import main
from skactive.cli._encoders import compare_right, labels_to_tell, predict_held_out

from .._tables._helpers import write_columns
from ..conftest import save_encoder


@pytest.fixture
def table(tmp_path):
    texts = [f"{'good' if i % 2 else 'bad'} film number {i}" for i in range(60)]
    labels = ["like" if i % 2 else "no" for i in range(50)] + [None] * 10
    write_columns(tmp_path / "films.csv", {"text": texts, "label": labels})
    return tmp_path / "films.csv"


def test_encoders_and_all_of_them_are_compared(table, tiny_bert, tmp_path, capsys):
    wider = save_encoder(tmp_path / "wider", hidden_size=24)
    command = ["encoders", str(table), "--text", "text", "--label", "label"]
    assert main([*command, "--model", tiny_bert, "--model", wider]) == 0
    shown, err = capsys.readouterr()
    lines = shown.splitlines()
    number = r"[+-]\d+\.\d"
    assert lines[0].split()[:2] == ["encoder", "accuracy"]
    rows = list(zip([tiny_bert, wider, "all of them"], lines[1:4], strict=True))
    for name, line in rows:
        assert re.match(rf"{re.escape(name)} +\d+\.\d % ", line)
        compared = re.search(rf" {number} \({number} to {number}\) ", line)
        assert bool(compared) == (name != tiny_bert)
    assert "Of 50 labels" in lines[4]
    assert "10 of 60 rows have no 'label'" in err
    assert "chosen" not in err


def test_chosen_labels_are_said(table, tiny_bert, capsys):
    text = table.read_text(encoding="utf-8").splitlines()
    rows = [f"{line},person" for line in text[1:51]]
    table.write_text("\n".join([f"{text[0]},label_source", *rows]), encoding="utf-8")
    command = ["encoders", str(table), "--text", "text", "--label", "label"]
    assert main([*command, "--model", tiny_bert, "--model", tiny_bert]) == 0
    shown, err = capsys.readouterr()
    assert "favor the encoder that chose them" in err
    assert "+0.0 (" in shown.splitlines()[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--label", "text"], "'text' and 'label' both name the column 'text'"),
        (["--model", "nowhere"], "nowhere"),
        (["--prompt", "a", "--prompt", "b"], r"--prompt: must be one value or a list"),
    ],
)
def test_bad_options(table, tiny_bert, capsys, options, message):
    command = ["encoders", str(table), "--text", "text"]
    command += [] if "--label" in options else ["--label", "label"]
    models = ["--model", tiny_bert] * 3 if "--prompt" in options else []
    models = models or ["--model", tiny_bert] * ("--model" not in options)
    models += ["--model", tiny_bert] * (len(models) < 4)
    assert main([*command, *models, *options]) == 1
    assert re.search(message, capsys.readouterr().err)


def test_too_few_labels(tiny_bert, tmp_path, capsys):
    columns = {"text": [f"text {i}" for i in range(20)], "label": ["a", "b"] * 10}
    write_columns(tmp_path / "few.csv", columns)
    command = ["encoders", str(tmp_path / "few.csv"), "--text", "text"]
    command += ["--label", "label", "--model", tiny_bert, "--model", tiny_bert]
    assert main(command) == 1
    assert (
        "at least 30 labels, and two classes with two labels each, got 20 labels and 2"
        in capsys.readouterr().err
    )


def test_no_label_is_predicted_by_a_model_that_has_seen_it():
    X, y = np.arange(40.0)[:, None], np.arange(40) % 3  # the nearest has another class
    near = KNeighborsClassifier(1)
    assert near.fit(X, y).score(X, y) == 1
    assert (predict_held_out(near, X, y) != y).all()


def test_oracle_of_the_interval():
    rng = np.random.default_rng(0)
    right, other = rng.random((2, 80)) < [[0.8], [0.6]]
    difference, low, high = compare_right(right, other)
    assert difference == right.mean() - other.mean()
    # By hand: one more pair of each kind, and the variance of a mean of -1, 0 and 1.
    pairs = np.append(right.astype(int) - other, [1, -1])
    half = norm.ppf(0.975) * pairs.std() / np.sqrt(82)
    assert low == pytest.approx(pairs.mean() - half)
    assert high == pytest.approx(pairs.mean() + half)


@pytest.mark.parametrize("n", [30, 200])
@pytest.mark.parametrize(
    ("gained", "lost"), [(0.02, 0.02), (0.1, 0.0), (0.3, 0.05), (0.01, 0.0)]
)
def test_the_interval_covers(n, gained, lost):
    rng, covered = np.random.default_rng(0), []
    shares = [gained, lost, 0.5, 0.5 - gained - lost]  # the last are right in neither
    for _ in range(2000):
        kinds = rng.choice(4, n, p=shares)
        _, low, high = compare_right((kinds % 2) == 0, (kinds == 1) | (kinds == 2))
        covered.append(low <= gained - lost <= high)
    assert np.mean(covered) > 0.93


def test_labels_that_would_tell_a_difference():
    right, other = np.ones(100, dtype=bool), np.ones(100, dtype=bool)
    assert labels_to_tell(right, other) is None  # no difference
    other[:3] = False
    assert labels_to_tell(right, other) > 100
    other[:50] = False
    assert labels_to_tell(right, other) is None  # 0 is excluded
