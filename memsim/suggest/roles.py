"""The roles of `threadIdx.x` and `threadIdx.y` exchanged: the same threads, in other warps.

In: a launch whose global accesses move much that nobody needs. Out: an `Exchange`, whose counts are those of
the edited kernel, compiled and replayed; nothing is forecast. Left out on purpose: other orders of the lanes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from memsim.analysis import BADLY_COALESCED, Analysis
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.source import without_comments
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.prove import edited, replayed

ROLE = re.compile(r"\b(?:threadIdx|blockDim)\b(?:\s*\.\s*([xyz])\b)?")
OTHER = {"x": "y", "y": "x"}


@dataclass(frozen=True)
class Exchange:
    """A kernel in which x and y have changed places. before, analysis: what both cost.

    job: of the edited kernel, with the block that it needs: x and y exchanged too.
    """

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


def exchange(job: Job, before: Analysis) -> Exchange | None:
    """The exchange, if it moves fewer sectors and takes no more wavefronts.

    It is tried where a quarter of the sectors or more is not needed, and the block has more than one row.
    """
    block, sectors = job.launch.block, total(before, "sectors")
    needless = sectors - total(before, "ideal_sectors")
    if min(block[:2]) == 1 or not sectors or needless < BADLY_COALESCED * sectors:
        return None
    edit = exchanged(before, job)
    if edit is None:
        return None
    changed = edited(job, edit, replace(job.launch, block=(block[1], block[0], block[2])))
    try:
        analysis = replayed(changed)
    except MemsimError:
        return None  # what does not compile or run otherwise is no proposal
    found = Exchange(before, edit, changed, analysis)
    fewer = found.sectors[1] < found.sectors[0] and found.wavefronts[1] <= found.wavefronts[0]
    known = not any(site.unresolved for site in analysis.sites)
    return found if fewer and known else None


def exchanged(before: Analysis, job: Job) -> Edit | None:
    """The source with x and y exchanged wherever the kernel asks for its thread.

    None where not all such places are seen: other functions that may be called ask too, or the whole
    `threadIdx` is handed on.
    """
    text = before.trace.sources.get(job.kernel.file)
    if text is None:
        return None
    code = without_comments(text)
    body = _body(code, before.trace.kernel.partition("<")[0].rpartition("::")[2])
    places = list(ROLE.finditer(code))
    if body is None or not places or any(match[1] is None for match in places):
        return None
    inside = [match for match in places if body[0] <= match.start() < body[1]]
    alone = len(re.findall(r"\b__global__\b", code)) == 1
    if len(inside) < len(places) and not alone and re.search(r"\b__device__\b", code):
        return None
    changed = [match for match in (places if alone else inside) if match[1] in OTHER]
    new = tuple(Replacement(*match.span(1), OTHER[match[1]]) for match in changed)
    return Edit(job.kernel.file, text, new) if new else None


def _body(code: str, kernel: str) -> tuple[int, int] | None:
    """Where the definition of a kernel stands; None if it is not found."""
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
