"""What a query strategy may see of the pool, the model and the labels."""

from ._pool_view import PoolView

# Private names that other folders use are imported as themselves.
from ._quantities import check_capability as check_capability
from ._quantities import check_declarations as check_declarations
from ._quantities import check_target as check_target

__all__ = ["PoolView"]
