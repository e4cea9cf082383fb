"""Jaccard similarity against plain loops and simulated chance."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skactive.analysis import mean_jaccard
from skactive.analysis._queried import chance_jaccard
from skactive.simulation import Run


def jaccard(run_a, run_b, **options):
    """The similarity of two runs after each round."""
    (similarity,) = mean_jaccard(run_a, run_b, **options).similarity
    return similarity


def make(*batches, **info):
    return Run([{"queried": batch} for batch in batches], info=info)


def draw(number, /, n_pool=60, initial=5, sizes=(4, 7, 1, 9), **info):
    order = np.random.default_rng(number).permutation(n_pool)
    batches = np.split(order, np.cumsum([initial, *sizes]))[:-1]
    return make(*batches, **info)


def count_shared(a, b):
    """The definition, item by item."""
    union = list(a) + [item for item in b if item not in a]
    return sum(item in b for item in a) / len(union) if union else np.nan


@pytest.mark.parametrize("include_initial", [False, True])
def test_cumulative_sets_by_plain_loops(include_initial):
    a, b = draw(0), draw(1)
    first = 0 if include_initial else 1
    expected = []
    for i in range(5):
        sets = [[p for r in run.rounds[first : i + 1] for p in r["queried"]]
                for run in (a, b)]  # fmt: skip
        expected.append(count_shared(*sets))
    found = jaccard(a, b, include_initial=include_initial)
    assert_array_equal(found, expected)
    assert np.isnan(found[0]) != include_initial
    assert found[-1] > 0


def test_single_batches_by_plain_loops():
    a, b = draw(0), draw(3)
    expected = [count_shared(x["queried"], y["queried"])
                for x, y in zip(a.rounds, b.rounds, strict=True)]  # fmt: skip
    found = jaccard(a, b, cumulative=False, include_initial=True)
    assert_array_equal(found, expected)
    assert_array_equal(jaccard(a, b, cumulative=False)[1:], expected[1:])


def test_equal_and_disjoint_runs():
    a = make([0], [1, 2], [3])
    assert_array_equal(jaccard(a, make([0], [2, 1], [3])), [np.nan, 1, 1])
    assert_array_equal(jaccard(a, make([0], [4, 5], [6])), [np.nan, 0, 0])


def test_the_order_in_which_items_were_asked_counts_only_between_rounds():
    assert_array_equal(
        jaccard(make([], [1, 2], [3, 4]), make([], [3, 4], [2, 1])), [np.nan, 0, 1]
    )


def test_the_longer_run_is_cut():
    assert len(jaccard(make([0], [1], [2]), make([0], [1]))) == 2


def test_a_round_without_picks_keeps_the_sets():
    assert_array_equal(jaccard(make([0], [1], []), make([0], [1], [])), [np.nan, 1, 1])


def test_pairs_are_those_of_one_seed():
    a = [draw(0, seed=5, data="x"), draw(1, seed=5, data="y"), draw(2, seed=6)]
    b = [draw(7, seed=6), draw(8, seed=5, data="x"), draw(9, seed=5, data="y")]
    overlap = mean_jaccard(a, b)
    each = [jaccard(a[0], b[1]), jaccard(a[1], b[2]), jaccard(a[2], b[0])]
    assert_array_equal(overlap.similarity, each)
    assert_allclose(overlap.mean, np.mean(each, axis=0))
    assert_allclose(overlap.std, np.std(each, axis=0, ddof=1))
    assert_array_equal(overlap.n_labeled, [5, 9, 16, 17, 26])
    assert overlap.chance is None


def test_runs_that_name_no_seed_are_paired_in_order():
    a, b = [draw(0), draw(1)], [draw(2), draw(3)]
    assert_array_equal(
        mean_jaccard(a, b).similarity, [jaccard(a[0], b[0]), jaccard(a[1], b[1])]
    )


@pytest.mark.parametrize(
    ("seeds_a", "seeds_b"),
    [([0, 1], [0, 2]), ([0, 1], [0]), ([0, 0], [0, 0]), ([None], [None, None])],
)
def test_what_forms_no_pairs_is_refused(seeds_a, seeds_b):
    a, b = ([draw(0, seed=s) for s in seeds] for seeds in (seeds_a, seeds_b))
    with pytest.raises(ValueError, match=r"must form pairs: .* got the seeds \["):
        mean_jaccard(a, b)


def test_runs_without_rounds_are_refused():
    with pytest.raises(ValueError, match="must hold runs with rounds"):
        mean_jaccard(make(), make())


# Chance


@pytest.mark.parametrize(("n_a", "n_b", "n_pool"), [(3, 5, 9), (8, 8, 10), (1, 0, 4)])
def test_chance_is_what_random_sets_share(n_a, n_b, n_pool):
    rng = np.random.default_rng(0)
    found = [
        count_shared(rng.permutation(n_pool)[:n_a].tolist(),
                     rng.permutation(n_pool)[:n_b].tolist())
        for _ in range(4000)
    ]  # fmt: skip
    error = np.std(found) / np.sqrt(4000)
    assert abs(chance_jaccard(n_a, n_b, n_pool) - np.mean(found)) <= 4 * error + 1e-12


def test_chance_by_hand():
    # Two pairs out of three items: equal with 1/3, else one of three is shared.
    assert_allclose(chance_jaccard(2, 2, 3), 1 / 3 + 2 / 3 / 3)
    assert chance_jaccard(4, 4, 4) == pytest.approx(1)
    assert np.isnan(chance_jaccard(0, 0, 4))


def test_chance_leaves_out_shared_initial_labels():
    a = make([0, 1], [2], [3], pool_size=5)
    b = make([1, 0], [4], [3], pool_size=5)
    c = make([1, 2], [4], [3], pool_size=5)
    assert_allclose(
        mean_jaccard(a, b).chance,
        [np.nan, chance_jaccard(1, 1, 3), chance_jaccard(2, 2, 3)],
    )
    assert_allclose(mean_jaccard(a, c).chance[1:], [1 / 5, chance_jaccard(2, 2, 5)])
    assert_allclose(
        mean_jaccard(a, b, include_initial=True).chance[0], chance_jaccard(2, 2, 5)
    )
    assert_allclose(mean_jaccard(a, b, cumulative=False).chance[1:], [1 / 3, 1 / 3])


def test_random_runs_overlap_as_chance():
    a = [draw(s, 200, 0, (40, 60), pool_size=200) for s in range(30)]
    b = [draw(s + 50, 200, 0, (40, 60), pool_size=200) for s in range(30)]
    overlap = mean_jaccard(a, b)
    assert (abs(overlap.mean - overlap.chance)[1:] < 0.02).all()


def test_tables():
    a, b = draw(0, pool_size=60), draw(1, pool_size=60)
    text = str(mean_jaccard(a, b))
    assert text.splitlines()[0] == "Jaccard similarity, 1 pairs of runs"
    assert text.splitlines()[1].split() == ["labels", "mean", "std", "chance"]
    pytest.importorskip("pandas")
    assert list(mean_jaccard(a, b).to_frame()) == ["n_labeled", "mean", "std", "chance"]
