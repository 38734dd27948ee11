"""Block manager: exact accounting, sharing, roll-back and eviction, over hand-made cases and random streams of requests."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.engines.openvino.runtime.block_manager import BlockManager, BlockTable

SIZE = 4


@dataclass
class Memory:
    """What the cache's memory would hold: one list of tokens for each block."""

    total: int
    rows: list[list[int]] = field(init=False)
    copies: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rows = [[-1] * SIZE for _ in range(self.total)]

    def copy(self, source: int, destination: int) -> None:
        self.copies.append((source, destination))
        self.rows[destination] = list(self.rows[source])

    def write(self, table: BlockTable, tokens: list[int], start: int, stop: int) -> None:
        for i in range(start, stop):
            self.rows[table.blocks[i // SIZE]][i % SIZE] = tokens[i]

    def read(self, table: BlockTable) -> list[int]:
        return [self.rows[table.blocks[i // SIZE]][i % SIZE] for i in range(table.cached_tokens)]


def make(total: int = 8) -> tuple[BlockManager, Memory]:
    memory = Memory(total)
    return BlockManager(total, SIZE, memory.copy), memory


def run(blocks: BlockManager, memory: Memory, tokens: list[int]) -> BlockTable:
    """Open a sequence and compute all its tokens."""
    table = blocks.open(blocks.match(tokens, len(tokens) - 1))
    start = table.cached_tokens
    assert blocks.extend(table, len(tokens))
    memory.write(table, tokens, start, len(tokens))
    blocks.commit(table, tokens, len(tokens))
    return table


def test_new_sequence_takes_free_blocks_and_leaves_them_cached() -> None:
    blocks, memory = make()
    table = run(blocks, memory, list(range(10)))
    assert (blocks.free, blocks.used, blocks.cached) == (5, 3, 0)
    assert table.new_blocks == 3
    blocks.close(table, list(range(10)))
    assert (blocks.free, blocks.used, blocks.cached) == (5, 0, 3)


def test_extending_request_reuses_the_partly_filled_last_block_without_a_copy() -> None:
    blocks, memory = make()
    first = list(range(10))
    blocks.close(run(blocks, memory, first), first)
    table = run(blocks, memory, [*first, 77, 78])
    assert table.reused_tokens == 10
    assert table.new_blocks == 0
    assert memory.copies == []
    assert memory.read(table) == [*first, 77, 78]


def test_request_that_diverges_inside_a_full_block_gets_a_copy() -> None:
    blocks, memory = make()
    first = list(range(8))
    blocks.close(run(blocks, memory, first), first)
    other = [0, 1, 2, 3, 4, 5, 99, 98]
    table = run(blocks, memory, other)
    assert table.reused_tokens == 6
    assert len(memory.copies) == 1
    assert memory.read(table) == other
    assert blocks.match([*first, 1], 8).full != (), "the first request's blocks must survive"
    assert len(blocks.match([*first, 1], 8).full) == 2


def test_whole_prompt_in_cache_still_leaves_one_token_to_compute() -> None:
    blocks, memory = make()
    first = list(range(8))
    blocks.close(run(blocks, memory, first), first)
    match = blocks.match(first, len(first) - 1)
    assert len(match.full) * SIZE + match.tail_tokens == 7


def test_live_sequences_share_full_blocks() -> None:
    blocks, memory = make()
    one = run(blocks, memory, list(range(9)))
    two = run(blocks, memory, [*range(8), 50])
    assert one.blocks[:2] == two.blocks[:2]
    assert one.blocks[2] != two.blocks[2]
    blocks.assert_consistent([one, two])


def test_roll_back_is_a_smaller_length_and_never_offers_rejected_tokens() -> None:
    blocks, memory = make()
    table = run(blocks, memory, [1, 2, 3])
    drafted = [1, 2, 3, 4, 5, 6]
    assert blocks.extend(table, 6)
    memory.write(table, drafted, 3, 6)
    blocks.commit(table, [1, 2, 3, 4], 4)
    blocks.close(table, [1, 2, 3, 4])
    match = blocks.match([*drafted, 9], 6)
    assert len(match.full) * SIZE + match.tail_tokens == 4
    blocks.assert_consistent([])


def test_oldest_cache_is_evicted_first_and_its_end_before_its_start() -> None:
    blocks, memory = make(total=4)
    old, young = [1] * 8, [2] * 8
    blocks.close(run(blocks, memory, old), old)
    blocks.close(run(blocks, memory, young), young)
    table = run(blocks, memory, [3] * 4)
    assert len(blocks.match([*old, 0], 8).full) == 1
    assert len(blocks.match([*young, 0], 8).full) == 2
    blocks.close(table, [3] * 4)


def test_extend_takes_nothing_when_there_is_not_enough() -> None:
    blocks, memory = make(total=2)
    table = run(blocks, memory, [1, 2, 3])
    assert not blocks.extend(table, 100)
    assert (blocks.free, blocks.used) == (1, 1)


def test_tail_is_not_copied_when_no_block_is_left_for_the_copy() -> None:
    blocks, memory = make(total=2)
    first = list(range(8))
    blocks.close(run(blocks, memory, first), first)
    match = blocks.match([0, 1, 2, 3, 4, 5, 99, 98], 7)
    table = blocks.open(match)
    assert table.cached_tokens == len(match.full) * SIZE + match.tail_tokens
    assert blocks.extend(table, 8)
    blocks.assert_consistent([table])


def test_giving_a_block_back_twice_is_caught() -> None:
    blocks, memory = make()
    table = run(blocks, memory, [1, 2, 3])
    again = BlockTable(list(table.blocks))
    blocks.close(table, [1, 2, 3])
    with pytest.raises(AssertionError, match="given back twice"):
        blocks.close(again, [])


@dataclass
class Live:
    table: BlockTable
    tokens: list[int]


_TOKEN = st.integers(0, 1)
_ACTION = st.one_of(
    st.tuples(st.just("open"), st.lists(_TOKEN, min_size=1, max_size=14)),
    st.tuples(st.just("grow"), st.lists(_TOKEN, min_size=1, max_size=6)),
    st.tuples(st.just("draft"), st.lists(_TOKEN, min_size=1, max_size=6)),
    st.tuples(st.just("close"), st.just([])),
)


@settings(max_examples=250, deadline=None)
@given(total=st.integers(2, 9), stream=st.lists(st.tuples(_ACTION, st.integers(0, 5)), max_size=40))
def test_any_stream_keeps_every_block_accounted_for(total: int, stream: list[tuple[tuple[str, list[int]], int]]) -> None:
    """After each action: each block in one state, and each sequence reads back exactly the tokens it wrote, whoever else wrote."""
    blocks, memory = make(total)
    live: list[Live] = []
    for (action, tokens), pick in stream:
        _act(blocks, memory, live, action, tokens, pick)
        blocks.assert_consistent([s.table for s in live])
        for sequence in live:
            assert memory.read(sequence.table) == sequence.tokens
    for sequence in live:
        blocks.close(sequence.table, sequence.tokens)
    blocks.assert_consistent([])
    assert blocks.used == 0


def _act(blocks: BlockManager, memory: Memory, live: list[Live], action: str, tokens: list[int], pick: int) -> None:
    if action == "open":
        match = blocks.match(tokens, len(tokens) - 1)
        if blocks.fits(match, len(tokens)):
            live.append(_opened(blocks, memory, tokens, blocks.open(match)))
    elif live:
        sequence = live[pick % len(live)]
        if action == "close":
            live.remove(sequence)
            blocks.close(sequence.table, sequence.tokens)
        else:
            _grow(blocks, memory, sequence, tokens, kept=len(tokens) if action == "grow" else pick % (len(tokens) + 1))


def _opened(blocks: BlockManager, memory: Memory, tokens: list[int], table: BlockTable) -> Live:
    assert memory.read(table) == tokens[: table.cached_tokens], "reused tokens must be the prompt's"
    start = table.cached_tokens
    assert blocks.extend(table, len(tokens)), "what fits can be extended"
    memory.write(table, tokens, start, len(tokens))
    blocks.commit(table, tokens, len(tokens))
    return Live(table, list(tokens))


def _grow(blocks: BlockManager, memory: Memory, sequence: Live, tokens: list[int], kept: int) -> None:
    start = len(sequence.tokens)
    if blocks.extend(sequence.table, start + len(tokens)):
        memory.write(sequence.table, sequence.tokens + tokens, start, start + len(tokens))
        sequence.tokens += tokens[:kept]
        blocks.commit(sequence.table, sequence.tokens, len(sequence.tokens))
