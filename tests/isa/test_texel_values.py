"""Texels that no recording has: of borders, and of cubes by the table of the CUDA C++ Programming Guide."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from memsim.argument_types import ArrayArg, Texture
from memsim.isa.texel_values import fetch_texels, on_cube

#: By face: the axis on which it lies, the sign there, and what s and t are, by sign and axis.
CUBE = (
    ("x", 1, "-z", "-y"),
    ("x", -1, "+z", "-y"),
    ("y", 1, "+x", "+z"),
    ("y", -1, "+x", "-z"),
    ("z", 1, "+x", "-y"),
    ("z", -1, "-x", "-y"),
)


def test_a_direction_meets_a_face_of_the_cube() -> None:
    """Where two are the largest, on an edge, the first of them decides."""
    directions = np.random.default_rng(5).integers(-4, 5, (3, 400)).astype(np.float64)
    directions = directions[:, directions.any(axis=0)]
    own, face = on_cube(list(directions))
    for number, three in enumerate(directions.T.tolist()):
        along = {**dict(zip(("+x", "+y", "+z"), three)), **dict(zip(("-x", "-y", "-z"), (-a for a in three)))}
        axis, sign, *names = CUBE[face[number]]
        assert axis == max("xyz", key=lambda name: abs(along[f"+{name}"]))
        largest = along[f"+{axis}"] * sign
        assert largest > 0
        assert [float(one[number]) for one in own] == [(along[name] / largest + 1) / 2 for name in names]


@pytest.mark.parametrize(
    ("x", "known"), [(0.5, True), (3.5, True), (0.25, False), (7.5, True), (7.75, False)]
)
def test_an_unknown_border_is_no_matter_where_it_has_no_weight(x: float, known: bool) -> None:
    texture = Texture(ArrayArg((8,)), 1, memory="array", filter="linear", address="border")
    _, found = fetch_texels(texture, [np.full((1, 1), x, np.float32)], 0, None)
    assert found.tolist() == [[known]]


def texel(address: str, texels: Any, border: tuple[float, ...], at: list[int]) -> list[float | None]:
    """One texel of the innermost axis first; None: not known."""
    places = []
    for place, extent in zip(at, texels.shape[-2::-1]):
        if address == "border" and not 0 <= place < extent:
            return [*(border or [None] * 4)][: texels.shape[-1]]
        if address == "wrap":
            place %= extent
        elif address == "mirror":
            place %= 2 * extent
            place = min(place, 2 * extent - 1 - place)
        places.append(min(max(place, 0), extent - 1))
    return [float(channel) for channel in texels[tuple(places[::-1])]]


@pytest.mark.parametrize("border", [(), (7.0, 8.0, 0.5, 1.0)])
@pytest.mark.parametrize("address", ["clamp", "wrap", "mirror", "border"])
@pytest.mark.parametrize("shape", [(6, 2), (3, 5, 2), (2, 3, 4, 2)])
@pytest.mark.parametrize("component", [None, 0, 1])
def test_texels_one_by_one(
    shape: tuple[int, ...], address: str, border: tuple[float, ...], component: int | None
) -> None:
    """Of a fetch the texel in which the place is; of a gather the four around it, in the order of `tld4`."""
    if (component is not None and len(shape) != 3) or (border and address != "border"):
        return
    chance = np.random.default_rng(len(shape))
    array = chance.normal(size=shape).astype(np.float32)
    dimensions = len(shape) - 1
    normalized = address in ("wrap", "mirror")
    texture = Texture(
        array, dimensions, memory="array", address=address, border=border, normalized=normalized
    )
    at = [chance.uniform(-2 * extent, 3 * extent, (1, 64)).astype(np.float32) for extent in shape[-2::-1]]
    asked = [one / np.float32(extent) for one, extent in zip(at, shape[-2::-1])] if normalized else at
    found, known = fetch_texels(texture, asked, 0, component)
    for lane in range(64):
        own = [
            float(one[0, lane]) * (extent if normalized else 1) for one, extent in zip(asked, shape[-2::-1])
        ]
        if component is None:
            wanted = texel(address, array, border, [math.floor(one) for one in own])
        else:
            x, y = (math.floor((math.floor((one - 0.5) * 256 + 0.5)) / 256) for one in own)
            four = ((x, y + 1), (x + 1, y + 1), (x + 1, y), (x, y))  # PTX ISA, `tld4`
            wanted = [texel(address, array, border, [*one])[component] for one in four]
        assert bool(known[0, lane]) == (None not in wanted)
        if known[0, lane]:
            assert found[0, lane].tolist() == wanted
