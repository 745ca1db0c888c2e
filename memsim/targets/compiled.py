"""Lists the kernels in a file of machine code, with command lines to analyze them.

Only the sizes of parameters are known from machine code.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from memsim.api import loading
from memsim.ptx.demangle import demangle
from memsim.sass.cubin import read_cubin
from memsim.sass.image import Image


def lines(file: str, verb: str = "analyze", arch: str | None = None) -> list[str]:
    """For each kernel the sizes of its parameters, and a command line.

    Raises:
        MemsimError: no such file, or no machine code in it for the chip.
    """
    images: dict[str, Image] = {}
    for name, content in loading.cubins_for(Path(file), arch):
        images = {**read_cubin(content, name).kernels, **images}
    said: list[str] = []
    for entry, image in images.items():
        sizes = ", ".join(f"{parameter.size} B" for parameter in image.parameters)
        said.append(f"{demangle(entry)}({sizes})")
        arguments = " ".join("--arg ARG" for _ in image.parameters)
        chosen = f" --kernel {shlex.quote(demangle(entry))}" if len(images) > 1 else ""
        line = f"  memsim {verb} {shlex.quote(file)}{chosen} --grid GRID --block BLOCK {arguments}"
        said.append(line.rstrip())
    return said
