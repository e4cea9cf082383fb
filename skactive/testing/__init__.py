"""Conformance checks for the authors of query strategies and of text estimators."""

from ._strategy_checks import (
    check_strategy,
    parametrize_with_strategy_checks,
    strategy_checks,
)
from ._text_checks import (
    check_text_estimator,
    parametrize_with_text_checks,
    text_estimator_checks,
)

__all__ = [
    "check_strategy",
    "check_text_estimator",
    "parametrize_with_strategy_checks",
    "parametrize_with_text_checks",
    "strategy_checks",
    "text_estimator_checks",
]
