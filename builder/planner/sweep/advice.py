"""The smallest hardware for the pair's goal, through whole plans."""

from builder.api import Progress
from builder.errors import RefusedError
from builder.planner.cost import HardwareAdvice, hardware_for_goal
from builder.planner.cost.goal import goal_is_stated
from builder.planner.cost.search import Instance
from builder.planner.memory import MemoryPlan
from builder.planner.sweep.rows import Evaluate
from builder.planner.sweep.settings import Setting, with_settings
from builder.spec import Pair


def smallest_hardware(
    pair: Pair, evaluate: Evaluate, memory: MemoryPlan | None = None, progress: Progress = lambda _text, _share: None
) -> HardwareAdvice | None:
    """Plan the pair on every chip like its own, 1, 2, 4 and 8 of it to an instance; None where `planning.goal` asks for nothing.

    With the `memory` of the pair as it is, chips that cannot hold its weights are not tried.
    """
    if not goal_is_stated(pair.spec.planning.goal):
        return None

    def on(chip: str, count: int, batch: int | None) -> Instance | None:
        settings: dict[str, Setting] = {"hardware.chip": chip, "hardware.count": count}
        if batch is not None:
            settings |= {"limits.max_batch_size": batch, "serve.max_concurrent_requests": batch}
        try:
            plan = evaluate(with_settings(pair, settings))
        except RefusedError:
            return None
        if not plan.ok or plan.speed is None or plan.memory is None:
            return None
        return Instance(plan.speed, plan.memory.full_sequences)

    return hardware_for_goal(pair.spec, on, needed_bytes=_weights_bytes(memory), progress=progress)


def _weights_bytes(memory: MemoryPlan | None) -> int:
    """Of the target on one chip, which no split goes below; 0 where it is split already, since some tensors then lie on each chip."""
    target = memory.engines[0] if memory else None
    return target.weights_bytes if target and len(target.devices) == 1 else 0
