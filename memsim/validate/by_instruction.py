"""A comparison by machine instruction, as text and as records for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, TextIO

from msgspec import Meta

from memsim.document import Document, DocumentPart, JsonObject, Line, Texts, plain
from memsim.launch import Natural
from memsim.validate.compare_instructions import (
    DIFFERENT,
    DIFFERS,
    EQUAL,
    EXACT,
    NOISE,
    UNMODELLED,
    VERDICTS,
    CodeComparison,
    InstructionRow,
    MetricComparison,
    expected_text,
)
from memsim.views.screen import Column, Row, Screen

NAMED = 3  # instructions and counters that the first line names
STYLES = {EXACT: "", NOISE: "cyan", UNMODELLED: "dim", DIFFERENT: "red"}
COLUMNS = (
    Column("predicted", right=True),
    Column("measured", right=True),
    Column("difference", right=True, keep=1),
    Column("arbitration", right=True, keep=2),
    Column("verdict"),
)


@dataclass(frozen=True, slots=True)
class ComparedKernel:
    """What was compared. title: kernel and size. where: the GPU or the report. notes: lines for the end."""

    title: str
    where: str
    notes: tuple[str, ...] = ()


def headline(subject: ComparedKernel, comparison: CodeComparison) -> str:
    """The answer in a line: the verdict, and how many figures of which kind."""
    answer = comparison.verdict
    if answer == EQUAL:
        answer = f"{answer} in {_parts(comparison)}"
    names = list(comparison.differences)
    if names:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        answer = f"{answer}: {'; '.join(names[:NAMED])}{more}"
    return f"{subject.title} on {subject.where}: {answer} ({_counts(comparison.figures)})"


def _counts(figures: Iterable[MetricComparison]) -> str:
    """How many figures of which verdict."""
    count = Counter(figure.verdict for figure in figures)
    return ", ".join(f"{count[verdict]:,} {verdict}" for verdict in VERDICTS if count[verdict])


def _parts(comparison: CodeComparison) -> str:
    parts = []
    if comparison.totals:
        parts.append("every counter")
    if comparison.rows:
        parts.append(f"all {len(comparison.rows):,} memory instructions")
    return " and ".join(parts)


def is_as_predicted(comparison: CodeComparison) -> bool:
    """Whether nothing differs that has to be equal."""
    return comparison.verdict != DIFFERS


def summary(comparisons: Sequence[CodeComparison]) -> str:
    """All launches in a line: how many figures of which kind."""
    counts = _counts(figure for comparison in comparisons for figure in comparison.figures)
    equal = sum(map(is_as_predicted, comparisons))
    return f"{equal} of {len(comparisons)} launches as predicted, by instruction: {counts}"


def write(
    subject: ComparedKernel, comparison: CodeComparison, stream: TextIO, everything: bool = False
) -> None:
    """Prints the counters, and the instructions that differ or have no rule; `everything`: all of them."""
    screen = Screen(stream)
    screen.say(headline(subject, comparison), "bold")
    if comparison.totals:
        screen.say()
        screen.table((Column("ncu metric"), *COLUMNS), total_rows(comparison.totals))
    worth_a_look = {DIFFERENT, UNMODELLED}
    shown = [
        row
        for row in comparison.rows
        if everything or not worth_a_look.isdisjoint(figure.verdict for figure in row.figures)
    ]
    if shown:
        screen.say()
        names = Column("instruction"), Column("figure of the Source page")
        screen.table((*names, *COLUMNS), _instruction_rows(shown, everything))
    screen.say()
    if len(shown) < len(comparison.rows):
        others = "the others" if shown else "the memory instructions"
        screen.say(f"Equal: {others} ({len(comparison.rows) - len(shown):,}); --instructions shows them all.")
    if comparison.uncertain:
        screen.say(f"Not certain: {comparison.uncertain}")
    for reason in comparison.reasons:
        screen.say(f"Not predicted: {reason}")
    for note in subject.notes:
        screen.say(note)


class FigurePart(DocumentPart, frozen=True, kw_only=True):
    """A value, predicted and measured."""

    metric: Annotated[str, Meta(description="ncu's name")]
    predicted: int | None
    measured: int | float | None
    arbitration: Annotated[int, Meta(description="of what was measured: what warps cost each other")]
    unreliable: Annotated[bool, Meta(description="the counter itself is known to be wrong here")]
    least: Annotated[int | None, Meta(description="if only limits are predicted; else null")]
    most: Annotated[int | None, Meta(description="null: nothing limits it")]
    verdict: str


class ComparedInstruction(DocumentPart, frozen=True, kw_only=True):
    """A machine instruction with its figures."""

    address: Annotated[Natural, Meta(description="its first byte, from the kernel's")]
    sass: str
    unresolved: Annotated[str | None, Meta(description="why it is not predicted")]
    figures: tuple[FigurePart, ...]


class ValidationDocument(Document, frozen=True, kw_only=True):
    """A launch as predicted beside what a GPU counted."""

    form: Annotated[str, Meta(description="machine code")] = "machine code"
    title: Annotated[str, Meta(description="the kernel and its size")]
    where: Annotated[str, Meta(description="the GPU")]
    verdict: Line
    passed: Annotated[bool, Meta(description="there is no unexplained difference")]
    totals: Annotated[tuple[FigurePart, ...], Meta(description="counters of the launch")]
    instructions: tuple[ComparedInstruction, ...]
    uncertain: Annotated[str, Meta(description="why predictions are not certain; empty: all are")]
    notes: Texts


def to_dict(subject: ComparedKernel, comparison: CodeComparison) -> JsonObject:
    """The same as plain values."""
    document = ValidationDocument.of(
        subject,
        verdict=headline(subject, comparison),
        passed=is_as_predicted(comparison),
        totals=tuple(map(FigurePart.of, comparison.totals)),
        instructions=tuple(
            ComparedInstruction.of(row, figures=tuple(map(FigurePart.of, row.figures)))
            for row in comparison.rows
        ),
        uncertain=comparison.uncertain,
    )
    return plain(document)


def _instruction_rows(rows: Sequence[InstructionRow], everything: bool) -> list[Row]:
    """A row for each figure of each instruction; the instruction is named once."""
    made = []
    for row in rows:
        name = row.where
        for figure in row.figures:
            if everything or row.differs or figure.verdict == UNMODELLED:
                made.append(figure_row((name, figure.metric), figure))
                name = ""
    return made


def total_rows(totals: Sequence[MetricComparison]) -> list[Row]:
    """A row for each counter of the launch; those that are 0 share one."""
    zeros = [figure for figure in totals if figure.verdict == EXACT and not figure.measured]
    rows = [figure_row((figure.metric,), figure) for figure in totals if figure not in zeros]
    if zeros:
        rows.append(figure_row((f"the others ({len(zeros)})",), MetricComparison("", 0, 0)))
    return rows


def figure_row(names: tuple[str, ...], figure: MetricComparison) -> Row:
    """A row whose first cells are `names`, and the others the `COLUMNS` of a figure."""
    known = figure.predicted is not None and figure.measured is not None
    difference = (figure.measured or 0) - (figure.predicted or 0) if known else None
    numbers = (figure.measured, difference or None, figure.arbitration or None)
    shown = ("" if number is None else f"{number:,}" for number in numbers)
    return Row((*names, expected_text(figure), *shown, figure.verdict), STYLES.get(figure.verdict, "yellow"))
