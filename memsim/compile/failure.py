"""Errors for code that does not compile: the place of the first error in a compiler's log, and what to do
about it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from memsim.compile.toolkit import HEADERS_WHEEL, header_folders
from memsim.errors import MemsimError

# `kernel.cu(12): error: text` of NVRTC and nvcc; `kernel.cu:12:5: error: text` of nvcc's gcc.
_ERROR = re.compile(
    r"^(?P<file>.+?)(?:\((?P<line>\d+)\)|:(?P<row>\d+):(?P<column>\d+)): "
    r"(?:catastrophic |fatal )?error: (?P<text>.*)$",
    re.M,
)
_MISSING = re.compile(
    r'cannot open source file "(?P<name>[^"]+)"|^(?P<file>[^:]+): No such file or directory'
)
_WARNING = re.compile(r"^.+?(?:\(\d+\)|:\d+:\d+): (?:warning|remark)\b")
_ABOUT_WARNINGS = "Remark: The warnings can be suppressed"
_INSTANCE = re.compile(r'Input name expression was: "([^"]+)"')
# Errors about names that a missing header may declare.
_UNKNOWN = re.compile(
    r"undefined|not a template|has no member|does not apply|no storage class|must be a class or namespace"
    r"|qualified name is not|not a type|could not be determined|cannot open source file"
)
# In nvcc's log, for a chip or its PTX.
UNSUPPORTED = re.compile(r"Unsupported gpu architecture '(?:sm|compute)_(\w+)'")
_OF_THE_HOST = "open source file", "is considered a host function"  # in NVRTC's log
# A launch in device code calls what is in a library; NVRTC since 12.9 says so, others name what they lack.
_LAUNCHES = re.compile(r"device-side kernel launch|'__cudaCDP")
_HOST_CODE = re.compile(r"<<<|\bmain\s*\(")


def needs_host(text: str, log: str) -> bool:
    """Whether host code may be the problem: a header is missing, or there are host code or functions."""
    return any(said in log for said in _OF_THE_HOST) or _HOST_CODE.search(text) is not None


def refused_instances(log: str) -> set[str]:
    """The template instances that NVRTC's log rejects as kernel names."""
    return {squeeze(found) for found in _INSTANCE.findall(log)}


def without_warnings(log: str) -> str:
    """A compiler's log without its warnings, each of which ends at an empty line or the next error."""
    kept: list[str] = []
    is_warning = False
    for line in log.strip().splitlines():
        if _WARNING.match(line) or line.startswith(_ABOUT_WARNINGS):
            is_warning = True
        elif not line.strip() or _ERROR.match(line):
            is_warning = False
        if not is_warning and (line.strip() or (kept and kept[-1])):
            kept.append(line.rstrip())
    return "\n".join(kept).strip()


def false_assertions(log: str) -> list[tuple[str, int]]:
    """File and line of each static assertion that failed, as a log of NVRTC says."""
    return [(error["file"], int(error["line"])) for error in _ERROR.finditer(log) if _is_false(error)]


def only_false_assertions(log: str) -> bool:
    """Does a log of NVRTC tell of static assertions that failed, and of no other error?"""
    errors = list(_ERROR.finditer(log))
    return bool(errors) and all(map(_is_false, errors))


def _is_false(error: re.Match[str]) -> bool:
    return error["text"].startswith("static assertion failed")


def makes_no_code(compiler: str, arch: str) -> MemsimError:
    """The error that the installed `compiler` does not support a chip, or that there is no such chip."""
    hint = "install a release that supports the chip: pip install nvidia-cuda-nvrtc, or the CUDA toolkit"
    return MemsimError(f"the installed {compiler} does not support {arch}", hint=hint)


def compile_error(
    text: str,
    log: str,
    name: str,
    missing: Mapping[str, tuple[str, int]] | None = None,
    instances: Sequence[str] = (),
) -> MemsimError:
    """The error for the source `text`, displayed as `name`.

    missing: headers that were not found, with the files and lines that include them. instances: of templates
    that were requested.
    """
    first, absent = _ERROR.search(log), missing or {}
    told = f"the compiler's log:\n{without_warnings(log)}"
    refused = _INSTANCE.search(log)
    if refused is not None and instances:
        why = f": {first['text']}" if first else ""
        return MemsimError(f"{squeeze(refused[1])} cannot be instantiated{why}", file=name, hint=told)
    if absent and (first is None or _UNKNOWN.search(first["text"])):
        return _headers_missing(text, name, absent, told)
    what, advice = f"does not compile: {first['text']}" if first else "does not compile", ""
    if _LAUNCHES.search(first["text"] if first else log):
        what = "a kernel launches kernels (dynamic parallelism), which memsim does not execute"
        advice = "analyze the kernels one by one, with those launches left out by a macro (-D NAME); "
    if first is None:
        return MemsimError(what, file=name, hint=advice + told)
    line = int(first["line"] or first["row"])
    source = _line(text, line) if first["file"] == name else None
    found = _MISSING.search(first["text"])
    advice += _advice(found["name"] or found["file"]) if found else ""
    return MemsimError(
        what,
        file=first["file"],
        line=line,
        column=int(first["column"]) if first["column"] else _column(source, first["text"]),
        source=source,
        hint=f"{advice}{told}",
    )


def _headers_missing(text: str, name: str, absent: Mapping[str, tuple[str, int]], told: str) -> MemsimError:
    """All headers that were not found, at the place of the first."""
    header, (file, line) = next(iter(absent.items()))
    source = _line(text, line) if file == name else None
    what = f'cannot open source file "{header}"'
    if len(absent) > 1:
        named = ", ".join(f"{other} ({at}:{row})" for other, (at, row) in absent.items())
        what = f"{len(absent)} headers are missing: {named}"
    column = _column(source, f'"{header}"')
    return MemsimError(
        f"does not compile: {what}",
        file=file,
        line=line,
        column=column,
        source=source,
        hint="".join(_advice(header) for header in absent) + told,
    )


def _advice(header: str) -> str:
    if not header:
        return ""
    if _RANDOM.match(header):
        return f"pip install nvidia-curand-cu12 installs {header}.\n"
    advice = f"Pass the folder of {header} with -I DIR.\n"
    return advice if header_folders() else f"{advice}For CUDA's headers pip install {HEADERS_WHEEL}.\n"


_RANDOM = re.compile(r"curand_\w+\.h$")


def squeeze(name: str) -> str:
    """`k < foo, 3>` without the compiler's extra spaces."""
    return re.sub(r"\s+(?=[<>,:])|(?<=[<>:])\s+", "", name.strip())


def _line(text: str, number: int) -> str | None:
    lines = text.splitlines()
    return lines[number - 1] if 0 < number <= len(lines) else None


def _column(source: str | None, message: str) -> int | None:
    """The column of the name quoted in the message: NVRTC reports none."""
    quoted = re.search(r'"([^"]+)"', message)
    if source is None or quoted is None:
        return None
    found = re.search(rf"(?<!\w){re.escape(quoted[1])}(?!\w)", source)
    return found.start() + 1 if found else None
