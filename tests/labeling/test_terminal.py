"""The terminal app, driven as a person drives it."""

import asyncio
import threading

import pytest

pytest.importorskip("textual")

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from textual.widgets import Input, Static
from textual.widgets._footer import FooterKey

from skactive import ActiveLearner
from skactive.labeling._terminal import LabelingApp

from ._helpers import text_of


def _drive(desk, play, size=(100, 30)):
    """Run the app of a desk with a function of its pilot."""

    async def run():
        app = LabelingApp(desk)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await play(app, pilot)

    asyncio.run(run())


def _shown(app, name):
    return str(app.query_one(f"#{name}", Static).render())


async def _press(pilot, *keys):
    """Press keys one after the other, each when the last one has its effect."""
    for key in keys:
        await pilot.press(key)
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()


@pytest.mark.slow
def test_a_refresh_that_ends_after_the_app_is_ignored(desk, monkeypatch):
    state, is_closed, tasks = desk.state, threading.Event(), []

    def late():
        assert is_closed.wait(60)
        return state()

    async def run():
        app = LabelingApp(desk)
        async with app.run_test() as pilot:
            await pilot.pause()
            monkeypatch.setattr(desk, "state", late)
            tasks.append(asyncio.create_task(app._refresh()))
        is_closed.set()
        await tasks[0]
        assert not app.query("#error")

    asyncio.run(run())


@pytest.mark.slow
def test_keys_answer_and_show_the_next_text(desk):
    texts = []

    async def play(app, pilot):
        for key in "12121":
            texts.append((_shown(app, "item"), key))
            await _press(pilot, key)
        assert "5 labeled" in _shown(app, "status")
        assert "1  yes  (3)" in _shown(app, "list")

    _drive(desk, play)
    labels = {text_of(desk.session, id): x for id, x in desk.session.labels.items()}
    assert labels == {text: {"1": "yes", "2": "no"}[key] for text, key in texts}
    answers = [desk.session.state.answers[id] for id in desk.session.labels]
    assert all(answer.seconds >= 0 for answer in answers)


@pytest.mark.slow
def test_skip_undo_and_correct(desk):
    async def play(app, pilot):
        first = _shown(app, "item")
        await _press(pilot, "1", "s", "u", "u")
        assert _shown(app, "item") == first
        assert desk.session.labels == {}
        await _press(pilot, "2", "right", "left", "1", "equals_sign", "enter", "2")

    _drive(desk, play)
    assert sorted(desk.session.labels.values()) == ["no", "no"]


def test_accept_the_prediction(desk):
    for id in range(12):
        desk.answer(
            id,
            "yes" if "good" in text_of(desk.session, id) else "no",
            "other",
        )
    desk.session.refit()

    async def play(app, pilot):
        assert "prediction: " in _shown(app, "prediction")
        await _press(pilot, "space")

    _drive(desk, play)
    assert len(desk.session.labels) == 13


def test_space_does_nothing_without_a_prediction(desk):
    async def play(app, pilot):
        await _press(pilot, "space")

    _drive(desk, play)
    assert desk.session.labels == {}


def test_flag_and_note(desk):
    async def play(app, pilot):
        await _press(pilot, "f", "n")
        app.screen.query_one(Input).value = "unclear 1 s"
        await _press(pilot, "enter")
        assert "flagged | note: unclear 1 s" in _shown(app, "prediction")
        await _press(pilot, "f", "1")

    _drive(desk, play)
    assert list(desk.session.notes.values()) == ["unclear 1 s"]
    assert desk.session.flags == []
    assert list(desk.session.labels.values()) == ["yes"]


@pytest.mark.slow
def test_a_class_is_found_by_a_part_of_its_name(open_desk):
    names = [f"intent {i}" for i in range(77)]
    desk = open_desk(session={"classes": names})

    async def play(app, pilot):
        await _press(pilot, "slash", "7", "6", "enter")
        await _press(pilot, "slash", "escape")

    _drive(desk, play)
    assert list(desk.session.labels.values()) == ["intent 76"]


def test_a_class_is_added(desk):
    async def play(app, pilot):
        await _press(pilot, "plus_sign", *"new", "enter", "3")

    _drive(desk, play)
    assert list(desk.session.labels.values()) == ["new"]


def test_help_shows_the_descriptions(open_desk):
    desk = open_desk(descriptions={"yes": {"description": "[b]a good film[/b]"}})

    async def play(app, pilot):
        await _press(pilot, "question_mark")
        prompts = [str(o.prompt) for o in app.screen.query_one("OptionList").options]
        assert "[b]a good film[/b]" in prompts[0]
        await _press(pilot, "escape", "1")

    _drive(desk, play)
    assert len(desk.session.labels) == 1


def test_an_answer_that_is_not_stored_is_said(desk, monkeypatch):
    def fail(*args):
        raise OSError(28, "No space left on device")

    async def play(app, pilot):
        text = _shown(app, "item")
        with monkeypatch.context() as patch:
            patch.setattr("skactive._storage._files._fsync", fail)
            await _press(pilot, "1")
            assert "NOT STORED" in _shown(app, "error")
        assert (_shown(app, "item"), desk.session.labels) == (text, {})
        await _press(pilot, "1")

    _drive(desk, play)
    assert len(desk.session.labels) == 1


@pytest.mark.slow
def test_texts_are_shown_as_they_are(open_desk):
    texts = ["[red]markup[/red] [link=x]", "שלום \u202e abc", "x" * 100_000, "a\nb\tc"]
    desk = open_desk(texts)
    seen = []

    async def play(app, pilot):
        for _ in texts:
            seen.append(app._item["text"])
            assert _shown(app, "item")[:20] == seen[-1][:20]
            await _press(pilot, "1")
        assert "Nothing is left" in _shown(app, "item")
        await _press(pilot, "1", "s", "f", "n", "u")

    _drive(desk, play, size=(40, 20))
    assert sorted(seen) == sorted(texts)


SEVERAL = {"classes": ["joy", "love", "anger"], "multi_label": True, "refit": False}


SESSIONS = {"one": {"refit": False}, "several": SEVERAL}


@pytest.mark.slow
def test_check_several_classes(open_desk):
    desk = open_desk(session=SEVERAL)
    texts = []

    async def play(app, pilot):
        texts.append(_shown(app, "item"))
        await _press(pilot, "1", "3")
        assert "1  [x] joy  (0)" in _shown(app, "list")
        assert "2  [ ] love  (0)" in _shown(app, "list")
        await _press(pilot, "3", "slash", "l", "o", "enter", "enter")
        texts.append(_shown(app, "item"))
        await _press(pilot, "1", "escape", "enter")
        assert _shown(app, "item") == texts[-1]  # an empty answer needs two
        await _press(pilot, "enter")
        await _press(pilot, "u")
        assert "[ ] joy" in _shown(app, "list")
        await _press(pilot, "2", "enter")

    _drive(desk, play)
    labels = {text_of(desk.session, id): x for id, x in desk.session.labels.items()}
    assert labels == {texts[0]: ["joy", "love"], texts[1]: ["love"]}


@pytest.fixture
def open_numbers(open_desk):
    def open_numbers():
        model = make_pipeline(TfidfVectorizer(), Ridge())
        learner = ActiveLearner(model, strategy="random", random_state=0)
        return open_desk(learner=learner, session={"classes": None, "refit": False})

    return open_numbers


@pytest.mark.parametrize("kind", ["one", "several", "numbers"])
def test_the_footer_shows_all_keys_at_110_columns(open_desk, open_numbers, kind):
    desk = open_numbers() if kind == "numbers" else open_desk(session=SESSIONS[kind])
    shown = {}

    async def play(app, pilot):
        for key in app.query(FooterKey):
            shown[key.description] = key.region.right

    _drive(desk, play, size=(110, 30))
    more = {"one": {"Class"}, "several": {"Class", "Save"}, "numbers": {"Number"}}
    assert shown.keys() > more[kind]
    assert max(shown.values()) <= 110


@pytest.mark.slow
def test_without_classes_the_first_screen_says_how_to_add_one(open_desk):
    desk = open_desk(session={"classes": None})

    async def play(app, pilot):
        assert _shown(app, "list") == "+ NAME adds a class"
        await _press(pilot, "plus_sign", *"new", "enter", "1")
        assert "+ NAME adds a class" in _shown(app, "list")
        await _press(pilot, "plus_sign", *"old", "enter", "2")
        assert "+ NAME" not in _shown(app, "list")

    _drive(desk, play)
    assert list(desk.session.labels.values()) == ["new", "old"]


@pytest.mark.slow
def test_type_numbers(open_numbers):
    desk = open_numbers()

    async def play(app, pilot):
        await _press(pilot, "enter", *"1x", "enter")
        await _press(pilot, "enter", "2", "full_stop", "5", "enter")

    _drive(desk, play)
    assert list(desk.session.labels.values()) == [2.5]
