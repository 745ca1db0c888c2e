"""A job: one launch of one kernel, with everything that determines its trace, and the chip whose rules count
it.

Every verb takes a `Job`, which loads its kernel on demand. Parsing what a user writes is in
`memsim.targets.target`, running it in `memsim.api`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from memsim.arch import SM_90, Arch
from memsim.argument_types.foreign_arrays import as_arguments
from memsim.argument_types.launch_arguments import fit_arguments
from memsim.arguments import check_elements, describe, read_arguments
from memsim.errors import MemsimError
from memsim.kernel import Kernel
from memsim.launch import Launch, is_integer
from memsim.trace.trace import TraceSource


class KernelProvider(Protocol):
    """Where a kernel comes from: a file, the catalogue, or a loaded kernel itself."""

    @property
    def folder(self) -> Path:
        """The folder that file names are relative to."""

    @property
    def file(self) -> str:
        """The kernel's file, relative to `folder`."""

    def load(self, arch: Arch) -> Kernel:
        """The kernel, compiled for a chip if necessary.

        Raises:
            MemsimError: no such file or kernel, or it does not compile.
        """


@dataclass(frozen=True)
class Job:
    """One launch of one kernel.

    kernel: a loaded kernel or its provider, or a source of a trace without a kernel. args: in the kernel's
    order: values, or texts for `memsim.arguments`. blocks: replay only so many, spread evenly over the grid;
    None for all. max_steps: instructions after which a chunk of blocks counts as an endless loop; None for
    the default. It only decides whether there is a trace. allow_out_of_bounds: count a load outside of every
    array, whose value is then unknown, instead of raising an error. arch: the chip to compile for, and whose
    rules to use. name: in budgets, the baseline and reports. size: for a kernel of the catalogue the problem
    size by name, else empty. where: the source of `args`, in errors. uncertain: assumptions about the launch,
    in words.
    """

    kernel: KernelProvider | TraceSource
    launch: Launch
    args: Sequence[Any] = ()
    blocks: int | None = None
    max_steps: int | None = None
    allow_out_of_bounds: bool = False
    arch: Arch = SM_90
    name: str = ""
    size: Mapping[str, int] = field(default_factory=dict)
    where: str = field(default="args", compare=False)
    uncertain: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, value in (("blocks", self.blocks), ("max_steps", self.max_steps)):
            if value is not None and not (is_integer(value) and value >= 1):
                raise MemsimError(f"{name} must be an integer of at least 1, not {value!r}")
        if not isinstance(self.allow_out_of_bounds, bool):
            raise MemsimError(f"allow_out_of_bounds must be true or false, not {self.allow_out_of_bounds!r}")

    def __getstate__(self) -> dict[str, object]:
        """What it was made of: another process loads the kernel and reads the arguments itself."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @cached_property
    def loaded(self) -> Kernel:
        """The kernel, loaded once.

        Raises:
            MemsimError: as `KernelProvider.load`, or there is only a trace.
        """
        if isinstance(self.kernel, TraceSource):
            raise MemsimError(f"{self.name or 'this'} has no machine code, only recorded accesses")
        return self.kernel.load(self.arch)

    @cached_property
    def values(self) -> Sequence[object]:
        """The arguments, with texts parsed by the types of the kernel's parameters.

        Raises:
            MemsimError: as `loaded`, or a text that is not a value of its parameter.
        """
        if not isinstance(self.args, (list, tuple)):
            return self.args
        kernel, values = self.loaded, as_arguments(self.args)
        if any(isinstance(value, str) for value in values):
            parameters = dict(zip(kernel.argument_names, kernel.parameters, strict=True))
            values = read_arguments(
                values, parameters, self.kernel.folder, self.where, kernel.argument_types, kernel.name
            )
        values = fit_arguments(kernel.parameters, values, kernel.name)
        check_elements(values, kernel.argument_names, kernel.argument_types, self.where)
        return values

    @property
    def given(self) -> str:
        """The problem size, or the arguments, in a line."""
        if self.size:
            return ", ".join(f"{name} {size}" for name, size in self.size.items())
        return ", ".join(map(describe, self.args))
