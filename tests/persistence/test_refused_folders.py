"""Folders that were changed, or hold what they should not, are not loaded."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import skactive
from skactive import load, save
from skactive._storage import _fingerprint as versions

from ._helpers import (
    LABELS,
    TEXTS,
    Mine,
    _as_csr,
    _learner,
    _reseal,
    _rewrite,
)


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


@pytest.mark.long
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


_MARGIN = {"@": "strategy", "name": "margin", "dist": "skactive"}
_MARGIN |= {"version": skactive.__version__, "params": {}}


@pytest.mark.parametrize(
    ("node", "kind"),
    [
        (None, "NoneType"),
        (5, "int"),
        ([], "list"),
        ({"@": "set", "items": []}, "set"),
        (_MARGIN, "Margin"),
    ],
)
def test_an_object_that_is_no_estimator_is_refused(saved, node, kind):
    def change(content):
        content["object"] = node

    _rewrite(saved, "object.json", change)
    with pytest.raises(ValueError, match=f"must hold an estimator, and holds a {kind}"):
        load(saved)


def test_deep_nesting_is_refused(saved):
    node = 1
    for _ in range(900):
        node = [node]
    _rewrite(saved, "object.json", lambda c: c["object"]["params"].update(a=node))
    with pytest.raises(ValueError, match=r"'object.json' cannot be understood"):
        load(saved)


def test_files_that_name_each_other_are_refused(tmp_path):
    learner = _learner().teach(TEXTS, LABELS, refit=False)
    folder = Path(save(learner, tmp_path / "saved"))
    name = "items/X_labeled_.json"
    _rewrite(folder, name, lambda c: [{"@": "json", "file": name}] * 10)
    with pytest.raises(ValueError, match=f"uses the file '{name}' more than once"):
        load(folder)


def _header(shape):
    return f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"


# numpy before 2.3 reads all rows that are there for (-1,)
@pytest.mark.parametrize(
    "header", [_header("(1000000000000,)"), "{'descr': '<f8', (", _header("(-1, -1)")]
)
def test_an_array_with_a_false_header_is_refused(saved, header):
    length = len(header).to_bytes(2, "little")
    content = b"\x93NUMPY\x01\x00" + length + header.encode()
    (saved / "arrays" / "y_labeled_.npy").write_bytes(content)
    _reseal(saved, "arrays/y_labeled_.npy")
    with pytest.raises(ValueError, match=r"'arrays/y_labeled_.npy' must be an array"):
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


@pytest.mark.parametrize(
    ("package", "here", "then", "advice"),
    [
        ("scikit-learn", "1.7.2", "1.9.1", "Upgrade scikit-learn"),
        ("scikit-learn", "1.9.1", "1.7.2", "was saved with.$"),
        ("skactive", "0.2.0", "0.3.0", "Upgrade skactive"),
        ("skops", "0.15.0", "0.16", "Upgrade skops"),
    ],
)
def test_another_minor_version_warns(saved, monkeypatch, package, here, then, advice):
    monkeypatch.setattr(versions, "collect_versions", lambda: {package: here})
    change = {"versions": {package: then}}
    _rewrite(saved, "manifest.json", lambda manifest: manifest | change)
    message = rf"saved with {package} {then} \(here {here}\): .*{advice}"
    with pytest.warns(UserWarning, match=message):
        load(saved)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("package", "here", "then"),
    [
        ("scikit-learn", "1.9.1", "1.9.2"),
        ("skactive", "0.3.0", "0.2.0"),
        ("skops", "0.16.0", "0.15.0"),
        ("numpy", "2.1.0", "2.3.0"),
    ],
)
def test_versions_that_load_alike_raise_no_warning(
    saved, monkeypatch, package, here, then
):
    monkeypatch.setattr(versions, "collect_versions", lambda: {package: here})
    change = {"versions": {package: then}}
    _rewrite(saved, "manifest.json", lambda manifest: manifest | change)
    load(saved)


@pytest.mark.filterwarnings("error::sklearn.exceptions.InconsistentVersionWarning")
def test_a_parameter_that_the_other_scikit_learn_lacked_is_the_default(
    tmp_path,
):
    model = LogisticRegression().fit([[0.0], [1.0]], ["a", "b"])
    expected = model.predict_proba([[0.3]])
    folder = Path(save(model, tmp_path / "saved"))
    file = folder / "sklearn" / "estimator.skops"
    with zipfile.ZipFile(file) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    schema = json.loads(parts["schema.json"])
    state = schema["content"]["content"]
    del state["l1_ratio"]
    state["_sklearn_version"]["content"] = json.dumps("1.7.1")
    with zipfile.ZipFile(file, "w") as new:
        for name, content in (parts | {"schema.json": json.dumps(schema)}).items():
            new.writestr(name, content)
    _reseal(folder, "sklearn/estimator.skops")
    loaded = load(folder)
    assert loaded.l1_ratio == LogisticRegression().l1_ratio
    assert np.array_equal(loaded.predict_proba([[0.3]]), expected)


@pytest.mark.filterwarnings("error")
def test_the_same_versions_and_missing_packages_raise_no_warning(saved, monkeypatch):
    monkeypatch.setattr(versions, "_PACKAGES", ("skactive", "no-such-package"))
    assert versions.collect_versions()["no-such-package"] is None
    load(saved)


@pytest.mark.slow
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
