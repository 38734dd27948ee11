"""Eviction: the order of the default policy, and that another one can be put in its place."""

from plugins.engines.openvino.runtime.block_manager import BlockManager, Match
from plugins.engines.openvino.runtime.eviction import LeastRecentlyUsed


def test_longest_unused_goes_first() -> None:
    policy = LeastRecentlyUsed()
    for index in (3, 1, 2):
        policy.add(index)
    policy.remove(3)
    policy.add(3)
    assert list(policy) == [1, 2, 3]
    assert [policy.evict() for _ in range(3)] == [1, 2, 3]
    assert len(policy) == 0


class Newest(LeastRecentlyUsed):
    """Gives up the block that became unused last, and notes it."""

    def __init__(self) -> None:
        super().__init__()
        self.saved: list[int] = []

    def evict(self) -> int:
        self.saved.append(self._held.popitem()[0])
        return self.saved[-1]


def test_manager_asks_the_policy_it_is_given() -> None:
    policy = Newest()
    blocks = BlockManager(2, 4, eviction=policy)
    for first in (0, 10):
        tokens = list(range(first, first + 4))
        table = blocks.open(Match())
        assert blocks.extend(table, 4)
        blocks.commit(table, tokens, 4)
        blocks.close(table, tokens)
    assert blocks.cached == 2
    newcomer = blocks.open(Match())
    assert blocks.extend(newcomer, 4)
    assert policy.saved == newcomer.blocks
    assert blocks.match([0, 1, 2, 3, 4], 4).tail_tokens + 4 * len(blocks.match([0, 1, 2, 3, 4], 4).full) == 4
    assert blocks.match([10, 11, 12, 13, 14], 4) == Match()
    blocks.assert_consistent([newcomer])
