"""NVRTC, NVIDIA's compiler library, which needs no driver."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from memsim.compile.libraries import NVRTC
from memsim.compile.toolkit import NVRTC_WHEEL, header_folders
from memsim.errors import MemsimError

_RELEASE = re.compile(r"^// Cuda compilation tools, release \S+, V(\S+)$", re.M)
INVALID_OPTION = 5  # NVRTC_ERROR_INVALID_OPTION in nvrtc.h
COMPILATION = 6  # NVRTC_ERROR_COMPILATION in nvrtc.h
# The assembler within 12.0 never returns (it recurses until the stack is full) for sm_90 code with line
# information of inlined functions; 12.1.105 and later do.
BROKEN_INLINING = (12, 0)
NO_INLINING = "-no-lineinfo-ia"

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
    with _library() as nvrtc:
        if chip:
            options = [f"-arch={chip}", *_workarounds(nvrtc, chip), *options]
        arguments = [*options, *(f"-I{headers}" for headers in header_folders())]
        program = ctypes.c_void_p()
        nvrtc.nvrtcCreateProgram(
            ctypes.byref(program),
            _bytes(text),
            _bytes(true_name),
            len(headers),
            _strings(headers.values()),
            _strings(headers),
        )
        try:
            for instance in instances:
                nvrtc.nvrtcAddNameExpression(program, instance.encode())
            status = nvrtc.nvrtcCompileProgram(program, len(arguments), _strings(arguments))
            log = _text(_output(nvrtc, "ProgramLog", program))
            if status == COMPILATION:
                return NvrtcResult(None, None, log)
            if status != 0:
                invalid = status == INVALID_OPTION
                reason = "does not accept these options" if invalid else f"failed with {status} on"
                raise MemsimError(f"NVRTC {reason}: {' '.join(options)}", hint=log.strip() or None)
            ptx = _text(_output(nvrtc, "PTX", program))
            cubin = _output(nvrtc, "CUBIN", program) if chip else None
            return NvrtcResult(ptx, cubin, log)
        finally:
            nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def release_of(ptx: str) -> str | None:
    """The compiler release in the header of `ptx` (`12.0.140`); None if there is none."""
    found = _RELEASE.search(ptx)
    return found[1] if found else None


def _workarounds(nvrtc: ctypes.CDLL, chip: str) -> list[str]:
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    broken = (major.value, minor.value) == BROKEN_INLINING and chip.startswith("sm_9")
    return [NO_INLINING] if broken else []


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


def _strings(texts: Iterable[str]) -> ctypes.Array[ctypes.c_char_p]:
    encoded = [_bytes(text) for text in texts]
    return (ctypes.c_char_p * len(encoded))(*encoded)


def _bytes(text: str) -> bytes:
    """Encoded as in the file or on disk, if that is not UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def _output(nvrtc: ctypes.CDLL, what: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(max(size.value, 1))
    getattr(nvrtc, f"nvrtcGet{what}")(program, buffer)
    return buffer.raw[: size.value]


def _text(output: bytes) -> str:
    return output.split(b"\0")[0].decode(errors="replace")


@contextmanager
def _library() -> Iterator[ctypes.CDLL]:
    with NVRTC.loaded() as library:
        if library is None:
            raise MemsimError(
                "NVRTC, NVIDIA's compiler library, is not installed",
                hint=f"pip install {NVRTC_WHEEL} (Linux and Windows), or give PTX; "
                "the catalogue needs no compiler",
            )
        yield library
