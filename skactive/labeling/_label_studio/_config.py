"""The labeling configuration of a project: its question, read or written."""

from dataclasses import dataclass
from xml.etree import ElementTree

from ...session._format_export import FileAnswer
from ...session._import_export import PAIR
from ...session._mirror import Mirrored

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

    def write_result(self, label):
        """Return the `result` of a prediction; empty if there is no class."""
        if label is None or label == []:
            return []
        choices = list(label) if isinstance(label, list | tuple) else [label]
        region = {
            "from_name": self.name,
            "to_name": self.to_name,
            "type": "choices",
            "value": {"choices": [str(choice) for choice in choices]},
        }
        return [region]

    def read_answers(self, task, users):
        """Return the answers of all people to a task, as Mirrored.

        Of several annotations by one person, the latest counts, but labels before
        skips. `users` is a dict of id to name.
        """
        latest, notes = {}, {}
        annotations = task.get("annotations") or ()
        for annotation in sorted(annotations, key=_updated):
            by = annotation.get("completed_by")
            by = users.get(by, f"user {by}")
            chosen = _read_values(annotation, self.name, "choices")
            label, is_skip = chosen, annotation.get("was_cancelled")
            if not self.multiple:
                label = chosen[0] if chosen else None
            if label is not None or is_skip:
                time, seconds = _updated(annotation), annotation.get("lead_time")
                answer = FileAnswer(None if is_skip else label, by, time, seconds)
                if not is_skip or latest.get(by, answer).label is None:
                    latest[by] = answer
            notes[by] = "\n".join(_read_values(annotation, self.note, "text"))
        note = "\n".join(filter(None, notes.values()))
        return Mirrored(tuple(sorted(latest.values(), key=lambda a: a.time)), note)


def _read_values(annotation, name, key):
    """Return the values of a control in an annotation, list of str."""
    found = []
    for region in annotation.get("result") or ():
        if region.get("from_name") == name:
            values = region.get("value", {}).get(key, [])
            found += [values] if isinstance(values, str) else values
    return found


def _updated(annotation):
    return str(annotation.get("updated_at") or annotation.get("created_at") or "")


def read_question(config, name=None):
    """Return the Question of a labeling configuration; `name` chooses among several."""
    try:
        root = ElementTree.fromstring(config)
    except ElementTree.ParseError as exc:
        raise ValueError(
            f"the labeling configuration must be XML, got {config[:60]!r} ({exc}). "
            "Set one in the settings of the project."
        ) from exc
    controls = {tag.get("name"): tag for tag in root.iter("Choices")}
    objects = {tag.get("name"): tag for kind in _TEXTS for tag in root.iter(kind)}
    name = name or (next(iter(controls)) if len(controls) == 1 else None)
    if name not in controls:
        raise ValueError(
            "'question' must be a control <Choices> of the project, got "
            f"{name!r}; it has {', '.join(map(repr, controls)) or 'none'}. Name one "
            "with --question, or add one in the settings of the project."
        )
    control = controls[name]
    to_names = (control.get("toName") or "").split(",")
    if not set(to_names) <= objects.keys():
        raise ValueError(
            f"<Choices name={name!r}> must label a <Text>, got {to_names}; skactive "
            "labels texts only."
        )
    # Of two texts, the question names one: both are the item.
    shown = objects if len(objects) == 2 else to_names
    keys = tuple(objects[x].get("value", "").removeprefix("$") for x in shown)
    classes = [tag.get("alias") or tag.get("value") for tag in control.iter("Choice")]
    notes = [tag.get("name") for tag in root.iter("TextArea")]
    return Question(
        name,
        to_names[0],
        keys,
        classes,
        control.get("choice") == "multiple",
        notes[0] if len(notes) == 1 else None,
    )


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
