"""Kernels that need not exist: their index math as a function in Python.

In: a function of the thread's coordinates that loads from and stores to arrays, or plain addresses. Out: a
`Trace`, made by the same recorder as the emulator's. Left out on purpose: values, and what a compiler would
merge or reorder: each access is a request as it is written.
"""

from memsim.sketch.arrays import GlobalArray, SharedArray
from memsim.sketch.thread import Thread

__all__ = ["GlobalArray", "SharedArray", "Thread"]
