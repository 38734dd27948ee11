"""Pages of the key-value cache: who owns which block, what is reusable, what may be thrown away."""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from plugins.engines.openvino.runtime.eviction import EvictionPolicy, LeastRecentlyUsed

ROOT = b""
"""Digest of the empty prefix: the parent of every first block."""


def chain_digest(parent: bytes, tokens: Sequence[int]) -> bytes:
    """Digest of a prefix that ends with this full block; it names the block's content and everything before it."""
    return blake2b(parent + array("q", tokens).tobytes(), digest_size=16).digest()


@dataclass
class Block:
    """One page. `tokens` is what a later request may reuse; empty while the block is private to the sequence that writes it."""

    index: int
    references: int = 0
    parent: bytes = ROOT
    digest: bytes | None = None
    tokens: tuple[int, ...] = ()

    @property
    def registered(self) -> bool:
        return bool(self.tokens)


@dataclass
class BlockTable:
    """The pages of one sequence, in order, and how many tokens in them are valid."""

    blocks: list[int] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    cached_tokens: int = 0
    reused_tokens: int = 0
    new_blocks: int = 0


@dataclass(frozen=True)
class Match:
    """What of a prompt is in the cache: full blocks, then `tail_tokens` of the block `tail`."""

    full: tuple[int, ...] = ()
    digests: tuple[bytes, ...] = ()
    tail: int | None = None
    tail_tokens: int = 0


class BlockManager:
    """Hands out `total` blocks of `tokens_per_block` tokens.

    Every block is in exactly one state: free (nothing of worth in it), used (referenced by a sequence) or cached (referenced by none,
    content reusable, given up as the eviction policy says). A block that is registered for reuse is never written: a sequence that
    continues in the middle of one gets it taken over (a cached tail) or copied (a full block, or one in use).
    """

    def __init__(
        self,
        total: int,
        tokens_per_block: int,
        copy: Callable[[int, int], None] = lambda source, destination: None,
        eviction: EvictionPolicy | None = None,
    ) -> None:
        assert total > 0
        assert tokens_per_block > 0
        self.total = total
        self.tokens_per_block = tokens_per_block
        self._copy = copy
        self._blocks = [Block(i) for i in range(total)]
        self._free = list(range(total - 1, -1, -1))
        self._cached: EvictionPolicy = LeastRecentlyUsed() if eviction is None else eviction
        self._full: dict[bytes, int] = {}
        self._children: dict[bytes, dict[int, None]] = {}

    @property
    def free(self) -> int:
        return len(self._free)

    @property
    def cached(self) -> int:
        return len(self._cached)

    @property
    def used(self) -> int:
        return self.total - self.free - self.cached

    @property
    def available(self) -> int:
        """Blocks that can be handed out now: free ones and cached ones, which are evicted."""
        return self.free + self.cached

    def blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.tokens_per_block)

    def match(self, tokens: Sequence[int], limit: int) -> Match:
        """Longest cached prefix of `tokens`, at most `limit` tokens of it. Changes nothing."""
        size = self.tokens_per_block
        full: list[int] = []
        digests = [ROOT]
        for start in range(0, limit - size + 1, size):
            digest = chain_digest(digests[-1], tokens[start : start + size])
            index = self._full.get(digest)
            if index is None:
                break
            full.append(index)
            digests.append(digest)
        start = len(full) * size
        tail, common = self._best_tail(digests[-1], tokens[start : min(start + size, limit)])
        match = Match(tuple(full), tuple(digests[1:]), tail, common)
        return match if tail is None or self._adoptable(match, tail) else Match(match.full, match.digests)

    def _adoptable(self, match: Match, tail: int) -> bool:
        """A cached tail is taken over; anything else is copied, which needs a block besides those that the match itself holds."""
        idle = self._blocks[tail].references == 0
        return self._takeable(tail) or self.available - self._revived(match) - idle > 0

    def _takeable(self, index: int) -> bool:
        block = self._blocks[index]
        return block.references == 0 and block.digest is None

    def _revived(self, match: Match) -> int:
        """Blocks of the match that count as available now and no longer when it is opened."""
        return sum(self._blocks[i].references == 0 for i in match.full)

    def _best_tail(self, parent: bytes, tokens: Sequence[int]) -> tuple[int | None, int]:
        """The registered block that shares most tokens; among equals one that can be taken over without a copy."""
        best: tuple[int | None, int] = (None, 0)
        for index in self._children.get(parent, ()):
            common = common_prefix(self._blocks[index].tokens, tokens)
            if common > best[1] or (common == best[1] > 0 and self._takeable(index)):
                best = (index, common)
        return best

    def fits(self, match: Match, tokens: int) -> bool:
        """Whether a sequence that starts with this match can be given room for `tokens` tokens now."""
        return self.blocks_for(tokens) - len(match.full) <= self.available - self._revived(match)

    def open(self, match: Match) -> BlockTable:
        """Table of a new sequence that reuses what was matched."""
        for index in match.full:
            self._reference(index)
        table = BlockTable(list(match.full), list(match.digests), len(match.full) * self.tokens_per_block)
        if match.tail is not None:
            self._adopt_tail(table, match.tail, match.tail_tokens)
        table.reused_tokens = table.cached_tokens
        return table

    def _adopt_tail(self, table: BlockTable, index: int, tokens: int) -> None:
        if self._takeable(index):
            self._reference(index)
            self._unregister(self._blocks[index])
        else:
            index = self._duplicate(index)
            table.new_blocks += 1
        table.blocks.append(index)
        table.cached_tokens += tokens

    def _duplicate(self, index: int) -> int:
        self._reference(index)  # so that allocation cannot evict the source
        copied = self._allocate()
        self._copy(index, copied)
        self._release(index)
        return copied

    def extend(self, table: BlockTable, tokens: int) -> bool:
        """Give the sequence room for `tokens` tokens in all; False, and nothing changed, when there are not enough blocks."""
        missing = self.blocks_for(tokens) - len(table.blocks)
        if missing > self.available:
            return False
        for _ in range(missing):
            table.blocks.append(self._allocate())
            table.new_blocks += 1
        self._assert_writable(table)
        return True

    def _assert_writable(self, table: BlockTable) -> None:
        for index in table.blocks[table.cached_tokens // self.tokens_per_block :]:
            block = self._blocks[index]
            assert block.references == 1, "a block that is written must not be shared"
            assert not block.registered, "a block that is written must not be offered for reuse"

    def commit(self, table: BlockTable, tokens: Sequence[int], cached_tokens: int) -> None:
        """Declare the first `cached_tokens` tokens valid and final; full blocks become reusable. Fewer than written is a roll-back."""
        size = self.tokens_per_block
        assert len(table.digests) * size <= cached_tokens <= len(table.blocks) * size, "final blocks cannot be rolled back"
        table.cached_tokens = cached_tokens
        for i in range(len(table.digests), cached_tokens // size):
            content = tuple(tokens[i * size : (i + 1) * size])
            parent = table.digests[-1] if table.digests else ROOT
            digest = chain_digest(parent, content)
            table.digests.append(digest)
            if digest not in self._full:
                self._register(self._blocks[table.blocks[i]], parent, content, digest)

    def trim(self, table: BlockTable) -> None:
        """Give back blocks that hold no valid token, as after rejected drafts."""
        keep = self.blocks_for(table.cached_tokens)
        while len(table.blocks) > keep:
            self._release(table.blocks.pop())

    def close(self, table: BlockTable, tokens: Sequence[int]) -> None:
        """End of a sequence: valid content stays as cache, the start of the sequence longest."""
        self.trim(table)
        self._offer_tail(table, tokens)
        while table.blocks:
            self._release(table.blocks.pop())
        table.digests.clear()
        table.cached_tokens = 0

    def _offer_tail(self, table: BlockTable, tokens: Sequence[int]) -> None:
        start = len(table.digests) * self.tokens_per_block
        content = tuple(tokens[start : table.cached_tokens])
        parent = table.digests[-1] if table.digests else ROOT
        if not content or any(self._blocks[i].tokens[: len(content)] == content for i in self._children.get(parent, ())):
            return
        for index in self._shorter_tails(parent, content):
            self._discard(index)
        self._register(self._blocks[table.blocks[-1]], parent, content, None)

    def _shorter_tails(self, parent: bytes, content: tuple[int, ...]) -> list[int]:
        """Cached tails that the new one makes redundant."""
        tails = (self._blocks[i] for i in self._children.get(parent, ()))
        return [b.index for b in tails if b.digest is None and b.references == 0 and content[: len(b.tokens)] == b.tokens]

    def _allocate(self) -> int:
        if self._free:
            index = self._free.pop()
        else:
            index = self._cached.evict()
            self._unregister(self._blocks[index])
        block = self._blocks[index]
        assert block.references == 0
        assert not block.registered
        block.references = 1
        return index

    def _reference(self, index: int) -> None:
        block = self._blocks[index]
        if block.references == 0:
            self._cached.remove(index)
        block.references += 1

    def _release(self, index: int) -> None:
        block = self._blocks[index]
        assert block.references > 0, "a block was given back twice"
        block.references -= 1
        if block.references:
            return
        if block.registered:
            self._cached.add(index)
        else:
            self._free.append(index)

    def _discard(self, index: int) -> None:
        self._cached.remove(index)
        self._unregister(self._blocks[index])
        self._free.append(index)

    def _register(self, block: Block, parent: bytes, tokens: tuple[int, ...], digest: bytes | None) -> None:
        assert not block.registered
        block.parent, block.tokens, block.digest = parent, tokens, digest
        self._children.setdefault(parent, {})[block.index] = None
        if digest is not None:
            self._full[digest] = block.index

    def _unregister(self, block: Block) -> None:
        siblings = self._children[block.parent]
        del siblings[block.index]
        if not siblings:
            del self._children[block.parent]
        if block.digest is not None:
            del self._full[block.digest]
        block.parent, block.tokens, block.digest = ROOT, (), None

    def assert_consistent(self, tables: Sequence[BlockTable]) -> None:
        """Every invariant at once, for tests: each block in one state, reference counts equal to the tables that name it."""
        assert self.free + self.used + self.cached == self.total
        named = [i for t in tables for i in t.blocks]
        for block in self._blocks:
            assert block.references == named.count(block.index)
            assert (block.index in set(self._cached)) == (block.references == 0 and block.registered)
            assert block.registered == (block.index in self._children.get(block.parent, ()))
        assert sorted([*self._free, *self._cached, *set(named)]) == list(range(self.total))
        assert all(self._blocks[i].digest == d for d, i in self._full.items())


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """Number of tokens that both begin with."""
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return count
