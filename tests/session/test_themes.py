"""Groups of similar texts, and searches by words, patterns and meaning."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, LabelingSession
from skactive.session import Desk

TOPICS = {
    "sport": ["match", "team", "goal"],
    "money": ["bank", "share", "price"],
    "weather": ["rain", "wind", "storm"],
}
NAMES = [name for name in TOPICS for _ in range(30)]
TEXTS = [
    " ".join(["the", *np.random.default_rng(i).choice(TOPICS[name], 2), f"no{i}"])
    for i, name in enumerate(NAMES)
]


@pytest.fixture
def desk(tmp_path):
    front = HashingVectorizer(n_features=2**10)
    learner = ActiveLearner(make_pipeline(front, LogisticRegression()), random_state=0)
    with (
        LabelingSession(learner, TEXTS, tmp_path / "s", audit_every=5) as session,
        Desk(session) as desk,
    ):
        yield desk


def test_themes_are_groups_of_similar_texts_with_their_own_words(desk):
    themes = desk.themes(n_themes=3)["themes"]
    assert sum(theme["size"] for theme in themes) == pytest.approx(1)
    found = []
    for theme in themes:
        (topic,) = {NAMES[item["id"]] for item in theme["items"]}
        assert {*TOPICS[topic]} == {*theme["words"][:3]}
        assert "the" not in theme["words"]
        assert theme["predictions"] == []
        found.append(topic)
    assert sorted(found) == sorted(TOPICS)


def test_themes_count_labels_and_predictions_but_not_of_audited_texts(desk):
    blind = desk.session._core.queue.find_blind(range(len(TEXTS)))
    assert any(blind)
    desk.session.tell(range(0, 90, 2), NAMES[::2], unasked=True)
    desk.session.refit()
    for theme in desk.themes(n_themes=3)["themes"]:
        ((topic, n_labels),) = theme["labels"]
        open_ids = [i for i, x in enumerate(NAMES) if x == topic and not blind[i]]
        assert n_labels == sum(i % 2 == 0 for i in open_ids)
        assert theme["predictions"] == [(topic, len(open_ids))]
        assert {x["id"] for x in theme["items"]} == {i for i in open_ids if i % 2}


def test_more_themes_than_texts_are_refused(desk):
    with pytest.raises(ValueError, match=r"'n_themes' must be at most .* got 100"):
        desk.themes(n_themes=100)


def test_a_model_without_fixed_features_has_no_themes(tmp_path):
    learner = ActiveLearner(LogisticRegression(), random_state=0)
    with (
        LabelingSession(learner, TEXTS, tmp_path / "s") as session,
        Desk(session) as desk,
        pytest.raises(TypeError, match="Look for texts by words"),
    ):
        desk.themes()


def test_a_phrase_finds_the_texts_with_the_most_similar_features(desk):
    page = desk.search("rain storm", how="meaning", n_items=200)
    features = HashingVectorizer(n_features=2**10).transform(["rain storm", *TEXTS])
    cosines = (features[1:] @ features[0].T).toarray()[:, 0]
    assert page["total"] == len(TEXTS)
    found = [cosines[item["id"]] for item in page["items"]]
    np.testing.assert_allclose(found, np.sort(cosines)[::-1])


@pytest.mark.parametrize(
    ("query", "how", "expected"),
    [("NO1[12]$", "regex", [11, 12]), ("no1[12]", "words", []), ("O11", "words", [11])],
)
def test_a_pattern_is_searched_in_any_case(desk, query, how, expected):
    assert [x["id"] for x in desk.search(query, how=how)["items"]] == expected


def test_a_pattern_that_is_none_is_refused(desk):
    with pytest.raises(ValueError, match=r"'query' must be a regular .*got '\('"):
        desk.search("(", how="regex")
    with pytest.raises(ValueError, match="'how' must be one of 'words', 'regex'"):
        desk.search("a", how="sounds")
