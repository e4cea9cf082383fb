"""The notebook widget: its messages, and its module in a browser."""

import json
import threading

import pytest

from skactive.labeling import LabelingWidget


@pytest.fixture
def open_widget():
    opened = []

    def open_widget(*args, **options):
        widget = LabelingWidget(*args, **options)
        sent = widget.sent = []
        widget.arrived = threading.Condition()

        def send(content, buffers=None):
            with widget.arrived:
                sent.append(json.loads(json.dumps(content)))
                widget.arrived.notify_all()

        widget.send = send
        opened.append(widget)
        return widget

    yield open_widget
    for widget in opened:
        widget.close()


def _ask(widget, method, **args):
    """Return the status and the content of the reply to a message."""
    call = f"call {len(widget.sent)}"
    widget._handle_custom_msg({"call": call, "method": method, "args": args}, [])
    with widget.arrived:
        found = lambda: [m for m in widget.sent if m.get("call") == call]  # noqa: E731
        assert widget.arrived.wait_for(found, timeout=30)
        (reply,) = found()
    return reply["status"], reply["content"]


def test_messages_are_calls_of_the_desk(open_widget, desk):
    widget = open_widget(desk)
    status, (item, *_) = _ask(widget, "next", client="cell")
    assert status == 200
    status, state = _ask(widget, "answer", id=item["id"], label="yes", client="cell")
    assert (status, state["n_labeled"]) == (200, 1)
    assert desk.session.labels == {json.loads(item["id"]): "yes"}
    assert _ask(widget, "answer", id="3", label="maybe", client="cell")[0] == 400
    assert _ask(widget, "close")[0] == 400


def test_changes_are_sent_to_who_listens(open_widget, desk):
    widget = open_widget(desk)
    widget._handle_custom_msg({"call": "1", "method": "listen"}, [])
    assert widget.sent == [{"version": desk.version()}]
    desk.answer(3, "yes", "another front end")
    with widget.arrived:
        assert widget.arrived.wait_for(lambda: len(widget.sent) > 1, timeout=30)
    assert "version" in widget.sent[1]


def test_a_session_is_enough(open_widget, desk):
    widget = open_widget(desk.session, goal=7, descriptions={"yes": "good"})
    assert widget.desk.state()["goal"] == 7
    widget.close()
    desk.session.tell(3, "yes", unasked=True)


def test_the_module_and_the_stylesheet_are_those_of_the_page(open_widget, desk):
    widget = open_widget(desk)
    assert "export function mount" in str(widget._esm)
    assert ".skactive {" in str(widget._css)


def test_widgets_of_one_session_share_what_the_browser_keeps(open_widget, desk):
    assert open_widget(desk).scope == open_widget(desk.session).scope != ""


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (None, {}, "'session' must be a LabelingSession or a Desk, got None"),
        ("desk", {"goal": 3}, r"options must be given to the Desk, got \['goal'\]"),
    ],
)
def test_what_is_no_session(desk, given, options, message):
    with pytest.raises(TypeError, match=message):
        LabelingWidget(desk if given == "desk" else given, **options)


def test_an_unknown_name_is_an_attribute_error():
    import skactive.labeling

    assert dir(skactive.labeling) == ["Desk", "LabelingWidget"]
    with pytest.raises(AttributeError, match="no attribute 'Widget'"):
        skactive.labeling.Widget  # noqa: B018
