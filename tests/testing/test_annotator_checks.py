"""The conformance checks of annotators find each fault."""

import math

import pytest

from skactive.testing import check_annotator

TEXTS = ["a", "bb", "ccc"]


class Good:
    """Answer with the length of a text."""

    name = "good"
    deterministic = True

    def annotate(self, texts):
        return [self.answer(text, i) for i, text in enumerate(texts)]

    def answer(self, text, i):
        return (str(len(text)), 0.5) if text != "bb" else (None, None)

    def describe(self):
        return {"annotator": "Good", "parameters": [1, None]}


def answering(*answer):
    """Return a class with one answer for all texts."""
    return type("Odd", (Good,), {"answer": lambda self, text, i: answer})


def with_parts(**parts):
    return type("Odd", (Good,), parts)


def shorten(self, texts):
    return Good.annotate(self, texts)[:2]


def sort(self, texts):
    texts.sort(key=len, reverse=True)
    return Good.annotate(self, texts)


def count(self, texts):
    self.n = getattr(self, "n", 0) + 1
    return [(str(self.n), None) for _ in texts]


def test_a_good_annotator_passes_and_its_answers_come_back():
    answers = check_annotator(Good(), TEXTS)
    assert answers == [("1", 0.5), (None, None), ("3", 0.5)]


@pytest.mark.parametrize(
    "label", ["x", "", 1, 0, 0.5, True, ["a", "b"], [], None, -math.inf]
)
def test_labels_of_every_kind_pass(label):
    if label == "":
        with pytest.raises(AssertionError, match="the label of text 0 is ''"):
            check_annotator(answering(label, None)(), TEXTS)
        return
    assert check_annotator(answering(label, 1)(), TEXTS) == [(label, 1)] * 3


@pytest.mark.parametrize(
    ("odd", "fault"),
    [
        (with_parts(name=""), "the name is ''"),
        (with_parts(name=None), "the name is None"),
        (with_parts(annotate=None), "no method annotate"),
        (with_parts(describe=lambda self: "x"), r"describe\(\) returns no dict"),
        (
            with_parts(describe=lambda self: {"a": {1}}),
            r"describe\(\) returns what JSON",
        ),
        (
            with_parts(annotate=lambda self, texts: None),
            r"annotate\(\[\]\) returns None",
        ),
        (with_parts(annotate=lambda self, texts: []), "one answer for each of 3 texts"),
        (with_parts(annotate=shorten), "one answer for each of 3 texts"),
        (with_parts(annotate=sort), "changes the list of texts"),
        (with_parts(answer=lambda self, text, i: "x"), "the answer to text 0 is 'x'"),
        (answering("x"), r"the answer to text 0 is \('x',\)"),
        (answering(math.nan, None), "the label of text 0 is nan"),
        (answering({"x"}, None), "the label of text 0 is {'x'}"),
        (answering(["a", "a"], None), "the label of text 0 is"),
        (answering(["a", 1], None), "the label of text 0 is"),
        (answering(b"x", None), "the label of text 0 is b'x'"),
        (answering("x", 1.5), "the confidence of text 0 is 1.5"),
        (answering("x", math.nan), "the confidence of text 0 is nan"),
        (answering("x", "0.5"), "the confidence of text 0 is '0.5'"),
        (with_parts(annotate=count), "asked again, the answer to text"),
        (with_parts(answer=lambda self, text, i: (i, None)), "asked in another order"),
        (
            with_parts(annotate=lambda self, texts: [(len(texts), None)] * len(texts)),
            "asked alone",
        ),
    ],
)
def test_a_fault_is_named(odd, fault):
    with pytest.raises(AssertionError, match=fault):
        check_annotator(odd(), TEXTS)


def test_answers_may_change_where_nothing_else_is_claimed():
    odd = with_parts(annotate=count, deterministic=False)
    answers = check_annotator(odd(), TEXTS)
    assert len({label for label, _ in answers}) == 1


def test_texts_are_needed():
    with pytest.raises(ValueError, match="'texts' holds no texts"):
        check_annotator(Good(), [])
