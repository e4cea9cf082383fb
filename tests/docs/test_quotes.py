"""The figures in the text of pages are those of the JSON files that they quote."""

import re

import pytest

from ._helpers import (
    FIGURE,
    RESULTS,
    ROOT,
    Record,
    find_uncovered,
    read_prose,
    read_quotes,
)

RECORDS = sorted(path.stem for path in RESULTS.glob("*.json"))
LINK = re.compile(rf"\]\((?:[\w./-]*results/)?(?:{'|'.join(RECORDS)})\.md[)#]")
OTHERS = [
    page.relative_to(ROOT).as_posix()
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if page.stem not in RECORDS or page.parent != RESULTS
]
OTHERS += ["skactive/semi_supervised/_recipes.py"]  # docstrings


def read_results(name):
    """Return the sentences of a page of results, without titles and typed tables."""
    text = (RESULTS / f"{name}.md").read_text("utf-8")
    return read_prose(re.sub(r"^(\||#|!\[|:::).*$", "", text, flags=re.M))


def read_quoting(text):
    """Return the lines of another page that link to a page with records."""
    return read_prose("\n".join(x for x in text.splitlines() if LINK.search(x)))


@pytest.mark.parametrize("name", RECORDS)
def test_every_figure_of_a_page_is_that_of_its_record(name):
    quotes = read_quotes(name)[f"docs/results/{name}.md"]
    loose, missing = find_uncovered(read_results(name), quotes)
    assert (loose, missing) == ([], [])


@pytest.mark.parametrize("page", OTHERS)
def test_every_figure_beside_a_link_to_a_record_is_that_of_the_record(page):
    text = (ROOT / page).read_text("utf-8")
    quotes = read_quotes("pages").get(page, [])
    loose, _ = find_uncovered(read_quoting(text), quotes)
    _, missing = find_uncovered(read_prose(text), quotes)
    assert (loose, missing) == ([], [])


def test_fragments_are_of_pages_that_exist():
    assert read_quotes("pages").keys() <= set(OTHERS)


@pytest.mark.parametrize("name", RECORDS)
def test_a_figure_that_is_altered_is_found(name):
    lines = read_results(name)
    quotes = read_quotes(name)[f"docs/results/{name}.md"]
    altered = 0
    for i, line in enumerate(lines):
        for figure in FIGURE.finditer(
            re.sub(r"`[^`]*`", lambda m: "`" * len(m[0]), line)
        ):
            last = figure.end() - 1
            other = line[:last] + str((int(line[last]) + 1) % 10) + line[last + 1 :]
            loose, missing = find_uncovered(
                [*lines[:i], other, *lines[i + 1 :]], quotes
            )
            assert loose or missing, other
            altered += 1
    assert altered


def test_a_fragment_is_computed_from_the_record():
    record = Record("hart").names()
    assert eval("""f'{cell("summary", "3", 0)} hold'""", record) == "3 hold"
    assert record["num"]("claims", "unfreezing makes no", "here", 1) == 1.75


def test_a_figure_that_no_fragment_covers_is_found():
    lines = ["It gains 1.5 points with 100 labels.", "`top_2` of all-MiniLM-L6-v2"]
    assert find_uncovered(lines, ["gains 1.5 points", "loses 2"]) == (
        ["It gains 1.5 points with 100 labels."],
        ["loses 2"],
    )
    assert find_uncovered(lines, ["1.5 points with 100"]) == ([], [])
    assert find_uncovered(["gains 11.5 points"], ["1.5 points"])[1] == ["1.5 points"]
