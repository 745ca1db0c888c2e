"""Runs nvcc, for files that NVRTC does not accept."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from memsim.compile.file_names import Names, rename, rename_files
from memsim.compile.toolkit import find_tool, tool_release


def find_nvcc() -> Path | None:
    """The nvcc on PATH, in a CUDA toolkit, or in a wheel."""
    return find_tool("nvcc", wheels_first=False)


def run_nvcc(
    nvcc: Path,
    text: str,
    path: Path | None,
    folder: Path,
    name: str,
    options: Sequence[str],
    arch: str,
    machine_code: bool,
    instances: Sequence[str] = (),
) -> tuple[str | None, bytes | None, str, Names, str]:
    """(PTX text with display names, or a cubin; None for both if it does not compile; log; names; release).

    nvcc derives internal symbols from the path of a file, so the file is compiled in place; PTX has no such
    symbols and is the same from every folder.
    """
    with tempfile.TemporaryDirectory() as scratch:
        source = path if machine_code and not instances else None
        if source is None or source.suffix != ".cu":
            source = Path(scratch, Path(name).name).with_suffix(".cu")
            source.write_text(text + _instantiated(instances), encoding="utf-8", errors="surrogateescape")
        output = Path(scratch, "output")
        kind, chip = ("-cubin", arch) if machine_code else ("-ptx", arch.replace("sm_", "compute_"))
        command = [str(nvcc), kind, f"-arch={chip}", *options, "-o", str(output), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        log = rename(done.stdout + done.stderr, source.as_posix(), name)
        names = Names(((source.as_posix(), name), ((folder / "any.cu").as_posix(), name)))
        written = output.read_bytes() if done.returncode == 0 else None
        release = tool_release(nvcc)
        if written is None or machine_code:
            return None, written, log, names, release
        ptx = rename_files(written.decode(), source.as_posix(), name)
        return rename_files(ptx, (folder / "any.cu").as_posix(), name), None, log, names, release


def _instantiated(instances: Sequence[str]) -> str:
    """Code that makes the compiler instantiate kernel templates."""
    lines = [
        f"__attribute__((used)) static void *const memsim_instance_{place} = (void *){instance};"
        for place, instance in enumerate(instances)
    ]
    return "".join(f"\n{line}" for line in lines) + ("\n" if lines else "")
