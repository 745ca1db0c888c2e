"""Code that does not compile: the place of the first error, and what to do about it.

In: the source and a compiler's log. Out: the error to raise. Left out on purpose: everything that works.
"""

from __future__ import annotations

import re
import shutil

from memsim.compile.toolkit import HEADERS_WHEEL, header_folders
from memsim.errors import MemsimError

# `kernel.cu(12): error: text`, as NVRTC and nvcc write it; `kernel.cu:12:5: error: text`, as nvcc's gcc does.
_ERROR = re.compile(
    r"^(?P<file>.+?)(?:\((?P<line>\d+)\)|:(?P<row>\d+):(?P<column>\d+)): "
    r"(?:catastrophic |fatal )?error: (?P<text>.*)$",
    re.M,
)
_MISSING = re.compile(
    r'cannot open source file "(?P<name>[^"]+)"|^(?P<file>[^:]+): No such file or directory'
)
_HOST_CODE = re.compile(r"<<<|\bmain\s*\(")


def needs_host(text: str, log: str) -> bool:
    """Whether a compiler of host code could do better: a header is missing, or there is host code."""
    return "open source file" in log or _HOST_CODE.search(text) is not None


def compile_error(text: str, log: str, name: str) -> MemsimError:
    """What is wrong with the source `text`, called `name`."""
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
    if header and not header_folders():
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
