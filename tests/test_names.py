"""One word for one thing: the parameters, attributes and options of the public API."""

import ast
import inspect
import re
from collections import Counter
from pathlib import Path

import skactive
from skactive import learner, posterior

PACKAGE = Path(skactive.__file__).parent
GLOSSARY = Path(__file__).parent.parent / "docs" / "glossary.md"

# The name of each concept, and what it replaces.
SYNONYMS = {
    "annotator": {"by", "labeler", "rater"},
    "batch_size": {"size", "batchsize"},
    "confidence_level": {"confidence", "level"},
    "criterion": {"by"},
    "folder": {"path", "checkpoint", "directory", "dir", "out"},
    "groupby": {"by", "group_by"},
    "id": {"key"},
    "lr": {"learning_rate"},
    "measure": {"disagreement"},
    "multi_label": {"multilabel", "multilabel_", "multiple", "several"},
    "n_items": {"n"},
    "n_labels": {"n", "goal"},
    "n_neighbors": {"k"},
    "n_queries": {"n", "n_instances"},
    "objective": {"goal"},
    "queried": {"asked", "picks"},
    "sample_size": {"size", "max_unlabeled", "n_subsample"},
    "scoring": {"metric", "scorer"},
}
FORBIDDEN = set().union(*SYNONYMS.values())
# Where a forbidden word is right: it names another concept there.
EXCEPTIONS = {
    ("LabelingSession.export", "path"): "a single file",
    ("LabelingSession.import_labels", "path"): "a single file",
    ("CoreSet", "metric"): "a distance",
    ("PoolView.labeled_distances", "metric"): "a distance",
    ("ProbCover", "metric"): "a distance",
    ("Run.from_json", "path"): "a single file",
    ("Run.to_json", "path"): "a single file",
    ("TunedOneVsRestClassifier", "multilabel_"): "a property of scikit-learn's class",
    ("load_table", "path"): "a single file",
    ("open_pool", "path"): "a table, in one file or several",
}
OPTION_EXCEPTIONS = {"--out": "the file that a command writes"}
OPTION_SYNONYMS = {
    "--batch": "--batch-size",
    "--pool": "--pool-size",
    "--session": "--folder",
}

# Words that do not say what a variable holds, and the number of assignments to such
# names. It may only fall.
VAGUE = {"about", "found", "given", "kept", "known", "place", "rest"}
MOST_VAGUE = 129


def _public_modules():
    folders = [
        getattr(skactive, path.parent.name)
        for path in sorted(PACKAGE.glob("[!_]*/__init__.py"))
    ]
    return [skactive, learner, posterior, *folders]


def _unwrap(member):
    """Return the function of a class method or `available_if` method."""
    for attribute in ("__func__", "func", "fn"):
        member = getattr(member, attribute, member)
    return member


def _find_names(value, name):
    """Yield the owner and the name of each parameter and property of an exported name.

    The parameters are those of a function, or of a class and its methods.
    """
    functions = {name: value}
    if inspect.isclass(value):
        for key in dir(value):
            member = _unwrap(inspect.getattr_static(value, key))
            if key.startswith("_"):
                continue
            if inspect.isfunction(member):
                functions[f"{name}.{key}"] = member
            else:
                yield name, key
    for owner, function in functions.items():
        own = getattr(function, "__module__", "").startswith("skactive")
        if own and not (inspect.isclass(function) and issubclass(function, Exception)):
            for parameter in inspect.signature(function).parameters:
                yield owner, parameter


def find_public_names():
    """Return the set of (owner, name) of all parameters and properties."""
    return {
        found
        for module in _public_modules()
        for name in module.__all__
        if callable(getattr(module, name))
        for found in _find_names(getattr(module, name), name)
        if found[1] not in ("self", "cls")
    }


def find_options():
    """Return the options of the command line."""
    table = (PACKAGE / "cli" / "commands.toml").read_text(encoding="utf-8")
    return set(re.findall('^"(--[a-z-]+)"', table, re.MULTILINE))


def find_synonyms(names):
    return {
        found for found in names if found[1] in FORBIDDEN and found not in EXCEPTIONS
    }


def test_no_public_name_is_a_synonym():
    found = find_synonyms(find_public_names())
    assert found == set()


def test_no_option_is_a_synonym():
    synonyms = {f"--{word.replace('_', '-')}" for word in FORBIDDEN}
    found = find_options() & (synonyms | set(OPTION_SYNONYMS))
    assert found - set(OPTION_EXCEPTIONS) == set()


def test_the_exceptions_exist():
    assert set(EXCEPTIONS) <= find_public_names()
    assert set(OPTION_EXCEPTIONS) <= find_options()


def test_a_synonym_would_be_found():
    class Rule:
        def __init__(self, n_labels, metric):
            pass

        def check(self, by):
            pass

        @property
        def path(self):
            pass

    Rule.__init__.__module__ = Rule.check.__module__ = Rule.__module__ = "skactive"
    found = {("Rule", "metric"), ("Rule.check", "by"), ("Rule", "path")}
    assert find_synonyms(_find_names(Rule, "Rule")) == found


def test_the_glossary_has_the_names_and_no_synonym():
    text = GLOSSARY.read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))
    assert set(SYNONYMS) - listed == set()
    assert listed & FORBIDDEN == set()


def count_vague(source):
    """Count the assignments to names in `VAGUE`."""
    return Counter(
        node.id
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Store)
        and node.id in VAGUE
    )


def test_variables_say_what_they_hold():
    counts = {
        path.relative_to(PACKAGE).as_posix(): count_vague(path.read_text("utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }
    used = {path: dict(count) for path, count in counts.items() if count}
    n = sum(count.total() for count in counts.values())
    assert n <= MOST_VAGUE, f"a name for what the variable holds is missing: {used}"


def test_a_vague_name_would_be_found():
    source = "found, x = 1, 2\nfor rest in found:\n    known = kept.given = rest\n"
    assert count_vague(source) == {"found": 1, "rest": 1, "known": 1}
