"""Findings of `memsim check` as JUnit XML: a test case for each budget of each kernel.

A broken budget is a failure; what could not be judged is an error.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from memsim.guard.outcome import Checked, Outcome, Problem
from memsim.views.check.findings import Locate, place, sentence
from memsim.views.plain import plain

# Characters that XML 1.0 has no way to write.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(outcome: Outcome, locate: Locate) -> str:
    """The document, without a newline at the end."""
    failures = sum(checked.broken for checked in outcome.checked)
    counts = {
        "tests": len(outcome.checked) + len(outcome.problems),
        "failures": failures,
        "errors": len(outcome.problems),
    }
    attributes = {"name": "memsim check", **{name: str(count) for name, count in counts.items()}}
    root = ElementTree.Element("testsuites", attributes)
    suite = ElementTree.SubElement(root, "testsuite", attributes | {"skipped": "0"})
    for checked in outcome.checked:
        _add_check(suite, checked, locate)
    for problem in outcome.problems:
        _add_problem(suite, problem)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _add_check(suite: ElementTree.Element, checked: Checked, locate: Locate) -> None:
    case = _add_case(suite, checked.kernel, checked.budget)
    breaking = [finding for finding in checked.findings if finding.breaks]
    if not breaking:
        return
    lines = [f"{place(finding, locate)}: {sentence(finding)}" for finding in breaking]
    failure = ElementTree.SubElement(case, "failure", message=_clean(lines[0]), type=breaking[0].kind)
    failure.text = _clean("\n".join(lines))


def _add_problem(suite: ElementTree.Element, problem: Problem) -> None:
    case = _add_case(suite, problem.kernel or "memsim", "is judged")
    error = ElementTree.SubElement(case, "error", message=_clean(problem.error.message), type="problem")
    error.text = _clean(str(problem.error))


def _add_case(suite: ElementTree.Element, kernel: str, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=_clean(kernel), name=_clean(name), time="0")


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", plain(text))
