"""The commands `simulate`, `demo` and `report`: compare strategies on labeled texts."""

import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from .._encoders._pretrained import open_checkpoint
from .._utils._labels import find_target
from ..bert import BertFeatures
from ..datasets import load_docstrings, load_table
from ..learner import ActiveLearner
from ..plotting import import_figure, write_report
from ..registry import get_strategy
from ..semi_supervised import make_text_classifier, packaged_model
from ..simulation import OtherSettingsError, run_experiment
from ._parser import UsageError, encoder_options, one_or_several, say, show_line

_SCORING = {
    "single-label": ["accuracy", "f1_macro"],
    "multi-label": ["f1_micro", "f1_macro"],
    "regression": ["r2", "neg_root_mean_squared_error", "spearman"],
}
_STRATEGIES = {False: ["entropy", "margin"], True: ["lcmd", "coreset"]}


@dataclass(frozen=True, kw_only=True)
class SimulateSettings:
    """The options of `skactive simulate`; the defaults are those of `skactive demo`."""

    pool_size: int
    test: int
    model: str | None
    max_length: int
    prompt: str | None
    dimensions: int | None
    classifier: str
    strategies: list[str] | None
    scoring: list[str] | None
    initial: int
    rounds: int
    batch_size: int
    seeds: int
    n_jobs: int
    folder: Path
    file: str = "docstrings"
    text: list[str] | None = None
    label: list[str] | None = None
    separator: str | None = None
    regression: bool = False
    test_file: str | None = None


def run_simulate(**options):
    """Run the command `simulate`."""
    settings = SimulateSettings(**options)

    def load():
        form = [settings.text, settings.label, settings.separator, settings.regression]
        X, y, names = read_labeled(settings.file, *form)
        if settings.test_file is None:
            return X, y, None
        X_test, y_test, others = read_labeled(settings.test_file, *form)
        if y.ndim == 2:
            y_test = _align_columns(y_test, others, names)
        return X, y, (X_test, y_test)

    return _compare(settings, load, "simulate")


def run_demo(**options):
    """Run the command `demo`."""

    def load():
        say("Reading docstrings of four libraries ...")
        return *load_docstrings(return_X_y=True), None

    return _compare(SimulateSettings(**options), load, "demo")


def run_report(folder, scoring=None):
    """Run the command `report`: write the report of a folder, and print it."""
    text, written = write_report(folder, scoring=scoring)
    show_line(text)
    show_line(f"Written: {', '.join(map(str, written))}")
    return 0


def _compare(settings, load, command):
    """Run the experiment of the settings, and print its report."""
    # Check the options before any work.
    strategies = _check_strategies(settings, command)
    import_figure()
    prepare_folder(settings.folder)
    model = packaged_model() if settings.model is None else settings.model
    open_checkpoint(model)
    data = _split(*load(), settings)
    target = "regression" if settings.regression else find_target(None, data[1])
    # Features are cached on disk for worker processes and for a second call.
    options = {"cache": str(settings.folder / "features"), **encoder_options(settings)}
    estimator = _make_estimator(settings.classifier, target, model, options)
    learner = ActiveLearner(estimator, batch_size=settings.batch_size)
    try:
        run_experiment(
            learner,
            {Path(settings.file).stem: data},
            strategies=list(dict.fromkeys(["random", *strategies])),
            seeds=settings.seeds,
            n_initial=settings.initial,
            n_rounds=settings.rounds,
            scoring=settings.scoring or _SCORING[target],
            n_jobs=settings.n_jobs,
            folder=settings.folder,
            verbose="auto",
        )
    except OtherSettingsError as exc:
        raise ValueError(f"argument --folder: {exc}") from exc
    except KeyboardInterrupt as exc:
        raise KeyboardInterrupt(
            f"finished runs are kept in {settings.folder}; the same command continues"
        ) from exc
    return run_report(settings.folder)


def _make_estimator(classifier, target, model, options):
    if target == "regression":
        features = BertFeatures(model, **options)
        return make_pipeline(features, Ridge())
    if classifier != "logistic":
        adapt = False if classifier == "frozen" else None
        return make_text_classifier(model, target == "multi-label", adapt, **options)
    last = LogisticRegression()
    if target == "multi-label":
        last = OneVsRestClassifier(last)
    features = BertFeatures(model, pooling="mean", normalize=False, **options)
    return make_pipeline(features, last)


def _check_strategies(settings, command):
    if settings.strategies is None:
        return _STRATEGIES[settings.regression]
    names = " ".join(settings.strategies).replace(",", " ").split()
    hint = f"See `skactive {command} --help`."
    if not names:
        raise UsageError(f"argument --strategies: expected at least one name. {hint}")
    for name in names:
        try:
            get_strategy(name)
        except ValueError as exc:
            raise UsageError(f"argument --strategies: {exc} {hint}") from exc
    return names


def prepare_folder(folder):
    """Create the folder of `--folder`, and check that it is writable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as exc:
        raise OSError(
            f"argument --folder: must be a folder to write into, got {str(folder)!r} "
            f"({exc.strerror}). Name another folder."
        ) from exc


def read_labeled(file, text, label, separator=None, regression=False):
    """Return texts and labels of the rows that have one, and the names of columns."""
    label = one_or_several(label)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = load_table(
            file,
            text=one_or_several(text),
            label=label,
            separator=separator,
            regression=regression,
            missing_labels="keep",
        )
    for warning in caught:
        say(warning.message)
    known = [i for i, value in enumerate(table.target) if not _is_missing(value)]
    if not known:
        raise ValueError(f"column {label!r} of {file!r} holds no label.")
    if n_missing := len(table.target) - len(known):
        say(
            f"{n_missing:,} of {len(table.target):,} rows have no {label!r} and are "
            "left out"
        )
    X, y = [table.data[i] for i in known], np.array([table.target[i] for i in known])
    return (X, y.astype(int), table.target_names) if y.ndim == 2 else (X, y, None)


def _is_missing(value):
    return value is None or (not isinstance(value, str) and np.isnan(value).any())


def _align_columns(y, names, wanted):
    """Return an indicator matrix with the columns `wanted`; others are left out."""
    place = {name: j for j, name in enumerate(names)}
    if other := sorted(set(names) - set(wanted)):
        warnings.warn(
            "classes of the test texts are left out, because no text of the pool has "
            f"them: {', '.join(map(repr, other))}.",
            UserWarning,
            stacklevel=2,
        )
    nothing = np.zeros(len(y), dtype=int)
    columns = [y[:, place[x]] if x in place else nothing for x in wanted]
    return np.stack(columns, axis=1)


def _split(X, y, test, settings):
    """Return pool and test data without duplicates, shuffled with seed 0."""
    first = {}
    for i, text in enumerate(X):
        first.setdefault(_key(text), i)
    X, y = _take(X, y, list(first.values()))
    order = np.random.default_rng(0).permutation(len(X))
    if test is None:
        n_test = min(settings.test, len(X) // 3)
        X_test, y_test = _take(X, y, order[:n_test])
        X, y = _take(X, y, order[n_test : n_test + settings.pool_size])
    else:
        X_test, y_test = _take(*test, np.arange(min(settings.test, len(test[0]))))
        held_out = set(map(_key, X_test))
        order = [i for i in order if _key(X[i]) not in held_out]
        X, y = _take(X, y, order[: settings.pool_size])
    if y.ndim == 2:
        y, y_test = _without_constant_columns(y, y_test)
    elif not settings.regression:
        X_test, y_test = _without_unknown_labels(X_test, y_test, y)
    needed = settings.initial + settings.rounds * settings.batch_size
    if len(X) < needed:
        raise ValueError(
            f"the data must hold at least {needed} different texts in addition to "
            f"{len(X_test)} test texts, for {settings.initial} first labels and "
            f"{settings.rounds} rounds of {settings.batch_size}; got {len(X)}. Use "
            "more texts, or lower --initial, --batch-size, --rounds or --test"
            f"{_example_of_fitting(len(X), settings)}."
        )
    say(f"{len(X):,} texts in the pool, {len(X_test):,} test texts")
    return X, y, X_test, y_test


def _example_of_fitting(n, settings):
    """Return an example of options with which `n` texts are enough, or ""."""
    if n < 2:
        return ""
    rounds = min(settings.rounds, max(n // 10 - 1, 1))  # if possible, 10 labels in each
    batch_size = min(settings.batch_size, n // (rounds + 1))
    initial = min(settings.initial, n - rounds * batch_size)
    return f": --initial {initial} --batch-size {batch_size} --rounds {rounds} fits"


def _without_constant_columns(y, y_test):
    """Leave out classes that all texts or none of the pool have, with a warning."""
    kept = y.any(axis=0) & ~y.all(axis=0)
    if not kept.all():
        warnings.warn(
            f"{(~kept).sum()} of {len(kept)} classes are left out, because all texts "
            "of the pool or none have them.",
            UserWarning,
            stacklevel=2,
        )
    return y[:, kept], y_test[:, kept]


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
