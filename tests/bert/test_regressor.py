"""BertRegressor: numbers in their own unit, scores, pairs, going on."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score

from ._helpers import NUMBERS, X, fitted_copy, regressor, slow


@pytest.mark.long
@pytest.mark.parametrize(
    "pooling", ["cls", pytest.param("mean", marks=pytest.mark.slow)]
)
def test_learns_in_the_unit_of_the_targets(tiny_bert, pooling):
    model = regressor(tiny_bert, max_epochs=12, lr=1e-2, pooling=pooling, dropout=0.0)
    model.fit(X, NUMBERS)
    assert model.score(X, NUMBERS) > 0.8
    assert spearmanr(NUMBERS, model.predict(X)).statistic > 0.6
    assert np.abs(model.predict(X) - NUMBERS).mean() < NUMBERS.std()


@pytest.mark.parametrize(("shift", "scale"), [slow(0.0, 1000.0), (-7.0, 1e-3)])
def test_the_unit_of_the_targets_does_not_matter(tiny_bert, shift, scale):
    expected = fitted_copy(regressor, tiny_bert, X, NUMBERS).predict(X) * scale + shift
    found = regressor(tiny_bert).fit(X, NUMBERS * scale + shift).predict(X)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize(
    "convert",
    [
        slow(np.ndarray.tolist),
        slow(lambda y: y.astype(int)),
        lambda y: y.astype(np.float32),
        lambda y: pytest.importorskip("pandas").Series(y, index=range(5, 5 + len(y))),
        slow(lambda y: pytest.importorskip("polars").Series(y)),
    ],
    ids=["list", "int", "float32", "pandas", "polars"],
)
def test_targets_in_every_form(tiny_bert, convert):
    expected = fitted_copy(regressor, tiny_bert, X, NUMBERS).predict(X)
    found = regressor(tiny_bert).fit(X, convert(NUMBERS)).predict(X)
    np.testing.assert_array_equal(found, expected)


def test_predictions_are_one_float_per_text(tiny_bert):
    model = fitted_copy(regressor, tiny_bert, X, NUMBERS)
    assert model.predict(X).shape == (len(X),)
    assert model.predict(X).dtype == np.float64
    assert model.transform(X).shape == (len(X), 16)
    assert not hasattr(model, "predict_proba")


@pytest.mark.long
def test_targets_that_are_all_the_same(tiny_bert):
    model = regressor(tiny_bert, max_epochs=10, lr=1e-2).fit(X, np.full(len(X), 7.0))
    np.testing.assert_allclose(model.predict(X), 7.0, atol=1.0)


def test_weights_decide_between_texts_that_disagree(tiny_bert):
    texts, y = ["the film"] * 8, np.array([0.0, 10.0] * 4)
    weights = np.where(y > 0, 9.0, 1.0)
    model = regressor(tiny_bert, max_epochs=40, dropout=0.0, freeze="all", lr=3e-2)
    assert model.fit(texts, y, sample_weight=weights).predict(texts[:1])[0] > 7.0


@pytest.mark.long
@pytest.mark.slow
def test_pairs(tiny_bert):
    pairs = [(text, "joy" if i % 2 else "dull film") for i, text in enumerate(X[:8])]
    y = np.arange(8) % 2 * 4.0
    model = regressor(tiny_bert, max_epochs=40, lr=1e-2, dropout=0.0).fit(pairs, y)
    assert model.score(pairs, y) > 0.8


def test_draws_are_in_the_unit_of_the_targets(tiny_bert):
    model = regressor(tiny_bert, max_epochs=5).fit(X, NUMBERS)
    draws = model.sample_predictions(X, n_draws=400, random_state=0)
    assert draws.shape == (len(X), 400)
    np.testing.assert_allclose(draws.mean(axis=1), model.predict(X), rtol=0.05)
    assert (draws.std(axis=1) > 0).all()
    again = model.sample_predictions(X, n_draws=400, random_state=0)
    np.testing.assert_array_equal(draws, again)


def test_partial_fit_keeps_the_first_scale(tiny_bert):
    model = regressor(tiny_bert).partial_fit(X, NUMBERS)
    for _ in range(3):
        model.partial_fit(X[:4], NUMBERS[:4])
    assert len(model.history_) == 4
    assert np.abs(model.predict(X) - NUMBERS.mean()).max() < 5 * NUMBERS.std()


def test_each_fit_starts_from_the_pretrained_weights(tiny_bert):
    model = regressor(tiny_bert).fit(X[::-1], NUMBERS).fit(X, NUMBERS)
    expected = fitted_copy(regressor, tiny_bert, X, NUMBERS).predict(X)
    np.testing.assert_array_equal(model.predict(X), expected)


# Scores


def test_the_score_is_r_squared(tiny_bert):
    model = fitted_copy(regressor, tiny_bert, X, NUMBERS)
    residual = ((NUMBERS - model.predict(X)) ** 2).sum()
    total = ((NUMBERS - NUMBERS.mean()) ** 2).sum()
    assert model.score(X, NUMBERS) == pytest.approx(1 - residual / total)


@pytest.mark.long
def test_scores_in_cross_validation(tiny_bert):
    model = regressor(tiny_bert)
    spearman = make_scorer(lambda y, predicted: spearmanr(y, predicted).statistic)
    scores = cross_val_score(model, X, NUMBERS, scoring=spearman, cv=2)
    assert scores.shape == (2,)
    assert (np.abs(scores) <= 1).all()
    search = GridSearchCV(model, {"freeze": [0, 2]}, scoring=spearman, cv=2)
    search.fit(X, NUMBERS)
    assert search.best_params_["freeze"] in (0, 2)
    assert np.isfinite(cross_val_score(model, X, NUMBERS, cv=2)).all()
