"""Needs a module that nobody has."""

import skactive_module_that_nobody_has

from skactive.strategies import Random


class Cracked(Random):
    """Never reached."""

    needs = skactive_module_that_nobody_has
