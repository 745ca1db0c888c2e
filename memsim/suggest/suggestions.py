"""Everything that is suggested for a launch, as one record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from memsim.analysis import Analysis
from memsim.document import JsonObject, plain
from memsim.errors import MemsimError
from memsim.estimated_time import EstimatedTime
from memsim.job import Job
from memsim.suggest.asynchronous_copies import asynchronous_copies
from memsim.suggest.field_by_field import kept_by_caller
from memsim.suggest.global_accesses import (
    ArrayOfStructs,
    Staging,
    Wider,
    accesses_to_stage,
    fields,
    first_block,
    wider,
)
from memsim.suggest.halos import halos
from memsim.suggest.numbered import numbered_elements
from memsim.suggest.privatised import privatised_arrays
from memsim.suggest.proposals import Advice, Proposal, Split, advise, best_split
from memsim.suggest.prove import (
    MOST_TRIES,
    Proof,
    has_source,
    integer_arguments,
    macros_of,
    prove,
    prove_best,
)
from memsim.suggest.ranking import Verdict, best, quickest_first, total, verdict
from memsim.suggest.records import records_of_threads
from memsim.suggest.restrided import restrided_rows
from memsim.suggest.retiled import retiled_elements
from memsim.suggest.rows import rows_of_threads
from memsim.suggest.sequential import sequential
from memsim.suggest.stored_in_turn import stored_in_turn
from memsim.suggest.striped import striped_elements
from memsim.suggest.suggestions_document import (
    ArrayPart,
    SuggestionsDocument,
    lanes_part,
    proof_part,
    proposal_part,
    remapped_part,
    split_part,
    staging_part,
)
from memsim.suggest.threads import Remapped, Renumbering, remap_threads, renumber
from memsim.suggest.tiles import tiles
from memsim.suggest.transposed import is_staged, staged_accesses
from memsim.time.quick_estimate import estimate

#: Units whose work is sectors, or the lines they are in.
SECTOR_UNITS = ("l1_tags", "l1_data", "l2", "dram")

#: What is tried of every kernel, in the order in which it is told.
CURES: tuple[Callable[[Job, Analysis], tuple[Remapped, ...]], ...] = (
    retiled_elements,
    numbered_elements,
    halos,
    records_of_threads,
    privatised_arrays,
    striped_elements,
    sequential,
    stored_in_turn,
)

#: Of the needless sectors, where the caller is asked for nothing.
LEFT = 0.1


@dataclass(frozen=True)
class Suggestions:
    """What would help a launch.

    analysis: of the launch as it is. advice: for each shared array, most conflicts first. proof: proposals
    that were compiled and replayed. unproven: why there is none, "" if there is one. tried: what else was
    compiled and replayed. remapped: threads that do each other's work, if that helps. taken: what was
    selected by number; else of `proof` and `remapped` the quickest one, as `order` has them.

    Suggestions that are counted but have no edit: lanes: the best order of lanes, if `remapped` does not have
    it. split: wide shared accesses that would be better narrow. wider: neighbouring global accesses that
    would be better as one. fields: arrays of records that would be better as a structure of arrays. staging:
    global accesses that would be better staged in shared memory.
    """

    analysis: Analysis
    advice: tuple[Advice, ...]
    proof: Proof | None = None
    unproven: str = ""
    tried: tuple[Proof, ...] = ()
    remapped: tuple[Remapped, ...] = ()
    lanes: Renumbering | None = None
    split: tuple[Split, ...] = ()
    wider: tuple[Wider, ...] = ()
    fields: tuple[ArrayOfStructs, ...] = ()
    staging: tuple[Staging, ...] = ()
    taken: Proof | Remapped | None = None

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        """All proposals in the order in which reports number them, from 1."""
        return tuple(each for entry in self.advice for each in entry.proposals)

    def replayed(self, proposal: Proposal) -> int | None:
        """The wavefronts of the proposal's array in a kernel that has it; None: none was replayed."""
        proof = self.proof_of(proposal)
        return None if proof is None else proof.counted[proposal.tile.name]

    def proof_of(self, proposal: Proposal) -> Proof | None:
        """The best of the replayed kernels that have the proposal."""
        proofs = (proof for proof in (self.proof, *self.tried) if proof is not None)
        return next((proof for proof in proofs if any(each is proposal for each in proof.proposals)), None)

    @property
    def least_cycles(self) -> tuple[int, int] | None:
        """The lower bounds of the launch's cycles, before and after `taken`; None if unknown."""
        if self.taken is None or self.analysis.bound.lacks:
            return None  # not all blocks were replayed
        return self.analysis.bound.cycles, self.taken.analysis.bound.cycles

    @property
    def times(self) -> tuple[EstimatedTime | None, EstimatedTime | None]:
        """The estimated times of the launch, before and after `taken`."""
        return self.analysis.estimate, None if self.taken is None else self.taken.analysis.estimate

    @property
    def verdict(self) -> Verdict | None:
        """Whether `taken` is worth an edit; None if nothing is taken."""
        return None if self.taken is None else self.verdict_of(self.taken)

    def verdict_of(self, way: Proof | Remapped) -> Verdict:
        """Whether a change that was compiled and replayed is worth an edit."""
        return verdict(self.analysis, way.analysis)

    @property
    def pays(self) -> bool:
        """Whether something is taken that is worth an edit."""
        return self.verdict is Verdict.WORTH

    @property
    def taken_numbers(self) -> tuple[int, ...]:
        """The numbers by which reports know what is taken."""
        taken = self.taken.proposals if isinstance(self.taken, Proof) else (self.taken,)
        every = enumerate((*self.proposals, *self.remapped), 1)
        return tuple(number for number, each in every if any(each is one for one in taken))

    @property
    def sectors_are_free(self) -> bool:
        """Whether no unit that moves sectors makes the lower bound: most are found in the L1 cache."""
        bound = self.analysis.bound
        return not bound.lacks and bool(bound.units) and bound.units[0].key not in SECTOR_UNITS

    @property
    def needs_no_edit(self) -> bool:
        """Whether what is taken does not pay, or, where nothing is, only sectors that are free are wasted."""
        if self.taken is not None:
            return not self.pays
        return self.sectors_are_free and not any(entry.conflicts for entry in self.advice)

    @property
    def order(self) -> Callable[[Analysis], tuple[int, int]]:
        """Sort key of the kernels that were replayed, the quickest first."""
        ways = (*self.tried, *self.remapped, self.proof)
        return quickest_first(each.analysis for each in ways if each is not None)

    def to_dict(self) -> JsonObject:
        """The records as plain values: what `--json` prints."""
        numbered = self.proposals
        document = SuggestionsDocument.of(
            self,
            kernel=self.analysis.trace.kernel,
            uncertain=self.analysis.trace.uncertain,
            arch=self.analysis.arch.name,
            arrays=tuple(map(self._array, self.advice)),
            proof=None if self.proof is None else proof_part(self.proof, numbered),
            time=self.times[0],
            time_after=self.times[1],
            tried=tuple(proof_part(each, numbered) for each in self.tried),
            remapped=tuple(map(remapped_part, self.remapped)),
            lanes=None if self.lanes is None else lanes_part(self.lanes),
            split=tuple(map(split_part, self.split)),
            bound=self.analysis.bound.figures,
            staging=tuple(map(staging_part, self.staging)),
        )
        return plain(document)

    def _array(self, entry: Advice) -> ArrayPart:
        return ArrayPart.of(
            entry,
            name=entry.tile.name,
            bytes=entry.tile.size,
            layouts_tried=entry.tried,
            proposals=tuple(proposal_part(each, self.replayed(each)) for each in entry.proposals),
        )


def suggest(
    analysis: Analysis,
    job: Job | None = None,
    arrays: Sequence[str] = (),
    take: Iterable[int] = (),
    first: bool = False,
) -> Suggestions:
    """What would help, proven by replay if the kernel can be rebuilt.

    Args:
        analysis: of the launch as it is.
        job: what was analyzed; nothing is compiled without it or without a source.
        arrays: only shared arrays of these names; default: all.
        take: prove the proposals of these numbers; default: the best of each array.
        first: compile the layouts with the best forecast, and other changes only if these are not worth it.

    Raises:
        MemsimError: no such array or proposal, or proposals that cannot be combined.
    """
    names = {name for name, space, _, _ in analysis.trace.arrays if space == "shared"}
    names |= {tile.name for tile in tiles(analysis)} if arrays else set()
    for name in arrays:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            known = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(names))}"
            raise MemsimError(
                f"{analysis.trace.kernel} has no shared array {name!r}", hint=known if names else None
            )
    if job is not None and analysis.estimate is None:
        analysis = replace(analysis, estimate=estimate(job, analysis.trace))
    given = (macros_of(job), integer_arguments(job)) if job is not None and has_source(job) else ()
    advice = sorted(advise(analysis, arrays, *given), key=lambda entry: -entry.conflicts)
    found = Suggestions(analysis, tuple(advice), split=tuple(_splits(analysis, advice)))
    chosen = tuple(take)
    if first and not chosen:
        found = _proven(found, job, (), most=1)
        if found.pays:
            return found
    if not arrays:
        found = _with_other_cures(found, job)
    proposals = len(found.proposals)
    if len(chosen) == 1 and chosen[0] > proposals + len(found.remapped):
        found = _with_copies(found, job)
    if len(chosen) == 1 and proposals < chosen[0] <= proposals + len(found.remapped):
        remap = found.remapped[chosen[0] - proposals - 1]
        return replace(found, taken=remap, unproven="another proposal was selected")
    numbered = [_numbered(found, number) for number in chosen]
    proven = found if found.proof is not None else _proven(found, job, numbered)
    proven = proven if chosen else replace(proven, taken=_first(proven))
    if chosen or arrays or proven.pays:
        return proven
    proven = _with_copies(proven, job)
    return replace(proven, taken=_first(proven))


def _with_copies(found: Suggestions, job: Job | None) -> Suggestions:
    """Adds asynchronous copies, which move the same bytes: where nothing else is worth an edit."""
    copies = () if job is None or not has_source(job) else asynchronous_copies(job, found.analysis)
    return replace(found, remapped=(*found.remapped, *copies))


def _first(found: Suggestions) -> Proof | Remapped | None:
    """What comes first of what was compiled and replayed; of equal ones the layout change.

    What asks something of the caller, or has other results, only where nothing else is worth an edit.
    """
    every = [way for way in (found.proof, *found.remapped) if way is not None]
    alone = [way for way in every if not way.asks and not way.reorders]
    ways = alone if any(found.verdict_of(way) is Verdict.WORTH for way in alone) else every
    chosen = best(found.analysis, (way.analysis for way in ways))
    return next((way for way in ways if way.analysis is chosen), None)


def _splits(analysis: Analysis, advice: Iterable[Advice]) -> Iterator[Split]:
    """Arrays for which splitting beats every layout with the accesses as they are."""
    for entry in advice:
        best = entry.proposals[0].cost.most if entry.proposals else entry.wavefronts
        ideal = sum(analysis.sites[number].ideal_wavefronts or 0 for number in entry.tile.sites)
        if entry.conflicts and not entry.why_not and best > ideal:
            found = best_split(analysis, entry.tile, best)
            if found is not None:
                yield found


def _with_other_cures(found: Suggestions, job: Job | None) -> Suggestions:
    """Adds the suggestions that do not change the layout of a shared array."""
    analysis, lanes = found.analysis, renumber(found.analysis)
    found = replace(found, wider=wider(analysis), lanes=lanes)
    if job is None:
        return found
    block = first_block(job, analysis)
    if block is not None:
        found = replace(found, fields=fields(block), staging=accesses_to_stage(block))
    if not has_source(job):
        return found
    remaps = remap_threads(job, analysis, lanes)
    staged = staged_accesses(job, analysis, found.staging)
    staged += tuple(one for cure in CURES for one in cure(job, analysis))
    staged += restrided_rows(job, analysis, [one.tile.name for one in found.advice if _is_not_written(one)])
    by_hand = tuple(each for each in found.staging if not any(is_staged(one.edit, each) for one in staged))
    least = min((total(each.analysis, "sectors") for each in (*remaps, *staged)), default=None)
    solved = least is not None and least <= 2 * total(analysis, "ideal_sectors")
    rows = () if solved else rows_of_threads(job, analysis)
    remaps = (*remaps, *staged, *rows)
    needless = [total(each, "needless_sectors") for each in (analysis, *(one.analysis for one in remaps))]
    kept = kept_by_caller(job, analysis) if min(needless) > LEFT * needless[0] else ()
    kept = tuple(each for each in kept if total(each.analysis, "needless_sectors") < min(needless))
    asked = {layout.array for each in kept for layout in each.asks}
    records = tuple(each for each in found.fields if each.array not in asked)
    found, remaps = replace(found, staging=by_hand, fields=records), (*remaps, *kept)
    written = lanes is not None and any(each.name == lanes.name for each in remaps)
    return replace(found, remapped=remaps, lanes=None if written else lanes)


def _is_not_written(advice: Advice) -> bool:
    """Whether an array has conflicts, and no layout of it whose edit sees all of its accesses."""
    edits = [each.edit for each in advice.proposals]
    return advice.conflicts > 0 and all(edit is None or edit.unseen for edit in edits)


def _proven(
    found: Suggestions, job: Job | None, chosen: Sequence[Proposal], most: int = MOST_TRIES
) -> Suggestions:
    """Adds the proof of the chosen proposals, or of the best; of so many edits at most."""
    why = _why_no_proof(found, job)
    if why or job is None:
        return replace(found, unproven=why)
    try:
        proofs = [prove(job, chosen)] if chosen else prove_best(job, found.advice, most)
    except MemsimError as error:
        if chosen:
            raise
        why = error.message if error.file is None else f"the changed {error.file}: {error.message}"
        return replace(found, unproven=why)
    helping = [proof for proof in proofs if proof.helps or chosen]
    if not helping:
        why = "no change that was compiled and replayed takes fewer wavefronts"
        return replace(found, unproven=why, tried=tuple(proofs))
    others = tuple(proof for proof in proofs if proof is not helping[0])
    return replace(found, proof=helping[0], tried=others, taken=helping[0])


def _numbered(found: Suggestions, number: int) -> Proposal:
    if not 1 <= number <= len(found.proposals):
        count = len(found.proposals) + len(found.remapped)
        raise MemsimError(
            f"there is no proposal {number}"
            if number > count
            else f"proposal {number} cannot be combined with others",
            hint=f"there are {count} proposals" if count else "there are no proposals",
        )
    return found.proposals[number - 1]


def _why_no_proof(found: Suggestions, job: Job | None) -> str:
    """Why nothing can be compiled and replayed; "" if something can."""
    edits = [each.edit for each in found.proposals if each.edit is not None]
    if not found.proposals:
        return "there is nothing to prove"
    if not edits:
        return "no change can be written into the source by rules: edit it by hand and analyze again"
    return "" if job is not None and has_source(job) else "there is no source to recompile"
