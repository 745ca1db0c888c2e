"""The memory of a launch: the placement of arguments and all other buffers, and their contents.

Contents are created on first access. A gap between global buffers makes overruns visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random

import numpy as np

from memsim.argument_types import ArrayTable, Texture
from memsim.argument_types.argument import Held, owner
from memsim.argument_types.array_arg import as_numpy
from memsim.launch import GLOBAL_ALIGN
from memsim.state.address_spaces import GLOBAL_BASE, SHARED_BASE, TEXTURE_HANDLES, SpaceLayout, align
from memsim.state.poison import Poison, Poisoned
from memsim.state.space_bytes import SpaceBytes
from memsim.state.tensors import Tensor

#: By fewer times their alignment arrays are moved: 16 MiB.
MOST_MOVED = 1 << 16

#: The first byte of an array in the caller's memory, and one past the last.
Span = tuple[int, int]


def _span(array: object) -> Span | None:
    """The memory span of a numpy array; None for one that is only described, or empty."""
    if not isinstance(array, np.ndarray) or not array.nbytes:
        return None
    low, high = np.lib.array_utils.byte_bounds(array)
    first, last = np.lib.array_utils.byte_bounds(owner(array))
    return min(low, first), max(high, last)


def _merge_spans(spans: Sequence[Span]) -> list[Span]:
    """The spans, with overlapping ones merged."""
    regions: list[Span] = []
    for start, end in sorted(spans):
        if regions and start < regions[-1][1]:
            regions[-1] = regions[-1][0], max(end, regions[-1][1])
        else:
            regions.append((start, end))
    return regions


def _called(names: Iterable[str]) -> str:
    """What an allocation is called that lies behind several pointers."""
    first, *others = dict.fromkeys(names)
    return ", ".join((first, *others)) if len(others) < 3 else f"{first} and {len(others)} others"


def _region(regions: Sequence[Span], span: Span) -> Span:
    """The region that contains a span."""
    return next(one for one in regions if one[0] <= span[0] < one[1])


def _first(array: np.ndarray) -> int:
    """The address of an array's first element in the caller's memory."""
    return int(array.__array_interface__["data"][0])


class Memory:
    """All state spaces of one launch.

    `buffers` are (name, array) for the arguments, as `memsim.argument_types.launch_arguments.arrays_of` lists
    them; arrays are only copied in when data is needed. `shared_base`: the address of the first shared byte.
    `moved`: a seed for the gaps between them; 0: there are none.
    """

    def __init__(
        self,
        buffers: Sequence[tuple[str, Held]],
        shared_base: int = SHARED_BASE,
        moved: int = 0,
    ) -> None:
        self._gaps = Random(moved) if moved else None
        self.layouts = {
            "global": SpaceLayout("global", GLOBAL_BASE),
            "shared": SpaceLayout("shared", shared_base),
            "local": SpaceLayout("local"),
        }
        self.symbols: dict[str, tuple[str, int]] = {}
        #: Constant banks that hold something else than the code has for them.
        self.constants: Mapping[int, bytes] = {}
        self._arguments: list[tuple[int, Held]] = []
        self.textures: dict[int, Texture] = {}
        #: Names of the parameters that they were passed for, by `id`.
        self.texture_names: dict[int, str] = {}
        #: Tensors by the address of their map, or why one is unknown.
        self.tensors: dict[int, Tensor | Poison] = {}
        #: Initial contents of global memory besides arguments: (address, bytes).
        self.contents: list[tuple[int, bytes]] = []
        self.static_shared = 0
        self.dynamic_shared: int | None = None
        #: Bytes at the start of shared memory that the system has written: zeros.
        self.system_shared = 0
        self._place(buffers)
        self._global: SpaceBytes | None = None
        self.shared: SpaceBytes | None = None
        self.local: SpaceBytes | None = None
        self.shape = (1, 32)
        #: Why spaces are unknown whose bytes have not been created yet.
        self._spoiled: dict[str, Poison] = {}
        #: Why shared and local memory that was never written is unknown; zero if not specified.
        self.uninitialised: Mapping[str, Poison] = {}
        #: What a register holds that was never written; None: it is unknown.
        self.unwritten_register: int | None = None
        #: Makes the bytes of shared memory.
        self.shared_as: Callable[[np.ndarray, int, tuple[int, int], str], SpaceBytes] = SpaceBytes

    def _place(self, buffers: Sequence[tuple[str, Held]]) -> None:
        """Each allocation separately; views of one, and arrays that share memory, overlap as in the caller's
        memory.
        """
        spans = [_span(array) for _, array in buffers]
        regions = _merge_spans([span for span in spans if span is not None])
        starts: dict[Span, int] = {}
        names: dict[Span, dict[int, str]] = {}

        def reserve(name: str, size: int) -> int:
            layout = self.layouts["global"]
            if self._gaps is not None:
                layout.end += GLOBAL_ALIGN * self._gaps.randrange(1, MOST_MOVED)
            return layout.place(name, size, GLOBAL_ALIGN, GLOBAL_ALIGN)

        for (name, array), span in zip(buffers, spans):
            if span is not None:
                names.setdefault(_region(regions, span), {}).setdefault(_first(array), name)
        for (name, array), span in zip(buffers, spans):
            if span is None:
                is_empty = isinstance(array, np.ndarray)
                start = reserve(name, 0 if is_empty else array.extent)
                self._arguments.append((start + (0 if is_empty else array.start), array))
                continue
            region = _region(regions, span)
            if region not in starts:
                starts[region] = reserve(_called(names[region].values()), region[1] - region[0])
            self._arguments.append((starts[region] + _first(array) - region[0], array))
        self._fill_tables()

    def _fill_tables(self) -> None:
        """The contents of tables: a table's arrays are the arguments right after it."""
        for number, (address, table) in enumerate(self._arguments):
            if isinstance(table, ArrayTable):
                following = iter(self._arguments[number + 1 :])
                addresses = [0 if array is None else next(following)[0] for array in table.arrays]
                if any(content := table.content(addresses, encode_map=None)):
                    self.contents.append((address, content))

    @property
    def shared_bytes(self) -> int:
        """Shared memory per block that the kernel uses, in bytes."""
        return self.layouts["shared"].end - self.layouts["shared"].base

    @property
    def shared_size(self) -> int:
        """The bytes that stand for a block's shared memory."""
        return align(self.shared_bytes + 16, 16)

    @property
    def argument_addresses(self) -> list[int]:
        """The address of each argument array, in order."""
        return [address for address, _ in self._arguments]

    @property
    def is_unused(self) -> bool:
        """Whether the bytes of no space were created."""
        return self._global is None and self.shared is None and self.local is None

    @property
    def is_as_given(self) -> bool:
        """Whether global memory is certainly what the launch began with."""
        return self._global is None and "global" not in self._spoiled

    def bind(self, texture: Texture, name: str) -> int:
        """The handle of a texture object, passed for a parameter of this name."""
        handle = TEXTURE_HANDLES + len(self.textures)
        self.textures[handle] = texture
        self.texture_names[id(texture)] = name
        return handle

    def start_chunk(self, blocks: int, threads: int) -> None:
        """New blocks start; their shared and local memory is created on first use."""
        self.shared = self.local = None
        self._spoiled = {name: poison for name, poison in self._spoiled.items() if name == "global"}
        self.go_on(blocks, threads)

    def go_on(self, blocks: int, threads: int) -> None:
        """So many blocks run now, which have no memory of their own."""
        self.shape = (blocks, threads)
        if self._global is not None:
            self._global.shape = self.shape

    @property
    def made(self) -> list[SpaceBytes]:
        """The state spaces whose bytes have been created."""
        return [one for one in (self._global, self.shared, self.local) if one is not None]

    def space(self, name: str) -> SpaceBytes:
        """The bytes of a state space, created on first use."""
        blocks, threads = self.shape
        if name == "shared":
            if self.shared is None:
                data = np.zeros((blocks, self.shared_size), np.uint8)
                base = self.layouts["shared"].base
                self.shared = self._fresh("shared", self.shared_as(data, base, self.shape, "block"))
            return self.shared
        if name == "local":
            if self.local is None:
                size = align(max(self.layouts["local"].end, 16), 16)
                data = np.zeros((blocks * threads, size), np.uint8)
                self.local = self._fresh("local", SpaceBytes(data, 0, self.shape, "thread"))
            return self.local
        if self._global is None:
            size = align(self.layouts["global"].end - GLOBAL_BASE + GLOBAL_ALIGN, 16)
            self._global = SpaceBytes(self.global_bytes(size), GLOBAL_BASE, self.shape, "one")
            self._global.poison = self._spoiled.pop("global", None)
            for address, array in self._arguments:
                if not isinstance(array, ArrayTable):
                    whole = as_numpy(array)
                    self._copy_in(address, owner(whole), whole)
            for address, content in self.contents:
                start = address - GLOBAL_BASE
                self._global.data[0, start : start + len(content)] = np.frombuffer(content, np.uint8)
        return self._global

    def global_bytes(self, size: int) -> np.ndarray:
        """The bytes of global memory before anything is written to them, uint8 [1, size]."""
        return np.zeros((1, size), np.uint8)

    def call(self, name: str, machine: object, op: object, active: object) -> np.ndarray | None:
        """What a function of the driver returns that lanes call, int64 [B, T]; None: not known."""
        return None

    def clock(self, name: str) -> int | None:
        """The value of a special register that is a clock; None: it is none, or not known."""
        return None

    def for_trial(self) -> Memory | None:
        """Memory of the same contents that nobody sees; None: made of the arguments."""
        return None

    def spoil(self, name: str, poison: Poison) -> None:
        """All of a state space becomes unknown; its bytes need not be created for that."""
        made = {"global": self._global, "shared": self.shared, "local": self.local}.get(name)
        if made is not None:
            made.poison = poison
        else:
            self._spoiled[name] = poison

    def _copy_in(self, address: int, whole: np.ndarray, array: np.ndarray) -> None:
        """Copy the allocation `whole` such that the first element of `array` is at `address`."""
        self._elements(address - (_first(array) - _first(whole)), whole)[...] = whole
        if not np.may_share_memory(whole, array):
            self._elements(address, array)[...] = array

    def _elements(self, address: int, like: np.ndarray) -> np.ndarray:
        """Global memory from an address on, as elements with the layout of an array."""
        assert self._global is not None
        memory, start = self._global.data, address - GLOBAL_BASE
        elements: np.ndarray = np.ndarray(like.shape, like.dtype, memory, start, like.strides)
        return elements

    def _fresh(self, space: str, store: SpaceBytes) -> SpaceBytes:
        """A space that has not been written."""
        store.poison = self._spoiled.pop(space, None)
        if space in self.uninitialised:
            store.never_written(self.uninitialised[space], self.layouts[space].end - store.base)
            if space == "shared" and store.unknown is not None:
                store.unknown[:, : self.system_shared] = 0
        return store

    def copy_back(self) -> None:
        """Write argument arrays back in place.

        Raises:
            Poisoned: the kernel wrote something unknown.
        """
        if "global" in self._spoiled:
            raise Poisoned(self._spoiled["global"])
        if self._global is None:
            return
        if self._global.poison:
            raise Poisoned(self._global.poison)
        if self._global.unknown is not None and self._global.unknown.any():
            raise Poisoned(self._global.reasons[int(self._global.unknown.max()) - 1])
        for address, array in self._arguments:
            if isinstance(array, np.ndarray) and array.flags.writeable:
                array[...] = self._elements(address, array)
