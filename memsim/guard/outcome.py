"""The records that every report of `memsim check` prints."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated

import msgspec
from msgspec import Meta

from memsim.analysis import Analysis, SiteCounts
from memsim.document import DocumentPart, Texts, one_of
from memsim.errors import MemsimError
from memsim.guard.budget import RELATIONS
from memsim.launch import Natural, Positive

# Kinds of findings: those that break a budget, and those that only mean that the baseline is out of date.
BROKEN = "broken"  # a limit is exceeded
UNRESOLVED = "unresolved"  # an access that could not be analyzed might exceed it
WORSE = "worse"  # a count is higher than in the baseline
NEW = "new"  # an access that the baseline does not have
VANISHED = "vanished"  # an access that only the baseline has
IMPROVED = "improved"  # counts are lower than in the baseline
CHANGED = "changed"  # at the same cost, but described differently in the baseline
UNKNOWN = "unknown"  # described differently, and accepted at a cost that is known neither then nor now
HARMLESS = (IMPROVED, CHANGED, UNKNOWN)


class QuantityChange(msgspec.Struct, frozen=True, rename={"now": "is"}):
    """One quantity of an access on two sides. None: not known, or there is none. Percentages are 0 to 100.

    was: in the baseline. now: as counted. limit: what the budget allows, by `relation`.
    """

    quantity: str
    was: Annotated[Fraction | None, Meta(description="in the baseline")]
    now: Fraction | None
    limit: Fraction | None
    relation: Annotated[str, one_of(*RELATIONS)] = "<="
    percent: Annotated[bool, Meta(description="whether the numbers are percentages")] = False


@dataclass(frozen=True, slots=True)
class Finding:
    """A row that breaks a budget or differs from the baseline.

    site: the row; for a budget over several rows, the one that adds most. A vanished one has no file. reason:
    in words, beside the figures. lanes: which lanes are to blame, "" if none are.
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


@dataclass(frozen=True, slots=True)
class Checked:
    """One budget on one kernel.

    rows: the number of rows that could break it; an access that no lane makes does not count.
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


class UnguardedKernel(DocumentPart, frozen=True, kw_only=True, rename={"name": "kernel", "is_new": "new"}):
    """A kernel of the project's sources that no target checks."""

    name: str
    file: Annotated[str, Meta(description="relative to the project's folder")]
    line: Positive
    is_new: Annotated[bool, Meta(description="the revision of --against does not have it")] = False


class Coverage(DocumentPart, frozen=True, kw_only=True):
    """How much of a project a check is about.

    unguarded: kernels that are no target's.
    """

    kernels: Annotated[
        Natural, Meta(description="how many the project's CUDA files define; 0 if no target is of one")
    ] = 0
    unguarded: tuple[UnguardedKernel, ...] = ()
    gone: Annotated[Texts, Meta(description="targets of --against whose kernels are not there any more")] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """What is to be said of it, a line each; nothing if all of it is covered."""
        said = []
        new = [kernel for kernel in self.unguarded if kernel.is_new]
        if self.unguarded:
            which = f"new and unguarded: {_places(new)}" if new else f"unguarded: {_places(self.unguarded)}"
            said.append(f"{self.kernels - len(self.unguarded)} of {self.kernels} kernels guarded; {which}")
        if self.gone:
            said.append(f"no longer there: {some_names(self.gone)}")
        return tuple(said)


def _places(kernels: Collection[UnguardedKernel]) -> str:
    return some_names([f"`{kernel.name}` ({kernel.file}:{kernel.line})" for kernel in kernels])


@dataclass(frozen=True)
class Outcome:
    """The result of a check.

    kernels: those analyzed, in order. checked: budgets that applied to rows. notes: reasons why a result may
    be of other code, in words. coverage: None if it is of some targets only, chosen by name. against: the
    revision whose settings and baseline count, if not those that are here. of_programs: kernels that programs
    launched, which no other verb knows by name.
    """

    kernels: tuple[str, ...]
    checked: tuple[Checked, ...]
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    coverage: Coverage | None = None
    against: str | None = None
    of_programs: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, broken budgets first."""
        found = [finding for checked in self.checked for finding in checked.findings]
        return tuple(sorted(found, key=lambda finding: not finding.breaks))

    @property
    def exit_code(self) -> int:
        """0: every budget holds. 1: one is broken. 2: not everything could be judged."""
        if self.problems:
            return 2
        return 1 if any(checked.broken for checked in self.checked) else 0

    @property
    def verdict(self) -> str:
        """The answer in one line."""
        broken = [checked for checked in self.checked if checked.broken]
        kernels = _count(len(self.kernels), "kernel")
        if broken:
            names = dict.fromkeys(checked.kernel for checked in broken)
            of = _count(len(self.checked), "check")
            verdict = f"FAILED: {len(broken)} of {of} failed, in {some_names(names)}"
        elif not self.problems:
            verdict = f"OK: {kernels}, {_count(len(self.checked), 'check')} passed"
        else:
            verdict = f"NOT JUDGED: {_count(len(self.problems), 'problem')}"
        if broken and self.problems:
            verdict += f"; {_count(len(self.problems), 'problem')} prevented judging the rest"
        kinds = {finding.kind for finding in self.findings}
        if self.exit_code == 0 and kinds & {IMPROVED, CHANGED}:  # else it would accept what has failed
            advice = f" since {self.against}" if self.against else ": run memsim baseline"
            verdict += f"; {IMPROVED if IMPROVED in kinds else CHANGED}{advice}"
        return verdict


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def some_names(names: Collection[str]) -> str:
    """The first few names, and how many more there are."""
    shown = list(names)[:3]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
