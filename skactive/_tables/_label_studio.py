"""The `result` of an annotation or a prediction of Label Studio, read and written."""

PART = " of a part of the text"


def write_result(choices, name="label", to_name="text"):
    """Return the `result` of Label Studio for names of classes; empty without any."""
    about = {"from_name": name, "to_name": to_name, "type": "choices"}
    return [{**about, "value": {"choices": choices}}] if choices else []


def read_values(result, key):
    """Return the values in a `result` of Label Studio, dict of control to list.

    Values of a region of the text are left out. The value of nested choices is the last
    name of the path to it.
    """
    found = {}
    for region in result or ():
        value = region.get("value")
        if isinstance(value, dict) and key in value and "start" not in value:
            values = value[key] if isinstance(value[key], list) else [value[key]]
            last = [x[-1] if isinstance(x, list) and x else x for x in values]
            found.setdefault(region.get("from_name"), []).extend(last)
    return found


def read_questions(result):
    """Return the answers in a `result` of Label Studio, dict of control to list.

    What is no class and no number, or is about a region, is None; the name of a region
    has `PART` at its end.
    """
    found = {
        f"{region.get('from_name')}{PART if 'start' in region['value'] else ''}": None
        for region in result
    }
    for key in ("choices", "taxonomy", "rating", "number"):
        found |= read_values(result, key)
    return found
