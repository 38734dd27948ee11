"""Shared state: estimates go from request to request; a dead draft model is left alone for a while."""

from triton_repo.common.draft_length import observe_plain
from triton_repo.tensorrt_llm_bls.health import FIRST_PAUSE_S, LAST_PAUSE_S, DraftHealth, SharedEstimates


def test_estimates_go_on():
    shared = SharedEstimates()
    shared.finish(observe_plain(shared.begin(), 4, 0.01))
    assert shared.begin().target_cost.measured


def test_pauses_grow_and_the_log_speaks_once():
    now, log = [0.0], []
    health = DraftHealth(log.append, clock=lambda: now[0])
    assert health.usable
    pauses = []
    for _ in range(10):
        health.failed("gone")
        start = now[0]
        while not health.usable:
            now[0] += FIRST_PAUSE_S
        pauses.append(now[0] - start)
    assert pauses[:3] == [5, 10, 20]
    assert pauses[-1] == LAST_PAUSE_S
    assert len(log) == 1
    health.answered()
    health.answered()
    assert len(log) == 2
    assert health.usable
