"""Predict with an exported model: onnxruntime, tokenizers and numpy, without torch."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["load"]

_TEXTS, _TOKENS = 4096, 512  # texts tokenized at a time; tokens of a padded batch


class OnnxModel:
    """Classifier or regressor of texts, as :func:`load` describes it."""

    def __init__(self, folder: str | os.PathLike, n_threads: int | None = None) -> None:
        try:
            from onnxruntime import InferenceSession, SessionOptions
            from tokenizers import Tokenizer
        except ImportError as exc:
            raise ImportError(f"{exc}: `pip install onnxruntime tokenizers`") from exc
        options = SessionOptions()
        options.intra_op_num_threads = n_threads or 0  # 0 means all cores
        self._config = json.loads(Path(folder, "config.json").read_bytes())
        self.target, self.classes = self._config["target"], self._config["classes"]
        self._tokenizer = Tokenizer.from_file(str(Path(folder, "tokenizer.json")))
        self._session = InferenceSession(str(Path(folder, "model.onnx")), options)

    def predict(self, X: Any) -> list:
        """Return a class, a list of classes or a number for each text of `X`."""
        return self.decide(self._run(X))

    def decide(self, outputs: np.ndarray) -> list:
        """Return what `predict` returns, from the probabilities (n, k) of the texts."""
        if self.target == "regression":
            return outputs[:, 0].tolist()
        if self.target == "single-label":
            return [self.classes[i] for i in outputs.argmax(axis=1)]
        rows = map(np.flatnonzero, outputs > np.array(self._config["thresholds"]))
        return [[self.classes[i] for i in row] for row in rows]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class for each text of `X`, (n, k)."""
        if self.target == "regression":
            raise TypeError("predict_proba needs classes; this model predicts numbers.")
        return self._run(X)

    def _run(self, X):
        """Return the outputs (n, k). Texts of similar length share a batch."""
        texts = [self._prepare(text) for text in _as_texts(X)]
        special = self._config["special_tokens"]
        outputs = np.empty((len(texts), len(self.classes) or 1), dtype=np.float32)
        for start in range(0, len(texts), _TEXTS):
            chunk = texts[start : start + _TEXTS]
            found = self._tokenizer.encode_batch(chunk, add_special_tokens=special)
            order = np.argsort([-len(each.ids) for each in found], kind="stable")
            while len(order):
                size = max(1, _TOKENS // max(1, len(found[order[0]].ids)))
                batch, order = order[:size], order[size:]
                outputs[start + batch] = self._run_batch([found[i] for i in batch])
        return outputs

    def _prepare(self, text):
        """Put the prompt before a text, or the first of a pair; lower its case."""
        parts = text if isinstance(text, tuple) else (text,)
        parts = self._config["prompt"] + parts[0], *parts[1:]
        parts = [part.lower() for part in parts] if self._config["lower"] else parts
        return tuple(parts) if len(parts) == 2 else parts[0]

    def _run_batch(self, encodings):
        """Return the outputs (b, k) of texts, the longest first."""
        limit, pad_id = self._config["max_length"], self._config["pad_id"]
        rows = [each.ids[:limit] or [pad_id] for each in encodings]
        ids = np.full((len(rows), len(rows[0])), pad_id, dtype=np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for i, row in enumerate(rows):
            ids[i, : len(row)], mask[i, : len(row)] = row, 1
            types[i, : len(row)] = encodings[i].type_ids[:limit] or 0
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        feed = {each.name: feed[each.name] for each in self._session.get_inputs()}
        return self._session.run(None, feed)[0]


def _as_texts(X):
    """Return the texts of a list, pairs as tuples, or raise an error."""
    if isinstance(X, str | bytes | dict) or not hasattr(X, "__iter__"):
        raise TypeError(f"'X' must be a list of texts, got {type(X).__name__}.")
    texts = [tuple(x) if isinstance(x, list | np.ndarray) else x for x in X]
    for i, text in enumerate(texts):
        is_pair = isinstance(text, tuple) and len(text) == 2
        try:
            "".join(text if is_pair else (text,)).encode()
        except (TypeError, UnicodeEncodeError) as exc:  # the latter: half a character
            raise (TypeError if isinstance(exc, TypeError) else ValueError)(
                f"'X' must hold texts of valid Unicode, or pairs of them, got {text!r} "
                f"at position {i}. Convert it, or leave it out."
            ) from exc
    return texts


def load(folder: str | os.PathLike, *, n_threads: int | None = None) -> OnnxModel:
    """Load a model that :func:`skactive.export_onnx` wrote, and check its files.

    Parameters
    ----------
    folder : str or path-like
        The folder.
    n_threads : int or None, default=None
        Number of threads. Defaults to one for each core.

    Returns
    -------
    model : object
        Its `predict(X)` returns a list with a class, a list of classes or a number for
        each text or pair, and `predict_proba(X)` the probabilities (n, k) of `classes`.
        `target` is "single-label", "multi-label" or "regression".

    Raises
    ------
    ValueError
        If `folder` is no export, or a file is missing or was changed.

    Examples
    --------
    >>> from skactive import runtime
    >>> model = runtime.load("exported", n_threads=1)  # doctest: +SKIP
    """
    try:
        files = json.loads(Path(folder, "manifest.json").read_bytes())["files"]
        digests = {name: about["sha256"] for name, about in files.items()}
        missing: Any = {"config.json", "model.onnx", "tokenizer.json"} - set(digests)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
        missing = exc
    if missing:
        raise ValueError(
            f"'folder' must be what skactive.export_onnx wrote, got {str(folder)!r} "
            f"({missing}). Export the model there, or copy the folder again."
        )
    for name, digest in digests.items():
        path = Path(folder, name)
        content = path.read_bytes() if path.is_file() else b""
        if hashlib.sha256(content).hexdigest() != digest:
            raise ValueError(
                f"{name!r} in {str(folder)!r} is missing or has changed. Copy it again."
            )
    return OnnxModel(folder, n_threads)
