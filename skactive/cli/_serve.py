"""The command `serve`: the predictions of a saved model over HTTP."""

import os
import secrets
from contextlib import suppress
from functools import partial

from ._parser import say
from ._predict import open_model


def run_serve(model, host, port, token_env):
    """Run the command `serve`."""
    from ..serving import PredictionServer

    token = os.environ.get(token_env, "").strip()
    if not token and host not in ("127.0.0.1", "localhost"):
        raise ValueError(
            f"argument --host: {host!r} can be reached from other computers, so the "
            f"environment variable {token_env} must hold a token, got none. Set it."
        )
    predict, about, exported = open_model(model, forget=True)
    predict = partial(predict, n_top=None)
    options = {"host": host, "port": port}
    if exported is not None and exported.columns:
        options["check_rows"] = exported.read
    else:
        n_columns = len(about["text"]) if isinstance(about.get("text"), list) else None
        # The first request need not wait for the encoder, and a model that fails is
        # found.
        predict([("text", "text")] if n_columns == 2 else ["text"])
        options["n_columns"] = n_columns or 1
        with suppress(Exception):  # of any estimator that does not read pairs
            predict([("text", "text")])
            options["n_columns"] = n_columns or None
    given = token or secrets.token_urlsafe(16)
    server = PredictionServer(predict, given, **options)
    shown = given if not token else f"${token_env}"
    say(f"POST {server.url}/predict, with the header Authorization: Bearer {shown}")
    with suppress(KeyboardInterrupt):
        server.run()
    say("stopped")
    return 0
