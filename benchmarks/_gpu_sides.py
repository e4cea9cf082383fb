"""The peers of `gpu.py`: plain loops, the Trainer, SetFit; and what watches a step."""

import cProfile
import pstats
import warnings
from collections import Counter
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from skorch.callbacks import Callback
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile
from transformers import AutoTokenizer, DataCollatorWithPadding

from skactive._encoders._module import pool
from skactive.bert._contrast import LOSSES, draw_batches

WAITING = "synchronizing CUDA operation"


def make_attentions(lengths, heads, width, bench):
    """Map ways of attention to functions of several forward and backward passes."""
    device = bench.device
    n, longest = int(lengths.sum()), int(lengths.max())
    sizes = torch.from_numpy(lengths).to(device)
    starts = functional.pad(sizes.cumsum(0), (1, 0)).int()

    def draw(*shape):
        options = {"device": device, "dtype": torch.bfloat16, "requires_grad": True}
        return [torch.randn(*shape, heads, width, **options) for _ in range(3)]

    padded, packed = draw(len(lengths), longest), draw(n)
    mask = (torch.arange(longest, device=device) < sizes[:, None])[:, None, None]
    jagged = partial(
        torch.nested.nested_tensor_from_jagged, offsets=starts, max_seqlen=longest
    )

    def attend_padded():
        q, k, v = (x.transpose(1, 2) for x in padded)
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    def attend_nested():
        q, k, v = (jagged(x).transpose(1, 2) for x in packed)
        out = functional.scaled_dot_product_attention(q, k, v)
        return out.transpose(1, 2).values()

    def attend_varlen():
        from torch.nn.attention.varlen import varlen_attn

        return varlen_attn(*packed, starts, starts, longest, longest)

    def repeat(attend):
        for _ in range(bench.args.calls):
            attend().sum().backward()

    ways = {"padded": attend_padded, "nested": attend_nested, "varlen": attend_varlen}
    return {name: partial(repeat, attend) for name, attend in ways.items()}


def train_ours(model, texts, labels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # texts are cut on purpose
        model.fit(texts, labels)


class PlainLoop:
    """transformers' encoder, mean pooling and a linear layer in a loop of ten lines."""

    def __init__(self, bench, folder, batch, dtype, compiled=None):
        self.bench, self.folder, self.batch, self.dtype = bench, folder, batch, dtype
        self.compiled, self.ends = compiled, []
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        longest = {"padding": "max_length", "max_length": bench.args.max_length}
        options = longest if compiled else {}
        self.collate = DataCollatorWithPadding(self.tokenizer, **options)

    def train(self, texts, labels):
        """Return the seconds of the steps; `ends` are those of each, if compiled."""
        device = self.bench.device
        encoder = self.bench.encoder(self.folder).train()
        head = torch.nn.Linear(encoder.config.hidden_size, len(set(labels))).to(device)
        trained = [*encoder.parameters(), *head.parameters()]
        optimizer = torch.optim.AdamW(trained, lr=2e-5, fused=True)
        codes = torch.from_numpy(np.unique(labels, return_inverse=True)[1]).to(device)
        ids = self.tokenizer(
            texts, truncation=True, max_length=self.bench.args.max_length
        )["input_ids"]
        run = encoder
        if self.compiled:
            run = torch.compile(encoder, mode=self.compiled)
        self.bench.wait()
        self.ends = [perf_counter()]
        for first in range(0, len(texts), self.batch):
            rows = range(first, min(first + self.batch, len(texts)))
            inputs = self.collate([{"input_ids": ids[i]} for i in rows]).to(device)
            with torch.autocast(
                device.type, torch.bfloat16, enabled=self.dtype == torch.bfloat16
            ):
                states = run(**inputs).last_hidden_state
                outputs = head(pool(states, inputs["attention_mask"], "mean"))
            truth = codes[first : first + self.batch]
            optimizer.zero_grad()
            functional.cross_entropy(outputs.float(), truth).backward()
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            if self.compiled:
                self.bench.wait()
                self.ends.append(perf_counter())
        self.bench.wait()
        return perf_counter() - self.ends[0]


def train_trainer(loop, texts, labels):
    """Train with the Trainer of transformers, which needs accelerate."""
    from transformers import (
        AutoModelForSequenceClassification,
        Trainer,
        TrainingArguments,
    )

    codes = np.unique(labels, return_inverse=True)[1]
    ids = loop.tokenizer(texts, truncation=True, max_length=loop.bench.args.max_length)[
        "input_ids"
    ]
    data = [
        {"input_ids": row, "label": int(code)}
        for row, code in zip(ids, codes, strict=True)
    ]
    settings = TrainingArguments(
        output_dir=str(loop.bench.folder / "trainer"),
        per_device_train_batch_size=loop.batch,
        num_train_epochs=1,
        bf16=loop.dtype == torch.bfloat16,
        use_cpu=loop.bench.device.type == "cpu",
        optim="adamw_torch_fused",
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
    )
    model = AutoModelForSequenceClassification.from_pretrained(
        loop.folder, num_labels=codes.max() + 1
    )
    trainer = Trainer(model, settings, train_dataset=data, data_collator=loop.collate)
    return float(trainer.train().metrics["train_runtime"])


class Steps(Callback):
    """Watch the steps of a training after the first two."""

    def __init__(self, found, on_cuda):
        self.found, self.on_cuda = found, on_cuda

    def __deepcopy__(self, memo):
        return self  # what it watches is not copied

    def on_train_begin(self, net, **kwargs):
        self.n = 0
        kinds = [ProfilerActivity.CPU, *[ProfilerActivity.CUDA] * self.on_cuda]
        self.kernels, self.python = profile(activities=kinds), cProfile.Profile()

    def on_batch_end(self, net, training=False, **kwargs):
        self.n += training
        if self.n == 2:
            self.caught = warnings.catch_warnings(record=True)
            self.warned = self.caught.__enter__()
            warnings.simplefilter("always")
            if self.on_cuda:
                torch.cuda.set_sync_debug_mode("warn")
            self.kernels.start()
            self.python.enable()

    def on_epoch_end(self, net, **kwargs):
        """End before the losses of the epoch are used, which have been waited for."""
        self.python.disable()
        if self.n >= 2:
            self.kernels.stop()
            if self.on_cuda:
                torch.cuda.set_sync_debug_mode("default")
            self.caught.__exit__(None, None, None)
            places = [
                f"{Path(w.filename).name}:{w.lineno}"
                for w in self.warned
                if WAITING in str(w.message)
            ]
            self.found.update(steps=self.n - 2, waits=Counter(places), watch=self)


def look_into(bench, model, texts, labels):
    """Return lines on what a step waits for, its kernels and its Python functions."""
    found = {}
    watched = model.set_params(callbacks=[Steps(found, bench.on_cuda)])
    train_ours(watched, texts, labels)
    model.set_params(callbacks=None)
    steps = max(found["steps"], 1)
    places = ", ".join(f"{place} {n}" for place, n in found["waits"].most_common(3))
    lines = [f"waits in {found['steps']} steps: {places or 'none were found'}"]
    key = "self_device_time_total" if bench.on_cuda else "self_cpu_time_total"
    events = found["watch"].kernels.key_averages()
    busy = sum(getattr(event, key) for event in events)
    lines.append(f"{busy / steps / 1e3:.2f} ms of kernels a step, the longest:")
    for event in islice(sorted(events, key=lambda e: -getattr(e, key)), 4):
        taken = getattr(event, key) / steps / 1e3
        lines.append(f"  {taken:7.3f} ms {event.count / steps:6.1f}x {event.key[:60]}")
    stats = pstats.Stats(found["watch"].python)
    spent = sorted(stats.stats.items(), key=lambda item: -item[1][2])
    for (file, line, name), (_, calls, own, *_) in spent[:4]:
        place = f"{Path(file).name}:{line} {name}"[:60]
        lines.append(f"  {own / steps * 1e3:7.3f} ms {calls / steps:6.1f}x {place}")
    return lines


def adapt_plainly(bench, features, texts, labels):
    """Train the same layers with the same batches and loss, by transformers alone."""
    device = bench.device
    tokenizer = AutoTokenizer.from_pretrained(features.model)
    encoder = bench.encoder(features.model).eval()
    depth = encoder.config.num_hidden_layers
    for part, parameter in encoder.named_parameters():
        layer = [int(word) for word in part.split(".") if word.isdigit()]
        parameter.requires_grad_(bool(layer) and layer[0] >= depth // 3)
    trained = [p for p in encoder.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4, fused=True)
    Y = np.unique(labels)[None, :] == labels[:, None]
    size = min(features.batch_size, len(texts))
    drawn = draw_batches(Y, size, features.n_steps, 0).reshape(features.n_steps, size)
    targets = torch.from_numpy(np.column_stack([Y, np.ones(len(Y))])).float().to(device)
    for rows in drawn:
        inputs = tokenizer(
            [texts[i] for i in rows],
            truncation=True,
            max_length=features.max_length,
            padding=True,
            return_tensors="pt",
        ).to(device)
        is_half = features.precision == "bfloat16"
        with torch.autocast(device.type, torch.bfloat16, enabled=is_half):
            states = encoder(**inputs).last_hidden_state
        pooled = pool(states, inputs["attention_mask"], "mean")
        loss = LOSSES["cosine"]()(functional.normalize(pooled), targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def adapt_setfit(bench, features, texts, labels):
    """Train as SetFit does, as many steps of as many pairs."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    codes = np.unique(labels, return_inverse=True)[1]
    model = SetFitModel.from_pretrained(features.model, device=str(bench.device))
    settings = TrainingArguments(
        output_dir=str(bench.folder / "setfit"),
        batch_size=features.batch_size,
        max_steps=features.n_steps,
        use_amp=features.precision == "bfloat16",
        report_to="none",
        save_strategy="no",
    )
    data = Dataset.from_dict({"text": texts, "label": codes.tolist()})
    Trainer(model, settings, train_dataset=data).train()
