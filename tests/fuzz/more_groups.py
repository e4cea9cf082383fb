"""More groups of calls: estimators, pools of texts, and what a front end calls."""

import copy
from functools import partial

import numpy as np
from sklearn.linear_model import LogisticRegression

from skactive import ActiveLearner, LabelingSession, make_text_classifier
from skactive.datasets import open_pool
from skactive.features import PrecomputedFeatures, StaticFeatures
from skactive.linear_model import (
    FewLabelClassifier,
    PrototypeClassifier,
    SequentialLogisticRegression,
    TunedOneVsRestClassifier,
)
from skactive.semi_supervised import SelfTraining
from skactive.session import Desk, read_labels

from .targets import Target

_RNG = np.random.default_rng(1)
Y = np.array(["ham", "spam"] * 8)
X = _RNG.normal(size=(16, 2)) + np.where(Y == "ham", 0, 1.5)[:, None]
TEXTS = [f"{word} {i % 5} mail" for i, word in enumerate(Y)]
WEIGHTS = np.ones(16)


def estimators(folder):
    from skactive import bert

    from ..conftest import save_encoder

    model = save_encoder(folder / "encoder")
    bert.BertFeatures(model, device="cpu").transform_to(TEXTS, folder / "features")
    several = (X > 0.5).astype(int)
    seeded, weighted = {"random_state": 0}, {"sample_weight": WEIGHTS}
    linear = LogisticRegression()
    fits = (
        (PrototypeClassifier(), {"y": Y, **weighted}),
        (FewLabelClassifier(n_splits=2, **seeded), {"y": Y, **weighted}),
        (SequentialLogisticRegression(), {"y": Y, **weighted}),
        (TunedOneVsRestClassifier(linear, cv=2, **seeded), {"y": several}),
        (SelfTraining(linear, cv=2, **seeded), {"y": Y, "X_unlabeled": X + 0.1}),
    )
    for estimator, given in fits:
        params = estimator.get_params(deep=False)

        def fit(subject, X, y, *, cls, params, **arguments):
            params = {name: arguments.pop(name) for name in params}
            return cls(**params).fit(X, y, **arguments).predict(X)

        yield Target(
            type(estimator).__name__,
            lambda params=params, given=given: {**params, "X": X.copy(), **given},
            partial(fit, cls=type(estimator), params=list(params)),
            ordered=("X", "y"),
            repeats=True,
        )
        fitted = estimator.fit(X, **given)
        yield Target(
            f"{type(estimator).__name__}.predict_proba",
            lambda: {"X": X.copy()},
            lambda s, X, fitted=fitted: fitted.predict_proba(X),
            ordered=("X",),
            repeats=True,
        )

    def transform(subject, X, *, cls, **params):
        return np.asarray(cls(**params).fit(X).transform(X))

    places = {PrecomputedFeatures: folder / "features", StaticFeatures: model}
    for cls, place in places.items():
        params = cls(place).get_params(deep=False)
        yield Target(
            cls.__name__,
            lambda params=params: {**params, "X": list(TEXTS)},
            partial(transform, cls=cls),
            ordered=("X",),
            repeats=True,
        )
    yield Target("set_cache_limit", lambda: {"n_bytes": 2**31}, _set_cache_limit)
    yield Target(
        "make_text_classifier",
        lambda: {"model": model, "multi_label": False},
        lambda s, **a: make_text_classifier(**a) and None,
    )


def _set_cache_limit(subject, n_bytes):
    from skactive import bert

    bert.set_cache_limit(bert.set_cache_limit(n_bytes))


def pools(folder):
    path = folder / "pool.csv"
    path.write_text("id,text,other\n" + "".join(f"a{i},{t},b\n" for i, t in _rows()))
    cache = str(folder / "cache")
    yield Target(
        "open_pool",
        lambda: {"path": str(path), "text": "text", "id": "id", "cache": cache},
        lambda s, **a: list(open_pool(**a)),
        repeats=True,
    )
    pool = open_pool(path, "text")
    calls = {
        "take_rows": {"positions": [0, 3]},
        "batches": {"batch_size": 4},
    }
    for name, valid in calls.items():
        yield Target(
            f"TextPool.{name}",
            partial(copy.deepcopy, valid),
            lambda s, name=name, **a: list(getattr(pool, name)(*a.values())),
            repeats=True,
        )
    session = _open(folder / "read")
    session.close()
    yield Target(
        "read_labels",
        lambda: {"folder": session.folder},
        lambda s, **a: read_labels(**a),
        repeats=True,
    )


def _rows():
    return enumerate(TEXTS)


def _open(path):
    learner = ActiveLearner(LogisticRegression(), batch_size=2, random_state=0)
    ids = [f"id{i}" for i in range(16)]
    session = LabelingSession(learner, X, path, ids, refit=False, classes=["a", "b"])
    session.ask(4)
    session.tell(session.open_batches[0].ids[:2], ["a", "b"], annotator="ann")
    return session


def _state(session):
    answers = {id: dict(given) for id, given in session.answers.items()}
    known = (session.known_classes, session.flags, session.notes, session.skipped)
    return answers, *known


def front_ends(folder):
    counter = iter(range(10**9))
    first = _open(folder / "first")
    done, waiting = next(iter(first.answers)), first.open_batches[0].ids[0]
    seq = first._core.state.last_undoable("ann")["seq"]
    first.close()
    by = {"annotator": "ann"}
    here = {"client": "tab 1", "annotator": "ann"}
    of_session = {
        "withdraw": {"ids": [done], **by},
        "add_class": {"name": "c", **by},
        "rename_class": {"old": "a", "new": "z", **by},
        "flag": {"ids": done, "flag": True, **by},
        "note": {"id": done, "text": "odd", **by},
        "history": {"id": done},
        "suspicious": {"n_items": 3},
        "estimate": {"n_labels": 10, "horizon": 5},
        "add": {"items": X[:2].copy(), "ids": ["new1", "new2"]},
        "export": {"path": "out.jsonl", "what": "answers", "format": None},
    }
    of_desk = {
        "state": {"annotator": "ann"},
        "next": {**here, "n_queries": 2},
        "item": {"id": done},
        "history": {"query": "", "start": 0, "n_items": 5},
        "answer": {"id": waiting, "label": "a", **here, "seconds": 1.0},
        "skip": {"id": waiting, **here},
        "undo": {"seq": seq, **here},
        "flag": {"id": done, "on": True, "annotator": "ann"},
        "note": {"id": done, "text": "odd", "annotator": "ann"},
        "add_class": {"name": "c", "annotator": "ann"},
        "edit_class": {"name": "a", "new": "z", "annotator": "ann"},
        "release": {"client": "tab 1"},
        "check": {"n_items": 3},
    }

    def call_session(session, *, _name, **arguments):
        try:
            getattr(session, _name)(**arguments)
        finally:
            session.close()

    def call_desk(session, *, _name, **arguments):
        with session, Desk(session) as desk:
            getattr(desk, _name)(**arguments)

    for prefix, call, calls in (
        ("", call_session, of_session),
        ("Desk.", call_desk, of_desk),
    ):
        for name, valid in calls.items():
            yield Target(
                f"{prefix}{name}",
                lambda valid=valid: copy.deepcopy(valid),
                partial(call, _name=name),
                subject=lambda: _open(folder / f"session{next(counter)}"),
                state=_state,
                ordered=tuple({"items", "ids"} & set(valid)),
            )
