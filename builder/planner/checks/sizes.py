"""The draft's size against the target's: a draft pays by being cheap."""

from collections.abc import Iterator

from builder.errors import Finding, Severity
from builder.planner.checks.models import Model, capital
from builder.planner.checks.small_models import suggestion

SELDOM_PAYS = 1 / 2
PAYS_WITH_HIGH_ACCEPTANCE = 1 / 8
"""Shares of the target's parameters: vllm-project/vllm#5239 (13B for 13B loses), mattn/tensai#44 (0.5B for 1.5B loses)."""


def check_sizes(target: Model, draft: Model) -> Iterator[Finding]:
    """The target as its own draft is refused; a large draft is a warning, one above an eighth is noted."""
    if draft.checkpoint.path == target.checkpoint.path:
        message = f"The draft is the target {target.name} itself: every draft token costs as much as the token that it may save."
        fix = f"take a draft of a tenth of the target's size or less{suggestion(target)}, or set draft.method: ngram"
        yield Finding("PAIR-DRAFT-IS-TARGET", "error", message, draft.field, draft.name, "a smaller model", fix)
        return
    left, right = _read_for_a_token(target), _read_for_a_token(draft)
    if not left or right <= PAYS_WITH_HIGH_ACCEPTANCE * left:
        return
    sizes = f"{capital(draft)} has {_parameters(draft)}, {target} {_parameters(target)}"
    if right > SELDOM_PAYS * left:
        message = f"{sizes}: a draft of more than half the target's size seldom pays, because decoding time goes with the weights read."
        fix = f"take a smaller draft{suggestion(target)}; the speed gate will judge"
        yield _size("warning", message, draft, right, SELDOM_PAYS * left, fix)
    else:
        message = (
            f"{sizes}: a draft token costs up to {right / left:.0%} of a target pass, so drafting pays only where more than such a share "
            "of draft tokens is accepted."
        )
        fix = "measure with the speed gate; a smaller draft may do better"
        yield _size("info", message, draft, right, PAYS_WITH_HIGH_ACCEPTANCE * left, fix)


def _size(severity: Severity, message: str, draft: Model, found: int, most: float, fix: str) -> Finding:
    return Finding("PAIR-DRAFT-SIZE", severity, message, draft.field, str(found), f"<= {int(most)}", fix)


def _read_for_a_token(model: Model) -> int:
    """Parameters that one token is multiplied with: of a mixture of experts only those it is sent to."""
    shape = model.checkpoint.shape
    return shape.active_parameters if shape.experts and shape.active_parameters else shape.parameters


def _parameters(model: Model) -> str:
    whole, read = model.checkpoint.parameters, _read_for_a_token(model)
    return f"{_number(whole)} parameters" + (f" ({_number(read)} for one token)" if read != whole else "")


def _number(parameters: int) -> str:
    return f"{parameters / 1e9:.1f} billion" if parameters >= 1e9 else f"{parameters / 1e6:.1f} million"
