"""What texture fetches return.

The rules of filtered fetches are those of an H200 (`traces/nvidia-h200/textures.npz`): the place between two
texels is rounded to 1/256 of a texel, and so are the weights of the four texels of two dimensions, such that
those along each axis add up to the place's; integers that are read as floats are filtered as 16-bit ones;
halves are rounded up. How the eight weights of three dimensions are rounded is not known. Cube maps: CUDA C++
Programming Guide, "Cubemap Textures"; gathers: PTX ISA, `tld4`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from memsim.argument_types import Texture

#: A filtered fetch rounds its coordinates to so many parts of a texel.
PARTS = 256
#: Farther outside than any texture is large; floats as large count whole texels.
FAR = 2.0**40
#: Along x and y, the texels that a gather returns, in order.
GATHERED = ((0, 1), (1, 1), (1, 0), (0, 0))
#: Of each face of a cube: the axis that it lies across, and its own two axes with their signs.
FACES = (
    (0, 2, -1, 1, -1),
    (0, 2, 1, 1, -1),
    (1, 0, 1, 2, 1),
    (1, 0, 1, 2, -1),
    (2, 0, 1, 1, -1),
    (2, 0, -1, 1, -1),
)


def position(texture: Texture, at: np.ndarray, extent: int, takes_two: bool) -> tuple[np.ndarray, np.ndarray]:
    """The texel below coordinates along an axis, and how far beyond its middle they are in parts of a texel,
    0 for a fetch of one texel: int64. takes_two: it is filtered, or a gather.
    """
    texel = np.nan_to_num(np.clip(at.astype(np.float64) * (extent if texture.normalized else 1), -FAR, FAR))
    if not takes_two:
        low = np.floor(texel).astype(np.int64)
        return low, np.zeros_like(low)
    number = np.floor((texel - 0.5) * PARTS + 0.5).astype(np.int64)
    return number // PARTS, number % PARTS


def mirrored_texel(texel: np.ndarray, extent: int) -> np.ndarray:
    """The texel that stands for one with `mirror`."""
    turned = texel % (2 * extent)
    return np.where(turned < extent, turned, 2 * extent - 1 - turned)


def on_cube(at: Sequence[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    """Of directions x, y and z the coordinates on a face of the cube, from 0 to 1, and the face."""
    across = np.stack(np.broadcast_arrays(*at)).astype(np.float64)
    size = np.abs(across)
    axis = np.where((size[0] >= size[1]) & (size[0] >= size[2]), 0, np.where(size[1] >= size[2], 1, 2))
    largest = np.take_along_axis(across, axis[None], 0)[0]
    face = 2 * axis + (largest < 0)
    faces = np.array(FACES)[face]
    with np.errstate(all="ignore"):
        own = [
            (
                np.take_along_axis(across, faces[..., 1 + 2 * i][None], 0)[0]
                * faces[..., 2 + 2 * i]
                / np.abs(largest)
                + 1
            )
            / 2
            for i in range(2)
        ]
    return own, face


def fetch_texels(
    texture: Texture, coordinates: Sequence[np.ndarray], layer: np.ndarray | int, component: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """The channels of texels at coordinates along x, y and z, float32 or int32 [..., channels], and whether
    each lane's are known, as they are unless the border is not. component: that of a gather.
    """
    takes_two = texture.filter == "linear" or component is not None
    axes = [position(texture, at, extent, takes_two) for at, extent in zip(coordinates, texture.size)]
    which = np.minimum(layer, texture.layers - 1) if texture.layered else 0
    low = [low for low, _ in axes]
    if component is not None:
        found = [_texel(texture, [low[0] + x, low[1] + y], which) for x, y in GATHERED]
        return np.stack([texels[..., component] for texels, _ in found], -1), np.logical_and.reduce(
            [ok for _, ok in found]
        )
    if not takes_two:
        return _texel(texture, low, which)
    total, known = np.float64(0), np.True_
    for corner, weight in _weights([part for _, part in axes]):
        texels, inside = _texel(texture, [one + (corner >> axis & 1) for axis, one in enumerate(low)], which)
        total = total + weight[..., None] * _filtered_as(texture, texels)
        known = known & (inside | (weight == 0))
    return _rounded(texture, total), np.broadcast_to(known, total.shape[:-1])


def _texel(
    texture: Texture, at: Sequence[np.ndarray], layer: np.ndarray | int
) -> tuple[np.ndarray, np.ndarray]:
    """The channels of one texel for each lane, and whether they are known."""
    inside: np.ndarray = np.ones((1, 1), np.bool_)
    number: np.ndarray = np.asarray(layer, np.int64)
    for place, extent in reversed(list(zip(at, texture.size))):
        if texture.address == "wrap":
            place = place % extent
        elif texture.address == "mirror":
            place = mirrored_texel(place, extent)
        elif texture.address == "border":
            inside = inside & (place >= 0) & (place < extent)
        number = number * extent + np.clip(place, 0, extent - 1)
    texels = texture.texels[number]
    if texture.address == "border":
        border = np.array((*texture.border, 0.0, 0.0, 0.0, 0.0)[: texture.channels]).astype(texels.dtype)
        texels = np.where(inside[..., None], texels, border)
        return texels, np.broadcast_to(inside | bool(texture.border), texels.shape[:-1])
    return texels, np.ones(texels.shape[:-1], np.bool_)


def _weights(parts: Sequence[np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
    """For each corner its weight, in parts: bit i says that it is the second one along axis i."""

    def product(*axes: int) -> np.ndarray:
        found = parts[axes[0]]
        for axis in axes[1:]:
            found = (found * parts[axis] + PARTS // 2) // PARTS
        return found

    corners = range(1 << len(parts))
    of = {corner: [axis for axis in range(len(parts)) if corner >> axis & 1] for corner in corners}
    for corner in corners:  # what is in all of its axes, less what is in more: inclusion and exclusion
        weight = np.zeros((), np.int64)
        for more in corners:
            if more & corner == corner:
                share = product(*of[more]) if more else PARTS
                weight = weight + (-1) ** (len(of[more]) - len(of[corner])) * share
        yield corner, weight


def _steps(texture: Texture) -> float:
    """Integers that are read as floats are filtered as so many steps from 0 to 1."""
    return 65535.0 if texture.element.kind == "u" else 32767.0


def _filtered_as(texture: Texture, texels: np.ndarray) -> np.ndarray:
    wide = texels.astype(np.float64)
    return wide if texture.element.kind == "f" else np.round(wide * _steps(texture))


def _rounded(texture: Texture, total: np.ndarray) -> np.ndarray:
    """The sum of weighted texels as a register gets it."""
    if texture.element.kind != "f":
        return (np.floor(total / PARTS + 0.5) / _steps(texture)).astype(np.float32)
    up = np.nextafter(total / PARTS, np.copysign(np.inf, total))  # a half is rounded up
    rounded: np.ndarray = up.astype(texture.element).astype(np.float32)
    return rounded
