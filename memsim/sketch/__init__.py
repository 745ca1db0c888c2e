"""Sketches: index math of a kernel as a Python function, to a `Trace`.

The function takes the thread's coordinates and loads from and stores to arrays; the emulator's recorder makes
the trace. There are no values, and nothing is merged or reordered as a compiler would: each access is a
request as written.
"""

from memsim.sketch.element import GlobalArray, SharedArray
from memsim.sketch.thread import Thread

__all__ = ["GlobalArray", "SharedArray", "Thread"]
