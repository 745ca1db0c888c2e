"""A job: one launch of one kernel, all that decides its trace, and by whose rules it is counted.

In: which kernel, a launch, arguments as values or as texts. Out: a `Job`, which every verb takes, and which
loads its kernel when somebody asks. Left out on purpose: what a user writes to name one
(`memsim.targets.target`), and running it (`memsim.api`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from memsim.arch import SM_90, Arch
from memsim.arguments import check_elements, describe, read_arguments
from memsim.errors import MemsimError
from memsim.kernel import Kernel
from memsim.launch import Launch, is_integer
from memsim.trace.trace_source import TraceSource


class KernelProvider(Protocol):
    """Where a kernel comes from: a file, the catalogue, or itself where it is loaded already."""

    @property
    def folder(self) -> Path:
        """What names of files are relative to."""

    @property
    def file(self) -> str:
        """The file that the kernel is in, relative to `folder`."""

    def load(self, arch: Arch) -> Kernel:
        """The kernel, compiled for a chip if it has to be.

        Raises:
            MemsimError: no such file or kernel, or it does not compile.
        """


@dataclass(frozen=True)
class Job:
    """One launch of one kernel.

    Attributes:
        kernel: what is launched, loaded or not; or what gives a trace without a kernel.
        launch: grid, block and dynamic shared memory.
        args: in the kernel's order: values, or texts as `memsim.arguments` reads them.
        blocks: replay only so many blocks, spread evenly over the grid; None for all.
        part: (number, of how many): of those blocks replay only the ones of this part; None for all. The
            counts of all parts together are those of the launch.
        max_steps: instructions after which a chunk of blocks counts as endless; None for the usual limit. It
            decides only whether there is a trace.
        allow_out_of_bounds: count a load outside of every array, whose value is then not known, instead of
            raising an error.
        arch: the chip to compile for, and whose rules to count by.
        name: what budgets, the baseline and reports call it.
        size: of a kernel of the catalogue the problem's size by name, else empty.
        where: what errors call the place that `args` are from.
        unsure: what about the launch is only assumed, in words.
    """

    kernel: KernelProvider | TraceSource
    launch: Launch
    args: Sequence[Any] = ()
    blocks: int | None = None
    part: tuple[int, int] | None = None
    max_steps: int | None = None
    allow_out_of_bounds: bool = False
    arch: Arch = SM_90
    name: str = ""
    size: Mapping[str, int] = field(default_factory=dict)
    where: str = field(default="args", compare=False)
    unsure: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, value in (("blocks", self.blocks), ("max_steps", self.max_steps)):
            if value is not None and not (is_integer(value) and value >= 1):
                raise MemsimError(f"{name} must be an integer of at least 1, not {value!r}")
        if not isinstance(self.allow_out_of_bounds, bool):
            raise MemsimError(f"allow_out_of_bounds is true or false, not {self.allow_out_of_bounds!r}")

    @cached_property
    def loaded(self) -> Kernel:
        """The kernel itself, loaded once.

        Raises:
            MemsimError: as `Source.load`, or there is only a trace.
        """
        if isinstance(self.kernel, TraceSource):
            raise MemsimError(f"{self.name or 'this'} has no machine code, only recorded accesses")
        return self.kernel.load(self.arch)

    @cached_property
    def values(self) -> Sequence[Any]:
        """The arguments, with texts read by the types of the kernel's parameters.

        Raises:
            MemsimError: as `loaded`, or a text that is no value for its parameter.
        """
        values = self.args
        if isinstance(self.args, (list, tuple)) and any(isinstance(arg, str) for arg in self.args):
            parameters = dict(zip(self.loaded.argument_names, self.loaded.parameters, strict=True))
            values = read_arguments(self.args, parameters, self.kernel.folder, self.where)
        if isinstance(values, (list, tuple)):
            check_elements(values, self.loaded.argument_names, self.loaded.argument_types, self.where)
        return values

    @property
    def given(self) -> str:
        """What the kernel is given, in a line: the problem's size, or its arguments."""
        if self.size:
            return ", ".join(f"{name} {size}" for name, size in self.size.items())
        return ", ".join(map(describe, self.args))
