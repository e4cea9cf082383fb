"""The main job on real texts with real weights."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skactive import ActiveLearner, simulate
from skactive.bert import BertFeatures
from skactive.features import _encoding as encoding
from skactive.simulation import SimulatedLearner

pytestmark = [pytest.mark.weights, pytest.mark.shared_data, pytest.mark.slow]


@pytest.fixture(scope="module")
def ag_news(shared_data):
    """800 texts to choose from and 400 to measure on, four topics."""
    frame = shared_data("ag_news/test").iloc[:1200]
    return frame.iloc[:800], frame.iloc[800:]


@pytest.fixture
def encoded(monkeypatch):
    """Count the texts that are encoded, by what reaches the tokenizer."""
    counts = []

    def counting(checkpoint, texts, max_length, tokenize=encoding.tokenize):
        counts.append(len(texts))
        return tokenize(checkpoint, texts, max_length)

    monkeypatch.setattr(encoding, "tokenize", counting)
    return counts


def bert_and_logistic(minilm, **params):
    return make_pipeline(BertFeatures(minilm, **params), LogisticRegression())


def test_a_loop_over_a_series_encodes_each_text_once_and_learns(
    ag_news, minilm, encoded
):
    pool, test = (table.iloc[:400] for table in ag_news)
    learner = ActiveLearner(
        bert_and_logistic(minilm, max_length=127),  # a cache of this test's own
        strategy="margin",
        batch_size=25,
        random_state=0,
    )
    unlabeled = np.ones(len(pool), dtype=bool)
    scores = []
    for _ in range(6):
        ask = learner.query(pool["text"], candidates=unlabeled)
        learner.teach(pool["text"].iloc[ask], pool["label"].iloc[ask])
        unlabeled[ask] = False
        scores.append(learner.score(test["text"], test["label"]))
    assert unlabeled.sum() == 400 - 150
    n_texts = pool["text"].nunique() + test["text"].nunique()
    # The first query is made at random; later ones look up what it left.
    assert sum(encoded) == n_texts
    assert scores[-1] > 0.8
    assert scores[-1] > scores[0]


def test_margin_beats_random_over_seeds(ag_news, minilm):
    pool, test = ag_news
    final = {}
    for strategy in ("random", "margin"):
        learner = ActiveLearner(
            bert_and_logistic(minilm), strategy=strategy, batch_size=20
        )
        final[strategy] = [
            simulate(
                learner.set_params(random_state=seed),
                pool["text"],
                pool["label"],
                n_initial=20,
                n_rounds=6,
                X_test=test["text"],
                y_test=test["label"],
            ).scores[-1]
            for seed in range(10)
        ]
    assert np.mean(final["margin"]) > np.mean(final["random"])


def test_a_grid_search_over_strategy_and_pooling(ag_news, minilm):
    pool = ag_news[0].iloc[:300]
    search = GridSearchCV(
        SimulatedLearner(
            ActiveLearner(
                bert_and_logistic(minilm, normalize=False),
                batch_size=20,
                random_state=0,
            ),
            n_initial=20,
            n_rounds=3,
        ),
        {
            "estimator__strategy": ["random", "entropy"],
            "estimator__estimator__bertfeatures__pooling": ["mean", "cls"],
        },
        cv=2,
        error_score="raise",
    )
    scores = search.fit(pool["text"], pool["label"]).cv_results_["mean_test_score"]
    assert np.unique(scores).size == 4
    assert scores.min() > 0.6


def test_pairs_of_texts_in_a_data_frame(shared_data, minilm):
    frame = shared_data("mrpc/dev")
    pairs = frame[["text_a", "text_b"]]
    learner = ActiveLearner(
        bert_and_logistic(minilm), strategy="entropy", batch_size=30, random_state=0
    )
    run = simulate(
        learner,
        pairs,
        frame["label"],
        n_initial=30,
        n_rounds=2,
        X_test=pairs,
        y_test=frame["label"],
    )
    assert np.unique(run.queried).size == 90
    assert run.scores[-1] > 0.5
    # The same pairs as tuples are the same texts.
    again = simulate(
        learner,
        list(pairs.itertuples(index=False, name=None)),
        frame["label"].to_numpy(),
        n_initial=30,
        n_rounds=2,
    )
    np.testing.assert_array_equal(again.queried, run.queried)


def test_long_reviews_are_cut_with_a_warning(shared_data, minilm):
    texts = shared_data("imdb/test")["text"].iloc[:40]
    features = BertFeatures(minilm, max_length=64, cache=None)
    with pytest.warns(UserWarning, match="of the 40 texts encoded .* more than 64"):
        assert features.transform(texts).shape == (40, 384)


def test_two_processes_ask_for_the_same_items(minilm, tmp_path):
    script = f"""
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from skactive import ActiveLearner, simulate
from skactive.bert import BertFeatures
from skactive.datasets import load_docstrings
X, y = load_docstrings(max_per_library=20, return_X_y=True)
learner = ActiveLearner(
    make_pipeline(BertFeatures({minilm!r}, cache={str(tmp_path)!r}),
                  LogisticRegression()),
    strategy="entropy", batch_size=7, random_state=3)
print(simulate(learner, X, y, n_initial=10, n_rounds=3).queried.tolist())
"""
    answers = [
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert len(answers[0].split(",")) == 31
