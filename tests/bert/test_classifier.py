"""BertClassifier: labels of every kind, weights, pairs, indicators, going on."""

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.utils.class_weight import compute_sample_weight

from ._helpers import (
    CODES,
    NO_DROPOUT,
    WORDS,
    X,
    Y,
    assert_same_weights,
    classifier,
    fitted_copy,
    grid,
    slow,
    some,
    weights_of,
)

PAIRS = [(text, "dull" if i % 3 else "joy") for i, text in enumerate(X)]
INDICATOR = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 0], [0, 0, 0]])[
    np.arange(len(X)) % 4
]


# Learning


@pytest.mark.long
@pytest.mark.parametrize(
    ("pooling", "freeze"),
    grid(
        [(p, freeze) for p in ("cls", "mean", "max") for freeze in (0, 1, -1, "all")],
        lambda *case: case in {("mean", 1), ("cls", "all")},
    ),
)
def test_learns(tiny_encoder, freeze, pooling):
    few, y = X[:8], Y[:8]
    without_dropout = tiny_encoder("Bert", **NO_DROPOUT)
    model = classifier(
        without_dropout,
        freeze=freeze,
        pooling=pooling,
        dropout=0.0,
        max_epochs=12,
        lr=1e-2,
    )
    if freeze == "all":
        model.set_params(max_epochs=60, head_lr=0.1)
    assert model.fit(few, y).score(few, y) == 1.0
    assert model.history_[-1]["train_loss"] < model.history_[0]["train_loss"]


@pytest.mark.long
@pytest.mark.parametrize(
    "labels",
    some(
        [["no", "yes"], [3, 8], [-1, 1], [0, 2], [False, True], [0.0, 1.0]],
        *(["no", "yes"], [3, 8]),
    ),
    ids=str,
)
def test_labels_come_back_as_they_were(tiny_bert, labels):
    labels, few = np.array(labels), X[:8]
    model = classifier(tiny_bert, freeze="all", max_epochs=40, lr=0.1, dropout=0.0)
    model.fit(few, labels[CODES[:8]])
    assert model.classes_.dtype == labels.dtype
    np.testing.assert_array_equal(model.classes_, labels)
    assert model.predict(few).dtype == labels.dtype
    np.testing.assert_array_equal(model.predict(few), labels[CODES[:8]])


def test_names_of_the_classes_do_not_matter(tiny_bert):
    first = classifier(tiny_bert).fit(X, np.array([3, 8])[CODES])
    second = classifier(tiny_bert).fit(X, np.array(["c", "h"])[CODES])
    assert_same_weights(first, second)


def test_probabilities_are_the_softmax_of_one_output_per_class(tiny_bert):
    model = classifier(tiny_bert).fit(X, np.array(["b", "a", "c"])[np.arange(16) % 3])
    proba = model.predict_proba(X)
    assert proba.shape == (len(X), 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(
        model.predict(X), model.classes_[proba.argmax(axis=1)]
    )
    assert model.score(X, model.predict(X)) == 1.0


def test_classes_that_no_text_has_yet(tiny_bert):
    model = classifier(tiny_bert, classes=["ugly", "good", "bad"]).fit(X, Y)
    assert model.classes_.tolist() == ["bad", "good", "ugly"]
    assert model.predict_proba(X).shape == (len(X), 3)
    alone = classifier(tiny_bert, classes=["good", "bad"]).fit(X[:1], Y[:1])
    assert alone.predict_proba(X[:2]).shape == (2, 2)


def test_all_classes_named_is_the_same_as_none(tiny_bert):
    named = classifier(tiny_bert, classes=np.array(["good", "bad"])).fit(X, Y)
    assert_same_weights(named, fitted_copy(classifier, tiny_bert, X, Y))


def test_an_unseen_class_counts_as_a_mistake(tiny_bert):
    model = fitted_copy(classifier, tiny_bert, X, Y)
    y = np.where(np.arange(len(X)) < 4, "ugly", model.predict(X))
    assert model.score(X, y) == 0.75


# Weights


def test_weights_of_one_are_the_same_as_none(tiny_bert):
    weighted = classifier(tiny_bert).fit(X, Y, sample_weight=np.ones(len(X)))
    assert_same_weights(weighted, fitted_copy(classifier, tiny_bert, X, Y))


@pytest.mark.long
def test_the_scale_of_weights_does_not_matter(tiny_bert):
    weights = np.array([1.0, 4.0])[CODES]
    first = classifier(tiny_bert).fit(X, Y, sample_weight=weights)
    assert_same_weights(
        first, classifier(tiny_bert).fit(X, Y, sample_weight=8 * weights)
    )


@pytest.mark.long
def test_texts_of_weight_zero_teach_nothing(tiny_encoder):
    settings = {"max_epochs": 12, "lr": 3e-3, "dropout": 0.0}
    weights = np.where(np.arange(len(X)) < 12, 1.0, 0.0)
    wrong = np.where(weights > 0, Y, np.where(Y == "good", "bad", "good"))
    model = classifier(tiny_encoder("Bert", **NO_DROPOUT), **settings).fit(
        X, wrong, sample_weight=weights
    )
    np.testing.assert_array_equal(model.predict(X), Y)


@pytest.mark.long
@pytest.mark.parametrize("class_weight", ["balanced", slow({"good": 1.0, "bad": 5.0})])
def test_class_weights_are_sample_weights(tiny_bert, class_weight):
    y = np.where(np.arange(len(X)) < 12, "good", "bad")
    given = compute_sample_weight(class_weight, y)
    assert_same_weights(
        classifier(tiny_bert, class_weight=class_weight).fit(X, y),
        classifier(tiny_bert).fit(X, y, sample_weight=given),
    )


@pytest.mark.long
def test_class_weights_multiply_sample_weights(tiny_bert):
    y = np.where(np.arange(len(X)) < 12, "good", "bad")
    own = np.linspace(1, 2, len(X))
    both = classifier(tiny_bert, class_weight="balanced").fit(X, y, sample_weight=own)
    given = own * compute_sample_weight("balanced", y)
    assert_same_weights(both, classifier(tiny_bert).fit(X, y, sample_weight=given))


def test_a_balanced_weight_with_a_class_missing(tiny_bert):
    model = classifier(
        tiny_bert, class_weight="balanced", classes=["bad", "good", "so"]
    )
    assert np.isfinite(model.fit(X, Y).predict_proba(X)).all()


# Pairs


@pytest.mark.long
def test_pairs_are_told_by_their_second_text(tiny_encoder):
    few, y = PAIRS[:8], [second for _, second in PAIRS[:8]]
    model = classifier(
        tiny_encoder("Bert", **NO_DROPOUT), max_epochs=25, lr=1e-2, dropout=0.0
    ).fit(few, y)
    assert model.score(few, y) == 1.0


def test_the_parts_of_a_pair_have_token_types(tiny_bert):
    model = classifier(tiny_bert, max_epochs=0).fit(PAIRS, Y)
    pairs, texts = model.predict_proba(PAIRS), model.predict_proba(X)
    table = model.net_.module_.encoder.embeddings.token_type_embeddings.weight
    with torch.no_grad():
        table[1] = table[0]
    np.testing.assert_array_equal(model.predict_proba(X), texts)
    assert np.abs(model.predict_proba(PAIRS) - pairs).max() > 1e-3


@pytest.mark.long
@pytest.mark.parametrize("form", ["lists", *map(slow, ("array", "pandas", "polars"))])
def test_pairs_in_every_form(tiny_bert, form):
    expected = fitted_copy(classifier, tiny_bert, PAIRS, Y).predict_proba(PAIRS)
    pairs = {"lists": [list(p) for p in PAIRS], "array": np.array(PAIRS)}.get(form)
    if pairs is None:
        library = pytest.importorskip(form)
        a, b = zip(*PAIRS, strict=True)
        pairs = library.DataFrame({"a": a, "b": b})
    found = classifier(tiny_bert).fit(pairs, Y).predict_proba(pairs)
    np.testing.assert_array_equal(found, expected)


# Indicator matrices


@pytest.mark.long
def test_an_indicator_matrix_trains_independent_outputs(tiny_encoder):
    few, y = X[:8], np.column_stack([CODES, 1 - CODES, np.ones_like(CODES)])[:8]
    model = classifier(
        tiny_encoder("Bert", **NO_DROPOUT), max_epochs=12, lr=1e-2, dropout=0.0
    ).fit(few, y)
    assert model.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(model.predict(few), y)
    proba = model.predict_proba(few)
    assert proba.shape == y.shape
    np.testing.assert_array_equal(proba > 0.5, y == 1)
    assert model.score(few, y) == 1.0


def test_several_labels_have_probabilities_of_their_own(tiny_bert):
    model = fitted_copy(classifier, tiny_bert, X, INDICATOR)
    proba = model.predict_proba(X)
    assert ((proba > 0) & (proba < 1)).all()
    assert np.abs(proba.sum(axis=1) - 1).max() > 0.05
    draws = model.sample_proba(X, n_draws=4, random_state=0)
    assert draws.shape == (len(X), 4, 3)
    np.testing.assert_array_equal(model.predict(X), (proba > 0.5).astype(int))


@pytest.mark.long
@pytest.mark.parametrize(
    "convert",
    [np.ndarray.tolist, lambda y: y.astype(bool), lambda y: y.astype(float)],
    ids=["lists", "bool", "float"],
)
def test_indicators_in_every_form(tiny_bert, convert):
    first = fitted_copy(classifier, tiny_bert, X, INDICATOR)
    assert_same_weights(first, classifier(tiny_bert).fit(X, convert(INDICATOR)))


def test_a_sparse_indicator_matrix(tiny_bert):
    first = fitted_copy(classifier, tiny_bert, X, INDICATOR)
    assert_same_weights(
        first, classifier(tiny_bert).fit(X, sparse.csr_array(INDICATOR))
    )


def test_a_data_frame_of_indicators(tiny_bert):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(INDICATOR, columns=["a", "b", "c"])
    first = fitted_copy(classifier, tiny_bert, X, INDICATOR)
    assert_same_weights(first, classifier(tiny_bert).fit(X, frame))


# Starting anew, and going on


@pytest.mark.long
def test_each_fit_starts_from_the_pretrained_weights(tiny_bert):
    model = classifier(tiny_bert).fit(X, CODES)
    model.fit(X[::-1], Y[::-1]).fit(X, Y)
    assert_same_weights(model, fitted_copy(classifier, tiny_bert, X, Y))
    assert [record["epoch"] for record in model.history_] == [1, 2]


@pytest.mark.long
def test_warm_start_goes_on(tiny_bert):
    model = classifier(tiny_bert, warm_start=True).fit(X, Y)
    before = weights_of(model)
    model.set_params(lr=0.0).fit(X, Y)
    for name, value in weights_of(model).items():
        assert torch.equal(value, before[name]), name
    assert [record["epoch"] for record in model.history_] == [1, 2, 3, 4]
    times = [record["seconds_total"] for record in model.history_]
    assert times == sorted(times)


@pytest.mark.long
def test_each_part_of_a_warm_start_draws_its_own_numbers(tiny_bert):
    whole = fitted_copy(classifier, tiny_bert, X, Y)  # two epochs
    parts = classifier(tiny_bert, max_epochs=1, warm_start=True).fit(X, Y).fit(X, Y)
    again = classifier(tiny_bert, max_epochs=1, warm_start=True).fit(X, Y).fit(X, Y)
    assert_same_weights(parts, again)
    assert parts.history_[1]["train_loss"] != whole.history_[1]["train_loss"]


@pytest.mark.long
def test_partial_fit_adds_one_epoch(tiny_encoder):
    without_dropout = tiny_encoder("Bert", **NO_DROPOUT)
    model = classifier(without_dropout, dropout=0.0, max_epochs=5, batch_size=4)
    model.partial_fit(X[:1], Y[:1], classes=["good", "bad"])
    assert len(model.history_) == 1
    for _ in range(9):
        model.partial_fit(X, Y)
    assert len(model.history_) == 10
    assert model.score(X, Y) == 1.0


def test_the_first_partial_fit_is_an_epoch_of_fit(tiny_bert):
    first = classifier(tiny_bert).partial_fit(X, Y)
    assert_same_weights(first, classifier(tiny_bert, max_epochs=1).fit(X, Y))


@pytest.mark.long
def test_layers_may_be_unfrozen_one_after_the_other(tiny_bert):
    model = classifier(tiny_bert, warm_start=True, freeze=3).fit(X, Y)
    for freeze in (2, 1, 0):
        model.set_params(freeze=freeze).fit(X, Y)
        assert model.net_.module_.cut == freeze
    assert len(model.history_) == 8


# Parameters that change after training


def test_a_trained_model_keeps_what_it_was_built_from(tiny_bert, tmp_path):
    model = fitted_copy(classifier, tiny_bert, X, Y, pooling="mean")
    expected = model.predict_proba(X)
    model.set_params(model=str(tmp_path), pooling="max", freeze=2, head="cnn")
    np.testing.assert_array_equal(model.predict_proba(X), expected)


def test_training_of_no_epoch_gives_the_network_as_it_starts(tiny_bert):
    model = classifier(tiny_bert, max_epochs=0).fit(X, Y)
    assert model.history_ == []
    assert not model.layer_changes_["mean"].any()
    assert model.predict_proba(X).shape == (len(X), 2)


def test_one_text_and_one_word(tiny_bert):
    model = classifier(tiny_bert, classes=["a", "b"]).fit(WORDS[:1], ["a"])
    assert model.predict(WORDS[:1]).shape == (1,)
