"""Suggestions as text: each before and after, in the banks, and as code to paste."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from operator import itemgetter

from memsim.analysis import Analysis
from memsim.arch.units import BANKS
from memsim.estimated_time import time_change
from memsim.pictures.proposal_banks import BeforeAndAfter, picture
from memsim.suggest.edit import Edit
from memsim.suggest.global_accesses import is_badly_coalesced
from memsim.suggest.privatised import atomic_sectors
from memsim.suggest.proposals import Advice, Proposal
from memsim.suggest.prove import Proof
from memsim.suggest.ranking import Verdict, verdict
from memsim.suggest.suggestions import Suggestions
from memsim.suggest.threads import Remapped
from memsim.views.labels import access, at_all_places, count, file_names
from memsim.views.plain import escape_markdown, fenced_block, folded, plain_line
from memsim.views.screen import Column, Row, lines_of_table
from memsim.views.suggest.advice import LEAST, change_name, formula, room_of
from memsim.views.suggest.by_hand import ARROW, parts
from memsim.views.suggest.headline import headline

MOST_LINES = 24  # changed lines that are shown of a proposal
MOST_SITES = 12  # rows of the table before and after
HALF = BANKS // 2  # banks that a line of the picture has: all of them are wider than a terminal

# What is known of a proposal, in the order in which proposals are shown. Slower by its estimated time.
PROVEN, FORECAST, SLOWER, DISPROVEN = range(4)

Names = Mapping[str, str]
#: What is known, and how quick it is, or the change of wavefronts if it is not proven.
Rank = tuple[int, tuple[int, ...]]


class ShownSuggestions(Suggestions):
    """`Suggestions` that print themselves, as `analysis.suggest()` gives them."""

    @classmethod
    def of(cls, found: Suggestions) -> ShownSuggestions:
        """The suggestions with the text that shows them."""
        return cls(**{field.name: getattr(found, field.name) for field in fields(Suggestions)})

    def __str__(self) -> str:
        """The text that `memsim suggest` prints."""
        return render(self)


def render(found: Suggestions) -> str:
    """The whole answer: the first line says what can be saved, the last what was proven.

    What was proven by replay comes first, the quickest before the others, then what is only
    forecast, then what is estimated slower, then what replay disproved; each with the number by which
    `--take` knows it.
    """
    lines = [headline(found)]
    if found.analysis.estimate is not None:
        lines.append(f"Time: {found.analysis.estimate.verdict}")
    if found.analysis.bound.has_instructions and found.analysis.bound.units:
        lines.append(f"Bound: {found.analysis.bound.verdict}")  # whether a cure can shorten the launch at all
    proposed = [each.edit for each in found.proposals if each.edit is not None]
    edits = [*proposed, *(each.edit for each in found.remapped)]
    names = file_names([*(site.file for site in found.analysis.sites), *(edit.file for edit in edits)])
    texts = [_advised(entry, found, names) for entry in found.advice]
    for number, remap in enumerate(found.remapped, len(found.proposals) + 1):
        known = SLOWER if found.verdict_of(remap) is Verdict.SLOWER else PROVEN
        texts.append(((known, found.order(remap.analysis)), ["", *_remapped(remap, number, names)]))
    texts += [((FORECAST, (0,)), ["", *cure]) for cure in parts(found)]
    for _, part in sorted(texts, key=itemgetter(0)):
        lines += part
    ending = list(_ending(found, names))
    lines += ["", *ending] if ending else []
    return "\n".join(plain_line(line.rstrip()) for line in lines)


def name_of(taken: Proof | Remapped) -> str:
    """A change in a line: the title of its commit."""
    if isinstance(taken, Remapped):
        return taken.name
    return "; ".join(f"{each.tile.name}: {change_name(each.change, each.tile)}" for each in taken.proposals)


def as_comment(kernel: str, taken: Proof | Remapped) -> str:
    """A change with its proof and its patch, as Markdown."""
    if isinstance(taken, Remapped):
        counts = [(*taken.wavefronts, "wavefronts"), (*taken.sectors, "sectors")]
    else:
        counts = [(taken.before[name], now, f"wavefronts of {name}") for name, now in taken.counted.items()]
    counted = "; ".join(f"{before:,} to {after:,} {what}" for before, after, what in counts)
    diff = fenced_block(taken.edit.diff.rstrip("\n"), "diff")
    return (
        f"**What would help**: {escape_markdown(name_of(taken))} ({escape_markdown(counted)}; compiled and "
        f"replayed; results are compared by `memsim suggest {kernel} --apply`, which writes it)\n\n"
        + "".join(f"The caller has to keep {escape_markdown(each.told)}.\n\n" for each in taken.asks)
        + folded("The patch", diff)
    )


def _known(each: Proposal, found: Suggestions) -> int:
    proof = found.proof_of(each)
    if proof is None:
        return FORECAST
    if proof.counted[each.tile.name] >= each.now.most:
        return DISPROVEN
    return SLOWER if found.verdict_of(proof) is Verdict.SLOWER else PROVEN


def _place(each: Proposal, found: Suggestions) -> int:
    """The place of its replay among all of them, the best first."""
    proofs = (found.proof, *found.tried)
    return next((n for n, one in enumerate(proofs) if one and each in one.proposals), len(proofs))


def _advised(entry: Advice, found: Suggestions, names: Names) -> tuple[Rank, list[str]]:
    """The rank of the best proposal of an array, and all of them."""
    lines = ["", *_array(entry)] if entry.conflicts or entry.why_not else []
    numbers = {id(each): number for number, each in enumerate(found.proposals, 1)}
    best_first = sorted(entry.proposals, key=lambda each: (_known(each, found), _place(each, found)))
    for each in best_first:
        number, counted = numbers[id(each)], found.replayed(each)
        if _known(each, found) == DISPROVEN:
            lines += ["", *_disproven(each, number, counted)]
        else:
            lines += ["", *_proposal(each, number, found, names, whole=each is best_first[0])]
    known = min((_known(each, found) for each in best_first), default=FORECAST)
    if known in (PROVEN, SLOWER) and found.proof is not None:
        return (known, found.order(found.proof.analysis)), lines
    return (known, (min((each.cost.most - each.now.most for each in best_first), default=0),)), lines


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
        yield f"  None of {entry.tried:,} layouts saves {LEAST} of its conflicts;"
        yield f"  no layout at all can take fewer than {entry.least:,}."
    else:
        best = entry.proposals[0].cost.most
        than = "" if best == entry.least else f" than {entry.least:,}"
        yield f"  Of {entry.tried:,} layouts the best takes {best:,} wavefronts for these requests;"
        yield f"  no layout at all can take fewer{than}."


def _disproven(each: Proposal, number: int, counted: int | None) -> Iterator[str]:
    yield f"{number}. {each.tile.name}, {change_name(each.change, each.tile)}"
    counts = f"{each.now.most:,} {ARROW} {counted:,} wavefronts; the forecast was {_after(each)}"
    yield f"   Disproved by replay: {counts}."
    yield "   The compiler merges or splits accesses of the new layout differently."


def _after(each: Proposal) -> str:
    """`65,536`, or from how many to how many."""
    return f"{each.cost.most:,}" if each.cost.certain else f"{each.cost.wavefronts:,} to {each.cost.most:,}"


def _proposal(each: Proposal, number: int, found: Suggestions, names: Names, *, whole: bool) -> Iterator[str]:
    """A change, its wavefronts (as its replay counted them, else the forecast), and how to make it."""
    after, how, proof = _after(each), "forecast", found.proof_of(each)
    if proof is not None:
        counted = proof.counted[each.tile.name]
        as_forecast = "" if counted == each.cost.most else f" (forecast: {after})"
        after, how = f"{counted:,}", f"compiled and replayed{as_forecast}"
    yield f"{number}. {each.tile.name}, {change_name(each.change, each.tile)}"
    yield f"   {each.now.most:,} {ARROW} {after} wavefronts, {how}; {room_of(each)}"
    if proof is not None and not found.analysis.bound.lacks:
        others = "" if len(proof.proposals) == 1 else ", with those of the other arrays"
        before, bound = found.analysis.bound.cycles, proof.analysis.bound.cycles
        yield f"   bound {before:,} {ARROW} {bound:,} cycles{others}"
        yield from _time(found.analysis, proof.analysis)
    if each.cost.sectors != each.now.sectors:
        yield f"   {each.now.sectors:,} {ARROW} {each.cost.sectors:,} global sectors of its copies"
    if whole:
        yield ""
        yield from (f"   {line}" for line in _table(each, names))
        yield ""
        yield from (f"   {line}" for line in _drawing(picture(each), names))
    yield ""
    yield from (f"   {line}" for line in _paste(each, names))


def _table(each: Proposal, names: Names) -> list[str]:
    """The accesses of the array: wavefronts and ways, before and after; of one file its lines are enough."""
    one_file = len(names) == 1
    columns = [Column(name) for name in ("line" if one_file else "where", "access", "wavefronts", "ways")]
    rows = []
    shown = each.tile.sites[:MOST_SITES]
    for number in shown:
        old, new = each.before.sites[number], each.after.sites[number]
        where = str(old.line) if one_file else f"{names[old.file]}:{old.line}"
        wavefronts = f"{old.wavefronts or 0:,} {ARROW} {new.wavefronts or 0:,}"
        rows.append(Row((where, access(old), wavefronts, f"{old.max_ways} {ARROW} {new.max_ways}")))
    lines, more = lines_of_table(columns, rows), len(each.tile.sites) - len(shown)
    return [*lines, f"and {count(more, 'more row')}"] if more else lines


def _drawing(drawn: BeforeAndAfter, names: Names) -> Iterator[str]:
    """The worst request in the banks, then the layout around it; both before and after."""
    site = drawn.request.origin.row
    where = f"line {site.line}" if len(names) == 1 else f"{names[site.file]}:{site.line}"
    yield f"Words each bank serves for the worst request of {where}:"
    for first in range(0, BANKS, HALF):
        yield "bank    " + "".join(f"{'' if bank % 4 else bank:>3}" for bank in range(first, first + HALF))
        for label, words in zip(("before", "after"), drawn.words.tolist(), strict=True):
            yield f"{label:8}" + "".join(f"{word or '.':>3}" for word in words[first : first + HALF])
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


def _paste(each: Proposal, names: Names) -> Iterator[str]:
    if each.edit is None:
        yield f"By hand: the byte at offset o of {each.tile.name} goes to {formula(each.change)},"
        yield "at every place that stores to it or loads from it:"
        lines = dict.fromkeys((each.before.sites[n].file, each.before.sites[n].line) for n in each.tile.sites)
        yield f"  {', '.join(f'{names[file]}:{line}' for file, line in lines)}"
        if each.extra:
            yield f"The array grows by {each.extra:,} B."
        return
    yield from _lines(each.edit, names)
    if each.more_dynamic and not each.edit.brings_launch:
        yield f"Launch it with {each.more_dynamic:,} B more dynamic shared memory."


def _lines(edit: Edit, names: Names) -> Iterator[str]:
    """The changed lines, old and new, but for those of which only the indentation changes."""
    lines = [one for one in edit.lines if one.old.strip() != one.new.strip()]
    for each in lines[:MOST_LINES]:
        where = f"{names[each.file]}:{each.line}"
        blank, old, new = " " * len(where), each.old.split("\n"), each.new.split("\n")
        if new[0] == each.old:  # lines behind it
            yield f"{where}    {new.pop(0).strip()}"
        else:
            yield f"{where}  - {old.pop(0).strip()}"
            yield from (f"{blank}  - {line.strip()}" for line in old)
        yield from (f"{blank}  + {line.strip()}" for line in new)
    more = len(lines) - MOST_LINES
    if more > 0:
        yield f"and {count(more, 'line')} more"


def _remapped(found: Remapped, number: int, names: Names) -> Iterator[str]:
    yield f"{number}. {found.name}"
    counts = [
        f"{before:,} {ARROW} {after:,} {what}"
        for (before, after), what in ((found.sectors, "global sectors"), (found.wavefronts, "wavefronts"))
        if before != after
    ]
    yield f"   {', '.join(counts)}{'; ' if counts else ''}compiled and replayed"
    if not found.before.bound.lacks:
        yield f"   bound {found.before.bound.cycles:,} {ARROW} {found.analysis.bound.cycles:,} cycles"
    yield from _time(found.before, found.analysis)
    atomics = atomic_sectors(found.before), atomic_sectors(found.analysis)
    if 2 * atomics[1] < atomics[0]:
        turns = f"{atomics[0]:,} {ARROW} {atomics[1]:,} sectors"
        yield f"   not in these: the turns that atomics take at the L2 cache, {turns}"
    yield from (f"   The caller has to keep {each.told}." for each in found.asks)
    yield ""
    yield from (f"   {line}" for line in _lines(found.edit, names))


def _ending(found: Suggestions, names: Names) -> Iterator[str]:
    """What was proven, or why nothing was."""
    proof = found.proof
    if proof is not None:
        yield from _proof(proof, found, names)
        if proof.edit.unseen:
            several = len(proof.edit.unseen) > 1
            lines = f"Line{'s' * several} {', '.join(map(str, proof.edit.unseen))} pass{'es' * (not several)}"
            yield f"{lines} the array's address on; --run checks that the results stay the same."
        yield proof.analysis.verdict
    elif found.proposals:
        yield f"Not proven by replay: {found.unproven}."
    elif found.analysis.excess_wavefronts and not (found.remapped or found.lanes):
        yield (
            f"{found.analysis.excess_wavefronts:,} shared wavefronts above the ideal are not conflicts; "
            "another arrangement of the lanes could save them, but no layout can."
        )
    if found.taken is None and found.needs_no_edit and any(map(is_badly_coalesced, found.analysis.sites)):
        yield "Sectors that are not needed do not make the lower bound: they are not worth an edit."
    yield from _least_cycles(found)
    yield from (f"Not certain: {reason}" for reason in at_all_places(found.analysis.trace.uncertain))


def _least_cycles(found: Suggestions) -> Iterator[str]:
    """What the change that is taken does to the lower bound and to the estimated time."""
    taken, change = found.taken, time_change(*found.times)
    which = f" with {taken.name}" if isinstance(taken, Remapped) else ""
    if found.least_cycles is not None:
        before, after = found.least_cycles
        yield f"Lower bound of the launch{which} (memsim bound): {before:,} {ARROW} {after:,} cycles."
        fewer = isinstance(taken, Remapped) and 2 * taken.sectors[1] <= taken.sectors[0]
        if after >= before and fewer and not change:
            yield "The bound counts sectors that are written in part for less than they cost: see --verify."
    if change:
        yield f"Estimated time{which} (memsim time): {change}."
    if taken is not None and (taken.asks or taken.reorders or not found.pays):
        said = "estimated slower, and " if found.verdict is Verdict.SLOWER else ""
        gain = "" if found.pays else f"is {said}{Verdict.NOT_WORTH.value}"
        asks = "changes what the caller has to keep" if taken.asks else ""
        order = "rounds sums otherwise" if taken.reorders else ""
        why = " and ".join(filter(None, (gain, asks, order)))
        yield f"It {why}: --apply writes it only with {take_words(found)}."


def take_words(found: Suggestions) -> str:
    """`--take 1 --take 3`: what names the change that is taken."""
    return " ".join(f"--take {number}" for number in found.taken_numbers)


def _time(before: Analysis, after: Analysis) -> Iterator[str]:
    """How the estimated times differ, if both are known, and whether that is worth an edit."""
    change, gain = time_change(before.estimate, after.estimate), verdict(before, after)
    if change:
        yield f"   {change}{'' if gain is Verdict.WORTH else f': {gain.value}'}"


def _proof(proof: Proof, found: Suggestions, names: Names) -> Iterator[str]:
    numbers = [found.proposals.index(each) + 1 for each in proof.proposals]
    which = f"proposal{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
    what = f"{which} in {names[proof.edit.file]}, compiled and replayed"
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
