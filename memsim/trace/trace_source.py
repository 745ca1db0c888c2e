"""Sources of traces without executing a kernel. A trace file is here; index math in Python is in
`memsim.sketch.python_function`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memsim.launch import Launch
from memsim.trace.tool_by_name import is_accelsim, is_foreign
from memsim.trace.trace import Trace

if TYPE_CHECKING:
    from memsim.trace.record import Recorder

SUFFIX = ".npz"


class TraceSource(ABC):
    """Produces a trace without a kernel. file: its source, relative to `folder`."""

    folder: Path
    file: str

    @abstractmethod
    def trace(
        self,
        launch: Launch,
        args: Sequence[Any],
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
        args: Sequence[Any],
        blocks: NDArray[np.int64] | None,
        progress: Callable[[float], None] | None,
        recorder: Callable[[], Recorder],
    ) -> Trace:
        """The trace in the file, whatever the launch.

        Raises:
            MemsimError: as `Trace.load`.
        """
        path = self.folder / self.file
        if is_foreign(path):
            from memsim.trace.foreign.read import read_foreign

            return read_foreign(path, self.kernel, recorder)
        return Trace.load(path)


def can_be_written(path: Path) -> bool:
    """Whether a trace can be saved under a name: in memsim's own format or in Accel-Sim's."""
    return path.suffix == SUFFIX or is_accelsim(path)


def is_trace(path: str | Path) -> bool:
    """Whether a file's name is that of a trace, memsim's own or another tool's."""
    return Path(path).suffix == SUFFIX or is_foreign(Path(path))
