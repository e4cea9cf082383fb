"""What a session has written into its folder, and what an older version wrote."""

import json
from pathlib import Path

from skactive._storage._files import read_lines


def events(session):
    """Return the events after the first, which every session begins with."""
    begin, *others = read_lines(Path(session.folder, "journal.jsonl"))[0]
    assert begin["event"] == "begin"
    return others


def manifest(session):
    return json.loads(Path(session.folder, "manifest.json").read_text(encoding="utf-8"))


def as_version_1(folder):
    """Rewrite the folder of a session as skactive 0.1.0 wrote it, without checksums."""
    lines = []
    for event in read_lines(folder / "journal.jsonl")[0][1:]:
        del event["crc"]
        event["v"] = 1
        for key in {"seq", "of", "model"} & event.keys():
            event[key] = max(event[key] - 1, 0)
        lines.append(json.dumps(event, separators=(",", ":")) + "\n")
    (folder / "journal.jsonl").write_text("".join(lines))
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    del manifest["crc"]
    manifest["format_version"] = 1
    path.write_text(json.dumps(manifest, indent=1))
