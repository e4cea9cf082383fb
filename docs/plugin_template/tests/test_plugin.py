"""The conformance checks of skactive, one test each."""

import pytest
from skactive_template import Explore, KeywordAnnotator, Novelty

from skactive import get_strategy
from skactive.annotators import get_annotator
from skactive.testing import check_annotator, parametrize_with_strategy_checks

KEYWORDS = {"refund": ["money", "refund"], "delivery": ["parcel", "late"]}


@parametrize_with_strategy_checks(
    [Novelty(), Novelty(weight=0), Explore(), Explore("coreset", share=0.5)]
)
def test_strategy(check):
    check()


@pytest.mark.parametrize(("name", "cls"), [("novelty", Novelty), ("explore", Explore)])
def test_name(name, cls):
    assert type(get_strategy(name)) is cls


def test_annotator():
    annotator = get_annotator("keywords", keywords=KEYWORDS)
    assert type(annotator) is KeywordAnnotator
    answers = check_annotator(annotator, ["My money back!", "The parcel is late", "Hi"])
    assert [label for label, _ in answers] == ["refund", "delivery", None]
