"""Views of other items, draws in chunks, and what is optional."""

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skactive.view import PoolView

from ._helpers import Counting, Sampler, X, y


def test_the_labeled_items_are_a_view_under_the_same_model(view):
    assert_allclose(view.labeled.proba, view.proba[:5])
    assert_array_equal(view.labeled.features, view.features[:5])
    assert view.take([3, 4]).labeled is view.labeled
    assert view.n_labeled == view.take([0]).n_labeled == 5


def test_other_items_are_viewed_under_the_same_model(view):
    other = view.on(X[7:9])
    assert len(other) == 2
    assert_allclose(other.proba, view.proba[7:9])
    assert_array_equal(view.take([1, 2]).on(X[7:9]).features, view.features[7:9])
    assert_array_equal(other.y_labeled, view.y_labeled)


def test_other_items_have_the_same_draws():
    view = PoolView(X, estimator=Sampler().fit(X, y))
    other = view.on(X[7:9])
    assert_array_equal(other.draws(5), view.draws(5)[7:9])


def test_other_items_may_be_asked_only_what_was_declared(view):
    narrow = PoolView(
        X,
        estimator=view.estimator,
        X_labeled=X[:5],
        y_labeled=y[:5],
        requires=frozenset({"labeled"}),
    )
    with pytest.raises(AttributeError, match="'proba' to its `requires`"):
        narrow.labeled.proba  # noqa: B018


def test_draws_are_reduced_in_chunks(monkeypatch):
    view = PoolView(X, estimator=Sampler().fit(X, y))
    expected = view.draws(6).std(axis=1)
    seen = []

    def reduce(draws):
        seen.append(draws.shape)
        return draws.std(axis=1)

    assert_array_equal(view.map_draws(reduce, 6), expected)
    monkeypatch.setattr("skactive.view._quantities.chunk_size", lambda row_bytes: 8)
    fresh = PoolView(X, estimator=Sampler().fit(X, y))
    monkeypatch.setitem(vars(fresh._query), "seeds", view._query.seeds)
    seen.clear()
    assert_array_equal(fresh.map_draws(reduce, 6), expected)
    assert [shape[0] for shape in seen] == [8, 8, 4]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_draws_of_a_linear_model_are_the_same_for_every_chunk(monkeypatch, n_jobs):
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)

    def reduced(size):
        monkeypatch.setattr(
            "skactive.view._quantities.chunk_size", lambda row_bytes: size
        )
        view = PoolView(
            X,
            estimator=model,
            X_labeled=X,
            y_labeled=y,
            rng=np.random.default_rng(1),
        )
        with parallel_config("threading", n_jobs=n_jobs):
            return view.map_draws(lambda draws: draws.var(axis=1), 9)

    assert_allclose(reduced(3), reduced(100), rtol=1e-10)


def test_what_is_optional_may_be_read_where_it_is_there():
    optional = {"requires": frozenset({"features"}), "optional": frozenset({"labeled"})}
    view = PoolView(X, X_labeled=X[:2], y_labeled=y[:2], **optional)
    assert_array_equal(view.labeled_features, X[:2])
    without = PoolView(X, **optional)
    assert without.n_labeled == 0
    with pytest.raises(TypeError, match="needs labeled items"):
        without.labeled_features  # noqa: B018


def test_a_cold_start_sees_labeled_items_through_the_same_front():
    front = make_pipeline(StandardScaler(), LogisticRegression())
    view = PoolView(X, unfitted=front, X_labeled=X[:2], y_labeled=y[:2])
    assert_allclose(view.labeled_features, StandardScaler().fit(X).transform(X[:2]))


def test_boundary_and_gradients_come_from_the_final_step():
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y == 1)
    view = PoolView(X, estimator=model)
    decision = model.decision_function(X)
    distance = abs(decision) / np.linalg.norm(model[-1].coef_)
    assert_allclose(view.boundary, distance)
    residuals, inputs = view.gradients
    assert_array_equal(inputs, view.features)
    assert_allclose(residuals.sum(axis=1), 0, atol=1e-12)


def test_surprisal_is_known_before_there_is_a_model():
    class Surprising(Counting):
        def surprisal(self, X, random_state):
            return np.asarray(X) + random_state

    unfitted = make_pipeline(Surprising(), LogisticRegression())
    view = PoolView(X, unfitted=unfitted, requires=frozenset({"surprisal"}))
    assert_array_equal(view.surprisal, X + view._query.seeds[1])
    with pytest.raises(TypeError, match=r"masked language model.*BertFeatures"):
        PoolView(X, unfitted=LogisticRegression(), requires=frozenset({"surprisal"}))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_linear_models_predict_a_slice_at_a_time(monkeypatch, n_jobs):
    monkeypatch.setattr("skactive.view._quantities.chunk_size", lambda *_: 7)
    rows = []

    class Counted(LogisticRegression):
        def predict_proba(self, X):
            rows.append(len(X))
            return super().predict_proba(X)

    model = Counted().fit(X, y)
    with parallel_config("threading", n_jobs=n_jobs):
        proba = PoolView(X, estimator=model).proba
    assert sorted(rows) == [6, 7, 7]
    assert_allclose(proba, model.predict_proba(X), rtol=1e-12)


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937])
def test_numbers_of_a_part_are_those_of_its_positions(bits):
    def numbers(positions):
        rng = np.random.Generator(bits(3))
        view = PoolView(X, rng=rng, position_rng=rng)
        if positions is not None:
            view = view.take([0, *range(2, 20)]).take(positions)
        return np.array([view.uniform() for _ in range(3)])

    expected = np.delete(numbers(None), 1, axis=1)
    for positions in ([4, 7, 5], [18], [], range(19)):
        found = numbers(np.array(positions, dtype=int))
        assert_array_equal(found, expected[:, positions])


def test_parts_are_consecutive_in_the_pool(view):
    candidates = view.take([9, 3, 4, 17, 0])
    parts = list(candidates.split(2))
    assert [positions.tolist() for positions, _ in parts] == [[4, 1, 2], [0, 3]]
    assert_array_equal(parts[0][1].X, X[[0, 3, 4]])
    assert_array_equal(parts[1][1].proba, view.proba[[9, 17]])
    assert [len(part) for _, part in view.split(20)] == [1] * 20
