"""What the demo says about its runs: numbers, words, a picture and files."""

import json
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from skactive.cli._demo import draw, format_report, save, summarize
from skactive.plotting._style import import_figure

RANDOM = [[0.5, 0.60], [0.4, 0.62], [0.6, 0.64]]  # (seeds, rounds)


def _record(**scores):
    """A record of runs with these scores, for each strategy (seeds, rounds)."""
    runs = [
        {
            "strategy": name,
            "seed": seed,
            "rounds": [
                {
                    "asked": [10 * i, 10 * i + 1],
                    "n_labeled": 10 + 5 * i,
                    "fit_seconds": 0.25,
                    "query_seconds": 0.5 * (i > 0),
                    "scores": {"accuracy": score},
                }
                for i, score in enumerate(row)
            ],
        }
        for name, rows in scores.items()
        for seed, row in enumerate(rows)
    ]
    first = next(iter(scores.values()))
    return {
        "parameters": {
            "model": "some/folder/tiny/minilm",
            "strategies": list(scores),
            "n_initial": 10,
            "n_rounds": len(first[0]) - 1,
            "batch_size": 5,
            "n_seeds": len(first),
            "pool_size": 5000,
            "test_size": 1500,
        },
        "data": {"name": "mine", "n_texts": 6500, "classes": {"a": 4000, "b": 2500}},
        "seconds": {"encoding": 12.34, "total": 56.7},
        "runs": runs,
    }


def _ends(*lasts):
    """Scores of runs that begin alike and end so."""
    return [[0.5, last] for last in lasts]


def _report(record):
    return format_report(record, summarize(record))


def _one_line(record):
    return " ".join(_report(record).split())


# Numbers


def test_means_and_deviations_over_the_seeds():
    result = summarize(_record(random=RANDOM))["strategies"]["random"]
    assert_allclose(result["accuracy_mean"], [0.5, 0.62])
    assert_allclose(result["accuracy_std"], [0.1, 0.02])


def test_labels_are_those_of_the_rounds():
    record = _record(random=[[0.1, 0.2, 0.3]])
    assert summarize(record)["labels"] == [10, 15, 20]


def test_seconds_are_sums_of_a_run_averaged_over_the_seeds():
    record = _record(random=[[0.1, 0.2, 0.3], [0.1, 0.2, 0.3]])
    record["runs"][0]["rounds"][2]["query_seconds"] = 2.5
    result = summarize(record)["strategies"]["random"]
    assert result["retraining_seconds"] == 0.75
    assert result["acquisition_seconds"] == 2  # of 0.5 + 2.5 and 0.5 + 0.5


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.1, 0.2, 0.31], 20),
        ([0.1, 0.3, 0.2], 15),
        ([0.4, 0.5, 0.6], 10),
        ([0.1, 0.2, 0.29], None),
    ],
    ids=["at the end", "equal, then lost", "at once", "never"],
)
def test_labels_to_match_the_last_accuracy_of_random(scores, expected):
    summary = summarize(_record(random=[[0.1, 0.2, 0.3]], margin=[scores]))
    assert summary["strategies"]["margin"]["labels_to_match_random"] == expected


def test_labels_to_match_are_read_off_the_means():
    # One of the two seeds is there at once, the mean at the end only.
    scores = {"random": [[0.1, 0.3], [0.1, 0.3]], "margin": [[0.3, 0.3], [0.1, 0.4]]}
    margin = summarize(_record(**scores))["strategies"]["margin"]
    assert margin["labels_to_match_random"] == 15


@pytest.mark.parametrize("n_seeds", [2, 3, 10])
def test_oracle_the_interval_is_that_of_the_paired_t_test(n_seeds):
    rng = np.random.default_rng(0)
    random, margin = rng.uniform(0.6, 0.9, size=(2, n_seeds))
    record = _record(random=_ends(*random), margin=_ends(*margin))
    difference = summarize(record)["strategies"]["margin"]["difference"]
    test = stats.ttest_rel(margin, random)
    assert_allclose(difference["interval"], test.confidence_interval(0.95))
    assert_allclose(difference["mean"], np.mean(margin - random))
    assert_allclose(difference["std"], np.std(margin - random, ddof=1))


def test_a_constant_difference_has_an_interval_of_no_width():
    record = _record(random=_ends(0.5, 0.625), margin=_ends(0.75, 0.875))
    difference = summarize(record)["strategies"]["margin"]["difference"]
    assert difference["interval"] == [0.25, 0.25]


def test_ties_count_neither_above_nor_below():
    record = _record(random=_ends(0.5, 0.5, 0.5), margin=_ends(0.5, 0.4, 0.6))
    difference = summarize(record)["strategies"]["margin"]["difference"]
    assert (difference["n_seeds_above"], difference["n_seeds_below"]) == (1, 1)


def test_one_seed_has_no_spread():
    summary = summarize(_record(random=_ends(0.5), margin=_ends(0.6)))
    margin = summary["strategies"]["margin"]
    assert margin["accuracy_std"] is None
    assert margin["difference"]["std"] is None
    assert margin["difference"]["interval"] is None


# Words

VERDICTS = {
    "apart, above": (
        _ends(0.60, 0.61, 0.62),
        _ends(0.70, 0.71, 0.73),
        "The bands do not overlap: margin ends above random on these texts.",
    ),
    "apart, below": (
        _ends(0.70, 0.71, 0.73),
        _ends(0.60, 0.61, 0.62),
        "The bands do not overlap: margin ends below random on these texts.",
    ),
    "overlapping": (
        _ends(0.60, 0.70, 0.80),
        _ends(0.80, 0.60, 0.75),
        "The bands overlap: this run does not show a difference.",
    ),
    "overlapping, pairs above": (
        _ends(0.60, 0.70, 0.80),
        _ends(0.62, 0.72, 0.83),
        "The bands overlap: the figure alone does not show a difference, and a single "
        "run may come out either way. The pairs show one: on average, margin ends "
        "above random on these texts.",
    ),
    "apart, few seeds that disagree": (
        _ends(0.30, 0.40, 0.50),
        _ends(0.80, 0.70, 0.60),
        "The interval holds 0: this run does not show a difference.",
    ),
    "equal": (
        _ends(0.60, 0.70, 0.80),
        _ends(0.60, 0.70, 0.80),
        "The bands overlap: this run does not show a difference.",
    ),
    "two seeds": (
        _ends(0.60, 0.61),
        _ends(0.90, 0.92),
        "Too few seeds: this run does not show a difference.",
    ),
    "one seed": (
        _ends(0.60),
        _ends(0.90),
        "+0.300 in one seed. Too few seeds: this run does not show a difference.",
    ),
}


@pytest.mark.parametrize(
    ("random", "margin", "verdict"), VERDICTS.values(), ids=VERDICTS
)
def test_the_verdict(random, margin, verdict):
    report = _one_line(_record(random=random, margin=margin))
    assert verdict in report
    shows = "does not show a difference" not in verdict or "pairs show" in verdict
    assert ("on these texts." in report) == shows


def test_the_comparison_tells_difference_interval_and_wins():
    record = _record(random=_ends(0.5, 0.5, 0.5), margin=_ends(0.5, 0.6, 0.7))
    assert (
        "margin: +0.100 ± 0.100, 95% interval of the mean -0.148 to +0.348, higher in "
        "2 of 3 seeds." in _one_line(record)
    )


def test_the_table():
    record = _record(random=RANDOM, margin=[[0.5, 0.5], [0.4, 0.4], [0.6, 0.6]])
    lines = [line.split("  ") for line in _report(record).splitlines()]
    table = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert ["labels", "random", "margin"] in table
    assert ["10", "0.500 ± 0.100", "0.500 ± 0.100"] in table
    assert ["15", "0.620 ± 0.020", "0.500 ± 0.100"] in table
    assert ["labels to reach random's 0.620", "15", "not reached"] in table
    assert ["seconds of retraining, per run", "0.500", "0.500"] in table
    assert ["seconds of acquisition, per run", "0.500", "0.500"] in table


def test_the_table_of_one_seed_has_no_spread():
    report = _report(_record(random=_ends(0.6), margin=_ends(0.7)))
    assert "±" not in report
    assert "One seed has no spread" in report
    assert "band" not in report


def test_the_report_names_texts_loop_measure_model_and_seconds():
    report = _one_line(_record(random=RANDOM))
    for expected in (
        "mine: 6,500 in 2 classes, a 4,000, b 2,500",
        "10 first labels, then 1 round of 5, from a pool of 5,000 texts",
        "accuracy on 1,500 other texts, 3 seeds",
        "logistic regression on features of tiny/minilm",
        "Encoding took 12.3 s, once for all runs; everything 57 s.",
    ):
        assert expected in report


def test_many_classes_are_cut_short():
    record = _record(random=RANDOM)
    record["data"]["classes"] = {f"class{i}": 1 for i in range(30)}
    report = _one_line(record)
    assert "in 30 classes" in report
    assert "class9 1, ..." in report
    assert "class10" not in report


@pytest.mark.parametrize("n_others", [0, 1, 2])
def test_what_may_not_be_concluded_is_always_said(n_others):
    others = {f"other{i}": RANDOM for i in range(n_others)}
    report = _one_line(_record(random=RANDOM, **others))
    assert "This is one data set, one model and these numbers of labels." in report
    assert "Where bands overlap, the figure shows no winner." in report
    assert "in steps of 5 and without an interval" in report
    assert ("best of several strategies" in report) == (n_others > 1)
    assert ("Nothing was compared" in report) == (n_others == 0)


def test_the_report_fits_a_terminal():
    record = _record(random=RANDOM, margin=RANDOM, entropy=RANDOM)
    assert max(map(len, _report(record).splitlines())) <= 80


# Picture and files


def _png_size(path):
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert content[12:16] == b"IHDR"
    assert len(content) > 10_000
    return int.from_bytes(content[16:20]), int.from_bytes(content[20:24])


@pytest.mark.parametrize("n_seeds", [1, 3])
def test_the_picture_is_a_png(tmp_path, n_seeds):
    record = _record(random=RANDOM[:n_seeds], margin=RANDOM[:n_seeds])
    draw(record, summarize(record), tmp_path / "picture")
    assert _png_size(tmp_path / "picture") == (1050, 675)


@pytest.fixture
def axes(tmp_path, monkeypatch):
    """What is drawn of a record, as matplotlib's axes."""

    def _axes(record):
        figures = []
        figure_class = import_figure()

        def keep(**options):
            figures.append(figure_class(**options))
            return figures[-1]

        monkeypatch.setattr("skactive.cli._demo.import_figure", lambda: keep)
        draw(record, summarize(record), tmp_path / "demo.png")
        return figures[0].axes[0]

    return _axes


def test_the_curves_are_the_means(axes):
    drawn = axes(_record(random=RANDOM, margin=_ends(0.7, 0.8, 0.9)))
    curves = {line.get_label(): line for line in drawn.get_lines()}
    assert_allclose(curves["margin"].get_xydata(), [[10, 0.5], [15, 0.8]])
    assert_allclose(curves["random"].get_xydata(), [[10, 0.5], [15, 0.62]])


def test_the_bands_are_one_deviation_to_each_side(axes):
    drawn = axes(_record(random=RANDOM))
    (band,) = drawn.collections
    low, high = band.get_paths()[0].get_extents().get_points()[:, 1]
    assert_allclose([low, high], [0.4, 0.64])  # 0.5 - 0.1, and 0.62 + 0.02


def test_one_seed_is_drawn_without_bands(axes):
    drawn = axes(_record(random=RANDOM[:1], margin=RANDOM[:1]))
    assert len(drawn.collections) == 0
    assert "one seed, which shows no difference" in drawn.get_title()


def test_curves_differ_without_colours(axes):
    names = ["random", *(f"other{i}" for i in range(6))]
    drawn = axes(_record(**dict.fromkeys(names, RANDOM)))
    curves = [line for line in drawn.get_lines() if line.get_label() in names]
    assert len({(line.get_linestyle(), line.get_marker()) for line in curves}) == 7


def test_there_are_styles_for_any_number_of_strategies(axes):
    names = ["random", *(f"other{i}" for i in range(12))]
    drawn = axes(_record(**dict.fromkeys(names, RANDOM)))
    assert len(drawn.get_legend().get_texts()) == 13


def test_a_title_is_no_formula(axes):
    record = _record(random=RANDOM)
    record["data"]["name"] = r"$\frac{$.csv"
    assert axes(record).get_title().startswith(r"$\frac{$.csv")


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"matplotlib.*`pip install matplotlib`"):
        import_figure()


def test_saving_writes_the_record_with_its_summary(tmp_path):
    record = _record(random=RANDOM, margin=RANDOM)
    record["data"]["name"] = "naïve, größer"
    summary = summarize(record)
    written, renamed = save(record, summary, tmp_path / "new" / "folder")
    assert [path.name for path in written] == ["demo.json", "demo.png"]
    assert renamed == []
    saved = json.loads(written[0].read_text(encoding="utf-8"))
    assert saved == {**record, "summary": summary}
    _png_size(written[1])


def test_saving_keeps_earlier_files_under_another_name(tmp_path):
    record = _record(random=RANDOM)
    for content in ("first", "second"):
        (tmp_path / "demo.json").write_text(content)
        (tmp_path / "demo.png").write_text(content)
        save(record, summarize(record), tmp_path)
    assert (tmp_path / "demo-1.json").read_text() == "first"
    assert (tmp_path / "demo-2.json").read_text() == "second"
    assert (tmp_path / "demo-2.png").read_text() == "second"
    assert json.loads((tmp_path / "demo.json").read_text())["runs"] == record["runs"]


def test_an_earlier_pair_of_files_gets_one_number(tmp_path):
    for name in ("demo-1.png", "demo.json", "demo.png"):
        (tmp_path / name).write_text(name)
    record = _record(random=RANDOM)
    _, renamed = save(record, summarize(record), tmp_path)
    assert [path.name for path in renamed] == ["demo-2.json", "demo-2.png"]
    assert (tmp_path / "demo-1.png").read_text() == "demo-1.png"


def test_other_files_in_the_folder_stay(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    record = _record(random=RANDOM)
    save(record, summarize(record), tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
