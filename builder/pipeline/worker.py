"""Builds one engine in a process of its own: `python -m builder.pipeline.worker`, the job as JSON on standard input.

Its standard output carries one JSON object a line: {"progress": text, "share": 0..1 or null} or {"error": finding, "kind": class}.
What the tools print goes to standard error, which the parent keeps as the stage's log.
"""

import ctypes
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from builder import registry
from builder.errors import TandemError

PR_SET_PDEATHSIG = 1


def main() -> int:
    """Build what standard input asks for; the exit code is 0 when the folder is whole."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    job = json.load(sys.stdin)

    def say(**message: Any) -> None:
        channel.write(json.dumps(message) + "\n")

    try:
        engine = registry.engine(job["kind"])
        request = registry.engine_request(job["request"])
        engine.build(request, Path(job["destination"]), lambda text, share: say(progress=text, share=share))
    except TandemError as error:
        traceback.print_exc()
        say(error=error.finding.as_dict(), kind=type(error).__name__)
        return int(error.exit_code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
