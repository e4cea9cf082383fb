"""What a session has written into its folder."""

import json
from pathlib import Path


def events(session):
    lines = Path(session.path, "journal.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in lines.splitlines()]


def manifest(session):
    return json.loads(Path(session.path, "manifest.json").read_text(encoding="utf-8"))
