"""Layout of a pass: sequences side by side, padded, with the blocks that each one touches."""

from plugins.engines.openvino.runtime.batch import Batch, Feed


def test_sequences_lie_side_by_side_and_a_single_token_is_padded() -> None:
    batch = Batch(32, scratch=99)
    batch.add(Feed([7], 31, [4, 9, 2], 0), 2)
    batch.add(Feed([1, 2, 3], 0, [5], 2), 2)
    assert batch.ids == [7, 7, 1, 2, 3]
    assert batch.positions == [31, 32, 0, 1, 2]
    assert batch.past == [31, 0]
    assert batch.begins == [0, 2, 5]
    assert (batch.table, batch.table_begins) == ([4, 9, 5], [0, 2, 3])
    assert batch.rows == [0, 4], "a padding row never answers"
    assert batch.longest_tokens == 33


def test_padding_beyond_the_sequences_own_blocks_goes_to_the_scratch_block() -> None:
    batch = Batch(32, scratch=99)
    batch.add(Feed([7], 31, [4], 0), 4)
    assert batch.ids == [7, 7, 7, 7]
    assert (batch.table, batch.table_begins) == ([4, 99], [0, 2])
    assert batch.rows == [0]


def test_chunk_of_a_prompt_wants_no_row() -> None:
    batch = Batch(32, scratch=99)
    batch.add(Feed([1, 2, 3], 0, [5], 3), 2)
    assert batch.rows == []


def test_row_by_row_each_row_is_a_sequence_over_the_same_blocks() -> None:
    batch = Batch(32, scratch=99, by_row=True)
    batch.add(Feed([7, 8], 31, [4, 9, 2], 1), 2)
    batch.add(Feed([1], 5, [6], 0), 1)
    assert batch.ids == [7, 8, 1]
    assert batch.positions == batch.past == [31, 32, 5]
    assert batch.begins == [0, 1, 2, 3]
    assert (batch.table, batch.table_begins) == ([4, 4, 9, 6], [0, 1, 3, 4])
    assert batch.rows == [1, 2]


def test_row_by_row_padding_lies_in_the_scratch_block() -> None:
    batch = Batch(32, scratch=99, by_row=True)
    batch.add(Feed([7], 40, [4, 9], 0), 3)
    assert batch.past == [40, 0, 0]
    assert (batch.table, batch.table_begins) == ([4, 9, 99, 99], [0, 2, 3, 4])
    assert batch.rows == [0]
