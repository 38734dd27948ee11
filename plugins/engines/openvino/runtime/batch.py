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
    """

    tokens_per_block: int
    scratch: int
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
        start, fed = len(self.ids), max(len(feed.tokens), min_rows)
        end = feed.cached_tokens + fed
        blocks = -(-end // self.tokens_per_block)
        self.rows.extend(range(start + feed.first_wanted, start + len(feed.tokens)))
        self.ids.extend(feed.tokens)
        self.ids.extend([feed.tokens[-1]] * (fed - len(feed.tokens)))
        self.positions.extend(range(feed.cached_tokens, end))
        self.past.append(feed.cached_tokens)
        self.begins.append(start + fed)
        self.table.extend(feed.blocks[:blocks])
        self.table.extend([self.scratch] * (blocks - len(feed.blocks)))
        self.table_begins.append(len(self.table))
        self.longest_tokens = max(self.longest_tokens, end)
