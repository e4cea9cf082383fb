"""What a sentence-transformers model does with the states of its encoder."""

import os
import re
import warnings

from ._pretrained import digest_file

_POOLINGS = {
    "cls": "cls",
    "max": "max",
    "mean": "mean",
    "lasttoken": "last",
    # The names of earlier versions, in the order in which they are concatenated.
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_lasttoken": "last",
}
_PROMPTS = "config_sentence_transformers.json"
_ACTIVATIONS = "torch.nn.modules.activation."


class SentenceModules:
    """The modules after the encoder of a sentence-transformers model.

    `exist` is whether there is a modules.json. `poolings` say how states become one
    row; several are concatenated, and there are none if they are unknown. `steps` are
    type and configuration of the modules after the pooling, `unsupported` is the first
    thing that these features cannot reproduce. `prompts` are the texts of prompts by
    name; `prompt` is the text of the chosen one, or else of the default one.
    """

    def __init__(self, source, prompt=None):
        self.source = source
        self.poolings, self.steps, self.unsupported = (), [], None
        self.max_length, self.lower = float("inf"), False
        modules = source.read_json("modules.json", list)
        self.exist = modules is not None
        self._read_prompts(prompt)
        if not self.exist:
            return
        with source.explained("modules.json"):
            kinds = [str(module["type"]) for module in modules]
            paths = [str(module["path"]) for module in modules]
        # Whoever moved the classes kept their names.
        own = [kind.startswith("sentence_transformers.") for kind in kinds]
        names = [kind.rpartition(".")[2] for kind in kinds]
        if names[:2] != ["Transformer", "Pooling"] or paths[0] or not all(own[:2]):
            self._refuse(f"the modules {', '.join(kinds)}")
            return
        self._read_transformer()
        self._read_pooling(self._read(f"{paths[1]}/config.json"))
        for kind, name, path, is_own in zip(kinds, names, paths, own, strict=True):
            if name in ("Transformer", "Pooling", "Dropout") and is_own:
                continue
            config = {**self._read(f"{path}/config.json"), "path": path}
            is_supported = is_own and name in ("Dense", "Normalize")
            if not is_supported or config.get("use_residual") or _reads_others(config):
                self._refuse(f"the module {kind} in {path!r}")
            activation = str(config.get("activation_function", f"{_ACTIVATIONS}Tanh"))
            if name == "Dense" and not (
                activation.startswith(_ACTIVATIONS)
                or activation == "torch.nn.modules.linear.Identity"
            ):
                self._refuse(f"the activation {activation} in {path!r}")
            config["activation_function"] = activation.rpartition(".")[2]
            self.steps.append((name, config))

    def _read(self, filename):
        return self.source.read_json(filename, dict) or {}

    def _refuse(self, what):
        self.unsupported = self.unsupported or what

    def _read_prompts(self, prompt):
        settings = self._read(_PROMPTS) if self.exist or prompt else {}
        prompts = settings.get("prompts") or {}
        self.prompts = {name: text or "" for name, text in prompts.items()}
        self.is_default = prompt is None
        if prompt is None:
            self.prompt = self.prompts.get(settings.get("default_prompt_name"), "")
        elif re.fullmatch(r"[\w-]+", prompt) and prompt not in self.prompts:
            names = ", ".join(map(repr, self.prompts)) or "none"
            raise ValueError(
                f"'prompt' must be the name of a prompt of {self.source.name!r} or the "
                f"text of one, such as 'query: ', got {prompt!r}. Names are: {names}. "
                "End a text of one word with a space."
            )
        else:
            self.prompt = self.prompts.get(prompt, prompt)

    def _read_transformer(self):
        settings = self._read("sentence_bert_config.json")
        self.max_length = settings.get("max_seq_length") or float("inf")
        self.lower = bool(settings.get("do_lower_case"))
        if settings.get("module_output_name", "token_embeddings") != "token_embeddings":
            self._refuse(f"the output {settings['module_output_name']!r}")

    def _read_pooling(self, config):
        modes = config.get("pooling_mode")
        if modes is None:
            modes = [name for name in config if name.startswith("pooling_mode_")]
            order = [*_POOLINGS, *modes]  # what is unknown comes last
            modes = sorted(filter(config.get, modes), key=order.index) or ["mean"]
        modes = [modes] if isinstance(modes, str) else list(modes)
        if unknown := [mode for mode in modes if mode not in _POOLINGS]:
            self._refuse(f"the pooling {unknown[0]!r}")
        else:
            self.poolings = tuple(_POOLINGS[mode] for mode in modes)
        if self.prompt and config.get("include_prompt") is False:
            self._refuse("a pooling that leaves out the prompt")

    def differ_from(self, pooling):
        """Whether the features of the modules differ from this pooling alone.

        Scaling each row to length 1 does not count: it leaves all directions.
        """
        names = {name for name, _ in self.steps}
        others = bool(self.unsupported or self.lower or names - {"Normalize"})
        return self.exist and (others or self.poolings != (pooling,))

    def warn(self, name, pooling, stacklevel):
        """Warn if the model `name` was trained for other features than a pooling's."""
        if pooling == "auto" and self.unsupported:
            message = (
                f"pooling='auto' is the mean for {name!r}, and gives other features "
                f"than sentence-transformers: {self.unsupported} is not supported."
            )
        elif pooling != "auto" and (
            self.differ_from(pooling) or (self.is_default and self.prompt)
        ):
            message = (
                f"pooling={pooling!r} gives other features than those that the "
                f"sentence-transformers model {name!r} was trained for. Pass "
                "pooling='auto' for these."
            )
        else:
            return
        warnings.warn(message, UserWarning, stacklevel=stacklevel + 1)

    def width(self, encoder_width):
        """Count the features that come out."""
        outputs = [
            config["out_features"] for name, config in self.steps if name == "Dense"
        ]
        return int([len(self.poolings) * encoder_width, *outputs][-1])

    def recipe(self):
        """List what the features depend on besides pooling, prompt, length and text."""
        recipe = {"lower": self.lower, "steps": []}
        for name, config in self.steps:
            if name == "Normalize":
                recipe["steps"].append([name])
            else:
                digest = digest_file(self._weights(config))
                recipe["steps"].append([name, config["activation_function"], digest])
        return {key: value for key, value in recipe.items() if value}

    def _weights(self, config):
        path = config["path"]
        for filename in ("model.safetensors", "pytorch_model.bin"):
            if weights_path := self.source.path(f"{path}/{filename}"):
                return weights_path
        with self.source.explained(f"module in {path!r}"):
            raise FileNotFoundError("it has no weights")

    def files(self):
        """Map the names of the files that the modules read to their paths.

        If a module is not supported, there is only the file with the prompts: a copy
        without the others has the same features.
        """
        if self.unsupported:
            path = self.source.path(_PROMPTS)
            return {} if path is None else {_PROMPTS: path}
        names = ["modules.json", "sentence_bert_config.json", _PROMPTS]
        modules = self.source.read_json("modules.json", list) or []
        names += [f"{module['path']}/config.json" for module in modules[1:]]
        paths = {name: self.source.path(name) for name in names}
        for name, config in self.steps:
            if name == "Dense":
                path = self._weights(config)
                paths[f"{config['path']}/{os.path.basename(path)}"] = path
        return {name: path for name, path in paths.items() if path is not None}

    def build(self, device):
        """Return a function of the steps for pooled rows (b, m), float32."""
        from torch import nn

        functions = []
        for name, config in self.steps:
            if name == "Normalize":
                functions.append(nn.functional.normalize)
            else:
                functions.append(self._dense(config, device))

        def apply(rows):
            for function in functions:
                rows = function(rows)
            return rows

        return apply

    def _dense(self, config, device):
        import torch
        from safetensors.torch import load_file
        from torch import nn

        path = self._weights(config)
        with self.source.explained(f"module in {config['path']!r}"):
            if path.endswith(".safetensors"):
                tensors = load_file(path)
            else:
                tensors = torch.load(path, map_location="cpu", weights_only=True)
            shape = config["out_features"], config["in_features"]
            weight, bias = tensors["linear.weight"], tensors.get("linear.bias")
            if tuple(weight.shape) != shape:
                raise ValueError(f"its weights have the shape {tuple(weight.shape)}")
            activation = getattr(nn, config["activation_function"])()
        weight = weight.to(device, torch.float32)
        bias = None if bias is None else bias.to(device, torch.float32)
        return lambda rows: activation(nn.functional.linear(rows, weight, bias))


def _reads_others(config):
    keys = ("module_input_name", "module_output_name")
    return any(config.get(key) not in (None, "sentence_embedding") for key in keys)
