"""Texels that no recording has: of borders, and of cubes by the table of the CUDA C++ Programming Guide."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.argument_types import ArrayArg, Texture
from memsim.isa.texel_values import fetched, on_cube

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
    _, found = fetched(texture, [np.full((1, 1), x, np.float32)], 0, None)
    assert found.tolist() == [[known]]
