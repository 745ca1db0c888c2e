"""Predictions of the values that the profiler shows for an instruction, by its own formulas.

None if there is no rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memsim.analysis.sites import LANES, LOOP, ranges_of_sites
from memsim.arch import SM_90, Arch
from memsim.arch.units import WARP
from memsim.counts import Count, Range, total
from memsim.instruction import condition_of, guard_of
from memsim.model import bypass_source_page, copy_source_page, global_source_page, shared_source_page
from memsim.model.choice import group_wavefronts, why_no_cost
from memsim.model.coalescing import local_access
from memsim.model.operations import operation
from memsim.model.sourcepage import UNKNOWN
from memsim.trace.trace import Trace
from memsim.trace.trace_data import AccessSite

EXECUTED = "inst_executed"
THREADS = "thread_inst_executed_true"
WAVEFRONTS = "memory_l1_wavefronts_shared"
SECTORS = "memory_l2_theoretical_sectors_global"
TAGS = "memory_l1_tag_requests_global"
LOCAL_SECTORS = "memory_l2_theoretical_sectors_local"
# Metrics of the Source page for each space, besides the two of every instruction.
FIGURES = {
    "shared": (WAVEFRONTS, f"{WAVEFRONTS}_ideal"),
    "global": (SECTORS, f"{SECTORS}_ideal", TAGS),
    "local": (LOCAL_SECTORS,),
    "constant": (),
    "texture": (),
}

#: Of each metric a number or limits; None: there is no rule.
Figures = dict[str, Count | None]


@dataclass(frozen=True, slots=True, eq=False)
class PredictedAccess:
    """One instruction: its site, and its distinct requests in columns as in a `Trace`.

    times: how often each occurred. rounds: of an instruction of a loop of compare-and-swaps, what
    `ranges_of_sites` knows; its requests are not all that it makes then.
    """

    site: AccessSite
    addresses: np.ndarray
    active: np.ndarray
    partner: np.ndarray
    times: np.ndarray
    rounds: Mapping[str, Range] | None = None


def access_name(site: AccessSite) -> str:
    """The name of its kind of access in `memsim.validate.profiles`, which does not distinguish atomics."""
    return operation(site.space, site.op).access


def accesses_of(trace: Trace, arch: Arch = SM_90) -> Iterator[PredictedAccess]:
    """The instructions of a launch that access memory; for a copy one for each side."""
    rounds = ranges_of_sites(trace, arch)
    by_site = np.argsort(trace.site, kind="stable")
    ends = np.searchsorted(trace.site[by_site], np.arange(len(trace.sites)), side="right")
    for number, (site, rows) in enumerate(zip(trace.sites, np.split(by_site, ends), strict=False)):
        requests = trace.addresses[rows], trace.active[rows], trace.partner[rows], trace.count[rows]
        yield PredictedAccess(site, *requests, rounds.get(number))


def predict(accesses: Iterable[PredictedAccess], arch: Arch) -> Figures:
    """The sum over some instructions, by ncu's names of the metrics of the Source page."""
    figures: Figures = {}
    for access in accesses:
        for name, value in _predict_one(access, arch).items():
            so_far = figures.get(name, 0)
            figures[name] = None if value is None or so_far is None else total((so_far, value))
    return figures


def unreliable(accesses: Iterable[PredictedAccess]) -> frozenset[str]:
    """Figures of an instruction that ncu 2025.3.1 shows wrong: those of some copies with a predicate.

    If it is P2 and warps compete, wavefronts, and of `.cg` sectors, are others in each run. If P0 says which
    lanes of a `.cg` write zeros, its wavefronts are those of a copy in which all of them do, and if warps
    compete, sectors are others in each run. Source: docs/model.md.
    """
    found: set[str] = set()
    for site in (access.site for access in accesses):
        copy, condition = operation(site.space, site.op), condition_of(site.instruction)
        if copy.is_copy and "P2" in (guard_of(site.instruction).lstrip("!"), condition):
            found |= {*FIGURES["shared"], *(FIGURES["global"][:2] if copy.bypass else ())}
        if copy.bypass and condition == "P0":
            found |= {*FIGURES["shared"], *FIGURES["global"][:2]}
    return frozenset(found)


def _predict_one(access: PredictedAccess, arch: Arch) -> Figures:
    site = access.site
    asked = operation(site.space, site.op)
    figures: Figures = {}
    if access_name(site) != "cp.async" or site.space == "shared":  # a copy is counted on its shared side
        lanes = np.count_nonzero(access.active, axis=1)
        if asked.matrix:  # all lanes of a warp take part, even if not all supply an address
            lanes = np.where(lanes > 0, WARP, 0)
        threads = None if site.unresolved else int(access.times @ lanes)
        figures = {EXECUTED: site.instructions, THREADS: threads}
    if access.rounds is not None:  # the trace has one possible order of warps, and of swaps the first rounds
        figures = {EXECUTED: total((access.rounds["instructions"],)), THREADS: total((access.rounds[LANES],))}
        if isinstance(figures[EXECUTED], Range):
            return {**figures, **dict.fromkeys(FIGURES[site.space])}
    elif site.op == LOOP:  # whose load was not found
        figures = dict.fromkeys(figures)
    if asked.unmade:
        figures = {}  # the profiler knows only the space that its lanes access
    kind = site.width, site.op, site.space
    if site.unresolved or why_no_cost(*kind, access.active, access.partner, arch):
        return {**figures, **dict.fromkeys(FIGURES[site.space])}
    if asked.grouped:
        return _group(access)
    if asked.remote or asked.engine:
        page: Figures = dict.fromkeys(FIGURES[site.space], 0 if asked.engine else None)
        return {EXECUTED: site.instructions, THREADS: site.lanes or None, **page}
    if not asked.is_counted:
        return {**figures, **_bypass(access, arch)}
    if site.space in ("constant", "texture"):
        return figures  # the page has no metrics of either
    page = {"shared": _shared, "global": _global, "local": _local}[site.space](access, arch)
    return {**figures, **(dict.fromkeys(page, 0) if asked.unmade else page)}


def _group(access: PredictedAccess) -> Figures:
    """Operands of wgmma: all threads of four warps take part, and the page has the chip's own wavefronts."""
    executed = access.site.instructions
    wavefronts = int(access.times.sum()) * group_wavefronts(access.site.width)
    return {EXECUTED: executed, THREADS: WARP * executed, **dict.fromkeys(FIGURES["shared"], wavefronts)}


def _shared(access: PredictedAccess, arch: Arch) -> Figures:
    width, op = access.site.width, access.site.op
    if operation("shared", op).is_copy:
        read = access.partner >= 0
        page = copy_source_page(access.addresses, access.partner, width, access.active, read, arch)
    else:
        page = shared_source_page(access.addresses, width, op, access.active, arch)
    return _sums(access, FIGURES["shared"], page.wavefronts, page.ideal)


def _global(access: PredictedAccess, arch: Arch) -> Figures:
    width, op = access.site.width, access.site.op
    page = global_source_page(access.addresses, width, op, access.active, arch)
    figures = _sums(access, FIGURES["global"], page.sectors, page.ideal, page.tag_requests)
    return figures | (_bypass(access, arch) if operation("global", op).bypass else {})


def _local(access: PredictedAccess, arch: Arch) -> Figures:
    cost = local_access(access.addresses, access.site.width, access.site.op, access.active, arch)
    return _sums(access, FIGURES["local"], cost.sectors)


def _bypass(access: PredictedAccess, arch: Arch) -> Figures:
    """`cp.async.cg`, on either side.

    ncu 2025.3.1 takes a guard P0 for false: `@P0` shows nothing, and `@!P0` all lanes, of which a trace lacks
    the addresses of those that are switched off.
    """
    space = access.site.space
    names = FIGURES["shared"] if space == "shared" else FIGURES["global"][:2]
    guard = guard_of(access.site.instruction)
    if guard == "P0":
        return dict.fromkeys(names, 0)
    every = access.active.all() and access.times.sum() == access.site.instructions
    if guard == "!P0" and not every:
        return dict.fromkeys(names)
    sides = access.addresses, access.partner
    to, source = sides if space == "shared" else sides[::-1]
    shared, outside = bypass_source_page(to, source, access.active, access.active & (source >= 0), arch)
    page = (shared.wavefronts, shared.ideal) if space == "shared" else (outside.sectors, outside.ideal)
    return _sums(access, names, *page)


def _sums(access: PredictedAccess, names: Sequence[str], *columns: np.ndarray) -> Figures:
    """Sums over all requests; None of all if one request's is not known."""
    is_known = not (columns[0] == UNKNOWN).any()
    return {name: int(access.times @ each) if is_known else None for name, each in zip(names, columns)}
