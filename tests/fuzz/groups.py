"""The groups of calls: each yields targets with small valid arguments."""

import copy
import json
from functools import partial

import joblib
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

import skactive
from skactive import (
    ActiveLearner,
    LabelingSession,
    analysis,
    get_strategy,
    get_strategy_names,
    plotting,
    registry,
    simulate,
    simulation,
)
from skactive._utils import _plugins
from skactive.datasets import load_table
from skactive.posterior import sample_predictions, sample_proba, sampler
from skactive.session import SourceAnswer
from skactive.simulation import Run, SimulatedLearner
from skactive.stopping import RULES

from .more_groups import estimators, front_ends, pools
from .targets import Target

_RNG = np.random.default_rng(0)
Y = np.array(["ham", "spam"] * 8)
X = _RNG.normal(size=(16, 2)) + np.where(Y == "ham", 0, 1.5)[:, None]
POOL = _RNG.normal(size=(12, 2)) + 0.5
TEXTS = [f"{word} {i % 5} mail" for i, word in enumerate(Y)]
TEXT_POOL = [f"{word} {i} note" for i, word in enumerate([*Y, *Y][:12])]


def _learner(estimator=None, **params):
    estimator = estimator or LogisticRegression()
    return ActiveLearner(estimator, **{"batch_size": 2, "random_state": 0, **params})


def _fitted(*data, **params):
    fitted = _learner(**params).fit(*data)
    return lambda: copy.deepcopy(fitted)


def _state(learner):
    names = ("X_labeled_", "y_labeled_", "n_rounds_", "classes_")
    known = [getattr(learner, name, None) for name in names]
    return joblib.hash([known, getattr(learner, "estimator_", None)])


def _check_picks(result, subject, arguments):
    picks = np.asarray(result)
    n_pool = len(arguments["X"]) if hasattr(arguments["X"], "__len__") else 0
    if picks.dtype.kind not in "iu" or len(set(picks.tolist())) < len(picks):
        return f"picks {picks.tolist()} repeat or are no int"
    if len(picks) and not 0 <= picks.min() <= picks.max() < n_pool:
        return f"picks {picks.tolist()} are outside of the pool"
    return None


def _method(name):
    return lambda subject, **arguments: getattr(subject, name)(**arguments)


def _function(function):
    return lambda subject, **arguments: function(**arguments)


def learner(folder):
    def make(subject, X, y, **params):
        return ActiveLearner(**params).fit(X, y).predict(X)

    text_model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    weights = {"sample_weight": np.ones(4)}
    for kind, model, data, more, pool in (
        ("numbers", LogisticRegression(), (X, Y), weights, POOL),
        ("texts", text_model, (TEXTS, Y.tolist()), {}, TEXT_POOL),
    ):
        changes = {"subject": _fitted(*data, estimator=model), "state": _state}
        labeled = {"ordered": ("X", "y"), "repeats": True}

        def given(X, y, **more):
            return lambda: {"X": copy.copy(X), "y": copy.copy(y), **more}

        yield Target(f"fit {kind}", given(*data), _method("fit"), **changes, **labeled)
        yield Target(
            f"teach {kind}",
            given(data[0][:4], data[1][:4], refit=True, **more),
            lambda s, data=data, **a: s.teach(**a).predict(data[0]),
            **changes,
            **labeled,
        )
        yield Target(
            f"query {kind}",
            lambda pool=pool: {
                "X": copy.copy(pool),
                "n_queries": 3,
                "candidates": np.arange(8),
            },
            _method("query"),
            **changes,
            ordered=("X", "candidates"),
            check=_check_picks,
            repeats=True,
        )
    yield Target(
        "refit",
        lambda: {"sample_weight": np.ones(16)},
        lambda s, **a: s.refit(**a).predict(X),
        subject=_fitted(X, Y),
        state=_state,
        ordered=("sample_weight",),
    )
    yield Target(
        "ActiveLearner",
        lambda: {
            **_learner().get_params(deep=False),
            **{"X": X.copy(), "y": Y.copy(), "random_state": 0},
        },
        make,
        ordered=("X", "y"),
        repeats=True,
    )


# What these need cannot be made from a learner on numbers alone.
_OTHER_NEEDS = {"alps", "egl_embedding", "mc_dropout"}


def strategies(folder):
    def ask(subject, X, n_queries, candidates, *, name, target, **params):
        estimator, labels = models[target]
        model = _learner(estimator, strategy=get_strategy(name, **params))
        if not subject:  # the cold start would hide the strategy
            model.set_params(cold_start=model.strategy)
        model.fit(X_LABELED, labels)
        return model.query(X, n_queries, candidates=candidates)

    X_LABELED = X.copy()
    several = OneVsRestClassifier(LogisticRegression()), (X > 0.5).astype(int)
    models = {"single-label": (LogisticRegression(), Y), "multi-label": several}
    models["regression"] = Ridge(), X[:, 0]
    for name in get_strategy_names():
        entry = _plugins.find(name)
        if not entry.builtin or name in _OTHER_NEEDS:
            continue
        params = get_strategy(name).get_params(deep=False)
        defined = get_strategy(name).targets
        target = next(target for target in models if target in defined)
        yield Target(
            name,
            lambda params=params: {
                **params,
                **{"X": POOL.copy(), "n_queries": 3, "candidates": np.arange(10)},
            },
            partial(ask, name=name, target=target),
            subject=lambda: True,
            check=_check_picks,
            ordered=("X", "candidates"),
            repeats=True,
        )


def simulations(folder):
    data = {"X": X, "y": Y, "X_test": POOL, "y_test": Y[:12]}

    def simulated(subject, folder=None, **arguments):
        return simulate(**arguments, folder=folder).queried

    yield Target(
        "simulate",
        lambda: {
            "learner": _learner(),
            **{name: value.copy() for name, value in data.items()},
            **{"n_initial": 4, "n_rounds": 2, "scoring": "accuracy"},
            **{"initial": "stratified", "batch_size": 2, "pool_size": 12},
            **{"noise": 0.1, "stopping": "plateau", "precompute": True, "verbose": 0},
            **{"final_estimator": LogisticRegression(), "folder": None},
        },
        simulated,
        ordered=("X", "y", "X_test", "y_test", "initial"),
        same_kind={"y_test": "y"},
        repeats=True,
    )
    yield Target(
        "SimulatedLearner",
        lambda: {
            "estimator": _learner(),
            "n_initial": 4,
            "n_rounds": 1,
            "X": X,
            "y": Y,
        },
        lambda s, X, y, **a: SimulatedLearner(**a).fit(X, y).predict(X),
        ordered=("X", "y"),
        repeats=True,
    )
    yield Target(
        "run_experiment",
        lambda: {
            **{"learners": {"lr": _learner()}, "data": {"two": (X, Y, POOL, Y[:12])}},
            **{"strategies": ["random", "margin"], "seeds": 1, "n_initial": 4},
            **{"n_rounds": 1, "initial": None, "batch_size": 2, "pool_size": None},
            **{"scoring": None, "noise": None, "stopping": None, "n_jobs": 1},
            **{"final_estimator": None, "folder": None, "verbose": 0},
        },
        _function(simulation.run_experiment),
    )
    yield Target(
        "read_runs",
        lambda: {"folder": _experiment(folder)},
        _function(simulation.read_runs),
        repeats=True,
    )
    trained = _fitted(X, Y)()
    run = simulate(_learner(), **data, n_initial=4, n_rounds=2)
    required = {"label_budget": {"n_labels": 5}, "round_budget": {"n_rounds": 5}}
    required["cost_rule"] = {"label_cost": 1.0, "error_cost": 2.0}
    required |= {"time_budget": {"seconds": 5.0}}
    # It needs the run of a session: test_audit_goal.py has its arguments.
    for name in sorted(RULES.keys() - {"audit_goal"}):
        rule = RULES[name](**required.get(name, {}))

        def judge(subject, run, learner, X, *, name=name, **params):
            rule = RULES[name](**params)
            rule.start()
            return rule.check(run, learner, X)

        yield Target(
            name,
            lambda rule=rule: {
                **rule.get_params(deep=False),
                **{"run": run, "learner": trained, "X": X.copy()},
            },
            judge,
        )


def _experiment(folder):
    place = folder / "experiment"
    if not place.exists():
        options = {"n_initial": 4, "n_rounds": 1, "folder": place}
        data = (X, Y, POOL, Y[:12])
        simulation.run_experiment(
            _learner(), data, strategies=["random", "margin"], seeds=2, **options
        )
    return str(place)


def _runs():
    return [
        Run(
            [
                {
                    "queried": list(range(10 * i, 10 * i + 10)),
                    "scores": {"accuracy": 0.5 + 0.1 * i + 0.02 * seed, "f1": 0.4},
                    "fit_seconds": 0.1,
                    "query_seconds": 0.1,
                }
                for i in range(3)
            ],
            info={"strategy": name, "seed": seed, "data": "d", "learner": "l"},
        )
        for name in ("random", "margin")
        for seed in range(3)
    ]


def summaries(folder):
    a, b = _runs()[:3], _runs()[3:]
    features = _RNG.normal(size=(40, 3))
    labels = np.array(["ham", "spam"] * 20)
    seeded = {"confidence_level": 0.9, "n_resamples": 99, "random_state": 0}
    curve = {"runs": a, "scoring": "accuracy", "grid": [10, 20], "method": "bootstrap"}
    two = {"runs_a": a, "runs_b": b, "cumulative": True, "include_initial": False}
    against = {"runs": b, "baseline_runs": a, "scoring": "accuracy"}
    shown = {"groupby": "strategy", "ax": None}
    changes = {"layer": ["0", "linear"], "part": ["encoder", "head"]}
    changes |= {"mean": [0.1, 0.2], "variance": [0.1, 0.1]}
    calls = {
        "area_under_curve": {"curve": a[0], "scoring": "f1", "start": 10, "stop": 20},
        "holm": {"p_values": [0.1, 0.2]},
        "class_coverage": {"run": a[0], "y": labels},
        "describe_batches": {
            "run": a[0],
            "features": features,
            "measures": None,
            "n_neighbors": 3,
        },
        "diagnose": {
            **against,
            **seeded,
            **{
                "criterion": "curve",
                "worthwhile": 0.005,
            },
        },
        "equal_time": {
            **{"runs": {"m": b, "random": a}, "seconds": [1.0], "scoring": "f1"},
            **{"chosen_by": None, "phases": ("fit",)},
        },
        "group_runs": {"runs": a + b, "groupby": "strategy"},
        "labels_needed": {
            **{
                "runs": b,
                "baseline": a,
                "at": 12,
                "scoring": "f1",
                "groupby": "strategy",
            },
            **{"confidence_level": 0.9, **seeded},
        },
        "labels_to_reach": {"curve": a[0], "score": 0.6, "scoring": "accuracy"},
        "learning_curve": {**curve, **seeded},
        "ledger_table": {"runs": a + b},
        "mean_jaccard": two,
        **{
            n: {"a": [0.1, 0.5, 0.6], "b": [0.2, 0.4, 0.9]}
            for n in ("paired_t", "welch_t")
        },
        "wilcoxon": {"a": [0.1, 0.5, 0.6], "b": [0.2, 0.4, 0.9]},
    }
    for name, valid in calls.items():
        function = _function(getattr(analysis, name))
        yield Target(name, partial(copy.copy, valid), function, repeats=True)
    plots = {
        "ActiveLearningCurveDisplay.from_runs": {
            **{
                "runs": a + b,
                "scoring": "f1",
                "band": "bootstrap",
                "confidence_level": 0.9,
            },
            **{"reference": None, "baseline": "random", "score_name": None},
            **shown,
        },
        "LabelsNeededDisplay.from_runs": {
            **{"runs": b, "baseline": a, "at": 12, "scoring": "f1"},
            **{"confidence_level": 0.9, **shown},
        },
        "LayerChangeDisplay.from_changes": {"changes": changes, "log": False},
        "LedgerDisplay.from_runs": {"runs": a + b, "log": False, **shown},
        "OverlapDisplay.from_runs": {
            **{"runs": b, "reference": a, "baseline": "random", **shown},
        },
        "ScoreTimeDisplay.from_runs": {
            **{"runs": a + b, "scoring": "f1", "phases": ("fit",), **shown},
            "baseline": "random",
        },
    }
    for name, valid in plots.items():
        display, method = name.split(".")
        function = _closing(getattr(getattr(plotting, display), method))
        yield Target(name, partial(copy.copy, valid), function)
    yield Target(
        "write_report",
        lambda: {"folder": _experiment(folder), "scoring": None},
        _closing(plotting.write_report),
    )


def _closing(function):
    def call(subject, **arguments):
        import matplotlib.pyplot as plt

        try:
            function(**arguments)
        finally:
            plt.close("all")

    return call


def bert(folder):
    from skactive.bert import BertClassifier, BertFeatures, BertRegressor

    from ..conftest import save_encoder

    model = save_encoder(folder / "bert")
    short = {"max_epochs": 1, "batch_size": 8, "random_state": 0, "classes": None}

    def train(subject, X, y, *, cls, **params):
        return cls(**params).fit(X, y).predict(X[:2])

    for cls, y in ((BertClassifier, Y.tolist()), (BertRegressor, [0.5, 1.0] * 8)):
        params = cls(model, device="cpu", precision="float32").get_params(deep=False)
        params |= {k: v for k, v in short.items() if k in params}
        yield Target(
            cls.__name__,
            lambda params=params, y=y: {**params, "X": TEXTS[:8], "y": y[:8]},
            partial(train, cls=cls),
            ordered=("X", "y"),
        )
    params = BertFeatures(model, device="cpu", precision="float32").get_params()
    yield Target(
        "BertFeatures",
        lambda: {**params, "X": TEXTS[:4]},
        lambda s, X, **a: BertFeatures(**a).fit_transform(X),
        check=lambda result, s, a: (
            None if np.isfinite(result).all() else "features that are not finite"
        ),
        ordered=("X",),
        repeats=True,
    )


def tables(folder):
    frame = pd.DataFrame({"text": TEXTS, "other": TEXTS, "label": Y, "n": range(16)})
    lines = "".join(json.dumps(row) + "\n" for row in frame.to_dict("records"))
    frame.to_parquet(folder / "table.parquet")
    contents = {
        ".csv": frame.to_csv(index=False).encode(),
        ".tsv": frame.to_csv(index=False, sep="\t").encode(),
        ".jsonl": lines.encode(),
        ".parquet": (folder / "table.parquet").read_bytes(),
    }
    for suffix, content in contents.items():
        path = folder / f"table{suffix}"
        path.write_bytes(content)
        yield Target(
            f"load_table {suffix}",
            lambda path=path: {
                **{"path": str(path), "text": "text", "label": "label"},
                "return_X_y": True,
            },
            _function(load_table),
            repeats=True,
        )
        damaged = folder / f"damaged{suffix}"

        def read(subject, seed, *, content=content, damaged=damaged):
            damaged.write_bytes(_damage(content, seed))
            return load_table(damaged, text="text", label="label", return_X_y=True)

        for _ in range(2):
            yield Target(
                f"damaged {suffix}",
                lambda: {"seed": 0},
                read,
                aliases={"seed": [str(damaged), damaged.name]},
                pools={"seed": {str(i): partial(int, i) for i in range(1, 5000)}},
            )


def _damage(content, seed):
    """Replace, cut or repeat some bytes; a seed of 0 leaves them as they are."""
    if seed == 0:
        return content
    rng = np.random.default_rng(seed)
    content = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        start, length = rng.integers(len(content)), rng.integers(1, 9)
        insert = [
            bytes(rng.integers(256, size=length, dtype=np.uint8)),
            b"",
            b'"\n',
            b"{[" * 4,
        ]
        content[start : start + length] = insert[rng.integers(4)]
    return bytes(content)


def session(folder):
    counter = iter(range(10**9))
    ids = [f"id{i}" for i in range(12)]

    def open_new():
        path = folder / f"session{next(counter)}"
        opened = LabelingSession(_learner(), POOL, path, ids, refit=False)
        opened.ask(4)
        opened.tell(opened.open_batches[0].ids[:2], ["ham", "spam"])
        return opened

    def state(opened):
        batches = [batch.ids for batch in opened.open_batches]
        return opened.labels, batches, opened.skipped

    def waiting(opened):
        return list(opened.open_batches[0].ids)

    first = open_new()
    open_ids = waiting(first)
    exported = folder / "labels.csv"
    first.export(exported)
    first.close()
    who = {"annotator": "ann"}
    calls = {
        "ask": {"n_queries": 2, "refit": False, **who},
        "tell": {"ids": open_ids, "labels": ["ham", "spam"], "unasked": False, **who},
        "skip": {"ids": open_ids, "unasked": False, **who},
        "release": {"ids": open_ids, "annotator": None},
        "undo": who | {"annotator": None},
        "history": {"id": open_ids[0]},
        "is_blind": {"id": open_ids[0]},
        "sync": {
            "answers": {open_ids[0]: [SourceAnswer("ham", "ann")]},
            **{"source": "elsewhere", "notes": {open_ids[0]: "a note"}},
        },
        "export": {"path": "out.csv", "what": "labels"},
        "import_labels": {
            **{"path": str(exported), "id": "id", "label": "label", "text": None},
            **{"annotator": None, "ignore_unknown": False},
        },
    }
    for name, valid in calls.items():

        def call(opened, *, name=name, **arguments):
            try:
                return getattr(opened, name)(**arguments) and None
            finally:
                opened.close()

        yield Target(
            name,
            lambda valid=valid: copy.deepcopy(valid),
            call,
            subject=open_new,
            state=state,
            ordered=tuple({"ids", "labels"} & set(valid)),
        )

    def open_with(subject, **arguments):
        opened = LabelingSession(**arguments)
        try:
            return opened.ask(2).ids
        finally:
            opened.close()

    yield Target(
        "LabelingSession",
        lambda: {
            **{"learner": _learner(), "X_pool": POOL.copy(), "ids": list(ids)},
            **{"folder": folder / f"new{next(counter)}", "refit": True},
            **{"annotator": None, "verbose": 0},
        },
        open_with,
        ordered=("X_pool", "ids"),
    )


def files(folder):
    place = folder / "saved"
    skactive.save(_fitted(X, Y)(), place)
    counter = iter(range(10**9))
    record = _runs()[0].to_dict()
    _runs()[0].to_json(folder / "run.json")
    forest = RandomForestClassifier(3, random_state=0).fit(X, Y)
    linear = LogisticRegression().fit(X, Y)
    draws = {"n_draws": 4, "random_state": 0}
    train = {"X_train": X, "y_train": Y, "sample_weight": np.ones(16)}
    seeded = {"random_state": 0}
    calls = {
        "load": (skactive.load, {"folder": str(place)}),
        "sample_proba": (
            sample_proba,
            {"estimator": linear, "X": POOL, **draws, **train},
        ),
        "sample_proba of trees": (
            sample_proba,
            {"estimator": forest, "X": POOL, **draws},
        ),
        "sample_predictions": (
            sample_predictions,
            {
                **{"estimator": Ridge().fit(X, X[:, 0]), "X": POOL, **draws},
                **{**train, "y_train": X[:, 0]},
            },
        ),
        "sampler": (sampler, {"estimator": linear, **draws, **train}),
        "make_imbalanced": (
            simulation.make_imbalanced,
            {"X": TEXTS, "y": Y, "minority": "ham", "prior": 0.2, **seeded},
        ),
        "Run": (
            Run,
            {
                **{
                    "rounds": [{"queried": [1, 2]}],
                    "info": {"seed": 1},
                    "ledger": None,
                },
                **{"final_scores": {"f1": 0.5}, "stopped_by": None},
            },
        ),
        "Run.append": (
            _runs()[0].append,
            {"record": {"queried": [1, 2], "scores": {}}},
        ),
        "Run.curve": (_runs()[0].curve, {"scoring": "f1"}),
        "Run.from_dict": (Run.from_dict, {"record": record}),
        "Run.from_json": (Run.from_json, {"path": str(folder / "run.json")}),
        "Run.to_json": (_runs()[0].to_json, {"path": str(folder / "out.json")}),
        "get_strategy": (get_strategy, {"name": "margin"}),
        "resolve": (registry.resolve, {"strategy": "margin"}),
        "register": (_register, {"name": "fuzzed", "strategy": len, "replace": True}),
        "unregister": (_unregister, {"name": "fuzzed"}),
    }
    once = {"Run.append", "register", "unregister"}
    for name, (function, valid) in calls.items():
        yield Target(
            name,
            lambda valid=valid: copy.deepcopy(valid),
            _function(function),
            ordered=tuple({"X", "y", "X_train", "y_train"} & set(valid)),
            repeats=name not in once and "sampler" not in name,
        )

    def save(subject, estimator, folder, overwrite):
        return (
            skactive.load(skactive.save(estimator, folder, overwrite=overwrite))
            and None
        )

    yield Target(
        "save",
        lambda: {
            **{"estimator": _fitted(X, Y)(), "overwrite": True},
            "folder": folder / f"new{next(counter)}",
        },
        save,
    )


def _register(name, strategy, replace):
    registry.register(name, strategy, replace=replace)
    registry.unregister(name)


def _unregister(name):
    registry.register("fuzzed", len, replace=True)
    try:
        registry.unregister(name)
    finally:
        if "fuzzed" in registry.get_strategy_names():
            registry.unregister("fuzzed")


# With the number of calls that each gets of 14,400.
GROUPS = {
    make.__name__: (make, n / 14400)
    for make, n in (
        (learner, 2000),
        (strategies, 1800),
        (simulations, 1500),
        (summaries, 2000),
        (bert, 800),
        (tables, 1400),
        (session, 1200),
        (files, 1100),
        (estimators, 1100),
        (pools, 500),
        (front_ends, 1000),
    )
}
