"""Work that is shared out to processes.

One that dies, as a process does that is killed when memory runs out, gets a second chance.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from memsim.boundary import Boundary, confine, confinement
from memsim.errors import MemsimError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

Item = TypeVar("Item", contravariant=True)
Result = TypeVar("Result", covariant=True)
Progress = Callable[[float], None]


class WorkersError(MemsimError):
    """What is wrong with those who work, rather than with what they do."""


class Work(Protocol[Item, Result]):
    """What is done with each item. Where processes are not forked, both are pickled."""

    def __call__(self, item: Item, progress: Progress | None = None, /) -> Result:
        """The result; `progress` is called with the share of this item that is done."""


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def start_method() -> str:
    """How processes are started: forked, with all that is loaded here, where that is safe.

    It is not elsewhere than on Linux, nor where a thread may hold a lock for ever in the copy.
    """
    return "fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn"


def in_processes(
    work: Work[Item, Result], items: Sequence[Item], jobs: int, progress: Progress | None = None
) -> list[Result]:
    """The results for the items in order, by at most `jobs` processes at once, each of which does one.

    On Linux these are forked: they have what this process has loaded. Elsewhere libraries do not bear that.

    Raises:
        WorkersError: a process died, twice.
        MemsimError: as `work`.
    """
    import multiprocessing
    from multiprocessing.connection import Connection, wait

    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    todo, died = list(range(len(items)))[::-1], set[int]()
    running: dict[Connection, tuple[int, BaseProcess]] = {}
    shares, found = [0.0] * len(items), dict[int, tuple[Any, Exception | None]]()
    try:
        while todo or running:
            while todo and len(running) < jobs:
                number = todo.pop()
                here, there = context.Pipe(duplex=False)
                told = work, items[number], there, confinement(), progress is not None
                process = context.Process(target=_child, args=told, daemon=True)
                with interrupts_held():
                    process.start()
                there.close()  # so that nothing more comes when the process ends
                running[here] = number, process
            for pipe in wait(list(running)):
                assert isinstance(pipe, Connection)
                number, process = running[pipe]
                said = _received(pipe)
                if isinstance(said, float):
                    shares[number] = said
                    if progress is not None:
                        progress(sum(shares) / len(items))
                    continue
                del running[pipe]
                process.join()
                if said is not None:
                    found[number] = said
                    if said[1] is not None:
                        todo.clear()
                elif number in died:
                    hint = "it may have run out of memory; try fewer processes (--jobs)"
                    raise WorkersError("a process that took a part of the work died, twice", hint=hint)
                else:
                    died.add(number)
                    todo.append(number)
    finally:
        for _, process in running.values():  # nobody waits for what they do
            process.terminate()
    for _, error in (found[number] for number in sorted(found)):
        if error is not None:
            raise error
    return [found[number][0] for number in range(len(items))]


def _child(
    work: Work[Item, Result], item: Item, there: Connection, boundary: Boundary | None, tells: bool
) -> None:
    """In a process: sends shares of what is done, and at last (the result, the error instead)."""
    begin_worker(boundary)
    try:
        there.send((work(item, there.send if tells else None), None))
    except Exception as error:
        there.send((None, error))


def _received(pipe: Connection) -> Any:
    """What a process sends; None if it has died."""
    try:
        return pipe.recv()
    except (EOFError, OSError):
        return None


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Ctrl-C comes afterwards; processes that are started meanwhile never hear of it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin_worker(boundary: Boundary | None) -> None:
    """In a worker: when the parent is gone, however it went, so is this; what it trusts, this does."""
    import multiprocessing

    confine(boundary)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
