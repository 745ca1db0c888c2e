"""CUDA C++ to PTX text, with NVRTC; with `nvcc` where a file needs host code.

In: a `.cu` file (or its text) and compiler options. Out: PTX text with the lines of the source in it.
Left out on purpose: what PTX means, and everything that needs a GPU or a driver.

NVRTC is a library with no driver behind it; the wheel `nvidia-cuda-nvrtc-cu12` carries it.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from memsim.errors import MemsimError

NVRTC_WHEEL = "nvidia-cuda-nvrtc-cu12"
HEADERS_WHEEL = "nvidia-cuda-runtime-cu12"
# What the system's loader may know NVRTC as, where the wheel is not installed.
NVRTC_NAMES = (
    ("nvrtc64_120_0.dll", "nvrtc64_130_0.dll")
    if sys.platform == "win32"
    else ("libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so")
)
INVALID_OPTION = 5  # NVRTC_ERROR_INVALID_OPTION in nvrtc.h
COMPILATION = 6  # NVRTC_ERROR_COMPILATION in nvrtc.h

# NVRTC has no standard headers; this one is in every second kernel file.
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

# `kernel.cu(12): error: text`, as NVRTC and nvcc write it; `kernel.cu:12:5: error: text`, as nvcc's gcc does.
_ERROR = re.compile(
    r"^(?P<file>.+?)(?:\((?P<line>\d+)\)|:(?P<row>\d+):(?P<column>\d+)): "
    r"(?:catastrophic |fatal )?error: (?P<text>.*)$",
    re.M,
)
_MISSING = re.compile(
    r'cannot open source file "(?P<name>[^"]+)"|^(?P<file>[^:]+): No such file or directory'
)
_COMPILER = re.compile(r"^// Cuda compilation tools, release \S+, V(\S+)$", re.M)
BUILTIN_HEADER = "__nv_nvrtc_builtin_header.h"
_FILE = re.compile(r'^(\s*\.file\s+\d+\s+")([^"]*)(")', re.M)
_HOST_CODE = re.compile(r"<<<|\bmain\s*\(")


def compile_cuda(
    source: str | Path,
    options: Sequence[str] = (),
    arch: str = "sm_90",
    name: str | None = None,
) -> str:
    """PTX text of a `.cu` file or of CUDA C++ text.

    Args:
        source: a path, or the text itself (a string with a line break in it).
        options: for the compiler, as `-DBM=64` or `-Iinclude`. `-lineinfo` is always added, `-std=c++17`
            unless another standard is given.
        arch: `sm_90` makes PTX for `compute_90`.
        name: what the PTX and the errors call the file; the path as given if left out, `kernel.cu` for
            text. Headers are named as if from where `name` is relative to. The PTX says nothing else about
            where the file was, so one compiler writes the same PTX on every machine.

    Raises:
        MemsimError: no such file; NVRTC absent; an unknown option; code that does not compile, with the
            place of the first error and the compiler's log.
    """
    path, text = _read(source)
    name = name or (Path(source).as_posix() if path else "kernel.cu")
    folder = path.parent if path else Path.cwd()
    target = f"-arch={arch.replace('sm_', 'compute_')}"
    options = [target, "-lineinfo", *_default_standard(options), f"-I{folder}", *options]

    ptx, log = _nvrtc(text, folder, name, options)
    if ptx is None and _needs_host(text, log) and shutil.which("nvcc"):
        ptx, log = _nvcc(text, folder, name, options)
    if ptx is None:
        raise _compile_error(text, log, name)
    return ptx


def compiler_of(ptx: str) -> str | None:
    """The release of the compiler that wrote `ptx` (`12.0.140`), from its header; None if it does not say."""
    found = _COMPILER.search(ptx)
    return found[1] if found else None


def _read(source: str | Path) -> tuple[Path | None, str]:
    if isinstance(source, str) and "\n" in source:
        return None, source
    path = Path(source).absolute()
    try:
        return path, path.read_text(encoding="utf-8")
    except OSError as error:
        raise MemsimError(f"cannot read {source}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise MemsimError(f"cannot read {source}: it is not UTF-8 text") from None


def _default_standard(options: Sequence[str]) -> list[str]:
    given = any(option.lstrip("-").startswith("std=") for option in options)
    return [] if given else ["-std=c++17"]


# --- NVRTC


def _nvrtc(text: str, folder: Path, name: str, options: list[str]) -> tuple[str | None, str]:
    """PTX, or None if it does not compile, and NVRTC's log."""
    with _library() as nvrtc:
        return _compile(nvrtc, text, folder, name, options)


def _compile(
    nvrtc: ctypes.CDLL, text: str, folder: Path, name: str, options: list[str]
) -> tuple[str | None, str]:
    # NVRTC makes names absolute; with the true folder in it, `_rename` knows what to take away again.
    true_name = (folder / Path(name).name).as_posix()
    arguments = [*options, *(f"-I{headers}" for headers in _header_folders())]
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(
        ctypes.byref(program),
        text.encode(),
        true_name.encode(),
        len(HEADERS),
        _strings(HEADERS.values()),
        _strings(HEADERS),
    )
    try:
        status = nvrtc.nvrtcCompileProgram(program, len(arguments), _strings(arguments))
        log = _output(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        if status == 0:
            ptx = _output(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program)
            return _rename_files(ptx, true_name, name), log
        if status == COMPILATION:
            return None, _rename(log, true_name, name)
        reason = (
            "does not take these options" if status == INVALID_OPTION else f"failed with status {status} on"
        )
        raise MemsimError(f"NVRTC {reason}: {' '.join(options)}", hint=log.strip() or None)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _strings(texts: Iterable[str]) -> ctypes.Array[ctypes.c_char_p]:
    encoded = [text.encode() for text in texts]
    return (ctypes.c_char_p * len(encoded))(*encoded)


def _output(size_of: Callable[..., int], get: Callable[..., int], program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    get(program, buffer)
    return buffer.value.decode(errors="replace")


@contextmanager
def _library() -> Iterator[ctypes.CDLL]:
    """NVRTC, only while it is needed: CuPy takes one that is loaded for its own, whatever its release."""
    library = _load()
    try:
        yield library
    finally:
        _unload(library._handle)


def _load() -> ctypes.CDLL:
    for candidate in _library_candidates():
        try:
            return ctypes.CDLL(candidate)
        except OSError:
            continue
    raise MemsimError(
        "NVRTC, NVIDIA's compiler library, is not installed",
        hint=f"pip install {NVRTC_WHEEL} (Linux and Windows), or give PTX; the catalogue needs no compiler",
    )


def _unload(handle: int) -> None:
    """ctypes itself never gives a library back."""
    import _ctypes

    if sys.platform == "win32":
        _ctypes.FreeLibrary(handle)
    else:
        _ctypes.dlclose(handle)


def _library_candidates() -> Iterator[str]:
    for folder in _wheel_folders("nvidia.cuda_nvrtc"):
        yield from map(str, sorted(folder.glob("lib/libnvrtc.so*")))
        yield from map(str, sorted(folder.glob("bin/nvrtc64_*_0.dll")))
    yield from NVRTC_NAMES


def _header_folders() -> list[Path]:
    """Where `cuda_fp16.h` and its like are, if they are anywhere."""
    roots = _wheel_folders("nvidia.cuda_runtime")
    roots += [Path(os.environ[key]) for key in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(key)]
    return [root / "include" for root in roots if (root / "include" / "cuda_fp16.h").is_file()]


def _wheel_folders(package: str) -> list[Path]:
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        return []
    return [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []


# --- nvcc


def _needs_host(text: str, log: str) -> bool:
    return "open source file" in log or _HOST_CODE.search(text) is not None


def _nvcc(text: str, folder: Path, name: str, options: list[str]) -> tuple[str | None, str]:
    """The same as `_nvrtc`, by the `nvcc` on PATH. The source is compiled in a folder of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, Path(name).name).with_suffix(".cu")
        output = source.with_suffix(".ptx")
        source.write_text(text, encoding="utf-8")
        command = ["nvcc", "-ptx", *options, "-o", str(output), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        log = _rename(done.stdout + done.stderr, source.as_posix(), name)
        if done.returncode != 0:
            return None, log
        ptx = _rename_files(output.read_text(encoding="utf-8"), source.as_posix(), name)
        return _rename_files(ptx, (folder / "any.cu").as_posix(), name), log


# --- names and errors


def _rename(text: str, true_name: str, name: str) -> str:
    """`text` with `true_name`, and the folders around it where a line starts so, called as by `name`."""
    true_folder, folder = Path(true_name).parent, Path(name).parent
    while folder.name not in ("", "..") and folder.name == true_folder.name:
        true_folder, folder = true_folder.parent, folder.parent  # headers beside the file's folder, too
    here = true_folder.as_posix().rstrip("/") + "/"
    there = folder.as_posix().rstrip("/") + "/"
    there = "" if there == "./" else there
    lines = text.replace(true_name, name).splitlines(keepends=True)
    return "".join(there + line[len(here) :] if line.startswith(here) else line for line in lines)


def _rename_files(ptx: str, true_name: str, name: str) -> str:
    def renamed(found: re.Match[str]) -> str:
        path = found[2].replace("\\", "/")
        if path.endswith("/" + BUILTIN_HEADER):  # NVRTC puts its own header into the current folder
            path = BUILTIN_HEADER
        return found[1] + _rename(path, true_name, name) + found[3]

    return _FILE.sub(renamed, ptx)


def _compile_error(text: str, log: str, name: str) -> MemsimError:
    first = _ERROR.search(log)
    hint = f"{_advice(text, first)}the compiler's log:\n{log.strip()}"
    if first is None:
        return MemsimError("does not compile", file=name, hint=hint)
    line = int(first["line"] or first["row"])
    source = _line(text, line) if first["file"] == name else None
    return MemsimError(
        f"does not compile: {first['text']}",
        file=first["file"],
        line=line,
        column=int(first["column"]) if first["column"] else _column(source, first["text"]),
        source=source,
        hint=hint,
    )


def _advice(text: str, error: re.Match[str] | None) -> str:
    """What to do about a header that is missing, and about host code that there is no compiler for."""
    missing = _MISSING.search(error["text"]) if error else None
    header = missing["name"] or missing["file"] if missing else ""
    advice = f"-I DIR says which folder {header} is in.\n" if header else ""
    if shutil.which("nvcc"):
        return advice
    if _HOST_CODE.search(text) or f"<{header}>" in text:
        advice += (
            "NVRTC compiles device code only. For host code install the CUDA toolkit (nvcc), or keep the "
            "kernels in a file of their own.\n"
        )
    if header and not _header_folders():
        advice += f"For CUDA's headers pip install {HEADERS_WHEEL}.\n"
    return advice


def _line(text: str, number: int) -> str | None:
    lines = text.splitlines()
    return lines[number - 1] if 0 < number <= len(lines) else None


def _column(source: str | None, message: str) -> int | None:
    """Where the name that the message quotes stands in the line: NVRTC gives no columns."""
    quoted = re.search(r'"([^"]+)"', message)
    if source is None or quoted is None:
        return None
    found = re.search(rf"(?<!\w){re.escape(quoted[1])}(?!\w)", source)
    return found.start() + 1 if found else None
