"""The scales can be read in grey and by the colour-blind, and every format has the same."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from memsim.views import canvas
from memsim.views.canvas import colour_of_bank, colour_of_count, ink_on, luminance, scale_of

# Machado, Oliveira, Fernandes 2009, severity 1, for linear sRGB.
SEEN_BY = {
    "everybody": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
COUNTS = [2.0**step for step in range(6)]


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lightness(colour: str, matrix: np.ndarray) -> float:
    """CIE L*, 0 to 100, of a colour as somebody sees it."""
    y = float(np.array([0.2126, 0.7152, 0.0722]) @ np.clip(np.array(matrix) @ linear(colour), 0, 1))
    return 116 * y ** (1 / 3) - 16 if y > 0.008856 else 903.3 * y


@pytest.mark.parametrize("matrix", SEEN_BY.values(), ids=SEEN_BY)
def test_more_is_darker_for_everybody(matrix: np.ndarray) -> None:
    counts = [lightness(colour_of_count(count), matrix) for count in COUNTS]
    assert all(light - dark > 6 for light, dark in pairwise(counts))
    assert 100 - counts[0] > 8  # a count of one is no white
    banks = [lightness(colour_of_bank(bank), matrix) for bank in range(32)]
    assert all(light > dark for light, dark in pairwise(banks))


def test_a_scale_that_does_not_get_darker_would_be_found() -> None:
    matrix = np.array(SEEN_BY["deuteranopia"])
    assert (
        abs(lightness("#d62728", matrix) - lightness("#7f7f00", matrix)) < 6
    )  # red and olive, as from a rainbow


def test_text_can_be_read_on_every_colour() -> None:
    for colour in [*map(colour_of_count, range(1, 33)), *map(colour_of_bank, range(32))]:
        light, dark = sorted((luminance(colour), luminance(ink_on(colour))), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_matplotlib_has_the_same_scale() -> None:
    from matplotlib.colors import to_hex

    colours, scale = scale_of(canvas.COUNTS)
    for count in (1, 1.5, 2, 3, 4, 8, 11, 16, 31, 32):
        same, other = to_hex(colours(scale(count))), colour_of_count(count)
        assert all(abs(int(same[i : i + 2], 16) - int(other[i : i + 2], 16)) <= 3 for i in (1, 3, 5))
    assert colours(scale(0.5))[3] == 0
    assert colour_of_count(0) == colour_of_count(0.99) == ""
