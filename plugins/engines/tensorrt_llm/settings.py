"""Settings of the engine build and of the served pair that exclude each other or the chip."""

from plugins.nvidia.lanes import Option
from plugins.nvidia.releases import at_least, at_most
from plugins.nvidia.rules import Case, Findings, finding

UNTESTED_SM = 100


def options_fit(case: Case) -> Findings:
    """R15, R17: options that the release or the chip has not; they are the same for both engines."""
    for name, value in sorted(case.deployment.target.options.items()):
        option = case.lane.options.get(name)
        if option is not None and not option.never and value not in (False, "disable"):
            yield from _option(case, option)


def _option(case: Case, option: Option) -> Findings:
    field, release, chip = f"engine.options.{option.name}", case.release.name, case.deployment.chip.name
    if not at_least(case.release, option.since):
        message = f"TensorRT-LLM {release} has no {option.name} yet; it came with {option.since}."
        fix = f'remove it, or set engine.release to "{option.since}" or later'
        yield finding("RULE-OPTION-RELEASE", "error", field, message, found=release, needed=f">= {option.since}", fix=fix)
    if not at_most(case.release, option.until):
        message = f"TensorRT-LLM {release} has no {option.name} any more; {option.until} was the last with it."
        yield finding("RULE-OPTION-RELEASE", "error", field, message, found=release, needed=f"<= {option.until}", fix="remove it")
    if case.is_gpu and not option.runs_on(case.sm):
        message = f"{option.name} is not implemented for sm_{case.sm}, and {chip} is one."
        needed = f"sm_{option.only_sm[0]}" if option.only_sm else f"not sm_{case.sm}"
        yield finding("RULE-OPTION-CHIP", "error", field, message, found=f"sm_{case.sm}", needed=needed, fix="remove it")


def options_agree(case: Case) -> Findings:
    """Pairs of options that the builder refuses together."""
    target, given = case.target, case.deployment.target.options
    if "opt_num_tokens" in given and target.option("multiple_profiles"):
        message = "multiple_profiles chooses the token counts it tunes for, so opt_num_tokens cannot be given; the builder stops on both."
        fix = "remove opt_num_tokens, or set engine.options.multiple_profiles: false"
        yield finding("RULE-OPTION-CONFLICT", "error", "engine.options.opt_num_tokens", message, found=given["opt_num_tokens"], fix=fix)
    if target.option("user_buffer") and not target.option("reduce_fusion"):
        message = "user_buffer needs reduce_fusion, which is not on."
        fix = "set engine.options.reduce_fusion: true, or remove user_buffer"
        yield finding("RULE-OPTION-CONFLICT", "error", "engine.options.user_buffer", message, found="true", needed="reduce_fusion", fix=fix)
    if target.option("reduce_fusion") and target.request.tensor_parallel == 1:
        message = "reduce_fusion joins the sum over chips with what follows it; with target.tensor_parallel: 1 the builder resets it."
        field = "engine.options.reduce_fusion"
        yield finding("RULE-OPTION-CONFLICT", "warning", field, message, found="true", needed="tensor_parallel > 1", fix="remove it")


def packed_input(case: Case) -> Findings:
    """R114: in-flight batching packs its requests."""
    if case.target.option("remove_input_padding") is False:
        message = "Triton batches requests in flight, which needs packed input: remove_input_padding cannot be off."
        field = "engine.options.remove_input_padding"
        yield finding("RULE-PADDING", "error", field, message, found="false", needed="true", fix="remove it")


def beams(case: Case) -> Findings:
    """Beam search and draft tokens exclude each other."""
    width = case.target.option("max_beam_width")
    if case.drafts and width > 1:
        message = f"Draft tokens are verified for one beam only, and max_beam_width is {width}: requests with both are rejected."
        fix = "remove max_beam_width, or set draft.method: none"
        field = "engine.options.max_beam_width"
        yield finding("RULE-BEAM", "error", field, message, found=width, needed=1, fix=fix)


def topology(case: Case) -> Findings:
    """Two engines are two models of the server; something must ask them in turn."""
    if case.drafts and case.deployment.topology == "single":
        message = "Two engines are two Triton models, and one that asks them in turn: topology single has nobody who drafts."
        fix = f"set serve.topology: orchestrated, or engine.kind: {case.lane.other}, where both models are one"
        yield finding("RULE-TOPOLOGY", "error", "serve.topology", message, found="single", needed="orchestrated", fix=fix)


def generation_logits(case: Case) -> Findings:
    """R02: acceptance by logits without the draft's logits hung."""
    if case.deployment.acceptance != "logits":
        return
    if case.deployment.method == "ngram":
        message = "Acceptance by logits compares the draft model's with the target's, and looked-up tokens have none."
        fix = "set speculation.acceptance: tokens"
        yield finding("RULE-NGRAM-LOGITS", "error", "speculation.acceptance", message, found="logits", needed="tokens", fix=fix)
    elif case.target.option("gather_generation_logits") is False:
        message = "Acceptance by logits needs gather_generation_logits on both builds; without it the pair hangs at its first request."
        fix = "remove engine.options.gather_generation_logits, or set speculation.acceptance: tokens"
        field = "engine.options.gather_generation_logits"
        yield finding("RULE-GENERATION-LOGITS", "error", field, message, found="false", needed="true", fix=fix)


def fast_logits(case: Case) -> Findings:
    """Logits from device to device exist for acceptance by logits only."""
    if case.target.option("fast_logits") and case.deployment.acceptance != "logits":
        message = "fast_logits hands the draft's logits to the target, and acceptance by tokens uses none."
        fix = "remove it, or set speculation.acceptance: logits"
        yield finding("RULE-FAST-LOGITS", "warning", "engine.options.fast_logits", message, found="true", needed="false", fix=fix)


def server_processes(case: Case) -> Findings:
    """R123, R125, R126: more than one rank, and more than one model, in one server."""
    ranks = [side.ranks for side in case.sides]
    if len(ranks) > 1 and (max(ranks) > 1 or case.target.option("fast_logits")):
        message = (
            f"Two models with {ranks[0]} and {ranks[1]} ranks: the server runs in orchestrator mode, {1 + sum(ranks)} processes under MPI; "
            "there is no tensor parallelism without MPI."
        )
        yield finding("RULE-ORCHESTRATOR", "info", "target.tensor_parallel", message, found=max(ranks))


def untested_chip(case: Case) -> Findings:
    """Upstream skips its draft-target tests on sm_100 and newer."""
    if case.drafts and case.sm >= UNTESTED_SM:
        chip = case.deployment.chip.name
        message = f"{chip} is sm_{case.sm}, and upstream skips its draft-target tests of the engine flow from sm_{UNTESTED_SM} on."
        fix = f"run the gates before you trust it, or set engine.kind: {case.lane.other}"
        yield finding(
            "RULE-DRAFT-BLACKWELL", "warning", "hardware.chip", message, found=f"sm_{case.sm}", needed=f"< sm_{UNTESTED_SM}", fix=fix
        )


def sequence_bookkeeping(case: Case) -> Findings:
    """The builder adds the drafts to the length by itself."""
    length, k = case.deployment.target.max_sequence_tokens, case.deployment.max_draft_tokens
    if case.drafts:
        message = (
            f"The builder adds the {k} draft tokens to max_seq_len by itself, so the target's engine will say {length + k}; "
            f"limits.max_sequence_tokens stays prompt and answer together, {length}."
        )
        yield finding("RULE-SEQ-LEN", "info", "limits.max_sequence_tokens", message, found=length)


SETTING_RULES = (
    options_fit,
    options_agree,
    packed_input,
    beams,
    topology,
    generation_logits,
    fast_logits,
    server_processes,
    untested_chip,
    sequence_bookkeeping,
)
