"""Machines that label: a column of answers, and servers with a chat API.

A machine is one named annotator among others. Texts leave the computer only by
`ChatAnnotator`, to the URL that it is given.
"""

from ._base import Annotator, ColumnAnnotator, get_annotator

# Private names that other folders use are imported as themselves.
from ._base import describe_annotator as describe_annotator
from ._chat import ChatAnnotator, CostEstimate

__all__ = [
    "Annotator",
    "ChatAnnotator",
    "ColumnAnnotator",
    "CostEstimate",
    "get_annotator",
]
