"""skactive with its defaults, but for `adapt=False`: the encoder learns nothing."""

from . import loop_default


class Loop(loop_default.Loop):
    adapt = False
