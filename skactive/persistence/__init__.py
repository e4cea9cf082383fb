"""Save estimators to a folder and load them again, without pickle."""

import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from .._utils._sealed import read_json
from .._utils._sklearn import validate_params
from ._card import make_card
from ._estimators import (
    ESTIMATOR_DECODERS,
    STRATEGY_DECODERS,
    disarm,
    encode_estimator,
    encode_strategy,
)
from ._folder import (
    CARD,
    OBJECT_FILE,
    Reader,
    Writer,
    new_folder,
    open_folder,
)
from ._onnx import export_onnx
from ._values import ARRAY_DECODERS, VALUE_DECODERS, encode_array, encode_value

if TYPE_CHECKING:
    from .._utils._base_stubs import SavedEstimator

__all__ = ["export_onnx", "load", "save"]

_ENCODERS = (encode_value, encode_array, encode_strategy, encode_estimator)
_DECODERS = {
    **VALUE_DECODERS,
    **ARRAY_DECODERS,
    **STRATEGY_DECODERS,
    **ESTIMATOR_DECODERS,
}


_PATH = [str, os.PathLike]
_NAMES = [list, tuple, set, frozenset, None]


@validate_params(
    {
        "folder": _PATH,
        "overwrite": ["boolean"],
        "data": ["boolean"],
        "bundle": ["boolean"],
        "facts": [Mapping, None],
        "trusted": _NAMES,
    },
    prefer_skip_nested_validation=False,
)
def save(
    estimator: Any,
    folder: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    data: bool = True,
    bundle: bool = False,
    facts: Mapping[str, str] | None = None,
    trusted: Collection[str] | None = None,
) -> str:
    """Save an estimator to a folder that runs no code when it is loaded.

    The folder appears whole or not at all: it is written next to its target and then
    renamed. Its `manifest.json` lists the SHA-256 of every file. Its `README.md` is a
    model card: classes, number of labels, encoder and its license, versions, and how to
    load it.

    Parameters
    ----------
    estimator : estimator
        An :class:`~skactive.ActiveLearner`, a `BertClassifier`, `BertRegressor` or
        `BertFeatures`, or a scikit-learn estimator whose types skops trusts, also
        around those of skactive: a `Pipeline`, `ColumnTransformer` or
        `VotingClassifier`, for example; fitted or not.
    folder : str or path-like
        The folder to write. It must not exist, unless `overwrite` is True.
    overwrite : bool, default=False
        Whether to replace a folder that `save` wrote. A folder with other files is
        never replaced.
    data : bool, default=True
        Whether to save the labeled items of an `ActiveLearner` and their labels. False
        saves a model for production: the loaded learner predicts, but `teach` and
        `refit` raise an error until `fit` is called. Data that an estimator or a
        strategy holds itself, such as the neighbors of `KNeighborsClassifier` and the
        vocabulary of a vectorizer, is saved in any case.
    bundle : bool, default=False
        Whether to copy the pretrained encoder and the tokenizer of each `BertFeatures`,
        and the table of each `StaticFeatures`, into the folder. The loaded estimator
        uses the copy. Without it, the model must be available under its name where the
        folder is loaded.
    facts : dict of str to str or None, default=None
        More rows of the model card, such as `{"Accuracy": "87 %, from 200 texts"}`.
    trusted : list of str or None, default=None
        Full names of types and functions that may be part of a scikit-learn estimator
        in addition to those that skops trusts, such as `"sklearn.tree._tree.Tree"` for
        random forests. They must be passed to `load`, too.

    Returns
    -------
    folder : str
        The absolute path of the folder.

    Raises
    ------
    FileExistsError
        If the folder exists and may not be replaced.
    ValueError
        If the folder of a `BertClassifier`'s model has changed since it was trained.
    TypeError
        If a part cannot be saved without pickle, such as a plain function as the
        strategy or a data frame. The error names its place in the estimator.
    ImportError
        If a scikit-learn estimator is to be saved and skops is not installed.

    See Also
    --------
    load : Load what was saved.

    Notes
    -----
    A fitted `BertClassifier` or `BertRegressor` is saved with its trained weights and
    with a copy of the pretrained encoder and its tokenizer, so the folder is enough to
    predict and to continue training. Of a `BertFeatures` or a `StaticFeatures`, only
    the parameters are saved unless `bundle` is True; of a `PrecomputedFeatures`,
    always.

    A series of texts and an array of numpy's `StringDType` are saved as lists.

    The model card may be edited: `load` does not read it, and `save` with `overwrite`
    keeps a card that was changed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.linear_model import LogisticRegression
    >>> import skactive
    >>> learner = skactive.ActiveLearner(LogisticRegression(), random_state=0)
    >>> learner = learner.fit([[-1.0], [1.0]], ["cold", "warm"])
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     folder = skactive.save(learner, Path(parent) / "learner")
    ...     loaded = skactive.load(folder)
    >>> loaded.predict([[0.5]]).tolist()
    ['warm']
    """
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"'estimator' must be an estimator, got {estimator!r}. Pass an instance, "
            "such as an ActiveLearner."
        )
    with new_folder(folder, overwrite) as (target, temporary):
        writer = Writer(
            temporary, _ENCODERS, data=data, bundle=bundle, trusted=_as_names(trusted)
        )
        node = writer.encode(estimator, "")
        writer.write_json(OBJECT_FILE, {"object": node, "models": writer.models})
        card = make_card(estimator, facts or {}, target.name)
        (temporary / CARD).write_bytes(card.encode("utf-8", "replace"))
    return os.fspath(target)


def _as_names(trusted):
    """Return the names of trusted types as a set."""
    for name in trusted or ():
        if not isinstance(name, str):
            raise TypeError(
                f"'trusted' must hold full names, as str; got {name!r} among them. The "
                "error that is raised without it lists the names."
            )
    return frozenset(trusted or ())


@validate_params(
    {"folder": _PATH, "model": [*_PATH, dict, None], "trusted": _NAMES},
    prefer_skip_nested_validation=False,
)
def load(
    folder: str | os.PathLike[str],
    *,
    model: str | os.PathLike[str] | dict[str, Any] | None = None,
    trusted: Collection[str] | None = None,
) -> "SavedEstimator":
    """Load an estimator that :func:`save` wrote, without running code from the folder.

    Every file is checked against the SHA-256 in `manifest.json` before any is used.
    Only classes of skactive, registered strategies, and types of scikit-learn that
    skops trusts are created.

    Parameters
    ----------
    folder : str or path-like
        A folder that `save` wrote.
    model : str, path-like, dict or None, default=None
        Folder or hub name of the pretrained encoder, for a model folder that has
        moved. It replaces the saved parameter `model` of each BERT estimator. With the
        same weights, predictions are the same. A dict maps saved names to new ones.
    trusted : list of str or None, default=None
        Full names of further types and functions that skops may create, as in `save`.
        Pass only names that you know: creating them may run their code, and the data
        of a compiled type such as a tree is not checked.

    Returns
    -------
    estimator : estimator

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    ValueError
        If a file is missing, changed or not listed, was written in a format that
        this version does not read, or names a class that may not be loaded.
    ImportError
        If a part needs a package that is not installed.

    Warns
    -----
    UserWarning
        If the folder was written with another major version of a package that it
        depends on, another minor version of scikit-learn, a newer minor version of
        skactive or skops, or on a device that this machine lacks.

    See Also
    --------
    save : Save an estimator.

    Notes
    -----
    A loaded `BertClassifier` or `BertRegressor` reads the encoder and the tokenizer
    from the folder, so the folder must not move while the estimator is used. Its
    parameter `model`, from which it trains again, is unchanged. If that model is not
    on this machine, it is the copy in the folder.

    The hashes reveal damage and accidental changes. They are not a signature: a person
    who can change the files can change the manifest, too. Loading runs no code in that
    case either, and neither does training again: `memory` of each `Pipeline` is None
    after loading, since joblib's stores hold pickles, and `cache` of each
    `BertFeatures` is "memory" or None. A folder with a pickle is refused, as is a file
    that would take more than 100 MB and 100 times its size in memory.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.naive_bayes import MultinomialNB
    >>> from sklearn.pipeline import make_pipeline
    >>> import skactive
    >>> model = make_pipeline(CountVectorizer(), MultinomialNB())
    >>> model = model.fit(["good film", "bad film"], ["like", "dislike"])
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     folder = skactive.save(model, Path(parent) / "model")
    ...     loaded = skactive.load(folder)
    >>> loaded.predict(["a good one"]).tolist()
    ['like']
    """
    root, files = open_folder(folder)
    if OBJECT_FILE not in files:
        raise ValueError(
            f"'manifest.json' in {os.fspath(folder)!r} must list {OBJECT_FILE!r}, and "
            "does not. Save again; an export is loaded by skactive.runtime.load."
        )
    names = _as_names(trusted)
    reader = Reader(root, files, _DECODERS, model=model, trusted=names)
    estimator = reader.read(read_json(root / OBJECT_FILE))
    disarm(estimator)
    return estimator
