"""Texture fetches: `TEX TXD TLD4`, and `TLD` of linear memory; from their coordinates to the texels that they
touch.

They report the texels that the lanes of a `memsim.argument_types.Texture` touch, and return what
`texel_values.py` says; not known are values of filtered fetches of three dimensions and of cube maps, unless
the texture takes them as they are documented. Levels of detail make no difference, because textures have no
mipmaps here. Source: docs/model.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from memsim.arch.texel_places import FIRST, NEXT, NONE, NOTHING, pack_texels
from memsim.argument_types import Texture
from memsim.errors import MemsimError
from memsim.isa.definitions import BoundForm, executes
from memsim.isa.machine_protocol import MemoryMachine
from memsim.isa.memory_access import Run, consecutive_slots
from memsim.isa.op import Form, Immediate, Operand, Register, Special, Unsupported, operand_of_kind, require
from memsim.isa.program import Op
from memsim.isa.texel_values import FAR, PARTS, fetch_texels, mirrored_texel, on_cube, position
from memsim.state.partial import Value
from memsim.state.parts import Mask
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import both, from_bools
from memsim.state.registers import from_array, to_array

#: By how much of its size the chip's rounding of a normalized coordinate may differ from ours.
ROUNDING = 2.0**-22


@dataclass(frozen=True, slots=True)
class Touched:
    """What lanes touch.

    places: the texels, as `memsim.arch.texel_places` packs them; in linear memory the texel. inside: lanes
    that touch any. doubtful: lanes for which it was not measured which texels the chip takes.
    """

    places: np.ndarray
    inside: np.ndarray
    doubtful: np.ndarray


@dataclass(frozen=True, slots=True)
class _Axis:
    first: np.ndarray
    second: np.ndarray
    inside: np.ndarray
    doubtful: np.ndarray


def texels_of_numbers(texture: Texture, index: np.ndarray) -> Touched:
    """Texels of linear memory by number: none outside."""
    inside = (index >= 0) & (index < texture.size[0])
    return Touched(np.where(inside, index, 0).astype(np.int64), inside, np.zeros((1, 1), np.bool_))


def texels_at_coordinates(
    texture: Texture, coordinates: Sequence[np.ndarray], layer: np.ndarray | int, gathers: bool
) -> Touched:
    """Texels at coordinates, floats along x, y and z. layer: from 0 on; beyond the last one, that one.
    gathers: it takes two texels along x and y, as a filtered fetch may.
    """
    axes = [_axis(texture, at, extent, gathers) for at, extent in zip(coordinates, texture.size)]
    inside = np.logical_and.reduce(np.broadcast_arrays(*(axis.inside for axis in axes)))
    doubtful = np.logical_or.reduce(np.broadcast_arrays(*(axis.doubtful for axis in axes)))
    first: list[np.ndarray | int] = [axis.first for axis in axes]
    second: list[np.ndarray | int] = [axis.second for axis in axes]
    missing = 3 - len(axes)
    first, second = first + [0] * missing, second + [NONE] * missing
    if texture.layered:
        first[2] = np.minimum(layer, texture.layers - 1)
    return Touched(pack_texels(first, second), inside, doubtful)


def _axis(texture: Texture, at: np.ndarray, extent: int, gathers: bool) -> _Axis:
    takes_two = texture.filter == "linear" or gathers
    low, part = position(texture, at, extent, takes_two)
    doubtful = np.isnan(at)
    if texture.normalized and extent & (extent - 1):  # else the product is exact
        scale = extent * (PARTS if takes_two else 1)
        edges = np.clip(at.astype(np.float64), -FAR, FAR) * scale + 0.5 * takes_two
        doubtful = doubtful | (np.abs(edges - np.round(edges)) < ROUNDING * scale * np.maximum(np.abs(at), 1))
    found = _addressed(texture, low, (part != 0) | gathers, extent)
    return _Axis(found.first, found.second, found.inside, found.doubtful | doubtful)


def _addressed(texture: Texture, low: np.ndarray, two: np.ndarray, extent: int) -> _Axis:
    """The texels that stand for `low` and, of lanes that take `two`, for the one after it."""
    high = np.where(two, low + 1, low)
    sure, everywhere = np.zeros((1, 1), np.bool_), np.ones((1, 1), np.bool_)
    if texture.address == "wrap":
        first, last = low % extent, high % extent
        second = np.where(first == last, NONE, np.where(last == first + 1, NEXT, FIRST))
        return _Axis(first, second, everywhere, sure)
    if texture.address == "mirror":
        low, high = (mirrored_texel(one, extent) for one in (low, high))
        low, high = np.minimum(low, high), np.maximum(low, high)
    if texture.address != "border" or not texture.normalized:  # unnormalized, the border's texels are fetched
        low, high = np.clip(low, 0, extent - 1), np.clip(high, 0, extent - 1)
        return _Axis(low, np.where(low == high, NONE, NEXT), everywhere, sure)
    has_low, has_high = ((one >= 0) & (one < extent) for one in (low, high))
    inside = has_low | has_high
    first = np.where(has_low, low, np.where(has_high, high, 0))
    return _Axis(first, np.where(has_low & has_high & (low != high), NEXT, NONE), inside, ~inside)


# --- the instructions ------------------------------------------------------------------------

TOUCHES = (("load", "texture"),)
#: Registers of coordinates by what the fetch says of its texture; of layers, the layer comes first.
COORDINATES = {"1D": 1, "2D": 2, "3D": 3, "ARRAY_1D": 2, "ARRAY_2D": 3, "CUBE": 3, "ARRAY_CUBE": 4}
DOUBT = (
    "a normalized coordinate is between two texels but for the chip's rounding, or outside of a border, or"
    " no number"
)


class Fetch(NamedTuple):
    """What a fetch says of its texture, and the channels that it returns: the first two in the pair of
    registers of the second operand, the others in the first's.
    """

    shape: str
    channels: tuple[int, ...]


def fetch_of(operands: Sequence[Operand | None]) -> Fetch:
    """The last operands of a form are 0, a shape, and a mask of channels, or none for all.

    Raises:
        Unsupported: they are others.
    """
    *_, zero, shape, mask = operands if isinstance(operands[-1], Immediate) else (*operands, Immediate(0xF))
    require(isinstance(zero, Immediate) and operand_of_kind(shape, Special).name in COORDINATES)
    bits = int(operand_of_kind(mask, Immediate).value)
    return Fetch(
        operand_of_kind(shape, Special).name, tuple(channel for channel in range(4) if bits >> channel & 1)
    )


def _signature(form: Form) -> str:
    second = {"TXD": "R4", "TEX": "R"}.get(form.opcode, "")
    try:
        fetch = fetch_of(form.operands)
    except (Unsupported, ValueError, IndexError):
        return f"P?R2R2 <- R4{second}V2ISI?"
    count = len(fetch.channels)
    return f"P?R{max(count - 2, 1)}R{min(count, 2)} <- R{COORDINATES[fetch.shape]}{second}V2ISI?"


@executes("TEX TXD TLD4 TLD", _signature, None, steers=True, touches=TOUCHES)
def build_fetch(form: BoundForm, *_: object) -> Run:
    fetch = fetch_of([operand for operand in form.sources if operand is not None])
    handle = operand_of_kind(form.sources[-4], Register)
    require(form.results[0] is None and handle.slot is not None)
    component = None
    if form.opcode == "TLD":
        require(form.modifiers == ("LZ",) and fetch.shape == "1D")
    elif form.opcode == "TLD4":
        require(len(form.modifiers) == 1 and form.given <= {"R", "G", "B", "A"} and fetch.shape == "2D")
        component = "RGBA".index(form.modifiers[0])
    else:
        require(form.given <= {"LL", "LZ"})
    which = form.binder.pair(handle)
    read = _reader(form, fetch)
    upper, lower = (operand_of_kind(target, Register) for target in form.results[1:])
    slots = [*consecutive_slots(lower, 2), *consecutive_slots(upper, 2)][: len(fetch.channels)]

    def run(machine: MemoryMachine, op: Op, active: Mask, data: bool) -> None:
        try:
            handle = 0 if active is False else which(machine.slots)  # idle lanes need not have one
            texture: Texture = machine.texture(handle, active)
        except Poisoned as unknown:
            machine.uncounted("texture request", active)
            _write(machine, op, slots, [unknown.poison.through(op)] * len(slots), active)
            return
        except MemsimError as error:
            raise machine.at(error, op) from None
        access = access_of_texture(form.opcode, fetch.shape, texture, len(fetch.channels))
        if access is None:
            machine.uncounted("texture request", active)
        if active is False:
            if access is not None:
                machine.fetch(op, access, texture, 0, False)
            return
        try:
            at = read(machine, texture)
        except Poisoned as unknown:
            if access is not None:
                machine.lose_fetch(op, access, texture, unknown.poison, active)
            _write(machine, op, slots, [unknown.poison.through(op)] * len(slots), active)
            return
        doubtful = False
        if access is not None:
            doubtful = _report(machine, op, access, texture, at, component is not None, active)
        if not data:
            return
        if not _fits(form.opcode, fetch.shape, texture):
            values: list[Value] = [
                Poison("a fetch of another kind of texture than its texture object's", op)
            ] * len(slots)
        elif not texture.as_documented and (doubtful or not has_measured_values(texture)):
            values = [Poison("the value of a texture fetch that was not measured", op)] * len(slots)
        else:
            values = _values(op, texture, at, fetch.channels, component)
        _write(machine, op, slots, values, active)

    return run


class _At(NamedTuple):
    """Where lanes fetch. number: of linear memory the texel; else there are coordinates and a layer."""

    number: np.ndarray | None
    coordinates: Sequence[np.ndarray] = ()
    layer: np.ndarray | int = 0


def _reader(form: BoundForm, fetch: Fetch) -> Callable[[MemoryMachine, Texture], _At]:
    """Reads where the lanes fetch."""
    base, binder = operand_of_kind(form.sources[0], Register), form.binder
    operands: list[Operand] = [
        base if base.slot is None else Register(base.slot + i) for i in range(COORDINATES[fetch.shape])
    ]
    if form.opcode == "TLD":
        index = binder.word(operands[0])
        return lambda machine, texture: _At(to_array(index(machine.slots)))
    layered, is_cube = fetch.shape.startswith("ARRAY"), fetch.shape.endswith("CUBE")
    layer = binder.word(operands[0]) if layered else None
    floats = [binder.single(operand) for operand in operands[layered:]]

    def read(machine: MemoryMachine, texture: Texture) -> _At:
        at = [one(machine.slots) for one in floats[: 3 if is_cube else texture.dimensions]]
        which = to_array(layer(machine.slots)) & 0xFFFF if layer is not None else 0
        if is_cube:
            at, face = on_cube(at)
            which = np.minimum(which, texture.layers // 6 - 1) * 6 + face
        return _At(None, at, which)

    return read


def _report(
    machine: MemoryMachine, op: Op, access: str, texture: Texture, at: _At, gathers: bool, active: Mask
) -> bool:
    """Reports the texels that lanes touch; whether it is doubtful which."""
    touched = (
        texels_at_coordinates(texture, at.coordinates, at.layer, gathers)
        if at.number is None
        else texels_of_numbers(texture, at.number)
    )
    places = touched.places * texture.width if access == "fetch" else touched.places
    places = np.where(touched.inside, places, NOTHING)
    doubtful = bool(touched.doubtful.any()) and both(active, from_bools(touched.doubtful)) is not False
    if doubtful:
        machine.lose_fetch(op, access, texture, Poison(DOUBT, op), active)
    else:
        machine.fetch(op, access, texture, from_array(places), active)
    return doubtful


def _fits(opcode: str, shape: str, texture: Texture) -> bool:
    """Whether a fetch is one of this kind of texture.

    A fetch of one dimension is made of one of two, whose second coordinate is 0.
    """
    is_numbered = texture.memory == "linear" and texture.dimensions == 1
    if opcode == "TLD" or is_numbered:
        return opcode == "TLD" and is_numbered
    if shape.endswith("CUBE"):
        return texture.cube and (shape == "ARRAY_CUBE" or texture.layers == 6)
    layered, dimensions = shape.startswith("ARRAY"), int(shape[-2])
    return (texture.layered, texture.dimensions) == (layered, dimensions) or (
        (texture.dimensions, shape) == (1, "2D") and not texture.layered
    )


def access_of_texture(opcode: str, shape: str, texture: Texture, channels: int) -> str | None:
    """What `memsim.model.operations` calls this fetch of so many channels; None if it cannot be one."""
    if not _fits(opcode, shape, texture) or shape in ("ARRAY_1D", "CUBE", "ARRAY_CUBE"):
        return None
    if opcode == "TLD":
        return "fetch"
    linear = texture.memory == "linear"
    if opcode == "TLD4":
        return None if linear else "gather"
    if texture.filter == "point":
        return "point_pitched" if linear else "point"
    if texture.dimensions == 3:
        return "filtered_3d" if texture.width <= 4 else "filtered_other"
    if texture.width == 16:
        known_ones = {4: "filtered_wide_pitched"} if linear else {4: "filtered_wide", 1: "filtered_wide_one"}
        return known_ones.get(channels, "filtered_other")
    return "filtered_pitched" if linear else "filtered"


def has_measured_values(texture: Texture) -> bool:
    """Whether it was measured what its fetches return, of lanes inside or with a known border."""
    return not texture.cube and (texture.filter == "point" or texture.dimensions < 3)


def _values(op: Op, texture: Texture, at: _At, channels: Sequence[int], component: int | None) -> list[Value]:
    """What the registers get: of lanes outside of linear memory zeros, and on an unknown border nothing."""
    if at.number is not None:
        touched = texels_of_numbers(texture, at.number)
        found = np.where(
            touched.inside[..., None], texture.texels[touched.places], texture.texels.dtype.type(0)
        )
        known = np.ones((1, 1), np.bool_)
    else:
        found, known = fetch_texels(texture, at.coordinates, at.layer, component)
    return [_channel(op, texture, found, known, channel) for channel in channels]


def _channel(op: Op, texture: Texture, found: np.ndarray, known: np.ndarray, channel: int) -> Value:
    """A channel of texels [..., channels]."""
    if not known.all():
        return Poison("a texel on the border, whose value is not given", op)
    if channel >= found.shape[-1]:
        if not texture.as_documented:
            return Poison("a channel that the texture has not", op)
        return 0
    values = found[..., channel]
    return values if values.dtype == np.float32 else from_array(values.astype(np.int64))


def _write(
    machine: MemoryMachine, op: Op, slots: list[int | None], values: list[Value], active: Mask
) -> None:
    for slot, value in zip(slots, values):
        if slot is not None:
            machine.write(slot, value, active)
