"""Where a trace comes from if no kernel is executed for it.

In: a launch. Out: a `Trace`. Here is the one that is read from a file; that of index math in Python is
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
    """What gives a trace without a kernel. file: what it is read from, relative to `folder`."""

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
            recorder: makes what keeps the requests.

        Raises:
            MemsimError: it cannot be read, or goes wrong.
        """


@dataclass(frozen=True)
class TraceFile(TraceSource):
    """A trace that was saved, or that another tool wrote; it is of the launch that it was made of.

    kernel: which launch, of a file that has several.
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
        """What is in the file, whatever the launch.

        Raises:
            MemsimError: as `Trace.load`.
        """
        path = self.folder / self.file
        if is_foreign(path):
            from memsim.trace.foreign.read import read_foreign

            return read_foreign(path, self.kernel, recorder)
        return Trace.load(path)


def can_be_written(path: Path) -> bool:
    """Whether a trace can be saved under a name: in memsim's own format, or in Accel-Sim's."""
    return path.suffix == SUFFIX or is_accelsim(path)


def is_trace(path: str | Path) -> bool:
    """Whether a file is a trace, memsim's own or another tool's, by its name."""
    return Path(path).suffix == SUFFIX or is_foreign(Path(path))
