"""Suggestions as text: each before and after, in the banks, and as code to paste."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from memsim.arch.units import BANKS
from memsim.suggest.edit import Edit
from memsim.suggest.proposals import Advice, Proposal
from memsim.suggest.prove import Proof
from memsim.suggest.suggestions import Suggestions
from memsim.suggest.threads import Remapped
from memsim.views.labels import access, count
from memsim.views.suggest.advice import room_of
from memsim.views.suggest.by_hand import ARROW, by_hand
from memsim.views.suggest.data import BeforeAndAfter, picture
from memsim.views.suggest.layout_changes import change_name, formula

MOST_LINES = 24  # changed lines that are shown of a proposal
MOST_SITES = 12  # rows of the table before and after


def render(found: Suggestions) -> str:
    """The whole answer: the first line says what can be saved, the last what was proven."""
    lines = [headline(found)]
    if found.analysis.bound.has_instructions and found.analysis.bound.units:
        lines.append(f"Bound: {found.analysis.bound.verdict}")  # whether a cure can shorten the launch at all
    numbers = {id(each): number for number, each in enumerate(found.proposals, 1)}
    for entry in found.advice:
        if entry.conflicts or entry.why_not:
            lines += ["", *_array(entry)]
        for each in entry.proposals:
            first = each is entry.proposals[0]
            lines += ["", *_proposal(each, numbers[id(each)], whole=first)]
    for number, remap in enumerate(found.remapped, len(found.proposals) + 1):
        lines += ["", *_remapped(remap, number)]
    for cure in by_hand(found):
        lines += ["", *cure]
    ending = list(_ending(found))
    lines += ["", *ending] if ending else []
    return "\n".join(line.rstrip() for line in lines)


def headline(found: Suggestions) -> str:
    """What other layouts can save, in one line."""
    sites = [site for site in found.analysis.sites if site.space == "shared"]
    wavefronts = sum(site.wavefronts or 0 for site in sites)
    conflicts = sum(entry.conflicts for entry in found.advice)
    kernel = found.analysis.trace.kernel
    if not conflicts:
        nothing = "no bank conflict, so no other layout saves a wavefront"
        rest = [*map(_saved_by_threads, found.remapped)] or [*_needless(found)]
        return f"{kernel}: {'; '.join([nothing, *rest])}"
    forecast = {
        entry.tile.name: entry.wavefronts - entry.proposals[0].cost.most
        for entry in found.advice
        if entry.proposals
    }
    proof = found.proof
    saved = sum(forecast.values()) if proof is None else proof.saved
    names = " and ".join(forecast if proof is None else proof.counted)
    of = f"{conflicts:,} of {wavefronts:,} shared wavefronts are bank conflicts"
    if not saved:
        return f"{kernel}: {of}, and no layout tried saves any"
    all_of = "all of them" if saved == conflicts else f"{saved:,} of them"
    return f"{kernel}: {of}; another layout of {names} saves {all_of}"


def _needless(found: Suggestions) -> Iterator[str]:
    """The global sectors that nothing here saves."""
    sites = [site for site in found.analysis.sites if site.space == "global"]
    moved = sum(site.needless_sectors for site in sites)
    if moved and not any(by_hand(found)):
        of = f"{moved:,} of {sum(site.sectors or 0 for site in sites):,} global sectors are not needed"
        yield f"{of}, and no change that memsim tries saves any (memsim explain shows why they are moved)"


def _saved_by_threads(found: Remapped) -> str:
    (sectors, sectors_now), (wavefronts, wavefronts_now) = found.sectors, found.wavefronts
    if sectors_now < sectors:
        saved = f"{sectors - sectors_now:,} of {sectors:,} global sectors are"
    else:
        saved = f"{wavefronts - wavefronts_now:,} of {wavefronts:,} shared wavefronts are"
    return f"{saved} saved with {found.name}"


def _array(entry: Advice) -> Iterator[str]:
    tile = entry.tile
    shape = "" if tile.shape is None else "".join(f"[{extent}]" for extent in tile.shape.extents)
    yield (
        f"{tile.name}{shape}, {tile.size:,} B: {entry.wavefronts:,} wavefronts, "
        f"{entry.conflicts:,} of them bank conflicts"
    )
    if entry.why_not:
        yield f"  No other layout was tried: {entry.why_not}."
    elif entry.least == entry.wavefronts:
        yield "  No layout can take fewer: these lanes conflict wherever the data is placed."
    elif not entry.proposals:
        yield (
            f"  None of {entry.tried:,} layouts takes fewer; no layout at all can take fewer than "
            f"{entry.least:,}."
        )
    else:
        best = entry.proposals[0].cost.most
        limit = (
            "no layout can take fewer for these requests"
            if best == entry.least
            else f"no layout at all can take fewer than {entry.least:,}"
        )
        yield f"  {entry.tried:,} layouts tried; the best takes {best:,} wavefronts: {limit}."


def _proposal(each: Proposal, number: int, whole: bool) -> Iterator[str]:
    after = f"{each.cost.most:,}" if each.cost.certain else f"{each.cost.wavefronts:,} to {each.cost.most:,}"
    yield f"{number}. {each.tile.name}, {change_name(each.change, each.tile)}"
    yield f"   {each.now.most:,} {ARROW} {after} wavefronts, {room_of(each)}"
    if each.cost.sectors != each.now.sectors:
        yield f"   {each.now.sectors:,} {ARROW} {each.cost.sectors:,} global sectors of its copies"
    if whole:
        yield ""
        yield from (f"   {line}" for line in _table(each))
        yield ""
        yield from (f"   {line}" for line in _drawing(picture(each)))
    yield ""
    yield from (f"   {line}" for line in _paste(each))


def _table(each: Proposal) -> list[str]:
    """The accesses of the array: wavefronts and ways, before and after."""
    rows = [("where", "access", "wavefronts", "ways")]
    shown = each.tile.sites[:MOST_SITES]
    for number in shown:
        old, new = each.before.sites[number], each.after.sites[number]
        rows.append(
            (
                f"{PurePath(old.file).name}:{old.line}",
                access(old),
                f"{old.wavefronts or 0:,} {ARROW} {new.wavefronts or 0:,}",
                f"{old.max_ways} {ARROW} {new.max_ways}",
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    more = len(each.tile.sites) - len(shown)
    return [*lines, f"and {count(more, 'more row')}"] if more else lines


def _drawing(drawn: BeforeAndAfter) -> Iterator[str]:
    """The worst request in the banks, then the layout around it; both before and after."""
    site = drawn.request.origin.row
    yield f"Words each bank serves for the worst request of line {site.line}:"
    yield "bank    " + "".join(f"{'' if bank % 4 else bank:>3}" for bank in range(BANKS))
    for label, words in zip(("before", "after"), drawn.words.tolist(), strict=True):
        yield f"{label:8}" + "".join(f"{word or '.':>3}" for word in words)
    yield ""
    side = 4 * len(drawn.columns)
    piece = "word" if drawn.unit == 4 else f"{drawn.unit} B"
    yield f"The bank of each {piece}; * accessed by that request:"
    yield f"{'row':>8}  {'before':{side}}  {'after':{side}}"
    for row, old, new, asked in zip(
        drawn.rows.tolist(), *drawn.banks.tolist(), drawn.asked.tolist(), strict=True
    ):
        halves = (
            "".join(f"{bank:>3}{'*' if on else ' '}" for bank, on in zip(half, asked)) for half in (old, new)
        )
        yield f"{row:>8}  " + "  ".join(halves)
    columns = drawn.columns.tolist()
    if columns != list(range(len(columns))) or drawn.unit > 4:
        yield f"{'':8}  columns {', '.join(str(column * drawn.unit // 4) for column in columns)} (words)"


def _paste(each: Proposal) -> Iterator[str]:
    if each.edit is None:
        yield f"By hand: the byte at offset o of {each.tile.name} goes to {formula(each.change)},"
        yield "at every place that stores to it or loads from it:"
        lines = dict.fromkeys((each.before.sites[n].file, each.before.sites[n].line) for n in each.tile.sites)
        yield f"  {', '.join(f'{PurePath(file).name}:{line}' for file, line in lines)}"
        if each.extra:
            yield f"The array grows by {each.extra:,} B."
        return
    yield from _lines(each.edit)
    if each.more_dynamic:
        yield f"Launch it with {each.more_dynamic:,} B more dynamic shared memory."


def _lines(edit: Edit) -> Iterator[str]:
    """The changed lines, old and new."""
    for each in edit.lines[:MOST_LINES]:
        where = f"{PurePath(each.file).name}:{each.line}"
        yield f"{where}  - {each.old.strip()}"
        yield f"{'':{len(where)}}  + {each.new.strip()}"
    more = len(edit.lines) - MOST_LINES
    if more > 0:
        yield f"and {count(more, 'line')} more"


def _remapped(found: Remapped, number: int) -> Iterator[str]:
    """Threads that do each other's work."""
    yield f"{number}. {found.name}"
    counts = [
        f"{before:,} {ARROW} {after:,} {what}"
        for (before, after), what in ((found.sectors, "global sectors"), (found.wavefronts, "wavefronts"))
        if before != after
    ]
    yield f"   {', '.join(counts)}; compiled and replayed"
    block = found.job.launch.block
    if block != found.before.trace.launch.block:
        yield f"   Launch it with a block of {block[0]} x {block[1]} x {block[2]}."
    yield ""
    yield from (f"   {line}" for line in _lines(found.edit))


def _ending(found: Suggestions) -> Iterator[str]:
    """What was proven, or why nothing was."""
    for each in found.tried:
        yield from _proof(each, found)
    proof = found.proof
    if proof is None:
        if found.proposals:
            yield f"Not proven by replay: {found.unproven}."
        elif found.analysis.excess_wavefronts and not (found.remapped or found.lanes):
            yield (
                f"{found.analysis.excess_wavefronts:,} shared wavefronts above the ideal are not conflicts; "
                "another arrangement of the lanes could save them, but no layout can."
            )
    else:
        yield from _proof(proof, found)
    yield from _least_cycles(found)
    if proof is not None:
        if proof.edit.unseen:
            lines = ", ".join(map(str, proof.edit.unseen))
            yield f"Line {lines} passes the array's address on; --run checks that the results stay the same."
        yield proof.analysis.verdict


def _least_cycles(found: Suggestions) -> Iterator[str]:
    """What the change that is taken does to the lower bound."""
    if found.least_cycles is not None:
        before, after = found.least_cycles
        which = f" with {found.taken.name}" if isinstance(found.taken, Remapped) else ""
        yield f"Lower bound of the launch{which} (memsim bound): {before:,} {ARROW} {after:,} cycles."


def _proof(proof: Proof, found: Suggestions) -> Iterator[str]:
    """What was compiled, and what it counts."""
    numbers = [found.proposals.index(each) + 1 for each in proof.proposals]
    what = f"{', '.join(map(str, numbers))} in {PurePath(proof.edit.file).name}, compiled and replayed"
    counts = " and ".join(
        f"{name} {proof.before[name]:,} {ARROW} {proof.counted[name]:,}" for name in proof.counted
    )
    if proof.holds:
        yield f"Proven by replay: {what}: {counts} wavefronts, as forecast."
    else:
        wrong = " and ".join(
            f"{wavefronts:,} for {name}"
            for name, wavefronts in proof.forecast.items()
            if wavefronts != proof.counted[name]
        )
        yield (
            f"Not as forecast: {what}: {counts} wavefronts. The forecast was {wrong}: the compiler merges or "
            "splits accesses of the new layout differently. The replayed counts are what the code costs."
        )
