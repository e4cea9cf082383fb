"""Layer changes: bars of means, their spread, and the border of the head."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skactive.bert import BertClassifier
from skactive.plotting import LayerChangeDisplay

CHANGES = {
    "layer": np.array(["embeddings", "0", "1", "dense.0", "dense.1"]),
    "part": np.array(["encoder", "encoder", "encoder", "head", "head"]),
    "mean": np.array([0.0, 1e-4, 2e-4, 4e-4, 8e-4]),
    "variance": np.array([0.0, 4e-10, 9e-8, 1e-8, 4e-8]),
}
STD = [0, 2e-5, 3e-4, 1e-4, 2e-4]


def _heights(bars):
    return [bar.get_height() for bar in bars]


def test_bars_are_the_means(ax):
    display = LayerChangeDisplay.from_changes(CHANGES, ax=ax)
    assert_allclose(_heights(display.bars_["model"]), CHANGES["mean"])
    # The layers of the encoder are counted from 1, as in BertFeatures(layers=...).
    ticks = [t.get_text() for t in ax.get_xticklabels()]
    assert ticks == ["embeddings", "1", "2", "dense.0", "dense.1"]
    assert ax.get_xlabel() == "layer"
    assert ax.get_ylabel() == "mean absolute change\n± standard deviation"
    assert display.legend_ is None


def test_thin_lines_are_one_deviation_cut_at_0(ax):
    display = LayerChangeDisplay.from_changes(CHANGES, ax=ax)
    (lines,) = display.bars_["model"].errorbar.lines[2]
    spans = [segment[:, 1] for segment in lines.get_segments()]
    low = np.maximum(CHANGES["mean"] - STD, 0)
    assert low[2] == 0
    assert_allclose(spans, np.c_[low, CHANGES["mean"] + STD], atol=1e-12)


def test_the_border_lies_between_encoder_and_head(ax):
    display = LayerChangeDisplay.from_changes(CHANGES, ax=ax)
    assert display.border_.get_xdata() == [2.5, 2.5]
    texts = {text.get_text(): text for text in ax.texts}
    assert texts["encoder"].get_ha() == "right"
    assert texts["head"].get_ha() == "left"
    assert texts["head"].xy == (2.5, 1)


@pytest.mark.parametrize("part", ["encoder", "head"])
def test_without_both_parts_there_is_no_border(ax, part):
    changes = {**CHANGES, "part": np.array([part] * 5)}
    display = LayerChangeDisplay.from_changes(changes, ax=ax)
    assert display.border_ is None
    assert "encoder" not in {text.get_text() for text in ax.texts}


@pytest.mark.parametrize("log", [False, True])
def test_layers_that_did_not_change_are_marked(ax, log):
    display = LayerChangeDisplay.from_changes(CHANGES, ax=ax, log=log)
    assert [text.xy[0] for text in display.zeros_] == [0]
    assert display.zeros_[0].get_text() == "0"
    assert ax.get_yscale() == ("log" if log else "linear")
    low = ax.get_ylim()[0]
    assert (0 < low < 1e-4) if log else low == 0


def test_models_side_by_side(ax):
    frozen = {**CHANGES, "mean": np.array([0, 0, 0, 1e-4, 1e-4])}
    changes = {"all": CHANGES, "frozen": frozen}
    display = LayerChangeDisplay.from_changes(changes, ax=ax)
    for j, name in enumerate(changes):
        centers = [bar.get_x() + bar.get_width() / 2 for bar in display.bars_[name]]
        assert_allclose(centers, np.arange(5) + (j - 0.5) * 0.4)
    assert display.bars_["all"][0].get_hatch() != display.bars_["frozen"][0].get_hatch()
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts == ["all", "frozen"]
    assert len(display.zeros_) == 4


@pytest.mark.long
def test_the_legend_covers_no_bar():
    changes = {"all": CHANGES, "frozen": CHANGES}
    for log in (False, True):
        display = LayerChangeDisplay.from_changes(changes, log=log)
        display.figure_.draw_without_rendering()
        frame = display.ax_.get_window_extent()
        assert display.legend_.get_window_extent().x0 >= frame.x1


def test_a_data_frame(ax):
    pd = pytest.importorskip("pandas")
    display = LayerChangeDisplay.from_changes(pd.DataFrame(CHANGES), ax=ax)
    assert_allclose(_heights(display.bars_["model"]), CHANGES["mean"])


@pytest.fixture(scope="module")
def classifier(tiny_bert):
    model = BertClassifier(tiny_bert, freeze=2, max_epochs=1, lr=1e-3, random_state=0)
    return model.fit(["a dull film", "a joy", "slow", "no"] * 2, [0, 1, 0, 0] * 2)


@pytest.mark.long
def test_of_a_fitted_classifier(classifier, ax):
    display = LayerChangeDisplay.from_estimator(classifier, ax=ax)
    changes = classifier.layer_changes_
    assert_allclose(_heights(display.bars_["model"]), changes["mean"])
    assert len(display.zeros_) == 3  # embeddings and two layers
    assert (
        display.border_.get_xdata()[0] == changes["part"].tolist().index("head") - 0.5
    )


@pytest.mark.parametrize("wrap", ["pipeline", "learner", "search", "dict"])
def test_of_what_holds_one(classifier, ax, wrap):
    from skactive import ActiveLearner

    name = "model"
    if wrap == "pipeline":
        holder = make_pipeline(classifier)
    elif wrap == "learner":
        holder = ActiveLearner(classifier)
        holder.estimator_ = make_pipeline(classifier)
    elif wrap == "search":
        from sklearn.model_selection import GridSearchCV

        holder = GridSearchCV(classifier, {})
        holder.best_estimator_ = classifier
    else:
        holder, name = {"mine": classifier}, "mine"
    display = LayerChangeDisplay.from_estimator(holder, ax=ax)
    expected = classifier.layer_changes_["mean"]
    assert_allclose(_heights(display.bars_[name]), expected)


@pytest.mark.parametrize(
    "estimator",
    [
        BertClassifier(),
        LogisticRegression(),
        make_pipeline(LogisticRegression()),
        make_pipeline("passthrough"),
    ],
    ids=["not fitted", "other", "pipeline of other", "passthrough"],
)
def test_nothing_to_draw(estimator):
    with pytest.raises(NotFittedError, match=r"no 'layer_changes_'\. Fit it first"):
        LayerChangeDisplay.from_estimator(estimator)
    assert plt.get_fignums() == []


def _without(key):
    return {name: values for name, values in CHANGES.items() if name != key}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "'changes' is empty"),
        (
            _without("variance"),
            "'changes' of 'model' must hold .*'variance' is missing",
        ),
        ({"mine": _without("layer")}, "'changes' of 'mine' .* 'layer' is missing"),
        ({**CHANGES, "mean": [1.0]}, "one value for each layer, .*'mean': 1"),
        ({key: [] for key in CHANGES}, "at least one layer"),
        (
            {"a": CHANGES, "b": {**CHANGES, "layer": list("01234")}},
            "one architecture: 'a' has the layers .* 'b' has",
        ),
    ],
    ids=["empty", "incomplete", "by name", "lengths", "no layers", "architectures"],
)
def test_bad_changes(changes, message):
    with pytest.raises(ValueError, match=message):
        LayerChangeDisplay.from_changes(changes)
    assert plt.get_fignums() == []


def test_a_logarithm_of_nothing():
    changes = {**CHANGES, "mean": np.zeros(5), "variance": np.zeros(5)}
    with pytest.raises(ValueError, match="'log' must be False"):
        LayerChangeDisplay.from_changes(changes, log=True)
    assert plt.get_fignums() == []


def test_all_frozen(ax):
    changes = {**CHANGES, "mean": np.zeros(5), "variance": np.zeros(5)}
    assert len(LayerChangeDisplay.from_changes(changes, ax=ax).zeros_) == 5
