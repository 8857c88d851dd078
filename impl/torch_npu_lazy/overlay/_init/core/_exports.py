"""The public names of torch_npu."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def _append_unique(all_list: list[str], names: Iterable[str]) -> None:
    """Add the names that are not there yet: __all__ starts with some of them."""
    all_list.extend(name for name in dict.fromkeys(names) if name not in all_list)
