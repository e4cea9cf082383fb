"""The model card of a saved folder: a README.md that people and the hub read."""

import json
import re

from .._encoders._names import describe_estimator, find_encoders
from .._tables._card import list_software
from .._utils._format import escape_markdown, format_table

_MOST_NAMES = 100  # classes that are named
_HUB_NAME = r"[\w.-]+/[\w.-]+"


def make_card(estimator, facts, folder, load="skactive.load"):
    """Return the model card of an estimator, str.

    `facts` maps what is said of the model to texts; `folder` is what `load` gets.
    """
    encoders = find_encoders(estimator)
    lines = ["---", "library_name: skactive"]
    names = [name for name, _ in encoders if re.fullmatch(_HUB_NAME, name)]
    lines += [f"base_model: {json.dumps(names)}"] if names else []
    tags = ["active-learning", *(["text-classification"] if encoders else [])]
    lines += [f"tags: {json.dumps(tags)}", "---", ""]
    lines += [f"# {escape_markdown(folder)}", ""]
    rows = {"Estimator": describe_estimator(estimator)}
    if (classes := _list_names(getattr(estimator, "classes_", ()))) is not None:
        rows["Classes"] = classes
    if (labels := getattr(estimator, "y_labeled_", None)) is not None:
        rows["Labels"] = f"{len(labels):,}"
    rows |= facts
    if encoders:
        shown = [f"{name} (license: {x or 'see its page'})" for name, x in encoders]
        rows["Encoder"] = ", ".join(shown)
    rows |= list_software()
    cells = [map(escape_markdown, row) for row in rows.items()]
    lines.append(format_table(["", ""], cells, "markdown"))
    lines += ["", "```python", "import skactive", ""]
    lines += [f"model = {load}({json.dumps(folder)})  # runs no code of the folder"]
    lines += ['model.predict(["a text", "another text"])' if encoders else ""]
    return "\n".join([*lines, "```", ""])


def _list_names(classes):
    """Return the names of classes in a line, or None without any."""
    names = [", ".join(map(str, x)) if isinstance(x, list) else str(x) for x in classes]
    if (n_more := len(names) - _MOST_NAMES) > 0:
        names[_MOST_NAMES:] = [f"and {n_more:,} more"]
    return ", ".join(names) or None
