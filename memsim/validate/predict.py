"""Predictions in the profiler's terms, for each source line and kind of access, and the model's quantities
for the hardware's totals.

None if there is no rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from memsim.arch import Arch
from memsim.model import (
    bypass_source_page,
    copy_source_page,
    global_source_page,
    shared_source_page,
)
from memsim.model.choice import global_cost, shared_cost, why_no_cost
from memsim.model.constant import constant_access
from memsim.model.counters import QUANTITIES
from memsim.model.local import local_access
from memsim.model.operations import operation
from memsim.model.sourcepage import UNKNOWN
from memsim.trace.trace import AccessSite, Trace
from memsim.validate.sass import is_guarded

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
}

Figures = dict[str, int | None]


@dataclass(frozen=True, slots=True, order=True)
class LineAccess:
    """A source line and a kind of access on it, such as "shared load"."""

    file: str
    line: int
    access: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.access}"


@dataclass(frozen=True, slots=True, eq=False)
class DistinctRequests:
    """The distinct requests of an access, columns as in a `Trace`; `times`: how often each occurred."""

    addresses: np.ndarray
    active: np.ndarray
    partner: np.ndarray
    times: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class PredictedAccess:
    """One instruction: its site and its requests."""

    site: AccessSite
    requests: DistinctRequests


@dataclass(slots=True)
class Predicted:
    """Predictions, summed over some instructions.

    figures: by ncu's names; those of the Source page by the profiler's own formulas. quantities: for each
    (space, op), the input of `memsim.model.totals`: the hardware's counts.
    """

    figures: Figures = field(default_factory=dict)
    quantities: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)

    @property
    def wavefronts(self) -> int | None:
        """The hardware's wavefronts for the shared accesses, by the model; None if there are none."""
        shared = [sums["wavefronts"] for (space, _), sums in self.quantities.items() if space == "shared"]
        return sum(shared) if shared else None

    def add(self, other: Predicted) -> None:
        """Add another prediction to this one."""
        for name, value in other.figures.items():
            mine = self.figures.get(name, 0)
            self.figures[name] = None if value is None or mine is None else mine + value
        for key, sums in other.quantities.items():
            mine_of = self.quantities.setdefault(key, dict.fromkeys(sums, 0))
            for quantity, count in sums.items():
                mine_of[quantity] += count


def access_name(site: AccessSite) -> str:
    """The name of its kind of access in `memsim.validate.sass`, which does not distinguish atomics."""
    return operation(site.space, site.op).access


def accesses_of(trace: Trace) -> Iterator[PredictedAccess]:
    """The instructions of a launch that access memory; for a copy one for each side."""
    by_site = np.argsort(trace.site, kind="stable")
    ends = np.searchsorted(trace.site[by_site], np.arange(len(trace.sites)), side="right")
    for site, rows in zip(trace.sites, np.split(by_site, ends), strict=False):
        columns = trace.addresses, trace.active, trace.partner, trace.count
        yield PredictedAccess(site, DistinctRequests(*(column[rows] for column in columns)))


def accesses_by_place(trace: Trace) -> dict[LineAccess, list[PredictedAccess]]:
    """The instructions of a launch that access memory."""
    places: dict[LineAccess, list[PredictedAccess]] = {}
    for access in accesses_of(trace):
        place = LineAccess(access.site.file, access.site.line, access_name(access.site))
        places.setdefault(place, []).append(access)
    return places


def predict(accesses: Iterable[PredictedAccess], arch: Arch) -> Predicted:
    """The sum over some instructions."""
    predicted = Predicted()
    for access in accesses:
        predicted.add(_predict_one(access, arch))
    return predicted


def _predict_one(access: PredictedAccess, arch: Arch) -> Predicted:
    site, requests = access.site, access.requests
    figures: Figures = {}
    if (
        access_name(site) != "cp.async" or site.space == "shared"
    ):  # one instruction, counted on its shared side
        lanes = np.count_nonzero(requests.active, axis=1)
        if operation(site.space, site.op).matrix:
            lanes = np.where(
                lanes > 0, 32, 0
            )  # all lanes of a warp take part, even if not all supply an address
        figures = {EXECUTED: site.instructions, THREADS: None if site.unresolved else _sum(requests, lanes)}
    key = site.space, site.op
    if operation(*key).unmade:
        figures = {}  # the profiler knows only the space that its lanes access
    none = {key: dict.fromkeys(QUANTITIES[site.space], 0)}
    kind = access.site.width, site.op, site.space
    if site.unresolved or why_no_cost(requests.addresses, *kind, requests.active, requests.partner, arch):
        return Predicted({**figures, **dict.fromkeys(FIGURES[site.space])}, none)
    asked = operation(*key)
    if asked.grouped or asked.remote or (asked.engine and site.space == "shared"):
        return Predicted(_of_engine(site), none)
    if not asked.is_counted:
        return Predicted({**figures, **_bypass(access, arch)}, none)

    model = {"shared": _shared, "global": _global, "local": _local, "constant": _constant}[site.space]
    page, quantities = model(access, arch)
    if operation(*key).engine:
        return Predicted(_of_engine(site), {key: quantities})
    if asked.unmade:
        page = dict.fromkeys(page, 0)
    return Predicted({**figures, **page}, {key: quantities})


def _of_engine(site: AccessSite) -> Figures:
    """TMA copies, operands of four warps, and distributed shared memory: there are no rules."""
    return {EXECUTED: site.instructions, THREADS: None, **dict.fromkeys(FIGURES[site.space])}


def _shared(access: PredictedAccess, arch: Arch) -> tuple[Figures, dict[str, int]]:
    """Of guarded copies ncu 2025.3.1 loses some wavefronts when warps compete, others in each run."""
    requests, width, op = access.requests, access.site.width, access.site.op
    if operation("shared", op).is_copy:
        read = requests.partner >= 0
        page = copy_source_page(requests.addresses, requests.partner, width, requests.active, read, arch)
    else:
        page = shared_source_page(requests.addresses, width, op, requests.active, arch)
    known = not (page.wavefronts == UNKNOWN).any()
    known &= not (operation("shared", op).is_copy and is_guarded(access.site.instruction))
    columns = zip(FIGURES["shared"], (page.wavefronts, page.ideal), strict=True)
    cost = shared_cost(requests.addresses, width, op, requests.active, requests.partner, arch)
    return (
        {name: _sum(requests, column) if known else None for name, column in columns},
        {"wavefronts": _sum(requests, cost.wavefronts), "conflicts": _sum(requests, cost.conflicts)},
    )


def _global(access: PredictedAccess, arch: Arch) -> tuple[Figures, dict[str, int]]:
    requests, width, op = access.requests, access.site.width, access.site.op
    page = global_source_page(requests.addresses, width, op, requests.active, arch)
    columns = zip(FIGURES["global"], (page.sectors, page.ideal, page.tag_requests), strict=True)
    figures: Figures = {name: _sum(requests, column) for name, column in columns}
    if operation("global", op).bypass:
        figures |= _bypass(access, arch)
    cost = global_cost(requests.addresses, width, op, requests.active, requests.partner, arch)
    return (
        figures,
        {
            "requests": _sum(requests, np.count_nonzero(requests.active, axis=1) > 0),
            "sectors": _sum(requests, cost.sectors),
            "lines": _sum(requests, cost.lines),
        },
    )


def _local(access: PredictedAccess, arch: Arch) -> tuple[Figures, dict[str, int]]:
    requests = access.requests
    cost = local_access(requests.addresses, access.site.width, access.site.op, requests.active, arch)
    sectors = _sum(requests, cost.sectors)
    return {LOCAL_SECTORS: sectors}, {"requests": _sum(requests, cost.requests), "sectors": sectors}


def _constant(access: PredictedAccess, arch: Arch) -> tuple[Figures, dict[str, int]]:
    """The page has no metrics of constants."""
    requests = access.requests
    made = constant_access(requests.addresses, access.site.width, access.site.op, requests.active, arch)
    return {}, {"requests": _sum(requests, made)}


def _bypass(access: PredictedAccess, arch: Arch) -> Figures:
    """`cp.async.cg`, on either side; unknown for PTX, and if guarded."""
    requests, space = access.requests, access.site.space
    names = FIGURES["shared"] if space == "shared" else FIGURES["global"][:2]
    if access.site.address < 0 or is_guarded(access.site.instruction):
        return dict.fromkeys(names)
    sides = requests.addresses, requests.partner
    to, source = sides if space == "shared" else sides[::-1]
    shared, outside = bypass_source_page(to, source, requests.active, requests.active & (source >= 0), arch)
    page = (shared.wavefronts, shared.ideal) if space == "shared" else (outside.sectors, outside.ideal)
    known = not (page[0] == UNKNOWN).any()
    return {name: _sum(requests, column) if known else None for name, column in zip(names, page, strict=True)}


def _sum(requests: DistinctRequests, column: np.ndarray) -> int:
    return int(requests.times @ column)
