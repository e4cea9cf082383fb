"""Overlap: Jaccard similarity with a reference, chance and bands."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose

from skactive.analysis import Overlap, mean_jaccard
from skactive.analysis._queried import chance_jaccard
from skactive.plotting import OverlapDisplay

# Two seeds of three protocols: initial labels, then two rounds of two.
ASKED = {
    "AL+FT": [[[0], [1, 2], [3, 4]], [[5], [1, 2], [3, 4]]],
    "PRepAL": [[[0], [1, 2], [3, 6]], [[5], [1, 7], [2, 8]]],
    "random": [[[0], [7, 8], [9, 6]], [[5], [8, 9], [0, 7]]],
}


@pytest.fixture
def runs(make_run):
    return [
        make_run(
            [0.5] * 3,
            queried=queried,
            protocol=name,
            strategy="margin",
            seed=seed,
            pool_size=10,
        )
        for name, seeds in ASKED.items()
        for seed, queried in enumerate(seeds)
        for name, strategy in [(name, name)]
    ]


def _draw(runs, reference="AL+FT", **options):
    return OverlapDisplay.from_runs(runs, reference, groupby="protocol", **options)


def test_lines_are_mean_similarities(runs, ax):
    display = _draw(runs, ax=ax)
    assert list(display.lines_) == ["PRepAL", "random"]
    # Seeds: {1,2} = {1,2}, then 3 of 5; {1} of {1,2,7}, then {1,2} of {1,2,3,4,7,8}.
    expected = [(1 + 1 / 3) / 2, (3 / 5 + 2 / 6) / 2]
    assert_allclose(display.lines_["PRepAL"].get_xydata(), np.c_[[3, 5], expected])
    assert_allclose(display.lines_["random"].get_ydata(), [0, 0])


@pytest.mark.long
def test_bands_are_one_deviation_and_stay_in_0_to_1(runs, ax):
    band = _draw(runs, ax=ax).bands_["PRepAL"]
    points = band.get_paths()[0].vertices
    std = (1 - 1 / 3) / np.sqrt(2)
    assert points[:, 1].max() == 1  # 2/3 + 0.47 is more than 1
    assert_allclose(points[points[:, 0] == 3, 1].min(), 2 / 3 - std)


def test_single_batches(runs, ax):
    groups = [
        [run for run in runs if run.info["protocol"] == name]
        for name in ("PRepAL", "AL+FT")
    ]
    overlaps = {"PRepAL": mean_jaccard(*groups, cumulative=False)}
    display = OverlapDisplay(overlaps=overlaps).plot(ax)
    expected = [(1 + 1 / 3) / 2, (1 / 3 + 0) / 2]
    assert_allclose(display.lines_["PRepAL"].get_ydata(), expected)


def test_chance_is_drawn_once(runs, ax):
    display = _draw(runs, ax=ax)
    (chance,) = display.chance_
    expected = [chance_jaccard(2, 2, 9), chance_jaccard(4, 4, 9)]  # without the first
    assert_allclose(chance.get_ydata(), expected)
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts == ["PRepAL", "random", "chance"]
    assert len(ax.lines) == 3


def test_no_chance_without_the_size_of_the_pool(runs, ax):
    del runs[0].info["pool_size"]
    display = _draw(runs, ax=ax)
    assert display.chance_ == []
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts == ["PRepAL", "random"]


def test_labels_of_the_axes(runs, ax):
    _draw(runs, ax=ax)
    assert ax.get_xlabel() == "labels"
    assert ax.get_ylabel() == "Jaccard similarity with AL+FT"
    assert ax.get_ylim()[0] == 0


def test_a_reference_of_other_runs(runs, ax):
    display = _draw(runs[2:], runs[:2], ax=ax)
    assert list(display.lines_) == ["PRepAL", "random"]
    assert ax.get_ylabel() == "Jaccard similarity"
    assert_allclose(display.lines_["PRepAL"].get_ydata()[0], 2 / 3)


def test_one_pair_has_no_band(runs, ax):
    display = _draw(runs[::2], ax=ax)
    assert len(ax.collections) == 0
    assert display.legend_.get_title().get_text() == "one pair of runs"


def test_lines_differ_without_colors(runs, ax):
    display = _draw(runs, ax=ax)
    lines = [*display.lines_.values(), *display.chance_]
    assert len({(line.get_linestyle(), line.get_marker()) for line in lines}) == 3


def test_an_unknown_reference(runs):
    with pytest.raises(ValueError, match=r"'reference' must be one of \['AL\+FT'"):
        _draw(runs, "AL+LR")
    assert plt.get_fignums() == []


def test_nothing_but_the_reference(runs):
    with pytest.raises(ValueError, match="a group other than the reference"):
        _draw(runs[:2])


def test_runs_without_a_partner_name_the_group(runs):
    with pytest.raises(ValueError, match=r"'random' against the reference: .* pairs"):
        _draw(runs[:-1])
    assert plt.get_fignums() == []


def test_nothing_asked(make_run):
    runs = {name: make_run([0.5]) for name in ("a", "b")}
    with pytest.raises(ValueError, match="'a' has no round with queried items"):
        OverlapDisplay.from_runs(runs, "b")
    assert plt.get_fignums() == []


@pytest.mark.parametrize("overlaps", [{}, None], ids=str)
def test_no_overlaps(overlaps):
    with pytest.raises(ValueError, match="'overlaps' must be a dict"):
        OverlapDisplay(overlaps=overlaps).plot()


def test_chances_that_differ_are_all_drawn(ax):
    overlaps = {
        name: Overlap(
            n_labeled=np.array([10.0, 20.0]),
            mean=np.array([0.2, 0.3]),
            std=np.full(2, np.nan),
            chance=np.array([0.1, chance]),
            similarity=np.array([[0.2, 0.3]]),
        )
        for name, chance in [("a", 0.1), ("b", 0.2), ("c", 0.2)]
    }
    assert len(OverlapDisplay(overlaps=overlaps).plot(ax).chance_) == 2
