"""What the pages of the site promise: their commands parse, and they are short.

The build of the site runs their Python and checks their links.
"""

import ast
import pkgutil
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from skactive.cli._main import make_parser

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {
    page.relative_to(ROOT).as_posix(): page
    for folder in ("start", "guides", "concepts", "about", "gallery", "results")
    for page in sorted((DOCS / folder).rglob("*"))
    if page.suffix in (".md", ".py")
} | {
    name: ROOT / name
    for name in ("docs/index.md", "docs/glossary.md", "README.md", "CONTRIBUTING.md")
}
ROLE = re.compile(r":(?:func|class|meth|attr|mod)[}:]`~?(skactive[\w.]*)")
FENCE = re.compile(r"^(`{3,}|:{3,})\{?([\w-]*)\}?.*?\n(.*?)^\1`*:*\s*$", re.M | re.S)
MOST_WORDS = 1500


def expand(page):
    """Return the text of a page with the files that it includes."""
    text = page.read_text("utf-8")
    return re.sub(
        r"```\{include\} (\S+)\n```",
        lambda match: (page.parent / match[1]).read_text("utf-8"),
        text,
    )


def count_words(page):
    """Return the number of words of a page, without its code."""
    text = expand(page)
    if page.suffix == ".py":
        comments = re.findall(r"^# (.*)", text, flags=re.M)
        text = "\n".join([ast.get_docstring(ast.parse(text)) or "", *comments])
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return len(re.findall(r"\w[\w'.-]*", text))


def read_commands(page):
    """Return the lines of the shell blocks of a page, continued lines joined."""
    blocks = [
        match[3] if match[2] == "sh" else match[0].splitlines()[0].split("}", 1)[1]
        for match in FENCE.finditer(expand(page))
        if match[2] in ("sh", "command-output")
    ]
    return [
        line.strip()
        for block in blocks
        for line in block.replace("\\\n", " ").splitlines()
        if line.strip() and not line.startswith("#")
    ]


def split_command(line):
    """Return the parts of a line that `&&`, pipes and redirections separate."""
    words = shlex.split(line, comments=True)
    parts = [[]]
    for word in words:
        if word in ("&&", "|", ";", ">", "&"):
            parts.append([])
        else:
            parts[-1].append(word)
    return [part for part in parts if part]


COMMANDS = [
    (name, part)
    for name, page in PAGES.items()
    for line in read_commands(page)
    for part in split_command(line)
]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_short(name):
    assert count_words(PAGES[name]) <= MOST_WORDS


def test_the_commands_of_the_pages_are_commands_of_skactive():
    checked = 0
    for name, (program, *arguments) in COMMANDS:
        if Path(program).name != "skactive" or "--help" in arguments:
            continue
        try:
            make_parser().parse_args(arguments)
        except SystemExit:
            pytest.fail(f"{name}: skactive {shlex.join(arguments)}")
        checked += 1
    assert checked


def test_the_pages_install_extras_that_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {
        extra
        for _, words in COMMANDS
        for word in words
        for found in re.findall(r"(?:\.|skactive)\[([\w,-]+)\]", word)
        for extra in found.split(",")
    }
    assert extras
    assert extras <= set(project["optional-dependencies"])


def test_words_and_commands_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "Two words.\n```sh\n.venv/bin/skactive demo \\\n  --folder x\n```\n"
    )
    assert count_words(page) == 2
    example = tmp_path / "plot_example.py"
    example.write_text('"""Two words."""\nx = "no word"\n# %%\n# Three more words.\n')
    assert count_words(example) == 5
    assert [split_command(line) for line in read_commands(page)] == [
        [[".venv/bin/skactive", "demo", "--folder", "x"]]
    ]


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_refers_to_exists(name):
    missing = []
    for found in ROLE.findall(PAGES[name].read_text("utf-8")):
        try:
            pkgutil.resolve_name(found)
        except (AttributeError, ModuleNotFoundError):
            missing.append(found)
    assert missing == []


def test_references_are_found():
    page = "{py:func}`skactive.save`, {py:class}`~skactive.a.B`, :func:`skactive.c`"
    assert ROLE.findall(page) == ["skactive.save", "skactive.a.B", "skactive.c"]
