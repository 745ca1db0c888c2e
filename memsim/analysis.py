"""The cost of a launch: a row for each source line and kind of access, totals, and a one-line verdict.

The records here are what every report prints.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.arch import ASSUMED, PUBLISHED, SM_90, Arch, arch_of_code, get_arch, plain_name
from memsim.bound import Bound, bound_of
from memsim.errors import MemsimError
from memsim.launch import SPILLS, Natural, Space
from memsim.model import COUNTERS, totals
from memsim.model.choice import global_cost, group_wavefronts, shared_cost, why_no_cost
from memsim.model.constant import constant_access
from memsim.model.counters import QUANTITIES
from memsim.model.local import local_access
from memsim.model.operations import Operation, operation
from memsim.model.undecided import undecided
from memsim.trace.trace import AccessSite, Origin, Trace

if TYPE_CHECKING:
    from pandas import DataFrame

    from memsim.suggest import Suggestions
    from memsim.views.plot import Plots
    from memsim.views.shown import Shown

SCHEMA = 1

# With shared accesses, the verdict mentions global memory only if this share of the sectors is unneeded.
BADLY_COALESCED = 0.25

NO_WAVEFRONTS = ("wavefronts", "conflicts", "ideal_wavefronts", "max_ways")


@dataclass(frozen=True, slots=True)
class SiteCounts:
    """The cost of one kind of access on one source line, summed over its instructions.

    A kind is `op`, `space`, `width` (bytes per lane) and `array` (the variable or parameter, "" if unknown);
    an unrolled loop gives one row. `source` is the stripped text of the line, "" if unknown.

    instructions: warp instructions executed, including those with every lane predicated off.

    requests: warp instructions with an active lane. As the chip splits them: for local memory one for each 4
    bytes per lane, for constants one for each distinct address.

    wavefronts, conflicts, ideal_wavefronts, max_ways: shared memory only, else None; `max_ways` is the worst
    of all requests, the others are sums. For cp_async they are for data in the L1 cache; for cp_async_cg the
    chip counts none, so they are 0.

    sectors, ideal_sectors: global and local memory and distributed shared memory, else None; sums. lines: of
    128 bytes, global and distributed shared memory.

    None means "does not apply", never 0. A row with `unresolved` (why its addresses are unknown) has None in
    every count but `instructions`.
    """

    file: str
    line: Natural
    column: int
    source: str
    op: str
    space: Space
    width: Natural
    array: str
    instructions: Natural
    requests: Natural | None = None
    wavefronts: Natural | None = None
    conflicts: Natural | None = None
    ideal_wavefronts: Natural | None = None
    max_ways: Natural | None = None
    sectors: Natural | None = None
    ideal_sectors: Natural | None = None
    lines: Natural | None = None
    unresolved: str | None = None

    @property
    def operation(self) -> Operation:
        """The record of its kind of access."""
        return operation(self.space, self.op)

    @property
    def is_spill(self) -> bool:
        """Whether it saves or restores spilled registers."""
        return self.space == "local" and self.array == SPILLS

    @property
    def wavefronts_of_conflicts(self) -> int:
        """Wavefronts that would be saved without conflicts; 0 if unknown."""
        return _known(self.conflicts) * self.operation.passes

    @property
    def badness(self) -> tuple[int, int, int, bool, float]:
        """Sort key by which the worst access is chosen everywhere; larger is worse.

        Conflicts, then unneeded sectors, then wavefronts above the ideal; among accesses without waste,
        shared memory before global, then wavefronts or sectors per request. Lowest if nothing was counted.
        """
        needless = _known(self.sectors) - _known(self.ideal_sectors)
        above = _known(self.wavefronts) - _known(self.ideal_wavefronts)
        each = (self.wavefronts or self.sectors or 0) / (self.requests or 1)
        return _known(self.conflicts), needless, above, bool(self.wavefronts), each


@dataclass(frozen=True, slots=True)
class InstructionCounts:
    """The cost of one machine instruction. address: offset from the kernel's first byte; text: as
    disassembled.
    """

    address: int
    text: str
    counts: SiteCounts


@dataclass(frozen=True)
class Analysis:
    """The cost of one launch, predicted from its addresses.

    trace: what it was computed from. arch: the chip whose rules were used. sites: rows by file, line and
    first instruction. totals: ncu metric name -> predicted value; None if an access in it could not be
    analyzed, or depends on more than its addresses. verdict: the answer in one line. undecided: ncu metric
    name -> why it is unknown although every access is analyzed.
    """

    trace: Trace
    arch: Arch
    sites: tuple[SiteCounts, ...]
    totals: dict[str, int | None]
    verdict: str
    undecided: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def excess_wavefronts(self) -> int:
        """Shared wavefronts that are not conflicts but that another arrangement of lanes could save.

        Wavefronts minus conflicts minus ideal, over the rows that could be analyzed.
        """
        return sum(
            _known(site.wavefronts) - site.wavefronts_of_conflicts - _known(site.ideal_wavefronts)
            for site in self.sites
        )

    @cached_property
    def bound(self) -> Bound:
        """The lower bound of the launch's cycles, and what bounds it (docs/bounds.md)."""
        return bound_of(self.trace, self.sites, self.arch)

    @cached_property
    def requests_of_sites(self) -> tuple[np.ndarray, ...]:
        """For each row of `sites`, its rows of the trace: int64 indices."""
        return tuple(requests for _, requests in rows_of_trace(self.trace))

    @cached_property
    def instructions(self) -> tuple[tuple[InstructionCounts, ...], ...]:
        """For each row of `sites`, its machine instructions by address; none for PTX."""
        trace = self.trace
        found = []
        for members, requests in rows_of_trace(trace):
            rows = [
                InstructionCounts(
                    trace.sites[i].address,
                    trace.sites[i].instruction,
                    _site_counts(trace, [trace.sites[i]], requests[trace.site[requests] == i], self.arch),
                )
                for i in members
                if trace.sites[i].address >= 0
            ]
            found.append(tuple(sorted(rows, key=lambda row: row.address)))
        return tuple(found)

    @property
    def plot(self) -> Plots:
        """Pictures as matplotlib figures: `.heatmap()`, `.lanes(site)`, `.layout(array)`, `.flow()`.

        Raises:
            MemsimError: by each picture, if matplotlib is not installed.
        """
        from memsim.views.plot import Plots

        return Plots(self)

    def suggest(self, *arrays: str) -> Suggestions:
        """Other layouts of the shared arrays, or only of those named, that need fewer wavefronts; best first.

        They are counted on the recorded requests but not compiled; `memsim suggest` does both.

        Raises:
            MemsimError: there is no shared array of that name.
        """
        from memsim.suggest import suggest

        return suggest(self, arrays=arrays)

    def heatmap(self, compare: Analysis | None = None) -> Shown:
        """How each access to shared memory uses the 32 banks; with `compare`, for both. Displays itself.

        Raises:
            MemsimError: none of the kernels accesses shared memory.
        """
        from memsim.views import shown

        return shown.heatmap([self] if compare is None else [self, compare])

    def explain(self, line: int | str | None = None, site: int | None = None) -> Shown:
        """The worst request of an access, lane by lane. Displays itself.

        line: of the source, or `"FILE:LINE"` if several files have it. site: the access's index in `sites`.
        Default: the worst access.

        Raises:
            MemsimError: no such access, or it could not be analyzed.
        """
        from memsim.views import shown

        return shown.explain(self, line, site)

    def report(self, path: str | Path) -> None:
        """Write everything about the launch as a self-contained HTML page.

        Raises:
            MemsimError: the file cannot be written.
        """
        from memsim.views.report import report_page

        try:
            Path(path).write_text(report_page(self), encoding="utf-8")
        except OSError as error:
            raise MemsimError(f"cannot write it: {error.strerror}", file=str(path)) from None

    def to_pandas(self) -> DataFrame:
        """The rows as a `pandas.DataFrame`, a column for each field of `SiteCounts`; NA: does not apply.

        Raises:
            MemsimError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise MemsimError("pandas is not installed", hint="pip install 'memsim[pandas]'") from None
        columns = {
            field.name: [getattr(site, field.name) for site in self.sites]
            for field in dataclasses.fields(SiteCounts)
        }
        counts = [
            name for name, kind in SiteCounts.__annotations__.items() if kind.startswith(("int", "Natural"))
        ]
        return pandas.DataFrame(columns).astype(dict.fromkeys(counts, "Int64"))

    def __repr__(self) -> str:
        return f"<Analysis {self.verdict}>"

    def __str__(self) -> str:
        """The text that `memsim analyze` prints."""
        from memsim.views.analyze.terminal import render

        return render(self)

    def _repr_html_(self) -> str:
        """The representation in a notebook: the verdict, the bank heatmap, the rows."""
        from memsim.views.report import fragment

        return fragment(self)

    def to_dict(self, *, sass: bool = False) -> dict[str, Any]:
        """The records as plain dicts, lists and numbers, as printed by `--json`.

        sass: with the machine instructions of each of `sites`.
        """
        launch = self.trace.launch
        sites = [dataclasses.asdict(site) for site in self.sites]
        for site, instructions in zip(sites, self.instructions if sass else ()):
            site["sass"] = [_instruction_dict(instruction) for instruction in instructions]
        return {
            "schema": SCHEMA,
            "kernel": self.trace.kernel,
            "arch": self.arch.name,
            "code": None if self.trace.origin is None else _origin_dict(self.trace.origin),
            "launch": {
                "grid": list(launch.grid),
                "block": list(launch.block),
                "shared_bytes": launch.shared_bytes,
                "blocks": launch.blocks,
                "blocks_replayed": self.trace.blocks_replayed,
            },
            "verdict": self.verdict,
            "bound": self.bound.to_dict(),
            "sites": sites,
            "totals": dict(self.totals),
            "undecided": dict(self.undecided),
            "notes": list(self.trace.notes),
            "unsure": list(self.trace.unsure),
        }


def _origin_dict(origin: Origin) -> dict[str, Any]:
    lists = {"lacks": list(origin.lacks), "files": list(map(list, origin.files)), "newer": list(origin.newer)}
    return {**dataclasses.asdict(origin), **lists}


def _instruction_dict(instruction: InstructionCounts) -> dict[str, Any]:
    counts = dataclasses.asdict(instruction.counts)
    kept = {
        name: counts[name]
        for name in ("instructions", "requests", *NO_WAVEFRONTS, "sectors", "lines", "unresolved")
    }
    return {"address": instruction.address, "text": instruction.text, **kept}


def analyze_trace(trace: Trace, arch: Arch | str | None = None) -> Analysis:
    """Count the cost of a trace's accesses on `arch`, a chip or its name; default: the chip that it was made
    for.

    An access of a kind that was not measured on `arch` keeps its row and is `unresolved`.

    Raises:
        MemsimError: nothing was measured on `arch`, or an address is not aligned to its width.
    """
    made_for = "" if trace.origin is None else trace.origin.arch
    chip = arch_of_code(made_for) if arch is None else get_arch(arch)
    sites = tuple(
        _site_counts(trace, [trace.sites[i] for i in members], requests, chip)
        for members, requests in rows_of_trace(trace)
    )
    reasons = undecided_counters(trace, chip)
    return Analysis(trace, chip, sites, _totals(sites, reasons), _verdict(trace, sites, chip), reasons)


def undecided_counters(trace: Trace, arch: Arch) -> dict[str, str]:
    """Metric -> why it depends on more than the addresses of the kernel's copies."""
    found: dict[str, str] = {}
    for number, site in enumerate(trace.sites):
        asked = operation(site.space, site.op)
        if asked.is_copy and asked.space == "shared":
            rows = trace.site == number
            found |= undecided(asked, site.width, trace.active[rows], trace.partner[rows], arch)
    return found


def rows_of_trace(trace: Trace) -> list[tuple[list[int], np.ndarray]]:
    """(its sites, its rows of the trace) for each row of the analysis, in its order."""
    rows = _rows_of_sites(trace.sites)
    row_of_site = np.zeros(len(trace.sites), np.int64)
    for row, members in enumerate(rows):
        row_of_site[members] = row

    row_of_request = row_of_site[trace.site]
    by_row = np.argsort(row_of_request, kind="stable")
    ends = np.searchsorted(row_of_request[by_row], np.arange(len(rows)), side="right")
    return list(zip(rows, np.split(by_row, ends), strict=False))


def _rows_of_sites(sites: Sequence[AccessSite]) -> list[list[int]]:
    """Sites grouped by row; rows by file, line and first site."""
    rows: dict[tuple[object, ...], list[int]] = {}
    for i, site in enumerate(sites):
        key = (site.file, site.line, site.op, site.space, site.width, site.array)
        rows.setdefault(key, []).append(i)
    return sorted(rows.values(), key=lambda members: (sites[members[0]].file, sites[members[0]].line))


def _site_counts(trace: Trace, members: list[AccessSite], requests: np.ndarray, chip: Arch) -> SiteCounts:
    """One row: `members` are its sites, `requests` its rows of the trace."""
    first = members[0]
    unresolved = next((site.unresolved for site in members if site.unresolved is not None), None)
    if unresolved is None:
        lanes = trace.active[requests], trace.partner[requests]
        unresolved = why_no_cost(first.width, first.op, first.space, *lanes, chip)
    return SiteCounts(
        file=first.file,
        line=first.line,
        column=first.column,
        source=_source_line(trace.sources.get(first.file, ""), first.line),
        op=first.op,
        space=first.space,
        width=first.width,
        array=first.array,
        instructions=sum(site.instructions for site in members),
        unresolved=unresolved,
        **(_costs(trace, first, requests, chip) if unresolved is None else {}),
    )


def _costs(trace: Trace, site: AccessSite, requests: np.ndarray, chip: Arch) -> dict[str, int]:
    """The counts of `SiteCounts` that apply to the site's space, each distinct request times its count."""
    addresses, active, times = trace.addresses[requests], trace.active[requests], trace.count[requests]
    asked = addresses, site.width, site.op, active, trace.partner[requests], chip
    made = int(times @ active.any(axis=1))
    if not operation(site.space, site.op).is_counted:
        return {"requests": made, **dict.fromkeys(NO_WAVEFRONTS, 0)}
    if operation(site.space, site.op).grouped:
        wavefronts = made * group_wavefronts(site.width)
        return {
            "requests": made,
            "wavefronts": wavefronts,
            "conflicts": 0,
            "ideal_wavefronts": wavefronts,
            "max_ways": int(made > 0),
        }
    if site.space == "shared" and not operation(site.space, site.op).remote:
        shared = shared_cost(*asked)
        return {
            "requests": made,
            "wavefronts": int(times @ shared.wavefronts),
            "conflicts": int(times @ shared.conflicts),
            "ideal_wavefronts": int(times @ shared.ideal),
            "max_ways": int(shared.ways.max(initial=0)),
        }
    if site.space == "constant":
        return {"requests": int(times @ constant_access(addresses, site.width, site.op, active, chip))}
    if site.space == "local":
        local = local_access(addresses, site.width, site.op, active, chip)
        return {
            "requests": int(times @ local.requests),
            "sectors": int(times @ local.sectors),
            "ideal_sectors": int(times @ local.ideal_sectors),
        }
    cost = global_cost(*asked)
    return {
        "requests": made,
        "sectors": int(times @ cost.sectors),
        "ideal_sectors": int(times @ cost.ideal_sectors),
        "lines": int(times @ cost.lines),
    }


def _source_line(text: str, line: int) -> str:
    lines = text.splitlines()
    return lines[line - 1].strip() if 1 <= line <= len(lines) else ""


def _totals(sites: Sequence[SiteCounts], undecided: Collection[str]) -> dict[str, int | None]:
    """ncu metric -> predicted value; None if an access in it is unresolved or undecided."""
    sums: dict[tuple[str, str], dict[str, int]] = {}
    for site in sites:
        of_op = sums.setdefault((site.space, site.op), dict.fromkeys(QUANTITIES[site.space], 0))
        for quantity in of_op:
            of_op[quantity] += _known(getattr(site, quantity))
    known = totals(sums, undecided)
    short = {
        (site.space, op)
        for site in sites
        if site.unresolved is not None
        for op in site.operation.counted_as or (site.op,)
    }
    return {
        counter.metric: None
        if any((counter.space, op) in short for op in counter.ops)
        else known.get(counter.metric)
        for counter in COUNTERS
        if counter.is_reported(sums)
    }


def _verdict(trace: Trace, sites: Sequence[SiteCounts], chip: Arch) -> str:
    """The first line of every report: the worst access, and its share of the waste."""
    unresolved = sum(site.unresolved is not None for site in sites)
    parts = [_shared_answer(sites, certain=not unresolved), _global_answer(sites), _local_answer(sites)]
    if not any(parts):
        parts = ["no shared or global access was " + ("analyzed" if unresolved else "made")]
    if unresolved:
        parts.append(f"{unresolved} access{'es' * (unresolved > 1)} could not be analyzed")
    if trace.unsure:
        parts.append("some counts are uncertain")
    if trace.origin is not None and trace.origin.is_estimate:
        parts.append("estimated from PTX; ptxas may generate different accesses")
    if trace.origin is not None and trace.origin.doubt:
        parts.append(trace.origin.doubt)
    if trace.origin is not None and plain_name(trace.origin.arch) not in ("", chip.name):
        parts.append(f"made for {trace.origin.arch}, counted by the rules of {chip}")
    parts.append(_worth_of_rules(sites, chip))
    if trace.blocks_replayed < trace.launch.blocks:
        parts.append(f"{trace.blocks_replayed:,} of {trace.launch.blocks:,} blocks replayed")
    return f"{trace.kernel}: " + "; ".join(part for part in parts if part)


def _worth_of_rules(sites: Sequence[SiteCounts], chip: Arch) -> str:
    """A note about rules that were not measured on the chip; "" if all were."""
    by_rules = (site for site in sites if site.unresolved is None and site.operation.is_counted)
    worth = {chip.basis(site.space, site.op, site.width) for site in by_rules}
    if ASSUMED in worth:
        return f"rules of {chip} are assumed to equal {SM_90}'s"
    return f"rules of {chip} are published, not measured" if PUBLISHED in worth else ""


def _shared_answer(sites: Sequence[SiteCounts], certain: bool) -> str:
    """Bank conflicts: the worst site; "" if no shared wavefront was counted."""
    wavefronts = sum(_known(site.wavefronts) for site in sites)
    conflicts = sum(_known(site.conflicts) for site in sites)
    if not wavefronts:
        return ""
    if conflicts:
        worst = max(sites, key=lambda site: site.badness)
        return (
            f"worst is {_place(worst)}: {worst.max_ways}-way bank conflict; conflicts are "
            f"{conflicts:,} of {wavefronts:,} shared wavefronts ({_percent(conflicts, wavefronts)})"
        )
    if certain:
        return f"conflict-free: {wavefronts:,} shared wavefronts, none wasted by bank conflicts"
    return f"no bank conflict in the {wavefronts:,} shared wavefronts that could be counted"


def _global_answer(sites: Sequence[SiteCounts]) -> str:
    """Coalescing: all of it if no shared memory is used, else only if bad."""
    uses_shared = any(_known(site.wavefronts) for site in sites)
    sites = [site for site in sites if site.space == "global"]
    sectors = sum(_known(site.sectors) for site in sites)
    excess = sectors - sum(_known(site.ideal_sectors) for site in sites)
    if not sectors or (uses_shared and excess < BADLY_COALESCED * sectors):
        return ""
    if not excess:
        return f"coalesced: {sectors:,} global sectors, all needed"
    worst = max((site for site in sites if site.sectors), key=lambda site: site.badness)
    requests = _known(worst.requests)
    return (
        f"{'global accesses are not coalesced: ' if uses_shared else ''}worst is {_place(worst)}: "
        f"{_known(worst.sectors) / requests:.1f} sectors per request instead of "
        f"{_known(worst.ideal_sectors) / requests:.1f}; {excess:,} of {sectors:,} "
        f"global sectors are not needed ({_percent(excess, sectors)})"
    )


def _local_answer(sites: Sequence[SiteCounts]) -> str:
    """Register spills and arrays of a thread; "" if there are none."""
    sites = [site for site in sites if site.space == "local"]
    sectors = sum(_known(site.sectors) for site in sites)
    excess = sectors - sum(_known(site.ideal_sectors) for site in sites)
    if not sectors:
        return ""
    what = (
        "registers spill to local memory" if all(site.is_spill for site in sites) else "local memory is used"
    )
    wasted = f", {excess:,} of them not needed" if excess else ""
    return f"{what}: {sectors:,} sectors{wasted}"


def _place(site: SiteCounts) -> str:
    return f"the {site.op.replace('_', '.')} at {PurePath(site.file).name}:{site.line}"


def _percent(part: int, whole: int) -> str:
    """With one decimal; 0.0 and 100.0 only if exact."""
    percent = f"{100 * part / whole:.1f}"
    if percent == "0.0" and part:
        return "under 0.1 %"
    if percent == "100.0" and part < whole:
        return "over 99.9 %"
    return f"{percent} %"


def _known(count: int | None) -> int:
    return count or 0
