"""Errors of a running kernel, with their place in its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memsim.errors import MemsimError
from memsim.isa.program import Op
from memsim.state.poison import Poison


class KernelFault(MemsimError):
    """An error for which a GPU stops the kernel. kind: "address", "alignment", "assert", "trap", or
    "endless". by: the access that is wrong, if it is one.
    """

    def __init__(self, message: str, kind: str, by: WrongLanes | None = None, **more: Any) -> None:
        super().__init__(message, **more)
        self.kind = kind
        self.by = by


class Deadlock(MemsimError):
    """Lanes wait for others that never come. by: some of them."""

    def __init__(self, message: str, by: WrongLanes) -> None:
        super().__init__(message, **place_in_source(by.op))
        self.by = by


@dataclass(frozen=True)
class WrongLanes:
    """Lanes with an error at an instruction: the linear numbers of the first one's block and of its thread,
    and how many they are. space, width: of an access. where: in words, as ` at byte 128 of s (128 bytes)`.
    """

    op: Op
    block: int
    thread: int
    count: int
    space: str = ""
    width: int = 0
    where: str = ""


def place_in_source(op: Op) -> dict[str, Any]:
    """The place of an instruction, for errors."""
    if op.source is not None:
        return {"file": op.source.file, "line": op.source.line}
    return {"file": f"machine code at {op.address:#x}"}


def unknown_branch(op: Op, poison: Poison) -> MemsimError:
    """The error for control flow that depends on an unknown value."""
    return MemsimError(
        f"cannot go on: {op.text} depends on an unknown value: {poison.story()}", **place_in_source(op)
    )


def refused(op: Op, why: str) -> MemsimError:
    """The error for an instruction that cannot be executed."""
    return MemsimError(f"cannot go on: {op.text} {why}", **place_in_source(op))
