"""BertFeatures among the tools of scikit-learn."""

import copy
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from skactive.bert import BertFeatures, clear_cache

from ..conftest import TEXTS, save_encoder


def test_fit_returns_self_and_learns_nothing(exact):
    before = dict(vars(exact))
    assert exact.fit(TEXTS) is exact
    assert vars(exact) == before


def test_tags(exact):
    tags = get_tags(exact)
    assert not tags.requires_fit
    assert tags.input_tags.string
    assert tags.input_tags.one_d_array
    assert not tags.input_tags.two_d_array
    assert tags.transformer_tags.preserves_dtype == []


@pytest.mark.parametrize(
    "copier", [clone, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))]
)
def test_copies_keep_parameters_and_no_weights(tiny_bert, copier):
    features = BertFeatures(tiny_bert, layers=(-2, -1), cache="memory")
    result = features.transform(TEXTS)
    copied = copier(features)
    assert copied.get_params() == features.get_params()
    assert len(pickle.dumps(copied)) < 1000 + len(tiny_bert)
    np.testing.assert_array_equal(copied.transform(TEXTS), result)


def test_feature_names(exact):
    names = exact.get_feature_names_out()
    assert list(names) == [f"bertfeatures{i}" for i in range(16)]
    assert len(exact.set_params(layers=(0, -1)).get_feature_names_out()) == 32


@pytest.mark.parametrize("cache", ["memory", None])
def test_set_output_pandas(exact, cache):
    pd = pytest.importorskip("pandas")
    expected = exact.set_params(cache=cache).transform(TEXTS)
    series = pd.Series(TEXTS, index=list("abcdefgh"))
    frame = exact.set_output(transform="pandas").transform(series)
    assert list(frame.index) == list("abcdefgh")
    assert frame.columns[0] == "bertfeatures0"
    assert frame.dtypes.unique().tolist() == [np.dtype("float32")]
    np.testing.assert_array_equal(frame.to_numpy(), expected)


def test_writing_into_a_data_frame_does_not_reach_the_cache(tiny_bert):
    pytest.importorskip("pandas")
    features = BertFeatures(tiny_bert).set_output(transform="pandas")
    expected = features.transform(TEXTS).to_numpy().copy()
    frame = features.transform(TEXTS)
    try:
        frame.iloc[0, 0] = 99.0
    except ValueError as exc:
        assert "read-only" in str(exc)  # noqa: PT017
    np.testing.assert_array_equal(features.transform(TEXTS).to_numpy(), expected)


def test_set_output_polars(exact):
    pl = pytest.importorskip("polars")
    expected = exact.transform(TEXTS)
    frame = exact.set_output(transform="polars").transform(pl.Series(TEXTS))
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns[-1] == "bertfeatures15"
    np.testing.assert_array_equal(frame.to_numpy(), expected)


@pytest.mark.long
@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_grid_search_gives_the_same_for_every_n_jobs(tiny_bert, set_threads, n_jobs):
    X = [f"{text} {i}" for i in range(4) for text in TEXTS]
    y = ["film" if "film" in text else "other" for text in X]
    pipeline = make_pipeline(
        BertFeatures(tiny_bert, precision="float32"), LogisticRegression()
    )
    grid = {"bertfeatures__pooling": ["mean", "cls"], "logisticregression__C": [1, 10]}
    scores = []
    for n_threads, jobs in ((1, 1), (2, n_jobs)):
        set_threads(n_threads)
        clear_cache()
        # Each of the two folds is encoded at once, in every process.
        search = GridSearchCV(pipeline, grid, cv=2, n_jobs=jobs).fit(X, y)
        scores.append(search.cv_results_["mean_test_score"])
        assert search.predict(X[:3]).shape == (3,)
    np.testing.assert_array_equal(*scores)


def test_threads_get_what_one_thread_gets(tiny_bert):
    pools = [
        [f"{text} {i}" for text in TEXTS for i in range(j, j + 9)] for j in range(8)
    ]
    one = BertFeatures(tiny_bert, precision="float32", cache=None)
    expected = [one.transform(pool) for pool in pools]
    several = clone(one).set_params(cache="memory")
    got = joblib.Parallel(n_jobs=4, backend="threading")(
        joblib.delayed(several.transform)(pool) for pool in pools
    )
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_retraining_into_the_same_folder_is_noticed(tmp_path):
    folder = save_encoder(tmp_path)
    features = BertFeatures(folder)
    before = features.transform(TEXTS)
    save_encoder(tmp_path, initializer_range=0.3)
    assert not np.allclose(features.transform(TEXTS), before)
