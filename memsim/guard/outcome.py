"""What the guard found: the records that every report of `memsim check` prints.

In: nothing. Out: `Outcome` and its parts. Left out on purpose: how they come about (`memsim.guard.judge`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

from memsim.analysis import Analysis, SiteCounts
from memsim.errors import MemsimError

# Kinds of findings: those that break a budget, and those that only say that the baseline is out of date.
BROKEN = "broken"  # a limit is passed
UNRESOLVED = "unresolved"  # an access that could not be analyzed might pass it
WORSE = "worse"  # a count is higher than in the baseline
NEW = "new"  # an access that the baseline does not have
VANISHED = "vanished"  # an access that only the baseline has
IMPROVED = "improved"  # counts are lower than in the baseline
CHANGED = "changed"  # at the same cost, but the baseline describes it otherwise
HARMLESS = (IMPROVED, CHANGED)


@dataclass(frozen=True, slots=True)
class QuantityChange:
    """One quantity of a finding. None: not known, or there is none. Percentages are 0 to 100.

    was: in the baseline. now: as counted. limit: what the budget allows, by `relation`.
    """

    quantity: str
    was: Fraction | None
    now: Fraction | None
    limit: Fraction | None
    relation: str = "<="
    percent: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """A row that a budget has something to say about.

    site: the row; of a budget over several rows, the one that adds most. A vanished one has no file.
    reason: what there is to say beside the figures. analysis: what the row is of, where its lanes may be to
    blame. lanes: which they are, in words, "" until a view says so (`memsim.views.check.colliding_lanes`).
    """

    kind: str
    kernel: str
    budget: str
    site: SiteCounts
    figures: tuple[QuantityChange, ...]
    reason: str = ""
    lanes: str = ""
    analysis: Analysis | None = field(default=None, repr=False, compare=False)

    @property
    def breaks(self) -> bool:
        """Whether the budget is broken."""
        return self.kind not in HARMLESS

    def with_lanes(self, lanes: str) -> Finding:
        """The same with the lanes to blame."""
        return replace(self, lanes=lanes)


@dataclass(frozen=True, slots=True)
class Checked:
    """One budget on one kernel.

    rows: how many rows it could be broken by; an access that no lane ever makes is none.
    """

    kernel: str
    budget: str
    rows: int
    findings: tuple[Finding, ...] = ()

    @property
    def broken(self) -> bool:
        """Whether a finding breaks it."""
        return any(finding.breaks for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a kernel ("" for all of them) could not be judged."""

    kernel: str
    error: MemsimError


@dataclass(frozen=True)
class Outcome:
    """All that a check found.

    kernels: those analyzed, in order. checked: budgets that had rows to judge. notes: what may make a result
    one of another code, in words.
    """

    kernels: tuple[str, ...]
    checked: tuple[Checked, ...]
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, those that break a budget first."""
        found = [finding for checked in self.checked for finding in checked.findings]
        return tuple(sorted(found, key=lambda finding: not finding.breaks))

    @property
    def exit_code(self) -> int:
        """0: every budget holds. 1: one is broken. 2: not everything could be judged."""
        if self.problems:
            return 2
        return 1 if any(checked.broken for checked in self.checked) else 0

    @property
    def is_clean(self) -> bool:
        """Whether all of it passed, and there is nothing more to say."""
        return not (self.problems or self.findings)

    @property
    def verdict(self) -> str:
        """The answer in one line."""
        broken = [checked for checked in self.checked if checked.broken]
        kernels = _count(len(self.kernels), "kernel")
        if broken:
            names = dict.fromkeys(checked.kernel for checked in broken)
            of = _count(len(self.checked), "check")
            verdict = f"FAILED: {len(broken)} of {of} failed, in {_names(names)}"
        elif not self.problems:
            verdict = f"OK: {kernels}, {_count(len(self.checked), 'check')} passed"
        else:
            verdict = f"NOT JUDGED: {_count(len(self.problems), 'problem')}"
        if broken and self.problems:
            verdict += f"; {_count(len(self.problems), 'problem')} kept the rest from being judged"
        if any(not finding.breaks for finding in self.findings):
            kinds = {finding.kind for finding in self.findings}
            verdict += f"; {IMPROVED if IMPROVED in kinds else CHANGED}: run memsim baseline"
        return verdict


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _names(names: dict[str, None]) -> str:
    """The first few names, and how many more there are."""
    shown = list(names)[:3]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
