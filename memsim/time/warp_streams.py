"""What each warp of a block executes, in its order, as the emulator tells it."""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.access import Chunk
from memsim.arch.units import WARP
from memsim.state.predicates import to_words
from memsim.trace.record import Recorder


class StreamRecorder(Recorder):
    """A recorder that also keeps the instructions of each warp, of the only block that runs.

    runs: for each warp (first, past the last) of the stretches of code that it executed.
    """

    def __init__(self, warps: int, *how: Any, **more: Any) -> None:
        super().__init__(*how, **more)
        self.runs: list[list[tuple[int, int]]] = [[] for _ in range(warps)]
        self.columns_of_rows: np.ndarray = np.arange(warps)
        self.known: dict[int, list[int]] = {}

    def start_chunk(self, chunk: Chunk) -> None:
        """Rows are blocks, or warps."""
        super().start_chunk(chunk)
        rows = chunk.first[:, 0] // WARP
        self.columns_of_rows = rows[:, None] + np.arange(chunk.threads // WARP)
        self.known = {}

    def executed(self, start: int, stop: int, mask: Any) -> None:
        """Some warps execute the instructions from number `start` up to `stop`."""
        super().executed(start, stop, mask)
        for warp in self.warps_in(mask):
            self.runs[warp].append((start, stop))

    def warps_in(self, mask: Any) -> list[int]:
        """The warps with a lane in a mask."""
        if mask is False:
            return []
        key = 0 if mask is True else mask.uid
        if key not in self.known:
            columns = self.columns_of_rows
            words = np.broadcast_to(to_words(mask), columns.shape) if key else np.ones(columns.shape)
            self.known[key] = np.unique(columns[words != 0]).tolist()
        return self.known[key]

    def streams(self) -> list[np.ndarray]:
        """The numbers of the instructions of each warp, int32 [executed]; equal streams are one array."""
        made: dict[tuple[tuple[int, int], ...], np.ndarray] = {}
        found = []
        for runs in map(tuple, self.runs):
            if runs not in made:
                parts = [np.arange(start, stop, dtype=np.int32) for start, stop in runs]
                made[runs] = np.concatenate([np.zeros(0, np.int32), *parts])
            found.append(made[runs])
        return found
