"""The device code of a source for NVRTC, with headers or stand-ins for them, and extra options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memsim.compile.headers import (
    DRIVER,
    DRIVER_NAME,
    EMPTY_NAMES,
    STANDARD_NAME,
    read_project,
    stand_in,
    with_includes,
)
from memsim.compile.host_code import Assertion, set_aside
from memsim.compile.toolkit import cccl_folders, crt_folders, header_folders

#: The option, in both spellings, that makes functions without an execution space specifier device functions.
DEFAULT_DEVICE = ("-default-device", "--device-as-default-execution-space")


#: NVRTC's error for `const float half = 1 / two;`, which nvcc folds where device code uses it.
DYNAMIC = "dynamic initialization is not supported"
_DYNAMIC = re.compile(rf"^(.+)\((\d+)\): error: {DYNAMIC}", re.MULTILINE)
_LITERAL = re.compile(r"\bconst(?=\s+(?:float|double)\s+\w+\s*=\s*-?[\d.]+(?:[eE][-+]?\d+)?[fF]?\s*;)")


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """The device part of a source.

    Attributes:
        text: the source, with its lines and columns unchanged.
        headers: texts by the names that `text` includes them by: headers of the project, stand-ins.
        options: for NVRTC, in addition to the user's.
        missing: headers that were not found, with the file and line that include them.
        found: headers found outside of the include paths, and where.
    """

    text: str
    headers: dict[str, str]
    options: tuple[str, ...]
    missing: dict[str, tuple[str, int]]
    found: dict[str, str]
    asserts: bool


def device_code(
    text: str,
    true_name: str,
    folder: Path,
    options: Sequence[str],
    wanted: str = "",
    asserted: Assertion | None = None,
) -> DeviceCode:
    """The device code of the source `text` at `true_name` in `folder`.

    wanted: code that uses further names, in addition to the kernels.
    """
    project = read_project(text, true_name, folder, options)
    kept = set_aside(project.texts, true_name, re.findall(r"\w+", wanted), asserted)
    texts = {file: with_includes(content, file, project) for file, content in kept.items()}
    headers = {**dict.fromkeys(EMPTY_NAMES, "#pragma once\n"), DRIVER_NAME: DRIVER}
    headers |= {file: content for file, content in texts.items() if file != true_name}
    headers[STANDARD_NAME] = stand_in([*kept.values(), wanted])
    more = [
        *(() if {*DEFAULT_DEVICE} & {*options} else DEFAULT_DEVICE[:1]),
        f"--pre-include={STANDARD_NAME}",
        # CUDA's own headers first: beside crt/ there may be those of another release.
        *(f"-I{place}" for find in (header_folders, cccl_folders, crt_folders) for place in find()[:1]),
    ]
    asserts = any("static_assert" in content for content in project.texts.values())
    return DeviceCode(texts[true_name], headers, tuple(more), project.missing, project.found, asserts)


def with_constants(device: DeviceCode, true_name: str, log: str) -> DeviceCode:
    """Use `constexpr` instead of `const` where `log` reports a dynamic initialization, and for literals.

    No line moves, and no column of executed code: constants have none.
    """
    texts = {true_name: device.text, **device.headers}
    rows: dict[str, set[int]] = {}
    for file, row in _DYNAMIC.findall(log):
        rows.setdefault(file, set()).add(int(row))
    changed = {
        file: "\n".join(
            re.sub(r"\bconst\b", "constexpr", line, count=1) if row in rows.get(file, ()) else line
            for row, line in enumerate(_LITERAL.sub("constexpr", text).split("\n"), 1)
        )
        for file, text in texts.items()
    }
    return replace(device, text=changed.pop(true_name), headers=changed)
