"""What registers get of texture fetches, and what is told of them, in a warp with one texture."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from memsim.argument_types import ArrayArg, Texture, Texture1D
from memsim.isa.texture import access_of_texture
from memsim.state.poison import Poison
from memsim.state.predicates import to_bools
from memsim.state.registers import from_array, ints, to_array
from tests.isa.test_memory import LANES, ODD, Machine

CHANCE = np.random.default_rng(12)
TEXELS = CHANCE.normal(size=(2, 3, 4, 4)).astype(np.float32)  # layers or depth, height, width, channels
WHY = Poison("never written", None)


class Fetching(Machine):
    """A warp with this texture under every handle. told: what it fetches, or loses."""

    def __init__(self, texture: Any) -> None:
        super().__init__()
        self.bound = texture
        self.told: list[tuple[str, Any]] = []

    def texture(self, handle: Any, active: Any) -> Any:
        return self.bound

    def fetch(self, op: Any, access: str, texture: Any, places: Any, active: Any) -> None:
        self.told.append((access, active))

    def lose_fetch(self, op: Any, access: str, texture: Any, poison: Poison, active: Any) -> None:
        self.told.append((f"lost {access}", active))

    def fetched(self, text: str, at: list[np.ndarray], active: Any = True) -> list[Any]:
        """R8 and on, of coordinates in R4 and on: float32, or int64."""
        registers = {
            f"R{4 + i}": one[None] if one.dtype == np.float32 else from_array(one[None])
            for i, one in enumerate(at)
        }
        self.run(text, active, **registers, R9=0, R20=0, R21=0)
        return [self.slots[slot] for slot in (8, 9, 10, 11)]


def floats(register: Any) -> list[float]:
    words = to_array(ints(register)).astype(np.int32).view(np.float32)
    return np.broadcast_to(words, (1, LANES))[0].tolist()


def places(*extents: int) -> list[np.ndarray]:
    return [CHANCE.uniform(-1, extent + 1, LANES).astype(np.float32) for extent in extents]


def clamped(at: float, extent: int) -> int:
    return min(max(math.floor(at), 0), extent - 1)


@pytest.mark.parametrize("shape", ["2D", "3D", "ARRAY_2D"])
@pytest.mark.parametrize("mask", [0xF, 0x1, 0x3, 0x6, 0x8, 0xB])
def test_channels_of_texels(shape: str, mask: int) -> None:
    """Those of the mask, the first two in one pair of registers, and the others in another."""
    layered = shape == "ARRAY_2D"
    array = TEXELS[1] if shape == "2D" else TEXELS
    machine = Fetching(Texture(array, 3 if shape == "3D" else 2, layered=layered))
    at = places(4, 3) if shape != "3D" else places(4, 3, 2)
    layer = CHANCE.integers(0, 4, LANES)
    operands = [layer, *at] if layered else at
    found = machine.fetched(f"TEX.LL R10, R8, R4, R14, R20, 0x0, {shape}, {mask:#x}", operands)
    channels = [channel for channel in range(4) if mask >> channel & 1]
    own = [found[i] for i in range(len(channels))]
    for lane in range(LANES):
        x, y = clamped(at[0][lane], 4), clamped(at[1][lane], 3)
        texel = TEXELS[1, y, x]
        if layered:
            texel = TEXELS[min(int(layer[lane]), 1), y, x]
        if shape == "3D":
            texel = TEXELS[clamped(at[2][lane], 2), y, x]
        assert [floats(one)[lane] for one in own] == [float(texel[channel]) for channel in channels]
    assert machine.told == [("point", True)]
    assert all(one is None or int(to_array(ints(one))[0, 0]) == 0 for one in found[len(channels) :])


def test_a_fetch_of_idle_lanes_and_of_some() -> None:
    machine = Fetching(Texture(TEXELS[1]))
    assert machine.fetched("TEX.LL R10, R8, R4, R14, R20, 0x0, 2D", places(4, 3), False) == [
        None,
        0,
        None,
        None,
    ]
    assert machine.told == [("point", False)]
    machine = Fetching(Texture(TEXELS[1]))
    at = places(4, 3)
    found = floats(machine.fetched("TEX.LL R10, R8, R4, R14, R20, 0x0, 2D", at, ODD)[0])
    assert found[1] == float(TEXELS[1, clamped(at[1][1], 3), clamped(at[0][1], 4), 0])
    assert (to_bools(machine.told[0][1]) == to_bools(ODD)).all()


@pytest.mark.parametrize(
    ("texture", "shape", "reason"),
    [
        (Texture(TEXELS[1]), "3D", "of another kind of texture"),
        (Texture(TEXELS[1]), "ARRAY_2D", "of another kind of texture"),
        (Texture(TEXELS, layered=True), "2D", "of another kind of texture"),
        (Texture1D(TEXELS[1, 0]), "2D", "of another kind of texture"),
        (Texture(TEXELS, 3, filter="linear"), "3D", "that was not measured"),
        (Texture(TEXELS[1], address="border"), "2D", "on the border"),
        (Texture(TEXELS[1, :, :, :1]), "2D", "a channel that the texture has not"),
    ],
)
def test_values_of_fetches_that_nobody_knows(texture: Any, shape: str, reason: str) -> None:
    machine = Fetching(texture)
    at = [np.full(LANES, 0 if i == 0 and shape.startswith("ARRAY") else -2.0, np.float32) for i in range(3)]
    found = machine.fetched(f"TEX.LL R10, R8, R4, R14, R20, 0x0, {shape}", at)
    assert isinstance(found[3], Poison) and reason in found[3].reason
    assert isinstance(found[0], Poison) != ("channel" in reason)
    assert bool(machine.told) != ("another kind" in reason)
    assert ("texture request" in [one[0] for one in machine.touched]) == ("another kind" in reason)


@pytest.mark.parametrize("register", ["R4", "R5"])
def test_a_fetch_at_unknown_coordinates(register: str) -> None:
    machine = Fetching(Texture(TEXELS[1]))
    machine.run("TEX.LL R10, R8, R4, R14, R20, 0x0, 2D", R20=0, R21=0, **{"R4": 0, "R5": 0, register: WHY})
    assert machine.told == [("lost point", True)]
    assert all("never written" in machine.slots[slot].story() for slot in (8, 9, 10, 11))


@pytest.mark.parametrize(("cubes", "shape"), [(1, "CUBE"), (2, "ARRAY_CUBE")])
def test_a_fetch_from_a_cube_is_not_counted_and_its_value_not_known(cubes: int, shape: str) -> None:
    faces = np.arange(6 * cubes * 4, dtype=np.float32).reshape(6 * cubes, 2, 2)
    machine = Fetching(Texture(faces, layered=True, cube=True, normalized=True))
    operands = [np.zeros(LANES, np.int64)] * (cubes > 1) + places(1, 1, 1)
    found = machine.fetched(f"TEX.LL R10, R8, R4, R14, R20, 0x0, {shape}, 0x1", operands)
    assert isinstance(found[0], Poison) and "not measured" in found[0].reason
    assert machine.told == [] and machine.touched[-1][0] == "texture request"


def described(dimensions: int, channels: int, **how: Any) -> Texture:
    """Of float32, with 8 texels along each axis."""
    axes = dimensions + how.get("layered", False)
    return Texture(ArrayArg((*[8] * axes, channels)), dimensions, **how)


@pytest.mark.parametrize(
    ("opcode", "shape", "texture", "channels", "access"),
    [
        ("TEX", "2D", described(2, 4), 4, "point"),
        ("TEX", "2D", described(2, 4, memory="linear"), 4, "point_pitched"),
        ("TEX", "2D", described(1, 4), 4, "point"),
        ("TEX", "1D", described(1, 4), 4, "point"),
        ("TEX", "1D", described(2, 4), 4, None),
        ("TLD4", "2D", described(2, 4), 4, "gather"),
        ("TLD4", "2D", described(2, 4, memory="linear"), 4, None),
        ("TEX", "3D", described(3, 1, filter="linear"), 1, "filtered_3d"),
        ("TEX", "3D", described(3, 2, filter="linear"), 2, "filtered_other"),
        ("TEX", "2D", described(2, 2, filter="linear"), 2, "filtered"),
        ("TEX", "2D", described(2, 2, filter="linear", memory="linear"), 2, "filtered_pitched"),
        ("TEX", "2D", described(2, 4, filter="linear"), 4, "filtered_wide"),
        ("TEX", "2D", described(2, 4, filter="linear"), 1, "filtered_wide_one"),
        ("TEX", "2D", described(2, 4, filter="linear"), 2, "filtered_other"),
        (
            "TEX",
            "2D",
            described(2, 4, filter="linear", memory="linear"),
            4,
            "filtered_wide_pitched",
        ),
        ("TEX", "2D", described(2, 4, filter="linear", memory="linear"), 1, "filtered_other"),
        ("TEX", "ARRAY_2D", described(2, 4, layered=True), 4, "point"),
        ("TEX", "ARRAY_1D", described(1, 4, layered=True), 4, None),
        ("TLD", "1D", Texture1D(ArrayArg((8, 4))), 4, "fetch"),
        ("TEX", "1D", Texture1D(ArrayArg((8, 4))), 4, None),
        ("TLD", "1D", described(1, 4), 4, None),
    ],
)
def test_what_a_fetch_is_called(
    opcode: str, shape: str, texture: Any, channels: int, access: str | None
) -> None:
    assert access_of_texture(opcode, shape, texture, channels) == access
