"""Codebooks as people write them, and as they are written for people."""

import pytest

from skactive._tables._codebook import (
    dump_classes,
    dump_markdown,
    parse_classes,
    read_classes,
)

from ._helpers import CODEBOOKS

ENTRIES = {
    "law: civil": {
        "description": "of courts,\nold",
        "examples": ["a\tb", "two\nlines"],
    },
    "<b>": {"description": "", "examples": []},
}


@pytest.mark.parametrize(("text", "known", "expected"), CODEBOOKS)
def test_lines_of_classes(text, known, expected):
    found = [
        (name, about["description"], *about["examples"])
        for name, about in parse_classes(text, known).items()
    ]
    assert found == expected


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c.txt", "law: of courts\nsport\n"),
        ("c.md", "law\tof courts\nsport"),
        ("c.tsv", "law\tof courts\nsport\t"),
        ("c.tsv", "Name\tdescription\nlaw\tof courts\nsport\t\n"),
        ("c.csv", "name,description\nlaw,of courts\nsport,\n"),
        ("c.csv", "Description; Name\nof courts;law\n;sport\n"),
        ("c.json", '{"law": "of courts", "sport": null}'),
        ("c.txt", "\ufefflaw: of courts\r\n\r\nsport\r\n"),
    ],
)
def test_a_file_of_classes(tmp_path, name, content):
    (tmp_path / name).write_bytes(content.encode("utf-8"))
    found = {
        name: about["description"] if isinstance(about, dict) else about or ""
        for name, about in read_classes(tmp_path / name).items()
    }
    assert found == {"law": "of courts", "sport": ""}


def test_names_alone_are_separated_by_lines_or_commas(tmp_path):
    (tmp_path / "c.txt").write_text("law, sport\narts\n", encoding="utf-8")
    assert list(read_classes(tmp_path / "c.txt")) == ["law", "sport", "arts"]
    for content in ('name\nlaw\n"sport, arts"\n', "law\nsport: games\n"):
        (tmp_path / "c.csv").write_text(content, encoding="utf-8")
        names = ["law", "sport, arts" if "name" in content else "sport"]
        assert list(read_classes(tmp_path / "c.csv")) == names


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "c.json"
    path.write_text(dump_classes(ENTRIES), encoding="utf-8")
    assert read_classes(path) == ENTRIES


def test_a_page_of_markdown():
    assert dump_markdown(ENTRIES, "Codebook") == (
        "# Codebook\n\n## law: civil\n\nof courts,\nold\n\n> a\tb\n\n> two\n> lines\n\n"
        "## <b>\n"
    )
