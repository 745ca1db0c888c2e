"""Compiles and runs the programs that time a multiprocessor, and the loops with chosen registers."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memsim.errors import MemsimError
from memsim.validate.device import Device, now, this_device
from memsim.validate.profiler import Progress

PROGRAMS = ("chains", "sequences", "memory", "hopper")
HOME = Path(__file__).parent
NVCC = ("nvcc", "-gencode", "arch=compute_90a,code=sm_90a", "-std=c++17", "-O3")
#: Seconds that a program may take.
LONGEST = 120
_LINE = re.compile(r"^(\w+)((?: \S+=\S+)*) :((?: -?[\d.]+)+)$")


@dataclass(frozen=True, slots=True)
class TimedLine:
    """One measurement. what: its name. how: its parameters. values: cycles, if nothing else is said."""

    what: str
    how: dict[str, str]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ProfiledLaunch:
    """One launch under Nsight Compute. l2: "cold" or "warm" before it. counters: by metric. waits: warps that
    wait for each instruction that is issued, by ncu's reason. samples: of warps, by address of the
    instruction in hexadecimal.
    """

    name: str
    l2: str
    counters: dict[str, float]
    waits: dict[str, float]
    samples: dict[str, int]


@dataclass(frozen=True, slots=True)
class TimeRecording:
    """All measurements of one run. launches: the catalogue, and the small ones of launches.cu, if profiled.

    failed: what a program said of its errors.
    """

    device: Device
    date: str
    lines: tuple[TimedLine, ...]
    launches: tuple[ProfiledLaunch, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def gpu(self) -> str:
        """The GPU's name."""
        return self.device.gpu

    @property
    def arch(self) -> str:
        """The chip's name in compilers."""
        return self.device.arch

    def about(self) -> dict[str, Any]:
        """What records in JSON tell of it."""
        return {"device": asdict(self.device), "date": self.date, "failed": list(self.failed)}

    def notes(self, found: Sequence[Any]) -> Iterable[str]:
        """How it was made."""
        profiled = f", {len(self.launches)} launches under Nsight Compute" if self.launches else ""
        yield f"Recorded {self.date} (driver {self.device.driver}, CUDA {self.device.cuda}){profiled}."

    def value(self, what: str, place: int = 0, **how: object) -> float:
        """A value of the line with these parameters.

        Raises:
            MemsimError: there is none.
        """
        wanted = {name: str(value) for name, value in how.items()}
        for line in self.lines:
            if line.what == what and wanted.items() <= line.how.items():
                return line.values[place]
        raise MemsimError(f"the recording has no {what} with {wanted}")


def timed_lines(text: str) -> Iterator[TimedLine]:
    """The measurements that a program printed."""
    for line in text.splitlines():
        found = _LINE.match(line)
        if found:
            how = dict(one.split("=", 1) for one in found[2].split())
            yield TimedLine(found[1], how, tuple(map(float, found[3].split())))


def run_time(progress: Progress = None) -> Iterator[TimeRecording]:
    """Run all programs; the recording so far after each.

    Raises:
        MemsimError: no GPU, or nvcc is missing or fails.
    """
    device, date = this_device(), now()
    lines: list[TimedLine] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(PROGRAMS):
            program = Path(folder) / name
            _run([*NVCC, "-o", str(program), str(HOME / f"{name}.cu")])
            text = _run([str(program)])
            lines += timed_lines(text)
            failed += [line for line in text.splitlines() if line.startswith("error ")]
            if progress is not None:
                progress((number + 1) / len(PROGRAMS))
            yield TimeRecording(device, date, tuple(lines), failed=tuple(failed))


def _run(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MemsimError(f"{command[0]} cannot be run: {error}", hint="the CUDA toolkit has nvcc") from None
    if done.returncode:
        raise MemsimError(f"{command[0]} failed: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout
