"""Assembles PTX to a cubin by `ptxas`, which comes with the CUDA toolkit, with Triton and by memsim's extra
`ptx`. Another release may generate other code than the one that a vendor used.

nvJitLink, which PyTorch has, is not taken: it places shared arrays when it links, and so merges fewer
neighbouring accesses to them than `ptxas` and the driver do.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from memsim.compile.prepare import Compiled
from memsim.compile.toolkit import find_tools, tool_release
from memsim.errors import MemsimError
from memsim.programs import run_program, text_of

PTXAS_WHEEL = "nvidia-cuda-nvcc-cu12"
LATER_WHEEL = "nvidia-cuda-nvcc"

_TARGET = re.compile(r"^\s*\.target\s+(sm_\d+[a-z]?)", re.M)
_TOO_NEW = re.compile(r"Unsupported \.version")
_INLINED = re.compile(r"^(\s*\.loc\s+\d+\s+\d+\s+\d+)\s*,\s*function_name\b.*$", re.M)


def assemble_ptx(ptx: str, arch: str | None = None, name: str = "kernel.ptx") -> Compiled:
    """The machine code of PTX text.

    If an assembler is older than the text, the next one is tried.

    Args:
        arch: the chip, `sm_90`; None for the text's target.
        name: of the text in errors.

    Raises:
        MemsimError: no assembler is installed, or all reject the text; the hint is the log of the first.
    """
    if arch is None:
        arch = target_of(ptx)
        if arch is None:
            raise MemsimError("it has no .target", file=name)
    refused: MemsimError | None = None
    for tool in find_tools("ptxas", wheels_first=False):
        try:
            return _assemble(tool, ptx, arch, name)
        except MemsimError as error:
            if not _TOO_NEW.search(error.hint or ""):
                raise
            hint = f"{error.hint}\na later ptxas knows it: pip install {LATER_WHEEL} (Linux and Windows)"
            refused = refused or MemsimError(error.message, file=name, hint=hint)
    raise refused or MemsimError(
        "PTX is analyzed as machine code, and there is no ptxas, which makes it",
        file=name,
        hint=f"pip install {PTXAS_WHEEL} (Linux and Windows)",
    )


def target_of(ptx: str) -> str | None:
    """The chip for which PTX is written; None if it does not say."""
    target = _TARGET.search(ptx)
    return target[1] if target else None


def _for_release(ptx: str, release: str) -> str:
    """12.0 overflows the stack on lines of inlined functions: these are removed for it."""
    return _INLINED.sub(r"\1", ptx) if release.startswith("12.0") else ptx


def _assemble(tool: Path, ptx: str, arch: str, name: str) -> Compiled:
    release = tool_release(tool)
    with tempfile.TemporaryDirectory() as scratch:
        source, output = Path(scratch, "kernel.ptx"), Path(scratch, "kernel.cubin")
        source.write_text(_for_release(ptx, release), encoding="utf-8")
        command = [str(tool), f"-arch={arch}", "-lineinfo", str(source), "-o", str(output)]
        done = run_program(command, "ptxas", file=name)
        log = text_of(done).replace(str(source), name)
        assembler = f"ptxas {release}".strip()
        if done.returncode != 0:
            raise MemsimError(
                f"{assembler} cannot assemble it for {arch}", file=name, hint=log.strip() or None
            )
        return Compiled(output.read_bytes(), assembler, arch, log)
