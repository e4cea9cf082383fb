"""Where the page of a project is served, and was served the last time."""

import hmac
import json
from contextlib import suppress
from http.client import HTTPException
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

from .._storage._files import write_atomic
from .._utils._repeatable import start_daemon

_FIND_SECONDS = 5.0  # for a page that is served already


def recall_address(folder, port=None):
    """Return the port and the token of a project's last page, or None for new ones.

    A page that is still open goes on if both are the same. The token is for its port
    only, and for this folder only: a page never sends it to another program, and a copy
    of the project does not know it.
    """
    last = _read_address(folder / "page.json") or {}
    if port not in (None, last.get("port")) or last.get("folder") != _identify(folder):
        return port, None
    from ..serving import HttpServer

    try:
        token = HttpServer.check_token(last["token"])
        HttpServer.check_port(last["port"])
    except (OSError, ValueError, TypeError):
        return port, None
    return last["port"], token


def remember_address(folder, url):
    """Keep the port and the token of the page of a project; return whether it is so.

    A file "page.json" of somebody else is left alone.
    """
    path = folder / "page.json"
    if path.is_symlink() or (path.exists() and _read_address(path) is None):
        return False
    parts = urlsplit(url)
    about = {"port": parts.port, "token": parts.path.strip("/")}
    about["folder"] = _identify(folder)
    write_atomic(path, json.dumps(about).encode(), mode=0o600)
    return True


def _read_address(path):
    """Return what `remember_address` wrote, dict, or None."""
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    keys = {"port", "token"}, {"port", "token", "folder"}
    return about if isinstance(about, dict) and about.keys() in keys else None


def find_page(folder):
    """Return the address of the page of a project if it is served now, or None."""
    about = _read_address(folder / "page.json") or {}
    with suppress(OSError, HTTPException):
        if about.get("folder") == _identify(folder):
            url = f"http://127.0.0.1:{about['port']}/{about['token']}/"
            opener = build_opener(ProxyHandler({}))
            # Another program may have the port now, and never end its reply.
            start_daemon(opener.open, url).result(_FIND_SECONDS).close()
            return url
    return None


def find_links(url, coders):
    """Return the address of each coder, dict of name to str.

    Each has a token that follows from that of `url`, but does not tell it.
    """
    root, token = url.rstrip("/").rsplit("/", 1)
    codes = (hmac.digest(token.encode(), x.encode(), "sha256").hex() for x in coders)
    return {x: f"{root}/{code[:32]}/" for x, code in zip(coders, codes, strict=True)}


def _identify(folder):
    """Return what distinguishes a folder from its copies."""
    return [str(folder.absolute()), folder.stat().st_ino]
