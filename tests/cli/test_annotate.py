"""The command `annotate`: a table with the answers of a language model."""

import csv
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from skactive._tables._codebook import read_classes
from skactive.cli import main

from .._tables._helpers import write_columns
from ..annotators._helpers import KEY, FakeChat, chat, right
from ._helpers import override

TEXTS = [f"{name} {i}" for i in range(6) for name in ("fire", "flood", "storm")]


@pytest.fixture
def server():
    server = FakeChat()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def table(tmp_path, monkeypatch):
    """Write a table of 18 texts and a blank one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKACTIVE_API_KEY", KEY)
    columns = {"id": [*range(19)], "text": [*TEXTS[:5], "", *TEXTS[5:]]}
    write_columns("news.csv", columns)
    return columns


def words(server, *options):
    command = ["annotate", "news.csv", "--text", "text", "--machine", server.url]
    command += ["--machine-model", "tiny"]
    if "--classes-file" not in options:
        command += ["--classes", "fire,flood,storm"]
    return override(command, options)


def run(capsys, server, *options):
    """Return the status, what the command prints, and its errors."""
    status = main(words(server, *options))
    return status, *capsys.readouterr()


def read(path):
    with open(path, encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.long
def test_the_table_gets_labels_next_to_the_texts(server, capsys):
    before = Path("news.csv").read_bytes()
    tokens = [('{"label": "', 0.9), ("fire", 0.75), ('"}', 0.9)]
    server.reply = lambda text, body: (
        chat('{"label": "fire"}', tokens=tokens) if "fire" in text else right(text)
    )
    status, out, err = run(capsys, server)
    assert (status, out) == (0, "news.annotated.csv: 18 labels by tiny\n")
    assert f"18 requests to {server.host}, about " in err
    rows = read("news.annotated.csv")
    assert list(rows[0]) == ["id", "text", "machine_label", "machine_confidence"]
    expected = [(x["text"].split() or [""])[0] for x in rows]
    assert [row["machine_label"] for row in rows] == expected
    assert [rows[i]["machine_confidence"] for i in (0, 1, 5)] == ["0.75", "", ""]
    assert Path("news.csv").read_bytes() == before
    assert Path("news.skactive/machine.jsonl").exists()


@pytest.mark.long
def test_the_host_is_printed_before_the_first_request(server, capsys):
    seen = []

    def reply(text, body):
        seen.append(capsys.readouterr().err)
        return right(text)

    server.reply = reply
    assert main(words(server)) == 0
    left_out, requests, *_ = seen[0].splitlines()
    assert left_out == "rows without a text are left out: line 7"
    assert requests.startswith(f"18 requests to {server.host}, about ")


@pytest.mark.long
def test_the_same_command_sends_nothing_again(server, capsys):
    run(capsys, server)
    written = Path("news.annotated.csv").read_bytes()
    status, _, err = run(capsys, server)
    assert status == 0
    assert "0 requests" in err
    assert "18 answers are kept from before" in err
    assert len(server.requests) == 18
    assert Path("news.annotated.csv").read_bytes() == written
    assert not Path("news.annotated.1.csv").exists()
    # A changed prompt asks again, and the previous table is kept.
    Path("book.txt").write_text("Read twice.")
    server.reply = lambda text, body: chat('{"label": "storm"}')
    status, _, err = run(capsys, server, "--codebook", "book.txt")
    assert status == 0
    assert len(server.requests) == 36
    assert "Read twice." in server.requests[-1]["body"]["messages"][0]["content"]
    assert "is kept as news.annotated.1.csv" in err
    assert Path("news.annotated.1.csv").read_bytes() == written


@pytest.mark.long
@pytest.mark.slow
def test_a_kill_in_the_middle_repeats_nothing(server, capsys):
    hold = 7

    def reply(text, body):
        if TEXTS.index(text) >= hold:
            time.sleep(30)
        return right(text)

    server.reply = reply
    command = [sys.executable, "-m", "skactive", *words(server, "--n-jobs", "1")]
    cache = Path("news.skactive/machine.jsonl")
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    end = time.monotonic() + 120
    try:
        while len(server.requests) <= hold:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < end
            time.sleep(0.01)
        assert len(cache.read_text().splitlines()) == hold
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    assert not Path("news.annotated.csv").exists()
    server.reply = right
    status, _, err = run(capsys, server)
    assert status == 0
    assert "7 answers are kept from before" in err
    assert all(server.texts.count(text) == 1 for text in TEXTS[:hold])
    assert server.texts.count(TEXTS[hold]) == 2  # it was on its way
    assert len(read("news.annotated.csv")) == 19


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("classes.txt", "fire\tIt burns.\tfire!\nflood\nstorm\n"),
        (
            "classes.json",
            '{"fire": {"description": "It burns.", "examples": ["fire!"]}, '
            '"flood": "", "storm": null}',
        ),
    ],
)
def test_a_file_describes_the_classes(server, capsys, name, content):
    Path(name).write_text(content)
    status, _, err = run(capsys, server, "--classes-file", name)
    assert status == 0, err
    system, example, answer, _ = server.requests[0]["body"]["messages"]
    assert '- "fire": It burns.\n- "flood"\n- "storm"\n' in system["content"]
    assert "fire!" in example["content"]
    assert answer["content"] == '{"label": "fire"}'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c.txt", "law: all about courts\nlaw: civil: old\nsport: games\n"),
        ("c.tsv", "law\tall about courts\nlaw: civil\nsport\tgames\n"),
        ("c.csv", "Name,description\nlaw,all about courts\nlaw: civil,\nsport,games\n"),
        ("c.jsonl", '{"name": "law"}\n{"name": "law: civil"}\n{"name": "sport"}\n'),
    ],
)
def test_the_classes_of_a_file_are_its_names(name, content):
    Path(name).write_text(content)
    assert list(read_classes(name, ["law: civil"])) == ["law", "law: civil", "sport"]


def test_a_table_of_classes_needs_their_names():
    Path("c.csv").write_text("class,what\nlaw,courts\n")
    with pytest.raises(
        ValueError, match=r"a table with the column 'name', got .*'class'"
    ):
        read_classes("c.csv")


@pytest.mark.long
def test_several_classes_are_joined_in_a_cell(server, capsys):
    server.reply = lambda text, body: chat('{"labels": ["storm", "fire"]}')
    out = ("--out", "other.jsonl", "--machine-name", "gpt")
    status, printed, _ = run(capsys, server, "--separator", "|", *out)
    assert (status, printed) == (0, "other.jsonl: 18 labels by gpt\n")
    lines = Path("other.jsonl").read_text().splitlines()
    assert '"machine_label": "fire|storm"' in lines[0]
    assert '"machine_label": null' in lines[5]


def test_a_name_that_is_taken_gets_another_and_formulas_are_escaped(server, capsys):
    write_columns("news.csv", {"text": ["a", "b"], "machine_label": ["x", "y"]})
    server.reply = lambda text, body: chat('{"label": "=1"}')
    status, _, err = run(capsys, server, "--classes-file", write_classes("=1\n=2\n"))
    assert status == 0, err
    rows = read("news.annotated.csv")
    assert [row["machine_label"] for row in rows] == ["x", "y"]
    assert [row["skactive_machine_label"] for row in rows] == ["'=1", "'=1"]


def write_classes(content):
    Path("some.txt").write_text(content)
    return "some.txt"


@pytest.mark.long
def test_a_failure_keeps_the_answers_and_says_so(server, capsys):
    server.reply = lambda text, body: (
        right(text) if len(server.requests) <= 4 else (404, {}, f"gone {KEY}")
    )
    status, out, err = run(capsys, server, "--n-jobs", "1")
    assert (status, out) == (1, "")
    assert "status 404): gone ...." in err
    assert "The answers so far are kept: the same command goes on." in err
    assert KEY not in err
    server.reply = right
    assert run(capsys, server)[0] == 0
    assert len(server.requests) == 4 + 1 + 14
    files = [p for p in Path().rglob("*") if p.is_file() and p.name != "news.csv"]
    assert all(KEY.encode() not in path.read_bytes() for path in files)


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
def test_ctrl_c_says_that_the_command_goes_on(server, capsys):
    # A process that a shell starts in the background ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    # The first thread of the process is this one: it is interrupted while it waits.
    server.reply = lambda text, body: (
        os.kill(os.getpid(), signal.SIGINT) or right(text)
        if text == TEXTS[2]
        else right(text)
    )
    try:
        status, _, err = run(capsys, server, "--n-jobs", "1")
    finally:
        signal.signal(signal.SIGINT, before)
    assert status == 130
    assert "interrupted; the same command goes on" in err
    assert not Path("news.annotated.csv").exists()


@pytest.mark.parametrize("option", ["--max-requests", "--max-tokens"])
def test_a_limit_sends_nothing(server, capsys, option):
    status, out, err = run(capsys, server, option, "17")
    assert (status, out) == (1, "")
    assert f"'{option[2:].replace('-', '_')}' allows 17" in err
    assert server.requests == []


@pytest.mark.long
@pytest.mark.posix
def test_the_results_are_no_more_readable_than_the_table(server, capsys):
    os.chmod("news.csv", 0o600)
    assert run(capsys, server)[0] == 0
    for name in ("news.annotated.csv", "news.skactive"):
        assert stat.S_IMODE(os.stat(name).st_mode) & 0o077 == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--text", "body"], "'news.csv' has no column 'body'.* 'id', 'text'"),
        (["--out", "news.csv"], "argument --out: must be another file"),
        (["--classes-file", "missing.txt"], "must hold a class per line"),
    ],
)
def test_a_wrong_option_is_named_and_nothing_is_sent(server, capsys, options, message):
    status, out, err = run(capsys, server, *options)
    assert (status, out) == (1, "")
    assert err.splitlines()[-1].startswith("skactive: error: ")
    assert re.search(message, err)
    assert server.requests == []


def test_classes_must_be_named(server, capsys):
    command = words(server)[:-2]
    assert main(command) == 1
    assert "argument --classes: name the classes" in capsys.readouterr().err
    assert main([*words(server), "--classes-file", "x"]) == 2
    assert "not allowed with" in capsys.readouterr().err
    assert main([*command[:6], "--classes", "a,b"]) in (1, 2)
    assert "--machine-model" in capsys.readouterr().err
