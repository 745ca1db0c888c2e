"""Whether all budgets hold, and whether they could fail at all.

In: analyzed kernels, budgets as declared, and the accesses that are accepted though they could not be
analyzed. Out: an `Outcome`. Whatever cannot fail guards nothing, and is a problem: no kernels, a budget
that no access of its kernels falls under, a kernel that no budget says anything about, an acceptance
that nothing needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from memsim.errors import MemsimError
from memsim.guard.budget import Budget
from memsim.guard.check import Subject, check
from memsim.guard.outcome import Checked, Outcome, Problem
from memsim.guard.select import Selector

# Says where an error about a text of the configuration stands.
Locate = Callable[[MemsimError], MemsimError]


def _as_it_is(error: MemsimError) -> MemsimError:
    return error


@dataclass(frozen=True, slots=True)
class Rule:
    """A budget as declared. kernels: whom it is for. general: declared for all kernels of the project."""

    budget: Budget
    kernels: Collection[str]
    general: bool = False
    locate: Locate = _as_it_is


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Accesses that need not be analyzed, as declared; the fields are those of `Rule`."""

    selector: Selector
    kernels: Collection[str]
    general: bool = False
    locate: Locate = _as_it_is


def judge(
    subjects: Sequence[Subject],
    rules: Sequence[Rule],
    acceptances: Sequence[Acceptance] = (),
    problems: Sequence[Problem] = (),
    *,
    some: bool = False,
) -> Outcome:
    """Judges all budgets on all their kernels.

    Args:
        problems: kernels that could not be analyzed.
        some: these are not all kernels of the project, so what is declared for all of them need not
            say something about these.
    """
    problems = list(problems)
    checked: list[tuple[Rule, Checked]] = []
    for rule in rules:
        for subject in subjects:
            if subject.name not in rule.kernels:
                continue
            accepted = [other.selector for other in acceptances if subject.name in other.kernels]
            try:
                checked.append((rule, check(rule.budget, subject, accepted)))
            except MemsimError as error:
                problems.append(Problem(subject.name, error))
    if not problems:
        problems += _idle_rules(rules, checked, some)
        problems += _idle_acceptances(subjects, acceptances, some)
        problems += _unguarded(subjects, checked)
    return Outcome(
        kernels=tuple(subject.name for subject in subjects),
        checked=tuple(one for _, one in checked if one.rows),
        problems=tuple(problems),
    )


def _idle_rules(
    rules: Sequence[Rule], checked: Sequence[tuple[Rule, Checked]], some: bool
) -> Iterator[Problem]:
    for rule in rules:
        if any(one.rows for other, one in checked if other is rule) or (some and rule.general):
            continue
        error = MemsimError(
            f"no access of {_names(rule.kernels)} falls under this budget, so it cannot fail",
            column=1,
            source=rule.budget.text,
            hint="memsim analyze shows which accesses there are",
        )
        yield Problem("", rule.locate(error))


def _idle_acceptances(
    subjects: Sequence[Subject], acceptances: Sequence[Acceptance], some: bool
) -> Iterator[Problem]:
    for acceptance in acceptances:
        needed = any(
            site.unresolved is not None and acceptance.selector.matches(subject.name, site) is not False
            for subject in subjects
            if subject.name in acceptance.kernels
            for site in subject.analysis.sites
        )
        if needed or (some and acceptance.general):
            continue
        error = MemsimError(
            f"this accepts nothing: all such accesses of {_names(acceptance.kernels)} were analyzed",
            column=1,
            source=acceptance.selector.text,
            hint="take it out of accept",
        )
        yield Problem("", acceptance.locate(error))


def _unguarded(subjects: Sequence[Subject], checked: Sequence[tuple[Rule, Checked]]) -> Iterator[Problem]:
    if not subjects:
        yield Problem("", MemsimError("there is no kernel to check"))
    for subject in subjects:
        if any(one.rows for _, one in checked if one.kernel == subject.name):
            continue
        error = MemsimError(
            f"no budget says anything about {subject.name}",
            hint="give it a budget for the memory that it uses, or the budget 'baseline'",
        )
        yield Problem(subject.name, error)


def _names(kernels: Collection[str]) -> str:
    shown = sorted(kernels)[:3]
    more = len(kernels) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
