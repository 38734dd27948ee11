"""Which cached block is given up first."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Protocol


class EvictionPolicy(Protocol):
    """Holds the blocks that no sequence uses but whose content may be reused.

    The content of the block that `evict` names is intact until it returns, so a policy may save it elsewhere first (a host tier).
    """

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[int]: ...

    def add(self, index: int) -> None:
        """A block has become unused."""

    def remove(self, index: int) -> None:
        """A held block is used again, or its content is worth nothing now."""

    def evict(self) -> int:
        """Give up one held block."""


class LeastRecentlyUsed:
    """Gives up the block that has been unused longest."""

    def __init__(self) -> None:
        self._held: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[int]:
        return iter(self._held)

    def add(self, index: int) -> None:
        self._held[index] = None

    def remove(self, index: int) -> None:
        del self._held[index]

    def evict(self) -> int:
        return self._held.popitem(last=False)[0]
