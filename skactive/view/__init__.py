"""What a query strategy may see of the pool, the model and the labels."""

from ._pool_view import PoolView

__all__ = ["PoolView"]
