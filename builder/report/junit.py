"""junit.xml: one test case for each gate, numbers in the failure text, so that CI shows why."""

import re
from xml.etree import ElementTree

from builder.report.model import Gate, Report

ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, escaped or not."""


def render_junit(report: Report) -> str:
    """The document as text, with its declaration."""
    failures = sum(not gate.passed for gate in report.gates)
    root = ElementTree.Element("testsuites", name="tandem", tests=str(len(report.gates)), failures=str(failures), errors="0")
    suite = ElementTree.SubElement(
        root, "testsuite", name=report.name, tests=str(len(report.gates)), failures=str(failures), errors="0", timestamp=report.created_at
    )
    for gate in report.gates:
        _case(suite, report, gate)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, report: Report, gate: Gate) -> None:
    seconds = report.durations_s.get(gate.name, 0.0)
    case = ElementTree.SubElement(suite, "testcase", classname=f"tandem.{report.name}", name=gate.name, time=f"{seconds:.3f}")
    if not gate.passed:
        kind = "not evaluated" if gate.value is None else "threshold"
        failure = ElementTree.SubElement(case, "failure", message=_legal(gate.summary), type=kind)
        failure.text = _legal(f"{gate.summary}\nvalue: {gate.value}\nthreshold: {gate.threshold}\nunit: {gate.unit}")
    else:
        ElementTree.SubElement(case, "system-out").text = _legal(gate.summary)


def _legal(text: str) -> str:
    return ILLEGAL.sub("?", text)
