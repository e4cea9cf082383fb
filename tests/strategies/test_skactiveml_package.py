"""The adapter for scikit-activeml, by the package of the extra `test-engines`.

The oracle is their own API, called by hand with the same seed.
"""

import inspect
import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_regressor
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeRegressor

from skactive import ActiveLearner
from skactive.strategies import FromSkactiveml
from skactive.testing import parametrize_with_strategy_checks

from ._helpers import CODES, POOL, SEED, TARGETS, X, Y, pick, view_of

pool = pytest.importorskip("skactiveml.pool")
classifier = pytest.importorskip("skactiveml.classifier")
regressor = pytest.importorskip("skactiveml.regressor")
pytestmark = pytest.mark.slow


def _first_seed(seed=SEED):
    """The seed that the strategy gets: the first number of the view's generator."""
    return int(np.random.default_rng(seed).integers(2**31))


def _by_hand(strategy, n=5, y=CODES, X_pool=POOL, **arguments):
    """Call their API as their documentation does."""
    strategy = clone(strategy).set_params(random_state=_first_seed())
    rows = np.vstack([X, X_pool])
    labels = np.concatenate([y.astype(float), np.full(len(X_pool), np.nan)])
    picks = strategy.query(X=rows, y=labels, batch_size=n, **arguments)
    return np.asarray(picks) - len(X)


FEATURES_ONLY = {
    "CoreSet": {},
    "TypiClust": {},
    "ProbCover": {},
    "RandomSampling": {},
    "MaxHerding": {},
    "GreedySamplingX": {},
    "CoreSet-cosine": {"metric": "cosine"},
}


@pytest.mark.parametrize("name", FEATURES_ONLY)
def test_features_only_as_the_direct_call_oracle(name):
    strategy = getattr(pool, name.split("-")[0])(**FEATURES_ONLY[name])
    expected = _by_hand(strategy)
    assert pick(FromSkactiveml(strategy)).tolist() == expected.tolist()


WITH_CLF = {
    "UncertaintySampling-least_confident": {"method": "least_confident"},
    "UncertaintySampling-margin_sampling": {"method": "margin_sampling"},
    "UncertaintySampling-entropy": {"method": "entropy"},
    "UncertaintySampling-expected_average_precision": {
        "method": "expected_average_precision"
    },
    "UncertaintySampling-costs": {"cost_matrix": np.arange(9).reshape(3, 3) % 4},
    "Badge": {},
    "ContrastiveAL": {},
    "Falcun": {},
    "DropQuery": {"cluster_algo_dict": {"random_state": 1}},
    "ProbabilisticAL": {"metric": "rbf"},
}


@pytest.mark.parametrize("model", [LogisticRegression(), GaussianNB()], ids=str)
@pytest.mark.parametrize("name", WITH_CLF)
def test_with_a_classifier_as_the_direct_call_oracle(name, model):
    strategy = getattr(pool, name.split("-")[0])(**WITH_CLF[name])
    clf = classifier.SklearnClassifier(model, classes=[0, 1, 2])
    expected = _by_hand(strategy, clf=clf)
    picks = pick(FromSkactiveml(strategy), model=model)
    assert picks.tolist() == expected.tolist()


@pytest.mark.parametrize("name", ["Clue", "DropQuery"])
def test_clustering_is_seeded_as_the_strategy_oracle(name):
    strategy = getattr(pool, name)()
    clf = classifier.SklearnClassifier(LogisticRegression(), classes=[0, 1, 2])
    seeded = clone(strategy)
    seeded.set_params(cluster_algo_dict={"random_state": _first_seed()})
    argument = "estimator" if name == "Clue" else "clf"
    expected = _by_hand(seeded, **{argument: clf})
    assert pick(FromSkactiveml(strategy)).tolist() == expected.tolist()


def test_discriminative_al_as_the_direct_call_oracle():
    discriminator = classifier.SklearnClassifier(LogisticRegression(max_iter=1000))
    expected = _by_hand(pool.DiscriminativeAL(), discriminator=discriminator)
    picks = pick(FromSkactiveml(pool.DiscriminativeAL()))
    assert picks.tolist() == expected.tolist()


@pytest.mark.parametrize("name", ["MonteCarloEER", "ValueOfInformationEER"])
def test_expected_errors_as_the_direct_call_oracle(name):
    strategy = getattr(pool, name)()
    clf = classifier.SklearnClassifier(GaussianNB(), classes=[0, 1, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class of one row has no variance
        expected = _by_hand(strategy, n=2, clf=clf)
        picks = pick(FromSkactiveml(strategy), n=2, model=GaussianNB())
    assert picks.tolist() == expected.tolist()


@pytest.mark.parametrize("method", ["KL_divergence", "vote_entropy", "GreedyBALD"])
def test_a_given_ensemble_as_the_direct_call_oracle(method):
    if method == "GreedyBALD":
        strategy = pool.GreedyBALD()
    else:
        strategy = pool.QueryByCommittee(method)
    members = [LogisticRegression(), GaussianNB(), LogisticRegression(C=0.01)]
    theirs = [classifier.SklearnClassifier(m, classes=[0, 1, 2]) for m in members]
    expected = _by_hand(strategy, ensemble=theirs)
    picks = pick(FromSkactiveml(strategy, ensemble=members))
    assert picks.tolist() == expected.tolist()


def test_four_ds_and_quire_as_the_direct_call_oracle():
    mixture = classifier.MixtureModelClassifier(classes=[0, 1, 2], random_state=0)
    expected = _by_hand(pool.FourDs(), clf=mixture)
    picks = pick(FromSkactiveml(pool.FourDs(), clf=mixture))
    assert picks.tolist() == expected.tolist()
    expected = _by_hand(pool.Quire(classes=[0, 1, 2]))
    picks = pick(FromSkactiveml(pool.Quire(classes=["low", "mid", "top"])))
    assert picks.tolist() == expected.tolist()


def test_epistemic_uncertainty_as_the_direct_call_oracle():
    strategy = pool.EpistemicUncertaintySampling()
    clf = classifier.SklearnClassifier(LogisticRegression(), classes=[0, 1])
    y = (CODES > 0).astype(int)
    expected = _by_hand(strategy, y=y, X_pool=POOL[:9], clf=clf)
    names = np.where(y == 1, "yes", "no")
    picks = pick(FromSkactiveml(strategy), y=names, X_pool=POOL[:9])
    assert picks.tolist() == expected.tolist()


REGRESSION = {
    "GreedySamplingTarget": LinearRegression(),
    "ExpectedModelChangeMaximization": Ridge(),
    "RegressionTreeBasedAL": DecisionTreeRegressor(min_samples_leaf=2, random_state=0),
}


@pytest.mark.parametrize("name", REGRESSION)
def test_regression_as_the_direct_call_oracle(name):
    strategy, model = getattr(pool, name)(), REGRESSION[name]
    wrapped = regressor.SklearnRegressor(model, random_state=0)
    expected = _by_hand(strategy, y=TARGETS, reg=wrapped).ravel()
    picks = pick(FromSkactiveml(strategy), model=model, y=TARGETS)
    assert picks.tolist() == expected.tolist()


def test_a_regressor_with_a_distribution_can_be_given():
    reg = regressor.NICKernelRegressor()
    strategy = pool.ExpectedModelVarianceReduction()
    expected = _by_hand(strategy, y=TARGETS, reg=reg)
    adapter = FromSkactiveml(strategy, reg=reg)
    assert is_regressor(reg)
    picks = pick(adapter, model=LinearRegression(), y=TARGETS)
    assert picks.tolist() == expected.tolist()


def test_entropy_ranks_as_ours():
    for model in (LogisticRegression(), RandomForestClassifier(random_state=0)):
        learner = ActiveLearner(model, "entropy", random_state=0).fit(X, Y)
        ours = learner.query(POOL, 20)
        learner.strategy = FromSkactiveml(pool.UncertaintySampling("entropy"))
        theirs = learner.query(POOL, 20)
        entropy = _entropy(learner.predict_proba(POOL))
        # A forest's votes make ties, which each breaks in its own way.
        np.testing.assert_allclose(entropy[theirs], entropy[ours])
        if isinstance(model, LogisticRegression):
            assert theirs.tolist() == ours.tolist()


def _entropy(proba):
    return -np.sum(proba * np.log(np.maximum(proba, 1e-300)), axis=1)


def test_the_fitted_model_answers_not_one_trained_again():
    strategy = FromSkactiveml(pool.UncertaintySampling("entropy"))
    weights = np.where(CODES == 0, 50.0, 1.0)
    for model in (LogisticRegression(), GaussianNB()):
        view = view_of(strategy, model=model, sample_weight=weights)
        expected = np.argsort(-_entropy(view.proba))[:5]
        assert strategy.select(view, 5).tolist() == expected.tolist()
        plain = pick(strategy, model=model)
        assert plain.tolist() != expected.tolist()


def test_a_model_that_makes_features_itself_answers_for_known_rows():
    model = LinearDiscriminantAnalysis()  # has `transform`, to fewer columns
    strategy = FromSkactiveml(pool.UncertaintySampling("entropy"))
    view = view_of(strategy, model=model)
    assert view.features.shape[1] == 2
    expected = np.argsort(-_entropy(view.proba))[:5]
    assert strategy.select(view, 5).tolist() == expected.tolist()
    for other in (pool.Badge(), pool.MonteCarloEER(), pool.QueryByCommittee()):
        pick(FromSkactiveml(other), n=1, model=model)
    with pytest.raises(ValueError, match=r"not the features of an item.*'clf'"):
        pick(FromSkactiveml(pool.DropQuery()), model=model)
    given = FromSkactiveml(pool.DropQuery(), clf=LogisticRegression())
    assert pick(given, model=model).size == 5


def test_a_regressor_that_makes_features_itself_is_refused():
    class Transforming(Ridge):
        def transform(self, X):
            return X[:, :2]

    strategy = FromSkactiveml(pool.GreedySamplingTarget())
    with pytest.raises(TypeError, match="Transforming makes the features itself"):
        pick(strategy, model=Transforming(), y=TARGETS)


def test_labels_of_any_kind_ask_the_same():
    asked = {
        tuple(pick(FromSkactiveml(strategy), y=np.array(names)[CODES]).tolist())
        for names in (["a", "b", "c"], [0, 1, 2], [-5, 3, 70])
        for strategy in [pool.Badge()]
    }
    assert len(asked) == 1


def test_their_wrapper_gets_the_models_of_the_inner():
    strategy = pool.SubSamplingWrapper(
        pool.UncertaintySampling(random_state=1), max_candidates=0.5
    )
    clf = classifier.SklearnClassifier(LogisticRegression(), classes=[0, 1, 2])
    expected = _by_hand(strategy, clf=clf)
    assert pick(FromSkactiveml(strategy)).tolist() == expected.tolist()


@pytest.mark.parametrize("name", ["Clue", "DropQuery", "TypiClust", "Badge", "CoreSet"])
def test_no_global_generator_is_read_or_moved(name):
    before = np.random.get_state()  # noqa: NPY002
    try:
        asked = []
        for seed in (0, 1):
            np.random.seed(seed)  # noqa: NPY002
            state = np.random.get_state()[1].tobytes()  # noqa: NPY002
            asked.append(pick(FromSkactiveml(getattr(pool, name)())).tolist())
            assert np.random.get_state()[1].tobytes() == state  # noqa: NPY002
        assert asked[0] == asked[1]
    finally:
        np.random.set_state(before)  # noqa: NPY002


def test_decision_values_alone_are_refused_in_words():
    learner = ActiveLearner(LinearSVC(), FromSkactiveml(pool.UncertaintySampling()))
    with pytest.raises(TypeError, match="needs class probabilities; LinearSVC has no"):
        learner.fit(X, Y).query(POOL, 2)


def test_a_search_over_their_strategies_in_other_processes():
    strategies = [pool.UncertaintySampling(), pool.QueryByCommittee(), pool.CoreSet()]
    learner = ActiveLearner(LogisticRegression(), FromSkactiveml(strategies[0]))
    grid = {"strategy__query_strategy": strategies}
    search = GridSearchCV(learner, grid, cv=2, n_jobs=2).fit(X, CODES > 0)
    assert search.best_estimator_.query(POOL, 3).size == 3


def test_every_parameter_of_their_queries_is_known():
    known = {"X", "y", "candidates", "batch_size", "return_utilities", "query_kwargs"}
    known |= {"clf", "estimator", "ensemble", "reg", "discriminator"}
    needed = set()
    for name in pool.__all__:
        query = getattr(getattr(pool, name), "query", None)
        for parameter in inspect.signature(query).parameters.values() if query else ():
            if parameter.default is parameter.empty and parameter.name != "self":
                needed.add(parameter.name)
    assert needed <= known


PASSING = ("UncertaintySampling", "CoreSet", "QueryByCommittee", "ContrastiveAL")
PASSING += ("ProbCover", "DiscriminativeAL", "GreedyBALD", "RandomSampling", "Clue")


@pytest.mark.filterwarnings("ignore::UserWarning")  # of too few clusters or classes
@parametrize_with_strategy_checks(
    [FromSkactiveml(getattr(pool, name)()) for name in PASSING]
)
def test_their_strategies_pass_the_kit(check):
    check()


REPEATS = "chooses equal candidates more than once"


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_strategy_checks(
    [FromSkactiveml(pool.Badge())],
    expected_failed={
        "check_zero_and_one_probabilities": REPEATS,
        "check_duplicate_rows": REPEATS,
        "check_ties_are_spread": "starts at the first of equal candidates",
    },
)
def test_badge_of_theirs_passes_the_rest_of_the_kit(check):
    check()


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_strategy_checks(
    [FromSkactiveml(pool.TypiClust())],
    expected_failed={
        "check_ties_are_spread": REPEATS,
        **{
            f"check_{name}{target}": REPEATS
            for name in ("equal_candidates", "duplicate_rows")
            for target in ("", "[regression]")
        },
    },
)
def test_typiclust_of_theirs_passes_the_rest_of_the_kit(check):
    check()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["Badge", "TypiClust", "BatchBALD"])
def test_what_repeats_candidates_is_refused(name):
    strategy = FromSkactiveml(getattr(pool, name)())
    with pytest.raises(ValueError, match="chose a candidate more than once"):
        pick(strategy, 17, X_pool=np.repeat(POOL[:6], 3, axis=0))
