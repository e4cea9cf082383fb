"""Saving and loading without pickle: what comes back, and what is refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import skactive
from skactive import ActiveLearner, load, registry, save
from skactive.persistence import folder as folder_module
from skactive.persistence import versions
from skactive.simulation import SimulatedLearner
from skactive.strategies import PointwiseStrategy
from skactive.strategies.uncertainty import Margin

X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, "warm", "cold")
TEXTS = ["a good film", "a bad film", "good", "bad", "so good", "so bad"]
LABELS = ["+", "-", "+", "-", "+", "-"]


def _learner(**params):
    return ActiveLearner(LogisticRegression(), batch_size=4, random_state=3, **params)


def _round_trip(estimator, tmp_path, **params):
    return load(save(estimator, tmp_path / "saved", **params))


def _rewrite(folder, name, change):
    """Change a JSON file of a saved folder, and the manifest to fit."""
    folder = Path(folder)
    content = json.loads((folder / name).read_text())
    content = change(content) or content
    (folder / name).write_text(json.dumps(content))
    _reseal(folder, name)


def _reseal(folder, name):
    manifest = json.loads((Path(folder) / "manifest.json").read_text())
    if name in manifest["files"]:
        digest = folder_module._digest(Path(folder) / name)
        manifest["files"][name]["sha256"] = digest
        (Path(folder) / "manifest.json").write_text(json.dumps(manifest))


@pytest.fixture
def saved(tmp_path):
    """Folder of a fitted learner."""
    return Path(save(_learner().fit(X[:20], Y[:20]), tmp_path / "saved"))


# What comes back


def test_predictions_and_the_next_query_are_those_of_the_original(tmp_path):
    learner = _learner(strategy="entropy").fit(X[:8], Y[:8])
    learner.teach(X[8:12], Y[8:12])
    loaded = _round_trip(learner, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(X), learner.predict_proba(X))
    np.testing.assert_array_equal(loaded.query(X), learner.query(X))
    np.testing.assert_array_equal(loaded.y_labeled_, learner.y_labeled_)
    assert loaded.n_rounds_ == 1


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(5), 7])
def test_the_rounds_after_loading_are_those_without(tmp_path, random_state):
    learner = ActiveLearner(
        LogisticRegression(), "random", batch_size=3, random_state=random_state
    )
    learner.fit(X[:8], Y[:8])
    loaded = _round_trip(learner, tmp_path)
    for _ in range(3):
        asked = learner.query(X)
        np.testing.assert_array_equal(loaded.query(X), asked)
        for each in (learner, loaded):
            each.teach(X[asked], Y[asked])


def test_an_unfitted_learner_keeps_the_answer_of_its_cold_start(tmp_path):
    learner = ActiveLearner(LogisticRegression(), batch_size=3)
    asked = learner.query(X)  # draws a seed, as random_state is None
    np.testing.assert_array_equal(_round_trip(learner, tmp_path).query(X), asked)


def test_sample_weights_of_earlier_rounds_are_kept(tmp_path):
    learner = _learner().fit(X[:20], Y[:20], sample_weight=np.arange(1.0, 21.0))
    loaded = _round_trip(learner, tmp_path)
    np.testing.assert_array_equal(
        loaded.refit().estimator_.coef_, learner.refit().estimator_.coef_
    )


def test_labels_of_a_single_class_are_saved_with_their_dummy(tmp_path):
    loaded = _round_trip(_learner().fit(X[:2], ["a", "a"]), tmp_path)
    assert loaded.predict(X[:1]).tolist() == ["a"]


def test_a_pipeline_of_texts_comes_back_equal(tmp_path):
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXTS, LABELS)
    loaded = _round_trip(model, tmp_path)
    np.testing.assert_array_equal(
        loaded.predict_proba(TEXTS), model.predict_proba(TEXTS)
    )
    assert [name for name, _ in loaded.steps] == [name for name, _ in model.steps]


def test_unions_frozen_estimators_and_skipped_steps_come_back(tmp_path):
    union = FeatureUnion([("words", TfidfVectorizer()), ("none", "drop")])
    model = make_pipeline(union, "passthrough", LogisticRegression())
    frozen = FrozenEstimator(model.fit(TEXTS, LABELS))
    loaded = _round_trip(frozen, tmp_path)
    assert type(loaded) is FrozenEstimator
    assert loaded.predict(TEXTS).tolist() == model.predict(TEXTS).tolist()


def test_metadata_requests_come_back(tmp_path):
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        model = LogisticRegression().set_fit_request(sample_weight=True)
        learner = ActiveLearner(make_pipeline(StandardScaler(), model))
        loaded = _round_trip(learner, tmp_path)
        requests = loaded.estimator[-1].get_metadata_routing().fit.requests
    assert requests == {"sample_weight": True}
    assert model.get_metadata_routing().fit.requests == {"sample_weight": True}


def _as_list(texts):
    return list(texts)


def _as_pairs(texts):
    return [(text, "why") for text in texts]


def _as_pandas(texts):
    pd = pytest.importorskip("pandas")
    return pd.Series(texts, index=range(5, 5 + len(texts)), name="text")


def _as_object_series(texts):
    return _as_pandas(texts).astype(object)


def _as_arrow_series(texts):
    return _as_pandas(texts).astype("string[pyarrow]")


def _as_frame(texts):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({"text": texts, "n": [len(t) for t in texts]})


def _as_polars(texts):
    return pytest.importorskip("polars").Series("text", texts)


def _as_polars_frame(texts):
    pl = pytest.importorskip("polars")
    return pl.DataFrame({"text": texts, "n": [len(t) for t in texts]})


def _as_strings(texts):
    return np.array(texts, dtype=np.dtypes.StringDType())


def _as_objects(texts):
    return np.array(texts, dtype=object)


def _as_csr(texts):
    return TfidfVectorizer().fit_transform(texts)


def _as_csr_array(texts):
    return sparse.csr_array(_as_csr(texts))


CONTAINERS = [
    _as_list,
    _as_pairs,
    np.array,
    _as_objects,
    _as_strings,
    _as_pandas,
    _as_object_series,
    _as_arrow_series,
    _as_frame,
    _as_polars,
    _as_polars_frame,
    _as_csr,
    _as_csr_array,
]


@pytest.mark.parametrize("make", CONTAINERS, ids=lambda make: make.__name__)
def test_labelled_items_come_back_in_their_container(tmp_path, make):
    learner = _learner().teach(make(TEXTS), LABELS, refit=False)
    before = learner.X_labeled_
    after = _round_trip(learner, tmp_path).X_labeled_
    assert type(after) is type(before)
    if sparse.issparse(before):
        assert (before != after).nnz == 0
    elif hasattr(before, "equals"):
        assert before.equals(after)
        assert str(getattr(before, "dtype", "")) == str(getattr(after, "dtype", ""))
        assert getattr(before, "name", None) == getattr(after, "name", None)
    else:
        np.testing.assert_array_equal(before, after)
        assert getattr(before, "dtype", None) == getattr(after, "dtype", None)


def test_texts_stand_in_a_json_file_that_people_can_read(tmp_path):
    texts = ["naïve café, 東京", "\ud83d", "\ud83d\ude00", ""]
    learner = _learner().teach(texts, [0, 1, 0, 1], refit=False)
    folder = Path(save(learner, tmp_path / "saved"))
    content = (folder / "items" / "X_labeled_.json").read_bytes()
    assert "東京".encode() in content
    assert load(folder).X_labeled_ == texts


def test_a_frame_that_parquet_would_change_is_refused(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"mixed": ["a", 1]}, dtype=object)
    learner = _learner().teach(frame, [0, 1], refit=False)
    with pytest.raises(TypeError, match="'X_labeled_' cannot be saved as parquet"):
        save(learner, tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        2**70,
        0.1,
        float("inf"),
        "text",
        Path("a/b"),
        (1, (2.5, "x")),
        [1, (2,)],
        {"a": 1, "b": (2,)},
        {"@": "tuple"},
        {1: "a", np.int64(2): "b", (3, 4): None},
        {3, 1},
        frozenset({"a"}),
        np.float32(0.1),
        np.float64("-inf"),
        np.int64(3),
        np.bool_(True),
        np.str_("x"),
    ],
    ids=repr,
)
def test_parameters_come_back_with_their_types(tmp_path, value):
    # Any parameter does: nothing looks at it before fit.
    after = _round_trip(_learner().set_params(batch_size=value), tmp_path).batch_size
    assert after == value
    assert _types(after) == _types(value)


def _types(value):
    if isinstance(value, tuple | list):
        return type(value), [_types(v) for v in value]
    if isinstance(value, dict):
        return dict, [(_types(k), _types(v)) for k, v in value.items()]
    return type(value)


def test_nan_and_negative_zero_come_back(tmp_path):
    learner = _learner().set_params(batch_size=(float("nan"), -0.0))
    nan, zero = _round_trip(learner, tmp_path).batch_size
    assert np.isnan(nan)
    assert np.signbit(zero)


# Strategies


class Scaled(PointwiseStrategy):
    """A strategy with parameters, one of them a strategy."""

    requires = frozenset({"proba"})

    def __init__(self, inner=None, weights=(1.0,)):
        self.inner = inner
        self.weights = weights

    def score(self, view):
        return -view.proba.max(axis=1) * self.weights[0]


def _by_first(view):
    return -view.proba[:, 0]


@pytest.fixture
def registered():
    registry.register("scaled", Scaled)
    registry.register("by_first", _by_first)
    yield
    for name in ("scaled", "by_first"):
        if name in registry.get_strategy_names():
            registry.unregister(name)


def test_a_strategy_comes_back_with_its_parameters(tmp_path, registered):
    strategy = Scaled(inner=Margin(), weights=(2.0, float("inf")))
    learner = _learner(strategy=strategy).fit(X[:20], Y[:20])
    loaded = _round_trip(learner, tmp_path)
    assert type(loaded.strategy) is type(loaded.strategy_) is Scaled
    assert loaded.strategy.weights == (2.0, float("inf"))
    assert type(loaded.strategy.inner) is Margin
    np.testing.assert_array_equal(loaded.query(X), learner.query(X))


def test_a_function_with_a_registered_name_comes_back(tmp_path, registered):
    learner = _learner(strategy="by_first").fit(X[:20], Y[:20])
    loaded = _round_trip(learner, tmp_path)
    np.testing.assert_array_equal(loaded.query(X), learner.query(X))


def test_the_folder_names_distribution_and_version_of_a_strategy(saved):
    node = json.loads((saved / "object.json").read_text())["object"]
    assert node["params"]["strategy"] == {
        "@": "strategy_name",
        "value": "margin",
        "name": "margin",
        "dist": "skactive",
        "version": skactive.__version__,
    }


def test_a_plain_function_is_refused(tmp_path):
    learner = _learner(strategy=_by_first).fit(X[:20], Y[:20])
    match = "'strategy' must be a registered strategy .* function '_by_first'"
    with pytest.raises(TypeError, match=match):
        save(learner, tmp_path / "saved")


def test_a_strategy_without_a_name_is_refused(tmp_path):
    match = "'cold_start' must be a registered strategy .* class Scaled"
    with pytest.raises(TypeError, match=match):
        save(_learner(cold_start=Scaled()), tmp_path / "saved")


def test_a_strategy_that_is_not_here_is_named_with_its_distribution(
    tmp_path, registered
):
    folder = save(_learner(strategy="by_first"), tmp_path / "saved")
    registry.unregister("by_first")
    with pytest.raises(ValueError, match=r"'by_first' of this session .* Register it"):
        load(folder)


def test_a_strategy_of_a_plugin_that_is_not_installed_is_refused(saved):
    def change(content):
        node = content["object"]["params"]["strategy"]
        node |= {"value": "far", "name": "far", "dist": "plug", "version": "2.1"}

    _rewrite(saved, "object.json", change)
    with pytest.raises(ValueError, match=r"'far' of plug 2.1 .* Install plug 2.1"):
        load(saved)


def test_a_name_that_now_belongs_to_another_distribution_is_refused(saved):
    def change(content):
        content["object"]["params"]["strategy"]["dist"] = "plug"

    _rewrite(saved, "object.json", change)
    with pytest.raises(
        ValueError, match=r"that name belongs to skactive\. Install plug"
    ):
        load(saved)


def test_another_major_version_of_a_strategy_warns(saved):
    def change(content):
        content["object"]["params"]["strategy"]["version"] = "7.0"

    _rewrite(saved, "object.json", change)
    with pytest.warns(UserWarning, match="'margin' was saved with skactive 7.0"):
        load(saved)


# What is refused when saving


@pytest.mark.parametrize(
    ("estimator", "match"),
    [
        (LogisticRegression, "'estimator' must be an estimator, got <class"),
        (Margin, "'estimator' must be an estimator"),
        ([1, 2], r"'estimator' must be an estimator, got \[1, 2\]"),
        (SimulatedLearner(_learner()), "got SimulatedLearner. Save what it holds"),
        (_learner().set_params(batch_size=print), "'batch_size' cannot be saved with"),
        (_learner().set_params(batch_size=1j), "'batch_size' cannot be saved without"),
        (make_pipeline(StandardScaler(), memory=print), "'memory' cannot be saved"),
    ],
    ids=["class", "strategy class", "list", "simulated", "object", "complex", "memory"],
)
def test_what_needs_pickle_is_refused_with_its_place(tmp_path, estimator, match):
    with pytest.raises(TypeError, match=match):
        save(estimator, tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []


class Mine(BaseEstimator):
    """An estimator of a user's own."""

    def fit(self, X, y=None):
        return self


@pytest.mark.parametrize(
    ("estimator", "match"),
    [
        (Mine(), r"'estimator' must hold only types that skops trusts.*\.Mine"),
        (make_pipeline(StandardScaler(), Mine()), r"'steps\[1\]\[1\]' must hold only"),
        (FunctionTransformer(_by_first), "skops trusts .*_by_first"),
        (GridSearchCV(Mine(), {}), r"skops trusts .*\.Mine"),
        (RandomForestClassifier(2).fit(X, Y), r"sklearn\.tree\._tree\.Tree"),
    ],
    ids=["own", "step", "function", "nested", "trees"],
)
def test_types_that_skops_does_not_trust_are_refused(tmp_path, estimator, match):
    with pytest.raises(TypeError, match=match):
        save(estimator, tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []


def test_without_skops_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    match = r"'estimator' is a scikit-learn.*pip install 'skactive\[save\]'"
    with pytest.raises(ImportError, match=match):
        save(LogisticRegression(), tmp_path / "saved")


def test_an_old_skops_is_refused(tmp_path, monkeypatch):
    import skops

    monkeypatch.setattr(skops, "__version__", "0.11.0")
    with pytest.raises(ImportError, match=r"skops 0.11.0 does not load safely"):
        save(LogisticRegression(), tmp_path / "saved")


def test_an_array_of_objects_inside_a_structure_is_refused(tmp_path):
    array = np.zeros(2, dtype=[("a", object)])
    with pytest.raises(TypeError, match="'batch_size' must be an array of numbers"):
        save(_learner().set_params(batch_size=array), tmp_path / "saved")


# The folder


def test_an_existing_folder_is_refused(saved):
    with pytest.raises(FileExistsError, match=r"which exists\. .* overwrite=True"):
        save(_learner(), saved)
    load(saved)


def test_an_existing_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError, match="which is a file"):
        save(_learner(), tmp_path / "file", overwrite=True)


@pytest.mark.parametrize("has_exchange", [True, False])
def test_overwriting_replaces_all_of_it(saved, monkeypatch, has_exchange):
    if not has_exchange:
        monkeypatch.setattr(folder_module, "_exchange", lambda one, other: False)
    save(_learner(strategy="entropy"), saved, overwrite=True)
    loaded = load(saved)
    assert loaded.strategy == "entropy"
    assert not hasattr(loaded, "estimator_")
    assert os.listdir(saved.parent) == ["saved"]


def test_overwriting_leaves_other_folders_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"holds other files\. It was left"):
        save(_learner(), tmp_path, overwrite=True)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_overwriting_leaves_files_beside_the_saved_ones_alone(saved):
    (saved / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"also holds 'notes.txt'"):
        save(_learner(), saved, overwrite=True)


def test_overwriting_repairs_a_damaged_folder(saved):
    (saved / "object.json").write_text("{")
    save(_learner(), saved, overwrite=True)
    assert repr(load(saved)) == repr(_learner())


def test_a_failed_save_leaves_the_earlier_one(saved):
    with pytest.raises(TypeError, match="'strategy'"):
        save(_learner(strategy=_by_first), saved, overwrite=True)
    assert load(saved).n_rounds_ == 0
    assert os.listdir(saved.parent) == ["saved"]


def test_a_failed_replacement_puts_the_earlier_one_back(saved, monkeypatch):
    rename, calls = os.rename, []

    def fail_once(*args):
        calls.append(args)
        if len(calls) == 2:
            raise OSError("disk gone")
        rename(*args)

    monkeypatch.setattr(folder_module, "_exchange", lambda one, other: False)
    monkeypatch.setattr(os, "rename", fail_once)
    with pytest.raises(OSError, match="disk gone"):
        save(_learner(), saved, overwrite=True)
    assert load(saved).n_rounds_ == 0


@pytest.mark.parametrize("step", ["_seal", "_exchange", "_sync"])
def test_a_killed_save_leaves_the_earlier_one(tmp_path, step):
    code = f"""
import os, sys
from sklearn.pipeline import make_pipeline
import skactive
from skactive.persistence import folder
skactive.save(make_pipeline("passthrough"), sys.argv[1])
folder.{step} = lambda *args: os._exit(9)
skactive.save(make_pipeline("passthrough", "passthrough"), sys.argv[1], overwrite=True)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "saved")]
    assert subprocess.run(command, check=False).returncode == 9
    assert len(load(tmp_path / "saved").steps) == 1


def test_parent_folders_are_made_and_the_path_is_returned(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = save(_learner(), Path("a") / "b")
    assert folder == os.path.realpath(tmp_path / "a" / "b")


def test_the_folder_has_the_permissions_of_any_new_folder(saved):
    (saved.parent / "plain").mkdir()
    assert saved.stat().st_mode == (saved.parent / "plain").stat().st_mode


def test_there_is_no_pickle_in_the_folder(saved):
    suffixes = {path.suffix for path in saved.rglob("*") if path.is_file()}
    assert suffixes == {".json", ".npy", ".skops"}
    for path in saved.rglob("*.npy"):
        np.load(path, allow_pickle=False)


def test_the_manifest_lists_files_and_versions(saved):
    manifest = json.loads((saved / "manifest.json").read_text())
    files = {
        path.relative_to(saved).as_posix()
        for path in saved.rglob("*")
        if path.is_file()
    }
    assert set(manifest["files"]) == files - {"manifest.json"}
    assert manifest["versions"]["skactive"] == skactive.__version__
    assert {"python", "scikit-learn", "torch", "transformers", "numpy"} <= set(
        manifest["versions"]
    )


# What is refused when loading


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="which does not exist"):
        load(tmp_path / "none")


def test_a_folder_without_a_manifest(tmp_path):
    with pytest.raises(ValueError, match=r"has no 'manifest.json'"):
        load(tmp_path)


def _names():
    return ["object.json", "arrays/y_labeled_.npy", "sklearn/estimator_.skops"]


@pytest.mark.parametrize("name", _names())
def test_a_changed_file_is_named(saved, name):
    content = bytearray((saved / name).read_bytes())
    content[len(content) // 2] ^= 1
    (saved / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"'{name}' in .* has changed since"):
        load(saved)


@pytest.mark.parametrize("name", _names())
def test_a_missing_file_is_named(saved, name):
    (saved / name).unlink()
    with pytest.raises(ValueError, match=f"'{name}' is missing"):
        load(saved)


def test_an_extra_file_is_named(saved):
    (saved / "arrays" / "more.npy").write_bytes(b"")
    with pytest.raises(ValueError, match=r"'arrays/more.npy' in .* is not listed"):
        load(saved)


def test_a_link_in_place_of_a_file_is_named(saved):
    target = saved.parent / "elsewhere.json"
    (saved / "object.json").rename(target)
    (saved / "object.json").symlink_to(target)
    with pytest.raises(ValueError, match=r"'object.json' in .* must be a plain file"):
        load(saved)


def test_a_link_to_a_folder_is_named(saved, tmp_path):
    (saved / "more").symlink_to(tmp_path)
    with pytest.raises(ValueError, match=r"'more' in .* is not listed"):
        load(saved)


def test_files_are_checked_before_any_is_read(saved, monkeypatch):
    (saved / "sklearn" / "estimator_.skops").write_bytes(b"")
    monkeypatch.setattr(np, "load", None)
    monkeypatch.setattr("skops.io.load", None)
    with pytest.raises(ValueError, match=r"'sklearn/estimator_.skops' .* has changed"):
        load(saved)


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_an_unknown_format_version_is_refused(saved, version):
    _rewrite(saved, "manifest.json", lambda m: m | {"format_version": version})
    match = f"'manifest.json' in .* is of format version {version!r}; this .* reads 1"
    with pytest.raises(ValueError, match=match):
        load(saved)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "must be JSON"),
        ("[" * 100_000, "must be JSON"),
        ("[]", "is of something else"),
        ('{"format": "other"}', "is of something else"),
        ('{"format": "skactive", "format_version": 1}', "must list 'files'"),
    ],
    ids=["empty", "deep", "list", "other", "bare"],
)
def test_a_manifest_of_something_else_is_refused(saved, content, match):
    (saved / "manifest.json").write_text(content)
    with pytest.raises(ValueError, match=f"'manifest.json' in .* {match}"):
        load(saved)


def test_a_manifest_without_the_object_is_refused(saved):
    (saved / "object.json").unlink()
    _rewrite(saved, "manifest.json", lambda m: m["files"].pop("object.json") and None)
    with pytest.raises(ValueError, match=r"must list 'object.json'"):
        load(saved)


@pytest.mark.parametrize("name", ["LogisticRegression", "subprocess.Popen", "_Run", 3])
def test_an_unknown_class_is_refused(saved, name):
    _rewrite(saved, "object.json", lambda c: c["object"].update({"class": name}))
    match = r"'object.json' names the class .* may not be loaded. Allowed are Active"
    with pytest.raises(ValueError, match=match):
        load(saved)


def test_an_unknown_kind_is_refused(saved):
    def change(content):
        content["object"]["params"]["batch_size"] = {"@": "eval", "value": "1"}

    _rewrite(saved, "object.json", change)
    with pytest.raises(ValueError, match="holds the kind 'eval' at 'batch_size'"):
        load(saved)


@pytest.mark.parametrize(
    ("part", "more"),
    [
        ("params", {"n_items": 3}),
        ("params", {"batch_size": {"@": "scalar"}}),
        ("params", {"batch_size": {"@": "scalar", "dtype": "O", "value": 1}}),
        ("params", {"batch_size": {"@": "random_state", "state": {"a": 1}}}),
        ("params", {"batch_size": {"@": "objects", "shape": [3], "items": []}}),
        ("params", {"batch_size": {"@": "dict", "items": [[[1], 2]]}}),
        ("state", {"predict": 1}),
        ("state", {"classes_": 1}),
        ("state", {"__class__": 1}),
        ("state", {"a b": 1}),
    ],
    ids=str,
)
def test_what_cannot_be_understood_is_refused(saved, part, more):
    _rewrite(saved, "object.json", lambda c: c["object"][part].update(more))
    with pytest.raises(ValueError, match=r"'object.json' cannot be understood at"):
        load(saved)


@pytest.mark.parametrize("content", [{}, {"models": []}, {"models": 3, "object": 1}])
def test_an_object_file_of_another_shape_is_refused(saved, content):
    _rewrite(saved, "object.json", lambda c: content or [1])
    with pytest.raises(ValueError, match=r"'object.json' cannot be understood"):
        load(saved)


def test_a_constant_that_json_lacks_is_refused(saved):
    (saved / "object.json").write_text('{"object": NaN}')
    _reseal(saved, "object.json")
    with pytest.raises(ValueError, match=r"'object.json' in .* must be JSON"):
        load(saved)


@pytest.mark.parametrize("name", ["../manifest.json", "/etc/hosts", "more.npy"])
def test_a_file_that_the_manifest_does_not_list_is_never_opened(saved, name):
    def change(content):
        content["object"]["state"]["y_labeled_"]["file"] = name

    _rewrite(saved, "object.json", change)
    with pytest.raises(ValueError, match=f"names the file '{name}', which"):
        load(saved)


def test_an_array_that_needs_pickle_is_refused(saved):
    np.save(saved / "arrays" / "y_labeled_.npy", np.array([{}]), allow_pickle=True)
    _reseal(saved, "arrays/y_labeled_.npy")
    with pytest.raises(ValueError, match=r"'arrays/y_labeled_.npy' must be an array"):
        load(saved)


def test_indices_beyond_a_sparse_matrix_are_refused(tmp_path):
    learner = _learner().teach(_as_csr(TEXTS), LABELS, refit=False)
    folder = Path(save(learner, tmp_path / "saved"))
    path = folder / "arrays" / "X_labeled_.indices.npy"
    np.save(path, np.load(path) + 1000)
    _reseal(folder, "arrays/X_labeled_.indices.npy")
    with pytest.raises(ValueError, match="does not fit the sparse matrix"):
        load(folder)


def test_a_damaged_frame_is_refused(tmp_path):
    learner = _learner().teach(_as_frame(TEXTS), LABELS, refit=False)
    folder = Path(save(learner, tmp_path / "saved"))
    (folder / "frames" / "X_labeled_.parquet").write_bytes(b"PAR1")
    _reseal(folder, "frames/X_labeled_.parquet")
    with pytest.raises(ValueError, match=r"'frames/X_labeled_.parquet' must be a parq"):
        load(folder)


def test_a_skops_file_of_other_types_is_refused(saved):
    import skops.io

    skops.io.dump(Mine(), saved / "sklearn" / "estimator_.skops")
    _reseal(saved, "sklearn/estimator_.skops")
    match = r"'sklearn/estimator_.skops' holds types that are not trusted: .*Mine"
    with pytest.raises(ValueError, match=match):
        load(saved)


def test_a_skops_file_of_another_class_is_refused(saved):
    import skops.io

    skops.io.dump(StandardScaler(), saved / "sklearn" / "estimator_.skops")
    _reseal(saved, "sklearn/estimator_.skops")
    with pytest.raises(ValueError, match="must hold a LogisticRegression, and holds"):
        load(saved)


def test_a_damaged_skops_file_is_refused(saved):
    (saved / "sklearn" / "estimator_.skops").write_bytes(b"PK")
    _reseal(saved, "sklearn/estimator_.skops")
    with pytest.raises(ValueError, match="cannot be loaded by skops"):
        load(saved)


def test_another_major_version_warns(saved):
    def change(manifest):
        manifest["versions"] |= {"numpy": "1.26.4", "torch": None}

    _rewrite(saved, "manifest.json", change)
    with pytest.warns(UserWarning, match=r"saved with numpy 1.26.4 \(here "):
        load(saved)


@pytest.mark.filterwarnings("error")
def test_the_same_versions_and_missing_packages_raise_no_warning(saved, monkeypatch):
    monkeypatch.setattr(versions, "_PACKAGES", ("skactive", "no-such-package"))
    assert versions.collect_versions()["no-such-package"] is None
    load(saved)


def test_saving_and_loading_by_themselves_import_nothing_heavy(tmp_path):
    # skops is: with it comes torch, where that is installed.
    code = """
import sys
from sklearn.pipeline import make_pipeline
import skactive
skactive.load(skactive.save(make_pipeline("passthrough"), sys.argv[1]))
heavy = {"torch", "transformers", "skorch", "skops"} & set(sys.modules)
assert not heavy, heavy
"""
    command = [sys.executable, "-c", code, str(tmp_path / "saved")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
