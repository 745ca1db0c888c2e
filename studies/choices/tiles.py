"""The tiles that `sgemm` could launch at a size, and sizes for which one is chosen, beside studies/sizes."""

from __future__ import annotations

from functools import cache

from memsim.compile.assemble import assemble_ptx
from memsim.errors import MemsimError
from memsim.kernel import Kernel
from memsim.kernels import Spec
from memsim.kernels.shipped import digest
from memsim.sass.machine_code import MachineModule, read_module
from studies.bench.recording import Size
from studies.choices.choice import TILES, Choice
from studies.dispatch import PARTS, Piece, dispatchers
from studies.kernel_ptx import ptx_of
from studies.sizes import DISPATCHER, random_sizes

#: Sizes that nobody had looked at when their tiles were estimated and then timed.
UNSEEN_SIZES = {
    name: random_sizes(seed, 35) for seed, name in enumerate(("unseen", "second", "third", "fourth"), 28)
}

#: What assembles as the driver did on the machine where tiles were timed.
ASSEMBLER = "ptxas 13.0"


def tiles_at(size: Size) -> tuple[Piece, ...]:
    """All, each with the kernel that adds its parts of K."""
    return dispatchers()[DISPATCHER].alternatives(size)


def choice_of(size: Size, piece: Piece) -> Choice:
    """A tile's name and code."""
    told = f"{piece.spec.name}, {PARTS} {piece.parts}"
    return Choice(TILES, "x".join(map(str, size)), told, digest(ptx_of(piece.spec)))


def timed_kernel(spec: Spec) -> Kernel:
    """A kernel in the machine code that was timed: `studies.bench` launches PTX, which the driver assembles.
    What ships is by an older compiler, and up to 1.4 times as long in cycles.

    Raises:
        MemsimError: there is no ptxas, or of another release.
    """
    machine = _assembled(ptx_of(spec), spec.name).kernels[spec.entry]
    return Kernel(spec.entry, machine, spec.source_texts())


@cache
def _assembled(ptx: str, name: str) -> MachineModule:
    made = assemble_ptx(ptx, "sm_90", name)
    if not made.compiler.startswith(ASSEMBLER):
        raise MemsimError(f"tiles were timed as {ASSEMBLER} assembles them, and here is {made.compiler}")
    return read_module(made.cubin, file=name)
