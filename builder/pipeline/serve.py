"""Serving a packaged repository, for people (`tandem serve`) and for the gates."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from builder import registry
from builder.api import Progress
from builder.errors import RefusedError
from builder.packaging.placeholders import check_placeholders
from builder.pipeline.session import Session
from builder.serving.ports import Ports, free_ports
from builder.serving.tritonserver import RunningServer, ServerSettings, running_server

START_TIMEOUT_S = 300.0
EXIT_TIMEOUT_S = 8


def planned_ports(session: Session) -> Ports:
    """The ports of the pair file."""
    serve = session.plan.pair.spec.serve
    return Ports(serve.http_port, serve.grpc_port, serve.metrics_port)


@contextmanager
def serving(session: Session, *, ports: Ports | None, tritonserver: Path | None, progress: Progress) -> Iterator[RunningServer]:
    """A server on the session's repository; `ports` None takes free ones. Raises RefusedError, MissingError, StageError."""
    session.require_built()
    check_placeholders(session.workspace.path("model_repository"))
    engine = registry.engine(session.plan.pair.spec.engine.kind)
    name = "validate" if ports is None else "serve"
    settings = ServerSettings(
        repository=session.workspace.path("model_repository"),
        run_dir=session.workspace.logs / name,
        ports=ports or free_ports(),
        needs=engine.server_needs(),
        tritonserver=tritonserver,
        start_timeout_s=START_TIMEOUT_S,
        exit_timeout_s=EXIT_TIMEOUT_S,
    )
    with running_server(settings, progress) as server:
        yield server


def saved_report(session: Session) -> dict[str, object]:
    """The last report.json. Raises RefusedError when there is none."""
    file = session.workspace.path("report.json")
    try:
        report: dict[str, object] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        fix = f"tandem validate {session.plan.pair.file.name}"
        raise RefusedError("REPORT-MISSING", f"there is no report {file}", found="nothing", needed=str(file), fix=fix) from None
    return report
