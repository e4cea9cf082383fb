"""The network that is trained: encoder, pooling and head, wholly or above a cut."""

import copy
import threading
from contextlib import ExitStack, contextmanager
from functools import partial
from numbers import Integral

import torch
from torch import nn

from .._encoders._encoder import PackedEncoder
from .._encoders._module import choose_layers, forward, pool
from .._encoders._pretrained import open_checkpoint
from .._encoders._store import NotCacheableError
from .._encoders._tokens import pool_packed, unpack
from ._heads import make_head
from ._parts import each_in_parts

_TOP = frozenset({"final_layer_norm", "final_norm", "pooler"})  # after the last layer


def resolve_freeze(freeze, depth):
    """Return the range of frozen layers and whether the embeddings are frozen."""
    if isinstance(freeze, str) and freeze == "all":
        return range(depth), True
    is_int = isinstance(freeze, Integral) and not isinstance(freeze, bool)
    if not is_int or not -depth <= freeze <= depth:
        raise ValueError(
            f"'freeze' must be 'all' or an int in [-{depth}, {depth}], got {freeze!r}: "
            f"the model has {depth} layers. F > 0 freezes the embeddings and the first "
            "F layers, F < 0 the last -F layers, 0 none."
        )
    if freeze < 0:
        return range(depth + int(freeze), depth), False
    return range(int(freeze)), freeze > 0


class LayerStack:
    """The layers of an encoder, found by their structure.

    `layers_attr` is a dotted path such as `"encoder.layer"`; None searches for the one
    `ModuleList` of as many equal modules as the configuration has layers. `layers` has
    a single module if all layers share their weights, as in ALBERT, and none if they
    were not found; then the whole encoder can be frozen, or nothing. `depth` counts the
    layers that a text passes.
    """

    def __init__(self, encoder, layers_attr=None):
        self.encoder = encoder
        self.depth = encoder.config.num_hidden_layers
        self.path = layers_attr or self._find()
        self.layers = list(self._named(self.path)) if self.path else []
        self._lock = threading.RLock()
        self._length = False  # not known yet

    def __getstate__(self):
        return {**self.__dict__, "_lock": None}

    def __setstate__(self, state):
        self.__dict__.update(state, _lock=threading.RLock())

    @property
    def is_shared(self):
        """Whether one set of weights serves all layers."""
        return len(self.layers) == 1 < self.depth

    def _lists(self):
        return {
            path: module
            for path, module in self.encoder.named_modules()
            if isinstance(module, torch.nn.ModuleList) and len(module)
        }

    def _find(self):
        lists = self._lists()
        for length in (self.depth, 1):  # one module passed several times: ALBERT
            paths = [
                path
                for path, module in lists.items()
                if len(module) == length
                and len({type(layer) for layer in module}) == 1
                and any(True for _ in module[0].parameters())
            ]
            # The outermost of nested lists is the stack.
            outer = [
                path
                for path in paths
                if not any(path.startswith(f"{other}.") for other in paths)
            ]
            if len(outer) == 1:
                return outer[0]
            if outer:
                break
        return None

    def _named(self, path):
        try:
            module = self.encoder.get_submodule(path)
        except AttributeError as exc:
            raise ValueError(
                f"'layers_attr' must be the path of the layers in "
                f"{type(self.encoder).__name__}, got {path!r}, which it does not have."
            ) from exc
        n = len(module) if isinstance(module, torch.nn.ModuleList) else None
        if n not in (1, self.depth):
            raise ValueError(
                f"'layers_attr' must name a ModuleList of {self.depth} layers, got "
                f"{path!r}, a {type(module).__name__}"
                + ("." if n is None else f" of {n}.")
            )
        return module

    def freeze(self, freeze):
        """Set which parameters train; see `resolve_freeze`.

        Returns the number of layers from the bottom that are frozen together with the
        embeddings: their activations can be computed once.
        """
        frozen, with_embeddings = resolve_freeze(freeze, self.depth)
        all_or_none = not frozen or (len(frozen) == self.depth and with_embeddings)
        if not self.layers and not all_or_none:
            lists = self._lists()
            raise ValueError(
                f"'freeze' must be 0 or 'all' where the layers are not known, got "
                f"{freeze!r} for {type(self.encoder).__name__} with {len(lists)} lists "
                f"of modules ({', '.join(lists) or 'none'}), none of which is clearly "
                f"the stack of its {self.depth} layers. If one is, name it, such as "
                "layers_attr='encoder.layer'."
            )
        if self.is_shared and 0 < len(frozen) < self.depth:
            raise ValueError(
                f"'freeze' must be 0, 'all' or ±{self.depth} for "
                f"{type(self.encoder).__name__}, got {freeze!r}: its {self.depth} "
                "layers share one set of weights, so a part of them cannot be frozen."
            )
        # What follows the layers, such as a final normalization, goes with the last.
        top = len(frozen) > 0 and frozen[-1] == self.depth - 1
        for group, parameters in self.groups().items():
            if group in ("embeddings", "layers"):
                trains = not with_embeddings
            elif group == "top":
                trains = not top
            else:
                trains = group not in frozen and not (self.is_shared and frozen)
            for parameter in parameters.values():
                parameter.requires_grad_(trains)
        return len(frozen) if with_embeddings else 0

    def groups(self):
        """Return the encoder's parameters by layer, as dicts by name.

        The groups are "embeddings" (all that comes before the first layer), the index
        of each layer and, if there is any, "top". All are in "layers" if the layers
        were not found.
        """
        if not self.layers:
            return {"layers": dict(self.encoder.named_parameters())}
        prefix = {f"{self.path}.{i}.": i for i in range(len(self.layers))}
        groups = {"embeddings": {}, **{i: {} for i in prefix.values()}, "top": {}}
        for name, parameter in self.encoder.named_parameters():
            for start, i in prefix.items():
                if name.startswith(start):
                    groups[i][name] = parameter
                    break
            else:
                on_top = name.split(".")[0] in _TOP
                groups["top" if on_top else "embeddings"][name] = parameter
        return {group: parameters for group, parameters in groups.items() if parameters}

    @contextmanager
    def stopping_at(self, cut, also=()):
        """Run the encoder up to layer `cut`, in [1, depth), only.

        Yields a function of the encoder's inputs that returns a list of states (b, t,
        d): those that enter the layers of `also`, and last those that enter layer
        `cut`.
        """
        entered = {}

        def look(i, module, args, kwargs):
            entered[i] = args[0] if args else kwargs["hidden_states"]
            if i == cut:
                raise _Reached

        def run(**inputs):
            entered.clear()
            try:
                forward(self.encoder, inputs)
            except _Reached:
                return [entered[i] for i in (*also, cut)]
            raise RuntimeError(f"the encoder never reached layer {cut}")

        with self._lock, ExitStack() as hooks:
            for i in {*also, cut}:
                hook = self.layers[i].register_forward_pre_hook(
                    partial(look, i), with_kwargs=True
                )
                hooks.callback(hook.remove)
            yield run

    @contextmanager
    def starting_at(self, cut, states):
        """Run the encoder from layer `cut` on, which gets `states` (b, t, d).

        The encoder is called as usual. It makes masks and relative positions itself, so
        this holds for every architecture; the states that reach the cut are replaced.
        """

        def replace(module, args, kwargs):
            if args:
                return (states, *args[1:]), kwargs
            return args, {**kwargs, "hidden_states": states}

        with self._lock:
            length = self._output_length()
            hook = self.layers[cut].register_forward_pre_hook(replace, with_kwargs=True)
            for layer in self.layers[:cut]:
                layer.forward = _PassOn(length)
            try:
                yield
            finally:
                hook.remove()
                for layer in self.layers[:cut]:
                    del layer.forward

    def _output_length(self):
        """Return the length of the tuple that a layer returns; None for a tensor."""
        if self._length is False:

            def look(module, args, output):
                self._length = len(output) if isinstance(output, tuple) else None

            device = next(self.encoder.parameters()).device
            hook = self.layers[0].register_forward_hook(look)
            modes = {part: part.training for part in self.encoder.modules()}
            self.encoder.eval()  # dropout would move the generator
            try:
                with torch.no_grad():
                    self.encoder(input_ids=torch.ones(1, 2, dtype=int, device=device))
            finally:
                hook.remove()
                for part, mode in modes.items():
                    part.training = mode
        return self._length


class _Reached(Exception):
    """The encoder has run up to the cut."""


class _PassOn:
    """Stand-in for a layer's `forward` that returns the states unchanged.

    `length` is that of the tuple that the layer returns; None for a tensor.
    """

    def __init__(self, length):
        self.length = length

    def __call__(self, hidden_states, *args, **kwargs):
        if self.length is None:
            return hidden_states
        return (hidden_states, *[None] * (self.length - 1))


class TextNetwork(nn.Module):
    """Encoder, pooling and head, built from names.

    `cut` counts the layers from the bottom that are frozen with the embeddings: their
    activations for a text never change. It is `depth` if the whole encoder is frozen.
    `layers` are the indices in [0, depth] whose states are concatenated for the head, 0
    being the output of the embeddings; `lower` are those of them below the cut,
    where states never change. With `bfloat16` products run under autocast; weights stay
    float32.
    """

    def __init__(
        self,
        model,
        *,
        revision,
        head,
        head_params,
        n_outputs,
        dropout,
        pooling,
        freeze,
        layers_attr,
        bfloat16,
        layers=-1,
    ):
        super().__init__()
        checkpoint = open_checkpoint(model, revision)
        if checkpoint.output_width != checkpoint.width:
            raise ValueError(
                "'model' must be an encoder whose layers have the same width to be "
                f"fine-tuned, got {checkpoint.name!r}, a {checkpoint.config.model_type}"
                " model. Train a classifier on its features: see BertFeatures."
            )
        pretrained = checkpoint.module(torch.device("cpu"), torch.float32)
        self.encoder = copy.deepcopy(pretrained)
        if getattr(self.encoder, "pooler", None) is not None:
            self.encoder.pooler = None  # made for next-sentence prediction
        self.stack = LayerStack(self.encoder, layers_attr)
        self.cut = self.stack.freeze(freeze)
        self.layers = choose_layers(layers, self.depth)
        self.lower = sorted({i for i in self.layers if i < self.cut})
        self.pooling = pooling
        self.bfloat16 = bfloat16
        self.checkpoint_digest = checkpoint.digest
        self.n_outputs = n_outputs
        width = checkpoint.width * len(self.layers)
        self.head = make_head(head, width, n_outputs, dropout, head_params)
        self.uses_tokens = getattr(self.head, "uses_tokens", False)
        if not self.uses_tokens:
            checkpoint.refuse_blind_token(pretrained, pooling)
        self.frozen_in_eval = False

    @property
    def depth(self):
        """Number of layers of the encoder."""
        return self.stack.depth

    @property
    def activations_width(self):
        """Number of columns of what :meth:`below_cut` returns."""
        whole = self.cut == self.depth
        n_layers = len(self.layers) if whole else len(self.lower) + 1
        return n_layers * self.encoder.config.hidden_size

    @property
    def takes_packed(self):
        """Whether batches may be packed texts: only where that is sure to be faster."""
        device = next(self.parameters()).device
        return device.type == "cpu" and PackedEncoder.supports(self.encoder)

    def train(self, mode=True):
        """Set training mode; what is below a cached cut stays in evaluation mode."""
        super().train(mode)
        if mode and self.frozen_in_eval and self.cut:
            self.encoder.eval()
            if self.cut < self.depth:
                for layer in self.stack.layers[self.cut :]:
                    layer.train()
        return self

    def forward(self, activations=None, sample_weight=None, **inputs):
        """Return the (b, k) outputs.

        `activations` are those of :meth:`below_cut` for the same texts; None runs all
        layers. `sample_weight` is on its way to the loss and not used here. `inputs`
        are padded (b, t) or packed; with activations, packed texts need only their
        `lengths`.
        """
        return self.decode(*self.represent(activations, **inputs))

    def decode(self, x, mask):
        """Return the (b, k) outputs for the result of :meth:`represent`."""
        with self._autocast():
            outputs = self.head(x, mask) if self.uses_tokens else self.head(x)
        expected = (len(x), self.n_outputs)
        if outputs.shape != expected:
            raise ValueError(
                f"'head' must return outputs of shape (n_texts, n_outputs), here "
                f"{expected}, got {tuple(outputs.shape)} from "
                f"{type(self.head).__name__}. Size its last layer by 'n_outputs'."
            )
        return outputs.float()

    def summarize(self, activations=None, **inputs):
        """Return the (b, m) inputs of the first linear layer of a `DenseHead`."""
        x, mask = self.represent(activations, **inputs)
        with self._autocast():
            return self.head.summarize(x, mask).float()

    def embed(self, activations=None, **inputs):
        """Return the (b, m) inputs of the head's last linear layer."""
        taken = []
        me = threading.get_ident()

        def take(module, args):
            if threading.get_ident() == me:  # not what another thread computes
                taken.append(args[0])

        hook = self.last_linear.register_forward_pre_hook(take)
        try:
            self.decode(*self.represent(activations, **inputs))
        finally:
            hook.remove()
        return taken[-1].float()

    @property
    def last_linear(self):
        """The head's last linear layer."""
        linear = [m for m in self.head.modules() if isinstance(m, nn.Linear)]
        if not linear:
            raise TypeError(
                f"transform needs a linear layer in the head; "
                f"{type(self.head).__name__} has none. Use one as its last layer."
            )
        return linear[-1]

    def represent(self, activations=None, **inputs):
        """Return the head's input: features (b, d) or states (b, t, d), and a mask."""
        with self._autocast():
            if "lengths" in inputs:
                return self._represent_packed(activations, inputs)
            return self._represent_padded(activations, inputs)

    def _represent_packed(self, activations, inputs):
        lengths = inputs["lengths"]
        if activations is not None and self.cut == self.depth:
            if not self.uses_tokens:
                return activations, None  # pooled before it was kept
            states = activations
        else:
            states = self._concatenate(self._run_packed(inputs, activations))
        if self.uses_tokens:
            return unpack(states, lengths)
        return pool_packed(states, lengths, self.pooling), None

    def _run_packed(self, inputs, activations=None, stop=None):
        """Return the wanted states by layer, above the cut given `activations`."""
        states, start = {}, 0
        if activations is not None:
            states, start = self._split(activations), self.cut
        stop = max(self.layers) if stop is None else stop
        reach = {"start": start, "stop": stop, "entering": states.get(self.cut)}
        if torch.is_grad_enabled():
            dtype = torch.bfloat16 if self.bfloat16 else torch.float32
            each = each_in_parts(self.encoder, inputs, **reach, dtype=dtype)
        else:
            each = PackedEncoder(self.encoder).each(inputs, **reach)
        for i, leaving in enumerate(each, start):
            if i in self.layers or i == stop:
                states[i] = leaving
        return states

    def _represent_padded(self, activations, inputs):
        mask = inputs.get("attention_mask")
        if activations is not None and self.cut == self.depth:
            states = activations
            if not self.uses_tokens:
                return states[:, 0], None  # pooled before it was kept
        elif activations is not None:
            below = self._split(activations)
            with self.stack.starting_at(self.cut, below[self.cut]):
                states = self._concatenate({**self._run_padded(inputs), **below})
        else:
            states = self._concatenate(self._run_padded(inputs))
        if self.uses_tokens:
            real = torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
            return states, real if mask is None else mask.bool()
        return pool(states, mask, self.pooling), None

    def _run_padded(self, inputs):
        """Return the wanted states by layer."""
        inner = [i for i in self.layers if i < self.depth]
        out = forward(self.encoder, inputs, output_hidden_states=bool(inner))
        states = {i: out.hidden_states[i] for i in inner}
        return {**states, self.depth: out.last_hidden_state}

    def _concatenate(self, states):
        """Concatenate the states of `layers`: (..., d) each, (..., m * d) together."""
        if len(self.layers) == 1:
            return states[self.layers[0]]
        return torch.cat([states[i] for i in self.layers], dim=-1)

    def _split(self, activations):
        """Split the result of :meth:`below_cut` by layer."""
        if not self.lower:
            return {self.cut: activations}
        indices = [*self.lower, self.cut]
        return dict(zip(indices, activations.chunk(len(indices), dim=-1), strict=True))

    @contextmanager
    def evaluated(self):
        """Set evaluation mode, then restore training mode if that was set."""
        was_training = self.training
        if was_training:
            self.eval()
        try:
            yield
        finally:
            if was_training:
                self.train()

    def below_cut(self, inputs):
        """Return the activations of the frozen layers, in evaluation mode.

        They are the states of the layers `lower` and those that enter layer `cut`, of
        shape (b, t, m * d), or (T, m * d) if packed. If the whole encoder is frozen,
        they are the head's input: the states of `layers`, or the pooled features, of
        shape (b, 1, m * d) or (b, m * d). Several threads may call this at once within
        :meth:`evaluated`. Raises `NotCacheableError` if the encoder does not have one
        state per token, like Longformer.
        """
        with self.evaluated(), torch.no_grad(), self._autocast():
            if "lengths" in inputs:
                return self._below_cut_packed(inputs)
            return self._below_cut_padded(inputs)

    def _below_cut_packed(self, inputs):
        if self.cut < self.depth:
            states = self._run_packed(inputs, stop=self.cut)
            return torch.cat([states[i] for i in (*self.lower, self.cut)], -1).float()
        states = self._concatenate(self._run_packed(inputs))
        if self.uses_tokens:
            return states.float()
        return pool_packed(states, inputs["lengths"], self.pooling)

    def _below_cut_padded(self, inputs):
        if self.cut < self.depth:
            with self.stack.stopping_at(self.cut, also=self.lower) as run:
                states = torch.cat(run(**inputs), dim=-1).float()
            if states.shape[:2] != inputs["input_ids"].shape:
                raise NotCacheableError(
                    f"{type(self.encoder).__name__} does not have one state per token"
                )
            return states
        states = self._concatenate(self._run_padded(inputs))
        if self.uses_tokens:
            return states.float()
        return pool(states, inputs.get("attention_mask"), self.pooling)[:, None]

    def _autocast(self):
        device = next(self.parameters()).device.type
        return torch.autocast(device, torch.bfloat16, enabled=self.bfloat16)
