"""Seeds of rounds."""

from hypothesis import given
from hypothesis import strategies as st

from triton_repo.common.seeds import request_seed, round_seed


@given(st.integers(0, (1 << 64) - 1), st.integers(0, 100_000))
def test_the_request_seed_is_the_same_in_all_rounds(seed: int, made: int):
    assert request_seed(round_seed(seed, made)) == request_seed(seed)
    assert 0 <= round_seed(seed, made) < 1 << 64


def test_rounds_differ_and_the_first_is_the_seed_itself():
    assert round_seed(7, 0) == 7
    assert len({round_seed(7, made) for made in range(1000)}) == 1000
