"""Write a report's files, each complete or not at all."""

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from builder.report.junit import render_junit
from builder.report.markdown import render_markdown
from builder.report.model import Report


@dataclass(frozen=True)
class ReportFiles:
    """Where a report was written."""

    json: Path
    markdown: Path
    junit: Path


def write_reports(report: Report, folder: Path) -> ReportFiles:
    """report.json, report.md and junit.xml in `folder`, which is made when absent. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    files = ReportFiles(folder / "report.json", folder / "report.md", folder / "junit.xml")
    write_atomic(files.markdown, render_markdown(report))
    write_atomic(files.junit, render_junit(report))
    write_atomic(files.json, json.dumps(report.as_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    return files


def write_atomic(path: Path, text: str) -> None:
    """Beside first, then moved into place: a reader sees the old file or the new one."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
