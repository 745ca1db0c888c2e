"""The analysis for people: the answer, a table for each memory space, the launch, and what is left out.

An `Analysis` and a stream in; text out, on a terminal with colours. Tables fit the reader's terminal
(`memsim.views.screen`). Totals under the names of ncu's metrics only when asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from shlex import quote
from typing import Literal, TextIO

from memsim.analysis import Analysis, SiteCounts
from memsim.analysis.verdict import phrases_in
from memsim.arch.units import WORD
from memsim.counts import COST
from memsim.views.analyze.costs import cost, count_or_limits, heading_of_space, limits_of_totals
from memsim.views.labels import (
    access,
    at_all_places,
    count,
    dim3,
    each,
    file_names,
    lanes_of_warp_0,
    number,
    share,
)
from memsim.views.screen import Column, Row, Screen, text_of

Sort = Literal["cost", "waste", "line"]
SORTS: tuple[Sort, ...] = ("cost", "waste", "line")

WHERE = (Column("code", is_code=True), Column("access"), Column("array", keep=1))
SHARED = (
    Column("requests", right=True, keep=3),
    Column("wavefronts", right=True),
    Column("ideal", right=True, keep=2),
    Column("ways", right=True),
    Column("share", right=True),
)
GLOBAL = (
    Column("requests", right=True, keep=3),
    Column("sectors", right=True, keep=4),
    Column("sectors/req", right=True),
    Column("ideal/req", right=True, keep=2),
    Column("share", right=True),
)
CONSTANT = (
    Column("instructions", right=True, keep=3),
    Column("requests", right=True, keep=4),
    Column("requests/instr", right=True),
    Column("share", right=True),
)
COLUMNS = {"shared": SHARED, "global": GLOBAL, "local": GLOBAL, "constant": CONSTANT, "texture": GLOBAL}
INDENT = "  "
#: Rows of a table that are shown at once.
LONG_TABLE = 40

LEFT_OUT = ("arbitration between warps", "caches")
MIPMAPS = "mipmaps: a texture has one level"


def render(analysis: Analysis) -> str:
    """The report as text, without colours."""
    return text_of(lambda stream: write(analysis, stream, colours=False))


def write(
    analysis: Analysis,
    stream: TextIO,
    colours: bool | None = None,
    *,
    sass: bool = False,
    metrics: bool = False,
    sort: Sort = "cost",
    every_row: bool = False,
) -> None:
    """Prints the report on `stream`.

    colours: None where it is a terminal. sass: below each row its machine instructions. metrics: totals under
    the names of ncu's metrics, too. sort: the first row costs most, wastes most, or has the lowest line.
    every_row: of a long table, too, whose rows are else those that cost and those that waste most.
    """
    screen = Screen(stream, colours=colours)
    said = phrases_in(analysis.verdict, analysis.trace.kernel)
    links = {analysis.verdict[place]: phrase.address for place, phrase in said if phrase.is_published}
    screen.say(analysis.verdict, "bold", links)
    if analysis.estimate is not None:
        screen.say(f"Time: {analysis.estimate.verdict}")
    if analysis.bound.has_instructions:
        screen.say(f"Bound: {analysis.bound.verdict}")
    screen.say()
    for space in COLUMNS:
        rows = [row for row, site in enumerate(analysis.sites) if site.space == space]
        if rows:
            screen.say(heading_of_space([analysis.sites[row] for row in rows], _only_file(analysis)))
            shown = rows if every_row else _most(rows, analysis)
            _write_table(screen, analysis, _sorted(shown, analysis, sort), sass)
            if len(shown) < len(rows):
                screen.say(_left_out(sorted({*rows} - {*shown}), rows, analysis))
            screen.say()
    if metrics:
        screen.table((Column("ncu metric"), Column("predicted", right=True)), _total_rows(analysis))
        screen.say()
    for line in _footer(analysis):
        screen.say(line)


def _only_file(analysis: Analysis) -> str:
    """The name of the file that all rows are of, or ""."""
    names = list(file_names(site.file for site in analysis.sites).values())
    return names[0] if len(names) == 1 else ""


def _sorted(rows: Sequence[int], analysis: Analysis, sort: Sort) -> Sequence[int]:
    if sort == "line":
        return rows
    key: Callable[[SiteCounts], float] = cost if sort == "cost" else attrgetter("badness")
    return sorted(rows, key=lambda row: key(analysis.sites[row]), reverse=True)


def _most(rows: Sequence[int], analysis: Analysis) -> Sequence[int]:
    """The rows that are shown of a table: all, or those that cost most and those that waste most."""
    if len(rows) <= LONG_TABLE:
        return rows
    wasteful = [row for row in rows if _style(analysis.sites[row])]
    most = _sorted(wasteful, analysis, "waste")[: LONG_TABLE // 2]
    others = _sorted([row for row in rows if row not in most], analysis, "cost")
    return sorted((*most, *others[: LONG_TABLE - len(most)]))


def _left_out(left: Sequence[int], rows: Sequence[int], analysis: Analysis) -> str:
    """`and 150 more rows, all ideal, with 32.9 % of the wavefronts (--every-row shows them)`."""
    sites = [analysis.sites[row] for row in left]
    wasteful = sum(bool(_style(site)) for site in sites)
    total = sum(cost(analysis.sites[row]) for row in rows)
    also = f"{wasteful:,} of them not ideal" if wasteful else "all ideal"
    part = f"{share(sum(map(cost, sites)), total)} of the {COST[sites[0].space]}"
    return f"and {count(len(sites), 'more row')}, {also}, with {part} (--every-row shows them)"


def _write_table(screen: Screen, analysis: Analysis, rows: Sequence[int], sass: bool) -> None:
    """A row for each access to one memory space; of a single file the lines' numbers are enough."""
    sites = [analysis.sites[row] for row in rows]
    files = file_names(site.file for site in analysis.sites)
    one_file = bool(_only_file(analysis))
    total = sum(cost(site) for site in analysis.sites if site.space == sites[0].space)
    made = []
    for row, site in zip(rows, sites, strict=True):
        where = str(site.line) if one_file else f"{files[site.file]}:{site.line}"
        kind = access(site).removeprefix(f"{site.space} ")
        made.append(Row((where, site.source, kind, site.array, *_numbers(site, total)), _style(site)))
        for instruction in analysis.instructions[row] if sass else ():
            numbers = _numbers(instruction.counts, total)
            made.append(
                Row((f"{instruction.address:#06x}", INDENT + instruction.text, "", "", *numbers), "dim")
            )
    where_column = Column("line" if one_file else "where", right=one_file)
    screen.table((where_column, *WHERE, *COLUMNS[sites[0].space]), made)


def _numbers(site: SiteCounts, total: int) -> tuple[str, ...]:
    unknown = "-" if site.unresolved is None else "?"
    part = share(cost(site), total) if site.unresolved is None else unknown
    if site.space == "shared":
        names = "requests", "wavefronts", "ideal_wavefronts", "max_ways"
        return *(count_or_limits(site, name, unknown) for name in names), part
    if site.space == "constant":
        each_load = each(site.requests, site.instructions, unknown)
        return number(site.instructions, unknown), number(site.requests, unknown), each_load, part
    return (
        count_or_limits(site, "requests", unknown),
        count_or_limits(site, "sectors", unknown),
        each(site.sectors, site.requests, unknown),
        each(site.ideal_sectors, site.requests, unknown),
        part,
    )


def _style(site: SiteCounts) -> str:
    """Red wastes wavefronts, yellow wastes sectors or is not known."""
    if site.conflicts:
        return "red"
    return "yellow" if site.sectors != site.ideal_sectors or site.unresolved is not None else ""


def _total_rows(analysis: Analysis) -> Iterator[Row]:
    shown = [
        (metric, str(analysis.undecided[metric]) if total is None else number(total, ""))
        for metric, total in analysis.totals.items()
        if total != 0
    ]
    if len(shown) < len(analysis.totals):
        shown.append((f"{'the others' if shown else 'all'} ({len(analysis.totals) - len(shown)})", "0"))
    return map(Row, shown)


def _footer(analysis: Analysis) -> Iterator[str]:
    files = file_names(site.file for site in analysis.sites)
    for site in analysis.sites:
        if site.unresolved is not None:
            where = f"{site.space} {site.op.replace('_', '.')} at {files[site.file]}:{site.line}"
            unit = COST[site.space]
            if unit in site.ranges:
                yield f"Not certain: the {where} takes {site.ranges[unit]} {unit}: {site.unresolved}"
            else:
                yield f"Not analyzed: the {where}: {site.unresolved}"

    yield from (f"Race: {race.text}; memsim sanitize says more." for race in analysis.trace.races)
    yield from (f"Not certain: {reason}" for reason in at_all_places(analysis.trace.uncertain))
    launch = analysis.trace.launch
    yield (
        f"Launch: grid {dim3(launch.grid)}, block {dim3(launch.block)}, "
        f"{launch.shared_bytes:,} B dynamic shared memory, "
        f"{analysis.trace.blocks_replayed:,} of {launch.blocks:,} blocks replayed, rules of {analysis.arch}; "
        f"warp 0 lanes = threads {lanes_of_warp_0(launch)}"
    )
    if analysis.trace.origin is not None:
        yield f"Code: {analysis.trace.origin}"
        if analysis.trace.origin.lacks:
            yield f"Not in the trace: {'; '.join(analysis.trace.origin.lacks)}"
    if any(site.file.endswith(".sass") for site in analysis.sites):
        yield (
            "The machine code has no line information, so that rows are instructions. "
            "nvcc and NVRTC add it with -lineinfo, Numba with lineinfo=True."
        )
    if any(site.space == "shared" and site.width >= 8 for site in analysis.sites):
        yield (
            "An access of 8 or 16 B takes up to 2 or 4 wavefronts a request without any conflict: its lanes "
            "are served in groups, and ways count what collides within a group."
        )
    yield from limits_of_totals(analysis)
    if analysis.excess_wavefronts:
        yield (
            f"{analysis.excess_wavefronts:,} shared wavefronts above the ideal are not bank conflicts: "
            "a different mapping of lanes to elements could save them."
        )
    yield f"Not modelled in these counts: {', '.join(left_out(analysis))}."


def left_out(analysis: Analysis) -> list[str]:
    """What is not modelled in the counts."""
    fetches = any(site.space == "texture" for site in analysis.sites)
    return [*LEFT_OUT, *([MIPMAPS] if fetches else []), *analysis.trace.notes]


FORECAST = ", if the compiler keeps its accesses as wide as they are"


def next_command(analysis: Analysis, target: str, *, options: bool) -> str:
    """What would help most, and which command shows how, in a line; "" where there is no bank conflict.

    options: whether it needs those that the target was given.
    """
    arrays = dict.fromkeys(site.array for site in analysis.sites if site.conflicts)
    if not arrays:
        return ""
    from memsim.suggest.proposals import advise  # loaded only for a conflict: it takes a fifth of the start
    from memsim.views.suggest.advice import counted_change

    same = ", with the same options," if options else ""
    command = f"`memsim suggest {quote(target)}`{same}"
    helped = [entry for entry in advise(analysis) if entry.proposals]
    if not helped:
        return f"No layout tried for {' and '.join(arrays)} helps; {command} tries other changes."
    most = max(helped, key=lambda entry: entry.wavefronts - entry.proposals[0].cost.most)
    is_wide = any(site.array == most.tile.array and site.width > WORD for site in analysis.sites)
    forecast = FORECAST if is_wide and analysis.trace.origin is not None else ""
    best = most.proposals[0]
    shows = "shows how" if best.cost.most == most.least else "shows how, or finds a better one"
    return f"What would help: {counted_change(best, most)}{forecast}. {command} {shows}."
