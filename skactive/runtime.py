"""Predict with an exported model: onnxruntime, tokenizers and numpy, without torch."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from ._utils._sealed import LoadError, check_folder, read_json, refuse_other_weights

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
        config = self._config = read_json(Path(folder, "config.json"))
        self.target, self.classes = config["target"], config["classes"]
        self._readings = config.get("readings", [config])  # skactive 0.2.0 had one
        self._numbers = config.get("numbers", {})
        names = [name for x in self._readings for name in x.get("columns", ())]
        self.columns = list(dict.fromkeys([*names, *self._numbers]))
        files = [x.get("tokenizer", "tokenizer.json") for x in self._readings]
        paths = [str(Path(folder, Path(x).name)) for x in files]
        self._tokenizers = [Tokenizer.from_file(path) for path in paths]
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

    def read(self, X: Any) -> tuple:
        """Return the texts of each encoder and the numbers (n, d) of `X`, checked."""
        if not self.columns:
            texts = _as_texts(X, "'X'")
            return [texts] * len(self._readings), np.empty((len(texts), 0))
        columns, inputs = _as_columns(X, self.columns), []
        for names in (x["columns"] for x in self._readings):
            cells = [_as_texts(columns[name], f"column {name!r}") for name in names]
            inputs.append(list(zip(*cells, strict=True)) if names[1:] else cells[0])
        items = self._numbers.items()
        numbers = [_as_numbers(name, columns[name], gaps) for name, gaps in items]
        return inputs, np.array(numbers).reshape(len(numbers), len(inputs[0])).T

    def _run(self, X):
        """Return the outputs (n, k). Texts of similar length share a batch."""
        texts, numbers = self.read(X)
        outputs = np.empty((len(numbers), len(self.classes) or 1), dtype=np.float32)
        for start in range(0, len(outputs), _TEXTS):
            chunks = [part[start : start + _TEXTS] for part in texts]
            encodings = list(map(_encode, self._tokenizers, self._readings, chunks))
            sizes = np.max([[len(x.ids) for x in part] for part in encodings], axis=0)
            order = np.argsort(-sizes, kind="stable")
            while len(order):
                size = max(1, _TOKENS // max(1, sizes[order[0]]))
                batch, order = order[:size], order[size:]
                feed = {"numbers": numbers[start + batch]}
                for i, part in enumerate(encodings):
                    end = f"_{i}" if i else ""
                    feed |= _pad([part[j] for j in batch], self._readings[i], end)
                feed = {x.name: feed[x.name] for x in self._session.get_inputs()}
                outputs[start + batch] = self._session.run(None, feed)[0]
        return outputs


def _encode(tokenizer, reading, texts):
    """Return encodings of texts: with a prompt before each, or before each pair."""
    prompt, rows = reading["prompt"], []
    for text in texts:
        parts = [text] if isinstance(text, str) else list(text)
        parts[0] = prompt + parts[0]
        parts = [part.lower() for part in parts] if reading["lower"] else parts
        rows.append(tuple(parts) if parts[1:] else parts[0])
    specials = reading["special_tokens"]
    return tokenizer.encode_batch(rows, add_special_tokens=specials)


def _pad(encodings, reading, end):
    """Return the inputs (b, t) of an encoder, whose names end in `end`."""
    limit, pad_id = reading["max_length"], reading["pad_id"]
    rows = [each.ids[:limit] or [pad_id] for each in encodings]
    ids = np.full((len(rows), max(map(len, rows))), pad_id, dtype=np.int64)
    mask, types = np.zeros_like(ids), np.zeros_like(ids)
    for i, row in enumerate(rows):
        ids[i, : len(row)], mask[i, : len(row)] = row, 1
        types[i, : len(row)] = encodings[i].type_ids[:limit] or 0
    names = f"input_ids{end}", f"attention_mask{end}", f"token_type_ids{end}"
    return dict(zip(names, (ids, mask, types), strict=True))


def _as_columns(X, names):
    """Return the columns of a list of rows, a dict or a data frame as lists."""
    is_rows = isinstance(X, list | tuple)
    try:
        columns = {x: [row[x] for row in X] if is_rows else list(X[x]) for x in names}
    except (LookupError, TypeError, ValueError) as exc:
        raise TypeError(
            "'X' must be a data frame, a dict of columns, or a list of rows, dicts, "
            f"with {', '.join(map(repr, names))}; got {type(X).__name__} ({exc!r})."
        ) from exc
    if len(set(map(len, columns.values()))) > 1:
        raise ValueError("'X' must hold columns of one length. Complete its rows.")
    return columns


def _as_numbers(name, cells, gaps):
    """Return numbers (n,); None and NaN are `gaps`, where the model fills them."""
    try:
        numbers = np.array([np.nan if x is None else float(x) for x in cells])
        bad = np.isinf(numbers) | (np.isnan(numbers) & (not gaps))
        if bad.any():
            raise ValueError(f"{cells[bad.argmax()]!r} at position {bad.argmax()}")
    except (TypeError, ValueError, OverflowError) as exc:
        raise ValueError(f"column {name!r} must hold finite numbers: {exc}.") from exc
    return numbers


def _as_texts(X, name):
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
                f"{name} must hold texts of valid Unicode, or pairs of them, got "
                f"{text!r} at position {i}. Convert it, or leave it out."
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
        `target` is "single-label", "multi-label" or "regression". Where `columns` names
        columns, `X` is a data frame, a dict of columns, or a list of rows, dicts.

    Raises
    ------
    ValueError
        If `folder` is no export, or a file is missing or was changed.

    Examples
    --------
    >>> from skactive import runtime
    >>> model = runtime.load("exported", n_threads=1)  # doctest: +SKIP
    """
    root = Path(os.path.expanduser(folder))
    files, _ = check_folder(root, "skactive.export_onnx")
    if missing := {"config.json", "model.onnx"} - files:
        raise LoadError(
            f"'folder' must be what skactive.export_onnx wrote, got {str(folder)!r} "
            f"without {missing.pop()!r}. Use skactive.load for what save wrote."
        )
    refuse_other_weights(root / "model.onnx")
    try:
        return OnnxModel(root, n_threads)
    except (ImportError, MemoryError):
        raise
    except Exception as exc:  # of json, tokenizers or onnxruntime
        raise LoadError(
            f"'config.json' in {str(folder)!r} must fit the other files, and does not "
            f"({type(exc).__name__}: {exc}). Export the model again."
        ) from exc
