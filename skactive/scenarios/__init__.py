"""Imbalanced pools, and what a labeller of a rare class may begin with.

The three scenarios of Ein-Dor et al. (2020) for two classes, one of them wanted:

- balanced, the reference: :func:`reference_seed`;
- imbalanced, with an unbiased set of the wanted class: :func:`make_imbalanced`, then
  :func:`unbiased_seed`;
- imbalanced-practical, where the first items come out of a search for keywords and
  are no fair sample: :func:`make_imbalanced`, then :func:`keyword_seed`.

References
----------
L. Ein-Dor et al., "Active learning for BERT: an empirical study", EMNLP 2020.
"""

from .imbalance import make_imbalanced
from .seeds import Seed, keyword_seed, reference_seed, unbiased_seed

__all__ = ["Seed", "keyword_seed", "make_imbalanced", "reference_seed", "unbiased_seed"]
