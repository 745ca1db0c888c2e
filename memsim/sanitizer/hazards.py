"""What is found in a launch: an error, with the accesses and threads that make it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

from memsim.errors import MemsimError
from memsim.instruction import Instruction
from memsim.launch import Launch

#: What errors are looked for by, the worst first.
BOUNDS, SYNC, RACE, INIT = TOOLS = ("bounds", "sync", "race", "init")
#: In the kind of a finding of bounds, if the address is no multiple of what the instruction accesses.
MISALIGNED = "is misaligned for"


@dataclass(frozen=True, slots=True)
class FoundAccess:
    """An access in a finding. does: "stores". block, thread: linear numbers; a thread of -1 is a copy or
    a product of a warpgroup.
    """

    instruction: Instruction
    does: str
    block: int
    thread: int


@dataclass(slots=True)
class Hazard:
    """One error, of all accesses of an instruction, or of a pair of them (`second`).

    kind: in words. count: of wrong accesses, in all blocks. cure: what to do. element: as `tile[3][0]`.
    offset: the first byte of `array` that the example accesses, of `width` that are wrong. doubt: why it is
    only possible; "" if it is certain. barriers: of the block, that both have behind them. allowed: the
    reason why it is allowed; None if it is not.
    """

    tool: str
    kind: str
    first: FoundAccess
    count: int
    cure: str
    second: FoundAccess | None = None
    space: str = ""
    array: str = ""
    element: str = ""
    offset: int = 0
    width: int = 0
    doubt: str = ""
    barriers: int = 0
    allowed: str | None = None

    @property
    def accesses(self) -> tuple[FoundAccess, ...]:
        """One or two."""
        return (self.first,) if self.second is None else (self.first, self.second)

    @property
    def places(self) -> tuple[tuple[str, int], ...]:
        """(file, line) of each access."""
        sources = (one.instruction.source for one in self.accesses)
        return tuple(("", 0) if place is None else (place.file, place.line) for place in sources)

    @property
    def line(self) -> str:
        """In a line: `s[0], which k.cu:4 stores and k.cu:5 loads: nothing orders the two accesses`."""
        does = " and ".join(f"{one.instruction.where} {one.does}" for one in self.accesses)
        return f"{self.element}, which {does}: {self.kind}" if self.element else f"{does}: {self.kind}"

    @property
    def rank(self) -> tuple[object, ...]:
        """The worst come first."""
        return bool(self.doubt), TOOLS.index(self.tool), self.places, self.array


@dataclass(frozen=True)
class Sanitized:
    """What was found in a launch: findings, worst first. tools: what was looked for. unjudged: what is not
    known of this launch, in words. limits: what it does that is not followed.
    """

    kernel: str
    launch: Launch
    blocks_run: int
    tools: tuple[str, ...]
    findings: tuple[Hazard, ...]
    unjudged: tuple[str, ...]
    limits: tuple[str, ...]
    sources: Mapping[str, str]

    @property
    def errors(self) -> tuple[Hazard, ...]:
        """Those that are not allowed."""
        return tuple(one for one in self.findings if one.allowed is None)

    @property
    def exit_code(self) -> int:
        """0 if nothing was found, 1 if something was, 2 if nothing was but not all could be judged."""
        return 1 if self.errors else 2 if self.unjudged else 0


class Allowance(NamedTuple):
    """Findings that are allowed: those with an array, a line (`k.cu:12`), both lines (`k.cu:12->k.cu:15`) or
    a reason why they are only possible (`all store the same value`) that the pattern matches.
    """

    pattern: str
    reason: str

    def fits(self, hazard: Hazard) -> bool:
        """Does it allow this one?"""
        lines = [f"{file}:{line}" for file, line in hazard.places]
        return any(
            fnmatchcase(name, self.pattern) for name in (hazard.array, *lines, "->".join(lines), hazard.doubt)
        )


def read_allowance(text: str) -> Allowance:
    """`s:stores of one value` or `k.cu:12:a flag`.

    Raises:
        MemsimError: it has no reason.
    """
    found = re.fullmatch(r"((?:[^:]|:\d+(?=[:-])|:(?=\d+->))+):\s*(.*[^\W\d].*)", text)
    if found is None:
        hint = "write --allow 's:all lanes store the same value' or --allow 'k.cu:12:a flag'"
        raise MemsimError(f"{text!r} is no pattern with a reason", hint=hint)
    return Allowance(found[1], found[2])


def by_lines(hazards: Sequence[Hazard]) -> list[Hazard]:
    """One of each kind for the same lines and array, with the counts of all."""
    found: dict[tuple[object, ...], Hazard] = {}
    for one in hazards:
        known = ("", 0) not in one.places
        key = one.tool, one.kind, one.array, one.space, bool(one.doubt), one.places if known else id(one)
        if key in found:
            found[key].count += one.count
        else:
            found[key] = one
    return list(found.values())


def allow(hazards: Sequence[Hazard], allowances: Sequence[Allowance]) -> None:
    """Give those that an allowance fits its reason."""
    for hazard in hazards:
        fitting = next((one for one in allowances if one.fits(hazard)), None)
        if fitting is not None:
            hazard.allowed = fitting.reason
