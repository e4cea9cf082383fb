"""The client of Label Studio: tokens, retries, pages, errors; no server needed."""

import json
import re
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from skactive._utils._repeatable import start_daemon
from skactive.labeling._label_studio._client import (
    ANNOTATION,
    CHUNK,
    MAX_WAIT,
    PAGE,
    Client,
    LabelStudioError,
    NotFoundError,
    RefusedError,
    UnavailableError,
    chunk_items,
    format_time,
)

from .._utils._hostile import KINDS, serve_badly

URL = "http://labels.example:8080"
TOKEN = "0123456789abcdef-the-secret"
PERSONAL = "head.refresh-secret.signature"
PAGE_OF_A_PROXY = "<!doctype html>\n<html>  <title>Welcome</title>" + "x" * 500


class Script:
    """A transport that answers with a list of responses, errors, or functions."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    def __call__(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer

    @property
    def calls(self):
        return [f"{r.method} {r.url.path}" for r in self.requests]

    @property
    def authorizations(self):
        return [r.headers.get("authorization") for r in self.requests]


def _answer(status=200, content=None, **headers):
    headers = {key.replace("_", "-"): value for key, value in headers.items()}
    return httpx.Response(status, json=content, headers=headers)


def _detail(status, detail):
    return _answer(status, {"status_code": status, "detail": detail})


def _client(*answers, url=URL, token=TOKEN, **options):
    """Return a client of a script, the script, and the waits between requests."""
    script, waits = Script(*answers), []
    transport = httpx.MockTransport(script)
    client = Client(url, token, transport=transport, sleep=waits.append, **options)
    return client, script, waits


def _body(request):
    return json.loads(request.content)


# Retries

REPEATED = {
    "GET": lambda client: client.list_versions(3),
    "PATCH": lambda client: client.switch_version(3, "v1"),
    "DELETE": lambda client: client.delete_version(3, "v1"),
}
ERRORS = [
    httpx.ConnectError("refused"),
    httpx.ConnectTimeout("slow"),
    httpx.ReadTimeout("slow"),
    httpx.WriteError("broken"),
    httpx.RemoteProtocolError("cut"),
    httpx.DecodingError("garbled"),
]


@pytest.mark.parametrize("method", REPEATED)
@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_status_is_retried(method, status):
    client, script, waits = _client(_answer(status), _answer(status), _answer(200, {}))
    REPEATED[method](client)
    assert [call.split()[0] for call in script.calls] == [method] * 3
    assert waits == [1, 2]


@pytest.mark.parametrize("method", REPEATED)
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_retried(method, error):
    client, script, waits = _client(error, _answer(200, {}))
    REPEATED[method](client)
    assert len(script.calls) == 2
    assert waits == [1]


@pytest.mark.parametrize("failure", [httpx.ReadTimeout("slow"), _detail(500, "broken")])
def test_retries_end(failure):
    client, script, waits = _client(*[failure] * 6)
    with pytest.raises(UnavailableError, match=r"failed 6 times.*(slow|500: broken)"):
        client.get_project(3)
    assert len(script.calls) == 6
    assert waits == [1, 2, 4, 8, 16]


def test_the_number_of_retries_is_an_option():
    client, script, _ = _client(_answer(503), n_retries=0)
    with pytest.raises(UnavailableError, match="failed 1 times"):
        client.get_project(3)
    assert len(script.calls) == 1


@pytest.mark.parametrize(
    ("header", "wait"),
    [("7", 7), ("0", 0), ("3600", MAX_WAIT), ("soon", 1), ("-3", 0), ("", 1)],
)
def test_retry_after_is_honored_within_limits(header, wait):
    client, _, waits = _client(_answer(429, retry_after=header), _answer(200, {}))
    client.list_versions(3)
    assert waits == [wait]


@pytest.mark.parametrize(("seconds", "least", "most"), [(30, 15, 30), (-30, 0, 0)])
def test_retry_after_may_be_a_date(seconds, least, most):
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)
    client, _, waits = _client(_answer(503, retry_after=date), _answer(200, {}))
    client.list_versions(3)
    assert least <= waits[0] <= most


@pytest.mark.parametrize(
    "failure",
    [
        httpx.ConnectError("refused"),
        httpx.ConnectTimeout(""),
        _answer(429),
        _answer(503),
    ],
)
def test_a_post_is_retried_where_it_had_no_effect(failure):
    client, script, waits = _client(failure, _answer(201, {"id": 8}))
    assert client.create_project("Mail", "<View/>") == {"id": 8}
    assert len(script.calls) == 2
    assert waits == [1]


@pytest.mark.parametrize(
    "failure",
    [
        httpx.ReadTimeout("slow"),
        httpx.WriteError("broken"),
        httpx.RemoteProtocolError("cut"),
        _answer(500),
        _answer(502),
        _answer(504),
    ],
)
def test_a_post_that_may_have_had_an_effect_is_not_retried(failure):
    client, script, waits = _client(failure)
    with pytest.raises(UnavailableError, match="may or may not have had an effect"):
        client.create_project("Mail", "<View/>")
    assert len(script.calls) == 1
    assert waits == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 413, 301])
def test_a_refusal_is_not_retried(status):
    client, script, _ = _client(_answer(status))
    with pytest.raises(LabelStudioError):
        client.get_project(3)
    assert len(script.calls) == 1


# Tokens


def test_a_legacy_token_is_sent_as_it_is():
    client, script, _ = _client(_answer(200, []), token=f" {TOKEN}\n")
    client.list_users()
    assert script.authorizations == [f"Token {TOKEN}"]


def test_a_legacy_token_that_is_refused_is_explained():
    client, script, _ = _client(_detail(401, "Invalid token."))
    with pytest.raises(
        RefusedError, match=r"legacy token was refused.*personal"
    ) as got:
        client.list_users()
    assert got.value.detail == "Invalid token."
    assert len(script.calls) == 1


def test_a_personal_token_is_exchanged_once():
    client, script, _ = _client(
        _answer(200, {"access": "a.b.c"}),
        _answer(200, []),
        _answer(200, []),
        token=PERSONAL,
    )
    client.list_users()
    client.list_users()
    assert script.calls == ["POST /api/token/refresh", *["GET /api/users/"] * 2]
    assert _body(script.requests[0]) == {"refresh": PERSONAL}
    assert script.authorizations == [None, "Bearer a.b.c", "Bearer a.b.c"]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_expired_access_is_refreshed(method):
    client, script, _ = _client(
        _answer(200, {"access": "a.b.c"}),
        _detail(401, "Authentication credentials were not provided."),
        _answer(200, {"access": "d.e.f"}),
        _answer(200, {"id": 4}),
        token=PERSONAL,
    )
    get = {
        "GET": lambda: client.get_project(4),
        "POST": lambda: client.create_project("Mail", "<View/>"),
    }[method]
    assert get() == {"id": 4}
    refresh = "POST /api/token/refresh"
    assert script.calls[::2] == [refresh, refresh]
    assert _body(script.requests[0]) == {"refresh": PERSONAL}
    assert script.authorizations == [None, "Bearer a.b.c", None, "Bearer d.e.f"]


def test_a_fresh_access_that_is_refused_ends_it():
    access = [_answer(200, {"access": "a.b.c"}), _answer(200, {"access": "d.e.f"})]
    refused = _detail(401, "no")
    client, script, _ = _client(access[0], refused, access[1], refused, token=PERSONAL)
    with pytest.raises(RefusedError, match="personal access token was refused"):
        client.get_project(4)
    assert len(script.calls) == 4


def test_a_revoked_personal_token_is_explained():
    client, script, _ = _client(_detail(401, "Token is blacklisted"), token=PERSONAL)
    with pytest.raises(RefusedError, match=r"Token is blacklisted.*revoked or expired"):
        client.get_project(4)
    assert len(script.calls) == 1


def test_the_exchange_is_retried_after_any_failure():
    client, script, waits = _client(
        httpx.ReadTimeout("slow"),
        _answer(502),
        _answer(200, {"access": "a.b.c"}),
        _answer(200, []),
        token=PERSONAL,
    )
    assert client.list_users() == {}
    assert waits == [1, 2]
    assert len(script.calls) == 4


@pytest.mark.parametrize("token", [TOKEN, PERSONAL])
def test_no_message_shows_the_token(token):
    echo, access = f"you sent {token}", []
    if token == PERSONAL:
        access.append(_answer(200, {"access": "x.access-secret.y"}))
        echo += " and x.access-secret.y"
    failures = [
        _detail(400, echo),
        _detail(404, echo),
        _answer(302, location=f"http://elsewhere/?next={token}"),
        httpx.Response(200, text=echo),
        httpx.Response(413, text="x" * 66 + echo),
        httpx.ReadTimeout(echo),
        *[_detail(500, echo)] * 2,
    ]
    for failure in failures:
        client, _, _ = _client(*access, failure, failure, token=token, n_retries=0)
        with pytest.raises(LabelStudioError) as got:
            client.create_project("Mail", "<View/>")
        detail = getattr(got.value, "detail", "")
        shown = f"{got.value} {got.value!r} {detail} {client!r}"
        assert "secret" not in shown
        assert token[:12] not in shown


@pytest.mark.parametrize("token", ["", "  ", "tökén", "two words", "a\nb", None, 7])
def test_a_token_that_cannot_be_one_is_refused_and_not_shown(token):
    with pytest.raises(ValueError, match="'token' must be") as got:
        Client(URL, token)
    assert not token or str(token) not in str(got.value)


# Addresses


@pytest.mark.parametrize(
    ("url", "prefix"),
    [
        (URL, ""),
        (f"{URL}/", ""),
        ("https://host/label-studio", "/label-studio"),
        ("https://host/label-studio/", "/label-studio"),
        ("http://[::1]:8080/a/b", "/a/b"),
    ],
)
def test_a_path_may_stand_before_the_api(url, prefix):
    client, script, _ = _client(_answer(200, {"id": 3}), url=url)
    client.get_project(3)
    asked = script.requests[0].url
    assert asked.path == f"{prefix}/api/projects/3/"
    assert (
        f"{asked.scheme}://{asked.netloc.decode()}"
        == re.match(r"\w+://[^/]+", url).group()
    )


@pytest.mark.parametrize("url", ["host:8080", "ftp://host", "http://", "", None, 5])
def test_other_addresses_are_refused(url):
    with pytest.raises(ValueError, match="'url' must be an http or https URL, got"):
        Client(url, TOKEN)


@pytest.mark.parametrize("url", ["http://me:pw@host", f"{URL}/?a=1", f"{URL}/#tab"])
def test_an_address_has_no_extras(url):
    with pytest.raises(ValueError, match="without user name, query") as got:
        Client(url, TOKEN)
    assert "pw" not in str(got.value)


# Answers that are no success


def test_a_missing_project_is_its_own_error():
    client, _, _ = _client(_detail(404, "No Project matches the given query."))
    with pytest.raises(NotFoundError, match=r"projects/3/ was not found \(No Project"):
        client.get_project(3)


def test_a_missing_project_may_be_answered_by_a_page():
    client, _, _ = _client(httpx.Response(404, text=PAGE_OF_A_PROXY))
    with pytest.raises(NotFoundError, match="import was not found"):
        client.import_tasks(3, [{"data": {"text": "one"}}])


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        ({"detail": "Project is closed"}, "Project is closed"),
        (
            {
                "detail": "Validation error",
                "validation_errors": {"title": ["Too short.", "Too odd."]},
            },
            "title: Too short. Too odd.",
        ),
        (
            {
                "detail": "Validation error",
                "validation_errors": {"non_field_errors": ["No tasks added"], "a": "b"},
            },
            "No tasks added; a: b",
        ),
        ({"title": ["Too short."]}, "title: Too short."),
        (["Too short."], "['Too short.']"),
        ({"code": 5}, "{'code': 5}"),
    ],
)
def test_a_refusal_names_the_reason(content, detail):
    client, _, _ = _client(_answer(400, content))
    with pytest.raises(RefusedError, match="status 400") as got:
        client.create_project("Mail", "<View/>")
    assert got.value.detail == detail
    assert detail in str(got.value)


def test_a_refusal_by_a_proxy_shows_the_beginning_of_its_page():
    client, _, _ = _client(httpx.Response(413, text=PAGE_OF_A_PROXY))
    with pytest.raises(RefusedError, match="413") as got:
        client.create_project("Mail", "<View/>")
    assert got.value.detail.startswith("<!doctype html> <html> <title>Welcome</title>")
    assert len(got.value.detail) == 80


@pytest.mark.parametrize("target", ["http://elsewhere/api/", "/user/login/?next=/api/"])
def test_a_redirect_is_not_followed(target):
    client, script, _ = _client(_answer(302, location=target))
    with pytest.raises(LabelStudioError, match=re.escape(f"redirected to {target!r}")):
        client.get_project(3)
    assert len(script.calls) == 1


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(200, text=PAGE_OF_A_PROXY),
        httpx.Response(200),
        _answer(200, ["another", "service"]),
        _answer(200, {"another": "service"}),
        _answer(200, None),
    ],
)
def test_an_answer_of_something_else_is_named(response):
    client, _, _ = _client(response)
    with pytest.raises(LabelStudioError, match="not answered as Label Studio does"):
        list(client.list_tasks(3))


# Tasks


def _pretend_tasks(n):
    """Return the answer of a server with the tasks 1..n that honors the filter."""

    def answer(request):
        query = json.loads(request.url.params["query"])
        assert request.url.params["fields"] == "all"
        assert query["ordering"] == ["tasks:id"]
        assert "annotations" in request.url.params["include"].split(",")
        last = query["filters"]["items"][-1]
        assert last["filter"] == "filter:tasks:id"
        size = int(request.url.params["page_size"])
        ids = range(last["value"] + 1, min(n, last["value"] + size) + 1)
        tasks = [{"id": i, "annotations": []} for i in ids]
        return _answer(200, {"tasks": tasks, "total": n})

    return answer


@pytest.mark.parametrize("n", [0, 1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE])
def test_every_task_comes_once(n):
    n_pages = n // PAGE + 1
    client, script, _ = _client(*[_pretend_tasks(n)] * n_pages)
    assert [task["id"] for task in client.list_tasks(3)] == list(range(1, n + 1))
    assert len(script.calls) == n_pages


def test_pages_do_not_shift_when_tasks_are_deleted_meanwhile():
    later = _answer(200, {"tasks": [{"id": PAGE + 2, "annotations": []}]})
    client, script, _ = _client(_pretend_tasks(3 * PAGE), later)
    ids = [task["id"] for task in client.list_tasks(3)]
    assert ids == [*range(1, PAGE + 1), PAGE + 2]
    last = json.loads(script.requests[1].url.params["query"])["filters"]["items"][-1]
    assert last["value"] == PAGE


def test_fields_are_not_chosen_where_annotations_would_lose_theirs():
    short = _answer(200, {"tasks": [{"id": 5, "annotations": [{"id": 8}]}]})
    annotation = {"id": 8, **dict.fromkeys(ANNOTATION), "more": 0}
    full = _answer(200, {"tasks": [{"id": 5, "annotations": [annotation]}]})
    client, script, _ = _client(short, full)
    assert [task["annotations"] for task in client.list_tasks(3)] == [[annotation]]
    assert ["include" in r.url.params for r in script.requests] == [True, False]


@pytest.mark.parametrize(
    ("since", "sent"),
    [
        ("2026-11-22T20:18:28.433681Z", "2026-11-22T20:18:28.433681Z"),
        ("2026-11-22T20:18:28Z", "2026-11-22T20:18:28.000000Z"),
        ("2026-11-22T20:18:28.4+05:30", "2026-11-22T14:48:28.400000Z"),
        ("2026-11-22", "2026-11-22T00:00:00.000000Z"),
        (datetime(2026, 1, 2, 3, tzinfo=UTC), "2026-01-02T03:00:00.000000Z"),
    ],
)
def test_the_time_is_sent_in_the_form_that_the_server_reads(since, sent):
    assert format_time(since) == sent
    client, script, _ = _client(_answer(200, {"tasks": []}))
    assert list(client.list_tasks(3, since=since)) == []
    query = json.loads(script.requests[0].url.params["query"])
    assert query["filters"]["items"][0] == {
        "filter": "filter:tasks:updated_at",
        "operator": "greater",
        "type": "Datetime",
        "value": sent,
    }


def test_tasks_are_imported_in_chunks():
    n = 2 * CHUNK + 5

    def answer(request):
        ids = [int(task["data"]["text"]) for task in _body(request)]
        return _answer(201, {"task_count": len(ids), "task_ids": ids})

    client, script, _ = _client(answer, answer, answer)
    ids = client.import_tasks(3, ({"data": {"text": str(i)}} for i in range(n)))
    assert ids == list(range(n))
    assert script.calls == ["POST /api/projects/3/import"] * 3
    assert script.requests[0].url.params["return_task_ids"] == "true"


def test_chunks_stay_small_enough_for_proxies():
    items = [{"data": {"text": "é" * 50_000}} for _ in range(7)]
    chunks = list(chunk_items(items))
    assert [item for chunk in chunks for item in chunk] == items
    assert max(len(json.dumps(chunk)) for chunk in chunks) < 1_000_000
    assert list(chunk_items([])) == []


def test_missing_task_ids_are_an_error():
    client, _, _ = _client(_answer(201, {"task_count": 1, "task_ids": [5]}))
    with pytest.raises(LabelStudioError, match=r"2 tasks were sent.*1 task ids"):
        client.import_tasks(3, [{"data": {"text": "one"}}, {"data": {"text": "two"}}])


# Predictions


def _prediction(task, label="spam", version="v1"):
    result = {"from_name": "label", "to_name": "text", "type": "choices"}
    result["value"] = {"choices": [label]}
    return {"task": task, "model_version": version, "score": 0.5, "result": [result]}


def _stored(*pairs):
    """Return the answer of the task list with predictions (id, version) by task."""
    tasks = [
        {"id": task, "predictions": [{"id": i, "model_version": v} for i, v in found]}
        for task, found in pairs
    ]
    return _answer(200, {"tasks": tasks})


@pytest.mark.long
def test_predictions_are_sent_in_chunks():
    def created(request):
        return _answer(201, {"created": len(_body(request))})

    client, script, _ = _client(created, created)
    sent = [_prediction(i) for i in range(CHUNK + 1)]
    client.add_predictions(3, sent)
    assert [p for request in script.requests for p in _body(request)] == sent
    assert len(_body(script.requests[0])) <= CHUNK


def test_predictions_that_were_dropped_are_named():
    sent = [_prediction(5), _prediction(6, "eggs"), _prediction(7)]
    stored = _stored((5, [(1, "v1")]), (7, [(2, "v1"), (3, "v10")]))
    client, _, _ = _client(_answer(201, {"created": 2}), stored)
    with pytest.raises(RefusedError, match="1 of 3 predictions do not fit") as got:
        client.add_predictions(3, sent)
    assert "task 6" in got.value.detail
    assert "eggs" in got.value.detail
    assert "task 5" not in got.value.detail


def test_many_dropped_predictions_are_named_in_part():
    client, _, _ = _client(_answer(201, {"created": 0}), _stored())
    with pytest.raises(RefusedError, match=r"5 of 5.*task 2.*; \.\.\.") as got:
        client.add_predictions(3, [_prediction(i) for i in range(5)])
    assert "task 3" not in got.value.detail


def test_predictions_are_listed_by_version():
    pairs = (5, [(1, "v1"), (4, "v1")]), (6, [(2, "v10")]), (7, [(3, "v1")])
    client, script, _ = _client(_stored(*pairs))
    assert client.list_predictions(3, "v1") == {5: [1, 4], 7: [3]}
    query = json.loads(script.requests[0].url.params["query"])
    assert query["filters"]["items"][0]["value"] == ["v1"]


def test_versions_are_listed_switched_and_deleted():
    client, script, _ = _client(
        _answer(200, {"v2": 50, "v1": 7}),
        _answer(200, {"model_version": "v2"}),
        _answer(200, {"deleted_predictions": 0}),
    )
    assert client.list_versions(3) == ["v1", "v2"]
    client.switch_version(3, "v2")
    client.delete_version(3, "v1")
    assert script.calls == [
        "GET /api/projects/3/model-versions/",
        "PATCH /api/projects/3/",
        "DELETE /api/projects/3/model-versions/",
    ]
    assert [_body(r) for r in script.requests[1:]] == [
        {"model_version": "v2"},
        {"model_version": "v1"},
    ]


# Projects and users


def test_a_new_project_asks_in_the_order_of_the_scores():
    client, script, _ = _client(_answer(201, {"id": 3}))
    assert client.create_project("Mail", "<View/>") == {"id": 3}
    assert _body(script.requests[0]) == {
        "title": "Mail",
        "label_config": "<View/>",
        "sampling": "Uncertainty sampling",
        "show_skip_button": True,
        "skip_queue": "IGNORE_SKIPPED",
        "maximum_annotations": 1,
    }


@pytest.mark.parametrize(
    ("sampling", "patched"),
    [("Uncertainty sampling", False), ("Sequential sampling", True)],
)
def test_the_sampling_is_changed_where_needed(sampling, patched):
    client, script, _ = _client(_answer(200, {"sampling": sampling}), _answer(200, {}))
    client.use_uncertainty_sampling(3)
    assert len(script.calls) == 1 + patched
    if patched:
        assert _body(script.requests[1]) == {"sampling": "Uncertainty sampling"}


def test_users_are_named_by_what_they_have():
    users = [
        {"id": 1, "email": "ann@example.com", "username": "ann"},
        {"id": 2, "email": "", "username": "ben"},
        {"id": 3},
    ]
    client, _, _ = _client(_answer(200, users))
    assert client.list_users() == {1: "ann@example.com", 2: "ben", 3: "3"}


@pytest.mark.parametrize("kind", ["a byte of a header", "endless 100 Continue"])
def test_an_exchange_has_a_deadline_whatever_the_server_sends(kind):
    waits = []
    with serve_badly(KINDS[kind]) as (host, connections):
        options = {"n_retries": 1, "timeout": 600, "deadline": 0.5}
        client = Client(f"http://{host}", TOKEN, sleep=waits.append, **options)
        with pytest.raises(UnavailableError, match=r"failed 2 times, .*ReadTimeout"):
            client.list_users()
        with pytest.raises(UnavailableError, match="may or may not have had an effect"):
            client.create_project("a title", "<View/>")
    assert waits == [1]
    assert len(connections) == 3


def test_closing_a_client_ends_its_waits():
    client = Client(URL, TOKEN, transport=httpx.MockTransport(lambda x: _answer(503)))
    asked = start_daemon(client.list_users)
    time.sleep(0.5)
    client.close()
    with pytest.raises(RuntimeError, match="the client is closed"):
        asked.result(60)


def test_a_client_is_closed():
    client, script, _ = _client(_answer(200, []))
    with client as entered:
        assert entered is client
    with pytest.raises(RuntimeError, match="closed"):
        client.list_users()
    assert script.calls == []


@pytest.mark.long
def test_a_missing_httpx_is_explained():
    code = (
        "import sys; sys.modules['httpx'] = None\n"
        "import skactive.labeling._label_studio._client"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert 'pip install "skactive[label-studio]"' in done.stderr.splitlines()[-1]
