"""A loaded kernel: its machine code, ready to be executed, and what its source tells about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from memsim.arch import Arch

if TYPE_CHECKING:
    from memsim.compile.included_files import Given
    from memsim.isa.program import Executable, Parameter
    from memsim.sass.machine_code import MachineKernel
    from memsim.trace.trace_data import Origin, Resources


@dataclass(frozen=True)
class Kernel:
    """A kernel of a loaded module, ready to be analyzed or run.

    `name` is the mangled name of the entry, `machine` its machine code. `sources` are texts by the file names
    in the code's line table. `notes`: about its compilation. `names`: of the parameters; default: from the
    sources. `called`: its display name; default: its demangled name. `given`: the compiled file that contains
    it.
    """

    name: str
    machine: MachineKernel = field(repr=False)
    sources: Mapping[str, str] = field(repr=False, default_factory=dict)
    notes: tuple[str, ...] = field(repr=False, default=(), compare=False)
    names: tuple[str, ...] = field(repr=False, default=())
    called: str = field(repr=False, default="")
    given: Given | None = field(repr=False, default=None, compare=False)

    def __repr__(self) -> str:
        return f"<Kernel {self.title}({', '.join(self.argument_names)})>"

    @property
    def title(self) -> str:
        """Its name in reports."""
        from memsim.names.demangle import demangle

        return self.called or demangle(self.name)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The kernel's parameters, in order."""
        return self.machine.parameters

    @property
    def folder(self) -> Path:
        """The folder that file names in `sources` and arguments are relative to."""
        return Path()

    @property
    def file(self) -> str:
        """The first of its sources."""
        return next(iter(self.sources), "")

    def load(self, arch: Arch) -> Kernel:
        """Itself, as a `memsim.job.KernelProvider`."""
        return self

    @cached_property
    def origin(self) -> Origin:
        """What was loaded: for which chip, and by which compiler."""
        from memsim.trace.trace_data import Origin

        module = self.machine.module
        digest = sha256(self.machine.image.code).hexdigest()
        found = Origin("machine code", module.cubin.arch, module.made_by, digest)
        return found if self.given is None else replace(found, files=self.given.files, newer=self.given.newer)

    @cached_property
    def key(self) -> str:
        """A key of everything in its code that determines a trace: the code, and the listing, with source
        lines, by which the code is read; it may be one that was saved.
        """
        listing = self.machine.module.listing_of(self.machine.name)
        return sha256(repr((self.origin, self.machine.shared, listing)).encode()).hexdigest()

    @property
    def executable(self) -> Executable:
        """What is executed."""
        return self.machine.executable

    @property
    def static_shared(self) -> int:
        """Its static shared memory, in bytes."""
        return self.machine.image.static_shared - self.machine.image.reserved_shared

    @property
    def resources(self) -> Resources | None:
        """The resources that a block needs."""
        from memsim.trace.trace_data import Resources

        return Resources(self.machine.registers, self.static_shared, self.machine.image.barriers)

    @property
    def listing(self) -> tuple[tuple[int, str, str, int], ...]:
        """Its instructions in order: (address, text, file, line)."""
        ops = self.executable.program.ops
        return tuple((op.address, op.text, op.source.file if op.source else "", op.line) for op in ops)

    @cached_property
    def _declared(self) -> tuple[tuple[str, str], ...]:
        """C type and name of each parameter in the source; empty if unknown."""
        from memsim.source.kernels import parameters

        count = len(self.parameters)
        found = (parameters(text, self.name, self.title) for text in self.sources.values())
        return next((declared for declared in found if len(declared) == count), (("", ""),) * count)

    @property
    def argument_types(self) -> tuple[str, ...]:
        """The parameters' C types in the source (`const float *`); empty if unknown."""
        return tuple(kind for kind, _ in self._declared)

    @property
    def argument_names(self) -> tuple[str, ...]:
        """The parameters' names in the source if known, else `arg0`, `arg1`, ..."""
        if len(self.names) == len(self.parameters):
            return self.names
        return tuple(name or f"arg{place}" for place, (_, name) in enumerate(self._declared))
