"""Two analyses side by side: what `memsim compare` prints, the differences first.

In: `Comparisons`. Out: text on a stream, Markdown, or JSON. A is before, B is now.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TextIO

from memsim.analysis import SiteCounts
from memsim.guard.compare import Comparison, Comparisons, Line, Side
from memsim.guard.outcome import Figure
from memsim.report.findings import amount, plain
from memsim.report.labels import access
from memsim.report.markdown import code, escaped
from memsim.report.plain import plain_console

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = 1
HEADINGS = ("change", "where", "code", "access", "array", "count", "A", "B", "difference")
SHORT_HEADINGS = ("change", "where", "code", "access", "array", "counts")  # a row for each access
TEXTS = 6  # so many of them are texts, the rest numbers
TOTALS = ("ncu metric", "A", "B", "difference")
SAME = "="
STYLES = {"worse": "red", "new": "yellow", "vanished": "yellow", "improved": "green", "changed": "cyan"}
UNLIMITED = 1_000_000  # a console this wide never cuts


def write(comparisons: Comparisons, stream: TextIO) -> None:
    """Prints the comparison on `stream`; the first line is the answer."""
    from rich.text import Text

    console = plain_console(stream)
    console.width = UNLIMITED
    console.print(Text(comparisons.verdict, style="bold"))
    for pair in comparisons.pairs:
        alone = len(comparisons.pairs) == 1
        if not alone:
            console.print(Text(f"\n{pair.verdict}" if pair.differs else pair.verdict, style="bold"))
        if pair.differs or alone:
            _write_pair(pair, console)


def _write_pair(pair: Comparison, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    for launch in _launches(pair):
        console.print(launch)
    console.print()
    lines = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, name in enumerate(HEADINGS):
        lines.add_column(name, justify="left" if number < TEXTS else "right")
    for line in pair.lines:
        for row in _rows(line):
            style = STYLES.get(line.change.kind, "") if line.change else "dim"
            lines.add_row(*(Text(cell) for cell in row), style=style)
    console.print(lines)
    console.print()
    totals = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, name in enumerate(TOTALS):
        totals.add_column(name, justify="right" if number else "left")
    for cells in _total_rows(pair):
        totals.add_row(*cells)
    console.print(totals)


def as_markdown(comparisons: Comparisons) -> str:
    """The text, without a newline at the end. Accesses and totals that are equal are left out."""
    parts = [f"### {escaped(comparisons.verdict)}"]
    for pair in comparisons.pairs:
        if not pair.differs:
            continue
        if len(comparisons.pairs) > 1:
            parts.append(f"#### {escaped(pair.verdict)}")
        parts += [escaped(launch) for launch in _launches(pair)]
        rows = [_one_row(line) for line in pair.lines if line.change]
        if rows:
            parts.append(_markdown_table(SHORT_HEADINGS, len(SHORT_HEADINGS), rows, code_column=2))
        differing = [total.metric for total in pair.totals if total.before != total.now]
        totals = [row for row in _total_rows(pair) if row[0] in differing]
        if totals:
            parts.append(_markdown_table(TOTALS, 1, totals))
    return "\n\n".join(parts)


def _markdown_table(
    headings: Sequence[str], texts: int, rows: Sequence[Sequence[str]], code_column: int | None = None
) -> str:
    rule = ["---" if number < texts else "---:" for number in range(len(headings))]
    cells = [
        [code(cell) if number == code_column else escaped(cell) for number, cell in enumerate(row)]
        for row in rows
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in (headings, rule, *cells))


def as_json(comparisons: Comparisons) -> str:
    """Indented JSON, as `comparison.schema.json` beside this file describes it."""
    document = {
        "schema": SCHEMA,
        "verdict": comparisons.verdict,
        "only_a": list(comparisons.only_a),
        "only_b": list(comparisons.only_b),
        "kernels": [_json_pair(pair) for pair in comparisons.pairs],
    }
    return json.dumps(document, indent=2)


def _json_pair(pair: Comparison) -> dict[str, Any]:
    return {
        "a": _json_side(pair.a),
        "b": _json_side(pair.b),
        "verdict": pair.verdict,
        "differs": pair.differs,
        "lines": [_json_line(line) for line in pair.lines],
        "totals": [{"metric": total.metric, "a": total.before, "b": total.now} for total in pair.totals],
    }


def _json_side(side: Side) -> dict[str, str]:
    return {"name": side.name, "launch": side.launch}


def _json_line(line: Line) -> dict[str, Any]:
    before, now, change = line.pair.before, line.pair.now, line.change
    return {
        "change": change.kind if change else None,
        "reason": change.reason if change else "",
        "a": None if before is None else dataclasses.asdict(before),
        "b": None if now is None else dataclasses.asdict(now),
        "differences": [
            {"quantity": figure.quantity, "a": plain(figure.was), "b": plain(figure.now)}
            for figure in (change.figures if change else ())
        ],
    }


# --- rows of text


def _launches(pair: Comparison) -> Iterator[str]:
    """What was launched: once, or of both sides where it differs."""
    if pair.a.launch == pair.b.launch:
        yield f"Launch: {pair.a.launch}"
        return
    for letter, side in (("A", pair.a), ("B", pair.b)):
        yield f"Launch of {letter}: {side.launch}"


def _rows(line: Line) -> Iterator[list[str]]:
    """A row for each count that differs; one for an access that is equal."""
    site = line.pair.now or line.pair.before
    if site is None:
        return
    kind = line.change.kind if line.change else SAME
    head = [kind, _where(line), _code(line), access(site), site.array]
    figures = line.change.figures if line.change else ()
    for figure in figures:
        yield [*head, figure.quantity, amount(figure.was), amount(figure.now), _difference(figure)]
        head = [""] * len(head)
    if not figures:
        yield [*head, *_unchanged(site)]


def _one_row(line: Line) -> list[str]:
    """The access with all counts that differ: `wavefronts 1,024 -> 32 (-992); ways 32 -> 1 (-31)`."""
    (*head, _, _, _, _), *_ = _rows(line)
    return [*head, "; ".join(map(_counts, line.change.figures if line.change else ()))]


def _counts(figure: Figure) -> str:
    sides = [amount(side) for side in (figure.was, figure.now) if side is not None]
    difference = _difference(figure)
    return f"{figure.quantity} {' -> '.join(sides)}" + (f" ({difference})" if difference else "")


def _where(line: Line) -> str:
    """`a.cu:12 -> a.cu:14`, or the one place there is."""
    places = [
        f"{PurePath(site.file).name}:{site.line}" if site.file else "?"
        for site in (line.pair.before, line.pair.now)
        if site is not None
    ]
    return " -> ".join(dict.fromkeys(places))


def _code(line: Line) -> str:
    codes = [site.source for site in (line.pair.before, line.pair.now) if site is not None]
    return " -> ".join(dict.fromkeys(" ".join(text.split()) for text in codes))


def _unchanged(site: SiteCounts) -> list[str]:
    """The count that says most about an access that is equal."""
    if site.unresolved is not None:
        return ["not analyzed", "?", "?", ""]
    name = "wavefronts" if site.space == "shared" else "sectors"
    count = f"{getattr(site, name) or 0:,}"
    return [name, count, count, ""]


def _total_rows(pair: Comparison) -> Iterator[list[str]]:
    """Totals; those that are 0 on both sides are left out."""
    for total in pair.totals:
        if total.before == total.now == 0:
            continue
        a, b = ("not known" if count is None else f"{count:,}" for count in (total.before, total.now))
        difference = ""
        if total.before is not None and total.now is not None and total.before != total.now:
            difference = f"{total.now - total.before:+,}"
        yield [total.metric, a, b, difference]


def _difference(figure: Figure) -> str:
    if figure.was is None or figure.now is None:
        return ""
    return f"{int(figure.now - figure.was):+,}"
