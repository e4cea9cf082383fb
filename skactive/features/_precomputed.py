"""PrecomputedFeatures: a transformer that looks features up."""

import json
import os
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._storage._fingerprint import find_changes, hash_ids
from .._storage._mapped import FileRows, allocate, clip_to, copy_rows
from .._utils._bases import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    fit_context,
)
from .._utils._chunks import LARGE
from .._utils._containers import as_list, take_rows
from .._utils._format import list_some
from .._utils._sklearn import HasMethods, tag_text_transformer
from ._folder import hash_texts
from ._vectors import open_vectors

_MACHINE = ("precision", "revision")  # they change features by rounding, or not at all


class TextFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of transformers of texts that learn nothing."""

    def __sklearn_is_fitted__(self):
        return True

    def __sklearn_tags__(self):
        return tag_text_transformer(super().__sklearn_tags__())


class PrecomputedFeatures(TextFeatures):
    """Look features up that were computed before, without reading all of them.

    The features are those that `transform_to` of :class:`skactive.bert.BertFeatures`
    wrote into a folder, or vectors that another system made. They stay on the disk, and
    only the rows that are used are read.

    Parameters
    ----------
    source : str, path-like or pyarrow Dataset
        A folder that `transform_to` wrote; a `.npy` file of shape (n, d); or files of
        Parquet or Arrow with a column of vectors: one file, a folder of them, or any
        dataset of pyarrow, such as that of Lance.
    id : str or None, default=None
        Column of the ids in such files; `transform` then takes ids, or a data frame
        with a column of this name. With None, `transform` takes texts for a folder that
        `transform_to` wrote, and row numbers otherwise.
    vectors : str, default="vector"
        Column of the vectors in such files.
    encoder : transformer or None, default=None
        Computes the features of texts that are not in the folder. It must need no
        training, as the transformer whose `transform_to` wrote the folder. With None,
        such texts are an error.

    See Also
    --------
    skactive.bert.BertFeatures.transform_to : Write such a folder.

    Notes
    -----
    `fit` only checks its input; `transform` works without it. A text is found by a hash
    of 64 bits: among 100 million texts, the probability that any two have the same hash
    is 3 in 10,000.

    Vectors in Parquet, Arrow and Lance are compressed or in pieces. Each process copies
    them once into a temporary file, a batch at a time. Copies and clones in one process
    share what is open. Files that change are noticed and opened again. Each block of a
    folder is compared with its checksum when a process reads it for the first time.

    Strategies read the candidates' rows where they are: a query copies none of them. A
    transformer of your own gets this by a method `find_rows(X)`, which returns an array
    (r, d) and the row of each item in it, or None for all rows in order.

    Examples
    --------
    A model gets the rows of a file in place of texts:

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from skactive.features import PrecomputedFeatures
    >>> file = Path(tempfile.mkdtemp()) / "vectors.npy"
    >>> np.save(file, [[1.0, 0.0], [0.9, 0.1], [0.1, 0.9], [0.0, 1.0]])
    >>> model = make_pipeline(PrecomputedFeatures(file), LogisticRegression())
    >>> model = model.fit([0, 3], ["weather", "sport"])
    >>> model.predict([1, 2]).tolist()
    ['weather', 'sport']
    """

    _parameter_constraints = {
        "source": [str, os.PathLike, HasMethods(["to_batches"])],
        "id": [str, None],
        "vectors": [str],
        "encoder": [HasMethods(["transform"]), None],
    }

    def __init__(
        self,
        source: Any,
        *,
        id: str | None = None,
        vectors: str = "vector",
        encoder: Any = None,
    ):
        self.source = source
        self.id = id
        self.vectors = vectors
        self.encoder = encoder

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters and open the source. Nothing is learned.

        Parameters
        ----------
        X : sequence of n texts, ids or row numbers
            Not read.
        y : ignored
            Not used. Pipelines pass it.

        Returns
        -------
        self : PrecomputedFeatures
        """
        self._open()
        return self

    def transform(self, X: Any) -> NDArray:
        """Return the features of texts, ids or row numbers.

        Parameters
        ----------
        X : sequence of n texts, ids or row numbers
            See `id`. A `TextPool` of texts is looked up without reading its texts.

        Returns
        -------
        features : ndarray of shape (n, d)
            Read-only, in the data type of the source: a copy, which is in a temporary
            file if it is larger than 64 MiB. Consecutive rows of that size are the map
            of the file itself, which must not be cut while they are used. A data frame
            after `set_output`.

        Raises
        ------
        ValueError
            For items that are not in the source, with their positions, unless `encoder`
            is given; and for a source that is damaged or unfinished. The error names
            the folder, the block and its rows.
        OSError
            If the file became shorter while it was open.
        TypeError
            For items of another kind.
        """
        features, rows = self.find_rows(X)
        if rows is not None:
            copy = allocate(len(rows), features.shape[1], features.dtype, LARGE)
            copy_rows(features, rows, copy, np.arange(len(rows)))
            features = copy
        view = np.asarray(features).view()
        if isinstance(features, FileRows) and view.nbytes <= LARGE:
            view = view.copy()
        view.flags.writeable = False
        return view

    def find_rows(self, X: Any) -> tuple[NDArray, NDArray | None]:
        """Return an array, and the rows in it that are the features of `X`.

        Parameters
        ----------
        X : sequence of n texts, ids or row numbers
            As in `transform`.

        Returns
        -------
        features : array-like of shape (r, d)
            Read and checked when it is indexed, or by `numpy.asarray`.
        rows : ndarray of int, shape (n,), or None
            None if the n rows of `features` are those of `X`, in order.
        """
        self._validate_params()
        opened = self._open()
        if opened.keys is None:
            rows = _check_row_numbers(X, len(opened.features))
            is_range = len(rows) > 0 and bool((np.diff(rows) == 1).all())
        else:
            keys = self._hash_items(X, opened)
            start = opened.find_run(keys)
            is_range = start is not None
            rows = [start] if is_range else opened.index.find(keys)
        if is_range:
            n = len(rows) if opened.keys is None else len(keys)
            return opened.features[rows[0] : rows[0] + n], None
        unknown = np.flatnonzero(rows < 0)
        if len(unknown):
            return self._encode(X, opened, rows, unknown), None
        return opened.features, rows

    def _open(self):
        return open_vectors(self.source, self.id, self.vectors)

    def _hash_items(self, X, opened):
        """Return the keys (n,) of texts or ids."""
        if self.id is not None and hasattr(X, "columns"):
            X = X[self.id]
        if opened.recipe is not None:
            return hash_texts(X)
        if hasattr(X, "ids"):
            X = X.ids
        return hash_ids(as_list(X))

    def _encode(self, X, opened, rows, unknown):
        """Return features of items some of which are not in the source, (n, d)."""
        if self.encoder is None or opened.recipe is None:
            advice = (
                "Pass 'encoder', the transformer that wrote the folder, to encode them."
                if opened.recipe is not None
                else "Pass ids that are there."
            )
            raise ValueError(
                f"'X' must hold items whose features are in {str(self.source)!r}, got "
                f"{len(unknown)} others, at positions: {list_some(unknown)}. {advice}"
            )
        self._check_encoder(opened)
        if self.id is not None and hasattr(X, "columns"):
            X = X[self.id]
        encoded = np.asarray(self.encoder.transform(take_rows(X, unknown)))
        width = opened.features.shape[1]
        if encoded.shape != (len(unknown), width):
            raise ValueError(
                f"'encoder' must return features of {width} columns, as in "
                f"{str(self.source)!r}, got the shape {encoded.shape}. Pass the "
                "transformer that wrote the folder."
            )
        features = allocate(len(rows), width, opened.features.dtype, LARGE)
        in_source = np.flatnonzero(rows >= 0)
        copy_rows(opened.features, rows[in_source], features, in_source)
        features[unknown] = clip_to(encoded, features.dtype)
        return features

    def _check_encoder(self, opened):
        """Raise a ValueError if the encoder would compute other features."""
        if not hasattr(self.encoder, "__skactive_recipe__") or not opened.recipe:
            return
        old, new = (
            {name: value for name, value in recipe.items() if name not in _MACHINE}
            for recipe in (opened.recipe, self.encoder.__skactive_recipe__())
        )
        changes = find_changes(old, json.loads(json.dumps(new)))
        if changes:
            raise ValueError(
                f"'encoder' must compute the features that are in "
                f"{str(self.source)!r}, and its settings differ: {changes}. Pass "
                "the transformer that wrote the folder."
            )

    @property
    def _n_features_out(self):
        return self._open().features.shape[1]


def _check_row_numbers(X, n_rows):
    """Return row numbers (n,) of int; raise an error for others."""
    rows = np.asarray(X)
    if rows.ndim == 2 and rows.shape[1] == 1:
        rows = rows[:, 0]
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise TypeError(
            f"'X' must hold row numbers of the vectors, got an array of shape "
            f"{rows.shape} and dtype {rows.dtype}. Pass integers, or 'id' to look ids "
            "up."
        )
    outside = np.flatnonzero((rows < 0) | (rows >= n_rows))
    if outside.size:
        raise ValueError(
            f"'X' must hold row numbers in [0, {n_rows}), got {rows[outside[0]]} at "
            f"position {outside[0]}."
        )
    return rows.astype(np.intp)
