"""Memory of the pair on its chips: weights, activations, two KV pools of the same number of tokens, and what a build takes."""

from builder.planner.memory.check import check_memory
from builder.planner.memory.model import Alternative, Capacity, EngineShare, MemoryPlan
from builder.planner.memory.needs import needed_tokens
from builder.planner.memory.plan import plan_memory

__all__ = ["Alternative", "Capacity", "EngineShare", "MemoryPlan", "check_memory", "needed_tokens", "plan_memory"]
