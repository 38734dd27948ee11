"""What the engine lane refuses of one engine, and of the pair on its chips."""

from builder.api import Deployment, EngineRequest, Finding
from plugins.engines.tensorrt_llm.built import BUILT_RULES
from plugins.engines.tensorrt_llm.chain import CHAIN_RULES
from plugins.engines.tensorrt_llm.settings import SETTING_RULES
from plugins.nvidia.rules import check_common, check_words, find_lane

KIND = "tensorrt_llm"


def check(request: EngineRequest) -> list[Finding]:
    """Words of the pair file that the lane does not have."""
    return check_words(request, find_lane(KIND))


def check_deployment(deployment: Deployment) -> list[Finding]:
    """Every rule of release, chip, precision, split, limits and drafts, all at once."""
    return check_common(deployment, KIND, (*CHAIN_RULES, *BUILT_RULES, *SETTING_RULES))
