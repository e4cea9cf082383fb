"""The fixtures of the tests of fine-tuned encoders."""

from ..bert.conftest import (  # noqa: F401
    cache,
    counter,
    exact,
    features,
    filled,
    fresh_cache,
    here,
    hub_home,
    parts_of_two,
    same_for_all_threads,
    set_threads,
    tiny_encoder,
)
