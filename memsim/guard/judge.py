"""Judges all budgets, and whether they can fail at all.

Whatever cannot fail guards nothing and is reported as a problem: no kernels; a budget that applies to no
access of its kernels; a kernel without a budget that applies; an acceptance that is not needed, or a filter
alternative that matches nothing; and a compiled file whose source has changed while it has not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from memsim.errors import MemsimError
from memsim.guard.budget import Budget
from memsim.guard.evaluate import GuardedKernel, check, has_rows
from memsim.guard.outcome import Checked, Outcome, Problem, some_names
from memsim.guard.select import EVERYTHING, Selector

# Adds the place in the configuration to an error.
Locate = Callable[[MemsimError], MemsimError]


def _as_it_is(error: MemsimError) -> MemsimError:
    return error


@dataclass(frozen=True, slots=True)
class DeclaredBudget:
    """A budget as declared. kernels: to which it applies. general: declared for all kernels of
    the project.
    """

    budget: Budget
    kernels: Collection[str]
    general: bool = False
    locate: Locate = _as_it_is


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Accesses that may be unresolved, as declared; the fields are those of `DeclaredBudget`."""

    selector: Selector
    kernels: Collection[str]
    general: bool = False
    locate: Locate = _as_it_is


def judge(
    subjects: Sequence[GuardedKernel],
    rules: Sequence[DeclaredBudget],
    acceptances: Sequence[Acceptance] = (),
    problems: Sequence[Problem] = (),
    *,
    some: bool = False,
) -> Outcome:
    """Judge all budgets on all their kernels.

    Args:
        problems: kernels that could not be analyzed.
        some: these are not all kernels of the project, so what is declared for all of them need not
            apply to these.
    """
    problems = [*problems, *_stale(subjects)]
    checked: list[tuple[DeclaredBudget, Checked]] = []
    for rule in rules:
        for subject in subjects:
            if subject.name not in rule.kernels:
                continue
            try:
                checked.append((rule, check(rule.budget, subject, _accepted(subject, acceptances), subjects)))
            except MemsimError as error:
                problems.append(Problem(subject.name, error))
    if not problems:
        problems += _idle_rules(rules, checked, some)
        problems += _idle_alternatives(subjects, rules, acceptances, some)
        problems += _idle_acceptances(subjects, acceptances, some)
        problems += _unguarded(subjects, checked)
    return Outcome(
        kernels=tuple(subject.name for subject in subjects),
        checked=tuple(one for rule, one in checked if _says_something(rule, one)),
        problems=tuple(problems),
        notes=tuple(_doubts(subjects)),
    )


def _stale(subjects: Sequence[GuardedKernel]) -> Iterator[Problem]:
    """Compiled files that are unchanged although a source beside them has changed."""
    for subject in subjects:
        before, now = _files(subject)
        compiled = next(iter(now), "")
        changed = [name for name in now if name in before and before[name] != now[name]]
        if changed and compiled not in changed and compiled in before:
            have = "has" if len(changed) == 1 else "have"
            error = MemsimError(
                f"{', '.join(changed)} {have} changed since the baseline, and {compiled} has not: "
                "the counts are of the old source",
                hint=f"recompile {compiled}; if that does not change it, memsim baseline accepts it",
            )
            yield Problem(subject.name, error)


def _doubts(subjects: Sequence[GuardedKernel]) -> Iterator[str]:
    """Compiled files that may be stale, unless they are in the baseline with exactly these sources."""
    for subject in subjects:
        before, now = _files(subject)
        origin = subject.analysis.trace.origin
        if origin is not None and origin.doubt and before != now:
            yield f"{subject.name}: {origin.doubt}"


def _files(subject: GuardedKernel) -> tuple[dict[str, str], dict[str, str]]:
    """Digests of the compiled file and of its sources: in the baseline and now."""
    origin = subject.analysis.trace.origin
    before = subject.entry.files if subject.entry is not None else ()
    return dict(before), dict(origin.files if origin is not None else ())


def _says_something(rule: DeclaredBudget, checked: Checked) -> bool:
    """Whether the budget applies to an access, or limits accesses that need not exist."""
    quantity = rule.budget.quantity
    return bool(checked.rows) or (quantity is not None and quantity.absent)


def _idle_rules(
    rules: Sequence[DeclaredBudget], checked: Sequence[tuple[DeclaredBudget, Checked]], some: bool
) -> Iterator[Problem]:
    for rule in rules:
        if any(_says_something(rule, one) for other, one in checked if other is rule) or (
            some and rule.general
        ):
            continue
        error = MemsimError(
            f"this budget applies to no access of {some_names(sorted(rule.kernels))}, so it cannot fail",
            column=1,
            source=rule.budget.text,
            hint="memsim analyze lists the accesses",
        )
        yield Problem("", rule.locate(error))


def _accepted(subject: GuardedKernel, acceptances: Sequence[Acceptance]) -> list[Selector]:
    return [one.selector for one in acceptances if subject.name in one.kernels]


def _idle_alternatives(
    subjects: Sequence[GuardedKernel],
    rules: Sequence[DeclaredBudget],
    acceptances: Sequence[Acceptance],
    some: bool,
) -> Iterator[Problem]:
    """Every alternative of `sites(array=a, array=b)` has to match, or a wrong name would go unnoticed."""
    for rule in rules:
        if some and rule.general:
            continue
        for text, column, selector in rule.budget.selector.alternatives():
            budget = replace(rule.budget, selector=selector)
            about = (
                has_rows(budget, subject, _accepted(subject, acceptances))
                for subject in subjects
                if subject.name in rule.kernels
            )
            if not any(about):
                yield _idle_alternative(rule, rule.budget.text, text, column)
    for acceptance in acceptances:
        if some and acceptance.general:
            continue
        for text, column, selector in acceptance.selector.alternatives():
            if not _is_needed(subjects, acceptance, selector):
                yield _idle_alternative(acceptance, acceptance.selector.text, text, column)


def _idle_alternative(
    entry: DeclaredBudget | Acceptance, source: str, alternative: str, column: int
) -> Problem:
    error = MemsimError(
        f"the alternative {alternative} matches no access of {some_names(sorted(entry.kernels))}",
        column=column,
        source=source,
        hint="remove or correct it; memsim analyze lists the accesses",
    )
    return Problem("", entry.locate(error))


def _is_needed(
    subjects: Sequence[GuardedKernel], acceptance: Acceptance, alternative: Selector = EVERYTHING
) -> bool:
    """Whether it, with this alternative, accepts an unresolved access."""
    return any(
        site.unresolved is not None
        and acceptance.selector.surely_matches(subject.name, site)
        and alternative.matches(subject.name, site)
        for subject in subjects
        if subject.name in acceptance.kernels
        for site in subject.analysis.sites
    )


def _idle_acceptances(
    subjects: Sequence[GuardedKernel], acceptances: Sequence[Acceptance], some: bool
) -> Iterator[Problem]:
    for acceptance in acceptances:
        if _is_needed(subjects, acceptance) or (some and acceptance.general):
            continue
        error = MemsimError(
            f"this accepts nothing: no unresolved access of {some_names(sorted(acceptance.kernels))} "
            "certainly matches it",
            column=1,
            source=acceptance.selector.text,
            hint="remove it from accept",
        )
        yield Problem("", acceptance.locate(error))


def _unguarded(
    subjects: Sequence[GuardedKernel], checked: Sequence[tuple[DeclaredBudget, Checked]]
) -> Iterator[Problem]:
    if not subjects:
        yield Problem("", MemsimError("there is no kernel to check"))
    for subject in subjects:
        if any(_says_something(rule, one) for rule, one in checked if one.kernel == subject.name):
            continue
        error = MemsimError(
            f"no budget applies to {subject.name}",
            hint="declare a budget for the memory that it uses, or the budget 'baseline'",
        )
        yield Problem(subject.name, error)
