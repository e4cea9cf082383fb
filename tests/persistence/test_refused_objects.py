"""What cannot be saved without pickle is refused, and named by its place."""

import sys

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skactive import load, save
from skactive.simulation import SimulatedLearner
from skactive.strategies import Margin

from ._helpers import Mine, X, Y, _by_first, _learner


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


@pytest.mark.parametrize(
    ("estimator", "match"),
    [
        (Mine(), r"'estimator' must hold only types that skops trusts.*\.Mine"),
        (make_pipeline(StandardScaler(), Mine()), r"'steps\[1\]\[1\]' must hold only"),
        (FunctionTransformer(_by_first), "skops trusts .*_by_first"),
        (GridSearchCV(Mine(), {}), r"skops trusts .*\.Mine"),
        (
            RandomForestClassifier(2).fit(X, Y),
            r"pass trusted=\['sklearn\.tree\._tree\.Tree'\] to save .* joblib\.dump",
        ),
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


@pytest.mark.long
@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("kind", ["DataFrame", "Series"])
def test_labeled_data_in_a_frame_is_refused_with_a_remedy(tmp_path, library, kind):
    make = getattr(pytest.importorskip(library), kind)
    items = make({"a": X[:4, 0]}) if kind == "DataFrame" else make(X[:4, 0])
    learner = _learner().teach(items, Y[:4], refit=False)
    match = f"'X_labeled_' must be texts or an array .* got a {kind} of {library}. Conv"
    with pytest.raises(TypeError, match=match):
        save(learner, tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []
    assert load(save(learner, tmp_path / "saved", data=False)).batch_size == 4


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *(("folder", folder) for folder in (5, None, b"saved")),
        *(("overwrite", overwrite) for overwrite in ("no", 1, None)),
        *(("data", 0), ("bundle", "yes"), ("trusted", "os.system")),
    ],
)
def test_a_wrong_argument_of_save_is_named(tmp_path, argument, value):
    arguments = {"estimator": _learner(), "folder": tmp_path / "saved"}
    with pytest.raises((TypeError, ValueError), match=f"'{argument}' parameter of sav"):
        save(**arguments | {argument: value})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("argument", "value"), [("folder", 5), ("model", 5), ("trusted", "os.system")]
)
def test_a_wrong_argument_of_load_is_named(saved, argument, value):
    with pytest.raises((TypeError, ValueError), match=f"'{argument}' parameter of loa"):
        load(**{"folder": saved} | {argument: value})


def test_trusted_types_are_named_by_str(tmp_path):
    with pytest.raises(TypeError, match="'trusted' must hold full names, as str; got"):
        save(_learner(), tmp_path / "saved", trusted=[RandomForestClassifier])
