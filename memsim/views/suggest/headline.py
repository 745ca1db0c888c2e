"""The first line of `memsim suggest`: the worst waste of either memory, and what saves most of it."""

from __future__ import annotations

from memsim.analysis import BADLY_COALESCED
from memsim.estimated_time import time_change
from memsim.suggest.prove import Proof
from memsim.suggest.ranking import Verdict
from memsim.suggest.suggestions import Suggestions
from memsim.suggest.threads import Remapped
from memsim.views.suggest.advice import LEAST
from memsim.views.suggest.by_hand import by_hand


def headline(found: Suggestions) -> str:
    """What is wasted and what can be saved, in one line, the memory that wastes the larger share first."""
    shared = [site for site in found.analysis.sites if site.space == "shared"]
    wavefronts = sum(site.wavefronts or 0 for site in shared)
    conflicts = sum(entry.conflicts for entry in found.advice)
    moved = [site for site in found.analysis.sites if site.space == "global"]
    sectors, needless = sum(site.sectors or 0 for site in moved), sum(site.needless_sectors for site in moved)
    said = [(conflicts / max(wavefronts, 1), _of_shared(found, conflicts, wavefronts))] if conflicts else []
    if needless and (needless >= BADLY_COALESCED * sectors or not conflicts):
        said.append((needless / max(sectors, 1), _of_global(found, needless, sectors)))
    others = [_saved_by_threads(each, found) for each in found.remapped if each.sectors[0] <= each.sectors[1]]
    if not said:
        said.append((0.0, "no bank conflict, so no other layout saves a wavefront"))
    ordered = [text for _, text in sorted(said, key=lambda each: -each[0])]
    return f"{found.analysis.trace.kernel}: {'; '.join([*ordered, *([] if conflicts else others)])}"


def _of_shared(found: Suggestions, conflicts: int, wavefronts: int) -> str:
    proven = {} if found.proof is None else _counted(found.proof)
    saved = proven or _forecast(found)
    of = f"{conflicts:,} of {wavefronts:,} shared wavefronts are bank conflicts"
    if not saved:
        return f"{of}, and no layout tried saves {LEAST} of them"
    whole = sum(saved.values())
    all_of = "all of them" if whole == conflicts else f"{whole:,} of them"
    saves = f"saves {all_of}" if proven else f"would save {all_of}, by forecast"
    gain = found.verdict_of(found.proof) if proven and found.proof is not None else Verdict.WORTH
    if gain is Verdict.SLOWER:
        return f"{of}; a layout that saves {all_of} is {gain.value}"
    return f"{of}; another layout of {' and '.join(saved)} {saves}{_unless_worth(gain)}"


def _unless_worth(gain: Verdict) -> str:
    """`, not worth an edit`."""
    return "" if gain is Verdict.WORTH else f", {gain.value}"


def _of_global(found: Suggestions, needless: int, sectors: int) -> str:
    of = f"{needless:,} of {sectors:,} global sectors are not needed"
    if found.sectors_are_free:  # most are found in the L1 cache: no unit that moves them makes the bound
        of += f", without which the lower bound, by {found.analysis.bound.units[0].name}, would be the same"
    threads = [each for each in found.remapped if each.sectors[1] < each.sectors[0]]
    cures = [each for each in by_hand(found) if each.unit == "global sectors"]
    quicker = [each for each in threads if found.verdict_of(each) is not Verdict.SLOWER]
    if quicker or (threads and not cures):
        fewest = min(quicker or threads, key=lambda each: each.sectors[1])
        return f"{of}; {_saved_by_threads(fewest, found)}"
    if cures:
        best = cures[0]
        saved = f"{'about ' * best.scaled}{best.saved:,} of them"
        return f"{of}; {best.what} would save {saved} ({best.where}), by hand"
    nothing = "no change that memsim tries saves any (memsim explain shows why they are moved)"
    return f"{of}, and {nothing}"


def _counted(proof: Proof) -> dict[str, int]:
    """Wavefronts that the edited kernel saves, by array."""
    saved = {name: proof.before[name] - counted for name, counted in proof.counted.items()}
    return {name: wavefronts for name, wavefronts in saved.items() if wavefronts}


def _forecast(found: Suggestions) -> dict[str, int]:
    """Wavefronts that the best layouts should save that no replay disproved, by array."""
    saved = {}
    for entry in found.advice:
        counted = ((each, found.replayed(each)) for each in entry.proposals)
        left = [each.cost.most for each, after in counted if after is None or after < each.now.most]
        if left:
            saved[entry.tile.name] = entry.wavefronts - min(left)
    return saved


def _saved_by_threads(change: Remapped, found: Suggestions) -> str:
    (sectors, sectors_now), (wavefronts, wavefronts_now) = change.sectors, change.wavefronts
    saved, of = sectors - sectors_now, "of them"
    if saved <= 0:
        saved, of = wavefronts - wavefronts_now, f"of {wavefronts:,} shared wavefronts"
    gain = found.verdict_of(change)
    if saved <= 0:
        quicker = time_change(change.before.estimate, change.analysis.estimate)
        return f"with {change.name} {quicker or 'the lower bound is lower'}{_unless_worth(gain)}"
    if gain is Verdict.SLOWER:
        return f"what saves {saved:,} {of}, {change.name}, is {gain.value}"
    return f"{saved:,} {of} are saved with {change.name}{_unless_worth(gain)}"
