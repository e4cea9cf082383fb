"""The built-in data set: first paragraphs of public docstrings of four libraries."""

import gzip
import hashlib
import json
from importlib.resources import files
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from .._utils._sklearn import Interval, validate_params

_DESCR = """Docstrings of scientific Python libraries

First paragraphs of the public docstrings of four libraries. The task is to tell the
library from the text. Library names are masked by "library"; call signatures, titles
and markup are removed; texts under 5 words, repeated texts and texts found in two
libraries are left out. At most 2,500 texts of a library, chosen and ordered by a digest
of the text.

Texts per library: {counts}

Licenses of the texts:

{licenses}
"""


@validate_params(
    {
        "max_per_library": [Interval(Integral, 1, None, closed="left"), None],
        "return_X_y": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def load_docstrings(
    *, max_per_library: int | None = None, return_X_y: bool = False
) -> Any:
    """Load docstrings of numpy, scipy, scikit-learn and torch, labeled by library.

    The data set needs no download: 6,671 texts come with skactive. They are the first
    paragraphs of the docstrings of public modules, classes, functions and methods. The
    names of the libraries are masked, so a classifier must learn the subjects of the
    libraries.

    Parameters
    ----------
    max_per_library : int or None, default=None
        Largest number of texts per library. None keeps all: 1,151 of scikit-learn,
        1,182 of numpy, 1,838 of scipy, and 2,500 of torch.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like, with the following attributes.

        data : list of str, length n_samples
            The texts, in a mixed order that is the same on every call.
        target : ndarray of str, shape (n_samples,)
            The library of each text.
        target_names : list of str
            The libraries, in alphabetical order.
        DESCR : str
            A description of the data set, with the versions of the libraries and the
            licenses of the texts.

    (data, target) : tuple if `return_X_y` is True

    Raises
    ------
    ValueError
        If `max_per_library` is neither None nor a positive int.

    Notes
    -----
    The texts do not depend on what is installed. They were read from the source files
    of numpy 2.4, scipy 1.17, scikit-learn 1.9 and torch 2.13.

    Examples
    --------
    >>> from collections import Counter
    >>> from skactive.datasets import load_docstrings
    >>> docstrings = load_docstrings(max_per_library=100)
    >>> for library, n_texts in sorted(Counter(docstrings.target.tolist()).items()):
    ...     print(library, n_texts)
    numpy 100
    scikit-learn 100
    scipy 100
    torch 100
    """
    content = files(__package__).joinpath("docstrings.json.gz").read_bytes()
    packed = json.loads(gzip.decompress(content))
    # The texts of a library are in the order of their digests. A second digest mixes
    # the libraries.
    rows = [
        (_digest(_digest(text.encode())), text, label)
        for label, texts in packed["texts"].items()
        for text in texts[:max_per_library]
    ]
    rows.sort()
    data, target = [text for _, text, _ in rows], np.array([row[-1] for row in rows])
    if return_X_y:
        return data, target
    counts = "; ".join(
        f"{label} {version}: {(target == label).sum()}"
        for label, version in packed["versions"].items()
    )
    licenses = "\n\n".join(f"{x}:\n\n{text}" for x, text in packed["licenses"].items())
    return Bunch(
        data=data,
        target=target,
        target_names=sorted(packed["texts"]),
        DESCR=_DESCR.format(counts=counts, licenses=licenses),
    )


def _digest(content):
    return hashlib.sha256(content).digest()
