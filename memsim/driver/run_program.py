"""Runs a program whose CUDA device is memsim, and serves it until it ends."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from memsim.driver.execute_launches import Launches
from memsim.driver.native_build import libraries
from memsim.driver.program_memory import ProgramMemory, memory_of_this_machine
from memsim.driver.protocol import Client
from memsim.errors import MemsimError

#: Where the program finds memsim; without it memsim's CUDA libraries answer "no device".
VARIABLE = "MEMSIM_DRIVER"
LIBRARY_PATH = "LD_LIBRARY_PATH"
MOST_PROCESSES = 64
#: Bytes of a folder's name: the path of a socket has room for 107.
MOST_FOLDER = 80
SECONDS_TO_END = 2


def run_program(
    command: Sequence[str],
    launches: Launches,
    folder: Path | None = None,
    output: IO[bytes] | None = None,
) -> int:
    """Runs a command to its end, in a folder; returns its exit code, 128 + the signal that ended it.

    Each process of it that uses CUDA has a device of its own. output: where it, and its kernels, print; None
    is where this process does.

    Raises:
        MemsimError: there is no such program, or memsim's libraries cannot be built.
    """
    found = libraries(command[0])
    launches.use_machine_code(found)
    if output is not None:
        launches.output = output.fileno()
    size = memory_of_this_machine()
    with open_door() as (door, path):
        environment = {**os.environ, **environment_of(path, found)}
        try:
            program = subprocess.Popen(
                list(command), env=environment, cwd=folder, stdout=output, stderr=output
            )
        except OSError as error:
            raise MemsimError(f"cannot run {command[0]}: {error.strerror}") from None
        try:
            ended = os.pidfd_open(program.pid)
            try:
                serve(door, ended, lambda: program.poll() is not None, launches, size)
            finally:
                os.close(ended)
        finally:
            _end(program)
    exit_code = program.returncode
    return exit_code if exit_code >= 0 else 128 - exit_code


@contextmanager
def open_door() -> Iterator[tuple[socket.socket, str]]:
    """The socket at which programs find memsim, and its path, in a folder of its own."""
    wanted = tempfile.gettempdir()
    place = wanted if len(os.fsencode(wanted)) <= MOST_FOLDER else "/tmp"
    with (
        tempfile.TemporaryDirectory(prefix="memsim", dir=place) as scratch,
        socket.socket(socket.AF_UNIX) as door,
    ):
        path = str(Path(scratch, "driver"))
        door.bind(path)
        door.listen()
        yield door, path


def loaded_first(folder: Path) -> list[str]:
    """Those of memsim's libraries that have to be loaded before a library names them by a path of its own
    (RPATH, as PyTorch's do). It gets that of its release of CUDA, because the symbols have versions.
    """
    return sorted(map(str, folder.glob("libcu[db]*.so.*[0-9][0-9]")), reverse=True)


def environment_of(path: str, folder: Path) -> dict[str, str]:
    """The environment in which a program finds memsim at `path`, and its libraries before all others."""
    wanted = {
        LIBRARY_PATH: [str(folder)],
        "LD_PRELOAD": loaded_first(folder),
        "PYTHONPATH": [str(Path(__file__).with_name("in_python"))],
    }
    return {VARIABLE: path} | {
        name: os.pathsep.join([*first, *filter(None, [os.environ.get(name)])])
        for name, first in wanted.items()
    }


def _end(program: subprocess.Popen[bytes]) -> None:
    """Ends a program that still runs, because memsim is interrupted: first as Ctrl-C does."""
    for ask in (signal.SIGINT, signal.SIGKILL):
        if program.poll() is None:
            program.send_signal(ask)
            with suppress(subprocess.TimeoutExpired):
                program.wait(SECONDS_TO_END)


def serve(
    door: socket.socket, ended: int, has_ended: Callable[[], bool], launches: Launches, size: int
) -> None:
    """Answers the questions of all processes of a program, one after the other, until the program ends: when
    the file `ended` can be read, and it has.
    """
    clients: dict[int, Client] = {}
    with selectors.DefaultSelector() as waiting:
        waiting.register(ended, selectors.EVENT_READ)
        waiting.register(door, selectors.EVENT_READ)
        try:
            while True:
                ready = [key.fd for key, _ in waiting.select()]
                for fd in ready:
                    if fd == door.fileno():
                        _welcome(door, clients, waiting, launches, size)
                    elif fd in clients and not clients[fd].serve():
                        waiting.unregister(fd)
                        clients.pop(fd).close()
                if ended in ready and has_ended():
                    return
        finally:
            for client in clients.values():
                client.close()


def _welcome(
    door: socket.socket,
    clients: dict[int, Client],
    waiting: selectors.BaseSelector,
    launches: Launches,
    size: int,
) -> None:
    """A process connects; those of other users, and too many, are sent away."""
    connection, _ = door.accept()
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", credentials)
    if user != os.getuid() or len(clients) >= MOST_PROCESSES:
        connection.close()
        return
    try:
        clients[connection.fileno()] = Client(connection, ProgramMemory(size), launches)
    except OSError:
        connection.close()
        return
    waiting.register(connection, selectors.EVENT_READ)
