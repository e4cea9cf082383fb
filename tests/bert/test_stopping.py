"""Early stopping, callbacks, and what an interruption leaves behind."""

import copy
import signal

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import f1_score, log_loss, make_scorer, roc_auc_score
from skorch.callbacks import Callback, EarlyStopping, EpochScoring
from skorch.history import History as NetHistory
from torch import nn

from skactive._utils._repeatable import start_daemon
from skactive._utils._system import interrupt_at_sigterm
from skactive.bert import BertRegressor
from skactive.bert._training import History

from ._helpers import REVIEW_LABELS as Y
from ._helpers import REVIEWS as X
from ._helpers import assert_same_weights, grid, slow
from ._helpers import review_classifier as classifier
from .conftest import Recorder


@pytest.fixture(autouse=True)
def ctrl_c():
    """Have Ctrl-C interrupt, which programs in the background ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Epochs(Recorder):
    def on_epoch_end(self, net, **kwargs):
        self.seen.append(len(net.history))


class Parts(Recorder):
    def on_epoch_end(self, net, dataset_train=None, dataset_valid=None, **kwargs):
        self.seen.append((dataset_train, dataset_valid))


def scored(scores, tol, patience):
    """Run a history over scores; give its epochs and the weight put back at the end."""
    history = History(lambda outputs: scores[len(history.epochs) - 1], tol, patience)
    net = type("Net", (), {"module_": nn.Linear(1, 1), "history": NetHistory()})()
    history.on_train_begin(net)
    for epoch in range(len(scores)):
        nn.init.constant_(net.module_.weight, epoch)
        history.on_epoch_begin(net)
        net.history.new_epoch()
        net.history.record("train_loss", 0.0)
        net.history.record("valid_loss", 0.0)
        history.outputs = [torch.zeros(1)]
        history.on_epoch_end(net)
        if history.stops:
            break
    history.on_train_end(net)
    return len(history.epochs), int(net.module_.weight.item())


@pytest.mark.parametrize(
    ("scores", "tol", "patience", "n_epochs", "best"),
    [
        ([0.5, 0.6, 0.7, 0.8], 0.01, 2, 4, 3),  # gains all the way
        ([0.5, 0.505, 0.508, 0.9], 0.01, 2, 3, 2),  # two small gains in a row
        ([0.5, 0.5, 0.6, 0.6, 0.6, 0.9], 0.01, 2, 5, 2),  # not in a row at first
        ([0.9, 0.2, 0.1, 1.0], 0.01, 2, 3, 0),  # the first was the best
        ([0.5, 0.4, 0.48, 0.9], 0.01, 2, 3, 0),  # no gain over the best
        ([0.5, 0.504, 0.508, 0.512], 0.01, 3, 4, 3),  # small gains add up to one
        ([0.5, 0.5, 0.9], 0.01, 1, 2, 0),  # the first of equals
        ([0.5, 0.7, 0.6], 0.01, 5, 3, 1),  # no stop, the best all the same
        ([float("nan"), 0.5, float("nan"), float("nan")], 0.01, 2, 4, 1),
        ([-3.0, -2.0, -2.0, -2.0], 0.01, 2, 4, 1),  # scores may be negative
    ],
)
def test_training_stops_after_epochs_in_a_row_without_a_gain(
    scores, tol, patience, n_epochs, best
):
    assert scored(scores, tol, patience) == (n_epochs, best)


@pytest.fixture
def scripted(monkeypatch):
    """Let the validation scores be a script."""

    def write(*scores):
        left = iter(scores)
        monkeypatch.setattr(
            "sklearn.metrics.accuracy_score", lambda *args, **kwargs: next(left)
        )

    return write


@pytest.mark.long
@pytest.mark.parametrize(
    ("head", "freeze"),
    grid(
        [(head, freeze) for head in ("linear", "cnn") for freeze in (0, 2, "all")],
        lambda head, freeze: (head, freeze) in {("linear", "all"), ("cnn", 2)},
    ),
)
@pytest.mark.cpu_only("a GPU adds gradients in any order")
def test_the_weights_of_the_best_epoch_are_restored(tiny_bert, scripted, freeze, head):
    settings = {"early_stopping": True, "validation_fraction": 0.25}
    settings |= {"freeze": freeze, "head": head}
    scripted(0.5, 0.8, 0.7, 0.8)
    stopped = classifier(tiny_bert, max_epochs=9, **settings).fit(X, Y)
    assert [epoch["valid_score"] for epoch in stopped.history_] == [0.5, 0.8, 0.7, 0.8]
    scripted(0.5, 0.8)
    until_best = classifier(tiny_bert, max_epochs=2, **settings).fit(X, Y)
    assert_same_weights(stopped, until_best)
    np.testing.assert_array_equal(
        stopped.layer_changes_["mean"], until_best.layer_changes_["mean"]
    )


def test_validation_scores_and_losses_are_those_of_the_part_set_aside(tiny_bert):
    seen = []
    texts, y = [f"{text} {i}" for i in range(5) for text in X], np.tile(Y, 5)
    model = classifier(tiny_bert, early_stopping=True, max_epochs=1, lr=0.01)
    model.set_params(callbacks=[Parts(seen)]).fit(texts, y)
    train, valid = (part.positions for part in seen[0])
    assert sorted([*train, *valid]) == list(range(40))
    assert sorted(y[valid]) == [0, 0, 1, 1]  # a tenth, as mixed as the whole
    proba = model.predict_proba([texts[i] for i in valid])
    loss = -np.log(proba[np.arange(4), y[valid]]).mean()
    epoch = model.history_[0]
    assert epoch["valid_loss"] == pytest.approx(loss, abs=1e-5)
    assert epoch["valid_score"] == (proba.argmax(axis=1) == y[valid]).mean()


@pytest.mark.parametrize("early_stopping", [None, False])
def test_nothing_is_set_aside_without_early_stopping(tiny_bert, early_stopping):
    seen = []
    classifier(tiny_bert, callbacks=[Parts(seen)], early_stopping=early_stopping).fit(
        X, Y
    )
    assert [(len(train), valid) for train, valid in seen] == [(8, None)] * 2


@pytest.mark.long
def test_callbacks_are_copied_and_survive_clone(tiny_bert):
    seen = []
    callback = EarlyStopping(monitor="train_loss", patience=50)
    model = classifier(tiny_bert, callbacks=[callback, ("mine", Epochs(seen))])
    twin, before = clone(model), dict(vars(callback))
    model.fit(X, Y)
    model.fit(X, Y)
    assert seen == [1, 2, 1, 2]
    twin.fit(X, Y)
    assert twin.callbacks[1][1].seen == [1, 2]
    assert model.callbacks[0] is callback
    assert vars(callback) == before
    assert twin.callbacks[0] is not callback


def test_a_callback_of_skorch_stops_the_training(tiny_bert):
    seen = []
    stop = EarlyStopping(monitor="train_loss", patience=1, threshold=10.0)
    callbacks = [stop, Epochs(seen)]
    model = classifier(tiny_bert, max_epochs=5, callbacks=callbacks).fit(X, Y)
    assert seen == [1, 2]  # also the one after it saw the last epoch
    assert len(model.history_) == 2


def test_callbacks_see_the_epoch_at_which_early_stopping_stops(tiny_bert, scripted):
    seen = []
    scripted(0.5, 0.5)
    settings = {"early_stopping": True, "validation_fraction": 0.25}
    classifier(
        tiny_bert,
        callbacks=[Epochs(seen)],
        n_iter_no_change=1,
        max_epochs=9,
        **settings,
    ).fit(X, Y)
    assert seen == [1, 2]


def test_scoring_callbacks_work(tiny_bert):
    def spread(net, dataset, y=None):
        return float(np.ptp(net.forward(dataset).numpy()))

    scoring = EpochScoring(spread, on_train=True, name="spread", use_caching=False)
    model = classifier(tiny_bert, callbacks=[scoring]).fit(X, Y)
    assert all(value > 0 for value in model.net_.history[:, "spread"])


class Failing(Callback):
    """Fails in the second call of one of its methods."""

    def __init__(self, method, error):
        self.method, self.error, self.calls = method, error, 0

    def count(self, method):
        self.calls += method == self.method
        if self.calls > 1:
            raise self.error

    def on_batch_begin(self, net, **kwargs):
        self.count("on_batch_begin")

    def on_epoch_begin(self, net, **kwargs):
        self.count("on_epoch_begin")

    def on_epoch_end(self, net, **kwargs):
        self.count("on_epoch_end")


INTERRUPTIONS = [
    ("on_batch_begin", KeyboardInterrupt),
    ("on_epoch_begin", KeyboardInterrupt),
    ("on_batch_begin", ZeroDivisionError),
    ("on_epoch_end", ZeroDivisionError),
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "error", "freeze"),
    grid(
        [(*case, freeze) for case in INTERRUPTIONS for freeze in (0, 2)],
        lambda *case: (
            case
            in {
                ("on_batch_begin", KeyboardInterrupt, 2),
                ("on_epoch_end", ZeroDivisionError, 0),
            }
        ),
    ),
)
def test_an_interruption_leaves_a_fitted_estimator_as_it_was(
    tiny_bert, method, error, freeze
):
    model = classifier(tiny_bert, freeze=freeze).fit(X, Y)
    before, history = copy.deepcopy(model), model.history_
    model.set_params(callbacks=[Failing(method, error)])
    with pytest.raises(error):
        model.fit(X, ["a", "b"] * 4)
    assert model.history_ is history
    assert model.classes_.tolist() == [0, 1]
    assert_same_weights(model, before)
    np.testing.assert_array_equal(model.predict_proba(X), before.predict_proba(X))
    assert not any(part.training for part in model.net_.module_.modules())


@pytest.mark.parametrize(
    ("method", "error"),
    [INTERRUPTIONS[0], *(slow(*case) for case in INTERRUPTIONS[1:])],
)
def test_an_interruption_leaves_an_unfitted_estimator_unfitted(
    tiny_bert, method, error
):
    model = classifier(tiny_bert, callbacks=[Failing(method, error)])
    attributes, state = set(vars(model)), torch.get_rng_state()
    with pytest.raises(error):
        model.fit(X, Y)
    assert set(vars(model)) == attributes
    assert torch.equal(torch.get_rng_state(), state)


def press_ctrl_c(*args, **kwargs):
    """Send SIGINT to this process, as a terminal does; then go on for a while."""
    signal.raise_signal(signal.SIGINT)
    return 0.5


def test_ctrl_c_during_a_validation_score_is_no_early_stop(tiny_bert, monkeypatch):
    calls = []

    def score(outputs):
        calls.append(outputs)
        return press_ctrl_c()

    monkeypatch.setattr("skactive.bert._fitting._validation_score", lambda *_: score)
    model = classifier(tiny_bert, early_stopping=True, validation_fraction=0.5)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X * 4, [*Y] * 4)
    assert len(calls) == 1
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_a_callback_of_the_user_ends_the_program(tiny_bert, number):
    class Interrupted(Callback):
        def on_epoch_end(self, net, **kwargs):
            signal.raise_signal(number)

    model = classifier(tiny_bert, callbacks=[Interrupted()])
    with interrupt_at_sigterm(), pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_user_that_raises_ends_the_program(tiny_bert):
    def handle(number, frame):
        raise KeyboardInterrupt("by the user's handler")

    class Interrupted(Callback):
        def on_epoch_end(self, net, **kwargs):
            signal.raise_signal(signal.SIGINT)

    model = classifier(tiny_bert, callbacks=[Interrupted()])
    before = signal.signal(signal.SIGINT, handle)
    try:
        with pytest.raises(KeyboardInterrupt, match="by the user's handler"):
            model.fit(X, Y)
        assert signal.getsignal(signal.SIGINT) is handle
    finally:
        signal.signal(signal.SIGINT, before)


class StopsAtOnce(Callback):
    """Stops after the first epoch, as the callbacks of skorch do."""

    def on_epoch_end(self, net, **kwargs):
        raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["main", "thread"])
def test_a_callback_of_skorch_still_stops_the_training(tiny_bert, where):
    model = classifier(tiny_bert, max_epochs=3, callbacks=[StopsAtOnce()])
    if where == "main":
        model.fit(X, Y)
    else:
        start_daemon(model.fit, X, Y).result(120)
    assert len(model.history_) == 1


def test_ctrl_c_within_the_forward_pass_ends_the_program(tiny_bert, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("skactive.bert._network.TextNetwork.decode", interrupt)
    with pytest.raises(KeyboardInterrupt):
        classifier(tiny_bert).fit(X, Y)


@pytest.mark.long
@pytest.mark.parametrize(
    ("scorer", "score"),
    [
        slow("f1", lambda y, proba: f1_score(y, proba.argmax(axis=1))),
        ("neg_log_loss", lambda y, proba: -log_loss(y, proba)),
        slow("roc_auc", lambda y, proba: roc_auc_score(y, proba[:, 1])),
        (
            make_scorer(f1_score, pos_label=0),
            lambda y, proba: f1_score(y, proba.argmax(axis=1), pos_label=0),
        ),
    ],
    ids=["f1", "neg_log_loss", "roc_auc", "callable"],
)
def test_early_stopping_scores_by_any_scorer(tiny_bert, scorer, score):
    seen = []
    texts, y = [f"{text} {i}" for i in range(5) for text in X], np.tile(Y, 5)
    settings = {"max_epochs": 1, "lr": 0.01, "validation_fraction": 0.4}
    model = classifier(tiny_bert, early_stopping=scorer, **settings)
    model.set_params(callbacks=[Parts(seen)]).fit(texts, y)
    valid = seen[0][1].positions
    proba = model.predict_proba([texts[i] for i in valid])
    expected = score(y[valid], proba)
    assert model.history_[0]["valid_score"] == pytest.approx(expected, abs=1e-6)


def test_a_scorer_sees_texts_and_labels_as_they_came(tiny_bert):
    names = np.array(["bad", "good"])[Y]
    seen = []

    def score(estimator, texts, labels):
        seen.append((list(texts), list(labels), list(estimator.classes_)))
        return (estimator.predict(texts) == labels).mean()

    settings = {"early_stopping": score, "validation_fraction": 0.25, "max_epochs": 1}
    classifier(tiny_bert, **settings).fit(X, names)
    texts, labels, classes = seen[-1]
    assert [dict(zip(X, names, strict=True))[text] for text in texts] == labels
    assert classes == ["bad", "good"]


def test_a_regressor_stops_by_a_scorer_in_the_unit_of_the_target(tiny_bert):
    y = np.linspace(100.0, 900.0, 8)
    model = BertRegressor(
        tiny_bert,
        early_stopping="neg_mean_absolute_error",
        validation_fraction=0.5,
        max_epochs=1,
        random_state=0,
    ).fit(X, y)
    assert -900 < model.history_[0]["valid_score"] < -10


def test_a_scorer_that_does_not_fit_the_labels_fails_before_training(tiny_bert):
    names = np.array(["bad", "good"])[Y]
    seen = []
    model = classifier(tiny_bert, early_stopping="f1", validation_fraction=0.25)
    model.set_params(callbacks=[Epochs(seen)])
    with pytest.raises(ValueError, match=r"'early_stopping' must .*'f1'.*pos_label"):
        model.fit(X, names)
    assert seen == []


def test_an_unknown_scorer_is_refused(tiny_bert):
    with pytest.raises(ValueError, match=r"'early_stopping' parameter .*'f2'"):
        classifier(tiny_bert, early_stopping="f2").fit(X, Y)
