"""Runs nvcc, for files that NVRTC does not accept."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from memsim.compile.failure import UNSUPPORTED, compile_error, makes_no_code
from memsim.compile.prepare import Compiled, CompilerInput, Names, rename
from memsim.compile.shown_sources import shown_log, shown_source
from memsim.compile.toolkit import find_tool, tool_release
from memsim.errors import MemsimError
from memsim.programs import run_program, text_of

# nvcc runs its stages by a shell. It quotes the names of files, but a quote in one ends that, and within
# quotes a shell runs what stands behind a $ or between backquotes.
_OF_THE_SHELL = re.compile(r"[$`\n]")
_UNUSUAL = re.compile(r"[^\w./\\: +@=,~-]")


def find_nvcc() -> Path | None:
    """The nvcc on PATH, in a CUDA toolkit, or in a wheel."""
    return find_tool("nvcc", wheels_first=False)


def run_nvcc(
    nvcc: Path,
    source: CompilerInput,
    options: Sequence[str],
    arch: str,
    instances: Sequence[str] = (),
) -> Compiled:
    """The output of nvcc.

    nvcc derives internal symbols from the path of a file, so the file is compiled in place. A file with a
    name that a shell would not take as it is has another one.

    Raises:
        MemsimError: it does not know the chip, the source does not compile, or a shell would run an option.
    """
    for option in options:
        if _OF_THE_SHELL.search(option):
            raise MemsimError(f"nvcc has a shell read {option!r}", hint="choose a name without $ and `")
    compiler, any_file = f"nvcc {tool_release(nvcc)}".strip(), (source.folder / "any.cu").as_posix()
    with tempfile.TemporaryDirectory() as scratch:
        path = source.path if not instances else None
        if path is None or path.suffix != ".cu" or _UNUSUAL.search(str(path)):
            path = Path(scratch, _UNUSUAL.sub("_", Path(source.name).name)).with_suffix(".cu")
            path.write_text(
                source.text + _instantiated(instances), encoding="utf-8", errors="surrogateescape"
            )
        output = Path(scratch, "output")
        command = [str(nvcc), "-cubin", f"-arch={arch}", *options, "-o", str(output), str(path)]
        done = run_program(command, "nvcc", file=source.name)
        log = shown_log(text_of(done), source, options, (path.as_posix(),))
        log = rename(log, path.as_posix(), source.name)
        names = Names(((path.as_posix(), source.name), (any_file, source.name)))
        if done.returncode == 0:
            return Compiled(output.read_bytes(), compiler, arch, log, names)
    refused = UNSUPPORTED.search(log)
    if refused is not None:
        raise makes_no_code("nvcc", f"sm_{refused[1]}")
    raise compile_error(shown_source(source, options), log, source.name, {}, instances)


def _instantiated(instances: Sequence[str]) -> str:
    """Code that makes the compiler instantiate kernel templates."""
    lines = [
        f"__attribute__((used)) static void *const memsim_instance_{place} = (void *){instance};"
        for place, instance in enumerate(instances)
    ]
    return "".join(f"\n{line}" for line in lines) + ("\n" if lines else "")
