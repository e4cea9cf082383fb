"""What strategies see of an estimator inside another one, as the guide says."""

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import (
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import StandardScaler

from skactive import ActiveLearner, ClassDescriptions
from skactive.semi_supervised import MixtureClassifier, SelfTraining

TEXTS = [
    f"{quality} {thing} {when}"
    for quality in ("good", "bad", "fine", "poor")
    for thing in ("film", "match", "rain", "stock")
    for when in ("today", "again", "now", "yes")
]
LABELS = np.array(["+", "-", "+", "-"]).repeat(16)
FRAME = pd.DataFrame({"text": TEXTS, "length": np.arange(64.0)})
GIVEN = np.arange(0, 64, 4)
LINE = LogisticRegression()


def front():
    return make_pipeline(TfidfVectorizer(), TruncatedSVD(4, random_state=0))


def behind(last):
    """Return a pipeline whose last step this is."""
    return make_pipeline(*(step for _, step in front().steps), last)


def pair(make=None):
    make = make or (lambda: behind(LINE))
    return [("a", make()), ("b", make())]


GRID = {"logisticregression__C": [1, 10]}
ALL = {"margin", "coreset", "badge", "bald"}
SEEN = {
    "pipeline": (lambda: behind(LINE), ALL),
    "pipeline in a pipeline": (lambda: make_pipeline(front(), LINE), ALL),
    "union": (lambda: make_pipeline(make_union(front(), front()), LINE), ALL),
    "grid search": (lambda: GridSearchCV(behind(LINE), GRID, cv=2), ALL),
    "random search": (
        lambda: RandomizedSearchCV(behind(LINE), GRID, n_iter=2, cv=2),
        ALL,
    ),
    "halving": (lambda: HalvingGridSearchCV(behind(LINE), GRID, cv=2), ALL),
    "frozen": (lambda: FrozenEstimator(behind(LINE).fit(TEXTS, LABELS)), ALL),
    "descriptions": (
        lambda: ClassDescriptions(behind(LINE), {"+": "good", "-": "bad"}),
        ALL,
    ),
    "mixture": (lambda: MixtureClassifier(pair()), ALL - {"bald"}),
    "one-vs-rest inside": (lambda: behind(OneVsRestClassifier(LINE)), ALL),
    "self-training inside": (lambda: behind(SelfTraining(LINE)), ALL - {"bald"}),
    "calibration inside": (
        lambda: behind(CalibratedClassifierCV(LINE, cv=2)),
        ALL - {"badge"},
    ),
    "voting inside": (
        lambda: behind(VotingClassifier(pair(lambda: LINE), voting="soft")),
        ALL - {"badge"},
    ),
    "bagging inside": (lambda: behind(BaggingClassifier(LINE)), ALL - {"badge"}),
    "stacking inside": (
        lambda: behind(StackingClassifier(pair(lambda: LINE), cv=2)),
        {"margin", "coreset"},
    ),
    "thresholds inside": (
        lambda: behind(TunedThresholdClassifierCV(LINE, cv=2)),
        {"margin", "coreset"},
    ),
    "calibration around": (
        lambda: CalibratedClassifierCV(behind(LINE), cv=2),
        {"margin", "bald"},
    ),
    "voting around": (
        lambda: VotingClassifier(pair(), voting="soft"),
        {"margin", "bald"},
    ),
    "stacking around": (lambda: StackingClassifier(pair(), cv=2), {"margin"}),
    "self-training around": (lambda: SelfTraining(behind(LINE)), {"margin"}),
    "hard voting around": (lambda: VotingClassifier(pair()), set()),
}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SEEN)
def test_what_strategies_see_of_classifiers(name):
    make, expected = SEEN[name]
    learner = ActiveLearner(make(), random_state=0)
    learner.fit([TEXTS[i] for i in GIVEN], LABELS[GIVEN])
    found = set()
    for strategy in ALL:
        try:
            picks = learner.set_params(strategy=strategy).query(TEXTS, 2)
        except TypeError as error:
            assert f"strategy {strategy!r} needs" in str(error)  # noqa: PT017
        else:
            assert len(picks) == 2
            found.add(strategy)
    assert found == expected


def test_columns_of_texts_and_numbers():
    columns = make_column_transformer((front(), "text"), (StandardScaler(), ["length"]))
    learner = ActiveLearner(make_pipeline(columns, LINE), random_state=0)
    learner.fit(FRAME.iloc[GIVEN], LABELS[GIVEN])
    for strategy in ALL:
        assert len(learner.set_params(strategy=strategy).query(FRAME, 2)) == 2


AROUND = {
    "calibration": lambda: CalibratedClassifierCV(behind(LINE), cv=2),
    "regression": lambda: TransformedTargetRegressor(behind(Ridge())),
}


@pytest.mark.parametrize("name", AROUND)
def test_the_error_names_the_way_to_write_it(name):
    learner = ActiveLearner(AROUND[name](), "coreset", random_state=0)
    y = LABELS if name == "calibration" else FRAME["length"].to_numpy()
    learner.fit([TEXTS[i] for i in GIVEN], y[GIVEN])
    outer = type(learner.estimator).__name__
    with pytest.raises(TypeError, match=rf"make_pipeline\(BertFeatures\(\), {outer}"):
        learner.query(TEXTS, 2)


@pytest.mark.parametrize("strategy", ["margin", "coreset", "uherding", "bald"])
def test_a_table_for_a_vectorizer_of_texts_is_named(strategy):
    learner = ActiveLearner(behind(LINE), strategy, random_state=0)
    learner.fit([TEXTS[i] for i in GIVEN], LABELS[GIVEN])
    with pytest.raises(ValueError, match=r"of 64 items, they made 1 rows.* X\['text'"):
        learner.query(FRAME[["text"]], 2)
