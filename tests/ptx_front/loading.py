"""PTX as kernels that execute without an assembler: a second opinion on what ptxas makes of it, and a
language for tests of single instructions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

from memsim.isa.program import Executable, Parameter
from memsim.kernel import Kernel
from memsim.names.demangle import resolve
from memsim.sass.machine_code import MachineKernel
from memsim.trace.trace_data import Origin
from studies.kernel_ptx import compile_cuda
from tests.ptx_front.inline import inline_calls
from tests.ptx_front.lowering.lower import lower
from tests.ptx_front.parser import parse
from tests.ptx_front.program import Function, PtxModule


@dataclass(frozen=True)
class LoweredMachine:
    """What takes the place of machine code in a kernel."""

    module: PtxModule
    name: str

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.module.functions[self.name].parameters

    @cached_property
    def function(self) -> Function:
        """The kernel with its device functions inlined."""
        return inline_calls(self.module, self.name)

    @cached_property
    def executable(self) -> Executable:
        return lower(self.module, self.function)


class PtxKernel(Kernel):
    """A kernel whose instructions are lowered from PTX one by one; it has no listing and no resources."""

    @cached_property
    def origin(self) -> Origin:
        return Origin("PTX", self.machine.module.target, "", "")

    @property
    def static_shared(self) -> int:
        return self.executable.static_shared

    @property
    def resources(self) -> None:
        """Unknown, because ptxas allocates them."""

    @property
    def listing(self) -> tuple[tuple[int, str, str, int], ...]:
        return ()


class PtxKernels(dict[str, Kernel]):
    """The kernels of PTX; one is named as in `memsim.Module`."""

    def __init__(self, module: PtxModule, sources: Mapping[str, str]) -> None:
        machines = {entry: cast("MachineKernel", LoweredMachine(module, entry)) for entry in module.entries}
        super().__init__({entry: PtxKernel(entry, made, sources) for entry, made in machines.items()})

    def __missing__(self, name: str) -> Kernel:
        return self[resolve(list(self), name)]


def load_ptx(source: str | Path) -> PtxKernels:
    """The kernels of a text, or of a file."""
    text, name = (source.read_text("utf-8"), str(source)) if isinstance(source, Path) else (source, "PTX")
    module = parse(text, name)
    return PtxKernels(module, {} if module.files else {module.path: module.text})


def load_cuda(text: str, options: Sequence[str] = (), name: str = "k.cu") -> PtxKernels:
    """The kernels of CUDA source, by the PTX that NVRTC makes of it."""
    return PtxKernels(parse(compile_cuda(f"{text}\n", options, name=name), name), {name: text})
