"""PTX as kernels that execute without an assembler: a second opinion on what ptxas makes of it, and a
language for tests of single instructions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from memsim.compile.cuda_source import compile_cuda
from memsim.isa.executable import Executable, Parameter
from memsim.kernel import Kernel
from memsim.trace.trace_data import Origin
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


def load_ptx(source: str | Path) -> Mapping[str, Kernel]:
    """The kernels of a text, or of a file."""
    text, name = (source.read_text(), str(source)) if isinstance(source, Path) else (source, "PTX")
    module = parse(text, name)
    sources = {} if module.files else {module.path: module.text}
    return {entry: PtxKernel(entry, LoweredMachine(module, entry), sources) for entry in module.entries}  # type: ignore[arg-type]


def load_cuda(text: str, options: Sequence[str] = (), name: str = "k.cu") -> Mapping[str, Kernel]:
    """The kernels of CUDA source, by the PTX that NVRTC makes of it."""
    module = parse(compile_cuda(f"{text}\n", options, name=name), name)
    return {
        entry: PtxKernel(entry, LoweredMachine(module, entry), {name: text})  # type: ignore[arg-type]
        for entry in module.entries
    }
