"""Lists the kernels in a file of machine code or PTX, with command lines to analyze them.

Only the sizes of parameters are known from them.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from memsim.api import loading
from memsim.files import read_text
from memsim.isa.executable import Parameter
from memsim.ptx.demangle import demangle
from memsim.sass.cubin import read_cubin


def lines(file: str, verb: str = "analyze", arch: str | None = None) -> list[str]:
    """For each kernel the sizes of its parameters, and a command line.

    Raises:
        MemsimError: no such file, no machine code in it for the chip, or not PTX.
    """
    path = Path(file)
    kernels = _in_ptx(path) if path.suffix == ".ptx" else _in_binary(path, arch)
    said: list[str] = []
    for entry, parameters in kernels.items():
        sizes = ", ".join(f"{parameter.size} B" for parameter in parameters)
        said.append(f"{demangle(entry)}({sizes})")
        arguments = " ".join("--arg ARG" for _ in parameters)
        chosen = f" --kernel {shlex.quote(demangle(entry))}" if len(kernels) > 1 else ""
        line = f"  memsim {verb} {shlex.quote(file)}{chosen} --grid GRID --block BLOCK {arguments}"
        said.append(line.rstrip())
    return said


def _in_binary(path: Path, arch: str | None) -> dict[str, tuple[Parameter, ...]]:
    """The parameters of each kernel by its entry's name."""
    found: dict[str, tuple[Parameter, ...]] = {}
    for name, content in loading.cubins_for(path, arch):
        found = {
            **{entry: image.parameters for entry, image in read_cubin(content, name).kernels.items()},
            **found,
        }
    return found


def _in_ptx(path: Path) -> dict[str, tuple[Parameter, ...]]:
    """As `_in_binary`."""
    from memsim.ptx.parser import parse

    module = parse(read_text(path), str(path))
    return {entry: module.functions[entry].parameters for entry in module.entries}
