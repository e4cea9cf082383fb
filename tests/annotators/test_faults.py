"""Servers that refuse, fail, lie, wait or never end, and where the key is not."""

import json
import logging
import shutil
import ssl
import subprocess
import sys
import time
import warnings

import pytest

from skactive.annotators import ChatAnnotator
from skactive.annotators import _client as client_module

from .._utils._hostile import KINDS, serve_badly
from ._helpers import CLASSES, KEY, FakeChat, chat, right

TEXTS = [f"{name} {i}" for i in range(4) for name in CLASSES]
HTML = 200, {"Content-Type": "text/html"}, "<html><body>Please log in</body></html>"


def labels(answers):
    return [label for label, _ in answers]


def except_for(odd, reply):
    """Return a function that gives one text another reply."""
    return lambda text, body: reply if text == odd else right(text)


# Single texts without a label


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (chat(None, tokens=None), "refused by the model"),
        (chat(""), "answered with nothing"),
        (chat("x", finish_reason="content_filter"), "refused by the model"),
        (chat("I am sorry, I cannot."), "answered with none of the classes"),
        (chat('{"label": "hacked"}'), "answered with none of the classes"),
        (chat('{"label": "fi'), "answered with none of the classes"),
        ((400, {}, '{"error": {"code": "content_filter"}}'), "refused by the model"),
    ],
)
def test_a_text_without_an_answer_has_no_label_and_is_not_sent_again(
    make, tmp_path, reply, reason
):
    if isinstance(reply, dict) and reply["choices"][0]["message"]["content"] is None:
        reply["choices"][0]["message"]["refusal"] = "No."
    annotator = make(except_for(TEXTS[3], reply), cache=tmp_path)
    with pytest.warns(UserWarning, match=f"no label for 1 of 12 .*: 1 {reason}"):
        answers = annotator.annotate(TEXTS)
    expected = [text.split()[0] for text in TEXTS]
    expected[3] = None
    assert labels(answers) == expected
    assert answers[3] == (None, None)
    n = len(annotator.server.requests)
    with pytest.warns(UserWarning, match=f"no label for 1 of 12 .*: 1 {reason}"):
        again = make(server=annotator.server, cache=tmp_path).annotate(TEXTS)
    assert again == answers
    assert len(annotator.server.requests) == n == 12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        (HTML, "Please log in"),
        ((200, {}, '{"choices": [{"mess'), "choices"),
        ((200, {}, ""), "no JSON of a chat"),
        ((200, {}, b"\xff\xfe\x00"), "no JSON of a chat"),
        ((200, {}, '{"detail": "hello"}'), "hello"),
        ((200, {}, '{"choices": []}'), "choices"),
        ((200, {}, '{"choices": [null]}'), "null"),
        ((200, {}, '{"choices": [{"message": "fire"}]}'), "fire"),
        ((200, {}, '{"choices": [{"message": {"content": {"a": 1}}}]}'), "content"),
        ((200, {}, "[" * 100_000), "no JSON of a chat"),
        ((204, {}, ""), "no JSON of a chat"),
        ((400, {}, '{"error": {"message": "too long"}}'), "status 400: too long"),
        ((413, {}, ""), "status 413: no words"),
        ((422, {}, '{"error": "no"}'), 'status 422: {"error"'),
    ],
)
def test_an_unusable_reply_to_one_text_is_none_and_is_not_kept(make, reply, shown):
    annotator = make(except_for(TEXTS[3], reply))
    with pytest.warns(UserWarning, match="1 with an unusable reply") as caught:
        answers = annotator.annotate(TEXTS)
    assert shown in str(caught[0].message)
    assert answers[3] == (None, None)
    assert labels(answers).count(None) == 1
    annotator.server.reply = right
    assert annotator.annotate(TEXTS)[3] == ("fire", None)
    assert annotator.server.texts.count(TEXTS[3]) == 2


@pytest.mark.long
def test_a_server_of_another_kind_is_an_error_that_says_what_came(make):
    annotator = make(lambda text, body: HTML, n_jobs=4)
    with pytest.raises(ConnectionError, match=r"5 replies .* in a row .*Please log in"):
        annotator.annotate(TEXTS)
    assert annotator.server.texts == TEXTS[:5]
    with pytest.warns(UserWarning, match="no label for 2 of 2"):
        assert annotator.annotate(TEXTS[:2]) == [(None, None)] * 2


@pytest.mark.long
def test_many_texts_that_are_too_long_stop_nothing(make, tmp_path):
    texts = [*TEXTS[:2], *(f"fire {'long ' * i}" for i in range(9, 18))]
    too_long = 400, {}, '{"error": {"message": "too long"}}'
    annotator = make(cache=tmp_path)
    annotator.server.reply = lambda text, body: (
        too_long if "long" in text or "logprobs" in body else right(text)
    )
    for n_requests in (3 + 9, 9):  # the second object knows what the server rejects
        with pytest.warns(UserWarning, match="9 of 11 .*: 9 with .*400: too long"):
            answers = annotator.annotate(texts)
        assert labels(answers) == ["fire", "flood"] + [None] * 9
        assert len(annotator.server.requests) == n_requests
        annotator.server.requests.clear()
        annotator = make(server=annotator.server, cache=tmp_path)


@pytest.mark.long
def test_a_server_that_becomes_another_one_stops_the_run(make):
    annotator = make(n_jobs=1)
    annotator.server.reply = lambda text, body: (
        right(text) if len(annotator.server.requests) <= 3 else HTML
    )
    with pytest.raises(ConnectionError, match=r"5 replies .* in a row"):
        annotator.annotate(TEXTS)
    assert len(annotator.server.requests) == 8
    assert annotator.estimate_cost(TEXTS).n_cached == 3


@pytest.mark.long
def test_a_model_that_answers_every_text_alike_is_named(make):
    annotator = make(lambda text, body: chat('{"label": "fire"}'))
    texts = [f"text {i}" for i in range(20)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        annotator.annotate(texts[:19])
    with pytest.warns(UserWarning, match="tiny answers 'fire' to all 20 different"):
        assert labels(annotator.annotate(texts)) == ["fire"] * 20


# Servers that understand less


def rejects(*names, status=400):
    """Return a function that rejects requests with one of some options."""

    def reply(text, body):
        if found := [name for name in names if name in body]:
            error = {"error": {"message": f"{found[0]} is not supported"}}
            return status, {}, json.dumps(error)
        return chat(f"{text.split()[0].upper()}.")

    return reply


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "sent"),
    [
        (["logprobs"], ["temperature", "response_format"]),
        (["response_format"], ["temperature"]),
        (["response_format", "logprobs"], ["temperature"]),
        (["temperature"], []),
    ],
)
@pytest.mark.parametrize("status", [400, 422])
def test_what_a_server_rejects_is_left_out_from_then_on(make, names, sent, status):
    annotator = make(rejects(*names, status=status))
    answers = annotator.annotate(TEXTS)
    assert labels(answers) == [text.split()[0] for text in TEXTS]
    bodies = [request["body"] for request in annotator.server.requests]
    options = {"temperature", "response_format", "logprobs"}
    assert all(options & body.keys() == set(sent) for body in bodies[-12:])
    assert annotator.describe()["sent"] == sent
    n = len(bodies)
    assert n - 12 in (1, 2, 3)
    annotator.annotate(["fire again"])
    assert len(annotator.server.requests) == n + 1


@pytest.mark.long
def test_a_server_that_rejects_everything_is_an_error_with_its_words(make):
    annotator = make(lambda text, body: (400, {}, '{"error": {"message": "no GPU"}}'))
    with pytest.raises(ConnectionError, match=r"5 replies .*status 400: no GPU"):
        annotator.annotate(TEXTS)


# Errors that end a run


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_stops_at_once_and_is_not_shown(make, status):
    annotator = make(lambda text, body: (status, {}, f"wrong key {KEY}"))
    with pytest.raises(PermissionError, match="SKACTIVE_API_KEY was refused") as caught:
        annotator.annotate(TEXTS)
    assert KEY not in str(caught.value)
    assert len(annotator.server.requests) == 1


def test_a_missing_key_is_named(make, monkeypatch):
    monkeypatch.delenv("SKACTIVE_API_KEY")
    annotator = make(lambda text, body: (401, {}, "who are you?"))
    with pytest.raises(PermissionError, match="SKACTIVE_API_KEY is not set"):
        annotator.annotate(TEXTS)


@pytest.mark.parametrize("odd", ["sk-\nInjected: 1", "sk-café", "sk a", "sk\x00"])
def test_a_key_that_no_header_can_hold_is_refused_unseen(make, monkeypatch, odd):
    if "\0" in odd:
        monkeypatch.setattr(client_module.os, "environ", {"SKACTIVE_API_KEY": odd})
    else:
        monkeypatch.setenv("SKACTIVE_API_KEY", odd)
    annotator = make()
    with pytest.raises(ValueError, match="SKACTIVE_API_KEY must hold a key") as caught:
        annotator.annotate(TEXTS)
    assert odd not in str(caught.value)
    assert annotator.server.requests == []


@pytest.mark.parametrize("status", [402, 404, 405, 410])
def test_an_unknown_model_or_path_stops_at_once(make, status):
    content = json.dumps({"error": {"message": f"no model 'tiny' for {KEY}"}})
    annotator = make(lambda text, body: (status, {}, content))
    expected = rf"status {status}\): no model 'tiny' for \.\.\.\. Check the URL"
    with pytest.raises(ConnectionError, match=expected):
        annotator.annotate(TEXTS)
    assert len(annotator.server.requests) == 1


@pytest.mark.long
@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_error_without_end_keeps_what_was_done(make, pauses, status):
    annotator = make(n_jobs=1, max_retries=3)
    annotator.server.reply = lambda text, body: (
        right(text)
        if len(annotator.server.requests) <= 5
        else (status, {}, f"busy {KEY}")
    )
    with pytest.raises(ConnectionError, match=f"4 times in a row.*{status}: busy") as e:
        annotator.annotate(TEXTS)
    assert KEY not in str(e.value)
    assert len(annotator.server.requests) == 5 + 4
    assert len(pauses) == 3
    # The waiting time doubles, with jitter of its own generator.
    assert all(2**i / 2 <= wait <= 2**i for i, wait in enumerate(pauses))
    annotator.server.reply = right
    assert labels(annotator.annotate(TEXTS)) == [text.split()[0] for text in TEXTS]
    assert annotator.server.texts[9:] == TEXTS[5:]


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_other_requests_end_with_the_first_error(make, n_jobs):
    annotator = make(n_jobs=n_jobs)
    annotator.server.reply = lambda text, body: (
        right(text) if text in TEXTS[:2] else (404, {}, "gone")
    )
    texts = TEXTS + [f"flood number {i}" for i in range(200)]
    with pytest.raises(ConnectionError, match="gone"):
        annotator.annotate(texts)
    assert len(annotator.server.requests) <= 2 + n_jobs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("7", 7, 7),
        ("0.25", 0.25, 0.25),
        ("0", 0, 0),
        ("-5", 0, 0),
        ("86400", 60, 60),
        ("inf", 60, 60),
        ("nan", 0, 0),
        ("soon", 0.5, 1),
        ("Wed, 21 Oct 2020 07:28:00 GMT", 0, 0),
        ("Wed, 21 Oct 9999 07:28:00 GMT", 60, 60),
        ("Wed, 99 Oct 2026 07:28:00 GMT", 0.5, 1),
        (None, 0.5, 1),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_the_server_says_how_long_to_wait(make, pauses, status, header, least, most):
    annotator = make()
    headers = {} if header is None else {"Retry-After": header}
    annotator.server.reply = lambda text, body: (
        right(text) if len(annotator.server.requests) > 1 else (status, headers, "")
    )
    assert labels(annotator.annotate(TEXTS)) == [text.split()[0] for text in TEXTS]
    assert len(pauses) == 1
    assert least <= pauses[0] <= most
    assert annotator.server.texts == [TEXTS[0], *annotator.server.texts[1:]]
    assert len(annotator.server.texts) == 13


# Connections


def drop(handler):
    """Close the connection without a reply."""
    handler.connection.close()


def test_a_dropped_connection_is_tried_again(make, pauses):
    annotator = make()
    annotator.server.reply = lambda text, body: (
        right(text) if annotator.server.texts.count(text) > 1 else drop
    )
    assert labels(annotator.annotate(TEXTS)) == [text.split()[0] for text in TEXTS]
    assert len(annotator.server.requests) == 24
    annotator.server.reply = lambda text, body: drop
    with pytest.raises(ConnectionError, match="3 times in a row, finally with"):
        annotator.annotate(["fire elsewhere"])


def test_a_server_that_is_not_there(pauses):
    server = FakeChat()
    server.shutdown()
    server.server_close()
    annotator = ChatAnnotator(server.url, "tiny", CLASSES, max_retries=1)
    with pytest.raises(
        ConnectionError, match=f"{server.host} failed 2 times .*Connect"
    ):
        annotator.annotate(TEXTS)
    assert len(pauses) == 1


def wait(handler):
    """Let the client wait for a reply."""
    handler.connection.settimeout(20)
    handler.connection.recv(1)  # until it goes


@pytest.mark.long
def test_a_slow_reply_is_an_error_at_first_and_later_that_of_one_text(make, pauses):
    annotator = make(lambda text, body: wait, timeout=0.2, max_retries=1)
    with pytest.raises(
        ConnectionError, match="2 times in a row, finally with ReadTime"
    ):
        annotator.annotate(TEXTS)
    assert len(annotator.server.requests) == 2
    annotator = make(except_for(TEXTS[3], wait), timeout=5, max_retries=0)
    with pytest.warns(UserWarning, match=r"unusable reply \(no end within 5 sec"):
        answers = annotator.annotate(TEXTS)
    assert labels(answers).count(None) == 1
    assert answers[3] == (None, None)


def pour(part, pause):
    """Return a reply that never ends."""

    def write(handler):
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.end_headers()
        while True:
            handler.wfile.write(part)
            time.sleep(pause)

    return write


@pytest.mark.parametrize(
    ("reply", "timeout", "reason"),
    [
        (pour(b" " * 2**16, 0), 20, "more than 1,048,576 bytes"),
        (pour(b" ", 0.01), 1.5, "no end within 1.5 seconds"),
    ],
)
def test_a_reply_without_end_is_cut(make, reply, timeout, reason):
    annotator = make(except_for(TEXTS[3], reply), timeout=timeout, max_retries=0)
    with pytest.warns(UserWarning, match=reason):
        answers = annotator.annotate(TEXTS)
    assert answers[3] == (None, None)
    assert labels(answers).count(None) == 1


@pytest.mark.parametrize("kind", ["a byte of a header", "endless 100 Continue"])
def test_a_server_that_never_comes_to_an_end_is_an_error_after_retries(pauses, kind):
    with serve_badly(KINDS[kind]) as (host, connections):
        options = {"timeout": 0.5, "max_retries": 2, "verbose": 0}
        annotator = ChatAnnotator(f"http://{host}", "tiny", CLASSES, **options)
        with pytest.raises(ConnectionError, match=r"failed 3 times .*ReadTimeout"):
            annotator.annotate(TEXTS)
        assert len(connections) == 3
    assert len(pauses) == 2


def drip_a_header(handler):
    """Send a byte of a header now and then."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        handler.wfile.write(b"a")
        time.sleep(0.05)


def test_a_reply_without_end_is_none_and_the_others_are_answered(make):
    annotator = make(except_for(TEXTS[3], drip_a_header), timeout=5, max_retries=0)
    with pytest.warns(UserWarning, match=r"1 with .*\(no end within 5 seconds"):
        answers = annotator.annotate(TEXTS)
    assert labels(answers).count(None) == 1
    assert answers[3] == (None, None)


def test_compressed_replies_are_not_asked_for_and_not_unpacked(make):
    packed = 200, {"Content-Encoding": "gzip"}, b"\x1f\x8b\x08\x00 many zeros"
    annotator = make(except_for(TEXTS[3], packed))
    with pytest.warns(UserWarning, match="unusable reply"):
        annotator.annotate(TEXTS)
    sent = annotator.server.requests[0]["headers"]["Accept-Encoding"]
    assert sent == "identity"


def test_an_odd_redirect_is_named(make):
    annotator = make(lambda text, body: (302, {"Location": "http://["}, ""))
    with pytest.raises(ConnectionError, match=r"redirects to \[\. Redirects are not"):
        annotator.annotate(TEXTS)
    annotator.server.reply = lambda text, body: (302, {"Location": "/login"}, "")
    with pytest.raises(ConnectionError, match="redirects to another path"):
        annotator.annotate(TEXTS)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(make, serve, status):
    other = serve()
    location = {"Location": f"{other.url}/v1/chat/completions?key={KEY}"}
    annotator = make(lambda text, body: (status, location, ""))
    with pytest.raises(ConnectionError, match=f"redirects to {other.host}") as caught:
        annotator.annotate(TEXTS)
    assert KEY not in str(caught.value)
    assert other.requests == []
    assert len(annotator.server.requests) == 1


def test_proxies_of_the_environment_are_not_used(make, serve, monkeypatch):
    proxy = serve()
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy.url)
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("no_proxy", "")
    annotator = make()
    assert annotator.annotate(TEXTS[:1]) == [("fire", None)]
    assert len(annotator.server.requests) == 1
    assert proxy.requests == []


@pytest.mark.long
@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_a_certificate_that_nobody_signed_is_refused(serve, pauses, tmp_path):
    server, pem = serve(), tmp_path / "both.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    command += f" -addext subjectAltName=IP:127.0.0.1 -keyout {pem} -out {pem}.crt"
    subprocess.run(command.split(), check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{pem}.crt", pem)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = server.url.replace("http:", "https:")
    annotator = ChatAnnotator(url, "tiny", CLASSES, max_retries=0)
    with pytest.raises(ConnectionError, match=r"failed 1 times .*ConnectError"):
        annotator.annotate(TEXTS)
    assert server.requests == []


# The key, and what is missing


def test_the_key_is_in_no_file_log_warning_or_description(make, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    echo = chat(f"Bearer {KEY}", model=KEY)
    annotator = make(except_for(TEXTS[3], echo), cache=tmp_path / "kept")
    annotator.server.reply = lambda text, body: (
        (200, {}, f"no JSON, but {KEY}")
        if text == TEXTS[4]
        else except_for(TEXTS[3], echo)(text, body)
    )
    with pytest.warns(UserWarning, match="no label for 2") as caught:
        annotator.annotate(TEXTS)
    assert annotator.server.requests[0]["headers"]["Authorization"].endswith(KEY)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    seen = [path.read_text("utf-8") for path in files]
    assert any("fire" in text for text in seen)
    seen += [str(warning.message) for warning in caught]
    seen += [caplog.text, repr(annotator), json.dumps(annotator.describe())]
    seen += [repr(vars(annotator)), str(annotator.estimate_cost(TEXTS))]
    assert caplog.text
    assert [text for text in seen if KEY in text] == []


def test_a_missing_package_is_named(make, monkeypatch):
    annotator = make()
    monkeypatch.setitem(sys.modules, "httpx", None)
    monkeypatch.delitem(sys.modules, "skactive.annotators._client")
    monkeypatch.delattr("skactive.annotators._client")
    with pytest.raises(ImportError, match=r'pip install "skactive\[machine\]"'):
        annotator.annotate(TEXTS)
    assert annotator.estimate_cost(TEXTS).n_requests == 12


# What a server, or somebody who writes to the cache, might try


@pytest.mark.parametrize("status", [400, 404, 500])
def test_words_of_a_server_hold_no_codes_for_a_terminal(make, pauses, status):
    words = json.dumps({"error": {"message": "a\x1b]0;pwned\x07\x1b[2J\u202eb\x9b"}})
    annotator = make(lambda text, body: (status, {}, words), max_retries=1)
    with pytest.raises(ConnectionError, match="pwned") as caught:
        annotator.annotate(TEXTS)
    assert str(caught.value).isprintable()


def test_codes_for_a_terminal_are_in_no_warning(make):
    words = json.dumps({"error": {"message": "\x1b[2J"}})
    annotator = make(except_for(TEXTS[3], (400, {}, words)))
    with pytest.warns(UserWarning, match="unusable reply") as caught:
        annotator.annotate(TEXTS)
    assert str(caught[0].message).isprintable()


def test_a_key_that_stands_across_the_end_of_a_redirect_is_hidden(make):
    location = {"Location": f"http://{'a' * 195}{KEY}.com/"}
    annotator = make(lambda text, body: (302, location, ""))
    with pytest.raises(ConnectionError, match="redirects to") as caught:
        annotator.annotate(TEXTS)
    assert KEY[:4] not in str(caught.value)


def test_a_probability_that_is_no_float_is_none(make):
    reply = chat('{"label": "fire"}', tokens=[('{"label": "fire"}', 0.5)])
    reply["choices"][0]["logprobs"]["content"][0]["logprob"] = -(10**400)
    annotator = make(lambda text, body: reply)
    assert annotator.annotate(TEXTS[:1]) == [("fire", None)]


@pytest.mark.parametrize(
    "host", ["a..b", "xn--", "a" * 300, "\uff41.com", "a." + 64 * "b"]
)
def test_hosts_that_cannot_be(host):
    with pytest.raises(ValueError, match="'url' must be an http or https address"):
        ChatAnnotator(f"http://{host}", "tiny", CLASSES)


def test_a_host_may_have_other_letters():
    assert ChatAnnotator("http://m\u00fcnchen.de", "tiny", CLASSES).host == "münchen.de"
