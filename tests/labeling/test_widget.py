"""The notebook widget: its messages, and its module in a browser."""

import json
import threading

import pytest
from selenium.webdriver.common.keys import Keys

from skactive.labeling import LabelingWidget

from ._helpers import Page, text_of


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
    widget = open_widget(desk.session, n_labels=7, descriptions={"yes": "good"})
    assert widget.desk.state()["n_labels"] == 7
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
        (
            "desk",
            {"n_labels": 3},
            r"given to the Desk, got \['n_labels'\]",
        ),
    ],
)
def test_what_is_no_session(desk, given, options, message):
    with pytest.raises(TypeError, match=message):
        LabelingWidget(desk if given == "desk" else given, **options)


def test_an_unknown_name_is_an_attribute_error():
    import skactive.labeling

    assert dir(skactive.labeling) == ["LabelingWidget", "run_prompt", "serve"]
    with pytest.raises(AttributeError, match="no attribute 'Widget'"):
        skactive.labeling.Widget  # noqa: B018


HOST = """<!doctype html><title>Host</title><link rel="stylesheet" href="labeling.css">
<input id="cell"><div id="output"></div><script type="module" src="host.js"></script>"""
HOST_JS = """
import widget from "./labeling.js";
const heard = [];
let seen = 0;
const exchange = async (path, body) => {
  const response = await fetch(path, { method: "POST", body });
  return response.json();
};
const model = {
  get: (name) => (name === "scope" ? "a-session" : undefined),
  on: (event, callback) => heard.push(callback),
  send: (message) => exchange("send", JSON.stringify(message)),
};
const poll = async () => {
  const messages = await exchange("poll", String(seen));
  seen += messages.length;
  messages.forEach((message) => heard.forEach((callback) => callback(message)));
  setTimeout(poll, 20);
};
poll();
document.cell = [];
document.addEventListener("keydown", (event) => document.cell.push(event.key));
const close = widget.render({ model, el: document.getElementById("output") });
document.getElementById("cell").addEventListener("change", close);
"""


def _host(widget):
    """Return an app that passes messages between a browser and a widget."""
    import asyncio

    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    async def send(request):
        widget._handle_custom_msg(await request.json(), [])
        return JSONResponse(None)

    async def poll(request):
        await asyncio.sleep(0.01)
        return JSONResponse(widget.sent[int(await request.body()) :])

    def file(content, kind):
        return lambda request: Response(content, media_type=kind)

    script = "text/javascript"
    return Starlette(
        routes=[
            Route("/", file(HOST, "text/html")),
            Route("/host.js", file(HOST_JS, script)),
            Route("/labeling.js", file(str(widget._esm), script)),
            Route("/labeling.css", file(str(widget._css), "text/css")),
            Route("/send", send, methods=["POST"]),
            Route("/poll", poll, methods=["POST"]),
        ]
    )


@pytest.fixture
def notebook(window, open_widget, desk, free_port):
    """The widget of a desk in a page that stands for a notebook."""
    import uvicorn

    widget = open_widget(desk)
    config = uvicorn.Config(_host(widget), port=free_port, log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        thread.join(0.01)
    page = Page(window, f"http://127.0.0.1:{free_port}/")
    yield page
    server.should_exit = True
    thread.join()


@pytest.mark.slow
@pytest.mark.browser
def test_the_widget_shows_the_interface_of_the_page(notebook, desk):
    page, typed = notebook, {}
    page.all(".text")[0].click()
    for key in "1212":
        typed[page.go(key)] = {"1": "yes", "2": "no"}[key]
    session = desk.session
    labels = {text_of(session, id): label for id, label in session.labels.items()}
    assert labels == typed
    page.press("u")
    page.until(lambda: "3 labels" in page.text(".done"))
    desk.answer(57, "yes", "another front end")
    page.until(lambda: "4 labels" in page.text(".done"))
    # The keys of the notebook are not disturbed, and those of the widget stay in it.
    assert page.driver.execute_script("return document.cell") == []
    page.all("#cell")[0].click()
    page.press("1", "s")
    assert page.driver.execute_script("return document.cell") == ["1", "s"]
    assert len(session.labels) == 4
    assert not page.all("progress")  # JupyterLab has a look of its own for it
    width = "return document.querySelector(arguments[0]).offsetWidth"
    cell = page.driver.execute_script(width, "#output")
    assert page.driver.execute_script(width, ".card") > cell - 40
    assert not page.text("main")
    assert "Finish" not in page.text(".skactive")
    page.press(Keys.TAB)  # the cell changed: its output is removed
    page.until(lambda: not page.text("#output"))
    page.until(lambda: not desk._leases._owners)
