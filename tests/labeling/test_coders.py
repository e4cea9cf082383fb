"""Links of several people: each is one person, and sees no answer of another before."""

import csv
import json
import shutil
import threading
import time
from collections import Counter
from concurrent.futures import wait
from itertools import cycle, permutations
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from selenium.webdriver.common.keys import Keys

from skactive.labeling._address import find_links
from skactive.labeling._calls import METHODS
from skactive.labeling._prompt import _Prompt
from skactive.labeling._server import LabelingServer

from ._helpers import TOKEN, Page
from .test_blind import FRONT, LEARNER, Moody, read  # noqa: F401

SESSION = {"classes": ["yes", "no", "maybe"], "refit": False}
SESSION |= {"overlap": 1.0, "audit_every": 2, "annotator": None}
TEXTS = [f"{'good' if i % 2 else 'bad'} film number {i}" for i in range(40)]


def read_everything(desk, ids, who="bob"):
    """Return what each call returns to a person, before and after own answers."""
    called, found = set(), []

    def ask(method, **arguments):
        called.add(method)
        if "id" in arguments:
            arguments["id"] = json.dumps(arguments["id"])
        if method != "release":
            arguments["annotator"] = who
        found.append((method, arguments, read(desk, method, **arguments)))

    def look():
        while desk.check()["computing"]:
            time.sleep(0.01)
        for method in ("state", "check", "quality", "history", "themes"):
            ask(method)
        for query, how in (("film", "words"), ("yes", "words"), ("f.*1", "regex")):
            ask("search", query=query, n_items=99, how=how)
            ask("history", query=query)
        for where in (
            *({"label": name} for name in ("yes", "no", "odd")),
            *({"only": name} for name in ("unlabeled", "note", "disputed", "doubtful")),
            *({"by": "ann"}, {"before": "odd"}, {"likely": "odd"}),
        ):
            ask("search", query="", n_items=99, where=where)
            ask("history", where=where, only_ids=True)
        for name in ("yes", "no"):
            ask("more", label=name)
        for id in (*ids, 0, 1):
            for method in ("item", "similar", "explain"):
                ask(method, id=id)
            ask("item", id=id, held_out=True)

    look()
    ask("add_class", name="odd")
    ask("next", client="tab")
    wait(desk._jobs.values())  # what is asked for meanwhile has a number as well
    look()
    ask("skip", id=ids[0], client="tab")
    ask("flag", id=ids[1])
    ask("note", id=ids[1], text="of bob")
    ask("edit_class", name="odd", description="strange")
    ask("edit_class", name="odd", new="very odd")
    ask("remove_class", name="very odd")
    ask("draw", random_only=True)
    ask("draw", random_only=False)
    rest = [id for id in range(40) if id not in desk.session.labels]
    ask("answer", id=rest[0], label="no", client="tab", seconds=1.0)
    seq = desk.state(who)["undo"]["seq"]
    ask("undo", seq=seq, client="tab")
    called.add("answer_all")
    read(
        desk,
        "answer_all",
        ids=list(map(json.dumps, rest[:2])),
        label="yes",
        client="tab",
        annotator=who,
    )
    ask("release", client="tab")
    look()
    assert called == {*METHODS}
    return found


@pytest.mark.slow
def test_no_call_shows_a_person_what_another_one_said_before(open_desk):
    found = []
    for said in ("yes", "no"):
        # Estimates need 20 labels, and are of the whole audit; there are fewer here.
        desk = open_desk(TEXTS, LEARNER, {**SESSION, "overlap": 0.5})
        session = desk.session
        first = session.ask(14, annotator="ann").ids
        audited = [id for id in first if id in session._core.state.audited]
        assert len(audited) == 7
        others = [id for id in first if id not in audited]
        labels = ["yes" if id % 2 else "no" for id in others]
        session.tell(others, labels, annotator="ann")
        session.refit()  # from here on no model learns
        while desk.check()["computing"]:  # and the list of doubts has these labels
            time.sleep(0.01)
        for id in audited:
            desk.item(id, annotator="ann")
            desk.answer(id, said, "tab of ann", "ann", seconds=1.0)
            desk.note(id, f"surely {said}", "ann")
        assert read(desk, "item", id=str(audited[0]))[1]["label"] is None
        assert desk.item(audited[0], annotator="ann")["label"] == said
        found.append(read_everything(desk, audited[:2]))
        desk.close()
        session.close()
        shutil.rmtree(session.folder)
    for before, after in zip(*found, strict=True):
        assert before == after


def test_after_an_own_answer_both_are_shown(open_desk):
    desk = open_desk(TEXTS, session=SESSION)
    id = desk.next("tab 1", "ann", 1)[0]["id"]
    desk.answer(id, "yes", "tab 1", "ann")
    assert desk.history(annotator="bob")["total"] == 0
    assert desk.history(annotator="ann")["total"] == 1
    counts = [entry["count"] for entry in desk.state("bob")["classes"]]
    assert counts == [0, 0, 0]
    desk.answer(id, "no", "tab 2", "bob")
    for who in ("ann", "bob", "eve"):
        said = [one["label"] for one in desk.item(id, annotator=who)["said"]]
        assert said == ["yes", "no"]
    desk.undo(desk.state("bob")["undo"]["seq"], "tab 2", "bob")
    assert desk.item(id, annotator="bob")["label"] is None


def test_an_answer_from_a_page_that_is_older_than_the_process_is_blind(open_desk):
    shown, options = {}, {**SESSION, "overlap": 0.5}
    for who in ("ann", "bob"):
        shown[who] = open_desk(TEXTS, session=options).next(who, who, 4)
    desk = open_desk(TEXTS, session=options)  # as after a kill
    for who, items in shown.items():
        for item in items:
            desk.answer(item["id"], "yes", who, who)
    both = {x["id"] for x in shown["ann"]} & {x["id"] for x in shown["bob"]}
    audited = both & {*desk.session._core.state.audited}
    assert audited
    assert all(len(desk.session._core.state.answers[x].blind) == 2 for x in audited)
    queue, labels = desk.session._core.queue, desk.session.labels
    (id, *_) = [x for x in range(40) if x not in labels and not queue.is_blind(x)]
    desk.answer(id, "yes", "ann", "ann")  # nobody knows what was shown
    assert not desk.session._core.state.answers[id].blind


def post(link, method, **arguments):
    body = json.dumps(arguments).encode()
    request = Request(f"{link}api/{method}", body, {"Content-Type": "application/json"})
    try:
        with urlopen(request) as response:
            return response.status, json.load(response)
    except HTTPError as error:
        return error.code, json.load(error)


@pytest.fixture
def links(open_desk):
    desk = open_desk(TEXTS, session=SESSION, coders=("ann", "bob"))
    with LabelingServer(desk, token=TOKEN) as server:
        yield server.links


def test_a_link_is_one_person(links):
    status, items = post(links["ann"], "next", client="tab")
    assert status == 200
    id = items[0]["id"]
    for name in ("bob", "Ann", "ann "):
        status, content = post(
            links["ann"], "answer", id=id, label="yes", client="x", annotator=name
        )
        assert status == 403
        assert f"'annotator' must be 'ann' at this address, got {name!r}" in str(
            content
        )
    for method in ("undo", "state", "history", "item", "skip", "note", "quality"):
        assert post(links["bob"], method, annotator="ann")[0] == 403
    for name in ("ann", "", None):
        status, state = post(
            links["ann"], "answer", id=id, label="yes", client="x", annotator=name
        )
        assert (status, state["annotator"]) == (200, "ann")
    assert state["coders"] == ["ann", "bob"]
    status, state = post(links["bob"], "state")
    assert (state["annotator"], state["undo"]) == ("bob", None)
    assert post(links["bob"], "undo", seq=2, client="x")[0] == 409


def test_the_address_of_the_server_itself_is_nobody(links):
    url = links["ann"].replace(links["ann"].split("/")[-2], TOKEN)
    assert urlopen(url).status == 200  # the same command finds the page
    status, content = post(url, "state", annotator="ann")
    assert status == 403
    assert "Use the link of a coder" in content["error"]
    other = find_links(url, ["eve"])["eve"]
    assert post(other, "state")[0] == 401


def test_links_stay_the_same_and_differ_by_name():
    url = "http://127.0.0.1:80/a-token-for-the-tests/"
    links = find_links(url, ["ann", "bob", "Zoë 💡"])
    assert links == find_links(url, ["ann", "bob", "Zoë 💡"])
    assert len({*links.values(), url}) == 4
    assert all(link.startswith("http://127.0.0.1:80/") for link in links.values())


@pytest.mark.slow
def test_800_answers_at_once_by_two_links_are_all_stored(open_desk):
    texts = [f"text {i}" for i in range(800)]
    options = {**SESSION, "overlap": 0.25, "refit": "background"}
    desk = open_desk(texts, session=options, coders=("ann", "bob"))
    wrong = []

    def work(link, start):
        for id in range(start, start + 400):
            said = {"id": str(id), "label": ("yes", "no")[id % 2], "client": link}
            status, _ = post(link, "answer", **said)
            other, _ = post(link, "answer", **said, annotator="eve")
            if (status, other) != (200, 403):
                wrong.append((status, other))

    with LabelingServer(desk, token=TOKEN) as server:
        threads = [
            threading.Thread(target=work, args=[link, 400 * i])
            for i, link in enumerate(server.links.values())
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []
    given = desk.session.answers
    assert len(given) == 800
    assert all(given[id] == {"ann": ("yes", "no")[id % 2]} for id in range(400))
    assert all(given[id] == {"bob": ("yes", "no")[id % 2]} for id in range(400, 800))


def alpha_by_hand(rows):
    """Return Krippendorff's alpha of pairs of labels, by its coincidence matrix."""
    coincidences, n = Counter(), 2 * len(rows)
    for one, other in rows:
        coincidences[one, other] += 1
        coincidences[other, one] += 1
    totals = Counter()
    for (one, _), count in coincidences.items():
        totals[one] += count
    observed = sum(x for (a, b), x in coincidences.items() if a != b) / n
    pairs = permutations(totals, 2)
    expected = sum(totals[a] * totals[b] for a, b in pairs) / (n * (n - 1))
    return 1 - observed / expected


@pytest.mark.slow
def test_two_people_in_two_windows(open_desk, window, tmp_path):
    options = {**SESSION, "refit": "background", "overlap": 0.25, "audit_every": 10}
    desk = open_desk(session=options, coders=("ann", "bob"))
    session, pages, asked = desk.session, {}, {"ann": [], "bob": []}

    def truth(text):
        number = int(text.split()[-1])
        return "1" if number % 2 else "2"

    def say(who, text):
        is_wrong = who == "bob" and int(text.split()[-1]) % 3 == 0
        return {"1": "2", "2": "1"}[truth(text)] if is_wrong else truth(text)

    def look(who):
        window.switch_to.window(pages[who][0])
        return pages[who][1]

    with LabelingServer(desk, token=TOKEN) as server:
        for who, link in server.links.items():
            if pages:
                window.switch_to.new_window("window")
            pages[who] = window.current_window_handle, Page(window, link)
            button = look(who).until(
                lambda p=pages[who][1]: p.text(".foot button:disabled")
            )
            assert button == f"Annotator: {who}"
        left = set(asked)
        for who in cycle(asked):
            if not left:
                break
            page = look(who)
            ended = lambda p=page: "No text is left" in p.text(".text")  # noqa: E731
            text = page.until(lambda p=page, e=ended: p.item or e())
            if text is True:
                left.discard(who)
                continue
            left.add(who)
            asked[who].append(text)
            time.sleep(0.05)
            page.press(say(who, text))
            page.until(lambda p=page, e=ended, t=text: p.item != t or e())
        session = desk.session
        by = {
            who: {session._core.state.pool.X.index(x) for x in asked[who]}
            for who in asked
        }
        assert all(len(by[who]) == len(asked[who]) for who in asked)
        assert by["ann"] | by["bob"] == {*session.labels} == {*range(60)}
        both = by["ann"] & by["bob"]
        assert both == {id for id, given in session.answers.items() if len(given) > 1}
        assert both == {*session._core.queue.find_shared([*both])}
        assert 10 <= len(both) <= 35
        session.export(tmp_path / "answers.csv", what="answers")
        rows = {}
        for row in csv.DictReader((tmp_path / "answers.csv").open()):
            rows.setdefault(row["id"], []).append(row["label"])
        twice = [tuple(row) for row in rows.values() if len(row) == 2]
        agreement = session.agreement()
        assert agreement.n_items == len(twice) == len(both)
        assert agreement.alpha == pytest.approx(alpha_by_hand(twice))
        disputed = [id for id in both if len({*session.answers[id].values()}) == 2]
        assert agreement.share == pytest.approx(1 - len(disputed) / len(both))

        page = look("ann")
        page.until(lambda: page.text(".disputed .badge").strip() == str(len(disputed)))
        page.all(".disputed")[0].click()
        for n in range(len(disputed)):
            page.until(lambda: len(page.all(".said button")) == 2)
            page.until(lambda: page.text(".said").count("ann: ") == 1)
            text = page.item
            if n == 0:  # the first one, taken back, then by the key of a class
                page.press(Keys.SPACE)
                page.until(lambda: len([*decided(session)]) == 1)
                page.until(lambda t=text: page.item != t)
                page.press("u")
                page.until(lambda t=text: page.item == t)
                page.until(lambda: not decided(session))
                page.until(lambda: len(page.all(".said button")) == 2)
                page.press(truth(text))
            else:
                page.press("m" if n % 2 else truth(text))
            page.until(lambda n=n: len(decided(session)) == n + 1)
            page.until(lambda t=text, n=n: page.item != t)
        page.until(lambda: not page.text(".disputed .badge"))
        assert session.agreement() == agreement
        page.open("Quality")
        said = page.until(lambda: page.text(".agreement"))
        assert said.startswith(f"Ann and bob agree on {len(both) - len(disputed)} of")
    assert {*decided(session)} == {*disputed}


def decided(session):
    answers = session._core.state.answers
    return [id for id, answer in answers.items() if answer.way == "settled"]


def test_the_prompt_says_how_much_people_agree(open_desk):
    desk, lines = open_desk(TEXTS, session=SESSION), []
    for who in ("ann", "bob"):
        for _ in range(12):
            id = desk.next(who, who, 1)[0]["id"]
            desk.answer(id, "yes" if id % 2 else "no", who, who)
    read = iter(["?", "q"]).__next__
    _Prompt(desk, "prompt", lambda _: read(), lines.append).run()
    assert "ann and bob agree on 12 of 12 texts" in "\n".join(lines)
