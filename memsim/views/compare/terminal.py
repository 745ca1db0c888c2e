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
from memsim.guard.comparison import ComparedAccess, Comparison, Comparisons, Side
from memsim.guard.outcome import QuantityChange
from memsim.views.check.findings import amount, plain
from memsim.views.check.markdown import code, escaped
from memsim.views.labels import access, count
from memsim.views.plain import plain_console
from memsim.views.tables import UNLIMITED, Column, Row, fitted, room_of

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = 1
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
SHORT_HEADINGS = ("change", "where", "code", "access", "array", "counts")  # a row for each access
TOTALS = ("ncu metric", "A", "B", "difference")
SAME = "="
STYLES = {"worse": "red", "new": "yellow", "vanished": "yellow", "improved": "green", "changed": "cyan"}


def write(comparisons: Comparisons, stream: TextIO) -> None:
    """Prints the comparison on `stream`; the first line is the answer."""
    from rich.text import Text

    console = plain_console(stream)
    room = room_of(console)
    console.width = UNLIMITED
    console.print(Text(comparisons.verdict, style="bold"))
    for pair in comparisons.pairs:
        alone = len(comparisons.pairs) == 1
        if not alone:
            console.print(Text(f"\n{pair.verdict}" if pair.differs else pair.verdict, style="bold"))
        if pair.differs or alone:
            _write_pair(pair, console, room)


def _write_pair(pair: Comparison, console: Console, room: int) -> None:
    for launch in _launches(pair):
        console.print(launch)
    console.print()
    files = _files(pair)
    where = Column("where" if files is None else "line")
    if files is not None:
        console.print(f"Files: {files}")
        console.print()
    rows = []
    for line in pair.lines:
        style = STYLES.get(line.change.kind, "") if line.change else "dim"
        for number, (change, place, _, *rest) in enumerate(_rows(line)):
            named = ("", "") if number else (place if files is None else _lines(line), _code_now(line))
            rows.append(Row((change, *named, *rest), style))
    console.print(fitted((COLUMNS[0], where, *COLUMNS[2:]), rows, room))
    console.print()
    columns = [Column(name, right=number > 0) for number, name in enumerate(TOTALS)]
    totals = list(_total_rows(pair))
    differing = [Row(cells) for cells in totals if cells[-1]]
    if differing:
        console.print(fitted(columns, differing, room))
        console.print()
    same = len(totals) - len(differing)
    console.print(f"{count(same, 'other total')} of ncu's {'is' if same == 1 else 'are'} equal.")


def as_markdown(comparisons: Comparisons) -> str:
    """The text, without a newline at the end. Accesses and totals that are equal are left out."""
    parts = [f"### {escaped(comparisons.verdict)}"]
    for pair in comparisons.pairs:
        if not pair.differs:
            continue
        if len(comparisons.pairs) > 1:
            parts.append(f"#### {escaped(pair.verdict)}")
        parts += [escaped(launch) for launch in _launches(pair)]
        rows = changed_rows(pair)
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


def _json_line(line: ComparedAccess) -> dict[str, Any]:
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


def _rows(line: ComparedAccess) -> Iterator[list[str]]:
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


def changed_rows(pair: Comparison, *, short: bool = False) -> list[list[str]]:
    """(change, where, code, access, array, counts) of each access whose counts or code differ.

    short: lines without their files where each side has one.
    """
    rows = []
    for line in pair.lines:
        if line.change:
            change, where, *rest = _one_row(line)
            rows.append([change, _lines(line) if short and _files(pair) is not None else where, *rest])
    return rows


def _one_row(line: ComparedAccess) -> list[str]:
    """The access with all counts that differ: `wavefronts 1,024 -> 32 (-992); ways 32 -> 1 (-31)`."""
    (*head, _, _, _, _), *_ = _rows(line)
    return [*head, "; ".join(map(_counts, line.change.figures if line.change else ()))]


def _counts(figure: QuantityChange) -> str:
    sides = [amount(side) for side in (figure.was, figure.now) if side is not None]
    difference = _difference(figure)
    return f"{figure.quantity} {' -> '.join(sides)}" + (f" ({difference})" if difference else "")


def _where(line: ComparedAccess) -> str:
    """`a.cu:12 -> a.cu:14`, or the one place there is."""
    places = [
        f"{PurePath(site.file).name}:{site.line}" if site.file else "?"
        for site in (line.pair.before, line.pair.now)
        if site is not None
    ]
    return " -> ".join(dict.fromkeys(places))


def _files(pair: Comparison) -> str | None:
    """The one file of each side; None where lines of several files are compared."""
    sides = [
        {PurePath(site.file).name for line in pair.lines if (site := getattr(line.pair, side)) is not None}
        for side in ("before", "now")
    ]
    if any(len(side) > 1 for side in sides):
        return None
    return " -> ".join(dict.fromkeys(name for side in sides for name in side))


def _lines(line: ComparedAccess) -> str:
    """`12 -> 14`."""
    sites = (line.pair.before, line.pair.now)
    return " -> ".join(dict.fromkeys(str(site.line) for site in sites if site is not None))


def _code_now(line: ComparedAccess) -> str:
    site = line.pair.now or line.pair.before
    return site.source if site is not None else ""


def _code(line: ComparedAccess) -> str:
    codes = [site.source for site in (line.pair.before, line.pair.now) if site is not None]
    return " -> ".join(dict.fromkeys(" ".join(text.split()) for text in codes))


def _unchanged(site: SiteCounts) -> list[str]:
    """The count that says most about an access that is equal."""
    if site.unresolved is not None:
        return ["not analyzed", "?", "?", ""]
    name = {"shared": "wavefronts", "constant": "requests"}.get(site.space, "sectors")
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


def _difference(figure: QuantityChange) -> str:
    if figure.was is None or figure.now is None:
        return ""
    return f"{int(figure.now - figure.was):+,}"
