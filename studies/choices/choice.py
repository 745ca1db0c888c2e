"""A choice that could be made for a problem, what was estimated of it, and what was measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from memsim.data import data_folder
from memsim.files import read_json
from memsim.validate.device import (
    Date,
    Device,
    Natural,
    Positive,
    Sha256,
    Text,
    check_record,
    write_record,
)
from studies.choices import FOLDER

SCHEMA = 1
#: Estimates that were made before anything was measured, which stay as they are, those made since, for an
#: H100 and for an H200, and those of sizes that nobody had looked at, made before these were measured, which
#: stay as well.
FIRST, SINCE, SINCE_H200, UNSEEN, SECOND, THIRD, FOURTH = (
    Path(__file__).with_name(f"estimates{name}.json")
    for name in ("", "_since", "_since_h200", "_unseen", "_second", "_third", "_fourth")
)
H100, H200 = "NVIDIA H100 80GB HBM3", "NVIDIA H200"
TILES, CONFIGURATIONS = "tiles of sgemm", "configurations of Triton"

Milliseconds = Annotated[float, Meta(gt=0)]


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to solve a problem. kind: of `TILES` and `CONFIGURATIONS`. problem: a size, or a kernel's name.
    code: SHA-256 of the PTX that is launched, of machine code from Triton.
    """

    kind: Text
    problem: Text
    choice: Text
    code: Sha256


@dataclass(frozen=True, slots=True)
class EstimatedChoice:
    """Elapsed cycles of all its launches, by the L2 cache before them; None: it was not estimated."""

    choice: Choice
    cold: Natural | None
    warm: Natural


@dataclass(frozen=True, slots=True)
class Estimates:
    """What was estimated, by the code of the repository at a time (UTC, ISO 8601). board: whose memory was
    assumed; of the first ones, which do not say it, that of an H200.
    """

    date: Date
    choices: tuple[EstimatedChoice, ...]
    board: Text = H200

    def save(self, path: Path) -> None:
        """Write a file anew."""
        write_record({"schema": SCHEMA, **asdict(self)}, path, replaces=True)


@dataclass(frozen=True, slots=True)
class MeasuredChoice:
    """Milliseconds by CUDA events: cold with L2 flushed before each launch, as Triton's autotuner measures
    (none of tiles); warm of launches that follow each other.
    """

    choice: Choice
    cold_ms: tuple[Milliseconds, ...]
    warm_ms: Annotated[tuple[Milliseconds, ...], Meta(min_length=1)]


@dataclass(frozen=True, slots=True)
class ChoiceRecording:
    """What a GPU took. max_clock_mhz: of its multiprocessors. wrong: choices that computed something else."""

    device: Device
    date: Date
    max_clock_mhz: Positive
    choices: tuple[MeasuredChoice, ...]
    wrong: tuple[Text, ...] = ()

    def save(self, path: Path) -> None:
        """Write a file."""
        write_record({"schema": SCHEMA, **asdict(self)}, path)


def load_estimates(path: Path) -> Estimates:
    """Those of a file."""
    return check_record(read_json(path, "the recording"), SCHEMA, Estimates, str(path))


def load_recordings(traces: Path | None = None) -> list[ChoiceRecording]:
    """All, by the name of the GPU's folder."""
    files: Iterable[Path] = sorted((traces or data_folder("traces")).glob(f"*/{FOLDER}/*.json"))
    return [
        check_record(read_json(path, "the recording"), SCHEMA, ChoiceRecording, str(path)) for path in files
    ]
