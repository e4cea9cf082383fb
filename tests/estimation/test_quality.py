"""Quality of predictions in all and for each class."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import (
    ConfusionMatrixDisplay,
    confusion_matrix,
    f1_score,
    precision_recall_fscore_support,
)
from sklearn.model_selection import cross_val_predict
from statsmodels.api import OLS, add_constant
from statsmodels.stats.proportion import proportion_confint

from skactive.estimation import estimate_quality, estimate_share
from skactive.estimation._mean import interval_of_count
from skactive.estimation._quality import CROSS_FITTED

CLASSES = ["bug", "idea", "praise"]


def make_pool(n=2000, seed=0):
    """Return classes, predictions and probabilities."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, n, p=[0.1, 0.3, 0.6])
    scores = rng.normal(size=(n, 3)) + 1.8 * np.eye(3)[truth]
    proba = np.exp(1.8 * scores + np.log([0.1, 0.3, 0.6]))
    proba /= proba.sum(axis=1, keepdims=True)
    names = np.array(CLASSES)
    return names[truth], names[proba.argmax(axis=1)], proba


def test_the_values_are_those_of_scikit_learn_oracle():
    y, predicted, _ = make_pool(300)
    found = estimate_quality(y, predicted)
    expected = precision_recall_fscore_support(y, predicted)
    for j, (name, one) in enumerate(found.classes.items()):
        assert name == CLASSES[j]
        values = [one.precision.value, one.recall.value, one.f1.value]
        np.testing.assert_allclose(values, [x[j] for x in expected[:3]])
        assert one.recall.n_labels == expected[3][j]
    assert found.accuracy.value == pytest.approx(np.mean(y == predicted))
    assert found.macro_f1.value == pytest.approx(
        f1_score(y, predicted, average="macro")
    )
    assert (found.confusion == confusion_matrix(y, predicted)).all()
    several = estimate_quality(
        y[:, None] == CLASSES, predicted[:, None] == CLASSES, classes=CLASSES
    )
    assert several.micro_f1.value == pytest.approx(np.mean(y == predicted))
    assert several.confusion is None
    assert len(several.to_frame()) == 12


def test_a_recall_has_exact_limits_oracle():
    y, predicted, _ = make_pool(300)
    n = (y == "idea").sum()
    for options in ({"cross_fitted": False}, {"cross_fitted": False, "n_pool": 600}):
        recall = estimate_quality(y, predicted, **options).classes["idea"].recall
        count = round(recall.value * n)
        expected = proportion_confint(count, n, method="beta")
        if "n_pool" in options:  # about half of the class is in the sample
            more = 2 * np.sqrt((1 / n - 1 / 300) / 2)
            sizes = [round(2 * n * factor) for factor in (1 - more, 1 + more)]
            exact = [np.array(interval_of_count(count, n, m, 0.95)) / m for m in sizes]
            expected = np.min(exact, axis=0)[0], np.max(exact, axis=0)[1]
        np.testing.assert_allclose(recall.interval, expected)


def find_truth(y, predicted):
    """Return what each measure is in the pool."""
    precision, recall, f1, _ = precision_recall_fscore_support(y, predicted)
    found = {"accuracy": np.mean(y == predicted), "macro_f1": f1.mean()}
    for j, name in enumerate(CLASSES):
        found |= {(name, "precision"): precision[j], (name, "recall"): recall[j]}
        found[name, "f1"] = f1[j]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("design", ["random", "active"])
def test_the_intervals_cover(design):
    y, predicted, proba = make_pool()
    truth, n = find_truth(y, predicted), 150
    confidence = proba.max(axis=1)
    doubt = 1.001 - confidence
    size = 0.5 + 0.5 * doubt / doubt.mean()
    rng = np.random.default_rng(1)
    covered = {name: [] for name in [*truth, "overconfidence"]}
    for _ in range(200):
        rows = rng.choice(len(y), n, replace=False)
        options = {"n_pool": len(y)}
        if design == "active":
            rows = np.argsort(rng.exponential(size=len(y)) / size)[:n]
            seen = np.r_[0, np.cumsum(size[rows])[:-1]]
            options["draw_proba"] = size[rows] / (size.sum() - seen)
        both = proba[rows], proba
        found = estimate_quality(y[rows], predicted[rows], *both, **options)
        all_found = {"accuracy": found.accuracy, "macro_f1": found.macro_f1}
        for name, one in found.classes.items():
            parts = ("precision", "recall", "f1")
            all_found |= {(name, part): getattr(one, part) for part in parts}
        for name, one in all_found.items():
            if one.interval is not None:
                low, high = one.interval
                covered[name].append(low <= truth[name] <= high)
        low, high = found.overconfidence.interval
        gap = confidence.mean() - truth["accuracy"]
        covered["overconfidence"].append(low <= gap <= high)
    rates = {name: np.mean(hits) for name, hits in covered.items() if len(hits) > 100}
    assert len(rates) >= 10
    assert min(rates.values()) > 0.9, rates
    assert np.mean([*rates.values()]) > 0.93


def test_the_accuracy_uses_the_confidence():
    y, predicted, proba = make_pool()
    rows, confidence = np.arange(150), proba.max(axis=1)
    both = proba[rows], proba
    found = estimate_quality(y[rows], predicted[rows], *both, cross_fitted=False)
    right = y[rows] == predicted[rows]
    assert found.accuracy == estimate_share(right, confidence[rows], confidence)
    assert found.accuracy.effective_size > 150
    assert str(found) == f"accuracy {found.accuracy}"
    alone = estimate_quality(y[rows], predicted[rows], both[0])
    gap = np.mean(confidence[rows] - right)
    assert alone.overconfidence.value == pytest.approx(gap)
    low, high = alone.overconfidence.interval
    assert low < gap < high


def test_predictions_of_models_trained_on_the_sample_have_wider_intervals():
    y, predicted, proba = make_pool()
    rows = np.arange(150)
    args = y[rows], predicted[rows], proba[rows], proba
    found, independent = (estimate_quality(*args, cross_fitted=x) for x in (1, 0))
    ratio = found.accuracy.half_width / independent.accuracy.half_width
    assert ratio == pytest.approx(np.sqrt(CROSS_FITTED), rel=0.02)
    part = estimate_quality(*args, cross_fitted=0.2)
    ratio = part.accuracy.half_width / independent.accuracy.half_width
    assert ratio == pytest.approx(np.sqrt(1.15), rel=0.02)
    recalls = (x.classes["idea"].recall.half_width for x in (found, independent))
    ratio = next(recalls) / next(recalls)
    assert ratio == pytest.approx(np.sqrt(CROSS_FITTED), rel=0.1)


@pytest.mark.parametrize("share", [-0.1, 1.1, "yes", None, np.nan])
def test_the_share_of_the_labels_is_one(share):
    with pytest.raises(ValueError, match="'cross_fitted' must be True, False or"):
        estimate_quality([1] * 12, [1] * 12, cross_fitted=share)


def test_the_accuracy_of_cross_validation_is_that_of_fewer_labels_oracle():
    found = estimate_quality([1] * 12, [1] * 9 + [0] * 3).accuracy
    assert found.value == pytest.approx(0.75)
    expected = proportion_confint(9 / 1.75, 12 / 1.75, method="beta")
    assert found.interval == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize("n", [80, 200])
def test_the_interval_covers_the_accuracy_of_held_out_predictions(n):
    # Five models that lack a fifth of the labels; the truth is that of one with all.
    rng = np.random.default_rng(0)
    mean, covered = np.full(20, 0.35), []
    model = LinearDiscriminantAnalysis()
    y = rng.integers(2, size=3000)
    X = rng.normal(size=(3000, 20)) + np.where(y == 1, 1, -1)[:, None] * mean
    for _ in range(150):
        rows = rng.permutation(3000)[:n]
        guess = cross_val_predict(model, X[rows], y[rows], cv=5)
        low, high = estimate_quality(y[rows], guess, n_pool=3000).accuracy.interval
        model.fit(X[rows], y[rows])
        covered.append(low <= np.delete(model.predict(X) == y, rows).mean() <= high)
    assert 0.92 <= np.mean(covered) < 1.0


def test_a_constant_confidence_changes_nothing():
    # 38 of 40 predictions are right, and all have the same probability.
    y, predicted = np.array([0] * 38 + [1] * 2), np.zeros(40, dtype=int)
    for n_pool in (400, 2000, 20_000):
        for confidence in (0.6, 0.7, 0.95, 0.97, 0.99):
            proba = np.tile([confidence, 1 - confidence], (n_pool, 1))
            options = {"classes": [0, 1], "n_pool": n_pool}
            found = estimate_quality(y, predicted, proba[:40], proba, **options)
            alone = estimate_quality(y, predicted, **options)
            assert found.accuracy.interval == pytest.approx(alone.accuracy.interval)
            assert found.classes[0].recall == alone.classes[0].recall
            assert found.classes[1].f1 == alone.classes[1].f1
            gap = confidence - 0.95
            assert found.overconfidence.value == pytest.approx(gap)


def test_no_items_have_no_value_and_few_a_wide_interval():
    found = estimate_quality(["a"] * 30 + ["b"] * 5, ["a"] * 35)
    assert found.classes["b"].precision.value is None
    assert found.classes["b"].precision.n_labels == 0
    low, high = found.classes["b"].recall.interval
    assert (low, found.classes["b"].recall.n_labels) == (0, 5)
    assert high > 0.5
    assert found.classes["a"].recall.value == 1
    assert found.classes["a"].recall.interval[0] < 0.95
    assert found.overconfidence is None
    assert estimate_quality(["a"] * 5, ["a"] * 5).classes["a"].recall.value is None


def test_the_macro_f1_waits_for_ten_items_of_each_known_class():
    found = estimate_quality([0] * 40, [0] * 40, classes=[0, 1], n_pool=2000).macro_f1
    assert found.value is found.interval is None
    assert str(found) == "too few labels: 0, of at least 10"
    y = [0] * 40 + [1] * 9
    assert estimate_quality(y, y).macro_f1.half_width == np.inf
    assert estimate_quality([*y, 1], [*y, 0]).macro_f1.value is not None
    # The labels of a whole pool say all.
    assert estimate_quality(y, y, n_pool=49).macro_f1.interval == (1, 1)


def test_errors_that_two_classes_share_do_not_average_out():
    # One error of a pool of two classes changes both F1 scores.
    held, rng = [], np.random.default_rng(0)
    y = np.tile([0, 1], 200)
    predicted = y.copy()
    predicted[0] = 1
    truth = f1_score(y, predicted, average="macro")
    for _ in range(100):
        rows = rng.choice(400, 300, replace=False)
        options = {"n_pool": 400, "cross_fitted": False}
        found = estimate_quality(y[rows], predicted[rows], **options).macro_f1
        held.append(found.interval[0] <= truth <= found.interval[1])
    assert np.mean(held) >= 0.95


def test_the_overconfidence_of_no_error_has_an_interval():
    proba = np.tile([1.0, 0.0], (40, 1))
    found = estimate_quality([0] * 40, [0] * 40, proba, classes=[0, 1])
    low, high = found.overconfidence.interval
    assert low == pytest.approx(np.log(0.05) / 40)  # doubtful items may be missing
    assert high > 0.08


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="'predicted' must have the shape of 'y'"):
        estimate_quality(["a", "b"], ["a"])


def test_recall_compares_sample_and_pool_oracle():
    # Both counts of the ratio are predicted at the means of the pool.
    y, predicted, proba = make_pool()
    rows = np.random.default_rng(0).choice(2000, 200, replace=False)
    found = estimate_quality(y[rows], predicted[rows], proba[rows], proba)
    guess = predicted == "idea"
    expected = np.column_stack([guess * proba[:, 1], proba[:, 1]])
    at = [1, *expected.mean(axis=0)]
    counts = []
    for part in ((y == "idea") & guess, y == "idea"):
        fitted = OLS(part[rows].astype(float), add_constant(expected[rows])).fit()
        counts.append(fitted.predict(at)[0])
    recall = found.classes["idea"].recall
    assert recall.value == pytest.approx(counts[0] / counts[1])


def test_a_sample_of_easy_texts_is_corrected():
    # In a session the audit is harder than the pool, as the other labels are chosen.
    y, predicted, proba = make_pool()
    confidence = proba.max(axis=1)
    rng, truth = np.random.default_rng(0), np.mean(y == predicted)
    plain, assisted = [], []
    for _ in range(40):
        rows = np.argsort(rng.exponential(size=2000) / confidence**2)[:150]
        both = proba[rows], proba
        for found, options in ((plain, ()), (assisted, both)):
            quality = estimate_quality(y[rows], predicted[rows], *options)
            found.append(quality.accuracy.value - truth)
    assert np.mean(plain) > 0.04
    assert abs(np.mean(assisted)) < 0.02


def test_a_calibration_error_is_biased_where_overconfidence_is_not():
    # Right with the probability that the model states: both are 0 but for the pool.
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, 4000)
    predicted = np.where(rng.random(4000) < confidence, 1, 0)
    proba = np.column_stack([1 - confidence, confidence])
    bins = (20 * (confidence - 0.5)).astype(int)

    def find_error(rows):
        gaps = np.bincount(bins[rows], predicted[rows] - confidence[rows], 10)
        return np.abs(gaps).sum() / len(rows)

    truth = find_error(np.arange(4000))
    gap = confidence.mean() - predicted.mean()
    errors, holds, holds_error = [], 0, 0
    for _ in range(100):
        rows = rng.choice(4000, 100, replace=False)
        errors.append(find_error(rows))
        again = [find_error(rows[rng.integers(100, size=100)]) for _ in range(100)]
        low, high = np.quantile(again, (0.025, 0.975))
        holds_error += low <= truth <= high
        found = estimate_quality(predicted[rows], np.ones(100), proba[rows], proba)
        low, high = found.overconfidence.interval
        holds += low <= gap <= high
    assert truth < 0.025
    assert np.mean(errors) > truth + 0.04
    assert holds_error < 20
    assert holds > 85


def test_the_confusion_matrix_is_drawn_by_scikit_learn():
    y, predicted, _ = make_pool(300)
    found = estimate_quality(y, predicted)
    display = ConfusionMatrixDisplay(found.confusion, display_labels=[*found.classes])
    display.plot(ax=Figure().subplots())
    assert [x.get_text() for x in display.ax_.get_yticklabels()] == CLASSES
    shown = [[int(cell.get_text()) for cell in row] for row in display.text_]
    assert shown == confusion_matrix(y, predicted).tolist()


@pytest.mark.parametrize("cross_fitted", [True, False])
def test_a_class_among_1000_is_estimated_as_one_of_two(cross_fitted):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 1000, 3000)
    y[:30], predicted = 7, np.where(rng.random(3000) < 0.7, y, np.roll(y, 1))
    options = {"n_pool": 20_000, "cross_fitted": cross_fitted}
    found = estimate_quality(y, predicted, **options).classes
    for j in (7, 999):
        assert (
            found[j] == estimate_quality(y == j, predicted == j, **options).classes[1]
        )
