"""Export a fitted model of texts as an ONNX graph with its tokenizer."""

import json
import os
import warnings
from typing import Any, Literal

import numpy as np

from .._utils._lazy import need_bert
from .._utils._sklearn import StrOptions, validate_params
from ._card import make_card
from ._folder import CARD, new_folder

_OPSET = 17
_ROWS = {
    "input_ids": "ids",
    "attention_mask": "attention_mask",
    "token_type_ids": "type_ids",
}
# Texts of different lengths, with which the exported graph is compared.
_TEXTS = (
    "a",
    "an example of a text",
    "A text of 2 sentences. It is longer than others.",
)
_TOLERANCE = 1e-3  # of rounding; other errors are larger
_TOLERANCE_OF_INTEGERS = 0.5  # they change most probabilities by less than 0.1


@validate_params(
    {
        "folder": [str, os.PathLike],
        "quantize": [StrOptions({"int8"}), None],
        "classes": ["array-like", None],
    },
    prefer_skip_nested_validation=True,
)
def export_onnx(
    model: Any,
    folder: str | os.PathLike[str],
    *,
    quantize: Literal["int8"] | None = None,
    classes: Any = None,
) -> str:
    """Export a fitted model of texts, to predict without torch.

    The folder holds everything that :func:`skactive.runtime.load` needs: tokenizer,
    encoder, pooling, normalization and head in one ONNX graph, classes and thresholds,
    and checksums. It appears whole or not at all.

    Parameters
    ----------
    model : estimator
        A fitted model that reads texts: what :func:`make_text_classifier`,
        :func:`make_fine_tuned_classifier` or :func:`make_final_classifier` returned, a
        `BertClassifier` or `BertRegressor`, a pipeline of `BertFeatures` or
        `StaticFeatures` and a linear model, or a :class:`ClassDescriptions` or
        :class:`ActiveLearner` around one of these. In front of the linear model there
        may be scalers; a `ColumnTransformer` that was fitted on a data frame, with
        columns of texts and of numbers (`StandardScaler`, `MinMaxScaler`,
        `MaxAbsScaler`, `Normalizer`, `SimpleImputer`, "passthrough"); and a
        `FeatureUnion` of these.
    folder : str or path-like
        The folder to write. It must not exist.
    quantize : {"int8"} or None, default=None
        Whether the weights of the encoder become integers of 8 bits. The graph is a
        quarter as large, faster and less exact: a probability then depends slightly on
        the other texts in a batch. The temperature of the probabilities stays the one
        that was chosen in float32. Some encoders lose accuracy: compare the labels on
        texts of your own before you use it.
    classes : array-like of shape (k,) or None, default=None
        Names of the classes of a model of several labels per text, whose own names are
        the numbers of columns.

    Returns
    -------
    folder : str
        The absolute path of the folder.

    Raises
    ------
    TypeError
        For a model of another kind.
    NotFittedError
        For a model that was not fitted.
    FileExistsError
        If the folder exists.
    ValueError
        If the tokenizer is written in Python, or there is nothing to quantize.
    RuntimeError
        If the graph predicts otherwise than the model, which means that the encoder
        cannot be exported, or not with integers.
    ImportError
        If onnx or onnxruntime is not installed.

    See Also
    --------
    skactive.runtime.load : Load an export, without torch.
    save : Save a model to train it further.

    Notes
    -----
    The graph computes in float32. Models whose `BertFeatures` has
    ``precision="float32"`` predict the same up to rounding; bfloat16, which `precision`
    may choose, changes probabilities by about 0.01.

    Examples
    --------
    >>> import skactive
    >>> folder = skactive.export_onnx(model, "exported")  # doctest: +SKIP
    >>> skactive.runtime.load(folder).predict(["rain all day"])  # doctest: +SKIP
    ['weather']
    """
    need_bert("an export", "onnx", "onnxruntime", extras="bert,onnx")
    from ._graph import Graph

    graph = Graph(model)
    config = {**_describe(model, graph, classes), "quantize": quantize}
    files: dict[str, str] = {}  # a tokenizer that columns share is stored once
    for reading in graph.readings:
        name = f"tokenizer_{len(files)}.json" if files else "tokenizer.json"
        files.setdefault(reading["tokenizer"], name)
    config["readings"] = [
        {**x, "tokenizer": files[x["tokenizer"]]} for x in graph.readings
    ]
    config["numbers"] = graph.numbers
    with new_folder(folder, overwrite=False) as (target, new):
        for tokenizer, name in files.items():
            (new / name).write_bytes(tokenizer.encode())
        (new / "config.json").write_bytes(json.dumps(config, indent=1).encode())
        _write_graph(graph, new / "model.onnx")
        if quantize is not None:
            _quantize(graph, new / "model.onnx")
        facts = {} if quantize is None else {"Quantized": quantize}
        card = make_card(model, facts, target.name, load="skactive.runtime.load")
        (new / CARD).write_bytes(card.encode("utf-8", "replace"))
    return os.fspath(target)


def _describe(model, graph, classes):
    """Return what turns the outputs of a graph into predictions, a dict."""
    labels = [] if graph.target == "regression" else model.classes_.tolist()
    names = labels if classes is None else np.asarray(classes).tolist()
    if len(names) != len(labels) or (names != labels and graph.target != "multi-label"):
        raise ValueError(
            "'classes' must name the columns of a model of several labels per text, "
            f"got {len(names)} names for {len(labels)} classes of a "
            f"{graph.target} model. Leave it out, or name each column."
        )
    described = {name: getattr(graph, name) for name in ("target", "thresholds")}
    return {"classes": names, **described, "temperatures": graph.temperatures}


def _write_graph(graph, path):
    """Write a graph, and compare it with batches of other shapes."""
    import torch
    from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions

    names = list(graph.inputs)
    raw, options = os.fspath(path.with_suffix(".raw")), SessionOptions()
    axes = {name: [0, 1] for name in names} | {"numbers": [0], "outputs": [0]}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of constants, which the comparison finds
        # The exporter of torch.export takes 20 times as long, for the same graph.
        torch.onnx.export(
            graph,
            _make_batch(graph, _TEXTS),
            raw,
            dynamo=False,
            input_names=names,
            output_names=["outputs"],
            dynamic_axes=axes,
            opset_version=_OPSET,
        )
        # Weights that two encoders share are stored once.
        options.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = os.fspath(path)
        session = InferenceSession(raw, options)
        os.unlink(raw)
    _check(graph, session, _TOLERANCE, "Use another encoder.")


def _check(graph, session, tolerance, advice):
    """Raise an error if a session predicts otherwise than its graph."""
    used = [each.name for each in session.get_inputs()]
    for texts in (_TEXTS[:1], _TEXTS[1:]):
        batch = _make_batch(graph, texts)
        feed = dict(zip(graph.inputs, (x.numpy() for x in batch), strict=True))
        expected = graph(*batch).numpy()
        outputs = session.run(None, {name: feed[name] for name in used})[0]
        error = np.abs(expected - outputs).max()
        if not error <= tolerance * max(1, np.abs(expected).max()):
            raise RuntimeError(
                f"the graph must predict as 'model' does, got a difference of "
                f"{error:.2g}. {advice}"
            )


def _make_batch(graph, texts):
    """Return the inputs of a graph for texts, with any numbers in the other columns."""
    import torch
    from tokenizers import Tokenizer

    numbers = np.arange(len(texts) * len(graph.numbers), dtype=np.float64)
    batch = {"numbers": torch.from_numpy(numbers.reshape(len(texts), -1))}
    for i, reading in enumerate(graph.readings):
        tokenizer = Tokenizer.from_str(reading["tokenizer"])
        tokenizer.enable_padding(pad_id=reading["pad_id"])
        specials, end = reading["special_tokens"], f"_{i}" if i else ""
        encodings = tokenizer.encode_batch(texts, add_special_tokens=specials)
        for name, row in _ROWS.items():
            batch[name + end] = torch.tensor([getattr(x, row) for x in encodings])
    return tuple(batch[name] for name in graph.inputs)


def _quantize(graph, path):
    """Replace the weights of an encoder by integers of 8 bits."""
    import onnx
    from onnxruntime import InferenceSession
    from onnxruntime.quantization import quantize_dynamic

    model = onnx.load(path)
    # Otherwise onnxruntime logs the advice to run its own optimization first.
    model.metadata_props.add(key="onnx.quant.pre_process", value="onnxruntime.quant")
    names = [x.name for x in model.graph.node if "/encoder/" in x.name]
    chosen = [x for x in names if "position" not in x]  # a few of these are large
    if not chosen:
        raise ValueError(
            "'quantize' must be None for StaticFeatures, which has no encoder, got "
            "'int8'."
        )
    # 7 bits, since older processors add up products of 8 bits in 16.
    options = {"per_channel": True, "reduce_range": True}
    kinds = ["MatMul", "Gemm", "Gather"]  # products and embeddings
    options |= {"op_types_to_quantize": kinds, "nodes_to_quantize": chosen}
    quantize_dynamic(model, path, **options)
    session, advice = InferenceSession(path), "Export it with quantize=None."
    _check(graph, session, _TOLERANCE_OF_INTEGERS, advice)
