"""Two analyses side by side, the differences first: for a terminal, Markdown, JSON. A is before, B is now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Annotated, TextIO

from msgspec import Meta

from memsim.counts import COST, SiteCounts
from memsim.document import Document, DocumentPart, Line, Texts, json_text, one_of
from memsim.estimated_time import EstimatedTime
from memsim.guard.comparison import ORDER, ComparedAccess, Comparison, Comparisons, Total
from memsim.guard.outcome import QuantityChange
from memsim.views.analyze.costs import cost
from memsim.views.labels import access, amount, count, file_names
from memsim.views.plain import code_cell, escape_markdown, table
from memsim.views.screen import Column, Row, Screen

TOTALS = ("ncu metric", "A", "B", "difference")
SAME = "="


def launches_of(pair: Comparison) -> Iterator[str]:
    """What was launched: once, or of both sides where it differs."""
    if pair.a.launch == pair.b.launch:
        yield f"Launch: {pair.a.launch}"
        return
    for letter, side in (("A", pair.a), ("B", pair.b)):
        yield f"Launch of {letter}: {side.launch}"


def names_of(pair: Comparison) -> dict[str, str]:
    """What each file of both sides is called."""
    return file_names(site.file for line in pair.lines for site in line.sites)


def rows_of(line: ComparedAccess, names: Mapping[str, str]) -> Iterator[list[str]]:
    """A row for each count that differs; one for an access that is equal. names: those of the files."""
    site = line.sites[-1]
    kind = line.change.kind if line.change else SAME
    places = (f"{names[one.file]}:{one.line}" if one.file else "?" for one in line.sites)
    code = (one.statement for one in line.sites)
    head = [kind, _before_and_now(places), _before_and_now(code), access(site), site.array]
    figures = line.change.figures if line.change else ()
    for figure in figures:
        yield [*head, figure.quantity, amount(figure.was), amount(figure.now), _difference(figure)]
        head = [""] * len(head)
    if not figures:
        yield [*head, *_unchanged(site)]


def changed_rows(pair: Comparison, *, short: bool = False) -> list[list[str]]:
    """(change, where, code, access, array, counts) of each access whose counts or code differ.

    short: lines without their files where each side has one.
    """
    rows, names = [], names_of(pair)
    short = short and files_of(pair) is not None
    for line in pair.lines:
        if line.change:
            (change, where, *about, _, _, _, _), *_ = rows_of(line, names)
            counts = "; ".join(map(_counts, line.change.figures))
            rows.append([change, lines_of(line) if short else where, *about, counts])
    return rows


def _counts(figure: QuantityChange) -> str:
    """`wavefronts 1,024 -> 32 (-992)`."""
    sides = [amount(side) for side in (figure.was, figure.now) if side is not None]
    difference = _difference(figure)
    return f"{figure.quantity} {' -> '.join(sides)}" + (f" ({difference})" if difference else "")


def _before_and_now(texts: Iterable[str]) -> str:
    """`12 -> 14`, or the one text that there is of both sides."""
    return " -> ".join(dict.fromkeys(texts))


def files_of(pair: Comparison) -> str | None:
    """The one file of each side; None where lines of several files are compared."""
    names = names_of(pair)
    sides = [
        {names[site.file] for line in pair.lines if (site := getattr(line, side)) is not None}
        for side in ("before", "now")
    ]
    if any(len(side) > 1 for side in sides):
        return None
    return _before_and_now(name for side in sides for name in side)


def lines_of(line: ComparedAccess) -> str:
    """`12 -> 14`."""
    return _before_and_now(str(site.line) for site in line.sites)


def _unchanged(site: SiteCounts) -> list[str]:
    """The count that says most about an access that is equal."""
    if site.unresolved is not None:
        return ["not analyzed", "?", "?", ""]
    name = COST[site.space]
    return [name, *(f"{cost(site):,}",) * 2, ""]


def total_rows(pair: Comparison) -> Iterator[list[str]]:
    """Totals; those that are 0 on both sides are left out."""
    for total in pair.totals:
        if total.a == total.b == 0:
            continue
        a, b = ("not known" if count is None else f"{count:,}" for count in (total.a, total.b))
        difference = ""
        if total.a is not None and total.b is not None and total.a != total.b:
            difference = f"{total.b - total.a:+,}"
        yield [total.metric, a, b, difference]


def _difference(figure: QuantityChange) -> str:
    if figure.was is None or figure.now is None:
        return ""
    return f"{int(figure.now - figure.was):+,}"


COLUMNS = (
    Column("change"),
    Column("where"),
    Column("code", is_code=True),
    Column("access", keep=2),
    Column("array", keep=1),
    Column("count"),
    *(Column(name, right=True) for name in ("A", "B")),
    Column("difference", right=True, keep=3),
)
STYLES = {
    "worse": "red",
    "new": "yellow",
    "vanished": "yellow",
    "improved": "green",
    "changed": "cyan",
    "unknown": "yellow",
}


def write(comparisons: Comparisons, stream: TextIO) -> None:
    """Prints the comparison on `stream`; the first line is the answer."""
    screen = Screen(stream)
    screen.say(comparisons.verdict, "bold")
    alone = len(comparisons.pairs) == 1
    for pair in comparisons.pairs:
        if not alone:
            if pair.differs:
                screen.say()
            screen.say(pair.verdict, "bold")
        if pair.differs or alone:
            _write_pair(pair, screen)


def _write_pair(pair: Comparison, screen: Screen) -> None:
    if pair.time:
        screen.say(f"Time: {pair.time}")
    for launch in launches_of(pair):
        screen.say(launch)
    screen.say()
    files = files_of(pair)
    if files is not None:
        screen.say(f"Files: {files}")
        screen.say()
    rows, names = [], names_of(pair)
    for line in pair.lines:
        style = STYLES.get(line.change.kind, "") if line.change else "dim"
        for number, (change, place, _, *rest) in enumerate(rows_of(line, names)):
            where = place if files is None else lines_of(line)
            named = ("", "") if number else (where, line.sites[-1].source)
            rows.append(Row((change, *named, *rest), style))
    screen.table((COLUMNS[0], Column("where" if files is None else "line"), *COLUMNS[2:]), rows)
    screen.say()
    metric, *values, difference = TOTALS
    numbers = (*(Column(name, right=True) for name in values), Column(difference, right=True, keep=1))
    columns = (Column(metric), *numbers)
    totals = list(total_rows(pair))
    differing = [Row(cells) for cells in totals if cells[-1]]
    if differing:
        screen.table(columns, differing)
        screen.say()
    same = len(totals) - len(differing)
    screen.say(f"{count(same, 'other total')} of ncu's {'is' if same == 1 else 'are'} equal.")


SHORT_HEADINGS = ("change", "where", "code", "access", "array", "counts")  # a row for each access
CODE = SHORT_HEADINGS.index("code")


def as_markdown(comparisons: Comparisons) -> str:
    """The text, without a newline at the end. Accesses and totals that are equal are left out."""
    parts = [f"### {escape_markdown(comparisons.verdict)}"]
    for pair in comparisons.pairs:
        if not pair.differs:
            continue
        if len(comparisons.pairs) > 1:
            parts.append(f"#### {escape_markdown(pair.verdict)}")
        if pair.time:
            parts.append(escape_markdown(f"Time: {pair.time}"))
        parts += [escape_markdown(launch) for launch in launches_of(pair)]
        rows = changed_rows(pair)
        if rows:
            cells = [
                [code_cell(text) if i == CODE else escape_markdown(text) for i, text in enumerate(row)]
                for row in rows
            ]
            parts.append(table(SHORT_HEADINGS, cells, "llllll"))
        differing = [total.metric for total in pair.totals if total.a != total.b]
        totals = [row for row in total_rows(pair) if row[0] in differing]
        if totals:
            parts.append(table(TOTALS, [map(escape_markdown, row) for row in totals], "lrrr"))
    return "\n\n".join(parts)


class SidePart(DocumentPart, frozen=True, kw_only=True):
    """A kernel, and its launch in a line."""

    name: str
    launch: str
    time: Annotated[EstimatedTime | None, Meta(description="an estimate; null: of two kernels alone")]


class QuantityPart(DocumentPart, frozen=True, kw_only=True):
    """A quantity on both sides."""

    quantity: str
    a: Fraction | None
    b: Fraction | None


class LinePart(DocumentPart, frozen=True, kw_only=True):
    """An access on both sides."""

    change: Annotated[str | None, one_of(*ORDER, None, description="null: equal")]
    reason: str
    a: SiteCounts | None
    b: SiteCounts | None
    differences: tuple[QuantityPart, ...]


class KernelPart(DocumentPart, frozen=True, kw_only=True):
    """A kernel on both sides."""

    a: SidePart
    b: SidePart
    verdict: str
    differs: bool
    lines: Annotated[tuple[LinePart, ...], Meta(description="those that differ first")]
    totals: tuple[Total, ...]


class ComparisonDocument(Document, frozen=True, kw_only=True):
    """Two kernels, revisions of a project, or analyses side by side."""

    verdict: Line
    only_a: Annotated[Texts, Meta(description="kernels that only A has")]
    only_b: Annotated[Texts, Meta(description="kernels that only B has")]
    not_compared: Annotated[Texts, Meta(description="kernels that one side or both could not analyze")]
    kernels: Annotated[tuple[KernelPart, ...], Meta(description="those that differ first")]


def as_json(comparisons: Comparisons) -> str:
    """Indented JSON."""
    document = ComparisonDocument.of(
        comparisons, not_compared=comparisons.failed, kernels=tuple(map(_kernel_part, comparisons.pairs))
    )
    return json_text(document)


def _kernel_part(pair: Comparison) -> KernelPart:
    return KernelPart.of(
        pair, a=SidePart.of(pair.a), b=SidePart.of(pair.b), lines=tuple(map(_line_part, pair.lines))
    )


def _line_part(line: ComparedAccess) -> LinePart:
    change = line.change
    figures = change.figures if change else ()
    return LinePart(
        change=change.kind if change else None,
        reason=change.reason if change else "",
        a=line.before,
        b=line.now,
        differences=tuple(QuantityPart(quantity=one.quantity, a=one.was, b=one.now) for one in figures),
    )
