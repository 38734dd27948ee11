"""What the lane of the PyTorch flow refuses of one engine, and of the pair on its chips."""

from builder.api import Deployment, EngineRequest, Finding
from plugins.engines.tensorrt_llm_pytorch.drafts import DRAFT_RULES, REPLACED_DRAFT_RULES
from plugins.engines.tensorrt_llm_pytorch.process import PROCESS_RULES, REPLACED_PROCESS_RULES
from plugins.nvidia.rules import COMMON_RULES, Case, Rule, check_words, find_lane, judge
from plugins.nvidia.rules.release import choose_release

KIND = "tensorrt_llm_pytorch"
REPLACED = {*REPLACED_DRAFT_RULES, *REPLACED_PROCESS_RULES}
RULES: tuple[Rule, ...] = (*(rule for rule in COMMON_RULES if rule not in REPLACED), *PROCESS_RULES, *DRAFT_RULES)
"""The rules of both lanes but those that suppose two engines or a builder, and this lane's own."""


def check(request: EngineRequest) -> list[Finding]:
    """Words of the pair file that the lane does not have."""
    return check_words(request, find_lane(KIND))


def check_deployment(deployment: Deployment) -> list[Finding]:
    """Every rule of release, chip, precision, split, limits and drafts, all at once."""
    lane = find_lane(KIND)
    release, said = choose_release(deployment, lane)
    return [*said, *judge(Case(deployment, lane, release), RULES)]
