"""A loaded model runs nothing from its folder, also when it is trained again."""

import os
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import FeatureAgglomeration
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import StandardScaler

from skactive import ActiveLearner, load, save
from skactive.persistence import _folder

from ._helpers import LABELS, TEXTS, _reseal, _rewrite


class Evil:
    """What leaves a trace when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


TRUSTED = [
    "numpy.mean",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.StratifiedKFold",
    # Older versions of skops do not trust these.
    "sklearn.utils._metadata_requests.MetadataRequest",
    "sklearn.utils._metadata_requests.MethodMetadataRequest",
]
WRAPS = {
    "pipeline": lambda model: model,
    "search": lambda model: GridSearchCV(model, {"multinomialnb__alpha": [1]}, cv=2),
    "step": lambda model: Pipeline([("inner", model)]),
}


def save_with_store(tmp_path, wrap="pipeline"):
    """Save a learner with a store of results, in which each result is evil."""
    store, folder = tmp_path / "store", tmp_path / "saved"
    model = make_pipeline(CountVectorizer(), MultinomialNB(), memory=str(store))
    learner = ActiveLearner(WRAPS[wrap](model), random_state=0).fit(TEXTS, LABELS)
    for path in list(store.rglob("output.pkl")):
        joblib.dump(Evil(tmp_path / "trace"), path)
    return store, Path(save(learner, folder, trusted=TRUSTED))


@pytest.mark.parametrize("suffix", [".pkl", ".PKL", ".joblib", ".bin", ".py"])
def test_a_folder_with_a_pickle_is_refused(tmp_path, suffix):
    store, folder = save_with_store(tmp_path)
    store.rename(folder / "store")
    for path in list(folder.rglob("*.p*")):
        path.rename(path.with_suffix(suffix))
    _reseal(folder)
    with pytest.raises(ValueError, match=rf"\{suffix}' is a pickle or code"):
        load(folder)
    assert not (tmp_path / "trace").exists()


@pytest.mark.long
@pytest.mark.parametrize("call", ["refit", "teach", "fit"])
@pytest.mark.parametrize("wrap", WRAPS)
def test_a_store_of_results_is_not_read_after_loading(tmp_path, wrap, call):
    _, folder = save_with_store(tmp_path, wrap)
    learner = load(folder, trusted=TRUSTED)
    getattr(learner, call)(*(() if call == "refit" else (TEXTS, LABELS)))
    assert not (tmp_path / "trace").exists()
    assert set(learner.predict(TEXTS)) <= set(LABELS)


def find_memories(value):
    return {k: v for k, v in value.get_params().items() if k.endswith("memory")}


@pytest.mark.parametrize(
    "make",
    [
        lambda memory: make_pipeline(StandardScaler(), memory=memory),
        lambda memory: make_union(make_pipeline(StandardScaler(), memory=memory)),
        lambda memory: FeatureAgglomeration(memory=memory),
        lambda memory: GridSearchCV(
            make_pipeline(LogisticRegression(), memory=memory), {}
        ),
        lambda memory: ActiveLearner(
            CalibratedClassifierCV(make_pipeline(LogisticRegression(), memory=memory))
        ),
    ],
    ids=["pipeline", "union", "cluster", "search", "learner"],
)
def test_no_estimator_keeps_a_memory(tmp_path, make):
    estimator = make(str(tmp_path / "cache"))
    save(estimator, tmp_path / "saved", trusted=TRUSTED)
    loaded = load(tmp_path / "saved", trusted=TRUSTED)
    assert set(find_memories(loaded).values()) == {None}
    assert set(find_memories(estimator).values()) == {str(tmp_path / "cache")}


def test_fitted_copies_keep_no_memory(tmp_path):
    X, y = np.eye(6) + 1, [0, 1] * 3
    inner = make_pipeline(LogisticRegression(), memory=str(tmp_path / "cache"))
    search = GridSearchCV(inner, {"logisticregression__C": [1]}, cv=2).fit(X, y)
    calibrated = CalibratedClassifierCV(inner, cv=2).fit(X, y)
    save(search, tmp_path / "search", trusted=TRUSTED)
    loaded = load(tmp_path / "search", trusted=TRUSTED)
    assert loaded.best_estimator_.memory is None
    loaded = load(save(calibrated, tmp_path / "calibrated"))
    found = [part.estimator.memory for part in loaded.calibrated_classifiers_]
    assert found == [None, None]


def test_a_state_cannot_bring_a_memory_back(tmp_path):
    folder = Path(save(make_pipeline(StandardScaler()), tmp_path / "saved"))
    _rewrite(
        folder, "object.json", lambda c: c["object"]["state"].update(memory="store")
    )
    assert load(folder).memory is None


@pytest.mark.long
@pytest.mark.parametrize(
    ("cache", "expected"), [("p", "memory"), ("memory", "memory"), (None, None)]
)
def test_features_are_cached_in_no_folder_after_loading(
    tmp_path, tiny_bert, monkeypatch, cache, expected
):
    from skactive.bert import BertFeatures

    monkeypatch.chdir(tmp_path)
    for path in (cache, None if cache is None else Path(cache)):
        model = make_pipeline(BertFeatures(tiny_bert, cache=path), LogisticRegression())
        learner = ActiveLearner(model).fit(TEXTS, LABELS)
        folder = save(learner, tmp_path / "saved", overwrite=True)
        loaded = load(folder)
        before = sorted(tmp_path.rglob("*"))
        assert loaded.estimator.steps[0][1].cache == expected
        loaded.predict(["some new text"])
        loaded.refit()
        assert sorted(tmp_path.rglob("*")) == before


# Bombs -------------------------------------------------------------------------------


@pytest.fixture
def small_limit(monkeypatch):
    """Make a file of 100 kB too large for what it was compressed to."""
    monkeypatch.setattr(_folder, "MOST_BYTES", 100_000)


def pack(path, name, content):
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, content)


@pytest.mark.parametrize("name", ["schema.json", "array.npy"])
def test_a_bomb_in_a_skops_file_is_refused_unread(tmp_path, small_limit, name):
    folder = Path(save(LogisticRegression(), tmp_path / "saved"))
    [path] = folder.rglob("*.skops")
    path.unlink()
    pack(path, name, bytes(200_000))
    _reseal(folder)
    match = r"skops' must hold .* 100 times its size, got 200\d{3} bytes in"
    with pytest.raises(ValueError, match=match):
        load(folder)


def test_a_bomb_in_a_sparse_matrix_of_a_skops_file_is_refused(tmp_path, small_limit):
    folder = Path(save(LogisticRegression(), tmp_path / "saved"))
    [path] = folder.rglob("*.skops")
    pack(tmp_path / "m.npz", "data.npy", bytes(2_000_000))
    with zipfile.ZipFile(path, "a") as file:
        file.write(tmp_path / "m.npz", "m.npz")
    _reseal(folder)
    with pytest.raises(ValueError, match="100 times its size"):
        load(folder)


def test_a_large_file_that_is_not_compressed_is_loaded(tmp_path, small_limit):
    X = np.random.default_rng(0).random((2, 40_000))
    model = LogisticRegression().fit(X, ["a", "b"])
    folder = save(model, tmp_path / "saved")
    assert load(folder).coef_.shape == (1, 40_000)
