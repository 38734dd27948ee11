"""What is measured: parties (this engine, its peers) in the ways they can be asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

OURS, OURS_LONG = "tandem", "tandem_long_context"
TUNED_FOR: Mapping[str, Literal["decoding", "long_context"]] = {OURS: "decoding", OURS_LONG: "long_context"}
"""This engine is opened twice."""
Needs = Literal["nothing", "draft"]


@dataclass(frozen=True)
class System:
    """One party asked in one way. `mode` is a word of the party's own; peers are named by their folder below the peers' folder."""

    party: str
    mode: str
    label: str
    needs: Needs = "nothing"

    @property
    def key(self) -> str:
        return f"{self.party}/{self.mode}"


SINGLE = (
    System(OURS, "plain", "Tandem, target only"),
    System(OURS, "lookup", "Tandem, prompt lookup"),
    System(OURS, "draft", "Tandem, draft model", "draft"),
    System(OURS, "draft_lookup", "Tandem, draft model and lookup", "draft"),
    System(OURS_LONG, "plain", "Tandem tuned for long context, target only"),
    System(OURS_LONG, "draft_lookup", "Tandem tuned for long context, draft model and lookup", "draft"),
    System("transformers", "plain", "transformers bf16 `generate`"),
    System("transformers", "lookup_5", "transformers bf16, prompt lookup of 5"),
    System("transformers", "lookup_10", "transformers bf16, prompt lookup of 10"),
    System("openvino_genai", "plain", "OpenVINO GenAI int8, KV u8"),
    System("openvino_genai", "lookup_5", "OpenVINO GenAI int8, prompt lookup of 5"),
    System("openvino_genai", "lookup_10", "OpenVINO GenAI int8, prompt lookup of 10"),
    System("openvino_genai", "draft_3", "OpenVINO GenAI int8, the same draft model, 3 tokens", "draft"),
    System("openvino_genai", "draft_5", "OpenVINO GenAI int8, the same draft model, 5 tokens", "draft"),
    System("llama_cpp", "q8_0", "llama.cpp Q8_0, KV q8_0"),
    System("llama_cpp", "q4_0", "llama.cpp Q4_0, KV q8_0"),
)
"""Asked one prompt at a time."""

CONCURRENT = (
    System(OURS, "plain", "Tandem, target only"),
    System(OURS, "draft_lookup", "Tandem, draft model and lookup", "draft"),
    System(OURS_LONG, "plain", "Tandem tuned for long context, target only"),
    System("openvino_genai", "plain", "OpenVINO GenAI int8, KV u8"),
)
"""Asked many prompts at once."""

PEERS = tuple(dict.fromkeys(s.party for s in SINGLE if s.party not in TUNED_FOR))


def parties_of(systems: tuple[System, ...]) -> tuple[str, ...]:
    """Each party once, in order."""
    return tuple(dict.fromkeys(s.party for s in systems))


def with_draft(systems: tuple[System, ...], *, has_draft: bool) -> tuple[System, ...]:
    """The systems that a pair with or without a draft model has."""
    return tuple(s for s in systems if has_draft or s.needs != "draft")
