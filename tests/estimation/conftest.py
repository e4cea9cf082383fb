"""The items of the stopping rules."""

from ..stopping.conftest import data as data
