"""Draws of an ensemble are its members."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.naive_bayes import GaussianNB

from skactive.posterior import _choose_members, sample_proba

from ._helpers import ASKED, ENSEMBLES, X, Y

each_ensemble = pytest.mark.parametrize("ensemble", ENSEMBLES, ids=str)


def members_of(ensemble):
    """Probabilities of each member, with nothing left to align, by hand."""
    result = []
    if isinstance(ensemble, CalibratedClassifierCV):
        return [m.predict_proba(ASKED) for m in ensemble.calibrated_classifiers_]
    for i, member in enumerate(ensemble.estimators_):
        rows = ASKED
        if isinstance(ensemble, BaggingClassifier):
            rows = ASKED[:, ensemble.estimators_features_[i]]
        proba = np.zeros((len(ASKED), len(ensemble.classes_)))
        for n, row in enumerate(rows):
            if hasattr(member, "predict_proba"):
                values = member.predict_proba(row[None])[0]
                for label, value in zip(member.classes_, values, strict=True):
                    proba[n, int(label)] = value
            else:
                proba[n, int(member.predict(row[None])[0])] = 1
        result.append(proba)
    return result


def sort_draws(draws):
    return np.array(sorted(np.asarray(draws).tolist()))


@pytest.mark.long
@each_ensemble
def test_as_many_draws_as_members_are_the_members(ensemble):
    ensemble.fit(X, Y)
    expected = np.stack(members_of(ensemble))
    draws = sample_proba(ensemble, ASKED, len(expected), 0)
    assert_allclose(sort_draws(draws.swapaxes(0, 1)), sort_draws(expected), atol=1e-6)
    assert_allclose(draws.mean(axis=1), ensemble.predict_proba(ASKED), atol=1e-6)


@pytest.mark.long
@pytest.mark.slow
@each_ensemble
@pytest.mark.parametrize("n_draws", [1, 3, 31])
def test_each_draw_is_one_member_for_all_items(ensemble, n_draws):
    ensemble.fit(X, Y)
    members = members_of(ensemble)
    draws = sample_proba(ensemble, ASKED, n_draws, 0)
    assert draws.shape == (9, n_draws, 3)
    counts = np.zeros(len(members), dtype=int)
    for t in range(n_draws):
        same = [np.allclose(draws[:, t], member, atol=1e-6) for member in members]
        assert any(same)
        counts[np.argmax(same)] += 1
    if len({str(m) for m in members}) == len(members):
        assert counts.max() - counts.min() <= 1


def test_a_member_without_a_class_gives_it_no_probability():
    ensemble = ENSEMBLES[5].fit(X, Y)
    assert any(len(m.classes_) < 3 for m in ensemble.estimators_)
    draws = sample_proba(ensemble, ASKED, 12, 0)
    assert_allclose(draws.sum(axis=2), 1)
    assert (draws == 0).any()


@pytest.mark.long
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("ensemble", [*ENSEMBLES[:5], ENSEMBLES[7]], ids=str)
def test_ensembles_take_sparse_features(ensemble, kind):
    ensemble.fit(X, Y)
    dense = sample_proba(ensemble, ASKED, 5, 0)
    assert_allclose(sample_proba(ensemble, kind(ASKED), 5, 0), dense, atol=1e-6)


def test_features_that_are_missing_are_what_the_forest_makes_of_them():
    gaps = np.where(np.arange(240).reshape(60, 4) % 7 == 0, np.nan, X)
    forest = RandomForestClassifier(5, random_state=0).fit(gaps, Y)
    draws = sample_proba(forest, gaps, 5, 0)
    assert_allclose(draws.mean(axis=1), forest.predict_proba(gaps))


def test_weights_of_votes_are_how_often_a_member_comes():
    members = [(str(c), DummyClassifier(strategy="constant")) for c in range(2)]
    votes = VotingClassifier(
        [("prior", DummyClassifier()), ("nb", GaussianNB()), ("lr", "drop"), *members],
        voting="soft",
        weights=[3, 1, 5, 0, 0],
    )
    votes.set_params(**{"0": GaussianNB(var_smoothing=1), "1": GaussianNB()}).fit(X, Y)
    draws = sample_proba(votes, ASKED, 8, 0)
    prior = votes.estimators_[0].predict_proba(ASKED)
    assert np.isclose(draws[0], prior[0]).all(axis=1).sum() == 6
    assert_allclose(draws.mean(axis=1), votes.predict_proba(ASKED))


@pytest.mark.long
def test_members_are_chosen_evenly_and_by_chance():
    rng = np.random.default_rng(0)
    totals = np.zeros(5)
    for _ in range(500):
        chosen = _choose_members(np.ones(5), 7, rng)
        counts = np.bincount(chosen, minlength=5)
        assert counts.sum() == 7
        assert set(counts) == {1, 2}
        totals += counts
    assert_allclose(totals / 500, 7 / 5, atol=0.1)
    by_weight = [
        np.bincount(_choose_members(np.array([5.0, 4.0, 1.0]), 2, rng), minlength=3)
        for _ in range(3000)
    ]
    assert_array_equal(np.unique(np.sum(by_weight, axis=1)), [2])
    assert np.mean(by_weight, axis=0)[0] == pytest.approx(1.0)
