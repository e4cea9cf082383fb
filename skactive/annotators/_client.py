"""Requests to a server with the chat API of OpenAI: limits, retries, clear errors."""

import json
import os
import random
import threading
from urllib.parse import urlsplit

try:
    import httpx
except ImportError as error:
    raise ImportError(
        'ChatAnnotator needs httpx: pip install "skactive[machine]"'
    ) from error

# isort: split
from .._utils._exchange import Exchanges, read_retry_after
from .._utils._format import visible

# What a request asks for, from the most to the least that a server may understand.
MODES = (
    ("temperature", "response_format", "logprobs"),
    ("temperature", "response_format"),
    ("temperature",),
    (),
)
_REJECTED = (400, 413, 422)  # the text or an option
_RETRIED = (408, 409, 425, 429)  # and 500 or more
_MAX_BYTES = 2**20  # of a reply
_MAX_WAIT = 60.0  # seconds
_MAX_UNUSABLE = 5  # replies in a row
_MAX_DETAIL = 200  # characters of what a server says


class UnusableError(Exception):
    """A reply that is no answer to one text; the next may be."""


class ChatClient:
    """Send the requests of one run, from several threads.

    The key is read from an environment variable, and is in no error. The event `stop`
    ends all requests.
    """

    def __init__(self, url, api_key_variable, timeout, max_retries, sent):
        self._url, self._host = url, urlsplit(url).netloc
        self._variable, self._key = api_key_variable, read_key(api_key_variable)
        self._timeout, self._max_retries = timeout, max_retries
        self._lock = threading.Lock()
        # The mode is decided by the first answer, in this run or before.
        self.has_answered = sent in MODES
        self._mode = MODES.index(sent) if self.has_answered else 0
        self._n_unusable = 0
        self._rng = random.Random()
        # Compressed, a small reply could be a large one.
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        self._http = Exchanges(
            timeout,
            headers=headers,
            timeout=httpx.Timeout(timeout, connect=min(timeout, 10)),
            trust_env=False,  # no proxy sees texts or key, unless it is the URL
            follow_redirects=False,
        )
        self.stop = self._http.stop

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._http.close()

    def ask(self, body, options):
        """Return the first choice of a reply and the names of the options sent.

        Raise a StoppedError once `stop` is set, and an UnusableError for a text that
        the server rejects or a reply that is none of this API; several of these in a
        row are an error that ends the run.
        """
        try:
            choice, mode = self._negotiate(body, options)
        except UnusableError as exc:
            with self._lock:
                self._n_unusable += 1
                n = self._n_unusable
            if n >= _MAX_UNUSABLE:
                raise ConnectionError(
                    f"{n} replies of {self._host} in a row are none of this API; the "
                    f"last: {exc}. Check the URL: another server, a proxy or a login "
                    "page may have answered."
                ) from exc
            raise
        if isinstance(choice, str):
            raise UnusableError(choice)
        with self._lock:
            self._mode, self.has_answered, self._n_unusable = mode, True, 0
        return choice, MODES[mode]

    def _negotiate(self, body, options):
        """Return the first choice, or why the text was rejected, and the mode."""
        mode = self._mode
        while True:
            sent = {name: options[name] for name in MODES[mode]}
            status, content = self._send(json.dumps({**body, **sent}).encode())
            if status < 400:
                return _read_choice(self._hide(content)), mode
            reason = f"status {status}: {self._describe(content)}"
            if self.has_answered:  # with other texts, so it is this one
                is_filtered = "content_filter" in content
                return {"message": {"refusal": reason}} if is_filtered else reason, mode
            mode += 1
            if mode == len(MODES):
                raise UnusableError(reason)

    def _send(self, data):
        """Return the status and the text of a reply, after retries."""
        for attempt in range(self._max_retries + 1):
            wait, is_slow = None, False
            try:
                sent = self._http.send(_read_reply, "POST", self._url, content=data)
                status, headers, content = sent
            except httpx.RequestError as exc:
                # Its words could hold a header, and so the key.
                reason, is_slow = type(exc).__name__, isinstance(exc, httpx.ReadTimeout)
            else:
                if status < 500 and status not in _RETRIED:
                    self._check(status, headers, content)
                    return status, content
                reason = f"status {status}: {self._describe(content)}"
                wait = read_retry_after(headers, _MAX_WAIT)
            if attempt < self._max_retries:
                usual = min(2**attempt * self._rng.uniform(0.5, 1), _MAX_WAIT)
                _pause(self.stop, usual if wait is None else wait)
        if is_slow and self.has_answered:
            raise UnusableError(f"no end within {self._timeout:g} seconds")
        raise ConnectionError(
            f"{self._host} failed {self._max_retries + 1} times in a row, finally with "
            f"{reason}. Check that the server runs, and its limits."
        )

    def _check(self, status, headers, content):
        """Raise an error for a status that no other request would change."""
        if status in (401, 403):
            state = "was refused" if self._key else "is not set"
            raise PermissionError(
                f"{self._host} refused the request (status {status}): the key in the "
                f"environment variable {self._variable} {state}."
            )
        if 300 <= status < 400:
            target = headers.get("location", "").partition("://")[2].partition("/")[0]
            target = visible(self._hide(target))[:_MAX_DETAIL] or "another path"
            raise ConnectionError(
                f"{self._host} redirects to {target}. Redirects are not "
                "followed, as texts and key would go along: pass the URL where the "
                "API itself answers."
            )
        if status >= 400 and status not in _REJECTED:
            raise ConnectionError(
                f"{self._host} refused the request (status {status}): "
                f"{self._describe(content)}. Check the URL and the name of the model."
            )

    def _describe(self, content):
        """Return what a server says, in one short line."""
        message = " ".join(_read_message(content).split())
        return visible(self._hide(message))[:_MAX_DETAIL] or "no words"

    def _hide(self, text):
        """Return the text without the key, should a server repeat it."""
        return text.replace(self._key, "...") if self._key else text


def read_key(variable):
    """Return the key in an environment variable, "" for none; no error shows it."""
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ValueError(
            f"the environment variable {variable} must hold a key, and has characters "
            "that no key has. Set it again."
        )
    return key


def _pause(stop, seconds):
    stop.wait(seconds)


def _read_reply(response):
    """Return status, headers and text of a response of limited length."""
    content = bytearray()
    for part in response.iter_raw():
        content += part
        if len(content) > _MAX_BYTES:
            raise UnusableError(f"more than {_MAX_BYTES:,} bytes")
    return response.status_code, response.headers, content.decode("utf-8", "replace")


def _read_message(content):
    """Return the message of an error of the API, or the whole content."""
    try:
        error = json.loads(content)
        error = error.get("error", error)
        return str(error.get("message", error))
    except (ValueError, AttributeError, RecursionError):
        return content


def _read_choice(content):
    """Return the first choice of a reply of the API, with a message."""
    try:
        choice = json.loads(content)["choices"][0]
        if isinstance(choice["message"].get("content"), str | None):
            return choice
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        pass
    shown = " ".join(content[:_MAX_DETAIL].split())
    raise UnusableError(f"no JSON of a chat, but {shown!r}")
