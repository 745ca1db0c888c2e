"""Blocks of another shape, as an edit of the host code, where rows are too short for a sector or the banks.

`dim3 block(4, 64)` moves 32 bytes for 16, and a tile of 16 columns has two rows in the banks at once. Edited
are the numbers that the launch in the same file has its block from, and its grid, where that has them as
numbers too. What the file launches then is read from it as before, which shows that its grid follows, also
where this launch is of other data; it is compiled, replayed, and run: its results have to be the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from memsim.analysis import BADLY_COALESCED, Analysis
from memsim.arch.units import WARP
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.launch import Launch, dim3
from memsim.source.launches import LaunchSource, launches
from memsim.source.text import without_comments
from memsim.source.values import changes, definition
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.prove import differing_results, integer_arguments
from memsim.suggest.ranking import Verdict, verdict
from memsim.suggest.threads import Remapped, replayed, total

MOST = 1024  # threads of a block


def other_blocks(job: Job, before: Analysis) -> tuple[Remapped, ...]:
    """The launch by blocks of another shape, with the same results; those that waste less and do not cost."""
    text = before.trace.sources.get(job.kernel.file, "")
    whole = before.trace.blocks_replayed == job.launch.blocks
    if "<<<" not in text or not whole or job.launch.block[2] > 1:
        return ()
    found: list[Remapped] = []
    for block in _shapes(before, *job.launch.block[:2]):
        edit, launch = _edited(job, text, block)
        done = replayed(f"blocks of {block[0]} x {block[1]} threads", job, before, edit, launch)
        if done is None or not _wastes_less(done) or verdict(before, done.analysis) is Verdict.SLOWER:
            continue
        with suppress(MemsimError):  # a change that does not run is not proposed
            found += [] if differing_results(job, done.job) else [done]
    return tuple(found)


def _shapes(before: Analysis, columns: int, rows: int) -> Iterator[tuple[int, int]]:
    """Rows of a warp: of as many threads, or of a block that is a square as before."""
    needless, sectors = (total(before, name) for name in ("needless_sectors", "sectors"))
    wasted = needless >= BADLY_COALESCED * max(sectors, 1)
    if columns >= WARP or rows == 1 or not (wasted or before.conflicts):
        return
    if columns == rows and WARP * WARP <= MOST:
        yield WARP, WARP
    elif columns * rows % WARP == 0:
        yield WARP, columns * rows // WARP


def _wastes_less(done: Remapped) -> bool:
    def wasted(analysis: Analysis) -> tuple[int, int]:
        return total(analysis, "needless_sectors"), analysis.conflicts or 0

    was, now = wasted(done.before), wasted(done.analysis)
    less = any(2 * after <= before and before for before, after in zip(was, now))
    return less and all(after <= before for before, after in zip(was, now))


def _launch_of(job: Job, text: str) -> LaunchSource | None:
    """The launch of a job's kernel in a text, where it is the only one and its sizes are known."""
    title = job.loaded.title.partition("<")[0].rpartition("::")[2]
    ours = [one for one in launches(text) if one.plain == title and not one.file]
    names = dict(zip(job.loaded.argument_names, ours[0].arguments)) if len(ours) == 1 else {}
    given = tuple(
        (names[name], value)
        for name, value in integer_arguments(job).items()
        if re.fullmatch(r"[A-Za-z_]\w*", names.get(name, ""))
    )
    found = [one for one in launches(text, given) if one.plain == title and not one.file]
    known = len(found) == 1 and all(size.value for size in (*found[0].grid, *found[0].block))
    return found[0] if known else None


def _sizes(launch: LaunchSource) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    grid, block = (dim3(tuple(size.value or 1 for size in sizes)) for sizes in (launch.grid, launch.block))
    return grid, block


def _edited(job: Job, text: str, block: tuple[int, int]) -> tuple[Edit | None, Launch | None]:
    """The file with another block, and what it launches then, on as many threads along each axis.

    The grid's numbers change where it does not follow from the block by itself.
    """
    now = _launch_of(job, text)
    if now is None or len(now.block) != 2 or _sizes(now)[1] != job.launch.block:
        return None, None
    code = without_comments(text)
    of_block = list(_in_block(code, now, block))
    others = [one for one in launches(text) if one.plain != now.plain]
    if not of_block or (others and any(definition(code, size.text) for size in now.block)):
        return None, None  # a constant that is of other kernels, too
    of_grid = [
        list(_in_grid(code, *each)) for each in zip((each.text for each in now.grid), job.launch.block, block)
    ]
    for axes in ((), (0,), (1,), (0, 1)):
        more = [change for axis in axes if axis < len(of_grid) for change in of_grid[axis]]
        changes = sorted({*of_block, *more}, key=lambda each: each.start)
        edit = Edit(job.kernel.file, text, tuple(changes), brings_launch=True, among_blocks=True)
        after = _launch_of(job, edit.new)
        if after is not None and _sizes(after)[1] == (*block, 1):
            grids = [_sizes(one)[0] for one in (now, after)]
            if [one for one in launches(edit.new) if one.plain != now.plain] != others:
                continue
            if all(map(_covers, grids[0], job.launch.block, grids[1], (*block, 1))):
                old = zip(job.launch.grid, job.launch.block, (*block, 1))
                whole = dim3(tuple(-(-blocks * threads // new) for blocks, threads, new in old))
                grid = grids[1] if grids[0] == job.launch.grid else whole  # of other data than the file's
                return edit, replace(job.launch, grid=grid, block=(*block, 1))
    return None, None


def _covers(blocks: int, threads: int, blocks_now: int, threads_now: int) -> bool:
    """Whether a grid of other blocks is as large along an axis, but for the last block."""
    whole = blocks * threads
    return blocks_now * threads_now > whole - threads and (blocks_now - 1) * threads_now < whole


def _in_block(code: str, now: LaunchSource, block: tuple[int, int]) -> Iterator[Replacement]:
    """The numbers of a block: of constants, or in `dim3 block(4, 64)`, if it is in the code once."""
    texts = r"\s*,\s*".join(f"({re.escape(size.text)})" for size in now.block)
    made = list(re.finditer(rf"\bdim3\s*\w*\s*(?:=\s*dim3\s*)?[({{]\s*{texts}\s*[)}}]", code))
    for axis, (size, new) in enumerate(zip(now.block, block)):
        place = definition(code, size.text) or _variable(code, size.text, now.line)
        if place is None and size.text.isdecimal() and len(made) == 1:
            place = made[0].span(axis + 1)
        if place is not None:
            yield Replacement(*place, str(new))


def _variable(code: str, name: str, line: int) -> tuple[int, int] | None:
    """The number that a variable of the function around a line has all the time."""
    at = sum(map(len, code.splitlines(keepends=True)[:line]))
    start, end = code.rfind("\n}", 0, at), code.find("\n}", at)
    inside = code[start:end]
    found = re.search(rf"\b{name}\s*=\s*(\d+)\s*[;,]", inside) if name.isidentifier() else None
    if found is None or changes(name, inside) != 1:
        return None
    return start + found.start(1), start + found.end(1)


def _in_grid(code: str, text: str, old: int, new: int) -> Iterator[Replacement]:
    """The numbers of `(w + 15) / 16` of a grid, where it is in the code once."""
    places = [one.start() for one in re.finditer(re.escape(text), code)]
    for match in re.finditer(r"\b\d+\b", text) if len(places) == 1 else ():
        if int(match[0]) in (old, old - 1):
            instead = str(new if int(match[0]) == old else new - 1)
            yield Replacement(places[0] + match.start(), places[0] + match.end(), instead)
