"""What one pass is fed: the sequences laid side by side."""

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Feed:
    """What one sequence feeds: `tokens` behind `cached_tokens` valid ones; logits are wanted from the row `first_wanted` on."""

    tokens: SequenceOf[int]
    cached_tokens: int
    blocks: SequenceOf[int]
    first_wanted: int


@dataclass
class Batch:
    """Inputs of one pass, sequences side by side; the `begins` say where each one starts, and the last entry where all end.

    Padding rows stand behind a sequence's last token, where no token sees them. Their places in the cache are overwritten by the
    next token, or lie in the block `scratch` when the sequence's own blocks end before them.

    `by_row`: each row is laid out as a sequence of its own over the same blocks, and padding rows lie in the scratch block. Attention then
    takes the kernel for single rows.
    """

    tokens_per_block: int
    scratch: int
    by_row: bool = False
    ids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    past: list[int] = field(default_factory=list)
    begins: list[int] = field(default_factory=lambda: [0])
    table: list[int] = field(default_factory=list)
    table_begins: list[int] = field(default_factory=lambda: [0])
    rows: list[int] = field(default_factory=list)
    longest_tokens: int = 0

    def add(self, feed: Feed, min_rows: int) -> None:
        """Append one sequence, padded to `min_rows` rows."""
        start, padding = len(self.ids), [feed.tokens[-1]] * (min_rows - len(feed.tokens))
        self.rows.extend(range(start + feed.first_wanted, start + len(feed.tokens)))
        if not self.by_row:
            self._lay([*feed.tokens, *padding], feed.cached_tokens, feed.blocks)
            return
        for position, token in enumerate(feed.tokens, start=feed.cached_tokens):
            self._lay([token], position, feed.blocks)
        for token in padding:
            self._lay([token], 0, [])

    def _lay(self, tokens: SequenceOf[int], cached_tokens: int, blocks: SequenceOf[int]) -> None:
        end = cached_tokens + len(tokens)
        count = -(-end // self.tokens_per_block)
        self.ids.extend(tokens)
        self.positions.extend(range(cached_tokens, end))
        self.past.append(cached_tokens)
        self.begins.append(len(self.ids))
        self.table.extend(blocks[:count])
        self.table.extend([self.scratch] * (count - len(blocks)))
        self.table_begins.append(len(self.table))
        self.longest_tokens = max(self.longest_tokens, end)
