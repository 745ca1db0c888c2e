"""The `nvcc` on PATH, for files with host code.

In: a source and options. Out: what nvcc wrote, its log, and what files are called in it.
Left out on purpose: the host's side of what it compiles.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from memsim.compile.names import Names, rename, rename_files


def nvcc_ptx(text: str, folder: Path, name: str, options: list[str]) -> tuple[str | None, str]:
    """(PTX text with given names, None if it does not compile; the log)."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, Path(name).name).with_suffix(".cu")
        source.write_text(text, encoding="utf-8", errors="surrogateescape")
        written, log = _run("-ptx", source, Path(scratch), options)
        log = rename(log, source.as_posix(), name)
        if written is None:
            return None, log
        ptx = rename_files(written.decode(), source.as_posix(), name)
        return rename_files(ptx, (folder / "any.cu").as_posix(), name), log


def nvcc_cubin(
    text: str, path: Path | None, folder: Path, name: str, options: list[str]
) -> tuple[bytes | None, str, Names]:
    """(a cubin, None if it does not compile; the log; names).

    nvcc makes names of internal symbols from the path of a file, so a file is compiled where it is.
    """
    with tempfile.TemporaryDirectory() as scratch:
        source = path
        if source is None or source.suffix != ".cu":
            source = Path(scratch, Path(name).name).with_suffix(".cu")
            source.write_text(text, encoding="utf-8", errors="surrogateescape")
        written, log = _run("-cubin", source, Path(scratch), options)
        names = Names(((source.as_posix(), name), ((folder / "any.cu").as_posix(), name)))
        return written, rename(log, source.as_posix(), name), names


def _run(kind: str, source: Path, scratch: Path, options: list[str]) -> tuple[bytes | None, str]:
    output = scratch / "output"
    command = ["nvcc", kind, *options, "-o", str(output), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    log = done.stdout + done.stderr
    return (output.read_bytes() if done.returncode == 0 else None), log
