"""Shares of classes and groups, and the planner."""

import numpy as np
import pytest

from skactive.estimation import (
    Prevalence,
    estimate_prevalence,
    estimate_share,
    plan_labels,
)


def make_pool(n=1200):
    rng = np.random.default_rng(0)
    truth = rng.choice(["bug", "idea", "praise"], n, p=[0.2, 0.3, 0.5])
    guess = np.where(rng.random(n) < 0.2, rng.permutation(truth), truth)
    groups = np.where(np.arange(n) % 3 == 0, "old", "new")
    proba = (guess[:, None] == ["bug", "idea", "praise"]).astype(float)
    return truth, proba, groups, rng.choice(n, 150, replace=False)


def test_each_share_is_that_of_its_class():
    truth, proba, _, rows = make_pool()
    found = estimate_prevalence(truth[rows], proba[rows], proba)
    assert [*found.estimates] == [(None, x) for x in ("bug", "idea", "praise")]
    for j, (_, name) in enumerate(found.estimates):
        y, f = truth[rows] == name, proba[:, j]
        one, expected = found.estimates[None, name], estimate_share(y, f[rows], f)
        assert one.value == pytest.approx(expected.value)
        assert one.interval == pytest.approx(expected.interval)
    indicators = truth[rows, None] == ["bug", "idea", "praise"]
    several = estimate_prevalence(indicators, proba[rows], proba)
    assert [*map(str, several.estimates.values())] == [
        *map(str, found.estimates.values())
    ]
    two = np.stack([proba, np.ones_like(proba)], axis=2)
    assert str(estimate_prevalence(truth[rows], two[rows], two)) == str(found)


def test_groups_are_estimated_on_their_own():
    truth, proba, groups, rows = make_pool()
    rows = np.r_[rows[groups[rows] == "old"][:9], rows[groups[rows] == "new"]]
    options = {"groups": groups[rows], "pool_groups": groups}
    found = estimate_prevalence(truth[rows], proba[rows], proba, **options)
    new = groups == "new"
    own = rows[new[rows]]
    alone = estimate_prevalence(truth[own], proba[own], proba[new])
    for name in ("bug", "idea", "praise"):
        assert found.estimates["new", name] == alone.estimates[None, name]
        assert found.estimates["old", name].value is None
    lines = str(found).splitlines()
    assert lines[0].split()[:3] == ["group", "class", "share"]
    assert "old    bug     too few" in lines[4]
    table = found.to_frame()
    assert len(table) == 6
    assert table["share"].isna().sum() == 3
    bug = table[(table["group"] == "new") & (table["class"] == "bug")].iloc[0]
    assert bug["number"] == pytest.approx(bug["share"] * 800)
    empty = {"groups": ["old"] * 20, "pool_groups": ["old"] * 40 + ["new"] * 40}
    found = estimate_prevalence(["a"] * 20, **empty).estimates
    assert found["new", "a"].n_labels == 0
    assert found["old", "a"].n_pool == 40


def test_the_limits_of_a_labeled_group_have_no_negative_zero():
    groups = ["g1"] * 12 + ["g2"] * 2
    options = {"groups": groups, "pool_groups": groups}
    found = estimate_prevalence(["a"] * 12 + ["b"] * 2, **options)
    assert "-0" not in str(found.to_dict()) + str(found).replace("0-0", "")
    assert found.estimates["g2", "b"].interval == (1.0, 1.0)


def test_a_class_without_a_label_has_an_upper_limit():
    found = estimate_prevalence(["a"] * 50, classes=["a", "b"], n_pool=1000)
    rare = found.estimates[None, "b"]
    assert rare.value == 0
    assert 0.05 < rare.interval[1] < 0.08
    assert list(found.to_frame()) == [
        *("class", "share", "low", "high", "number", "number_low", "number_high"),
        *("n_pool", "n_labels", "effective_size", "counted", "confidence_level"),
    ]
    assert str(Prevalence()).startswith("class")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": ["a"]}, "'b' is missing"),
        ({"proba": [[1, 0]] * 2}, "given together"),
        ({"proba": [[1]] * 2, "pool_proba": [[1]] * 4}, "each of the 2 classes"),
        ({"groups": ["x", "y"]}, "'groups' needs 'pool_groups'"),
        ({"groups": ["x", "z"], "pool_groups": ["x", "y"]}, "'z' is missing"),
        ({"groups": ["x"], "pool_groups": ["x", "y"]}, "must have 2 items"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        estimate_prevalence(["a", "b"], **options)
    with pytest.raises(ValueError, match="column of 0 and 1"):
        estimate_prevalence([[0, 2]])
    for odd in ([], None, 5):
        with pytest.raises(ValueError, match="list of classes"):
            estimate_prevalence(odd)


def test_one_column_is_one_class():
    labels = [[1]] * 15 + [[0]] * 25
    found = estimate_prevalence(labels, classes=["a"], n_pool=100).estimates
    assert found == {(None, "a"): estimate_share([x for (x,) in labels], n_pool=100)}


@pytest.mark.parametrize("share", [0.05, 0.5])
@pytest.mark.parametrize("n_pool", [None, 1500])
def test_the_plan_gives_the_wanted_width(share, n_pool):
    n = plan_labels(0.04, share=share, n_pool=n_pool)
    for size, wide in ((n, 0.0405), (int(0.9 * n), 0.0395)):
        k = round(share * size)
        half = estimate_share([1] * k + [0] * (size - k), n_pool=n_pool).half_width
        assert (half <= wide) == (size == n), size
    assert plan_labels(0.04, share=share, r2=0.5, n_pool=n_pool) < n


def test_the_plan_has_limits():
    assert plan_labels(0.01, n_pool=200) <= 200
    assert plan_labels(0.45) == 10
    with pytest.raises(ValueError, match="'half_width' must be between 0 and 1"):
        plan_labels(3)
