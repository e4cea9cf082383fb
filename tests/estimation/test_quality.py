"""Quality of predictions in all and for each class."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.metrics import (
    ConfusionMatrixDisplay,
    confusion_matrix,
    f1_score,
    precision_recall_fscore_support,
)
from statsmodels.api import OLS, add_constant
from statsmodels.stats.proportion import proportion_confint

from skactive.estimation import estimate_quality, estimate_share

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


def test_a_recall_has_the_interval_of_wilson():
    y, predicted, _ = make_pool(300)
    recall = estimate_quality(y, predicted).classes["idea"].recall
    n = (y == "idea").sum()
    expected = proportion_confint(round(recall.value * n), n, method="wilson")
    np.testing.assert_allclose(recall.interval, expected, atol=0.002)


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
    found = estimate_quality(y[rows], predicted[rows], *both)
    right = y[rows] == predicted[rows]
    assert found.accuracy == estimate_share(right, confidence[rows], confidence)
    assert found.accuracy.effective_size > 160
    assert str(found) == f"accuracy {found.accuracy}"
    alone = estimate_quality(y[rows], predicted[rows], both[0])
    gap = np.mean(confidence[rows] - right)
    assert alone.overconfidence.value == pytest.approx(gap)
    low, high = alone.overconfidence.interval
    assert low < gap < high


def test_few_items_have_no_value():
    found = estimate_quality(["a"] * 30 + ["b"] * 5, ["a"] * 35)
    assert found.classes["b"].recall.value is None
    assert found.classes["b"].precision.n_labels == 0
    assert found.classes["a"].recall.value == 1
    assert found.classes["a"].recall.interval[0] < 0.95
    assert found.overconfidence is None
    assert estimate_quality(["a"] * 5, ["a"] * 5).macro_f1.value is None


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
