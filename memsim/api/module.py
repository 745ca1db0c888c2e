"""A loaded module: its kernels by name, and instances of its templates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memsim.errors import MemsimError
from memsim.kernel import Kernel

if TYPE_CHECKING:
    from memsim.compile.included_files import Given
    from memsim.sass.machine_code import MachineKernel


@dataclass(frozen=True)
class Module:
    """A loaded module. `module[name]` takes an entry's name in the code, or its demangled name.

    `machines`: its kernels by name, in the file's order. `instantiate`: makes a module of the same source
    with an instance of one of its templates; None where there is no source to do so. `notes`: of how it was
    compiled. `given`: the compiled file that it is of, with the sources beside it. `named`: what the code
    calls its sources, whether they can be found or not.
    """

    machines: Mapping[str, MachineKernel] = field(repr=False)
    sources: Mapping[str, str] = field(repr=False, default_factory=dict)
    instantiate: Callable[[str], Module] | None = field(repr=False, default=None, compare=False)
    notes: tuple[str, ...] = field(repr=False, default=(), compare=False)
    given: Given | None = field(repr=False, default=None, compare=False)
    named: tuple[str, ...] = field(repr=False, default=(), compare=False)

    def __repr__(self) -> str:
        return f"<Module with {', '.join(shown_names(self)) or 'no kernel'}>"

    @property
    def kernels(self) -> tuple[str, ...]:
        """Entry names as the compiler writes them, in the file's order."""
        return tuple(self.machines)

    def __getitem__(self, name: str) -> Kernel:
        """The kernel of that name.

        Raises:
            MemsimError: there is none, or several.
        """
        from memsim.names.demangle import resolve

        if not isinstance(name, str):
            raise MemsimError(f"a kernel is chosen by its name, not by {name!r}", hint=choice_of(self))
        try:
            entry = resolve(self.kernels, name)
        except MemsimError as error:
            return self._instance(name, error)
        return Kernel(entry, self.machines[entry], self.sources, self.notes, given=self.given)

    def _instance(self, name: str, error: MemsimError) -> Kernel:
        """The instance of a template that `name` is, made now.

        Raises:
            MemsimError: it is none, or does not compile.
        """
        from memsim.names.demangle import demangle, plain_name

        plain = plain_name(name)
        template = self.only_templates(plain)
        if template is not None and "<" in name and self.instantiate is not None:
            made = self.instantiate(name)
            # Other kernels may be new, too: names in an anonymous namespace hold a digest of the code.
            new = [
                entry
                for entry in made.machines.keys() - self.machines
                if plain_name(demangle(entry)) == plain
            ]
            if len(new) == 1:
                return Kernel(new[0], made.machines[new[0]], made.sources, made.notes)
        elif template is not None and plain not in map(plain_name, shown_names(self)):
            raise template from None
        raise error from None

    def only_templates(self, plain: str | None = None) -> MemsimError | None:
        """The error for a template without an instance, the first of this name; None if there is none."""
        from memsim.source.kernels import kernels
        from memsim.source.values import with_kernel_heads

        for file, text in self.sources.items():
            for kernel in kernels(with_kernel_heads(text, self.sources.values())):
                if kernel.template and plain in (None, kernel.plain):
                    return MemsimError(
                        f"{kernel.plain} is a template with no instance",
                        file=file,
                        line=kernel.line,
                        hint=f"name an instance, such as --kernel '{kernel.example}': {kernel.signature}",
                    )
        return None

    def __iter__(self) -> Iterator[str]:
        return iter(self.kernels)

    def __len__(self) -> int:
        return len(self.kernels)


def shown_names(module: Module) -> list[str]:
    """Its kernels by the names that people write."""
    from memsim.names.demangle import demangle

    return [demangle(name) for name in module.kernels]


def choice_of(module: Module) -> str:
    """How to choose a kernel of the module."""
    names = shown_names(module)
    return f"write module[{names[0]!r}]; it has {', '.join(names)}" if names else "it contains no kernel"
