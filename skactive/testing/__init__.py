"""Conformance checks for the authors of query strategies."""

from ._strategy_checks import check_strategy, parametrize_with_strategy_checks

__all__ = ["check_strategy", "parametrize_with_strategy_checks"]
