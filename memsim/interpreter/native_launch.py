"""Runs the blocks of a launch by native/interpreter.c."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from memsim.access import Listener
from memsim.arch.units import WARP
from memsim.errors import MemsimError
from memsim.interpreter.compiled_stretches import StretchCompiler
from memsim.interpreter.lowered_kernel import LoweredKernel, OperationNames, lowered_kernel
from memsim.interpreter.lowered_op import NotLowered
from memsim.interpreter.seen_order import sees_order
from memsim.isa.control import ASSERTION
from memsim.isa.op import Constant, Flow, Immediate
from memsim.simt.active_lanes import Lanes, special_register
from memsim.simt.code import Code
from memsim.simt.faults import KernelFault, endless, place_in_source
from memsim.simt.memory_layout import is_cooperative
from memsim.simt.prepared_launch import PreparedLaunch
from memsim.state.address_spaces import (
    CONSTANT_WINDOW,
    GLOBAL_BASE,
    LOCAL_WINDOW,
    PARAMETER_WINDOW,
    SHARED_WINDOW,
    WINDOW_SIZE,
    align,
)
from memsim.state.poison import Poison
from memsim.state.registers import to_array
from memsim.workers import processors

#: The libraries that `memsim.driver.native_build` makes of native/interpreter.c; one is for x86-64 only.
PLAIN, WITH_AVX2 = "libmemsim_interpreter.so", "libmemsim_interpreter_avx2.so"
#: Seconds after which Python looks for signals, and after which a launch is worth more threads than one.
SLICE, ALONE = 0.1, 0.004
#: Threads of one launch.
MOST_THREADS = 32
#: Instructions of a kernel's code beyond which addresses are not looked up in a table.
MOST_CODE = 1 << 20
#: Faults by number, and what a launch's error says of them if the emulator finds none.
_OUTSIDE, _MISALIGNED, _DEADLOCK, _TRAP, _ENDLESS, _LOST, _NO_MEMORY = range(1, 8)
_KINDS = {_OUTSIDE: "address", _MISALIGNED: "alignment", _TRAP: "trap", _ENDLESS: "endless"}
_SAID = {
    _OUTSIDE: "an access outside of every array",
    _MISALIGNED: "a misaligned access",
    _DEADLOCK: "deadlock: lanes wait for others that do not come",
    _TRAP: "trap executed",
    _LOST: "a branch to a place that is not an instruction, or a constant outside of its bank",
    _NO_MEMORY: "there is not enough memory for a block's registers",
}
#: Of the flags of an allocation, as native/interpreter.h has them.
_WRITTEN = 2


class Structure(ctypes.Structure):
    """As `Launch` of native/interpreter.h."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("operations", "constants", "accesses", "of_threads")),
        ("threads", ctypes.c_int64),
        ("places", ctypes.c_void_p),
        ("places_count", ctypes.c_int64),
        ("global_", ctypes.c_void_p),
        ("global_base", ctypes.c_uint64),
        *((name, ctypes.c_void_p) for name in ("starts", "ends", "touched")),
        ("allocations", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("window", "parameters")),
        *((name, ctypes.c_int64) for name in ("window_bytes", "parameters_bytes")),
        *(
            (name, ctypes.c_uint64)
            for name in (
                "shared_window",
                "local_window",
                "constant_window",
                "parameter_window",
                "window_size",
            )
        ),
        *(
            (name, ctypes.c_int64)
            for name in (
                "shared_base",
                "shared_end",
                "local_bytes",
                "register_bytes",
                "budget",
                "zeroed_bytes",
            )
        ),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        *((name, ctypes.c_int32) for name in ("count_place", "answer_place", "fault", "instruction")),
        ("faulty_block", ctypes.c_int64),
        ("turns", ctypes.c_void_p),
        *((name, ctypes.c_int32) for name in ("waits", "has_others")),
    ]


class TouchedAllocations(NamedTuple):
    """The allocations that a launch has accessed, and those that it has written, by name."""

    names: set[str]
    written: set[str]


class _Part(NamedTuple):
    """A launch for one thread that runs blocks of it, and what that thread changes."""

    structure: Structure
    accesses: np.ndarray
    touched: np.ndarray

    @classmethod
    def of(cls, made: Structure, kernel: LoweredKernel, allocations: int) -> _Part:
        """With nothing accessed yet."""
        part = cls(
            Structure.from_buffer_copy(made), kernel.accesses.copy(), np.zeros(allocations + 1, np.uint8)
        )
        part.structure.accesses, part.structure.touched = part.accesses.ctypes.data, part.touched.ctypes.data
        return part


class NativeInterpreter:
    """Runs launches whose kernels have operations for all that they do, by a library in a folder.

    threads: that run the blocks of one launch, if their order does not matter; None: one per processor.
    compile: makes a library of functions in C for processors with AVX2, None if it cannot.
    """

    def __init__(
        self,
        folder: Path,
        threads: int | None = None,
        compile: Callable[[str], bytes | None] = lambda text: None,
    ) -> None:
        self.threads = min(threads or processors(), MOST_THREADS)
        self._library = ctypes.CDLL(str(folder / PLAIN))
        self.compiler: StretchCompiler | None = None
        if self._library.memsim_has_avx2() and (folder / WITH_AVX2).exists():
            self._library = ctypes.CDLL(str(folder / WITH_AVX2))
            self.compiler = StretchCompiler(compile)
        self._library.memsim_operations.restype = ctypes.c_char_p
        self._library.memsim_begin.argtypes = [ctypes.c_void_p]
        self._library.memsim_begin.restype = ctypes.c_void_p
        self._library.memsim_go_on.argtypes = [ctypes.c_void_p, ctypes.c_double]
        self._library.memsim_end.argtypes = [ctypes.c_void_p]
        self._library.memsim_size.restype = ctypes.c_int64
        self.names = OperationNames(self._library.memsim_operations().decode())

    def sizes_in_c(self, which: int) -> int:
        """Bytes of an operation (0), an access (1) and a launch (2)."""
        return int(self._library.memsim_size(which))

    def run(self, launch: PreparedLaunch, listener: Listener, accessed: TouchedAllocations) -> None:
        """Executes all blocks of a launch of which everything is executed.

        accessed: gets what it accesses, if it fails, too.

        Raises:
            NotLowered: the kernel does something for which there is no operation; nothing was executed.
            MemsimError: an error in the kernel, told by the emulator.
        """
        _check(launch)
        memory = launch.memory
        kernel = lowered_kernel(launch.code, self.names, memory.clock("SR_CLOCKLO") is not None)
        buffers = memory.layouts["global"].buffers
        made, kept = _structure(launch, kernel)
        made.waits = sees_order(launch.code.dataflow)
        blocks = launch.launch.blocks
        threads = 1 if made.waits else min(self.threads, blocks)
        parts: list[_Part] = []

        def structures() -> Iterator[Structure]:
            for _ in range(threads):
                parts.append(_Part.of(made, kernel, len(buffers)))
                yield parts[-1].structure

        compiler = self.compiler
        if compiler is not None:
            compiler.begin(kernel)
        began = time.perf_counter()

        def hasten() -> bool:
            return compiler is None or compiler.has_hastened(kernel, time.perf_counter() - began)

        try:
            self.execute(structures(), blocks, hasten)
        finally:
            if compiler is not None:
                compiler.end(kernel, time.perf_counter() - began)
            del kept
            for one, flags in zip(buffers, np.bitwise_or.reduce([part.touched for part in parts])):
                if flags:
                    accessed.names.add(one.name)
                if flags & _WRITTEN:
                    accessed.written.add(one.name)
        if faulty := [part.structure for part in parts if part.structure.fault]:
            raise _told(launch, min(faulty, key=lambda made: made.faulty_block), listener)

    def execute(
        self, parts: Iterable[Structure], blocks: int, hasten: Callable[[], bool] = lambda: True
    ) -> None:
        """Runs so many blocks, each by the thread that comes to it, up to the first one that has a fault.

        parts: the launch for each thread. The first one begins alone: most launches need no other. hasten: is
        called now and then until it has made what is left faster.

        Raises:
            MemsimError: there is no memory for it.
        """
        turns = np.array([0, blocks], np.int64)
        made = iter(parts)
        first = next(made)
        first.turns = turns.ctypes.data
        with self._begun(first) as run:
            if not self._library.memsim_go_on(run, ALONE):
                return
            others = list(made)
            first.has_others = bool(others)
            with ThreadPoolExecutor(max(1, len(others))) as pool:
                try:
                    waiting = [pool.submit(self._run_all, part, turns) for part in others]
                    is_fast = hasten()
                    while self._library.memsim_go_on(run, SLICE):
                        is_fast = is_fast or hasten()
                    while wait(waiting, SLICE).not_done:
                        pass
                    for one in waiting:
                        one.result()
                except BaseException:  # such as Ctrl-C: no thread is to go on
                    turns[1] = 0
                    raise

    def _run_all(self, part: Structure, turns: np.ndarray) -> None:
        part.turns, part.has_others = turns.ctypes.data, True
        with self._begun(part) as run:
            while self._library.memsim_go_on(run, SLICE):
                pass

    @contextmanager
    def _begun(self, part: Structure) -> Iterator[int]:
        """Blocks of a launch run in this thread."""
        run = self._library.memsim_begin(ctypes.byref(part))
        if not run:
            raise MemsimError(_SAID[_NO_MEMORY])
        try:
            yield run
        finally:
            self._library.memsim_end(run)


def _check(launch: PreparedLaunch) -> None:
    """Whether blocks may run one after the other.

    Raises:
        NotLowered: no.
    """
    code = launch.code
    if is_cooperative(launch.kernel) or code.cluster != (1, 1, 1):
        raise NotLowered("its blocks wait for each other")
    if _called(code) - {ASSERTION}:
        raise NotLowered("it calls functions of the driver")
    if code.dataflow.alike:
        raise NotLowered("lanes that shuffle together wait at several places")
    if max(code.program.at, default=0) // 16 > MOST_CODE:
        raise NotLowered("its code is far apart")


def _called(code: Code) -> set[str]:
    """The functions of the driver that a kernel may call: those whose place in a constant bank it names."""
    if not code.externals or all(op.flow is not Flow.CALL for op in code.program.ops):
        return set()
    operands = [operand for op in code.program.ops for operand in op.form.operands]
    places = {one.offset for one in operands if isinstance(one, Constant)}
    places |= {one.value for one in operands if isinstance(one, Immediate) and isinstance(one.value, int)}
    words = (
        int.from_bytes(content[place : place + 8], "little")
        for content in code.binder.banks.values()
        for place in places
        if place >= 0
    )
    return {code.externals[word] for word in words if word in code.externals}


def _lanes_of_a_block(launch: PreparedLaunch) -> Lanes:
    """The threads of one block, for what depends on them alone."""
    lanes = Lanes(launch.launch, launch.code.cluster)
    lanes.start(np.zeros(1, np.int64))
    return lanes


def _structure(launch: PreparedLaunch, kernel: LoweredKernel) -> tuple[Structure, list[object]]:
    """The launch as C has it, and what has to live as long as it."""
    memory, code, shape = launch.memory, launch.code, launch.launch
    threads = shape.warps * WARP
    lanes = _lanes_of_a_block(launch)
    tables = np.zeros((max(1, len(kernel.of_threads)), threads), np.uint32)
    for row, name in zip(tables, kernel.of_threads):
        value = special_register(name, lanes, memory.shared_bytes)
        if isinstance(value, Poison):
            raise NotLowered(f"{name} is not known")
        row[:] = np.broadcast_to(to_array(value), (1, threads))[0].astype(np.uint32)
    at = code.program.at
    places = np.full(max(at, default=0) // 16 + 1, -1, np.int32)
    for address, index in at.items():
        places[address // 16] = kernel.where[index]
    layout = memory.layouts["global"]
    starts = np.array(layout.starts, np.uint64)
    ends = np.array([one.end for one in layout.buffers], np.uint64)
    window = code.binder.window()
    shared = memory.layouts["shared"]
    data = memory.space("global").data
    kept = [tables, places, starts, ends, window.content, data, kernel]
    made = Structure(
        **kernel.addresses(),
        of_threads=tables.ctypes.data,
        threads=threads,
        places=places.ctypes.data,
        places_count=len(places),
        global_=data.ctypes.data,
        global_base=GLOBAL_BASE,
        starts=starts.ctypes.data,
        ends=ends.ctypes.data,
        allocations=len(starts),
        window=window.content.ctypes.data,
        parameters=window.content.ctypes.data + window.size,
        window_bytes=window.size,
        parameters_bytes=len(window.content) - window.size,
        shared_window=SHARED_WINDOW,
        local_window=LOCAL_WINDOW,
        constant_window=CONSTANT_WINDOW,
        parameter_window=PARAMETER_WINDOW,
        window_size=WINDOW_SIZE,
        shared_base=shared.base,
        shared_end=shared.end,
        local_bytes=align(memory.layouts["local"].end, 16),
        budget=launch.max_steps,
        grid=(ctypes.c_uint32 * 3)(*shape.grid),
        block=(ctypes.c_uint32 * 3)(*shape.block),
    )
    return made, kept


def _told(launch: PreparedLaunch, made: Structure, listener: Listener) -> MemsimError:
    """The error of a launch, as the emulator tells it of the block that has it."""
    fault = made.fault
    if fault == _NO_MEMORY:
        return MemsimError(_SAID[fault])
    ops = launch.code.program.ops
    op = ops[made.instruction] if 0 <= made.instruction < len(ops) else None
    where = place_in_source(op) if op is not None and fault != _DEADLOCK else {}
    if fault == _ENDLESS:
        return endless(launch.max_steps, ops[made.instruction])
    try:
        launch.run(listener, np.array([made.faulty_block]), judges_order=False)
    except MemsimError as error:
        return error
    if op is not None and op.flow is Flow.CALL:  # not again, as memory is now
        return KernelFault("assertion failed", "assert", **where)
    if fault in _KINDS:
        return KernelFault(_SAID[fault], _KINDS[fault], **where)
    return MemsimError(_SAID[fault], **where)
