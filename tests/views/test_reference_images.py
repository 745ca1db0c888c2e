"""Pictures look as they did when somebody last looked at them."""

from __future__ import annotations

import pytest
from PIL import Image

from tests.views.cases import kernel
from tests.views.reference_images import FOLDER, IMAGES, difference, render

ALIKE = 50

# What another kernel, another site or another array gives: it must not pass for the picture.
OTHERS = {
    "heatmap": lambda: kernel("kernel_v4").plot.heatmap(),
    "lanes": lambda: kernel("kernel_v4").plot.lanes(2),
    "sectors": lambda: kernel("kernel_v1").plot.lanes(1),
}


@pytest.mark.some(1)
@pytest.mark.parametrize("name", IMAGES)
def test_the_picture_is_the_reference(name: str) -> None:
    with Image.open(FOLDER / f"{name}.png") as reference:
        assert difference(render(IMAGES[name]()), reference) < ALIKE
        assert difference(render(OTHERS[name]()), reference) > ALIKE


def test_there_is_no_image_that_nobody_compares() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(IMAGES) == set(OTHERS)
