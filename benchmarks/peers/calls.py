"""How each library is asked for a batch, in the quickest way that its interface has.

Every function gets a problem and returns a call without arguments that makes the query
and returns positions in the pool. What is done before that call is not measured: the
model is trained, the containers that a library wants are made, draws are converted.

skactive
    `ActiveLearner.query` of a fitted learner, the strategy by its registered name.
scikit-activeml
    `X` holds all rows, `y` is nan where unlabeled, `fit_clf=False` with a fitted
    `SklearnClassifier`; default parameters. Entropy gets the pool as `candidates`, as
    it needs no other rows and saves a copy. Its batch_bald gets the draws.
small-text
    Its `SklearnClassifier` around the fitted model, with an `embed` that returns the
    features and the probabilities; default parameters, no progress bars. DAL trains
    scikit-learn's logistic regression in ten sub-batches, as ours does.
modAL
    `entropy_sampling` with the fitted model.
baal
    `BatchBALD` gets the draws; asked for 9, as it begins with one more.
batchbald_redux
    `get_batchbald_batch` gets the logarithms of the draws, float64, 10,000 samples.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression


def make_learner(problem, strategy):
    from skactive import ActiveLearner

    learner = ActiveLearner(LogisticRegression(), strategy, random_state=problem.seed)
    return learner.fit(problem.X_labeled, problem.labels)


def skactive(problem):
    from skactive import get_strategy

    strategy = get_strategy(problem.strategy).set_params(**problem.params)
    learner = make_learner(problem, strategy)
    return lambda: learner.query(problem.X_pool, problem.batch)


def scikit_activeml(problem):
    from skactiveml import pool
    from skactiveml.classifier import SklearnClassifier

    X, batch, m, seed = problem.rows, problem.batch, problem.m, problem.seed
    if problem.strategy == "batchbald":
        draws = problem.draws().swapaxes(0, 1).copy()

        def ask():
            utilities = pool.batch_bald(draws, batch, random_state=seed)
            return np.nanargmax(utilities, axis=1)

        return ask

    y = np.full(len(X), np.nan)
    y[:m] = problem.labels

    def wrap():
        return SklearnClassifier(LogisticRegression(), classes=problem.classes)

    model = {"clf": wrap().fit(problem.X_labeled, y[:m]), "fit_clf": False}
    # Built for every query, as ProbCover keeps the distances of the first.
    strategies = {
        "entropy": lambda: (
            pool.UncertaintySampling("entropy", random_state=seed),
            model,
        ),
        "coreset": lambda: (pool.CoreSet(random_state=seed), {}),
        "badge": lambda: (pool.Badge(random_state=seed), model),
        "cal": lambda: (pool.ContrastiveAL(random_state=seed), model),
        "typiclust": lambda: (pool.TypiClust(random_state=seed), {}),
        "probcover": lambda: (pool.ProbCover(random_state=seed), {}),
        "dal": lambda: (
            pool.DiscriminativeAL(
                greedy_selection=problem.params.get("n_batches") == 1, random_state=seed
            ),
            {"discriminator": wrap()},
        ),
    }
    make = strategies[problem.strategy]
    if problem.strategy == "entropy":

        def ask():
            strategy, extra = make()
            return strategy.query(
                X[:m], y[:m], candidates=problem.X_pool, batch_size=batch, **extra
            )

        return ask

    def ask():
        strategy, extra = make()
        return np.asarray(strategy.query(X, y, batch_size=batch, **extra)) - m

    return ask


def small_text(problem):
    import small_text as st

    class Dense(st.SklearnClassifier):
        def embed(self, data_set, return_proba=False, pbar=None):
            x = data_set.x
            return (x, self.model.predict_proba(x)) if return_proba else x

    k, m = len(problem.classes), problem.m
    make = {
        "entropy": st.PredictionEntropy,
        "coreset": st.GreedyCoreset,
        "cal": lambda: st.ContrastiveActiveLearning(pbar=None),
        "embedding_kmeans": st.EmbeddingKMeans,
        "dal": lambda: st.DiscriminativeActiveLearning(
            st.SklearnClassifierFactory(LogisticRegression(), 2), 10, pbar=None
        ),
    }[problem.strategy]
    classifier = Dense(problem.model(), k)
    y = np.full(len(problem.rows), st.LABEL_UNLABELED)
    y[:m] = problem.labels
    data = st.SklearnDataset(problem.rows, y, target_labels=problem.classes)
    positions = np.arange(len(y))
    np.random.seed(problem.seed)  # noqa: NPY002, it draws from the global generator

    def ask():
        args = classifier, data, positions[m:], positions[:m], problem.labels
        return make().query(*args, n=problem.batch) - m

    return ask


def modal(problem):
    from modAL.uncertainty import entropy_sampling

    model = problem.model()
    return lambda: entropy_sampling(model, problem.X_pool, problem.batch)[0]


def baal(problem):
    from baal.active.heuristics import BatchBALD

    draws = problem.draws().transpose(0, 2, 1).copy()
    heuristic = BatchBALD(num_samples=problem.batch - 1)
    return lambda: heuristic(draws)[: problem.batch]


def batchbald_redux(problem):
    import torch
    from batchbald_redux.batchbald import get_batchbald_batch

    torch.set_num_threads(1)
    draws = torch.from_numpy(problem.draws()).double().log()
    torch.manual_seed(problem.seed)

    def ask():
        batch = get_batchbald_batch(draws, problem.batch, 10_000, dtype=torch.double)
        return np.array(batch.indices)

    return ask


LIBRARIES = {
    "skactive": skactive,
    "scikit-activeml": scikit_activeml,
    "small-text": small_text,
    "modAL-python": modal,
    "baal": baal,
    "batchbald_redux": batchbald_redux,
}
