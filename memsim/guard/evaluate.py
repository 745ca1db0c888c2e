"""Checks one budget on one kernel, with a finding for each row that breaks it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from memsim.analysis import Analysis, Range, SiteCounts
from memsim.errors import MemsimError
from memsim.guard.baseline import WRITE_IT, Entry, launch_of, read_of
from memsim.guard.budget import BASELINE, TIME, WHOLE, Budget, check_certain, cycles_of, figure_name
from memsim.guard.comparison import ComparedAccess, align
from memsim.guard.outcome import BROKEN, NEW, UNRESOLVED, VANISHED, Checked, Finding, QuantityChange
from memsim.guard.quantities import Quantity, Value
from memsim.guard.select import Selector
from memsim.guard.statement_rows import rows_by_statement

#: The budget that every kernel has: no race in shared memory but those of the baseline.
NO_RACE = "no race"

UPPER = ("<=", "<")
LOWER = (">=", ">")


def at_worse_end(site: SiteCounts, relation: str) -> SiteCounts:
    """The row with the most of each count if a budget limits it from above, with the fewest if from below.

    Unresolved if nothing limits a count, or if the budget asks for one number. It keeps its ranges.
    """
    if not site.ranges:
        return site
    ends = {name: _end(limits, relation) for name, limits in site.ranges.items()}
    if None in ends.values():
        name, limits = next(iter(site.ranges.items()))
        why = f"{name.replace('_', ' ')}: {limits}: {limits.why}"
        return site.with_counts(ends, site.unresolved or why, site.ranges)
    return site.with_counts(_complete(site, ends), None, site.ranges)


def opposite(relation: str) -> str:
    """The relation for the other side of a comparison."""
    return {"<=": ">=", "<": ">", ">=": "<=", ">": "<"}.get(relation, relation)


def _end(limits: Range, relation: str) -> int | None:
    if limits.least == limits.most:
        return limits.least
    return limits.most if relation in UPPER else limits.least if relation in LOWER else None


def _complete(site: SiteCounts, ends: Mapping[str, int | None]) -> dict[str, int | None]:
    """Other counts that follow: wavefronts of a copy rise with its conflicts."""
    found = dict(ends)
    more = (found.get("conflicts") or 0) - (site.conflicts or 0)
    if "wavefronts" not in found and site.wavefronts is not None:
        found["wavefronts"] = site.wavefronts + more
    return found


# Reasons for unmatched accesses.
ALONE = {
    NEW: "a new access, not in the baseline",
    VANISHED: "the kernel no longer makes this access of the baseline",
}


@dataclass(frozen=True)
class GuardedKernel:
    """A kernel under the guard. entry: its baseline, None if there is none.

    arguments: the kernel's arguments in a line, None if unknown. program: the target that launches it, if
    that is a program.
    """

    name: str
    analysis: Analysis
    entry: Entry | None = None
    arguments: str | None = None
    program: str = ""

    @property
    def target(self) -> str:
        """The name of the target for which its budgets are declared."""
        return self.program or self.name

    @cached_property
    def pairs(self) -> list[ComparedAccess]:
        """Its rows by statement matched with those of the baseline."""
        return align(self.entry.sites if self.entry else (), rows_by_statement(self.analysis))

    def before(self, site: SiteCounts) -> SiteCounts | None:
        """The baseline's row of the same access; None if it has none, or counts several rows as one."""
        same = (pair for pair in self.pairs if pair.now and replace(pair.now, source=site.source) == site)
        return next((pair.before for pair in same), None)


def check(
    budget: Budget,
    subject: GuardedKernel,
    accepted: Sequence[Selector] = (),
    others: Sequence[GuardedKernel] = (),
) -> Checked:
    """Check one budget on one kernel; `accepted` accesses may be unresolved.

    others: the kernels, this one among them, with whose accesses a budget may compare.

    Raises:
        MemsimError: it needs a baseline, and there is none for this kernel and launch; or accesses to compare
            with are missing or unresolved; or its bound is an estimate, or its time is not estimated.
    """
    if budget.needs_baseline:
        _check_entry(subject)
    if budget.figure is not None:
        return _Check(budget, subject).of_launch(budget.figure)
    if budget.quantity is None:
        each = _Check(budget, subject, accepted)
        rows = sum(pair.now is None or _happens(pair.now) for pair in subject.pairs)
        return each.checked(rows, filter(None, map(each.against_baseline, subject.pairs)))
    if budget.reference != BASELINE:
        subject = _at_worse_end(subject, budget.relation, accepted)
        others = [_at_worse_end(other, opposite(budget.relation), accepted) for other in others]
    return _Check(budget, subject, accepted, others).of_quantity(budget.quantity)


def _at_worse_end(subject: GuardedKernel, relation: str, accepted: Sequence[Selector]) -> GuardedKernel:
    """The kernel with its rows at the worse end for a budget, but for unresolved ones that are accepted."""
    if not any(site.ranges for site in subject.analysis.sites):
        return subject
    sites = tuple(
        site if _is_accepted(subject.name, site, accepted) else at_worse_end(site, relation)
        for site in subject.analysis.sites
    )
    return replace(subject, analysis=replace(subject.analysis, sites=sites))


def _is_accepted(kernel: str, site: SiteCounts, accepted: Sequence[Selector]) -> bool:
    return site.unresolved is not None and any(one.surely_matches(kernel, site) for one in accepted)


@dataclass(frozen=True)
class _Check:
    """One budget on one kernel; `accepted` and `others` as of `check`."""

    budget: Budget
    subject: GuardedKernel
    accepted: Sequence[Selector] = ()
    others: Sequence[GuardedKernel] = ()

    def checked(self, rows: int, findings: Iterable[Finding] = ()) -> Checked:
        return Checked(self.subject.name, self.budget.text, rows, tuple(findings))

    def finding(self, kind: str, site: SiteCounts, *figures: QuantityChange, reason: str = "") -> Finding:
        return Finding(kind, self.subject.name, self.budget.text, site, figures, reason)

    def with_analysis(self, finding: Finding) -> Finding:
        """A finding whose lanes can be told, and which says why its row has only limits, if it has."""
        whys = dict.fromkeys(limits.why for limits in finding.site.ranges.values())
        limits = ["at the worse end of its limits", *whys] if whys else []
        reason = "; ".join(filter(None, (finding.reason, *limits)))
        return replace(finding, reason=reason, analysis=self.subject.analysis)

    def is_meant(self, site: SiteCounts) -> bool:
        """Whether the row may break the budget."""
        quantity, kernel = self.budget.quantity, self.subject.name
        if self.budget.selector.matches(kernel, site) is False:
            return False
        if quantity is not None and site.space not in quantity.spaces:
            return False
        return not _is_accepted(kernel, site, self.accepted)

    def unresolved(self, site: SiteCounts) -> Finding:
        quantity = self.budget.quantity
        figures = () if quantity is None else (QuantityChange(quantity.name, None, None, None),)
        return self.finding(UNRESOLVED, site, *figures, reason=f"could not be analyzed: {site.unresolved}")

    # --- the whole launch

    def of_launch(self, figure: str) -> Checked:
        """A budget of the whole launch; its worst row represents it, or where its code begins without one."""
        rows = [site for site in self.subject.analysis.sites if _happens(site)]
        rows = rows or [_start(self.subject.analysis)]
        change, reason = self._time() if figure == TIME else self._cycles(figure)
        assert change.now is not None and change.limit is not None  # as both of them say
        if self.budget.holds(change.now, change.limit):
            return self.checked(len(rows))
        worst = max(rows, key=lambda site: site.badness)
        return self.checked(len(rows), [self.finding(BROKEN, worst, change, reason=reason)])

    def _time(self) -> tuple[QuantityChange, str]:
        """The estimated time beside its limit, and what is said of it."""
        budget, subject, estimate = self.budget, self.subject, self.subject.analysis.estimate
        if estimate is None or estimate.elapsed is None:
            why = "it has no machine code" if estimate is None else estimate.unknown
            raise MemsimError(f"the time of {subject.name} is not estimated: {why}")
        was, limit = None, budget.limit
        if budget.reference == BASELINE:
            if subject.entry is None or subject.entry.time is None:
                raise MemsimError(f"the baseline of {subject.name} has no estimated time", hint=WRITE_IT)
            was = Fraction(subject.entry.time)
            limit *= was
        now = Fraction(estimate.elapsed)
        return QuantityChange("time in cycles", was, now, limit, budget.relation), estimate.verdict

    def _cycles(self, figure: str) -> tuple[QuantityChange, str]:
        """The bound of the launch or of a unit beside its limit, and what is said of it."""
        budget, bound = self.budget, self.subject.analysis.bound
        check_certain(self.subject.name, bound)
        whole, now, limit = cycles_of(bound, WHOLE), cycles_of(bound, figure), budget.limit
        was, held = None, self.subject.entry.cycles if self.subject.entry else {}
        if held:
            was = Fraction(max(held.values()) if figure == WHOLE else held.get(figure, 0))
        if budget.percent:
            now, was = 100 * now / whole if whole else Fraction(0), None
        elif budget.reference == BASELINE:
            if was is None:
                raise MemsimError(
                    f"the baseline of {self.subject.name} has no bounds in cycles", hint=WRITE_IT
                )
            limit = was
        elif budget.other is not None:
            limit = cycles_of(bound, budget.other)
        change = QuantityChange(figure_name(figure), was, now, limit, budget.relation, budget.percent)
        return change, bound.verdict

    # --- every count of the baseline

    def against_baseline(self, pair: ComparedAccess) -> Finding | None:
        """Every count of one access. One that is accepted may be unresolved if it is in the baseline, too."""
        now, subject = pair.now, self.subject
        if now is not None and now.unresolved is not None and self.is_meant(now):
            return self.unresolved(now)
        change, site = pair.change, pair.sites[-1]
        if change is None:
            return None
        reason = ALONE.get(change.kind, change.reason)
        before, read = subject.entry and subject.entry.read, read_of(subject.analysis)
        if None not in (before, read) and before != read:
            reason += f"; the baseline is of {before}, this is {read}"
        finding = self.finding(change.kind, site, *change.figures, reason=reason)
        return finding if now is None or not finding.breaks else replace(finding, analysis=subject.analysis)

    # --- one quantity

    def of_quantity(self, quantity: Quantity) -> Checked:
        """A budget of one quantity, limited for each row or for their sum."""
        sites: Iterable[SiteCounts] = self.subject.analysis.sites
        if self.budget.reference == BASELINE:
            sites = (pair.now for pair in self.subject.pairs if pair.now is not None)
        rows = [site for site in sites if self.is_meant(site)]
        findings = [self.unresolved(site) for site in rows if quantity.of(site) is None]
        known = [site for site in rows if quantity.of(site) is not None]
        findings += map(self.with_analysis, self._limited(quantity, known))
        return self.checked(sum(map(_happens, rows)), findings)

    def _limited(self, quantity: Quantity, rows: list[SiteCounts]) -> Iterable[Finding]:
        budget = self.budget
        if budget.reference == BASELINE:
            return self._each(quantity, rows, lambda site: self._was(quantity, site))
        if budget.reference is not None and quantity.ideal is not None:
            return self._each(quantity, rows, quantity.ideal)
        if not quantity.adds_up:
            return self._each(quantity, rows, lambda site: budget.limit)
        findings: list[Finding] = []
        for space in dict.fromkeys(site.space for site in rows) if quantity.apart else [""]:
            part, limit = [site for site in rows if site.space.startswith(space)], budget.limit
            if part and budget.compared is not None:
                compared = self._compared(budget.compared, quantity)
                limit *= self._sum(quantity, [site for site in compared if site.space.startswith(space)])
            findings += self._together(quantity, part, limit)
        return findings

    def _compared(self, selector: Selector, quantity: Quantity) -> list[SiteCounts]:
        """The accesses with which the budget compares; of the kernel itself those at the other end."""
        kernels, text = self.others, self.budget.text
        if not selector.values("kernel"):
            kernels = [one for one in self.others if one.name == self.subject.name] or [self.subject]
        found = [
            (kernel.name, site)
            for kernel in kernels
            for site in kernel.analysis.sites
            if site.space in quantity.spaces and selector.matches(kernel.name, site) is not False
        ]
        for name, site in found:
            if site.unresolved is not None:
                raise MemsimError(f"{text}: line {site.line} of {name} is not counted: {site.unresolved}")
        if not any(_happens(site) for _, site in found):
            names = ", ".join(kernel.name for kernel in kernels)
            raise MemsimError(
                f"{text}: no access of the kernels that are checked is {selector.text}, to compare with",
                hint=f"memsim analyze lists the accesses; the kernels are {names}",
            )
        return [site for _, site in found]

    def _each(self, quantity: Quantity, rows: list[SiteCounts], limit_of: Value) -> Iterator[Finding]:
        """Each row by itself. A row without a limit is not in the baseline."""
        for site in rows:
            now, limit = quantity.of(site), limit_of(site)
            if now is not None and limit is not None and self.budget.holds(now, limit):
                continue
            kind, reason = (
                (BROKEN, "") if limit is not None else (NEW, "it has no such count in the baseline")
            )
            was, relation = self._was(quantity, site), self.budget.relation
            yield self.finding(
                kind, site, QuantityChange(quantity.name, was, now, limit, relation), reason=reason
            )

    def _together(self, quantity: Quantity, rows: list[SiteCounts], limit: Fraction) -> Iterator[Finding]:
        """The sum over the rows; the row that adds most represents them."""
        budget, now = self.budget, self._sum(quantity, rows)
        if budget.holds(now, limit) or not rows:
            return
        every = map(self.subject.before, rows)
        before = [site for site in every if site is not None and site.unresolved is None]
        was = self._sum(quantity, before) if len(before) == len(rows) else None
        most = max(rows, key=lambda site: quantity.of(site) or 0)
        reason = f"the sum over {len(rows)} rows; this one adds most" if len(rows) > 1 else ""
        figure = QuantityChange(quantity.name, was, now, limit, budget.relation, budget.percent)
        yield self.finding(BROKEN, most, figure, reason=reason)

    def _sum(self, quantity: Quantity, rows: Sequence[SiteCounts]) -> Fraction:
        """The rows' sum, or its percentage of the whole."""
        total = sum((quantity.of(site) or Fraction(0) for site in rows), Fraction(0))
        if not self.budget.percent or quantity.whole is None:
            return total
        whole = sum((quantity.whole(site) or Fraction(0) for site in rows), Fraction(0))
        return 100 * total / whole if whole else Fraction(0)

    def _was(self, quantity: Quantity, site: SiteCounts) -> Fraction | None:
        before = self.subject.before(site)
        return None if before is None else quantity.of(before)


def _start(analysis: Analysis) -> SiteCounts:
    """The first line of a kernel that accesses no memory; it has no operation."""
    file, line = next(((file, line) for _, _, file, line in analysis.trace.listing if line), ("", 0))
    return SiteCounts(file, line, 0, "(no access)", op="", space="global", width=0, array="", instructions=0)


def check_races(subject: GuardedKernel) -> Checked | None:
    """Whether the kernel has races that its baseline does not have; None if it has none at all."""
    known = () if subject.entry is None else subject.entry.races
    races, rows = subject.analysis.trace.races, subject.analysis.sites
    findings = []
    for race in races:
        here = (row for row in rows if (row.file, row.line, row.space) == (race.file, race.line, "shared"))
        row = next(here, None) or _start(subject.analysis)
        if race.key not in known:
            findings.append(Finding(BROKEN, subject.name, NO_RACE, row, (), race.text))
    return Checked(subject.name, NO_RACE, len(races), tuple(findings)) if races else None


def has_rows(budget: Budget, subject: GuardedKernel, accepted: Sequence[Selector] = ()) -> bool:
    """Whether the kernel makes an access to which the budget applies."""
    return any(map(_happens, filter(_Check(budget, subject, accepted).is_meant, subject.analysis.sites)))


def _happens(site: SiteCounts) -> bool:
    """Whether the access was made at all: one that no lane makes is within every budget."""
    return site.unresolved is not None or bool(site.requests)


def _check_entry(subject: GuardedKernel) -> None:
    if subject.entry is None:
        raise MemsimError(f"kernel {subject.name} is not in the baseline", hint="memsim baseline adds it")
    before, now = subject.entry.launch, launch_of(subject.analysis)
    if subject.entry.arguments is not None and subject.arguments is not None:
        before += f", arguments {subject.entry.arguments}"
        now += f", arguments {subject.arguments}"
    if now != before:
        raise MemsimError(
            f"the baseline of {subject.name} is for another launch: {before}",
            hint=f"now it is {now}; {WRITE_IT}",
        )
