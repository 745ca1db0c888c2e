"""The analysis for people: the answer, a table, totals, the launch, and what is left out.

In: an `Analysis` and a stream. Out: text; on a terminal with colours, and fitted to its width.
Numbers are never cut: where there is no room, the code column shrinks.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import TYPE_CHECKING, TextIO

from memsim.analysis import Analysis, InstructionCounts, SiteCounts
from memsim.report.labels import access, dim3, each, file_names, lanes_of_warp_0, number
from memsim.report.plain import plain_console

if TYPE_CHECKING:
    from rich.table import Table

TEXT_COLUMNS = ("where", "code", "access", "array")
NUMBER_COLUMNS = ("requests", "wavefronts", "ideal", "ways", "sectors/req", "ideal/req")
CODE = TEXT_COLUMNS.index("code")
GAP = 2
NARROWEST_CODE = 8
UNLIMITED = 1_000_000  # a console this wide never cuts

LEFT_OUT = ("arbitration between warps", "caches", "time")


def render(analysis: Analysis) -> str:
    """The report as text, without colours, its lines as long as they are."""
    stream = StringIO()
    write(analysis, stream, colours=False)
    return stream.getvalue().rstrip("\n")


def write(analysis: Analysis, stream: TextIO, colours: bool | None = None, sass: bool = False) -> None:
    """Prints the report on `stream`; colours: None where it is a terminal. sass.

    Below each row its instructions.
    """
    from rich.text import Text

    console = plain_console(stream, force_terminal=colours)
    room = console.width if console.is_terminal else UNLIMITED
    console.width = UNLIMITED

    console.print(Text(analysis.verdict, style="bold"))
    console.print()
    if analysis.sites:
        console.print(_site_table(analysis.sites, room, analysis.instructions if sass else ()))
        console.print()
    console.print(_total_table(analysis))
    console.print()
    for line in _footer(analysis):
        console.print(line)


def _site_table(
    sites: tuple[SiteCounts, ...], room: int, instructions: tuple[tuple[InstructionCounts, ...], ...] = ()
) -> Table:
    from rich.text import Text

    files = file_names(site.file for site in sites)
    rows = [_site_row(site, files[site.file]) for site in sites]
    headings = (*TEXT_COLUMNS, *NUMBER_COLUMNS)
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    others = sum(widths) - widths[CODE] + GAP * (len(widths) - 1)
    code = max(room - others, NARROWEST_CODE)

    table = _table()
    for name in TEXT_COLUMNS:
        table.add_column(name)
    for name in NUMBER_COLUMNS:
        table.add_column(name, justify="right")
    for number_of, (site, row) in enumerate(zip(sites, rows, strict=True)):
        row[CODE] = _cut(row[CODE], code)
        table.add_row(*(Text(cell) for cell in row), style=_style(site))
        for instruction in instructions[number_of] if instructions else ():
            below = _site_row(instruction.counts, "")
            below[:CODE] = [f"  {instruction.address:#06x}"]
            below[CODE : CODE + 3] = [_cut(f"  {instruction.text}", code), "", ""]
            table.add_row(*(Text(cell) for cell in below), style="dim")
    return table


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _site_row(site: SiteCounts, file: str) -> list[str]:
    unknown = "-" if site.unresolved is None else "?"
    return [
        f"{file}:{site.line}",
        site.source,
        access(site),
        site.array,
        number(site.requests, unknown),
        number(site.wavefronts, unknown),
        number(site.ideal_wavefronts, unknown),
        number(site.max_ways, unknown),
        each(site.sectors, site.requests, unknown),
        each(site.ideal_sectors, site.requests, unknown),
    ]


def _style(site: SiteCounts) -> str:
    """Red wastes wavefronts, yellow wastes sectors or is not known."""
    if site.conflicts:
        return "red"
    wasteful = site.sectors is not None and site.sectors != site.ideal_sectors
    return "yellow" if wasteful or site.unresolved is not None else ""


def _total_table(analysis: Analysis) -> Table:
    table = _table()
    table.add_column("ncu metric")
    table.add_column("predicted", justify="right")
    shown = {metric: total for metric, total in analysis.totals.items() if total != 0}
    for metric, total in shown.items():
        table.add_row(metric, number(total, "not known"))
    if len(shown) < len(analysis.totals):
        table.add_row(f"{'the others' if shown else 'all'} ({len(analysis.totals) - len(shown)})", "0")
    return table


def _footer(analysis: Analysis) -> Iterator[str]:
    files = file_names(site.file for site in analysis.sites)
    for site in analysis.sites:
        if site.unresolved is not None:
            where = f"{files[site.file]}:{site.line}"
            yield f"Not analyzed: the {site.space} {site.op.replace('_', '.')} at {where}: {site.unresolved}"

    yield from (f"Not certain: {reason}" for reason in analysis.trace.unsure)
    launch = analysis.trace.launch
    yield (
        f"Launch: grid {dim3(launch.grid)}, block {dim3(launch.block)}, "
        f"{launch.shared_bytes:,} B dynamic shared memory, "
        f"{analysis.trace.blocks_replayed:,} of {launch.blocks:,} blocks replayed, rules of {analysis.arch}; "
        f"warp 0 lanes = threads {lanes_of_warp_0(launch)}"
    )
    if analysis.trace.origin is not None:
        yield f"Read: {analysis.trace.origin}"
        if analysis.trace.origin.lacks:
            yield f"Not told there: {'; '.join(analysis.trace.origin.lacks)}"
    if any(site.file.endswith(".sass") for site in analysis.sites):
        yield (
            "The machine code names no source lines: where is an instruction of it. "
            "nvcc and NVRTC add them with -lineinfo, Numba with lineinfo=True."
        )
    if any(site.space == "shared" and site.width >= 8 for site in analysis.sites):
        yield (
            "Wavefronts above the requests are no conflict by themselves: accesses of 8 or 16 B are served "
            "in up to 2 or 4 groups of lanes; ways count what collides in a group."
        )
    yield from (f"Not known: {metric}: {reason}" for metric, reason in analysis.undecided.items())
    if analysis.excess_wavefronts:
        yield (
            f"{analysis.excess_wavefronts:,} shared wavefronts above the ideal are no conflicts; "
            "another arrangement of the lanes could save them."
        )
    yield f"Left out: {', '.join((*LEFT_OUT, *analysis.trace.notes))}."


def _table() -> Table:
    from rich.table import Table

    return Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
