"""The contents of recordings as types, by which files are validated
(`memsim.validate.recording_files.check_record`).
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from memsim.validate.profiles import CODE_METRICS

Text = Annotated[str, Meta(min_length=1)]
Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Date = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", description="UTC")]
Size = Annotated[dict[str, Positive], Meta(min_length=1, description="the problem's, by name")]
Dim3 = tuple[Positive, Positive, Positive]
Figure = Natural | None
Counters = Annotated[
    dict[str, tuple[int | float, str]], Meta(min_length=1, description="ncu's name: value, ncu's unit")
]


class FileObject(msgspec.Struct, forbid_unknown_fields=True):
    """An object in a file: it has exactly these keys."""


class DeviceDocument(FileObject):
    """The GPU and its software. driver: its version. cuda: the release that the driver supports."""

    gpu: Text
    compute_capability: Annotated[str, Meta(pattern=r"^\d+\.\d$")]
    driver: Text
    cuda: Annotated[str, Meta(pattern=r"^\d+\.\d+$")]
    cupy: Text


class ResultDocument(FileObject):
    """The check of the kernel's results in the same run. Only correct results are recorded."""

    reference: Text
    right: bool
    largest_error: Annotated[float, Meta(ge=0)]

    def __post_init__(self) -> None:
        if not self.right:
            raise ValueError("the result is not right")


class CodeDocument(FileObject):
    """The code. compiler: empty if unknown. digest: of all kernels' names and instructions."""

    compiler: str
    arch: Annotated[str, Meta(pattern=r"^sm_\d+[a-z]?$")]
    digest: Sha256


class CodeLaunch(FileObject):
    """The launch. kernel: the name in the code. arguments: in words."""

    kernel: Text
    grid: Dim3
    block: Dim3
    shared_bytes: Natural
    arguments: list[Text]


class CodeProfileDocument(FileObject):
    """A run of the profiler. Columns are run-length encoded; those of accesses refer to `rows`."""

    passes: Positive
    counters: Counters
    distances: list[Figure]
    sass: list[Text]
    collected: list[str]
    instructions: dict[str, list[Figure]]
    accesses: dict[str, list[Figure]]

    def __post_init__(self) -> None:
        for name in (*self.collected, *self.instructions):
            if name not in CODE_METRICS:
                raise ValueError(f"{name!r} is not a metric of an instruction")
        if None in self.accesses.get("rows", [None]):
            raise ValueError("accesses have no rows")


class CodeRecordingDocument(FileObject):
    """A launch of machine code; see `memsim.validate.code_recording`."""

    schema: Literal[1]
    name: Text
    size: Size | None
    date: Date
    ncu: Text
    device: DeviceDocument
    code: CodeDocument
    launch: CodeLaunch
    result: ResultDocument | None
    profiles: Annotated[list[CodeProfileDocument], Meta(min_length=1)]
