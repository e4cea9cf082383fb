"""Answers are paid for once: files that survive kills and serve several processes."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from skactive._storage import _files
from skactive._storage._files import LockedError
from skactive._utils._repeatable import stopped_by
from skactive.annotators import _cache
from skactive.annotators._cache import AnswerCache

from ._helpers import KEY, chat, right

TEXTS = [f"{name} number {i}" for i in range(10) for name in ("fire", "flood", "storm")]
SCRIPT = """
import sys
from skactive.annotators import ChatAnnotator, _cache
url, cache, *texts = sys.argv[1:]
chat = ChatAnnotator(
    url, "tiny", ["fire", "flood", "storm"], cache=cache, n_jobs=3, verbose=0
)
print([label for label, _ in chat.annotate(texts)])
"""


def start(server, cache, texts=TEXTS):
    """Start a process that annotates texts."""
    command = [sys.executable, "-c", SCRIPT, server.url, str(cache), *texts]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, **pipes)


def read_keys(path):
    """Return the keys of the whole lines of a file."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [json.loads(line)["key"] for line in lines]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", ["folder", "answers.jsonl", "deep/er"])
def test_another_object_sends_nothing_again(make, tmp_path, name):
    first = make(cache=tmp_path / name)
    answers = first.annotate(TEXTS)
    assert len(first.server.requests) == 30
    second = make(server=first.server, cache=str(tmp_path / name), n_jobs=1, timeout=9)
    assert second.annotate(TEXTS[::-1]) == answers[::-1]
    assert second.estimate_cost(TEXTS).n_cached == 30
    assert len(first.server.requests) == 30
    (path,) = tmp_path.rglob("*.jsonl")
    assert len(set(read_keys(path))) == 30


def test_the_file_has_answers_and_no_texts(make, tmp_path):
    annotator = make(lambda text, body: chat('{"label": "fire"}'), cache=tmp_path)
    secret = "the password of Ada is 1815"
    annotator.annotate([secret])
    content = (tmp_path / "answers.jsonl").read_text("utf-8")
    record = json.loads(content)
    del record["crc"]
    assert len(record.pop("key")) == 64
    assert record == {
        "label": "fire",
        "confidence": None,
        "model": "tiny",
        "sent": ["temperature", "response_format", "logprobs"],
        "why": None,
    }
    everything = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    for word in (b"Ada", b"1815", b"127.0.0.1", KEY.encode()):
        assert word not in everything


@pytest.mark.long
def test_what_decides_an_answer_is_a_part_of_its_key(make, tmp_path, monkeypatch):
    first = make(cache=tmp_path)
    server, classes = first.server, ["fire", "flood", "storm"]
    first.annotate(TEXTS[:1])
    others = [
        {"codebook": "Another."},
        {"examples": [("wet", "flood")]},
        {"classes": [*classes, "other"]},
        {"classes": dict.fromkeys(classes, "A word.")},
        {"classes": classes[::-1]},
    ]
    for n, params in enumerate(others, 2):
        made = make(server=server, cache=tmp_path, **params)
        assert made.estimate_cost(TEXTS[:1]).n_requests == 1
        made.annotate(TEXTS[:1])
        assert len(server.requests) == n
    # Neither the key of the server nor how it is asked.
    monkeypatch.setenv("SKACTIVE_API_KEY", "another")
    same = make(server=server, cache=tmp_path, name="other", timeout=5, n_jobs=9)
    assert same.annotate(TEXTS[:1]) == [("fire", None)]
    assert len(server.requests) == 1 + len(others)
    # Another server is another model.
    assert make(cache=tmp_path).estimate_cost(TEXTS[:1]).n_cached == 0


@pytest.mark.long
@pytest.mark.parametrize("torn", [b'{"key":"ab', b'{"key"', b"{", b"\x00\x00"])
def test_a_torn_last_line_is_no_answer_and_others_follow_it(make, tmp_path, torn):
    path = tmp_path / "kept.jsonl"
    first = make(cache=path)
    first.annotate(TEXTS[:4])
    with open(path, "ab") as stream:
        stream.write(torn)
    again = make(server=first.server, cache=path)
    assert again.estimate_cost(TEXTS).n_cached == 4
    again.annotate(TEXTS)
    assert len(read_keys(path)) == 30
    assert torn not in path.read_bytes().split(b"\n")
    assert len(first.server.requests) == 30


@pytest.mark.long
def test_a_damaged_line_is_no_answer(make, tmp_path):
    path = tmp_path / "kept.jsonl"
    first = make(cache=path)
    first.annotate(TEXTS)
    lines = path.read_bytes().splitlines(keepends=True)
    place = next(i for i, line in enumerate(lines) if b'"fire"' in line)
    lines[place] = lines[place].replace(b'"fire"', b'"firm"')
    others = [b"[]\n", b'{"key": 5}\n', b"\n", b"nonsense\n", b'{"key":[],"label":1}\n']
    path.write_bytes(b"".join(others + lines))
    again = make(server=first.server, cache=path)
    assert again.estimate_cost(TEXTS).n_requests == 1
    assert [label for label, _ in again.annotate(TEXTS)] == [
        x.split()[0] for x in TEXTS
    ]
    assert len(first.server.requests) == 31


@pytest.mark.long
def test_without_a_path_the_object_keeps_the_answers(make):
    annotator = make()
    answers = annotator.annotate(TEXTS)
    assert annotator.annotate(TEXTS) == answers
    assert len(annotator.server.requests) == 30


@pytest.mark.long
def test_an_answer_is_on_the_disk_before_the_next_request(make, tmp_path):
    annotator = make(cache=tmp_path, n_jobs=1)
    n_kept = []

    def reply(text, body):
        n_kept.append(len(read_keys(tmp_path / "answers.jsonl")))
        return right(text)

    annotator.server.reply = reply
    annotator.annotate(TEXTS)
    assert n_kept == list(range(30))


@pytest.mark.long
@pytest.mark.slow
def test_a_killed_process_repeats_no_request(serve, make, tmp_path):
    path = tmp_path / "answers.jsonl"
    server = serve()
    hold = 12  # these texts are never answered

    def reply(text, body):
        if text in TEXTS[hold : hold + 3]:
            time.sleep(30)
        return right(text)

    server.reply = reply
    process = start(server, path)
    try:
        end = time.monotonic() + 120
        while len(read_keys(path)) < hold or len(server.requests) < hold + 3:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < end
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    answered, server.reply = TEXTS[:hold], lambda text, body: right(text)
    assert sorted(server.texts) == sorted(TEXTS[: hold + 3])
    again = make(server=server, cache=path)
    assert [label for label, _ in again.annotate(TEXTS)] == [
        x.split()[0] for x in TEXTS
    ]
    # What was answered was sent once, and what was on its way is sent again.
    assert [server.texts.count(text) for text in answered] == [1] * hold
    assert sorted(server.texts[hold + 3 :]) == sorted(TEXTS[hold:])
    assert len(make(server=server, cache=path).annotate(TEXTS)) == 30
    assert len(server.texts) == hold + 3 + len(TEXTS) - hold


@pytest.mark.long
@pytest.mark.slow
def test_two_processes_share_a_file(serve, make, tmp_path):
    server = serve()
    path = tmp_path / "answers.jsonl"
    halves = TEXTS[:20], TEXTS[10:]  # a third of the texts in both
    processes = [start(server, path, half) for half in halves]
    for process, half in zip(processes, halves, strict=True):
        out, err = process.communicate(timeout=120)
        assert out.strip() == str([text.split()[0] for text in half]), err
    assert len(set(read_keys(path))) == 30
    n = len(server.requests)
    assert n == 30
    again = make(server=server, cache=path)
    assert [label for label, _ in again.annotate(TEXTS)] == [
        x.split()[0] for x in TEXTS
    ]
    assert len(server.requests) == n


@pytest.mark.slow
def test_many_writers_lose_no_line(tmp_path):
    code = (
        "import pathlib, sys, time\n"
        "from skactive.annotators._cache import AnswerCache\n"
        "cache = AnswerCache(sys.argv[1])\n"
        "pathlib.Path(sys.argv[1] + sys.argv[2]).touch()\n"
        "while not pathlib.Path(sys.argv[1] + 'go').exists():\n"
        "    time.sleep(0.001)\n"
        "for i in range(40):\n"
        "    record = {'label': i, 'confidence': None}\n"
        "    cache.add(f'{sys.argv[2]}-{i}', record)\n"
    )
    path = tmp_path / "answers.jsonl"
    commands = [[sys.executable, "-c", code, str(path), str(n)] for n in range(3)]
    processes = [subprocess.Popen(command) for command in commands]
    end = time.monotonic() + 120
    while not all(Path(f"{path}{n}").exists() for n in range(3)):
        assert time.monotonic() < end
        time.sleep(0.01)
    Path(f"{path}go").touch()  # now all write at a time
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0]
    expected = {f"{n}-{i}": i for n in range(3) for i in range(40)}
    answers = AnswerCache(path).read()
    assert {key: answer["label"] for key, answer in answers.items()} == expected
    assert len(read_keys(path)) == 120


def test_a_home_folder_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    cache = AnswerCache("~/kept")
    cache.add("a", {"label": 1, "confidence": None})
    assert cache.path == Path(tmp_path, "kept", "answers.jsonl")
    assert cache.path.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"label": "EVIL"},
        {"label": {"a": 1}},
        {"label": ["fire"]},
        {"label": 1},
        {"confidence": 7.0},
        {"confidence": "high"},
        {"confidence": float("nan")},
        {"why": ["a"]},
        {"sent": 5},
        {"key": ["a"]},
        {"key": None},
    ],
    ids=str,
)
def test_a_line_that_this_program_could_not_have_written_is_no_answer(
    make, tmp_path, change
):
    first = make(cache=tmp_path)
    first.annotate(TEXTS[:1])
    record = json.loads((tmp_path / "answers.jsonl").read_text("utf-8"))
    del record["crc"]
    (tmp_path / "answers.jsonl").write_text(json.dumps(record | change) + "\n", "utf-8")
    second = make(server=first.server, cache=tmp_path)
    assert second.annotate(TEXTS[:1]) == [("fire", None)]
    assert len(first.server.requests) == 2


def test_a_line_of_several_classes(make, tmp_path):
    reply = '{"labels": ["fire", "flood"]}'
    params = {"multi_label": True, "cache": tmp_path}
    first = make(lambda text, body: chat(reply), **params)
    assert first.annotate(TEXTS[:1]) == [(["fire", "flood"], None)]
    second = make(server=first.server, **params)
    assert second.annotate(TEXTS[:1]) == [(["fire", "flood"], None)]
    assert len(first.server.requests) == 1


@pytest.mark.filterwarnings("ignore:.*is in use by")
def test_who_asks_the_same_questions_waits_for_the_answers(make, tmp_path):
    first = make(lambda text, body: time.sleep(0.05) or right(text), cache=tmp_path)
    others = [make(server=first.server, cache=tmp_path) for _ in range(3)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda one: one.annotate(TEXTS), [first, *others]))
    assert answers == [answers[0]] * 4
    assert sorted(first.server.texts) == sorted(TEXTS)


def test_other_questions_need_not_wait(make, tmp_path):
    annotator = make(cache=tmp_path)
    with AnswerCache(tmp_path).hold(".another"):
        assert annotator.annotate(TEXTS[:1]) == [("fire", None)]


def test_who_waits_says_for_whom_and_can_be_stopped(make, tmp_path, monkeypatch):
    annotator, stop, said = make(cache=tmp_path), threading.Event(), []
    held = AnswerCache(tmp_path).hold(f".{annotator.describe()['digest'][:16]}")

    def say(message):
        said.append(message)
        stop.set()

    monkeypatch.setattr(_cache, "warn_caller", say)
    refused = pytest.raises(LockedError, match="is open for writing")
    with held, stopped_by(stop), refused:
        annotator.annotate(TEXTS)
    assert len(said) == 1
    assert f"in use by process {os.getpid()} on" in said[0]
    assert annotator.server.requests == []


def test_a_full_disk_is_named_with_the_file(make, tmp_path, monkeypatch):
    annotator = make(cache=tmp_path)
    monkeypatch.setattr(_files, "_write", lambda handle, line: os.write(handle, b"{"))
    with pytest.raises(OSError, match=r"taken back: '.*answers.jsonl'") as caught:
        annotator.annotate(TEXTS)
    assert caught.value.filename == str(tmp_path / "answers.jsonl")
