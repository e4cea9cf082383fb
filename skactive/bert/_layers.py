"""Find an encoder's layers, freeze some of them, and run only those above a cut."""

import threading
from contextlib import ExitStack, contextmanager
from functools import partial
from numbers import Integral

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
        import torch

        return {
            path: module
            for path, module in self.encoder.named_modules()
            if isinstance(module, torch.nn.ModuleList) and len(module)
        }

    def _find(self):
        lists = self._lists()
        for length in (self.depth, 1):  # one module passed several times: ALBERT
            found = [
                path
                for path, module in lists.items()
                if len(module) == length
                and len({type(layer) for layer in module}) == 1
                and any(True for _ in module[0].parameters())
            ]
            # The outermost of nested lists is the stack.
            outer = [
                path
                for path in found
                if not any(path.startswith(f"{other}.") for other in found)
            ]
            if len(outer) == 1:
                return outer[0]
            if outer:
                break
        return None

    def _named(self, path):
        import torch

        try:
            found = self.encoder.get_submodule(path)
        except AttributeError as exc:
            raise ValueError(
                f"'layers_attr' must be the path of the layers in "
                f"{type(self.encoder).__name__}, got {path!r}, which it does not have."
            ) from exc
        n = len(found) if isinstance(found, torch.nn.ModuleList) else None
        if n not in (1, self.depth):
            raise ValueError(
                f"'layers_attr' must name a ModuleList of {self.depth} layers, got "
                f"{path!r}, a {type(found).__name__}"
                + ("." if n is None else f" of {n}.")
            )
        return found

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
        return {group: found for group, found in groups.items() if found}

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
                self.encoder(**inputs)
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
        import torch

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
