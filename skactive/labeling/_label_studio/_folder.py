"""The folder of a bridge: the project that it is for, and its options."""

import json
import logging
import secrets
from contextlib import suppress
from dataclasses import replace

from ..._storage._files import write_atomic

LOG = logging.getLogger("skactive.project")
_REMEMBERED = ("model", "prompt", "dimensions", "strategy")


def recall_options(settings, folder):
    """Return settings with the options of a folder where others are not named."""
    options = read_json(folder / "options.json", {"strategy": "uherding"})
    named = {name: getattr(settings, name) for name in _REMEMBERED}
    options |= {name: value for name, value in named.items() if value is not None}
    return replace(settings, **{name: options.get(name) for name in _REMEMBERED})


def keep_options(settings, folder):
    """Keep options of settings for the next time."""
    options = {name: getattr(settings, name) for name in _REMEMBERED}
    write_atomic(folder / "options.json", json.dumps(options).encode())


def claim(folder, url, about):
    """Return the key of a folder for one project, which is made if it is new."""
    path = folder / "bridge.json"
    own = {"url": url, "project": about["id"], "created_at": about["created_at"]}
    folder.mkdir(parents=True, exist_ok=True)
    before = read_json(path, None)
    claimed = before or {**own, "key": secrets.token_hex(4)}
    # A server can have several names, and moves; the time of creation stays.
    when = "created_at" if "created_at" in claimed else "url"
    if any(claimed.get(name) != own[name] for name in ("project", when)):
        shown = [
            f"project {x.get('project')} at {x.get('url')} (made at "
            f"{x.get('created_at', 'an unknown time')})"
            for x in (own, claimed)
        ]
        raise ValueError(
            f"'folder' must be a new folder or that of {shown[0]}, got "
            f"{str(folder)!r}, which is that of {shown[1]}. Name another folder, or "
            f"continue with that project: url={claimed.get('url')} project="
            f"{claimed.get('project')}."
        )
    if claimed["url"] != url:
        LOG.info(
            f"the server was {claimed['url']} and is now {url}; the folder goes on"
        )
    if before != (now := {**claimed, **own}):
        write_atomic(path, json.dumps(now).encode())
    return claimed["key"]


def read_json(path, default):
    """Return the content of a JSON file, or a default without one."""
    with suppress(FileNotFoundError):
        return json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
    return default
