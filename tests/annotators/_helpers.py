"""A server with a chat API on 127.0.0.1, whose replies a test writes."""

import json
import math
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = "sk-VerySecret123"
CLASSES = ["fire", "flood", "storm"]
MARKED = re.compile(r"<text ([0-9a-f]{12})>\n(.*)\n</text \1>", re.DOTALL)


def find_text(body):
    """Return the text of a request, from the last message."""
    return MARKED.fullmatch(body["messages"][-1]["content"])[2]


def label_of(text):
    """Return the class that a text begins with."""
    return text.split()[0]


def chat(content, *, tokens=None, **choice):
    """Return a reply of the API, dict; `tokens` are (token, probability)."""
    choice = {"message": {"role": "assistant", "content": content}, **choice}
    if tokens is not None:
        listed = [{"token": t, "logprob": math.log(p)} for t, p in tokens]
        choice["logprobs"] = {"content": listed}
    return {"id": "1", "object": "chat.completion", "choices": [choice]}


def right(text, body=None):
    """Return the right answer to a text."""
    return chat(json.dumps({"label": label_of(text)}))


class FakeChat(ThreadingHTTPServer):
    """Answer with what `reply(text, body)` returns.

    This is a dict, (status, headers, bytes), or a function of the handler that writes
    to its `wfile`. `requests` lists what came: path, headers, body and text.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, reply=right):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reply, self.requests, self.lock = reply, [], threading.Lock()
        self.n_open = self.most_open = 0
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def host(self):
        return f"127.0.0.1:{self.server_address[1]}"

    @property
    def url(self):
        return f"http://{self.host}"

    @property
    def texts(self):
        return [request["text"] for request in self.requests]

    def handle_error(self, request, client_address):
        """Ignore clients that close the connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = find_text(body)
        about = {"path": self.path, "headers": dict(self.headers)}
        with server.lock:
            server.requests.append({**about, "body": body, "text": text})
            server.n_open += 1
            server.most_open = max(server.most_open, server.n_open)
        try:
            reply = server.reply(text, body)
        finally:
            with server.lock:
                server.n_open -= 1
        if callable(reply):
            self.close_connection = True
            reply(self)
            return
        if isinstance(reply, dict):
            reply = 200, {"Content-Type": "application/json"}, json.dumps(reply)
        status, headers, content = reply
        content = content.encode() if isinstance(content, str) else content
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        with self.server.lock:
            self.server.requests.append({"path": self.path, "text": None})
        self.send_error(404)

    do_CONNECT = do_GET

    def log_message(self, *args):
        """Print nothing."""
