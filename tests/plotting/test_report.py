"""The report of runs: numbers, tables, pictures and files."""

import json
import re

import pytest
from scipy.stats import ttest_ind, ttest_rel

from skactive.analysis import holm, summarize_runs
from skactive.analysis._report import format_report
from skactive.cli import main
from skactive.plotting import LedgerDisplay, write_report
from skactive.simulation import Run


def make_runs(scores, data="table"):
    """Runs of three rounds, by strategy: one number shifts a seed's curve."""
    return [
        Run(
            [
                {
                    "queried": range(10),
                    "scores": {"accuracy": s + r / 10},
                    "fit_seconds": 1,
                }
                for r in range(3)
            ],
            info={"strategy": name, "seed": seed, "data": data},
            ledger={"precomputation": 2.0},
        )
        for name, shifts in scores.items()
        for seed, s in enumerate(shifts)
    ]


RUNS = make_runs({"random": [0.5, 0.52, 0.53], "margin": [0.6, 0.61, 0.65]})


# The page


def test_strategies_are_sorted_by_their_mean_over_the_curve():
    summary = summarize_runs(RUNS)
    assert list(summary["strategies"]) == ["margin", "random"]
    assert summary["n_labeled"] == [10, 20, 30]
    margin = summary["strategies"]["margin"]
    assert margin["mean"] == pytest.approx([0.62, 0.72, 0.82])
    assert margin["area"] == pytest.approx(0.72)
    assert margin["seconds"]["fit"] == 3


def test_runs_that_share_seeds_are_tested_in_pairs():
    found = summarize_runs(RUNS)["strategies"]
    test, expected = found["margin"]["test"], ttest_rel([6, 6.1, 6.5], [5, 5.2, 5.3])
    assert test["test"] == "paired t test"
    assert test["statistic"] == pytest.approx(expected.statistic)
    assert test["p_value"] == pytest.approx(expected.pvalue)
    limits = expected.confidence_interval()
    assert test["interval"] == pytest.approx([limits.low / 10, limits.high / 10])
    assert "test" not in found["random"]


def test_runs_of_other_seeds_are_tested_by_welch():
    others = [Run(r.rounds, info={**r.info, "seed": 9 + i}) for i, r in enumerate(RUNS)]
    found = summarize_runs([*RUNS[:3], *others[3:]])
    test = found["strategies"]["margin"]["test"]
    expected = ttest_ind([0.8, 0.81, 0.85], [0.7, 0.72, 0.73], equal_var=False)
    assert test["test"] == "Welch's t test"
    assert test["p_value"] == pytest.approx(expected.pvalue)
    assert "(Welch)" in format_report({"table": found})


def test_p_values_are_corrected_over_the_strategies():
    more = make_runs({"entropy": [0.5, 0.6, 0.55], "badge": [0.9, 0.91, 0.95]})
    found = summarize_runs(RUNS + more)["strategies"]
    tests = [found[name]["test"] for name in ("margin", "entropy", "badge")]
    expected = holm([test["p_value"] for test in tests])
    assert [test["p_holm"] for test in tests] == pytest.approx(expected)
    assert max(test["p_holm"] - test["p_value"] for test in tests) > 0


def test_the_page_says_all_that_was_found():
    text = format_report({"table": summarize_runs(RUNS)})
    margin = next(line for line in text.splitlines() if line.startswith("| margin"))
    assert "0.820 ± 0.026 | 0.720 | +0.103 [+0.065, +0.141] | 0.007 |" in margin
    assert "## table" in text
    assert "corrected for the strategies in the table" in text


def test_the_page_says_what_all_runs_share():
    runs = [
        Run(run.rounds, info={**run.info, "pool_size": 600, "n_rounds": i})
        for i, run in enumerate(RUNS)
    ]
    for run in runs:
        run.info["versions"] = "python 3.11.7, skactive 0.2.0"
    text = format_report({"table": summarize_runs(runs)})
    settings = "pool_size 600; versions python 3.11.7, skactive 0.2.0."
    assert f"\n\nOf all runs: {settings}\n\n" in text


def test_no_verdict_contradicts_the_p_value():
    text = format_report({"table": summarize_runs(RUNS)})
    assert "undecided" not in text
    assert "pays" not in text


def test_shared_encoding_is_counted_once():
    summary = summarize_runs(RUNS)
    assert summary["precomputation_seconds"] == 2
    assert "precomputation" not in summary["strategies"]["margin"]["seconds"]
    text = format_report({"table": summary})
    assert "| fit, processor s | query, processor s |" in text
    assert (
        "Encoding took 2.0 processor s once for all runs. The rows do not include it."
        in text
    )


@pytest.mark.parametrize("names", [["margin"], ["random"]])
def test_one_strategy_or_one_seed_has_nothing_to_be_compared_with(names):
    summary = summarize_runs(make_runs({name: [0.5] for name in names}))
    assert all("test" not in found for found in summary["strategies"].values())
    assert "Holm" not in format_report({"table": summary})


def test_a_single_round_is_its_own_area():
    runs = [Run(run.rounds[:1], info=run.info) for run in RUNS]
    found = summarize_runs(runs)["strategies"]["margin"]
    assert found["area"] == pytest.approx(found["mean"][0]) == pytest.approx(0.62)


def test_a_run_of_one_round_among_longer_ones():
    short = Run(RUNS[3].rounds[:1], info=RUNS[3].info)
    summary = summarize_runs([*RUNS[:3], short, *RUNS[4:]])
    assert summary["n_labeled"] == [10]
    assert summary["strategies"]["margin"]["area"] == pytest.approx(0.62)


def test_runs_of_two_learners_are_not_mixed():
    other = [Run(run.rounds, info={**run.info, "learner": "nb"}) for run in RUNS]
    with pytest.raises(ValueError, match="'runs' under 'random' differ in 'learner'"):
        summarize_runs(RUNS + other)


@pytest.mark.parametrize("name", ["a|b", "<script>alert(1)</script>", "[x](http://y)"])
def test_names_cannot_break_the_page(name):
    runs = make_runs({"random": [0.5, 0.6], name: [0.5, 0.7]}, data=name)
    text = format_report({name: summarize_runs(runs)})
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
    assert "<script>" not in text
    assert "[x](" not in text


def write_runs(folder, runs):
    lines = [
        json.dumps({"names": {}, "plan": {}, "run": run.to_dict()}) for run in runs
    ]
    (folder / "runs.jsonl").write_text("\n".join(lines) + "\n")


@pytest.mark.long
def test_two_data_sets_have_a_section_and_pictures_each(tmp_path):
    runs = RUNS + make_runs({"random": [0.4, 0.5], "margin": [0.5, 0.6]}, "a/b")
    write_runs(tmp_path, runs)
    text, written = write_report(tmp_path)
    headings = ["## Over all data sets", "## table", "## a/b"]
    assert [line for line in text.splitlines() if line[:2] == "##"] == headings
    page = (tmp_path / "report.md").read_text()
    assert re.sub(r"!\[.*\]\(.*\)\n\n?", "", page).strip() == text.strip()
    shown = re.findall(r"!\[[^]]+\]\((.*)\)", page)
    assert shown == [path.name for path in written if path.suffix == ".png"]
    over, first, second = re.split("## table|## a/b", page)
    assert "| margin | 1.00 |" in over
    assert "](curves-table.png)" in first
    assert "](curves-a_b.png)" in second
    names = {heading.removeprefix("## ") for heading in headings}
    assert set(json.loads((tmp_path / "report.json").read_text())) == names
    assert {path.name for path in written} >= {"curves-a_b.png", "ledger-table.png"}
    assert all(path.stat().st_size > 0 for path in written)


@pytest.mark.long
def test_two_learners_have_a_table_each(tmp_path):
    runs = [
        Run(run.rounds, info={**run.info, "learner": learner})
        for learner in ("lr", "nb")
        for run in RUNS
    ]
    write_runs(tmp_path, runs)
    text, written = write_report(tmp_path)
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## table, lr",
        "## table, nb",
    ]
    assert tmp_path / "overlap-table__nb.png" in written


@pytest.mark.long
def test_a_strategy_without_a_partner_of_its_seed_has_no_overlap(tmp_path):
    write_runs(tmp_path, RUNS[:-1])
    _, written = write_report(tmp_path)
    assert [path.name for path in written if path.suffix == ".png"] == [
        "curves.png",
        "ledger.png",
    ]
    page = (tmp_path / "report.md").read_text()
    pictures = "![Learning curves](curves.png)\n\n![Processor seconds of a run](ledger"
    assert f"\n\n{pictures}.png)\n\n" in page


@pytest.mark.long
def test_nothing_is_written_if_it_fails(tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise ValueError("no picture")

    write_runs(tmp_path, RUNS)
    monkeypatch.setattr("skactive.plotting.OverlapDisplay.from_runs", fail)
    with pytest.raises(ValueError, match="no picture"):
        write_report(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["runs.jsonl"]


@pytest.mark.long
def test_the_seconds_of_the_picture_leave_encoding_out(tmp_path, monkeypatch):
    drawn = []
    from_runs = LedgerDisplay.from_runs

    def draw(*args, **kwargs):
        drawn.append(from_runs(*args, **kwargs))
        return drawn[-1]

    write_runs(tmp_path, RUNS)
    monkeypatch.setattr(LedgerDisplay, "from_runs", draw)
    write_report(tmp_path)
    assert list(drawn[0].bars_) == ["fit"]
    label = drawn[0].ax_.get_xlabel()
    assert label == "processor seconds of a run; encoding, once for all: 2.0 s"


# The command


@pytest.mark.long
def test_the_command_writes_what_it_prints(tmp_path, capsys):
    write_runs(tmp_path, RUNS)
    assert main(["report", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    page = (tmp_path / "report.md").read_text()
    assert out.startswith(page.partition("![")[0].rstrip())
    assert "](curves.png)" in page
    assert out.splitlines()[-1].startswith(f"Written: {tmp_path / 'report.md'}, ")


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["", "nowhere"])
def test_a_folder_without_runs_is_named(tmp_path, capsys, folder):
    assert main(["report", str(tmp_path / folder)]) == 1
    error = capsys.readouterr().err
    assert "argument FOLDER: must hold the runs of an experiment, got" in error
    assert "no runs.jsonl. Run `skactive simulate` or run_experiment(..., f" in error
