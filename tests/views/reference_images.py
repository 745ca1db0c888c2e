"""The reference images: what they show, and `python -m tests.views.reference_images` to make them anew.

They are small and in few colours. Another release of matplotlib draws letters a little differently, so blocks
of pixels are compared, in which letters are a grey.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from tests.views.cases import kernel

FOLDER = Path(__file__).with_name("images")
DPI = 40
COLOURS = 32
BLOCK = 16

IMAGES: dict[str, Callable[[], Figure]] = {
    "heatmap": lambda: kernel("kernel_v4_colmajor").plot.heatmap(),
    "lanes": lambda: kernel("kernel_v4_colmajor").plot.lanes(2),
    "sectors": lambda: kernel("kernel_v1").plot.lanes(0),
}


def render(figure: Figure) -> Image.Image:
    """The figure in few pixels and colours."""
    file = BytesIO()
    figure.savefig(file, dpi=DPI)
    return Image.open(file).convert("RGB").quantize(COLOURS)


def difference(one: Image.Image, two: Image.Image) -> float:
    """The largest difference of two blocks of 16 x 16 pixels, 0 to 255; 255 for pictures of another size."""
    if one.size != two.size:
        return 255.0
    blocks = (one.width // BLOCK, one.height // BLOCK)
    first, second = (image.convert("RGB").resize(blocks, Image.Resampling.BOX) for image in (one, two))
    return float(np.abs(np.asarray(first, float) - np.asarray(second, float)).max())


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, draw in IMAGES.items():
        render(draw()).save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
