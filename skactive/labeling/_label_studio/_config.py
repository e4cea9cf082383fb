"""The labeling configuration of a project: its question, read or written."""

import json
from dataclasses import dataclass
from xml.etree import ElementTree

from ..._tables._formats import PAIR
from ..._tables._label_studio import read_values, write_result
from ..._utils._labels import list_classes
from ...session import SourceAnswer

_TEXTS = ("Text", "HyperText")


@dataclass(frozen=True)
class Question:
    """A question with choices about the text of a task, or about a pair of texts.

    Attributes
    ----------
    name, to_name : str
        The control, and the object that it labels.
    keys : tuple of str
        Keys of the texts in the data of a task, one or two.
    classes : list of str
        Empty if each task has classes of its own.
    multiple : bool
        Whether a text can have several classes.
    note : str or None
        The control that holds notes.
    """

    name: str
    to_name: str
    keys: tuple
    classes: list
    multiple: bool = False
    note: str | None = None

    def read_text(self, task):
        """Return the text of a task, or the pair of texts."""
        texts = tuple(task["data"].get(key) for key in self.keys)
        for key, text in zip(self.keys, texts, strict=True):
            if not isinstance(text, str) or not text:
                raise ValueError(
                    f"task {task['id']} must have a text in its data under {key!r}, "
                    f"got {text!r}. Correct or delete the task in Label Studio."
                )
        return texts[0] if len(texts) == 1 else texts

    @property
    def items(self):
        """What a task holds, in words."""
        return "texts" if len(self.keys) == 1 else f"pairs of {' and '.join(self.keys)}"

    def read_rest(self, task):
        """Return the other cells of a task, dict of key to cell."""
        rest = {key: x for key, x in task["data"].items() if key not in self.keys}
        return {
            key: json.dumps(x) if isinstance(x, list | dict) else x
            for key, x in rest.items()
        }

    def write_result(self, label):
        """Return the `result` of a prediction; empty if there is no class."""
        names = [str(name) for name in list_classes([label])]
        return write_result(names, self.name, self.to_name)

    def read_answers(self, task, users):
        """Return the answers of all people to a task, list, and their notes, str.

        `users` is a dict of id to name.
        """
        answers, notes = [], {}
        for annotation in sorted(task.get("annotations") or (), key=_find_time):
            by = annotation.get("completed_by")
            by, result = users.get(by, f"user {by}"), annotation.get("result")
            label = read_values(result, "choices").get(self.name, [])
            if not self.multiple:
                label = label[0] if label else None
            is_skip = annotation.get("was_cancelled")
            if label is not None or is_skip:
                label = None if is_skip else label
                time, seconds = _find_time(annotation), annotation.get("lead_time")
                answers.append(SourceAnswer(label, by, time, seconds))
            notes[by] = "\n".join(read_values(result, "text").get(self.note, []))
        return answers, "\n".join(filter(None, notes.values()))


def _find_time(annotation):
    """Return when an annotation was last changed, as ISO 8601."""
    return annotation.get("updated_at") or annotation.get("created_at") or ""


def read_question(config, name=None):
    """Return the Question of a labeling configuration; `name` chooses among several."""
    try:
        root = ElementTree.fromstring(config)
    except ElementTree.ParseError as exc:
        raise ValueError(
            f"the labeling configuration must be XML, got {config[:60]!r} ({exc}). "
            "Set one in the settings of the project."
        ) from exc
    found = {tag.get("name"): tag for tag in root.iter("Choices")}
    controls = {x: tag for x, tag in found.items() if not _is_per_region(tag)} or found
    name = name or (next(iter(controls)) if len(controls) == 1 else None)
    if name not in found:
        raise ValueError(
            "'question' must be a control <Choices> of the project, got "
            f"{name!r}; it has {', '.join(map(repr, controls)) or 'none'}. Name one "
            "with question=, or add one in the settings of the project."
        )
    control = found[name]
    if _is_per_region(control):
        raise ValueError(
            f"<Choices name={name!r}> must ask about the whole text, got "
            'perRegion="true"; skactive reads no regions. Add a <Choices> without it '
            "in the settings of the project."
        )
    objects = {
        x.get("name"): x.get("value", "") for x in root.iter() if x.tag in _TEXTS
    }
    keys = {x: value[1:] for x, value in objects.items() if value.startswith("$")}
    to_names = (control.get("toName") or "").split(",")
    if not set(to_names) <= keys.keys():
        raise ValueError(
            f"<Choices name={name!r}> must label a <Text> with a key of the tasks, "
            f'such as value="$text", got {to_names}; skactive labels texts only.'
        )
    # Of two texts, the question names one: both are the item.
    shown = keys if len(keys) == 2 else to_names
    classes = [tag.get("alias") or tag.get("value") for tag in control.iter("Choice")]
    for label in classes:
        if classes.count(label) > 1:
            raise ValueError(
                f"<Choices name={name!r}> must have different choices, got {label!r} "
                "twice. Set an alias=, or another value=, in the settings of the "
                "project."
            )
    areas = [tag for tag in root.iter("TextArea") if not _is_per_region(tag)]
    return Question(
        name,
        to_names[0],
        tuple(dict.fromkeys(keys[x] for x in shown)),
        classes,
        control.get("choice") == "multiple",
        areas[0].get("name") if len(areas) == 1 else None,
    )


def _is_per_region(tag):
    """Whether a control asks about regions; the case of attributes does not matter."""
    return ("perregion", "true") in {(x.lower(), y.lower()) for x, y in tag.items()}


def write_config(classes, *, multiple=False, pair=False):
    """Return a labeling configuration for texts, or for pairs of texts."""
    names = PAIR if pair else ["text"]
    root = ElementTree.Element("View")
    for name in names:
        ElementTree.SubElement(root, "Text", name=name, value=f"${name}")
    control = ElementTree.SubElement(
        root,
        "Choices",
        name="label",
        toName=names[0],
        choice="multiple" if multiple else "single",
        showInLine="true",
    )
    for number, label in enumerate(classes, 1):
        hotkey = {"hotkey": str(number)} if number < 10 else {}
        ElementTree.SubElement(control, "Choice", value=str(label), **hotkey)
    return ElementTree.tostring(root, encoding="unicode")
