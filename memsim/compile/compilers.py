"""NVRTC, NVIDIA's compiler library, which needs no driver; and nvcc, for files that NVRTC does not accept."""

from __future__ import annotations

import ctypes
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from memsim.compile.failure import UNSUPPORTED, compile_error, makes_no_code
from memsim.compile.libraries import NVRTC, call_nvrtc
from memsim.compile.library_calls import COMPILATION
from memsim.compile.prepare import Compiled, CompilerInput, Names, rename
from memsim.compile.shown_sources import shown_log, shown_source
from memsim.compile.toolkit import NVRTC_WHEEL, find_tool, header_folders, tool_release
from memsim.errors import MemsimError
from memsim.programs import run_program, text_of

_RELEASE = re.compile(r"^// Cuda compilation tools, release \S+, V(\S+)$", re.M)
INVALID_OPTION = 5  # NVRTC_ERROR_INVALID_OPTION in nvrtc.h
# NVRTC has no standard headers; this one is included most often.
STDINT = """#pragma once
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;
"""
HEADERS = {"cstdint": STDINT, "stdint.h": STDINT}


@dataclass(frozen=True, slots=True)
class NvrtcResult:
    """`ptx` is None if the source does not compile; `cubin` is None unless the options name a chip."""

    ptx: str | None
    cubin: bytes | None
    log: str


def run_nvrtc(
    text: str,
    true_name: str,
    options: Sequence[str],
    chip: str | None = None,
    headers: Mapping[str, str] = HEADERS,
    instances: Sequence[str] = (),
) -> NvrtcResult:
    """Compile a source; with `chip` (`sm_90`) also to machine code.

    `headers` are texts by their `#include` names; `instances` are instances of the source's kernel templates,
    `transpose<float, 8>`.

    `true_name` is the absolute path of the file: NVRTC makes names absolute, and the caller knows which part
    of them to remove again.

    Raises:
        MemsimError: NVRTC is not installed, or an invalid option.
    """
    arguments = [*options, *(f"-I{headers}" for headers in header_folders())]
    answer = call_nvrtc(
        _bytes(text),
        _bytes(true_name),
        list(map(_bytes, arguments)),
        (chip or "").encode(),
        [(_bytes(header), _bytes(said)) for header, said in headers.items()],
        [instance.encode() for instance in instances],
        file=Path(true_name).name,
    )
    if answer is None:
        raise _not_installed()
    status, log, ptx, cubin = int(answer[0]), *(part for part in answer[1:])
    said = log.decode(errors="replace")
    if status == COMPILATION:
        return NvrtcResult(None, None, said)
    if status != 0:
        reason = "does not accept these options" if status == INVALID_OPTION else f"failed with {status} on"
        raise MemsimError(f"NVRTC {reason}: {' '.join(options)}", hint=said.strip() or None)
    return NvrtcResult(ptx.decode(errors="replace"), cubin if chip else None, said)


def release_of(ptx: str) -> str | None:
    """The compiler release in the header of `ptx` (`12.0.140`); None if there is none."""
    found = _RELEASE.search(ptx)
    return found[1] if found else None


def makes_code_for(chip: str) -> bool:
    """Whether the installed NVRTC supports a chip (`sm_120`).

    Raises:
        MemsimError: NVRTC is not installed.
    """
    number = re.sub(r"\D", "", chip)
    with _library() as nvrtc:
        count = ctypes.c_int()
        if nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count)) != 0:
            return True  # it will report it itself
        found = (ctypes.c_int * count.value)()
        nvrtc.nvrtcGetSupportedArchs(found)
        return number in map(str, found)


def _bytes(text: str) -> bytes:
    """Encoded as in the file or on disk, if that is not UTF-8."""
    return text.encode("utf-8", "surrogateescape")


@contextmanager
def _library() -> Iterator[ctypes.CDLL]:
    with NVRTC.loaded() as library:
        if library is None:
            raise _not_installed()
        yield library


def _not_installed() -> MemsimError:
    return MemsimError(
        "NVRTC, NVIDIA's compiler library, is not installed",
        hint=f"pip install {NVRTC_WHEEL} (Linux and Windows), or give a cubin; the catalogue needs none",
    )


# nvcc runs its stages by a shell. It quotes the names of files, but a quote in one ends that, and within
# quotes a shell runs what stands behind a $ or between backquotes.
_OF_THE_SHELL = re.compile(r"[$`\n]")
_UNUSUAL = re.compile(r"[^\w./\\: +@=,~-]")
# In nvcc's errors: a flag without which it does not take the language that a source is written in.
_ASKED_FOR = re.compile(r"--(?:extended-lambda|expt-relaxed-constexpr)\b")


def find_nvcc() -> Path | None:
    """The nvcc on PATH, in a CUDA toolkit, or in a wheel."""
    return find_tool("nvcc", wheels_first=False)


def run_nvcc(
    nvcc: Path, source: CompilerInput, options: Sequence[str], arch: str, instances: Sequence[str] = ()
) -> Compiled:
    """The output of nvcc.

    nvcc derives internal symbols from the path of a file, so the file is compiled in place. A file with a
    name that a shell would not take as it is has another one. A flag that its errors ask for is given.

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
    flag = _ASKED_FOR.search(log)
    if flag is not None and flag[0] not in options:
        made = run_nvcc(nvcc, source, [*options, flag[0]], arch, instances)
        return replace(made, notes=(*made.notes, f"compiled with {flag[0]}, which nvcc asked for"))
    raise compile_error(shown_source(source, options), log, source.name, {}, instances)


def _instantiated(instances: Sequence[str]) -> str:
    """Code that makes the compiler instantiate kernel templates."""
    lines = [
        f"__attribute__((used)) static void *const memsim_instance_{place} = (void *){instance};"
        for place, instance in enumerate(instances)
    ]
    return "".join(f"\n{line}" for line in lines) + ("\n" if lines else "")
