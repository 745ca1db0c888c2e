"""What `memsim check` found, in every format, with texts that want to break out of it."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memsim
from docs.schemas import schema_of
from memsim.analysis import SiteCounts
from memsim.errors import MemsimError
from memsim.guard.outcome import HARMLESS, Checked, Finding, Outcome, Problem, QuantityChange
from memsim.views.check import findings
from memsim.views.check.check_formats import FORMATS, CheckDocument, github, junit, markdown, sarif, to_json
from memsim.views.check.findings import TITLES
from memsim.views.labels import amount
from tests.guard.conftest import Folder
from tests.guard.test_select import SITE
from tests.schema import validate

CHECK_SCHEMA: dict[str, Any] = schema_of(CheckDocument, "check", "memsim check")
SARIF_SCHEMA: dict[str, Any] = json.loads((Path(__file__).parent / "sarif.schema.json").read_text("utf-8"))

NASTY = "a%b,c:d|e`f*g_<b>&amp;]]>\r\nsecond\x00\x1b[31m\ud7ffé\"'\\"
BROKEN = Finding(
    "broken",
    "k",
    "ways <= 1",
    SITE,
    (QuantityChange("ways", Fraction(1), Fraction(2), Fraction(1)),),
    "",
    "lanes 0, 16 of warp 0, block (0,0,0) meet in bank 0: 2 different words",
)
IMPROVED = dataclasses.replace(BROKEN, kind="improved", lanes="", reason="better")
VANISHED = dataclasses.replace(
    BROKEN, kind="vanished", lanes="", site=dataclasses.replace(SITE, file="", line=0, column=0)
)
PROBLEM = Problem(
    "lost", MemsimError("does not compile", file="src/lost.cu", line=3, column=2, hint="mend it")
)


def locate(kernel: str, file: str) -> str:
    return file or f"{kernel}.cu"


def outcome(*findings: Finding, problems: tuple[Problem, ...] = ()) -> Outcome:
    return Outcome(("k",), (Checked("k", "ways <= 1", 3, findings),), problems)


def as_sarif(of: Outcome) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(sarif(of, locate))
    validate(document, SARIF_SCHEMA)
    return document


@st.composite
def outcomes(draw: st.DrawFn) -> Outcome:
    text = st.text(max_size=12) | st.just(NASTY)
    number = st.none() | st.fractions(0, 10**9, max_denominator=7)
    figure = st.builds(QuantityChange, st.just("ways"), number, number, number, percent=st.booleans())

    def finding() -> Finding:
        site = SiteCounts(
            file=draw(st.sampled_from(["", "a b/ü#%.cu", "/abs/x.cu"])),
            line=draw(st.integers(0, 9)),
            column=draw(st.integers(0, 9)),
            source=draw(text),
            op="load",
            space=draw(st.sampled_from(["shared", "global"])),
            width=draw(st.sampled_from([0, 4, 16])),
            array=draw(text),
            instructions=1,
        )
        figures = draw(st.lists(figure, max_size=3))
        kind = draw(st.sampled_from(sorted(TITLES)))
        return Finding(kind, "k", "ways <= 1", site, tuple(figures), draw(text), draw(text))

    line = draw(st.none() | st.integers(1, 9))
    error = MemsimError(draw(text), file=draw(st.none() | text), line=line, hint=draw(text))
    problems = (Problem(draw(text), error),) if draw(st.booleans()) else ()
    return outcome(*(finding() for _ in range(draw(st.integers(0, 4)))), problems=problems)


# --- terminal


def printed(of: Outcome) -> str:
    from io import StringIO

    stream = StringIO()
    findings.write_outcome(of, locate, stream)
    return stream.getvalue()


def test_the_terminal_says_everything_and_the_verdict_last() -> None:
    lines = printed(outcome(IMPROVED, BROKEN, problems=(PROBLEM,))).splitlines()
    assert lines[0] == "error: lost: src/lost.cu:3:2: does not compile"
    assert lines[1] == "hint: mend it"
    assert "k: budget broken: ways <= 1" in lines
    row = next(line for line in lines if "src/tile.cu:7 " in line)
    assert row.split("  ")[-1].strip() == "" or "<= 1" in row
    for text in ("s_a[k][m] = a.x;", "shared store 4 B", "s_a", "ways", "1", "2", "<= 1"):
        assert text in row
    assert any("meet in bank 0" in line for line in lines)
    assert lines[-1].startswith("FAILED: 1 of 1 check failed, in k; 1 problem")


@given(of=outcomes())
@settings(max_examples=25)
def test_the_last_line_is_the_verdict(of: Outcome) -> None:
    assert printed(of).rstrip("\n").split("\n")[-1] == of.verdict
    assert github(of, locate).split("\n")[-1] == of.verdict


def test_numbers_are_exact_or_say_that_they_are_not() -> None:
    assert amount(Fraction(65536)) == "65,536"
    assert amount(Fraction(9, 2)) == "4.5"
    assert amount(Fraction(1, 3)) == "~0.33"
    assert amount(Fraction(4) + Fraction(1, 10**6)) == "~4"
    assert amount(Fraction(25, 2), percent=True) == "12.5 %"
    assert amount(None) == "-"


# --- json


@given(of=outcomes())
@settings(max_examples=25)
def test_json_fits_its_schema(of: Outcome) -> None:
    document = json.loads(to_json(of, locate))
    validate(document, CHECK_SCHEMA)
    assert document["exit_code"] == of.exit_code
    assert [f["kind"] for f in document["checks"][0]["findings"]] == [f.kind for f in of.checked[0].findings]


def test_json_has_was_is_and_limit() -> None:
    document = json.loads(to_json(outcome(BROKEN, problems=(PROBLEM,)), locate))
    (finding,) = document["checks"][0]["findings"]
    assert (finding["file"], finding["line"], finding["column"]) == ("src/tile.cu", 7, 3)
    assert finding["figures"] == [
        {"quantity": "ways", "was": 1, "is": 2, "limit": 1, "relation": "<=", "percent": False}
    ]
    assert document["problems"][0]["message"] == "does not compile"


# --- github


def test_an_annotation_on_the_line() -> None:
    first, *_ = github(outcome(BROKEN), locate).splitlines()
    place, _, said = first.removeprefix("::").partition("::")
    assert place == "error file=src/tile.cu,line=7,col=3,title=memsim%3A budget broken"
    assert said.startswith("k: ") and ": 2 ways instead of 1, because " in said and "meet in bank 0" in said
    assert said.count(".") == 1 and said.endswith(".") and ";" not in said  # one sentence
    notice, *_ = github(outcome(IMPROVED), locate).splitlines()
    assert notice.startswith("::notice file=src/tile.cu,line=7")
    vanished, *_ = github(outcome(VANISHED), locate).splitlines()
    assert vanished.startswith("::error file=k.cu,title=")
    problem, *_ = github(outcome(problems=(PROBLEM,)), locate).splitlines()
    assert problem == (
        "::error file=src/lost.cu,line=3,col=2,title=memsim%3A not judged"
        "::lost: does not compile%0Ahint: mend it"
    )


@given(of=outcomes())
@settings(max_examples=25)
def test_an_annotation_is_one_line(of: Outcome) -> None:
    *commands, last = github(of, locate).split("\n")
    assert last == of.verdict
    assert len(commands) == len(of.findings) + len(of.problems)
    for command in commands:
        match = re.fullmatch(r"::(error|notice) ([^:]*)::(.*)", command, re.DOTALL)
        assert match is not None
        assert "\r" not in command
        names = [part.partition("=")[0] for part in match[2].split(",")]
        assert set(names) <= {"file", "line", "col", "title"}


# --- sarif


def test_sarif_points_at_the_line() -> None:
    (run,) = as_sarif(outcome(BROKEN, IMPROVED, VANISHED))["runs"]
    assert run["tool"]["driver"]["version"] == memsim.__version__
    broken, vanished, improved = run["results"]
    assert broken["level"] == "error"
    assert broken["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "src/tile.cu", "uriBaseId": "%SRCROOT%"},
                "region": {"startLine": 7, "startColumn": 3, "snippet": {"text": "s_a[k][m] = a.x;"}},
            }
        }
    ]
    assert vanished["locations"][0]["physicalLocation"]["region"] == {"startLine": 1}
    assert improved["level"] == "note"
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]


def test_sarif_keeps_a_result_that_moved() -> None:
    def fingerprint(**fields: Any) -> str:
        moved = dataclasses.replace(BROKEN, site=dataclasses.replace(SITE, **fields))
        (result,) = as_sarif(outcome(moved))["runs"][0]["results"]
        return str(result["partialFingerprints"]["memsim/v1"])

    assert fingerprint(line=99) == fingerprint()
    assert fingerprint(source="other") != fingerprint()


def test_sarif_says_what_could_not_be_judged() -> None:
    (run,) = as_sarif(outcome(problems=(PROBLEM,)))["runs"]
    (invocation,) = run["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 2)
    assert "does not compile" in invocation["toolExecutionNotifications"][0]["message"]["text"]
    assert as_sarif(outcome(BROKEN))["runs"][0]["invocations"][0]["executionSuccessful"] is True


@given(of=outcomes())
@settings(max_examples=25)
def test_sarif_fits_its_schema(of: Outcome) -> None:
    (run,) = as_sarif(of)["runs"]
    for finding, result in zip(of.findings, run["results"], strict=True):
        location = result["locations"][0]["physicalLocation"]["artifactLocation"]
        path = locate(finding.kernel, finding.site.file)
        if path.startswith("/"):
            assert location == {"uri": f"file://{path}"}
        else:
            assert (unquote(location["uri"]), location["uriBaseId"]) == (path, "%SRCROOT%")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d.update(version="2.0"),
        lambda d: d["runs"][0]["results"][0].update(rule="x"),
        lambda d: d["runs"][0]["results"][0].pop("message"),
        lambda d: d["runs"][0]["results"][0].update(level="fatal"),
        lambda d: d["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"].update(
            startLine=0
        ),
        lambda d: d["runs"][0].pop("tool"),
    ],
)
def test_the_schema_refuses_other_documents(spoil: Callable[[dict[str, Any]], object]) -> None:
    document = as_sarif(outcome(BROKEN))
    spoil(document)
    with pytest.raises(jsonschema.ValidationError):
        validate(document, SARIF_SCHEMA)


# --- junit


def test_junit_has_a_case_for_each_check() -> None:
    root = ElementTree.fromstring(junit(outcome(BROKEN, problems=(PROBLEM,)), locate))
    assert root.tag == "testsuites"
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "1")
    failed, lost = suite
    assert (failed.get("classname"), failed.get("name")) == ("k", "ways <= 1")
    failure = failed.find("failure")
    assert failure is not None
    assert (failure.text or "").startswith("src/tile.cu:7: k: budget broken")
    assert lost.find("error") is not None
    (passed,) = ElementTree.fromstring(junit(outcome(IMPROVED), locate))[0]
    assert list(passed) == []


@given(of=outcomes())
@settings(max_examples=25)
def test_junit_is_well_formed(of: Outcome) -> None:
    (suite,) = ElementTree.fromstring(junit(of, locate))
    assert len(suite) == len(of.checked) + len(of.problems)
    assert len(suite.findall("testcase/failure")) == sum(checked.broken for checked in of.checked)


# --- markdown


def rows_of(text: str) -> list[list[str]]:
    """The cells of each row of all tables, split where Markdown splits them."""
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.split("\n") if line.startswith("| ")]


def test_markdown_is_a_table() -> None:
    text = markdown(outcome(BROKEN, IMPROVED, problems=(PROBLEM,)), locate)
    assert text.startswith("### ❌ memsim: FAILED: 1 of 1 check failed, in k")
    rows = [[cell.strip() for cell in row] for row in rows_of(text)]
    assert rows[1][1] == "src/tile.cu:7"
    assert rows[1][2] == "`s_a[k][m] = a.x;`"
    assert rows[1][-2:] == ["budget broken: ways \\<= 1", "ways 1 -\\> 2"]
    assert "- `src/tile.cu:7`: lanes 0, 16 of warp 0" in text
    assert "does not compile" in text
    assert "<details>" in text
    assert markdown(outcome(), locate).startswith("### ✅ memsim: OK")


@given(of=outcomes())
@settings(max_examples=25)
def test_markdown_keeps_its_cells(of: Outcome) -> None:
    for row in rows_of(markdown(of, locate)):
        assert len(row) == 6


def test_markdown_is_bounded() -> None:
    long = dataclasses.replace(BROKEN, site=dataclasses.replace(SITE, source="x" * 5000), reason="y" * 50)
    problem = Problem("k", MemsimError("m" * 5000))
    many = [dataclasses.replace(long, site=dataclasses.replace(long.site, line=n)) for n in range(5000)]
    text = markdown(outcome(*many, problems=(problem,) * 30), locate)
    assert len(text) < 65_536
    assert "rows more" in text


def test_markdown_tells_of_lanes_once_for_each_access() -> None:
    again = dataclasses.replace(BROKEN, budget="conflicts == 0")
    other = dataclasses.replace(BROKEN, site=dataclasses.replace(SITE, line=9))
    text = markdown(outcome(BROKEN, again, other), locate)
    lanes = "lanes 0, 16 of warp 0, block (0,0,0) meet in bank 0: 2 different words"
    assert [line for line in text.splitlines() if line.startswith("- ")] == [
        f"- `src/tile.cu:7`: {lanes}",
        f"- `src/tile.cu:9`: {lanes}",
    ]
    assert len(rows_of(text)) == 1 + 2  # the head, and a row for each access, whatever budgets it breaks
    assert "budget broken: ways \\<= 1; budget broken: conflicts == 0" in text


@pytest.mark.slow
def test_the_summary_of_a_job(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write(
        "memsim.toml", "budgets = ['ways <= 1']\n[[targets]]\nkernel = 'transpose_*'\nsize = '64,64'\n"
    )
    summary = folder.write("summary.md", "before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    done = folder.run("check", "--format", "github")
    assert done.code == 1
    assert done.out.startswith("::error file=")
    assert "transpose_naive.cu" in done.out.splitlines()[0]
    assert folder.read("summary.md").startswith("before\n### ❌ memsim: FAILED")
    assert folder.run("check", "--format", "markdown").out in folder.read("summary.md")


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_knows_a_finding_and_its_absence(form: str) -> None:
    render = FORMATS[form]
    told = "of s_a:" if form == "github" else "s_a[k][m] = a.x;"  # an annotation stands at its line
    assert told in render(outcome(BROKEN), locate)
    assert "s_a[k][m] = a.x;" not in render(outcome(), locate)
    assert all(TITLES[kind] for kind in HARMLESS)
