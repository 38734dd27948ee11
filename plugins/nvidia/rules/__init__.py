"""Rules of TensorRT-LLM that both lanes share: what release, chip, checkpoint, split and limits allow. Each rule is one small function."""

from collections.abc import Sequence

from builder.api import Deployment, Finding
from plugins.nvidia.lanes import Lane, find_lane
from plugins.nvidia.rules.case import Case, Findings, Rule, Side, any_of, finding, judge
from plugins.nvidia.rules.chip import chip_is_gpu, chip_supported, kv_cache_in_release, kv_cache_on_chip, weights_on_chip
from plugins.nvidia.rules.drafts import DRAFT_RULES
from plugins.nvidia.rules.limits import LIMIT_RULES
from plugins.nvidia.rules.parallel import PARALLEL_RULES
from plugins.nvidia.rules.release import architecture_known, choose_release, image_exists, known_issues, release_candidate
from plugins.nvidia.rules.stored import STORED_RULES
from plugins.nvidia.rules.words import check_words

COMMON_RULES: tuple[Rule, ...] = (
    release_candidate,
    image_exists,
    chip_is_gpu,
    chip_supported,
    architecture_known,
    weights_on_chip,
    kv_cache_on_chip,
    kv_cache_in_release,
    known_issues,
    *STORED_RULES,
    *PARALLEL_RULES,
    *LIMIT_RULES,
    *DRAFT_RULES,
)


def check_common(deployment: Deployment, kind: str, rules: Sequence[Rule] = ()) -> list[Finding]:
    """Findings of the common rules, then of the lane's own `rules`, all at once.

    With an unknown release the rules go by the lane's default, so that nothing waits for the first mistake.
    """
    lane = find_lane(kind)
    release, said = choose_release(deployment, lane)
    return [*said, *judge(Case(deployment, lane, release), (*COMMON_RULES, *rules))]


__all__ = ["Case", "Findings", "Lane", "Rule", "Side", "any_of", "check_common", "check_words", "find_lane", "finding", "judge"]
