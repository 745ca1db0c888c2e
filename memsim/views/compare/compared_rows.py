"""The rows of a comparison, the differences first: the same for the terminal, Markdown and the page.

A is before, B is now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memsim.analysis import SiteCounts
from memsim.guard.comparison import ComparedAccess, Comparison
from memsim.guard.outcome import QuantityChange
from memsim.views.labels import access, amount, file_names

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
    return file_names(site.file for line in pair.lines for site in _sites(line))


def rows_of(line: ComparedAccess, names: Mapping[str, str]) -> Iterator[list[str]]:
    """A row for each count that differs; one for an access that is equal. names: those of the files."""
    site = line.pair.now or line.pair.before
    if site is None:
        return
    kind = line.change.kind if line.change else SAME
    head = [kind, _where(line, names), _code(line), access(site), site.array]
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
            change, where, *rest = _one_row(line, names)
            rows.append([change, lines_of(line) if short else where, *rest])
    return rows


def _one_row(line: ComparedAccess, names: Mapping[str, str]) -> list[str]:
    """The access with all counts that differ: `wavefronts 1,024 -> 32 (-992); ways 32 -> 1 (-31)`."""
    (*head, _, _, _, _), *_ = rows_of(line, names)
    return [*head, "; ".join(map(_counts, line.change.figures if line.change else ()))]


def _counts(figure: QuantityChange) -> str:
    sides = [amount(side) for side in (figure.was, figure.now) if side is not None]
    difference = _difference(figure)
    return f"{figure.quantity} {' -> '.join(sides)}" + (f" ({difference})" if difference else "")


def _sites(line: ComparedAccess) -> list[SiteCounts]:
    """The access on the sides that have it."""
    return [site for site in (line.pair.before, line.pair.now) if site is not None]


def _where(line: ComparedAccess, names: Mapping[str, str]) -> str:
    """`a.cu:12 -> a.cu:14`, or the one place there is."""
    places = [f"{names[site.file]}:{site.line}" if site.file else "?" for site in _sites(line)]
    return " -> ".join(dict.fromkeys(places))


def files_of(pair: Comparison) -> str | None:
    """The one file of each side; None where lines of several files are compared."""
    names = names_of(pair)
    sides = [
        {names[site.file] for line in pair.lines if (site := getattr(line.pair, side)) is not None}
        for side in ("before", "now")
    ]
    if any(len(side) > 1 for side in sides):
        return None
    return " -> ".join(dict.fromkeys(name for side in sides for name in side))


def lines_of(line: ComparedAccess) -> str:
    """`12 -> 14`."""
    return " -> ".join(dict.fromkeys(str(site.line) for site in _sites(line)))


def code_now(line: ComparedAccess) -> str:
    site = line.pair.now or line.pair.before
    return site.source if site is not None else ""


def _code(line: ComparedAccess) -> str:
    return " -> ".join(dict.fromkeys(site.statement for site in _sites(line)))


def _unchanged(site: SiteCounts) -> list[str]:
    """The count that says most about an access that is equal."""
    if site.unresolved is not None:
        return ["not analyzed", "?", "?", ""]
    name = {"shared": "wavefronts", "constant": "requests"}.get(site.space, "sectors")
    count = f"{getattr(site, name) or 0:,}"
    return [name, count, count, ""]


def total_rows(pair: Comparison) -> Iterator[list[str]]:
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
