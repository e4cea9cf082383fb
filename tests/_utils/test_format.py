"""Values in error messages are short, whatever container they are."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner, ClassDescriptions
from skactive._utils._containers import count_items
from skactive._utils._format import brief, format_table, reprs, visible
from skactive._utils._labels import as_labels
from skactive._utils._sklearn import check_bool, check_count, check_option, check_path
from skactive.linear_model import FewLabelClassifier

LONG = ["a text of some length, row " + str(i) for i in range(2000)]


def test_a_short_value_is_shown_as_it_is():
    assert brief("two  spaces") == "'two  spaces'"
    assert brief([1, 2]) == "[1, 2]"


@pytest.mark.parametrize(
    "value", [LONG, dict.fromkeys(LONG), "x" * 999, np.zeros((9, 99))], ids=type
)
def test_a_long_value_is_cut_and_stands_in_one_line(value):
    assert len(brief(value)) == 103
    assert "\n" not in brief(value)
    assert brief(value).endswith("...")


class Unsized:
    def __repr__(self):
        return str(LONG)


@pytest.mark.parametrize(
    "call",
    [
        lambda: check_bool("flag", LONG),
        lambda: check_path("path", LONG),
        lambda: check_count("n", LONG),
        lambda: check_option("how", LONG, ["one", "other"]),
        lambda: count_items(Unsized()),
        lambda: as_labels(Unsized(), 3),
        lambda: FewLabelClassifier(candidates=LONG).fit([[0.0], [1.0]], [0, 1]),
        lambda: ClassDescriptions(LogisticRegression(), {"a": LONG}).fit([], []),
        lambda: ActiveLearner(LogisticRegression()).query(Unsized()),
        lambda: ActiveLearner(LogisticRegression()).fit([[0.0]], "a" * 9999),
    ],
)
def test_no_error_holds_a_whole_container(call):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert len(str(caught.value)) < 500


def test_a_list_of_values_is_short():
    assert len(reprs(["x" * 999] * 9)) < 600


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;pwned\x07\x1b[2Jx", "\ufffd]0;pwned\ufffd\ufffd[2Jx"),
        ("a\tb\rc\x0bd\xa0e", "a b c d e"),
        ("two\nlines", "two\nlines"),
        ("\u202eabc\ud800\x9b", "\ufffdabc\ufffd\ufffd"),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", None),
        (12, "12"),
    ],
)
def test_a_terminal_gets_only_what_it_shows(text, shown):
    assert visible(text) == (text if shown is None else shown)


def test_a_cell_of_a_table_stays_in_its_line():
    table = format_table(["class", "n"], [["a\nb\x1b[2J", "1"]])
    assert table == "class    n\na b\ufffd[2J  1"
