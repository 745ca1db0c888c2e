"""Lists the kernels in a file of machine code or PTX, with command lines to analyze them.

Only the sizes of parameters are known from them. A source whose text does not say which kernels it has is
compiled for it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from memsim.api import loading
from memsim.isa.executable import Parameter
from memsim.names.demangle import demangle
from memsim.sass.cubin import read_cubin


def kernel_commands(file: str, options: Sequence[str] = ()) -> list[str]:
    """For each kernel the sizes of its parameters, and a command line.

    options: for the compiler of a source, which the command lines repeat.

    Raises:
        MemsimError: no such file, no machine code in it, or it does not compile.
    """
    path = Path(file)
    if path.suffix in (".ptx", *loading.SOURCE_SUFFIXES):
        machines = loading.load(path, options).machines
        kernels = {entry: machine.parameters for entry, machine in machines.items()}
    else:
        kernels = _in_binary(path)
    words = " ".join(map(shlex.quote, (file, *options)))
    said: list[str] = []
    for entry, parameters in kernels.items():
        sizes = ", ".join(f"{parameter.size} B" for parameter in parameters)
        said.append(f"{demangle(entry)}({sizes})")
        arguments = " ".join("--arg ARG" for _ in parameters)
        chosen = f" --kernel {shlex.quote(demangle(entry))}" if len(kernels) > 1 else ""
        line = f"  memsim analyze {words}{chosen} --grid GRID --block BLOCK {arguments}"
        said.append(line.rstrip())
    return said


def _in_binary(path: Path) -> dict[str, tuple[Parameter, ...]]:
    """The parameters of each kernel by its entry's name."""
    found: dict[str, tuple[Parameter, ...]] = {}
    for name, content in loading.cubins_for(path, None):
        found = {
            **{entry: image.parameters for entry, image in read_cubin(content, name).kernels.items()},
            **found,
        }
    return found
