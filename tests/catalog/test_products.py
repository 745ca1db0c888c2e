"""Products with alpha, beta and leading dimensions, and of matrices that are textures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsim.api.running import run
from memsim.argument_types import Texture1D
from memsim.kernels import catalog
from tests.catalog.test_results import taken
from tests.few import few

SGEMM = ["sgemm_128x128x8", "sgemm_128x128x8_texld", "sgemm_128x256x8", "sgemm_tuned"]


def product(
    name: str,
    size: tuple[int, ...],
    alpha: float = 1.0,
    beta: float = 0.0,
    padding: tuple[int, int, int] = (0, 0, 0),
    nowhere: float = np.nan,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """C, what it should be, and how far it may be from that; what is outside the matrices is `nowhere`."""
    spec = catalog()[name]
    m, n, k = size
    rng = np.random.default_rng(5)
    matrices = {}
    for (array, shape), pad in zip({"A": (m, k), "B": (k, n), "C": (m, n)}.items(), padding):
        matrices[array] = np.full((shape[0], shape[1] + pad), nowhere, np.float32)
        matrices[array][:, : shape[1]] = rng.uniform(-1, 1, shape)
    a, b, c = (matrices[array].astype(np.float64)[:, :extent] for array, extent in zip("ABC", (k, n, n)))
    if beta == 0:
        matrices["C"].fill(np.nan)
        c = np.zeros_like(c)
    values: dict[str, Any] = {"M": m, "N": n, "K": k, "alpha": alpha, "beta": beta, **matrices}
    values.update({f"ld{array.lower()}": matrix.shape[1] for array, matrix in matrices.items()})
    arguments = [Texture1D(values[x]) if x in spec.textures else values[x] for x in spec.arguments]
    sizes = {"M": m, "N": n, "K": k}  # not by the plan: that takes lda = K
    grid = [-(-sizes[extent] // tile) for extent, tile in spec.grid]
    run(spec.kernel(), grid, spec.block, arguments)

    assert np.isnan(matrices["C"][:, n:]).all()
    # One rounding for each product and sum: Higham, Accuracy and Stability, section 3.1.
    roundings = (k + 3) * 2.0**-24
    bound = roundings / (1 - roundings) * (abs(alpha) * (np.abs(a) @ np.abs(b)) + abs(beta) * np.abs(c))
    return matrices["C"][:, :n], alpha * (a @ b) + beta * c, bound


SHAPES = {
    "one tile": (128, 128, 8),
    "square": (256, 256, 32),
    "tall": (260, 4, 20),
    "wide": (4, 516, 20),
    "odd": (131, 261, 33),
    "tiny": (1, 1, 1),
    "a row": (1, 130, 9),
}


@pytest.mark.some(2)
@pytest.mark.parametrize("size", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("name", few(SGEMM))
def test_alpha_and_beta(name: str, size: tuple[int, ...]) -> None:
    for alpha, beta in ((1.0, 0.0), (-1.5, 0.25)):
        c, expected, bound = product(name, taken(name, size), alpha, beta)
        assert (np.abs(c - expected) <= bound).all()


@pytest.mark.some(2)
@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 1.0), (0.0, 0.0), (1.0, -1.0), (3.0, 1e-3)])
@pytest.mark.parametrize("name", few(SGEMM))
def test_special_alphas_and_betas(name: str, alpha: float, beta: float) -> None:
    c, expected, bound = product(name, taken(name, (20, 36, 12)), alpha, beta)
    assert (np.abs(c - expected) <= bound + abs(beta) * 1e-7).all()


@pytest.mark.some(1)
@pytest.mark.parametrize("padding", [(3, 5, 7), (0, 1, 2), (8, 0, 4)])
@pytest.mark.parametrize("name", ["sgemm_128x128x8", "sgemm_128x256x8"])
def test_leading_dimensions(name: str, padding: tuple[int, int, int]) -> None:
    c, expected, bound = product(name, (130, 67, 21), 2.0, -0.5, padding)
    assert (np.abs(c - expected) <= bound).all()


@pytest.mark.some(1)
@pytest.mark.parametrize(("size", "padding"), [((130, 67, 21), (3, 5, 7)), ((9, 66, 10), (2, 6, 0))])
def test_textures_take_any_size_with_leading_dimensions_of_four(
    size: tuple[int, int, int], padding: tuple[int, int, int]
) -> None:
    c, expected, bound = product("sgemm_128x128x8_texld", size, 2.0, -0.5, padding)
    assert (np.abs(c - expected) <= bound).all()
    c, expected, bound = product("sgemm_128x128x8_texld", size, 1.0, 0.0, padding, nowhere=np.inf)
    assert (np.abs(c - expected) <= bound).all()
