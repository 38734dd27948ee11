"""Vocabularies are compared by the bytes that ids stand for, whatever the files' spelling."""

import pytest

from builder.checkpoint.vocabulary import Spelling, Vocabulary, VocabularyDifference, compare_vocabularies, spelling_of

WORDS = {0: "<s>", 1: "a", 2: "b"}


def test_equal_entries_are_no_difference() -> None:
    assert compare_vocabularies(Vocabulary(WORDS), Vocabulary(dict(WORDS))) is None


def test_difference_shows_three_ids_with_both_texts() -> None:
    left = Vocabulary(WORDS | {i: f"l{i}" for i in range(3, 8)})
    right = Vocabulary(WORDS | {i: f"r{i}" for i in range(3, 7)})
    shown = ((3, "l3", "r3"), (4, "l4", "r4"), (5, "l5", "r5"))
    assert compare_vocabularies(left, right) == VocabularyDifference(5, shown)


def test_an_entry_on_one_side_only_is_a_difference() -> None:
    assert compare_vocabularies(Vocabulary(WORDS), Vocabulary(WORDS | {3: "c"})) == VocabularyDifference(1, ((3, None, "c"),))


@pytest.mark.parametrize(
    ("spelling", "text", "meaning"),
    [
        ("byte_level", "Ġthe", b" the"),
        ("byte_level", "Ċ", b"\n"),
        ("byte_level", "Ã©", "é".encode()),
        ("byte_level", "▁", "▁".encode()),
        ("metaspace", "▁the", b" the"),
        ("metaspace", "<0x0A>", b"\n"),
        ("metaspace", "<0x0A>b", b"<0x0A>b"),
        ("metaspace", "é", "é".encode()),
        ("plain", "Ġ", "Ġ".encode()),
        ("plain", "<0x0A>", b"<0x0A>"),
    ],
)
def test_spellings_of_bytes(spelling: Spelling, text: str, meaning: bytes) -> None:
    assert Vocabulary({7: text}, spelling).bytes_of(7) == meaning


def test_every_byte_has_one_character() -> None:
    """GPT-2's table is one to one: 256 one-byte tokens stand for 256 bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    characters = [chr(b) for b in printable] + [chr(0x100 + i) for i in range(256 - len(printable))]
    vocabulary = Vocabulary(dict(enumerate(characters)), "byte_level")
    assert {vocabulary.bytes_of(i) for i in range(256)} == {bytes([b]) for b in range(256)}


def test_the_same_bytes_in_two_spellings_mean_the_same() -> None:
    left = Vocabulary({0: "<s>", 1: "Ġthe", 2: "Ċ"}, "byte_level", frozenset({0}))
    right = Vocabulary({0: "<s>", 1: "▁the", 2: "<0x0A>"}, "metaspace", frozenset({0}))
    assert compare_vocabularies(left, right) is None


def test_the_same_spelling_of_other_bytes_differs() -> None:
    """An added token is literal: its G with a dot is no space."""
    left = Vocabulary({0: "Ġa"}, "byte_level")
    right = Vocabulary({0: "Ġa"}, "byte_level", frozenset({0}))
    assert compare_vocabularies(left, right) == VocabularyDifference(1, ((0, "Ġa", "Ġa"),))
    assert compare_vocabularies(left, Vocabulary({0: "Ġa"}, "plain")) is not None


def test_end_and_search() -> None:
    vocabulary = Vocabulary({0: "a", 5: "b"})
    assert (vocabulary.end, Vocabulary({}).end) == (6, 0)
    assert (vocabulary.id_of("b"), vocabulary.id_of("c"), vocabulary.bytes_of(3)) == (5, None, None)


@pytest.mark.parametrize(
    ("content", "spelling"),
    [
        ({"decoder": {"type": "ByteLevel"}}, "byte_level"),
        (
            {"decoder": None, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split"}, {"type": "ByteLevel"}]}},
            "byte_level",
        ),
        ({"decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}]}}, "metaspace"),
        ({"decoder": {"type": "Replace", "pattern": {"String": "x"}, "content": " "}}, "plain"),
        ({"pre_tokenizer": {"type": "Metaspace"}}, "metaspace"),
        ({"decoder": {"type": "WordPiece"}}, "plain"),
        ({}, "plain"),
    ],
)
def test_spelling_is_read_from_the_tokenizer(content: dict[str, object], spelling: Spelling) -> None:
    assert spelling_of(content) == spelling
