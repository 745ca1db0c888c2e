"""Threads that do each other's work: the same threads in other warps or blocks, or in another order of lanes.

The edited source is compiled and replayed. Two changes are tried: `threadIdx.x` exchanged with another axis
of the block or the grid, if many of the bytes moved for global accesses are unused, and lanes renumbered, if
wide shared accesses could share wavefronts. Threads of other blocks do each other's work where none waits for
another one or shares memory with it, and where the results are the same.

Lanes renumbered are the same threads of a warp, each doing the work of another. Counted on the recorded
requests: each is made by the same warp with its addresses permuted. That changes which lanes of a wide access
are served together: if neighbours access the same words, two groups of lanes may need one wavefront. All
orders of the five bits of a lane's number are tried: transposed lanes (8 x 4 as 4 x 8), z-order, and those in
between.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from memsim.access import relative_to_lowest
from memsim.analysis import BADLY_COALESCED, Analysis, analyze_trace
from memsim.api.running import trace_job
from memsim.arch.units import LINE, WARP, WORD
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.launch import Launch
from memsim.model.choice import shared_cost
from memsim.source.text import bracket_end, without_comments
from memsim.source.values import body_of
from memsim.suggest.caller_layout import CallerLayout, packed_arguments
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.prove import is_the_same, with_text
from memsim.suggest.ranking import total
from memsim.time.quick_estimate import estimate
from memsim.trace.site_records import distinct_rows
from memsim.trace.trace import Trace

BITS = 5
Order = tuple[int, ...]

AS_IT_IS: Order = tuple(range(BITS))
#: Orders in which a lane's column and row bits alternate.
Z_ORDERS: tuple[Order, ...] = ((0, 2, 4, 1, 3), (0, 2, 1, 3, 4), (0, 3, 1, 4, 2))

# Instructions by which lanes communicate or read their number.
BETWEEN_LANES = re.compile(r"(?<![\w.])(?:SHFL|VOTE|VOTEU|MATCH|REDUX|[A-Z]*MMA|MOVM|LDSM|STSM|SR_LANE\w+)\b")


@dataclass(frozen=True)
class Renumbering:
    """A lane does what another one did. before: the analysis for which it is proposed.

    order: for each bit of the old lane number the bit of the new one that it becomes.
    """

    before: Analysis
    order: Order

    @cached_property
    def after(self) -> Analysis:
        """The analysis with renumbered lanes, counted from the recorded requests."""
        return analyze_trace(trace_with_renumbered_lanes(self.before.trace, self.order), self.before.arch)

    @property
    def wavefronts(self) -> tuple[int, int]:
        """Wavefronts of all shared accesses, before and after."""
        return total(self.before, "wavefronts"), total(self.after, "wavefronts")

    @property
    def name(self) -> str:
        """`lanes transposed, as 8 x 4 become 4 x 8`."""
        turn = self.order[0]
        if self.order == tuple((bit + turn) % BITS for bit in range(BITS)):
            rows = 1 << turn
            return f"lanes transposed, as {rows} x {WARP // rows} become {WARP // rows} x {rows}"
        return "lanes in z-order" if self.order in Z_ORDERS else "lanes in another order"

    def instead(self, launch: Launch) -> Mapping[str, str] | None:
        """Replacements of `threadIdx.x` and `threadIdx.y`, by axis; None unless rows have a power of two of
        threads or whole warps.
        """
        width = launch.block[0]
        in_row = BITS if width % WARP == 0 else width.bit_length() - 1
        if width % WARP and (width != 1 << in_row or launch.block[1] % (WARP >> in_row)):
            return None
        axes = {"x": (0, in_row), "y": (in_row, BITS)}
        found = {}
        for axis, (first, end) in axes.items():
            if self.order[first:end] == AS_IT_IS[first:end]:
                continue
            old = f"threadIdx.{axis}"
            higher = axis == "y" or in_row == BITS  # in other blocks, if not in this one
            kept = [f"({old} & ~{(1 << end - first) - 1})"] if higher else []
            moved = [_piece(*piece) for piece in _pieces(self.order, first, end, in_row)]
            found[axis] = f"({' | '.join([*kept, *moved])})"
        return found


def renumber(analysis: Analysis) -> Renumbering | None:
    """The order of lanes with the fewest wavefronts, if fewer than now; none where lanes communicate."""
    trace = analysis.trace
    if not analysis.excess_wavefronts and not any(site.conflicts for site in analysis.sites):
        return None
    if trace.launch.threads % WARP or any(BETWEEN_LANES.search(entry[1]) for entry in trace.listing):
        return None
    sites = [
        number
        for number, site in enumerate(trace.sites)
        if site.space == "shared" and site.width > WORD and site.op in ("load", "store")
    ]
    rows = np.flatnonzero(np.isin(trace.site, sites))
    if any(site.unresolved or site.op.endswith("matrix") for site in trace.sites) or not len(rows):
        return None
    orders = sorted(permutations(range(BITS)), key=_complexity)  # the identity first
    costs = dict(zip(orders, _wavefronts(analysis, rows, orders), strict=True))
    best = min(orders, key=lambda order: (costs[order], _complexity(order)))
    return Renumbering(analysis, best) if costs[best] < costs[AS_IT_IS] else None


def trace_with_renumbered_lanes(trace: Trace, order: Order) -> Trace:
    """The trace with the lanes of each request permuted."""
    lanes = work_of(order)
    return replace(
        trace,
        addresses=trace.addresses[:, lanes],
        active=trace.active[:, lanes],
        partner=trace.partner[:, lanes],
        writers=np.zeros(0, np.int32),
    )


def work_of(order: Order) -> NDArray[np.int64]:
    """For each new lane the old one whose work it does, int64 [32]."""
    lane = np.arange(WARP)
    old = np.zeros(WARP, np.int64)
    for bit, place in enumerate(order):
        old |= (lane >> place & 1) << bit
    return old


def _wavefronts(analysis: Analysis, rows: NDArray[np.int64], orders: Sequence[Order]) -> list[int]:
    """Wavefronts of these rows of the trace for each order of lanes. Equal requests are counted once."""
    trace = analysis.trace
    lanes = np.stack([work_of(order) for order in orders])
    totals = np.zeros(len(orders), np.int64)
    for number in np.unique(trace.site[rows]).tolist():
        some, site = rows[trace.site[rows] == number], trace.sites[number]
        own = relative_to_lowest(trace.addresses[some], trace.active[some], LINE)
        first, of = distinct_rows(own)
        times = np.zeros(len(first), np.int64)
        np.add.at(times, of, trace.count[some])
        addresses = own[first][:, lanes]  # [distinct, orders, 32]
        active = addresses >= 0
        cost = shared_cost(np.maximum(addresses, 0), site.width, site.op, active, -1, analysis.arch)
        totals += times @ cost.wavefronts
    return [int(total) for total in totals]


def _complexity(order: Order) -> tuple[int, Order]:
    """Fewer pieces are simpler to write."""
    return len(list(_pieces(order, 0, BITS, BITS))), order


def _pieces(order: Order, first: int, end: int, in_row: int) -> Iterator[tuple[str, int, int, int]]:
    """The runs of bits of an axis: (source axis, first bit there, number of bits, first bit here).

    first, end: the axis's bits in the lane number. in_row: how many of them x has.
    """
    bit = first
    while bit < end:
        place, length = order[bit], 1
        last = in_row if place < in_row else BITS
        while bit + length < end and place + length < last and order[bit + length] == place + length:
            length += 1
        axis, start = ("x", place) if place < in_row else ("y", place - in_row)
        yield axis, start, length, bit - first
        bit += length


def _piece(axis: str, start: int, length: int, to: int) -> str:
    """`(threadIdx.x >> 1 & 15) << 0`, simplified."""
    name = f"threadIdx.{axis}"
    shifted = f"{name} >> {start}" if start else name
    taken = f"({shifted} & {(1 << length) - 1})"
    return f"{taken} << {to}" if to else taken


#: The axes that `threadIdx.x` is exchanged with.
PARTNERS = ("threadIdx.y", "threadIdx.z", "blockIdx.x", "blockIdx.y", "blockIdx.z")
#: The number of a thread in a grid of one dimension, as a term of a sum without blanks.
OF_GRID = re.compile(
    r"(?<![\w.*/%-])(?:(?:blockIdx\.x\*blockDim\.x|blockDim\.x\*blockIdx\.x)\+threadIdx\.x|"
    r"threadIdx\.x\+(?:blockIdx\.x\*blockDim\.x|blockDim\.x\*blockIdx\.x))(?![\w*/%])"
)
# Instructions by which the threads of a block wait for each other, or for those of others.
_TOGETHER = re.compile(r"(?<![\w.])(?:BAR|B2R|SYNCS|UCGABAR\w*|MEMBAR|ERRBAR|FENCE)\b")
_KERNELS = re.compile(r"\b__global__\b[^;{}]*\{")


@dataclass(frozen=True)
class Remapped:
    """A kernel whose threads do each other's work. name: how. before, analysis: both counts.

    job: of the edited kernel. asks: arrays that its caller has to keep in another layout. reorders: whether
    sums are in another order.
    """

    name: str
    before: Analysis
    edit: Edit
    job: Job
    analysis: Analysis
    asks: tuple[CallerLayout, ...] = ()
    reorders: bool = False

    @property
    def sectors(self) -> tuple[int, int]:
        """Sectors of all global accesses, before and after."""
        return total(self.before, "sectors"), total(self.analysis, "sectors")

    @property
    def wavefronts(self) -> tuple[int, int]:
        """Wavefronts of all shared accesses, before and after."""
        return total(self.before, "wavefronts"), total(self.analysis, "wavefronts")

    @property
    def is_known(self) -> bool:
        """Whether every access could be counted."""
        return not any(site.unresolved for site in self.analysis.sites)

    @property
    def helps(self) -> bool:
        """Whether it needs less of one and not more of the other."""
        pairs = self.sectors, self.wavefronts
        less = any(now < was for was, now in pairs)
        return self.is_known and less and all(now <= was for was, now in pairs)

    @property
    def saves(self) -> bool:
        """Whether it saves a quarter of the needless sectors or more, of other than local memory."""
        was, now = self.sectors
        needless = sum(one.needless_sectors or 0 for one in self.before.sites if one.space != "local")
        return self.is_known and was - now >= BADLY_COALESCED * needless


def replay_edit(
    name: str,
    job: Job,
    before: Analysis,
    edit: Edit | None,
    *,
    helping: bool = True,
    asks: tuple[CallerLayout, ...] = (),
    reorders: bool = False,
) -> Remapped | None:
    """An edit, compiled and replayed; None if there is none, or if it does not run.

    helping: None, too, unless it helps or saves sectors, before a time is estimated. asks: of the caller.
    """
    if edit is None:
        return None
    try:
        changed = with_text(job, edit.file, edit.new)
        if asks:
            changed = replace(changed, args=packed_arguments(job.values, asks))
        trace = trace_job(changed)
        made = Remapped(name, before, edit, changed, analyze_trace(trace, job.arch), asks, reorders)
        if helping and not made.helps and not made.saves:
            return None
        return replace(made, analysis=replace(made.analysis, estimate=estimate(changed, trace)))
    except MemsimError:
        return None  # a change that does not compile or run is not proposed


def remap_threads(job: Job, before: Analysis, lanes: Renumbering | None) -> tuple[Remapped, ...]:
    """The changes that help, compiled and replayed. lanes: the best order of lanes."""
    renumbered = None if lanes is None else _renumbered(job, lanes)
    return (*exchanges(job, before), *([renumbered] if renumbered is not None and renumbered.helps else []))


def exchanges(job: Job, before: Analysis) -> Iterator[Remapped]:
    """x exchanged with another axis, if a quarter of the sectors or more is unused; what helps."""
    launch, sectors = job.launch, total(before, "sectors")
    needless = sectors - total(before, "ideal_sectors")
    if launch.block[0] == 1 or not sectors or needless < BADLY_COALESCED * sectors:
        return
    for partner in PARTNERS:
        space, axis = partner.split("Idx.")
        of_blocks, extents = space == "block", launch.grid if space == "block" else launch.block
        if extents["xyz".index(axis)] == 1 or (of_blocks and not is_each_alone(before, job)):
            continue
        edit = rewrite_thread_indices(before, job, exchanged_indices(partner))
        if edit is None or (partner == "blockIdx.x" and not _is_beside(edit.text)):
            continue
        name = f"x and {axis} of the threads exchanged"
        name = f"x of the threads exchanged with {axis} of the blocks" if of_blocks else name
        done = replay_edit(name, job, before, replace(edit, among_blocks=of_blocks))
        if done is None or not done.helps:
            continue
        if not of_blocks:
            yield done
            return  # blocks stay as they are
        if done.saves and is_the_same(job, done.job):
            yield done


def exchanged_indices(partner: str) -> dict[str, str]:
    """What is written for both axes, right for every launch: neighbours become neighbours along the other."""
    extent = partner.replace("threadIdx", "blockDim").replace("blockIdx", "gridDim")
    wide = partner == "blockIdx.x"  # of more threads than 32 bits count
    number = f"({'(unsigned long long)' if wide else ''}{partner} * blockDim.x + threadIdx.x)"
    how = {"threadIdx.x": f"({number} / {extent})", partner: f"({number} % {extent})"}
    return {axis: f"(unsigned){text}" for axis, text in how.items()} if wide else how


def is_each_alone(before: Analysis, job: Job) -> bool:
    """Whether threads neither wait for each other nor share memory, in a launch that is known as a whole."""
    trace = before.trace
    shared = any(site.space == "shared" for site in trace.sites)
    both = BETWEEN_LANES, _TOGETHER
    together = any(each.search(text) for _, text, _, _ in trace.listing for each in both)
    return not shared and not together and trace.blocks_replayed == job.launch.blocks


def _is_beside(text: str) -> bool:
    """Whether a block's number is more than a part of its threads' numbers, exchanged only to their cost."""
    return "blockIdx.x" in OF_GRID.sub("", re.sub(r"\s", "", without_comments(text)))


def _renumbered(job: Job, lanes: Renumbering) -> Remapped | None:
    """Lanes in another order, in blocks whose rows are as long as this one's; in others as they are."""
    instead = lanes.instead(job.launch)
    if instead is None:
        return None
    width = job.launch.block[0]
    holds = f"blockDim.x == {width} && blockDim.y % {WARP // width} == 0" if width < WARP else ""
    holds = holds or f"blockDim.x % {WARP} == 0"
    named = {
        f"threadIdx.{axis}": f"({holds} ? {expression} : threadIdx.{axis})"
        for axis, expression in instead.items()
    }
    return replay_edit(lanes.name, job, lanes.before, rewrite_thread_indices(lanes.before, job, named))


def rewrite_thread_indices(before: Analysis, job: Job, instead: Mapping[str, str]) -> Edit | None:
    """With other expressions for indices of the kernel's threads; None if not all uses are seen."""
    text = before.trace.sources.get(job.kernel.file)
    if text is None:
        return None
    code = without_comments(text)
    body = body_of(code, before.trace.kernel)
    variables = {name.partition(".")[0] for name in instead}
    places = list(re.finditer(rf"\b({'|'.join(sorted(variables))})\b(?:\s*\.\s*([xyz])\b)?", code))
    unseen = {match[1] for match in places} != variables or any(match[2] is None for match in places)
    if unseen or not body[1]:
        return None
    kernels = _kernels(code)
    own = places if len(kernels) == 1 else [match for match in places if _is_in(match, [body])]
    if any(match not in own and not _is_in(match, kernels) for match in places):
        return None  # in functions or macros, of which kernels nobody knows
    new = tuple(
        Replacement(*match.span(), instead[f"{match[1]}.{match[2]}"])
        for match in own
        if f"{match[1]}.{match[2]}" in instead
    )
    names = tuple(f"blockDim.{axis}" for axis, extent in zip("xyz", job.launch.block) if extent > 1)
    return Edit(job.kernel.file, text, new, names=names, declared=body[0]) if new else None


def is_in_functions(code: str) -> bool:
    """Whether functions or macros use the numbers of threads or blocks, of which kernels nobody knows."""
    kernels = _kernels(code)
    return any(not _is_in(one, kernels) for one in re.finditer(r"\b(?:thread|block)Idx\b", code))


def _kernels(code: str) -> list[tuple[int, int]]:
    return [(one.end(), bracket_end(code, one.end(), "{")) for one in _KERNELS.finditer(code)]


def _is_in(match: re.Match[str], bodies: Sequence[tuple[int, int]]) -> bool:
    return any(start <= match.start() < end for start, end in bodies)
