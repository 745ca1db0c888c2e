"""Threads that do each other's work: the same threads in other warps, or in another order of lanes.

The edited source is compiled and replayed. Two changes are tried: `threadIdx.x` and `threadIdx.y` exchanged,
if many of the bytes moved for global accesses are unused, and lanes renumbered
(`memsim.suggest.renumbering`), if wide shared accesses could share wavefronts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from memsim.analysis import BADLY_COALESCED, Analysis
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.launch import Launch
from memsim.source.text import without_comments
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.prove import edit_job, replay_job, source_of
from memsim.suggest.renumbering import Renumbering

ROLE = re.compile(r"\b(threadIdx|blockDim)\b(?:\s*\.\s*([xyz])\b)?")
EXCHANGED = {
    f"{variable}.{axis}": f"{variable}.{other}"
    for variable in ("threadIdx", "blockDim")
    for axis, other in ("xy", "yx")
}


@dataclass(frozen=True)
class Remapped:
    """A kernel whose threads do each other's work. name: how. before, analysis: both counts.

    job: of the edited kernel, with the block that it needs.
    """

    name: str
    before: Analysis
    edit: Edit
    job: Job
    analysis: Analysis

    @property
    def sectors(self) -> tuple[int, int]:
        """Sectors of all global accesses, before and after."""
        return total(self.before, "sectors"), total(self.analysis, "sectors")

    @property
    def wavefronts(self) -> tuple[int, int]:
        """Wavefronts of all shared accesses, before and after."""
        return total(self.before, "wavefronts"), total(self.analysis, "wavefronts")

    @property
    def helps(self) -> bool:
        """Whether it needs less of one and not more of the other."""
        (sectors, sectors_now), (wavefronts, wavefronts_now) = self.sectors, self.wavefronts
        less = sectors_now < sectors or wavefronts_now < wavefronts
        known = not any(site.unresolved for site in self.analysis.sites)
        return known and less and sectors_now <= sectors and wavefronts_now <= wavefronts


def remap_threads(job: Job, before: Analysis, lanes: Renumbering | None) -> tuple[Remapped, ...]:
    """The changes that help, compiled and replayed. lanes: the best order of lanes."""
    found = (exchange(job, before), None if lanes is None else _renumbered(job, lanes))
    return tuple(each for each in found if each is not None and each.helps)


def exchange(job: Job, before: Analysis) -> Remapped | None:
    """x and y exchanged: if a quarter of the sectors or more is unused and blocks have rows."""
    block, sectors = job.launch.block, total(before, "sectors")
    needless = sectors - total(before, "ideal_sectors")
    if min(block[:2]) == 1 or not sectors or needless < BADLY_COALESCED * sectors:
        return None
    launch = replace(job.launch, block=(block[1], block[0], block[2]))
    return _replayed("x and y of the threads exchanged", job, before, EXCHANGED, launch)


def _renumbered(job: Job, lanes: Renumbering) -> Remapped | None:
    instead = lanes.instead(job.launch)
    if instead is None:
        return None
    named = {f"threadIdx.{axis}": expression for axis, expression in instead.items()}
    return _replayed(lanes.name, job, lanes.before, named, job.launch)


def _replayed(
    name: str, job: Job, before: Analysis, instead: Mapping[str, str], launch: Launch
) -> Remapped | None:
    """The kernel with other expressions for its thread indices; None if it cannot be built."""
    edit = rewrite_thread_indices(before, job, instead) if source_of(job) is not None else None
    if edit is None:
        return None
    changed = edit_job(job, edit, launch)
    try:
        return Remapped(name, before, edit, changed, replay_job(changed))
    except MemsimError:
        return None  # a change that does not compile or run is not proposed


def rewrite_thread_indices(before: Analysis, job: Job, instead: Mapping[str, str]) -> Edit | None:
    """The source with other expressions wherever the kernel uses its thread index.

    None if some uses are not visible: called functions use it too, or the whole `threadIdx` is passed on.
    """
    text = before.trace.sources.get(job.kernel.file)
    if text is None:
        return None
    code = without_comments(text)
    body = _body(code, before.trace.kernel.partition("<")[0].rpartition("::")[2])
    places = list(ROLE.finditer(code))
    if body is None or not places or any(match[2] is None for match in places):
        return None
    inside = [match for match in places if body[0] <= match.start() < body[1]]
    alone = len(re.findall(r"\b__global__\b", code)) == 1
    if len(inside) < len(places) and not alone and re.search(r"\b__device__\b", code):
        return None
    new = tuple(
        Replacement(*match.span(), instead[f"{match[1]}.{match[2]}"])
        for match in (places if alone else inside)
        if f"{match[1]}.{match[2]}" in instead
    )
    return Edit(job.kernel.file, text, new) if new else None


def _body(code: str, kernel: str) -> tuple[int, int] | None:
    """The span of a kernel's definition; None if it is not found."""
    head = re.search(rf"\b__global__\b[^;{{}}]*\b{re.escape(kernel)}\s*\([^;{{}}]*\{{", code)
    if head is None:
        return None
    depth = 1
    for brace in re.compile(r"[{}]").finditer(code, head.end()):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return head.start(), brace.end()
    return None


def total(analysis: Analysis, quantity: str) -> int:
    """The sum of a count over all rows that have it."""
    return sum(getattr(site, quantity) or 0 for site in analysis.sites)
