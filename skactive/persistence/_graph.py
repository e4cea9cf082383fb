"""A fitted model of texts as one torch module, for export."""

import copy

import numpy as np
import torch
from sklearn.base import is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted
from torch import nn
from torch.nn import functional

from .._encoders._module import encode
from .._utils._labels import is_multi_label
from .._utils._linear import is_own_logistic
from ..bert import AdaptedFeatures, BertClassifier, BertFeatures, BertRegressor
from ..features import EncodingRun, StaticFeatures
from ..learner import ActiveLearner
from ..semi_supervised import (
    ClassDescriptions,
    MixtureClassifier,
    SelfTraining,
)

_SURE = 100.0  # logit of a label that all training texts have
_NAMES = "input_ids", "attention_mask", "token_type_ids"
_CPU = torch.device("cpu")


class _Step(nn.Module):
    """A function of a batch and of modules with weights."""

    def __init__(self, function, **modules):
        super().__init__()
        self.function, self.names = function, list(modules)
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, batch):
        modules = {name: getattr(self, name) for name in self.names}
        return self.function(batch, **modules)


class _DoubleLinear(nn.Linear):
    """A layer in double precision, as numbers of a table may be large."""

    def forward(self, x):
        return super().forward(x.double())


class Graph(nn.Module):
    """The probabilities (b, k) of a fitted model for tokens, or its numbers (b, 1).

    `readings` say how its encoders read texts, and of which columns. `numbers` are the
    other columns, and whether they may have gaps. The keys of `inputs` are what a call
    takes, in order. `target` is the model's target, `thresholds` are its labels'
    thresholds or None, and logits are divided by the `temperatures`.
    """

    def __init__(self, model):
        super().__init__()
        self.readings, self.temperatures, self.thresholds = [], [], None
        self.inputs, self.numbers = {}, {}
        self.target = "single-label"
        self.body = self._build(model)
        if not self.readings:
            raise _unsupported(model)
        self.eval().requires_grad_(False)

    def forward(self, *inputs):
        return self.body(dict(zip(self.inputs, inputs, strict=True)))

    def _build(self, model, of_texts=True):
        """Return the module of a model of texts, or of features (b, d)."""
        check_is_fitted(model)
        kind = type(model)
        if kind is ActiveLearner:
            return self._build(model.estimator_, of_texts)
        if kind in (ClassDescriptions, SelfTraining):
            inner = self._build(model.estimator_, of_texts)
            return self._soften(inner, model.temperature_)
        if kind is MixtureClassifier:
            mixed = self._mix(model, of_texts)
            if is_multi_label(model):
                self.thresholds = model.thresholds_.tolist()
                return mixed
            return self._soften(mixed, model.temperature_)
        if not of_texts:
            return self._link(model, _make_linear(model))
        if kind in (BertClassifier, BertRegressor):
            return self._link(model, self._read_network(model._fitted))
        if kind is not Pipeline or len(model) < 2:
            raise _unsupported(model)
        return nn.Sequential(
            self._read(model[:-1]), self._build(model[-1], of_texts=False)
        )

    def _read(self, step, columns=()):
        """Return the module of the outputs (b, d) of a fitted transformer of columns.

        Without `columns`, it reads texts, or all columns.
        """
        kind = type(step)
        if kind is Pipeline:
            others = map(_transform, step[1:])
            return nn.Sequential(self._read(step[0], columns), *others)
        if kind is AdaptedFeatures and step.n_adapted_:
            return self._read_network(step._encoder._fitted, columns)
        if kind is AdaptedFeatures:
            step, kind = step._frozen(), BertFeatures
        if kind is BertFeatures:
            return self._read_features(EncodingRun(step), columns)
        if kind is StaticFeatures:
            return self._read_static(step, columns)
        if kind is FeatureUnion:
            return self._join(
                step, [(*part, columns) for part in step.transformer_list]
            )
        if kind is ColumnTransformer and not columns:
            if not hasattr(step, "feature_names_in_"):
                raise TypeError(
                    "'model' must have been fitted on a data frame to be exported, as "
                    "an export finds columns by their names, got a ColumnTransformer "
                    "without names. Fit it on a data frame."
                )
            indices = step._transformer_to_input_indices
            names = step.feature_names_in_
            parts = [
                (x, y, names[indices[x]].tolist()) for x, y, _ in step.transformers_
            ]
            return self._join(step, [part for part in parts if part[2]])
        if not columns:
            raise _unsupported(step)
        for name in columns:
            gaps = self.numbers.get(name, True) and kind is SimpleImputer
            self.numbers[name] = gaps
        self.inputs["numbers"] = None
        positions = list(map(list(self.numbers).index, columns))
        pick = _Step(lambda batch: batch["numbers"][:, positions])
        return nn.Sequential(pick, _transform(step))

    def _join(self, model, parts):
        """Return the module of the outputs of named transformers, side by side."""
        parts = [part for part in parts if part[1] != "drop"]
        weights = [(model.transformer_weights or {}).get(name, 1) for name, *_ in parts]
        read = {f"part{i}": self._read(*part[1:]) for i, part in enumerate(parts)}

        def run(batch, **read):
            blocks = [module(batch).double() for module in read.values()]
            pairs = zip(blocks, weights, strict=True)
            return torch.cat([block * weight for block, weight in pairs], dim=1)

        return _Step(run, **read)

    def _link(self, model, module):
        """Return a module with what turns its outputs (b, k) into predictions."""
        if is_regressor(model):
            self.target = "regression"
            mean, scale = map(float, getattr(model, "_scale", (0, 1)))
            return nn.Sequential(module, _Step(lambda x: x * scale + mean))
        if is_multi_label(model):
            halves = np.full(len(model.classes_), 0.5)
            self.thresholds = getattr(model, "thresholds_", halves).tolist()
            self.target = "multi-label"
            return nn.Sequential(module, nn.Sigmoid())
        return nn.Sequential(module, nn.Softmax(dim=1))

    def _soften(self, module, temperature):
        """Return a module whose log-probabilities are divided by a temperature."""
        self.temperatures.append(float(temperature))
        log = _Step(lambda proba: proba.clamp(min=1e-9).log() / temperature)
        return nn.Sequential(module, log, nn.Softmax(dim=1))

    def _mix(self, model, of_texts):
        """Return the module of the weighted mean of the parts of a mixture."""

        def spread(part, proba):  # to all classes, 0 where a model lacks one
            column_of = {label: i for i, label in enumerate(part.classes_.tolist())}
            k = len(column_of)
            columns = [column_of.get(label, k) for label in model.classes_.tolist()]
            return functional.pad(proba, (0, 1))[:, columns]

        parts = list(model.parts_.values())
        shares = [model.weights_[name] for name in model.parts_]
        modules = {
            f"part_{i}": self._build(part, of_texts) for i, part in enumerate(parts)
        }
        return _Step(
            lambda x, **modules: sum(
                share * spread(part, module(x))
                for module, part, share in zip(
                    modules.values(), parts, shares, strict=True
                )
            ),
            **modules,
        )

    def _read_features(self, run, columns):
        """Return the module of the features of a `BertFeatures`."""
        encoder = run.checkpoint.module(_CPU, torch.float32)
        run.checkpoint.refuse_blind_token(encoder, run.pooling)
        lower, finish = False, None
        if run.modules is not None:
            lower, finish = run.modules.lower, run.modules.build(_CPU)
        texts = {"prompt": run.prompt, "lower": lower, "columns": list(columns)}
        take = self._read_tokenizer(run.checkpoint, run.max_length, **texts)
        names = ("layers", "pooling", "normalize", "width")
        settings = {name: getattr(run, name) for name in names} | {"finish": finish}
        encoder = copy.deepcopy(encoder)
        encoder.set_attn_implementation("eager")  # of single products
        return _Step(
            lambda batch, encoder: encode(encoder, take(batch), **settings),
            encoder=encoder,
        )

    def _read_network(self, fitted, columns=()):
        """Return the module of the outputs of a trained network."""
        checkpoint = fitted.checkpoint()
        limit = checkpoint.max_positions or fitted.max_length
        limit = min(fitted.max_length, limit)
        take = self._read_tokenizer(checkpoint, limit, columns=list(columns))
        network = copy.deepcopy(fitted.network).to(_CPU, torch.float32)
        network.encoder.set_attn_implementation("eager")
        network.bfloat16 = False

        def run(batch, network):
            x, mask = network.represent(**take(batch))
            return network.head(*([x, mask] if network.uses_tokens else [x]))

        return _Step(run, network=network)

    def _read_static(self, features, columns):
        """Return the module of the features of a `StaticFeatures`."""
        table = features._open()
        options = {"special_tokens": False, "columns": list(columns)}
        take = self._add_reading(table.tokenizer, features.max_length, **options)
        counted = table.counted[:, None]
        vectors = np.concatenate([table.vectors * counted, counted], axis=1)

        def run(batch, table):
            batch = take(batch)
            mask = batch["attention_mask"][:, :, None]  # (b, t, 1)
            sums = (table(batch["input_ids"]) * mask).sum(dim=1)
            rows = sums[:, :-1] / sums[:, -1:].clamp(min=1)
            return functional.normalize(rows, dim=1) if features.normalize else rows

        table = nn.Embedding(*vectors.shape, _weight=torch.from_numpy(vectors))
        return _Step(run, table=table)

    def _read_tokenizer(self, checkpoint, max_length, **prepared):
        """Add a tokenizer that truncates by itself; see `_add_reading`."""
        tokenizer = checkpoint.tokenizer
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise ValueError(
                f"'model' must have a fast tokenizer to be exported, got that of "
                f"{checkpoint.name!r}, which is written in Python. Use another encoder."
            )
        with checkpoint.tokenizer_lock:
            own = type(backend).from_str(backend.to_str())
        own.no_padding()
        own.enable_truncation(int(max_length), direction=tokenizer.truncation_side)
        takes = "token_type_ids" in tokenizer.model_input_names
        prepared |= {"pad_id": checkpoint.pad_id, "takes_types": takes}
        return self._add_reading(own, int(max_length), **prepared)

    def _add_reading(self, tokenizer, max_length, **others):
        """Add how texts are read; return the function of a batch that takes them."""
        texts = {"prompt": "", "lower": False, "special_tokens": True, "pad_id": 0}
        reading = {"tokenizer": tokenizer.to_str(), "max_length": max_length, **texts}
        reading |= {"takes_types": False, "columns": [], **others}
        if reading not in self.readings:
            self.readings.append(reading)
        i = self.readings.index(reading)
        names = {
            x: f"{x}_{i}" if i else x for x in _NAMES[: 2 + reading["takes_types"]]
        }
        self.inputs |= dict.fromkeys(names.values())
        return lambda batch: {name: batch[own] for name, own in names.items()}


def _transform(step):
    """Return the module of a fitted step from numbers (b, d) to numbers."""
    kind, center, scale = type(step), 0.0, 1.0
    if kind is Normalizer:
        p = {"l1": 1.0, "l2": 2.0, "max": float("inf")}[step.norm]
        return _Step(lambda x: functional.normalize(x, p=p, dim=1))
    if kind is SimpleImputer and step.missing_values != step.missing_values:  # NaN
        fill = step.statistics_
        if fill.dtype.kind == "f" and not (step.add_indicator or np.isnan(fill).any()):
            return _Step(lambda x: torch.where(x.isnan(), torch.tensor(fill), x))
    if kind is StandardScaler:
        center = step.mean_ if step.with_mean else center
        scale = step.scale_ if step.with_std else scale
    elif kind is MinMaxScaler and not step.clip:
        center, scale = -step.min_ / step.scale_, 1 / step.scale_
    elif kind is MaxAbsScaler:
        scale = step.scale_
    elif step != "passthrough" and getattr(step, "func", step) is not None:
        raise _unsupported(step)
    center, scale = torch.tensor(center), torch.tensor(scale)
    return _Step(lambda x: ((x - center) / scale).to(x.dtype))


def _make_linear(model):
    """Return the layer of a linear model of features; two classes have two outputs."""
    coef, intercept = _read_linear(model)
    layer = nn.utils.skip_init(_DoubleLinear, *reversed(coef.shape))
    layer.weight = nn.Parameter(torch.tensor(coef, dtype=torch.float64))
    layer.bias = nn.Parameter(torch.tensor(intercept, dtype=torch.float64))
    return layer


def _read_linear(model):
    """Return coefficients (k, d) and intercepts (k,)."""
    if isinstance(model, OneVsRestClassifier) and model.multilabel_:
        layers = [_read_label(part) for part in model.estimators_]
        coef = np.stack(np.broadcast_arrays(*(coef for coef, _ in layers)))
        return coef, np.array([intercept for _, intercept in layers])
    coef = np.atleast_2d(getattr(model, "coef_", 0.0))
    if isinstance(model, Ridge | LinearRegression) and len(coef) == 1:
        return coef, np.atleast_1d(model.intercept_)
    # Before scikit-learn 1.8 there was another parameter.
    is_softmax = getattr(model, "multi_class", "deprecated") == "deprecated"
    is_softmax &= len(coef) == 1 or getattr(model, "solver", "") != "liblinear"
    is_softmax &= isinstance(model, LogisticRegression) or is_own_logistic(model)
    if not is_softmax:
        raise _unsupported(model)
    if len(coef) == 1:
        return np.concatenate([0 * coef, coef]), np.append(0.0, model.intercept_)
    return coef, model.intercept_


def _read_label(model):
    """Return coefficients and intercept of the logit of one label."""
    if not hasattr(model, "classes_"):  # the label was the same for all texts
        return 0.0, _SURE if np.ravel(model.y_)[0] else -_SURE
    coef, intercept = _read_linear(model)
    return coef[1], intercept[1]


def _unsupported(model):
    return TypeError(
        "'model' must be a pipeline of BertFeatures, AdaptedFeatures or "
        "StaticFeatures, maybe with "
        "columns of numbers and scalers, and a linear model (SelfTraining, "
        "FewLabelClassifier, TunedOneVsRestClassifier, LogisticRegression, Ridge), a "
        "BertClassifier or BertRegressor, or ClassDescriptions, a MixtureClassifier "
        "or an ActiveLearner of these; got "
        f"{type(model).__name__}. Train one of these to export it."
    )
