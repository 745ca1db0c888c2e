"""Disassembly of a cubin by NVIDIA's `nvdisasm`, with labels, source lines and inlining.

nvdisasm takes about half a second, so listings are cached in the user's store (`memsim.store`) by cubin and
tool version. A quarter of that is an analysis of the data flow, which only says of some instructions to where
they branch, and which are spills: code without any of these is not analyzed. Parsing is in
`memsim.sass.listing`.
"""

from __future__ import annotations

import re
import tempfile
import zlib
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from memsim.compile.toolkit import find_tool, tool_release
from memsim.errors import MemsimError
from memsim.programs import run_program
from memsim.store import Store, cache_folder

WHEEL = "nvidia-cuda-nvdisasm"
OPTIONS = ("-c", "-gi")
PTX_LINES = "-gp"
UNANALYZED = "-ndf"
#: What the analysis says more of: indexed branches, calls of what a register holds, accesses to the stack.
_ANALYZED = re.compile(r"\b(?:BRXU?|JMXU?|LDL|STL|CALL[\w.]* +U?R\d+)\b")


def disassemble(
    cubin: bytes, file: str | None = None, *, ptx_lines: bool = False, functions: Sequence[int] = ()
) -> str:
    """The output of `nvdisasm -c -gi`; `file` is the cubin's name in errors. ptx_lines: with lines of the
    PTX, too. functions: only those with symbols of these numbers; all if there are none.

    Raises:
        MemsimError: nvdisasm is not installed, or it cannot read the cubin.
    """
    tool = _tool()
    options = (*OPTIONS, PTX_LINES) if ptx_lines else OPTIONS
    if functions:
        options = (*options, "-fun", ",".join(map(str, functions)))
    store = Store(cache_folder())
    key = f"listing {version()} {' '.join(options)} {sha256(cubin).hexdigest()}"
    kept = store.get(key)
    if kept is not None:
        return zlib.decompress(kept).decode()
    text = _run(tool, cubin, file, (*options, UNANALYZED))
    if _ANALYZED.search(text):
        text = _run(tool, cubin, file, options)
    store.put(key, zlib.compress(text.encode(), 3))
    return text


def is_installed() -> bool:
    """Whether there is a nvdisasm."""
    return find_tool("nvdisasm") is not None


def version() -> str:
    """The version of nvdisasm, such as `13.5.37`.

    Raises:
        MemsimError: nvdisasm is not installed.
    """
    return _version(_tool())


@cache
def _version(tool: Path) -> str:
    return tool_release(tool)


def _tool() -> Path:
    tool = find_tool("nvdisasm")
    if tool is None:
        raise MemsimError(
            "nvdisasm, NVIDIA's disassembler, is not installed",
            hint=f"pip install {WHEEL} (Linux and Windows), or install the CUDA toolkit",
        )
    return tool


def _run(tool: Path, cubin: bytes, file: str | None, options: Sequence[str]) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "kernel.cubin")
        path.write_bytes(cubin)
        done = run_program([tool, *options, path], "nvdisasm", file=file)
        if done.returncode != 0:
            log = (done.stderr or done.stdout).decode(errors="replace").replace(str(path), file or path.name)
            raise MemsimError(
                f"nvdisasm {_version(tool)} cannot read it",
                file=file,
                hint=f"{log.strip()}\nA newer chip needs a newer nvdisasm: pip install -U {WHEEL}",
            )
        return done.stdout.decode(errors="replace").replace("\r\n", "\n")
