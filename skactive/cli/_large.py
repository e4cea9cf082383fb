"""Tables larger than memory: the command `encode`, and their parts of the others."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from .._storage._outputs import find_mode, write_own
from .._text_classifier import packaged_model
from .._utils._labels import predict_labels
from ..bert import BertFeatures, open_checkpoint
from ..datasets import open_pool
from ..features import PrecomputedFeatures, StaticFeatures
from ..labeling._large_project import LargeProject, write_rows
from ..labeling._record import PREDICTED, make_folder, plain_folder, write_output
from ..linear_model import FewLabelClassifier, TunedOneVsRestClassifier
from ..registry import get_strategy
from ._options import one_or_several

_ABOUT = "encoder.json"
_ROWS = 8192  # that are predicted at a time


def run_encode(args):
    """Run the command `encode`."""
    path = Path(args.file).expanduser()
    about = {"model": args.model, "static": args.static, "max_length": args.max_length}
    if args.model is None and not args.static:
        about["model"] = packaged_model()
    elif not args.static:
        open_checkpoint(args.model)
    out, folder = args.out.expanduser(), plain_folder(path)
    if path.exists():  # else opening says so
        make_folder(folder, path)
    pool = open_pool(path, one_or_several(args.text), cache=folder / "pool")
    make_folder(out, path)
    try:
        found = _make_encoder(about).transform_to(pool, out, dtype=args.dtype)
    except KeyboardInterrupt as exc:
        raise KeyboardInterrupt("the same command goes on where it stopped") from exc
    content = json.dumps(about).encode()
    file = _about_file(out)
    _, kept = write_own(file, lambda path: path.write_bytes(content))
    if kept is not None:
        shown = f"{file} was of another program: it is kept as {kept}"
        print(shown, file=sys.stderr)
    width = found.find_rows(pool[:1])[0].shape[1]
    print(f"{out}: {width} features of {len(pool):,} texts")
    return 0


def _about_file(folder):
    """Return the file next to a folder of features that says who wrote them."""
    folder = folder.expanduser()
    return folder.with_name(f"{folder.name}.{_ABOUT}")


def _make_encoder(about):
    """Return the transformer of the options of `encode`."""
    if about["static"]:
        named = {} if about["model"] is None else {"model": about["model"]}
        return StaticFeatures(**named, max_length=about["max_length"])
    return BertFeatures(about["model"], max_length=about["max_length"])


def is_large(args):
    """Whether the texts of the options of `label` stay in their files."""
    return args.features is not None or Path(args.file).expanduser().is_dir()


def make_large_project(args):
    """Return the LargeProject of the options of `label`."""
    text = " ".join(args.text)
    if args.features is None:
        raise ValueError(
            f"argument --features: a folder needs features that were computed before. "
            f"Run `skactive encode {args.file} --text {text} --out FEATURES`, then add "
            "--features FEATURES."
        )
    if not args.features.expanduser().is_dir():
        raise ValueError(
            f"argument --features: there is no folder {str(args.features)!r}. Run "
            f"`skactive encode {args.file} --text {text} --out {args.features}`."
        )
    if args.suggest is not None:
        raise ValueError(
            "argument --suggest: suggestions need a table without --features."
        )
    return LargeProject(
        args.file,
        one_or_several(args.text),
        one_or_several(args.label),
        id=args.id,
        folder=args.folder,
        separator=args.separator,
        regression=args.regression,
    )


def make_large_model(args, target):
    """Return the model of the options of `label` over features that are there.

    It is trained on the labeled texts alone, so that no training reads the pool.
    """
    get_strategy(args.strategy)
    features = PrecomputedFeatures(str(args.features.expanduser()))
    if target == "regression":
        head = Ridge()
    elif target == "multi-label":
        logistic = LogisticRegression(C=10, max_iter=1000)
        head = TunedOneVsRestClassifier(logistic)
    else:
        head = FewLabelClassifier()
    return make_pipeline(features, head)


def add_encoder(model, features):
    """Return a trained model with the encoder of its features, None if it is unknown.

    `features` is the folder that `encode` wrote.
    """
    path = _about_file(features)
    if not path.is_file():
        return None
    try:
        encoder = _make_encoder(json.loads(path.read_bytes()))
    except (ValueError, LookupError, TypeError) as exc:
        raise ValueError(
            f"{str(path)!r} must be what `skactive encode` wrote, got a damaged file "
            f"({exc}). Restore it, or run the same `skactive encode` again."
        ) from exc
    return make_pipeline(encoder, model.steps[-1][1])


def predict_large(source, text, out, model, target, classes, folder):
    """Write the predictions for a folder of files; return what `write_output` returns.

    No text is in memory longer than its prediction takes.
    """
    caches = {n: None for n, x in model.get_params().items() if n.endswith("cache")}
    model.set_params(**caches)
    pool = open_pool(source, text)

    def batches() -> Iterator:
        for start in range(0, len(pool), _ROWS):
            part = pool[start : start + _ROWS]
            found = predict_labels(model, part, classes, target)[:2]
            yield (
                part,
                [
                    {"prediction": label, "probability": score}
                    for label, score in zip(*found, strict=True)
                ],
            )

    kind = _kind_of(predict_labels(model, pool[:1], classes, target)[0][0])
    cells = "prediction", "probability"

    def write(path):
        write_rows(path, pool, batches(), kind, cells)

    message = write_output(folder, PREDICTED, out, write, find_mode(source))
    return len(pool), message


def _kind_of(label):
    """Return the type of a label, in a list for a list of them."""
    if isinstance(label, list):
        return [type(label[0]) if label else str]
    return type(label)
