"""A trace as users have it, which saves itself; and sources of traces that execute no kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memsim.launch import Launch
from memsim.trace.suffixes import is_foreign
from memsim.trace.trace_data import TraceData

if TYPE_CHECKING:
    from memsim.trace.record import Recorder


@dataclass(frozen=True, repr=False)
class Trace(TraceData):
    __doc__ = TraceData.__doc__

    def save(self, path: str | Path) -> None:
        """Write the trace to one file: `.npz` (see `memsim.trace.storage`), or Accel-Sim's `.traceg`.

        Raises:
            MemsimError: the file cannot be written, or Accel-Sim cannot express an access.
        """
        from memsim.trace.foreign.formats import write_accelsim
        from memsim.trace.storage import save

        if is_foreign(Path(path)):
            write_accelsim(self, path)
        else:
            save(self, path)

    @staticmethod
    def load(path: str | Path, kernel: str | None = None) -> Trace:
        """Read a trace written by `save`, or one of another tool: Accel-Sim's `.traceg`, NVBit's mem_trace.

        Args:
            kernel: which launch of an NVBit file that has several, by its name or number.

        Raises:
            MemsimError: no such file, or not a complete trace of a known version.
        """
        return _read(Path(path), kernel)


def _read(path: Path, kernel: str | None, recorder: Callable[[], Recorder] | None = None) -> Trace:
    """As `Trace.load`; recorder: creates the one for another tool's requests."""
    data: TraceData
    if is_foreign(path):
        from memsim.trace.foreign.formats import read_foreign

        data = read_foreign(path, kernel, *filter(None, [recorder]))
    else:
        from memsim.trace.storage import load

        data = load(path)
    return Trace(**vars(data))


class TraceSource(ABC):
    """Produces a trace without a kernel. file: its source, relative to `folder`."""

    folder: Path
    file: str

    @abstractmethod
    def trace(
        self,
        launch: Launch,
        args: Sequence[object],
        blocks: NDArray[np.int64] | None,
        progress: Callable[[float], None] | None,
        recorder: Callable[[], Recorder],
    ) -> Trace:
        """The accesses of a launch.

        Args:
            blocks: linear numbers of those to replay, None for all.
            recorder: creates the recorder of requests.

        Raises:
            MemsimError: it cannot be read, or fails.
        """


@dataclass(frozen=True)
class TraceFile(TraceSource):
    """A saved trace, or one of another tool; its launch is in the file.

    kernel: which launch, if the file has several.
    """

    folder: Path
    file: str
    kernel: str | None = None

    def trace(
        self,
        launch: Launch,
        args: Sequence[object],
        blocks: NDArray[np.int64] | None,
        progress: Callable[[float], None] | None,
        recorder: Callable[[], Recorder],
    ) -> Trace:
        """The trace in the file, whatever the launch.

        Raises:
            MemsimError: as `Trace.load`.
        """
        return _read(self.folder / self.file, self.kernel, recorder)
