"""The word list of CONTRIBUTING: plain American English in docs, docstrings, errors."""

import ast
import functools
import re
from pathlib import Path

import pytest

import skactive

PACKAGE = Path(skactive.__file__).parent
ROOT = Path(__file__).parent.parent
PAGES = {
    page.relative_to(ROOT).as_posix(): page
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if page.name != "CHANGELOG.md"
}
GALLERY = {
    page.relative_to(ROOT).as_posix(): page
    for page in sorted((ROOT / "docs" / "gallery").rglob("plot_*.py"))
}
BE = "(is|are|was|were|(may|can) be)"
ITEMS = "texts?|items?|ones?|candidates?|batch(es)?|questions?"
# What not to write: what to write.
WORDS = {
    r"dear(er|est)?": "expensive",
    r"unless told": "by default",
    r"beside": "next to, vs., in addition to",
    r"(go|goes|going|went|gone) by": "use",
    r"nonsense": "invalid",
    r"at hand": "available",
    r"of before": "previous",
    r"aims?(?! (to|at)\b)": "target",
    r"what else a model could": "posterior samples",
    r"learnt": "learned",
    r"told(?! apart)": "given, labeled, reported",
    r"asks? after": "ask for",
    r"that part\.": "a full sentence",
    r"(?-i:None is(?! returned))": "Defaults to ..., None means ...",
    # Phrases in which a pronoun or an object must be guessed.
    rf"({ITEMS})( that)? {BE}( not| still| then)? asked(?! to)": "queried, shown",
    r"got (others?|another)": "what was got",
    r"(is|are) others": "differ, have changed",
    r"by that of": "the noun",
    r"leaves? room": "out of memory, a smaller ...",
    r"at last": "finally",
    r"times as quick(ly)?": "as fast",
    r"what came out": "result",
    r"asks? the most useful": "show the most useful",
    # American spelling.
    r"(un|re)?(labell|modell|travell|cancell)(ed|ing|er)": "one l",
    r"\w*neighbour\w*": "neighbor",
    r"\w*(behaviour|colour|favour|honour|flavour)\w*": "-or",
    r"(k-)?centr(e|es|ed|ing)": "center",
    r"\w*(normal|initial|penal|token|factor|optim|vector|regular)is(?!m|t)\w+": "-ize",
    r"\w*(summar|recogn|organ|minim|maxim|general|serial|author)is(?!m|t)\w+": "-ize",
    r"grey": "gray",
}
PATTERN = re.compile(
    rf"(?<![\w.`'/])(?:{'|'.join(WORDS)})(?!\w)".replace(" ", r"\s+"),
    flags=re.IGNORECASE,
)
# A summary says what is returned or computed, or names the thing.
VERBS = ("Give", "Tell", "Say", "Take", "Let", "Hand", "Ask")


@functools.cache
def parse_library():
    """Return the syntax tree of each file of the library by its name."""
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text("utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def library_texts(tree):
    """Yield the line and text of each docstring and each other string of some words."""
    for node in ast.walk(tree):
        text = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and " " in text.strip():
            yield node.lineno, re.sub(r"(?m)^\s*(>>>|\.\.\.).*$", "", text)


def page_texts(source):
    """Yield the line and text of each line of a page, without code."""
    fenced = False
    for number, line in enumerate(source.splitlines(), 1):
        fenced ^= line.lstrip().startswith("```")
        if not fenced:
            yield number, re.sub(r"`[^`]*`", "", line)


def gallery_texts(source):
    """Yield the line and text of the docstrings, comments and strings of an example."""
    yield from library_texts(ast.parse(source))
    for number, line in enumerate(source.splitlines(), 1):
        if comment := re.search(r"(?:^|\s)# (.*)", line):
            yield number, re.sub(r"`+[^`]*`+", "", comment[1])


def find_words(texts):
    """Return the line and the word wherever a word is on the list."""
    return [
        (line + text[: hit.start()].count("\n"), hit.group())
        for line, text in texts
        for hit in PATTERN.finditer(text)
    ]


def test_the_library_uses_plain_words():
    hits = [
        (name, *hit)
        for name, tree in parse_library().items()
        for hit in find_words(library_texts(tree))
    ]
    assert hits == []


def test_the_pages_use_plain_words():
    hits = [
        (name, *hit)
        for name, page in PAGES.items()
        for hit in find_words(page_texts(page.read_text(encoding="utf-8")))
    ]
    assert hits == []


def test_the_gallery_uses_plain_words():
    hits = [
        (name, *hit)
        for name, page in GALLERY.items()
        for hit in find_words(gallery_texts(page.read_text(encoding="utf-8")))
    ]
    assert GALLERY
    assert hits == []


def test_words_of_an_example_are_found():
    source = '"""Grey points."""\n\n# Labelled `grey` ones.\nx = 1  # dear\n'
    words = [word for _, word in find_words(gallery_texts(source))]
    assert words == ["Grey", "Labelled", "dear"]


def test_a_summary_begins_with_what_is_returned():
    hits = []
    for name, tree in parse_library().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                summary = ast.get_docstring(node) or ""
                if summary.startswith(tuple(f"{verb} " for verb in VERBS)):
                    hits.append((name, summary.splitlines()[0]))
    assert hits == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The dear part, beside it.", ["dear", "beside"]),
        (
            "Unlabelled neighbours, normalised.",
            ["Unlabelled", "neighbours", "normalised"],
        ),
        ("The optimizer minimizes; `labelled` is a name", []),
        ("an optimism of the minimum, besides", []),
    ],
)
def test_a_word_of_the_list_is_found(text, found):
    assert [word for _, word in find_words(page_texts(text))] == found
