"""Runs a sketch: calls the function for chunks of blocks, converts its indices to checked byte addresses, and
records its accesses.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memsim.access import AccessSide, Chunk, Site, SiteAccess
from memsim.arch import SM_90
from memsim.arch.units import WARP
from memsim.errors import MemsimError
from memsim.instruction import Instruction, Place
from memsim.launch import Launch
from memsim.layout import Layout
from memsim.sketch.element import Element, ElementAccess, SketchArray, recorded_by
from memsim.sketch.place import PythonLine, caller, line_of, shown_path, text_of, user_mistakes
from memsim.sketch.thread import Thread, checked_mask, coordinates
from memsim.state.parts import Part
from memsim.state.predicates import from_bools
from memsim.state.registers import Sum, from_array
from memsim.trace.record import Recorder
from memsim.trace.trace import Trace
from memsim.trace.trace_data import ArrayLayout, Origin

Indices = tuple[NDArray[np.int64], ...]


@dataclass(frozen=True)
class AccessingThreads:
    """The threads of an access. shape: (blocks, threads). active: mask that broadcasts to `shape`.

    name: describes the thread in a row and column of `shape`.
    """

    shape: tuple[int, int]
    active: NDArray[np.bool_]
    name: Callable[[int, int], str]

    def first(self, wrong: NDArray[np.bool_]) -> tuple[int, int] | None:
        """The first active thread for which `wrong` is true."""
        if not wrong.any():
            return None
        found = np.argwhere(np.broadcast_to(wrong & self.active, self.shape))
        return (int(found[0][0]), int(found[0][1])) if len(found) else None


def byte_addresses(element: Element, vector: int, lanes: AccessingThreads, first: int) -> NDArray[np.int64]:
    """The address of each thread, int64, in a shape that broadcasts to `lanes.shape`.

    Raises:
        MemsimError: indices that are not integers, too few of them, or outside of the array; `vector`
            elements that are not contiguous, have no valid access width, or are misaligned.
    """
    array = element.array
    index = _checked_index(element, lanes)
    offsets = array.layout(*index)
    width = array.itemsize * vector
    if vector != 1:
        _check_vector(element, index, offsets, vector, lanes)
    addresses: NDArray[np.int64] = np.atleast_2d(offsets * array.itemsize + first)
    at = lanes.first(addresses % width != 0)
    if at is not None:
        address = int(np.broadcast_to(addresses, lanes.shape)[at])
        raise MemsimError(
            f"misaligned access: {lanes.name(*at)} accesses {width} bytes at "
            f"{_name(element, index, lanes, at)}, which is byte {address} of {array.space} memory",
            hint=f"an access of {width} bytes must start at a multiple of {width}",
        )
    return addresses


def _checked_index(element: Element, lanes: AccessingThreads) -> Indices:
    array = element.array
    extents = array.shape
    if len(element.index) != len(extents):
        raise MemsimError(
            f"{array.name} has {len(extents)} axes but {len(element.index)} indices",
            hint=f"its shape is {extents}",
        )
    index = tuple(_integers(each, array.name, lanes.shape) for each in element.index)
    for axis, (each, extent) in enumerate(zip(index, extents, strict=True)):
        at = lanes.first((each < 0) | (each >= extent))
        if at is not None:
            which = f"index {int(np.broadcast_to(each, lanes.shape)[at])} of axis {axis}"
            raise MemsimError(
                f"{which} is outside of {array.name}, whose shape is {extents}: "
                f"{lanes.name(*at)} accesses {_name(element, index, lanes, at)}",
                hint="exclude threads by mask= or t.when",
            )
    return index


def _integers(value: object, name: str, shape: tuple[int, int]) -> NDArray[np.int64]:
    array = np.asarray(value)
    if array.dtype.kind not in "iu":
        what = value if isinstance(value, slice) else array.dtype
        raise MemsimError(f"{name} is indexed by {what}; an index must be an integer", hint="divide by //")
    try:
        np.broadcast_to(array, shape)
    except ValueError:
        raise MemsimError(
            f"an index of {name} has shape {array.shape}, but "
            f"there are {shape[0]} blocks of {shape[1]} threads",
            hint="compute indices from the thread's coordinates and constants",
        ) from None
    return np.atleast_2d(array.astype(np.int64, copy=False))


def _check_vector(
    element: Element, index: Indices, offsets: NDArray[np.int64], vector: int, lanes: AccessingThreads
) -> None:
    """Raise unless the elements are contiguous along some axis in every thread."""
    array = element.array
    width = array.itemsize * vector
    if vector < 1 or width not in (1, 2, 4, 8, 16):
        raise MemsimError(
            f"{vector} elements of {array.itemsize} bytes cannot be one access: it has 1, 2, 4, 8 or 16 bytes"
        )
    torn = [_torn(array.layout, index, axis, offsets, vector) for axis in range(len(index))]
    if all(lanes.first(wrong) is not None for wrong in torn):
        at = lanes.first(torn[-1]) or (0, 0)
        raise MemsimError(
            f"the {vector} elements starting at {_name(element, index, lanes, at)} are not contiguous in "
            f"{array.layout}: {lanes.name(*at)} cannot access them at once",
            hint="a swizzle must keep them together (its base), and their axis must be contiguous",
        )


def _torn(
    layout: Layout, index: Indices, axis: int, offsets: NDArray[np.int64], vector: int
) -> NDArray[np.bool_]:
    """Where the elements along an axis are not contiguous, or not all inside the array."""
    wrong = index[axis] + vector > layout.extents[axis]
    for step in range(1, vector):
        beside = (*index[:axis], index[axis] + step, *index[axis + 1 :])
        wrong = wrong | (layout(*beside) != offsets + step)
    return np.asarray(wrong, np.bool_)


def _name(element: Element, index: Indices, lanes: AccessingThreads, at: tuple[int, int]) -> str:
    """`tile[3][4]`: the element that the thread at `at` accesses."""
    own = (int(np.broadcast_to(each, lanes.shape)[at]) for each in index)
    return element.array.name + "".join(f"[{each}]" for each in own)


Progress: TypeAlias = Callable[[float], None] | None
Function: TypeAlias = Callable[[Thread], object]

#: Threads that run at once: their coordinates and addresses take about 10 MB.
CHUNK = 1 << 20

FORM = "index math in Python, each access a request as written"
#: Widths of a copy; one that bypasses the L1 cache has 16 bytes (PTX ISA, cp.async).
BYPASS_WIDTH = 16


class Sketch:
    """A function being run: the placement of its arrays, and the accesses made so far.

    names: display names of files in the trace, by path. recorder: stores the requests.
    """

    def __init__(self, launch: Launch, names: Mapping[str, str], recorder: Recorder) -> None:
        self.launch = launch
        self.names = dict(names)
        self.recorder = recorder
        self.thread = Thread(launch, np.zeros(1, np.int64))
        self.blocks: NDArray[np.int64] = np.zeros(1, np.int64)
        self.places: dict[str, tuple[SketchArray, int]] = {}
        self.ends = {"shared": 0, "global": 0}
        self.sites: dict[tuple[PythonLine, str, str, int, str], Site] = {}

    def run(
        self, function: Callable[[Thread], object], blocks: NDArray[np.int64], stand_for: int = 1
    ) -> None:
        """Call the function for these blocks; `stand_for`: how many blocks each of them stands for."""
        self.blocks = blocks
        self.thread = Thread(self.launch, blocks)
        told = np.repeat(blocks, stand_for)
        first = np.zeros((len(told), 1), np.int64)
        self.recorder.start_chunk(Chunk(told, self.launch.warps * WARP, first))
        with recorded_by(self), user_mistakes(self.names):
            function(self.thread)

    # --- calls from elements

    def access(self, made: ElementAccess) -> None:
        """Record an access by the active threads."""
        lanes = self._lanes(np.logical_and(checked_mask(made.mask, "mask"), self.thread.lane < made.lanes))
        addresses = self._addresses(made.element, made.vector, lanes)
        self._tell(made, made.element, _integer(addresses), from_bools(lanes.active))

    def copy(self, made: ElementAccess, source: Element, read: ArrayLike) -> None:
        """Record a copy from `source`; threads outside of `read` write zeros."""
        target, element = made.element.array, source.array
        if target.itemsize != element.itemsize:
            raise MemsimError(
                f"cp.async copies bytes unchanged, but elements of {element.name} have "
                f"{element.itemsize} bytes and those of {target.name} {target.itemsize}"
            )
        width = target.itemsize * made.vector
        widths = (BYPASS_WIDTH,) if made.access == "cp_async_cg" else (4, 8, BYPASS_WIDTH)
        if width not in widths:
            raise MemsimError(
                f"a cp.async{' that bypasses the L1 cache' * (len(widths) == 1)} copies "
                f"{', '.join(map(str, widths))} bytes, not {width}",
                hint=f"vector={widths[-1] // target.itemsize} copies {widths[-1]}",
            )
        lanes = self._lanes(made.mask)
        reading = self._lanes(np.logical_and(made.mask, checked_mask(read, "read")))
        writes, reads = from_bools(lanes.active), from_bools(reading.active)
        to = _integer(self._addresses(made.element, made.vector, lanes))
        origin = _integer(self._addresses(source, made.vector, reading))
        self._tell(made, made.element, to, writes, AccessSide(origin, reads))
        self._tell(made, source, origin, reads, AccessSide(to, reads))

    def _tell(
        self,
        made: ElementAccess,
        element: Element,
        addresses: int | Sum,
        active: bool | Part,
        other: AccessSide | None = None,
    ) -> None:
        array = element.array
        site = self._site(made.access, array, array.itemsize * made.vector)
        executing = from_bools(np.atleast_2d(self.thread.active))
        self.recorder.access(SiteAccess(site, addresses, executing, active, frozenset([array.name]), other))

    # --- lanes and addresses

    def _lanes(self, mask: ArrayLike) -> AccessingThreads:
        shape = len(self.blocks), self.launch.warps * WARP
        active = np.atleast_2d(np.logical_and(self.thread.active, checked_mask(mask, "mask")))
        try:
            np.broadcast_to(active, shape)
        except ValueError:
            raise MemsimError(
                f"a mask has shape {np.shape(mask)}, but there are {shape[0]} blocks of {shape[1]} threads"
            ) from None
        return AccessingThreads(shape, active, self._who)

    def _who(self, row: int, column: int) -> str:
        thread = coordinates(np.int64(column), self.launch.block)
        block = coordinates(self.blocks[row], self.launch.grid)
        return f"thread ({thread.x},{thread.y},{thread.z}) of block ({block.x},{block.y},{block.z})"

    def _addresses(self, element: Element, vector: int, lanes: AccessingThreads) -> NDArray[np.int64]:
        return byte_addresses(element, vector, lanes, self._first_byte(element.array))

    def _first_byte(self, array: SketchArray) -> int:
        """The offset of the array, which is assigned when it is first accessed."""
        if array.name in self.places:
            placed, first = self.places[array.name]
            if placed != array:
                raise MemsimError(
                    f"two arrays are called {array.name}: {placed.layout} of {placed.dtype} in "
                    f"{placed.space} memory, {array.layout} of {array.dtype} in {array.space} memory",
                    hint="give each its own name",
                )
            return first
        behind = -(-self.ends[array.space] // array.align) * array.align
        first = behind if array.offset is None else array.offset
        end = first + array.nbytes
        if array.space == "shared" and end > SM_90.shared_block_bytes:
            raise MemsimError(
                f"{array.name} ends at byte {end:,} of shared memory, "
                f"but a block has at most {SM_90.shared_block_bytes:,}"
            )
        self.places[array.name] = array, first
        self.ends[array.space] = max(self.ends[array.space], end)
        return first

    def _site(self, access: str, array: SketchArray, width: int) -> Site:
        place = caller()
        key = place, access, array.space, width, array.name
        if key not in self.sites:
            name = self.names.setdefault(place.path, shown_path(place.path))
            source = Place(name, place.line, 0)
            statement = Instruction(line_of(place.path, place.line), source)
            self.sites[key] = Site(len(self.sites), statement, access, array.space, width)
        return self.sites[key]

    # --- result

    def trace(self, kernel: str, replayed: int, digest: str) -> Trace:
        """All accesses so far."""
        sites, columns = self.recorder.columns()
        texts = {self.names[place.path]: text_of(place.path) for place, *_ in self.sites}
        placed = sorted(self.places.values(), key=lambda each: (each[0].space != "shared", each[1]))
        return Trace(
            kernel=kernel,
            launch=self.launch,
            blocks_replayed=replayed,
            sites=tuple(sites),
            arrays=tuple((array.name, array.space, first, array.nbytes) for array, first in placed),
            sources={name: text for name, text in texts.items() if text},
            writers=self.recorder.writers.threads,
            origin=Origin(FORM, "", "", digest),
            notes=tuple(self.recorder.notes),
            uncounted=dict(+self.recorder.uncounted_requests),
            layouts={array.name: ArrayLayout(array.layout, array.itemsize) for array, _ in placed},
            apart=self.recorder.is_apart,
            **columns,
        )


def trace_function(
    function: Callable[..., object],
    launch: Launch,
    args: Sequence[object] = (),
    blocks: NDArray[np.int64] | None = None,
    progress: Progress = None,
    names: Mapping[str, str] | None = None,
    recorder: Callable[[], Recorder] = Recorder,
) -> Trace:
    """The accesses that a function makes, for every thread of a launch.

    Args:
        function: takes the `Thread`, and `args`.
        blocks: linear numbers of the blocks to replay; None for all.
        names: display names of source files, by path.
        recorder: creates the recorder of requests.

    Raises:
        MemsimError: the function cannot be called like that, or an exception in it, with the line.
    """
    plain = inspect.unwrap(function.func if isinstance(function, functools.partial) else function)
    name = getattr(plain, "__name__", type(plain).__name__)
    try:
        inspect.signature(function).bind(None, *args)
    except TypeError as error:
        raise MemsimError(
            f"{name} cannot be called with the thread and {len(args)} arguments: {error}",
            hint="its first parameter is the thread; parameters without a default need a value",
        ) from None

    def call(thread: Thread) -> object:
        return function(thread, *args)

    def new_sketch() -> Sketch:
        return Sketch(launch, names or {}, recorder())

    chosen = np.arange(launch.blocks) if blocks is None else blocks
    sketch = _run(call, launch, chosen, new_sketch, progress)
    code = getattr(plain, "__code__", None)
    text = text_of(code.co_filename) if code else ""
    return sketch.trace(name, len(chosen), sha256(text.encode()).hexdigest())


def _run(
    function: Function,
    launch: Launch,
    blocks: NDArray[np.int64],
    new_sketch: Callable[[], Sketch],
    progress: Progress,
) -> Sketch:
    at_once = max(1, CHUNK // (launch.warps * WARP))
    if len(blocks) > at_once:
        # A function that never uses blockIdx makes the same accesses in all blocks.
        sketch = new_sketch()
        sketch.run(function, blocks[:1], stand_for=len(blocks))
        if not sketch.thread.knows_block:
            return sketch
    sketch = new_sketch()
    for start in range(0, len(blocks), at_once):
        sketch.run(function, blocks[start : start + at_once])
        if progress is not None:
            progress(min(1.0, (start + at_once) / len(blocks)))
    return sketch


def _integer(addresses: NDArray[np.int64]) -> int | Sum:
    """Addresses as the recorder takes them: as the sum of a block's and a thread's part if possible."""
    if min(addresses.shape) == 1:
        return from_array(addresses)
    of_block, of_thread = addresses[:, :1] - addresses[0, 0], addresses[:1]
    if np.array_equal(of_block + of_thread, addresses):
        return Sum(0, u=Part(of_block), v=Part(of_thread))
    return from_array(addresses)
