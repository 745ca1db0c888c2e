"""`with memsim.device():` makes memsim the CUDA device of this process, as `memsim exec` does for a program.

memsim's libraries are loaded before any other of CUDA: whoever asks for `libcuda.so.1` later gets the one
that is loaded. Another process executes the launches, because a call of CUDA's may hold the interpreter's
lock. It is the device as long as this process lives: contexts and addresses outlive a block.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import pickle
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from memsim.arch import SM_90, get_arch
from memsim.driver.execute_launches import Launches, LaunchKind
from memsim.driver.native_build import libraries
from memsim.driver.program_memory import memory_of_this_machine
from memsim.driver.run_program import VARIABLE, environment_of, loaded_first, open_door, serve
from memsim.errors import MemsimError
from memsim.shown import ShownAnalysis
from memsim.views.screen import Screen

#: A library that would be asked instead of memsim's.
OTHERS = re.compile(r"/lib(?:cuda|cudart|cublas|cublasLt)(?:-[0-9a-f]+)?\.so[.0-9]*$", re.M)
SERVER = (
    "import sys; sys.path[:] = {}; from memsim.driver.own_device import serve_parent; serve_parent({}, {!r})"
)


class OwnDevice:
    """The process that is this one's device."""

    def __init__(self, arch: str) -> None:
        self.arch, self.is_in_use = arch, False
        found = libraries(sys.executable)
        _refuse_others()
        self.control, other = socket.socketpair()
        with other:
            code = SERVER.format(sys.path, other.fileno(), arch)
            self.server = subprocess.Popen([sys.executable, "-c", code], pass_fds=[other.fileno()])
        atexit.register(self.end)
        path = self.ask(None)
        os.environ |= environment_of(path, found)
        for name in (str(found / "libcuda.so.1"), *loaded_first(found)):
            library = ctypes.CDLL(name, ctypes.RTLD_GLOBAL)
            if name.endswith("libcuda.so.1") and library.cuInit(0):
                raise MemsimError("memsim's device cannot be made here")
        import_module("memsim.driver.in_python.sitecustomize")

    def ask(self, how: Mapping[str, bool] | None) -> Any:
        """Begins to count anew, `how`; None: the launches since it began, and the first time its address.

        Raises:
            MemsimError: the process has ended.
        """
        try:
            self.control.sendall(pickle.dumps(how))
            with self.control.makefile("rb") as answers:
                return pickle.load(answers)
        except (OSError, EOFError):
            raise MemsimError("the process that is memsim's device has ended") from None

    def end(self) -> None:
        """Nothing launches any more."""
        self.control.close()
        self.server.wait()


_device: OwnDevice | None = None


@contextmanager
def device(
    arch: str = SM_90.name, *, analyze: bool = False, sanitize: bool = False, time: bool = False
) -> Iterator[list[LaunchKind]]:
    """The CUDA device of this process is memsim: kernels of PyTorch, Triton and Numba are executed, as by
    `memsim exec` (docs/exec.md), without a GPU. At the end of the block the list has the launches made in it,
    by kernel and shape.

    The device stays after the block, because packages keep what they have found. Within `memsim exec`, and
    `pytest --memsim`, that is the device, and its table has the launches; the list is empty.

    Args:
        arch: the chip that the program sees.
        analyze: count the first launch of each kind.
        sanitize: look for errors in it.
        time: estimate its time, too.

    Raises:
        MemsimError: a library of CUDA is loaded already, such as by `import torch`: the first block has to
            come before; not Linux, no C compiler, or no headers of CUDA.
    """
    global _device
    chip, launches = get_arch(arch).name, list[LaunchKind]()
    if _device is None and VARIABLE in os.environ:
        yield launches
        return
    if _device is None:
        _device = OwnDevice(chip)
    if _device.arch != chip:
        raise MemsimError(f"the device of this process is {_device.arch} already, and not {chip}")
    if _device.is_in_use:
        raise MemsimError("a block of memsim.device is not in another one: its launches would be in both")
    _device.ask({"analyze": analyze or time, "sanitize": sanitize, "time": time})
    _device.is_in_use = True
    try:
        yield launches
    finally:
        _device.is_in_use = False
        launches += _device.ask(None)
        for kind in launches:
            kind.analysis = kind.analysis and ShownAnalysis.of(kind.analysis)


def _refuse_others() -> None:
    """Another CUDA must not be loaded yet.

    Raises:
        MemsimError: it is.
    """
    loaded = OTHERS.search(Path("/proc/self/maps").read_text())
    found = loaded[0][1:] if loaded is not None else "CuPy" if "cupy_backends" in sys.modules else None
    if found is not None:
        raise MemsimError(
            f"{found} is loaded already, so this process has its device",
            hint="begin the first `with memsim.device():` before anything loads CUDA, as `import torch` does;"
            " or run the program by memsim exec",
        )


def serve_parent(control: int, arch: str) -> None:
    """In the other process: is the device of the one that holds the other end of a socket, until it ends."""
    screen = Screen(sys.stderr)
    launches = Launches(get_arch(arch), lambda text: screen.say(f"memsim: {text}"))
    launches.use_machine_code(libraries(sys.executable))
    with open_door() as (door, path), socket.socket(fileno=control) as parent:
        answers: list[object] = [path]

        def has_ended() -> bool:
            try:
                with parent.makefile("rb") as questions:
                    how = pickle.load(questions)
            except (OSError, EOFError):
                return True
            answer = answers.pop() if answers else list(launches.kinds.values())
            if how is not None:
                launches.kinds = {}
                launches.analyze, launches.sanitize, launches.time = how.values()
            parent.sendall(pickle.dumps(answer))
            return False

        with suppress(KeyboardInterrupt):  # the parent hears of it, too
            serve(door, parent.fileno(), has_ended, launches, memory_of_this_machine())
