"""A block's tile of an array and its halo, staged in shared memory: what stencils and filters need.

Threads that read a neighbourhood of their element, `in[(y + dy) * width + x + dx]`, begin anywhere in a
sector, and ask for the same sectors again and again. In the edit the block loads its rows once, from the
beginning of their first sector to the end of their last one, and reads them from shared memory, also where it
fills a tile of its own from them. Blocks that need more than fits do as before. Nothing outside of what the
block reads is loaded, but in the same sector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memsim.analysis import Analysis
from memsim.api.sanitizing import sanitize_job
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.sanitizer.hazards import BOUNDS
from memsim.suggest.c_text import names_in
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.global_accesses import wastes_sectors
from memsim.suggest.halo_reads import Read, ReadsOfFile, ReadsOfFunction, Row
from memsim.suggest.halo_tiles import LOAD, HaloTile
from memsim.suggest.index_ends import NotKnown
from memsim.suggest.kernel_tree import wasting_files
from memsim.suggest.proposals import shared_end
from memsim.suggest.prove import is_the_same, source_of
from memsim.suggest.threads import Remapped, replayed

NAME = "tiles and their halos staged in shared memory"


def halos(job: Job, before: Analysis) -> tuple[Remapped, ...]:
    """The edit, compiled and replayed; if it saves a quarter of the needless sectors, nothing differs, and
    nothing outside of an array is read.
    """
    if source_of(job) is None:
        return ()
    edits = (_edit(ReadsOfFile(before, job, file)) for file in wasting_files(before, wastes_sectors))
    tried = (replayed(NAME, job, before, edit) for edit in edits)
    found = {done.edit: done for done in tried if done is not None and done.saves}
    return tuple(one for one in found.values() if is_the_same(job, one.job) and _is_inside(one.job))


def _is_inside(job: Job) -> bool:
    """Whether no access leaves its array."""
    try:
        return not sanitize_job(job, tools=(BOUNDS,)).findings
    except MemsimError:
        return False


def _edit(file: ReadsOfFile) -> Edit | None:
    """The file with tiles for all arrays that need them; None if there is none, or if they do not fit."""
    if LOAD in file.text:
        return None
    tiles = [(function, _tiles_of(function)) for function in file.functions]
    every = [tile for _, some in tiles for tile in some]
    room = file.before.arch.static_shared_bytes - shared_end(file.before.trace)
    if not every or sum(tile.bytes for tile in every) > room:
        return None
    replaced = [one for tile in every for one in tile.replaced()]
    changed = [(function.node, some) for function, some in tiles if some]
    for node, some in changed:
        lines = [line for tile in some for line in tile.lines()]
        start, indent = file.opening(node), file.indent(node.start_byte) + "    "
        text = "".join(f"\n{indent}{line}" for line in (*lines, "__syncthreads();"))
        replaced.append(Replacement(start, start, text))
    replaced.append(file.added(LOAD, (node for node, _ in changed)))
    known = {*file.constants, *file.sizes, *file.template}
    names = (name for one in replaced for name in names_in(one.new) if name in known)
    return file.edit(replaced, (*(f"blockDim.{axis}" for axis in "xyz"), *names))


def _tiles_of(function: ReadsOfFunction) -> list[HaloTile]:
    """Of each array, with the distance from row to row with which all reads that need a tile take least."""
    found = []
    for array, kind, size, reads in function.of_arrays():
        terms = [
            term for one in reads for term in one.flat.terms if not all(atom.is_uniform for atom in term[0])
        ]
        parts = ((tuple(atom for atom in atoms if atom.is_uniform), abs(factor)) for atoms, factor in terms)
        rows: list[Row] = [((), 0), *dict.fromkeys(parts)]
        ways = [_tiles(HaloTile(function, array, kind, size, row, ()), reads) for row in rows]
        most = max(sum(len(tile.reads) for tile in some) for some in ways)
        best = (some for some in ways if sum(len(tile.reads) for tile in some) == most)
        found += min(best, key=lambda some: sum(tile.bytes for tile in some))
    return found


def _tiles(empty: HaloTile, reads: Sequence[Read]) -> list[HaloTile]:
    """Reads that are near each other together, as far as they need a tile."""
    found: list[HaloTile] = []
    for read in reads:
        alone = replace(empty, reads=(read,), number=len(found))
        try:
            for place, tile in enumerate(found):
                both = tile.joined(alone)
                alike = tile.reads[0].conditions == read.conditions
                if alike and both.elements <= tile.elements + alone.elements:
                    found[place] = both
                    break
            else:
                found += [alone] if alone.elements else []
        except (NotKnown, KeyError, ZeroDivisionError):
            continue
    return [tile for tile in found if _needs(tile)]


def _needs(tile: HaloTile) -> bool:
    try:
        return tile.is_halo
    except (NotKnown, KeyError, ZeroDivisionError):
        return False
