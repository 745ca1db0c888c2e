"""An experiment: measured on a GPU or read from its recordings, compared with the rules, and told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TextIO, TypeVar

import msgspec

from lab.recordings import ARRAYS, Earlier, read_recording, write_recording
from memsim.arch import ARCHS, SM_90
from memsim.validate.device import Device, free_path, on_gpu, slug
from memsim.validate.profiler import Progress
from memsim.version import __version__
from memsim.views.screen import Column, Row, Screen

SCHEMA = 1


class Finding(Protocol):
    """A rule, an instruction or a launch beside its prediction: its row, and a line for each difference."""

    @property
    def name(self) -> str: ...
    @property
    def holds(self) -> bool: ...
    @property
    def cells(self) -> tuple[str, ...]: ...
    def differences(self) -> Iterator[str]: ...


class Recording(Protocol):
    """What a GPU counted. arch: its chip, such as sm_90. date: UTC, ISO 8601.

    about: what records in JSON tell of it. notes: lines for the end of a report on what was found.
    """

    @property
    def gpu(self) -> str: ...
    @property
    def arch(self) -> str: ...
    @property
    def date(self) -> str: ...
    def about(self) -> dict[str, Any]: ...
    def notes(self, found: Sequence[Any]) -> Iterable[str]: ...


@dataclass(frozen=True, slots=True, eq=False)
class ByCounters:
    """The head of a recording that Nsight Compute made."""

    device: Device
    ncu: str
    date: str

    @property
    def gpu(self) -> str:
        """The GPU's name."""
        return self.device.gpu

    @property
    def arch(self) -> str:
        """The chip's name in compilers."""
        return self.device.arch

    @property
    def made(self) -> str:
        """`Recorded 2026-11-01T12:00:00Z (driver 580, CUDA 13.0, Nsight Compute 2025.3.1.0)`."""
        device = self.device
        return f"Recorded {self.date} (driver {device.driver}, CUDA {device.cuda}, Nsight Compute {self.ncu})"

    def about(self) -> dict[str, Any]:
        """What records in JSON tell of it."""
        return {"device": asdict(self.device), "ncu": self.ncu, "date": self.date}


R = TypeVar("R", bound=Recording)


@dataclass(frozen=True)
class Experiment(Generic[R]):
    """One kind of measurement. name: on the command line. what: what its recordings are of, for errors.

    kind: the type of its recordings. stems, suffix: of its files in a GPU's folder; a run makes a recording
    for each stem. run: measures, here and now; a later recording of a stem replaces an earlier one, which has
    what there was so far. judge: compares the recordings of a run with the rules, without tolerance. answer:
    the first line, with places for two counts. columns: of the table. records: what findings are called in
    JSON. failed: what could not be measured, and counts as not holding. earlier: reads an `.npz` of schema 1.
    write_rules: writes those that hold into a folder, for `memsim.arch.contributed`.
    """

    name: str
    what: str
    kind: type[R]
    stems: tuple[str, ...]
    run: Callable[[Progress], Iterable[R]]
    judge: Callable[..., Sequence[Finding]]
    answer: str
    columns: tuple[Column, ...]
    suffix: str = ARRAYS
    records: str = "instructions"
    failed: Callable[[R], Iterable[str]] = lambda recording: ()
    earlier: Earlier[R] | None = None
    write_rules: Callable[[R, Any, Path], Path | None] = lambda recording, found, home: None

    def load(self, path: Path) -> R:
        """The recording in a file.

        Raises:
            MemsimError: no such file, or not a recording of this experiment.
        """
        return read_recording(path, self.kind, self.what, self.earlier)

    def stem_of(self, recording: R) -> str:
        """Which of `stems` a recording is of: it has a name if there are several."""
        names = {stem.rpartition("/")[2]: stem for stem in self.stems}
        return names.get(getattr(recording, "name", ""), self.stems[0])

    def save(self, recording: R, folder: Path, begun: Path | None = None) -> Path:
        """Writes a new file below `folder`, named after the GPU. begun: a file of the same run, to replace.

        Raises:
            MemsimError: it cannot be written.
        """
        path = begun or free_path(folder / slug(recording.gpu), self.stem_of(recording), self.suffix)
        write_recording(recording, path, replaces=begun is not None)
        return path

    def newest(self, folder: Path, gpu: str | None = None) -> R:
        """The newest recording of the first stem; otherwise as `newest_of_each`."""
        return self.newest_of_each(folder, gpu)[0]

    def newest_of_each(self, folder: Path, gpu: str | None = None) -> list[R]:
        """The newest recording of each stem, all on one GPU: that of the folder name `gpu`, or the last used.

        Raises:
            MemsimError: there is none; the hint lists the GPUs with recordings.
        """
        patterns = (f"*/{stem}{run}{self.suffix}" for stem in self.stems for run in ("", ".run*"))
        paths = {path for pattern in patterns for path in folder.glob(pattern)}
        fitting = on_gpu(folder, paths, gpu, self.what, f"python -m lab {self.name} --live --record")
        found = sorted(map(self.load, fitting), key=lambda recording: recording.date)
        newest = {self.stem_of(one): one for one in found if one.gpu == found[-1].gpu}
        return [newest[stem] for stem in self.stems if stem in newest]

    def report(self, *recordings: R) -> Report:
        """How much of a run holds, in a line, a table and records, and what differs."""
        found, first = self.judge(*recordings), recordings[0]
        failed = [*self.failed(first)]
        fails = [*(one.name for one in found if not one.holds), *failed]
        compared = len(found) + len(failed)
        held = self.answer.format(compared - len(fails), compared)
        about = [one.about() for one in recordings]
        return Report(
            headline=f"{first.gpu}: {held}" + (f", not for {', '.join(fails)}" if fails else ""),
            columns=self.columns,
            found=found,
            notes=[
                *about_an_unknown_chip(first.arch),
                *(line for one in found for line in one.differences()),
                *(line for one in recordings for line in one.notes(found)),
            ],
            holds=not fails,
            about=about[0] if len(self.stems) == 1 else {"about": about},
            records=self.records,
        )


@dataclass(frozen=True)
class Report:
    """headline: the line that answers. found: the rows of the table. notes: the lines below it. holds:
    whether everything does. about: what the records tell of the recording. records: their name of `found`.
    """

    headline: str
    columns: Sequence[Column]
    found: Sequence[Finding]
    notes: Sequence[str]
    holds: bool
    about: dict[str, Any]
    records: str

    def write(self, stream: TextIO) -> None:
        """As text."""
        screen = Screen(stream)
        screen.say(self.headline, "bold")
        screen.say()
        screen.table(self.columns, [Row(one.cells, "" if one.holds else "red") for one in self.found])
        screen.say()
        for note in self.notes:
            screen.say(note)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, as `report.schema.json` beside this file describes them."""
        found = [{**msgspec.to_builtins(one), "holds": one.holds} for one in self.found]
        about = {"schema": SCHEMA, "memsim": __version__, **self.about}
        return {**about, "verdict": self.headline, self.records: found}


def verdict_cell(holds: bool) -> str:
    """The last cell of a row."""
    return "holds" if holds else "differs"


def about_an_unknown_chip(arch: str) -> Iterator[str]:
    """What a recording is good for if its chip, such as sm_87, is none that memsim has."""
    if arch not in ARCHS:
        yield (
            f"memsim has no chip {arch}: the recording is compared with the rules of {SM_90}, and changes no "
            f"analysis until memsim has it. There are {', '.join(ARCHS)}."
        )
