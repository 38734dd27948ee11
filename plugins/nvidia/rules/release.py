"""Which release: known, in the lane's range, carried by an image, without a known problem; and what it converts."""

from collections.abc import Mapping
from typing import Any

from builder.api import Deployment, Finding
from plugins.nvidia.lanes import Lane, find_lane
from plugins.nvidia.releases import (
    Release,
    at_least,
    at_most,
    containers,
    distance,
    images_of,
    known_release,
    nearest_release,
    release_data,
    release_number,
    releases,
)
from plugins.nvidia.rules.case import Case, Findings, Side, finding

FIELD = "engine.release"


def choose_release(deployment: Deployment, lane: Lane) -> tuple[Release, list[Finding]]:
    """The release that the rules go by, and what is to be said of the one asked for."""
    asked = deployment.target.release
    if asked is None:
        return lane.default_release, [_default(lane)]
    refused = _refusal(asked, lane)
    known = known_release(asked)
    if refused is None and known is not None:
        return known, []
    return lane.default_release, [refused] if refused else []


def _default(lane: Lane) -> Finding:
    message = f"No release is named; the plan takes {lane.default}, and another one can refuse what this one allows."
    return finding("RULE-RELEASE-DEFAULT", "info", FIELD, message, needed=lane.range, fix=f'write release: "{lane.default}"')


def _refusal(asked: str, lane: Lane) -> Finding | None:
    try:
        number = release_number(asked)
    except ValueError:
        return _unknown(asked, lane)
    if not lane.has(number):
        return _out_of_range(asked, lane)
    return None if known_release(asked) else _unknown(asked, lane)


def _unknown(asked: str, lane: Lane) -> Finding:
    near = nearest_release(asked, lane.releases).name
    message = f"No TensorRT-LLM release {asked} is in the capability data; the nearest name is {near}."
    known = ", ".join(r.name for r in lane.releases)
    fix = f'set engine.release: "{near}", or add a row to configs/releases.yaml'
    return finding("RULE-RELEASE-UNKNOWN", "error", FIELD, message, found=asked, needed=known, fix=fix)


def _out_of_range(asked: str, lane: Lane) -> Finding:
    message = f"TensorRT-LLM {asked} lies outside {lane.range}, the releases of engine.kind {lane.kind} ({lane.title}): {lane.outside}."
    fix = f'set engine.release: "{lane.default}"{_other_lane(asked, find_lane(lane.other))}'
    return finding("RULE-RELEASE-RANGE", "error", FIELD, message, found=asked, needed=lane.range, fix=fix)


def _other_lane(asked: str, other: Lane) -> str:
    """The other lane as a way out, with a release that it has."""
    if not other.has(release_number(asked)):
        return ""
    near = nearest_release(asked, other.releases).name
    return f", or engine.kind: {other.kind}" + ("" if known_release(asked) else f' with engine.release: "{near}"')


def release_candidate(case: Case) -> Findings:
    """R47: speculation crashed in a candidate."""
    if case.release.candidate:
        message = f"{case.release.name} is a release candidate; a crash of speculative decoding in one was never mended in place."
        fix = f'set engine.release to "{case.lane.default}"'
        yield finding("RULE-RELEASE-CANDIDATE", "warning", FIELD, message, found=case.release.name, needed="a final release", fix=fix)


def image_exists(case: Case) -> Findings:
    """R96: engine and server must be of one version."""
    release = case.release
    if images_of(release):
        return
    carried = [(releases()[c.release], c) for c in containers()]
    final = [(other, c) for other, c in carried if case.lane.has(other.number) and not other.candidate]
    _, nearest = min(final, key=lambda pair: distance(pair[0].number, release.number))
    message = (
        f"No Triton image is known to carry TensorRT-LLM {release.name}, and an engine loads only in the release that built it; "
        f"the nearest is {nearest.release} in {nearest.image}."
    )
    fix = f'set engine.release to "{nearest.release}", or make an image of your own'
    yield finding("RULE-NO-IMAGE", "warning", FIELD, message, found=release.name, needed=nearest.release, fix=fix)


def architecture_known(case: Case) -> Findings:
    """R05: what one release converts, an earlier one may not. A lane without such a list is not judged."""
    known = case.lane.architectures
    for side in case.sides if known else ():
        name = side.architecture
        since = known.get(name)
        if not name or (since is not None and at_least(case.release, since)):
            continue
        yield _architecture(case, side, since)


def _architecture(case: Case, side: Side, since: str | None) -> Finding:
    field, other = side.field("checkpoint"), case.lane.other
    if since:
        message = f"{side.architecture} can be converted from TensorRT-LLM {since} on, and the release is {case.release.name}."
        fix = f'set engine.release to "{since}" or later'
    else:
        message = f"No release from {case.lane.range} of the engine lane is known to convert {side.architecture}."
        fix = f"set engine.kind: {other}, or add the architecture to configs/releases.yaml"
    return finding("RULE-ARCHITECTURE", "error", field, message, found=side.architecture, needed=since or "a known architecture", fix=fix)


def known_issues(case: Case) -> Findings:
    """Rows of `known_issues` that the deployment matches."""
    for row in release_data()["known_issues"]:
        for side in case.sides:
            if _matches(row, case, side):
                code = "RULE-DENIED" if row["severity"] == "error" else "RULE-KNOWN-ISSUE"
                message = f"TensorRT-LLM {case.release.name} on {case.deployment.chip.name}: {row['reason']} ({row['source']})."
                yield finding(code, row["severity"], _field(row, side), message, found=case.release.name, fix=row["fix"])


def _matches(row: Mapping[str, Any], case: Case, side: Side) -> bool:
    deployment, sm = case.deployment, row.get("sm")
    tests = (
        row.get("lane", case.lane.kind) == case.lane.kind,
        at_least(case.release, row.get("first", "")),
        at_most(case.release, row.get("last", "")),
        sm is None or sm[0] <= case.sm <= sm[1],
        deployment.chip.name in row.get("chip", [deployment.chip.name]),
        side.kv_cache in row.get("kv_cache", [side.kv_cache]),
        side.request.weights in row.get("weights", [side.request.weights]),
        side.architecture in row.get("architectures", [side.architecture]),
        deployment.chip_count > row.get("chips_above", 0),
        side.request.pipeline_parallel > row.get("pipeline_above", 0),
        case.drafts or not row.get("drafts", False),
        deployment.host_offload_bytes > 0 or not row.get("host_offload", False),
    )
    return all(tests)


def _field(row: Mapping[str, Any], side: Side) -> str:
    """The pair file's field that the row is about."""
    if row.get("host_offload"):
        return "kv_cache.host_offload_bytes"
    if "chips_above" in row:
        return "hardware.count"
    if "pipeline_above" in row:
        return side.field("pipeline_parallel")
    return side.field("kv_cache") if "kv_cache" in row else FIELD
