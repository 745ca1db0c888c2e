"""Judges all budgets, and whether they can fail at all.

Whatever cannot fail guards nothing and is reported as a problem: no kernels; a budget that applies to no
access of its kernels; a kernel without a budget that applies; an acceptance that is not needed, or a filter
alternative that matches nothing; and a compiled file whose source has changed while it has not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from memsim.errors import MemsimError
from memsim.guard.budget import TIME, Budget
from memsim.guard.evaluate import GuardedKernel, check, check_races, has_rows
from memsim.guard.outcome import Checked, Outcome, Problem, some_names
from memsim.guard.select import EVERYTHING, Selector

# Adds the place in the configuration to an error.
Locate = Callable[[MemsimError], MemsimError]


T = TypeVar("T", Budget, Selector)


@dataclass(frozen=True, slots=True)
class Declared(Generic[T]):
    """A budget, or accesses that may be unresolved, as declared.

    kernels: to which it applies. general: declared for all kernels of the project.
    """

    what: T
    kernels: Collection[str]
    general: bool = False
    locate: Locate = lambda error: error


def restrict_rule(rule: Declared[T], names: Collection[str]) -> Declared[T]:
    """The rule for these targets only, of those for which it was declared."""
    inside = [name for name in rule.kernels if name in names]
    return replace(rule, kernels=inside, general=rule.general or len(inside) < len(rule.kernels))


def has_time_budget(kernel: str, rules: Sequence[Declared[Budget]]) -> bool:
    """Whether the time of a kernel has to be estimated for its budgets."""
    return any(rule.what.figure == TIME and kernel in rule.kernels for rule in rules)


def judge(
    subjects: Sequence[GuardedKernel],
    rules: Sequence[Declared[Budget]],
    acceptances: Sequence[Declared[Selector]] = (),
    problems: Sequence[Problem] = (),
    *,
    some: bool = False,
) -> Outcome:
    """Judge all budgets on all their kernels.

    problems: kernels that could not be analyzed. some: these are not all kernels of the project, so what is
    declared for all of them need not apply to these.
    """
    problems = [*problems, *_stale(subjects)]
    checked: list[tuple[Declared[Budget], Checked]] = []
    for rule in rules:
        for subject in subjects:
            if subject.target not in rule.kernels:
                continue
            try:
                checked.append((rule, check(rule.what, subject, _accepted(subject, acceptances), subjects)))
            except MemsimError as error:
                problems.append(Problem(subject.name, error))
    if not problems:
        problems += _idle_rules(
            [rule for rule in rules if not (some and rule.general)], subjects, acceptances, checked
        )
        problems += _idle_acceptances([one for one in acceptances if not (some and one.general)], subjects)
        problems += _unguarded(subjects, checked)
    races = (check_races(subject) for subject in subjects)
    return Outcome(
        kernels=tuple(subject.name for subject in subjects),
        checked=(*(one for rule, one in checked if _says_something(rule, one)), *filter(None, races)),
        problems=tuple(problems),
        notes=tuple(_doubts(subjects)),
        of_programs=tuple(subject.name for subject in subjects if subject.program),
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
    before = subject.entry.files if subject.entry is not None else {}
    return before, dict(origin.files if origin is not None else ())


def _says_something(rule: Declared[Budget], checked: Checked) -> bool:
    """Whether the budget applies to an access, or limits accesses that need not exist."""
    quantity = rule.what.quantity
    return bool(checked.rows) or (quantity is not None and quantity.absent)


def _idle_rules(
    rules: Sequence[Declared[Budget]],
    subjects: Sequence[GuardedKernel],
    acceptances: Sequence[Declared[Selector]],
    checked: Sequence[tuple[Declared[Budget], Checked]],
) -> Iterator[Problem]:
    """Every budget, and every alternative of `sites(array=a, array=b)`, has to apply to some access: a wrong
    name must not go unnoticed.
    """
    for rule in rules:
        if not any(_says_something(rule, one) for other, one in checked if other is rule):
            said = (
                f"this budget applies to no access of {some_names(sorted(rule.kernels))}, so it cannot fail"
            )
            yield _idle(rule, said, "memsim analyze lists the accesses")
        for text, column, selector in rule.what.selector.alternatives():
            budget = replace(rule.what, selector=selector)
            about = (
                has_rows(budget, subject, _accepted(subject, acceptances))
                for subject in subjects
                if subject.target in rule.kernels
            )
            if not any(about):
                yield _idle_alternative(rule, text, column)


def _accepted(subject: GuardedKernel, acceptances: Sequence[Declared[Selector]]) -> list[Selector]:
    return [one.what for one in acceptances if subject.target in one.kernels]


def _idle_acceptances(
    acceptances: Sequence[Declared[Selector]], subjects: Sequence[GuardedKernel]
) -> Iterator[Problem]:
    """The same of what is accepted."""
    for acceptance in acceptances:
        for text, column, selector in acceptance.what.alternatives():
            if not _is_needed(subjects, acceptance, selector):
                yield _idle_alternative(acceptance, text, column)
        if not _is_needed(subjects, acceptance):
            names = some_names(sorted(acceptance.kernels))
            said = f"this accepts nothing: no unresolved access of {names} certainly matches it"
            yield _idle(acceptance, said, "remove it from accept")


def _idle_alternative(entry: Declared[T], alternative: str, column: int) -> Problem:
    said = f"the alternative {alternative} matches no access of {some_names(sorted(entry.kernels))}"
    return _idle(entry, said, "remove or correct it; memsim analyze lists the accesses", column)


def _idle(entry: Declared[T], message: str, hint: str, column: int = 1) -> Problem:
    error = MemsimError(message, column=column, source=entry.what.text, hint=hint)
    return Problem("", entry.locate(error))


def _is_needed(
    subjects: Sequence[GuardedKernel], acceptance: Declared[Selector], alternative: Selector = EVERYTHING
) -> bool:
    """Whether it, with this alternative, accepts an unresolved access."""
    return any(
        site.unresolved is not None
        and acceptance.what.surely_matches(subject.name, site)
        and alternative.matches(subject.name, site)
        for subject in subjects
        if subject.target in acceptance.kernels
        for site in subject.analysis.sites
    )


def _unguarded(
    subjects: Sequence[GuardedKernel], checked: Sequence[tuple[Declared[Budget], Checked]]
) -> Iterator[Problem]:
    """Every target has to have a budget that applies to it; one that is a program, to one of its launches."""
    if not subjects:
        yield Problem("", MemsimError("there is no kernel to check"))
    judged = {one.kernel for rule, one in checked if _says_something(rule, one)}
    guarded = {subject.target for subject in subjects if subject.name in judged}
    for name in dict.fromkeys(subject.target for subject in subjects):
        if name not in guarded:
            error = MemsimError(
                f"no budget applies to {name}",
                hint="declare a budget for the memory that it uses, or the budget 'baseline'",
            )
            yield Problem(name, error)
