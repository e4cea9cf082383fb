"""Conformance checks for the authors of query strategies and annotators."""

from ._annotator_checks import check_annotator
from ._strategy_checks import check_strategy, parametrize_with_strategy_checks

__all__ = ["check_annotator", "check_strategy", "parametrize_with_strategy_checks"]
