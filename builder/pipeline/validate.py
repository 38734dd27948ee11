"""The validate and report stages: gates against a freshly started server, then the report's files."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder import __version__, registry
from builder.api import Progress
from builder.gates.acceptance import AcceptanceSettings
from builder.gates.accuracy import AccuracySettings
from builder.gates.lossless import LosslessSettings
from builder.gates.prompts import load_prompts, load_text
from builder.gates.runs import RunSettings
from builder.gates.speed import SpeedSettings
from builder.gates.validate import GateSettings, validate
from builder.gates.verdict import Verdict
from builder.pipeline.serve import serving
from builder.pipeline.session import Session
from builder.pipeline.workspace import digest_files
from builder.report.machine import machine_facts, package_versions
from builder.report.model import make_report
from builder.report.write import write_reports
from builder.spec import PairSpec

DEADLINE_S = 120.0
WARMUP_PROMPTS = 2
PACKAGES = ("torch", "transformers", "openvino", "nncf", "tritonclient", "nvidia-pytriton", "numpy")
KINDS = 6


@dataclass(frozen=True)
class Validation:
    """A verdict and where its report stands."""

    verdict: Verdict
    report: Path
    markdown: Path


def gate_settings(spec: PairSpec, *, chat: bool) -> GateSettings:
    """The pair file's thresholds, as the gates take them; `chat` asks through the chat template."""
    gates = spec.gates
    speculative = spec.draft.method != "none"
    return GateSettings(
        lossless_run=_run_settings(gates.lossless.tokens, chat),
        speed_run=_run_settings(gates.speed.tokens, chat),
        lossless_prompts=gates.lossless.prompts,
        speed_prompts=gates.speed.prompts_per_kind * KINDS,
        accuracy_windows=gates.accuracy.text_tokens // gates.accuracy.window_tokens,
        accuracy_window_tokens=gates.accuracy.window_tokens,
        lossless=LosslessSettings(near_tie_logits=gates.lossless.near_tie_logits) if speculative else None,
        accuracy=AccuracySettings(max_mean_kl=gates.accuracy.max_mean_kl, min_top1_agreement=gates.accuracy.min_top1_agreement),
        speed=SpeedSettings(gates.speed.repeats, WARMUP_PROMPTS, gates.speed.min_speedup_mix, gates.speed.min_speedup_kind)
        if speculative
        else None,
        acceptance=AcceptanceSettings(gates.acceptance.min_rate, gates.acceptance.min_length) if speculative else None,
    )


def _run_settings(tokens: int, chat: bool) -> RunSettings:
    return RunSettings(max_tokens=tokens, deadline_s=DEADLINE_S, chat=chat, num_draft_tokens=None, lookup=None)


def validate_and_report(session: Session, *, tritonserver: Path | None, progress: Progress, durations_s: Mapping[str, float]) -> Validation:
    """Judge the packaged repository and write report.json, report.md, junit.xml and manifest.json."""
    spec, target = session.plan.pair.spec, session.plan.checkpoints["target"]
    engine = registry.engine(spec.engine.kind)
    began = time.monotonic()
    with serving(session, ports=None, tritonserver=tritonserver, progress=progress) as server, server.client() as client:
        started = time.monotonic()
        verdict = validate(
            client,
            load_prompts(),
            load_text(),
            lambda windows: engine.parent_logits(target.path, windows),
            gate_settings(spec, chat=target.has_chat_template),
            progress,
        )
        triton_version = server.version
    finished = time.monotonic()
    versions = {"trt-tandem": __version__, "tritonserver": triton_version, **package_versions(PACKAGES)}
    report = make_report(
        spec.name,
        verdict.gates,
        versions=versions,
        machine=machine_facts(),
        durations_s={**durations_s, "start server": started - began, "gates": finished - started, **verdict.durations_s},
        plan=session.plan.as_dict(),
        commands=(f"tandem run {session.plan.pair.shown}", f"tandem validate {session.plan.pair.shown}"),
    )
    files = write_reports(report, session.workspace.root)
    session.workspace.write_json("manifest.json", _manifest(session, versions, verdict))
    return Validation(verdict, files.json, files.markdown)


def _manifest(session: Session, versions: Mapping[str, str], verdict: Verdict) -> dict[str, Any]:
    return {
        "schema": 1,
        "name": session.plan.pair.spec.name,
        "verdict": verdict.word,
        "versions": dict(versions),
        "stages": {s.name: s.key for s in session.plan.stages},
        "files": {
            f"{folder}/{name}": d
            for folder in ("engines", "model_repository")
            for name, d in digest_files(session.workspace.path(folder)).items()
        },
    }
