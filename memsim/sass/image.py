"""The contents of a cubin as records: kernels, variables and constants. Sizes and offsets are in bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

from memsim.isa.executable import Dims, Parameter, Pointer, Variable
from memsim.sass.elf import Relocation


@dataclass(frozen=True, slots=True)
class Image:
    """One kernel of a cubin. Sizes are in bytes.

    Attributes:
        parameters: in order; of their types only the sizes are known.
        parameter_base: offset of the parameters in constant bank 0.
        static_shared: including the part that the chip reserves.
        reserved_shared: 0x400 from sm_90 on, where a program's first array has this address, else 0.
        barriers: named barriers that a block uses; `__syncthreads` is one.
        local_bytes: stack of a thread, called device functions included, as far as the compiler knows it.
        constants: by bank; 3 and 4 are the module's, the others the kernel's. Bank 0 is zeros, as long as
            the launch's values and the parameters.
        pointers: by bank, to be filled into `constants`.
        functions: other functions in the kernel's code: offset by name.
        code: the text section, 16 bytes per instruction.
        max_threads, required_threads, cluster: from `__launch_bounds__`, `.reqntid`, `__cluster_dims__`.
        relocations: of `code`.
    """

    name: str
    parameters: tuple[Parameter, ...]
    parameter_base: int
    parameter_size: int
    static_shared: int
    reserved_shared: int
    registers: int
    barriers: int
    local_bytes: int
    constants: dict[int, bytes] = field(repr=False)
    pointers: dict[int, tuple[Pointer, ...]] = field(repr=False)
    functions: dict[str, int]
    code: bytes = field(repr=False)
    max_threads: Dims | None
    required_threads: Dims | None
    cluster: Dims | None
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
