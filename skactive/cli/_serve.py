"""The command `serve`: the predictions of a saved model over HTTP."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from .. import runtime
from .._utils._labels import find_target
from ..persistence import disarm, load
from ._model import say
from ._predict import read_about


def run_serve(model, host, port, token_env):
    """Run the command `serve`."""
    from ..labeling import PredictionServer, make_exported_predict, make_predict

    token = os.environ.get(token_env, "").strip()
    if not token and host not in ("127.0.0.1", "localhost"):
        raise ValueError(
            f"argument --host: {host!r} can be reached from other computers, so the "
            f"environment variable {token_env} must hold a token, got none. Set it."
        )
    if (Path(model).expanduser() / "model.onnx").is_file():
        predict, n_columns = make_exported_predict(runtime.load(model)), None
    else:
        about, loaded = read_about(model), load(model)
        disarm(loaded, forget=True)
        target = about.get("target") or find_target(loaded)
        predict = make_predict(loaded, about.get("classes"), target)
        n_columns = len(about["text"]) if isinstance(about.get("text"), list) else None
    # The first request need not wait for the encoder, and a model that fails is found.
    predict([("text", "text")] if n_columns == 2 else ["text"])
    given = token or secrets.token_urlsafe(16)
    server = PredictionServer(predict, given, n_columns=n_columns, host=host, port=port)
    shown = given if not token else f"${token_env}"
    say(f"POST {server.url}/predict, with the header Authorization: Bearer {shown}")
    with suppress(KeyboardInterrupt):
        server.run()
    say("stopped")
    return 0
