"""Errors of a running kernel, with their place in its source."""

from __future__ import annotations

from typing import Any

from memsim.errors import MemsimError
from memsim.isa.program import Op
from memsim.state.poison import Poison


class KernelFault(MemsimError):
    """An error for which a GPU stops the kernel. kind: "address", "alignment", "assert", "trap", or
    "endless".
    """

    def __init__(self, message: str, kind: str, **more: Any) -> None:
        super().__init__(message, **more)
        self.kind = kind


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
