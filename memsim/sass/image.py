"""The contents of a cubin as records: kernels, variables and constants. Sizes and offsets are in bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

from memsim.isa.executable import CompiledKernel, Variable
from memsim.sass.elf import Relocation


@dataclass(frozen=True, slots=True)
class Image(CompiledKernel):
    """One kernel of a cubin. Of its parameters' types only the sizes are known.

    Constant banks 3 and 4 are the module's, the others the kernel's; bank 0 is zeros, as long as the launch's
    values and the parameters.

    Attributes:
        static_shared: including the part that the chip reserves.
        reserved_shared: 0x400 from sm_90 on, where a program's first array has this address, else 0.
        barriers: named barriers that a block uses; `__syncthreads` is one.
        code: the text section, 16 bytes per instruction.
        relocations: of `code`.
    """

    static_shared: int
    reserved_shared: int
    registers: int
    barriers: int
    code: bytes = field(repr=False)
    relocations: tuple[Relocation, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Cubin:
    """A file of kernels for one chip.

    Attributes:
        arch: `sm_90`, or `sm_90a` if the file says so.
        compiler: `ptxas 13.0.88`; `ptxas 12.0`, the CUDA release only, if there is no tool note; None if
            the file does not say.
        kernels: in file order.
        variables: in global memory.
        ptx: the text that it was assembled from, if it has line information.
    """

    arch: str
    compiler: str | None
    kernels: dict[str, Image]
    variables: tuple[Variable, ...]
    ptx: str | None = field(repr=False)
