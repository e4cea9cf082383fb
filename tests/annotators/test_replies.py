"""The label and its probability in what a model writes."""

import math

import pytest

from skactive.annotators._replies import find_confidence, find_label

LABELS = {"fire": "fire", "flood": "flood", "Flood": "Flood", "C": "C", "C++": "C++"}
LABELS |= {"2": 2, "None": "None", "true": "true"}


@pytest.mark.parametrize(
    ("content", "label"),
    [
        ('{"label": "fire"}', "fire"),
        ('```json\n{"label": "fire"}\n```', "fire"),
        ('{"reason": "It {burns}.", "label":"fire"}', "fire"),
        ('{"label": "fire"} {"label": "fire"}', "fire"),
        ('{"label": "fire"} {"label": "flood"}', None),
        ('<think>{"label": "flood"}?</think>\n{"label": "fire"}', "fire"),
        ("<think>flood?</think> fire", "fire"),
        ('{"label": "\\u0066ire"}', "fire"),
        ('{"label": 2}', 2),
        ('{"label": fire}', "fire"),
        ('{"label": true}', "true"),
        ('{"label": null}', None),
        ('{"label": ["fire", "flood"]}', None),
        ('{"label": ""}', None),
        ('{"label": "fire', None),
        ("fire", "fire"),
        ("  **Fire**. ", "fire"),
        ("\u201cfire\u201d", "fire"),
        ("FIRE!", "fire"),
        ("flood", "flood"),
        ("Flood", "Flood"),
        ("FLOOD", None),  # of two classes
        ("c++", "C++"),
        ("'c++'", None),  # C or C++, without the signs
        ("c.", None),
        ("C", "C"),
        ("fire or flood", None),
        ("not fire", None),
        ("It is about fire, I think.", None),
        ("...", None),
        ("hacked", None),
    ],
)
def test_a_reply_is_one_class_or_none(content, label):
    found, _ = find_label(content, LABELS, False)
    assert (found, type(found)) == (label, type(label))


@pytest.mark.parametrize(
    ("content", "label"),
    [
        ('{"labels": ["flood", "fire"]}', ["fire", "flood"]),
        ('{"labels": []}', []),
        ('{"labels": ["fire", "fire"]}', ["fire"]),
        ('{"labels": ["fire", "hacked"]}', None),
        ('{"labels": ["fire", null]}', None),
        ('{"labels": ["fire", ["flood"]]}', None),
        ('{"labels": "fire"}', ["fire"]),
        ("fire", ["fire"]),
        ("fire, flood", None),
    ],
)
def test_several_classes_are_a_list_in_their_order(content, label):
    assert find_label(content, LABELS, True)[0] == label


@pytest.mark.long
def test_a_hostile_reply_takes_no_time_that_grows_with_its_square():
    # Each would take minutes if every start were followed to the end.
    for part in ("</think>", '"label":"', '"label":[', '{"label": "fire"}', "\\"):
        content = part * (2**20 // len(part))
        label, _ = find_label(content, LABELS, False)
        assert label in (None, "fire")


def confidence(tokens, content, span):
    listed = [{"token": t, "logprob": p} for t, p in tokens]
    return find_confidence({"logprobs": {"content": listed}}, content, span)


def test_the_probability_is_that_of_the_tokens_of_the_label():
    content = '{"label": "flood"}'
    _, span = find_label(content, LABELS, False)
    tokens = [('{"label', -9), ('": ', -9), ('"fl', -0.1), ("ood", -0.2), ('"}', -9)]
    assert confidence(tokens, content, span) == pytest.approx(math.exp(-0.3))
    # The server strips the content, and lists the token that ends it.
    tokens = [("\n", -9), *tokens, ("<end>", -9)]
    assert confidence(tokens, content, span) == pytest.approx(math.exp(-0.3))
    _, span = find_label("fire", LABELS, False)
    assert confidence([("fi", -0.5), ("re", 0.0)], "fire", span) == pytest.approx(
        math.exp(-0.5)
    )


def test_the_probability_of_several_classes_is_that_of_the_list():
    content = '{"labels": ["fire"]}'
    _, span = find_label(content, LABELS, True)
    tokens = [
        ('{"labels": ', -9),
        ('["', -0.1),
        ("fire", -0.2),
        ('"]', -0.3),
        ("}", -9),
    ]
    assert confidence(tokens, content, span) == pytest.approx(math.exp(-0.6))


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        {},
        {"content": None},
        {"content": []},
        {"content": ["fire"]},
        {"content": [{"token": "fire"}]},
        {"content": [{"token": "fire", "logprob": "x"}]},
        {"content": [{"token": "fire", "logprob": None}]},
        {"content": [{"token": "fire", "logprob": math.nan}]},
        {"content": [{"token": "other", "logprob": -1.0}]},
        {"content": [{"token": 5, "logprob": -1.0}]},
        {"content": {"token": "fire"}},
    ],
)
def test_odd_probabilities_are_none(logprobs):
    assert find_confidence({"logprobs": logprobs}, "fire", (0, 4)) is None


def test_probabilities_stay_between_0_and_1():
    assert confidence([("fire", 5.0)], "fire", (0, 4)) == 1
    assert confidence([("fire", -9999.0)], "fire", (0, 4)) == 0
    assert confidence([("fire", -math.inf)], "fire", (0, 4)) == 0
