"""A target that is a program: what is guarded are the launches that it makes, each kind of them by itself.

They are counted while the program runs, as by `memsim exec --analyze`.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

from memsim.arch import SM_90, Arch
from memsim.boundary import confinement
from memsim.errors import MemsimError
from memsim.launch import is_integer
from memsim.targets.analyze_targets import Measured

if TYPE_CHECKING:
    from memsim.driver.execute_launches import LaunchKind

#: Between a program's name and its launch, in names.
MARK = ": "
#: Of a program that fails, what it printed last is told.
LAST_LINES, LAST_BYTES = 5, 2000


@dataclass(frozen=True)
class ProgramTarget:
    """A program, by its words, and the folder in which it runs."""

    name: str
    words: tuple[str, ...]
    folder: Path
    arch: Arch = SM_90
    max_steps: int | None = None

    def __post_init__(self) -> None:
        if self.max_steps is not None and not (is_integer(self.max_steps) and self.max_steps >= 1):
            raise MemsimError(f"max_steps must be an integer of at least 1, not {self.max_steps!r}")

    def __str__(self) -> str:
        return shlex.join(self.words)

    def makes(self, launch: str) -> bool:
        """Whether a launch of this name is one of its own."""
        return launch.startswith(self.name + MARK)


def words_of(command: str | tuple[str, ...]) -> tuple[str, ...]:
    """A command as words, split as a shell does it; no shell reads it.

    Raises:
        MemsimError: a quotation without an end, or no word.
    """
    try:
        words = tuple(shlex.split(command)) if isinstance(command, str) else command
    except ValueError as error:
        raise MemsimError(f"the command {command!r} cannot be split into words: {error}") from None
    if not words or not words[0]:
        raise MemsimError("the command names no program")
    return words


def count_launches(program: ProgramTarget, *, time: bool = False) -> list[Measured]:
    """Runs a program, and counts the first launch of each kind. time: it is estimated, too.

    Raises:
        MemsimError: it does not run or fails, or it launches nothing.
    """
    if confinement() is not None:
        raise MemsimError("--untrusted runs no program", hint="check this target without --untrusted")
    from memsim.driver.execute_launches import Launches
    from memsim.driver.run_program import run_program

    launches = Launches(
        program.arch, lambda text: None, analyze=True, time=time, effort="whole", max_steps=program.max_steps
    )
    with TemporaryFile() as output:
        exit_code = run_program(program.words, launches, program.folder, output)
        static = launches.why_nothing(exit_code)
        if static and not launches.kinds:
            raise MemsimError(static)
        if exit_code:
            hint = "; ".join(filter(None, (_said_last(output), static))) or None
            raise MemsimError(f"{program} ended with exit code {exit_code}", hint=hint)
    if not launches.kinds:
        raise MemsimError(f"{program} launched no kernel, so nothing is guarded")
    return list(_counted(program, launches.kinds.values()))


def _counted(program: ProgramTarget, kinds: Iterable[LaunchKind]) -> Iterator[Measured]:
    """The launches under names that are the same in each run: those of one name are numbered."""
    names: Counter[str] = Counter()
    for kind in kinds:
        name = f"{program.name}{MARK}{_as_written(kind)}"
        names[name] += 1
        if names[name] > 1:
            name += f" #{names[name]}"
        if kind.failed or kind.analysis is None:
            error = MemsimError(kind.why_not or next(iter(kind.notes), "it failed"))
            yield Measured(name, error=error, program=program.name)
        else:
            yield Measured(name, kind.analysis, program=program.name)


def _as_written(kind: LaunchKind) -> str:
    """`turn<<<4, (32,8)>>>`, as its source would write it."""
    shape = kind.shape
    said = [_extent(shape.grid), _extent(shape.block)]
    if shape.shared_bytes:
        said.append(str(shape.shared_bytes))
    launch = f"{kind.kernel}<<<{', '.join(said)}>>>"
    if shape.cluster is not None:
        launch += f" cluster {_extent(shape.cluster)}"
    return launch + " cooperative" * shape.is_cooperative


def _extent(extent: tuple[int, int, int]) -> str:
    """`4` for (4, 1, 1), `(32,8)` for (32, 8, 1)."""
    last = max((axis for axis in range(3) if extent[axis] > 1), default=0)
    sizes = ",".join(map(str, extent[: last + 1]))
    return f"({sizes})" if last else sizes


def _said_last(output: IO[bytes]) -> str:
    """The last lines that a program has printed; "" if it has printed nothing."""
    end = output.seek(0, os.SEEK_END)
    output.seek(max(0, end - LAST_BYTES))
    lines = [line for line in output.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return "it printed last: " + " | ".join(lines[-LAST_LINES:]) if lines else ""
