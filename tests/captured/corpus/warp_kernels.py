"""Kernels of Warp that the corpus has compiled, and their launches."""

from __future__ import annotations

import numpy as np
import warp as wp

wp.set_module_options({"enable_backward": False})


@wp.struct
class Scaling:
    values: wp.array(dtype=float)
    factor: float
    count: int


@wp.kernel
def scale(s: Scaling, out: wp.array(dtype=float)):
    i = wp.tid()
    if i < s.count:
        out[i] = s.values[i] * s.factor


@wp.kernel
def lengths(points: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)):
    i = wp.tid()
    p = points[i]
    out[i] = p[0] + p[1] + p[2]


@wp.kernel
def transpose(a: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
    i, j = wp.tid()
    tile = wp.tile_load(a, shape=(16, 16), offset=(i * 16, j * 16), storage="shared")
    wp.tile_store(out, wp.tile_transpose(tile), offset=(j * 16, i * 16))


def launch_all() -> dict[str, np.ndarray]:
    """Makes each launch once, and says what arrays hold then, by the kernel's name."""
    values = wp.array(np.arange(1025, dtype=np.float32))
    scaled, sums = wp.zeros(1024, dtype=float), wp.zeros(1024, dtype=float)
    matrix = wp.array(np.arange(4096, dtype=np.float32).reshape(64, 64))
    turned = wp.zeros_like(matrix)
    said = Scaling()
    said.values, said.factor, said.count = values[1:], 2.0, 1024
    points = wp.array(np.arange(3072, dtype=np.float32).reshape(1024, 3), dtype=wp.vec3)
    wp.launch(scale, dim=1024, inputs=[said], outputs=[scaled])
    wp.launch(lengths, dim=1024, inputs=[points], outputs=[sums], block_dim=128)
    wp.launch_tiled(transpose, dim=[4, 4], inputs=[matrix], outputs=[turned], block_dim=64)
    return {"scale": scaled.numpy(), "lengths": sums.numpy(), "transpose": turned.numpy()}
