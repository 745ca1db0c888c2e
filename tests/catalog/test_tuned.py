"""The kernel beyond the articles: right, clean, and clear about the sizes that it takes."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.api.running import run
from memsim.errors import MemsimError
from memsim.kernels import compiled
from tests.few import few

NAME = "sgemm_tuned"
SIZES = {
    "one tile": (128, 128, 8),
    "square": (256, 256, 32),
    "tall": (512, 128, 16),
    "wide": (128, 384, 24),
    "deep": (128, 128, 520),
}


@pytest.mark.some(2)
@pytest.mark.parametrize("shape", few(SIZES, ("one tile", "wide")))
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (-1.5, 0.25), (0.0, 1.0), (3.0, -1.0)])
def test_alpha_and_beta(shape: str, alpha: float, beta: float) -> None:
    m, n, k = size = SIZES[shape]
    rng = np.random.default_rng(7)
    a, b, c = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((m, k), (k, n), (m, n)))
    result = c.copy() if beta else np.full_like(c, np.nan)  # which is not read then
    spec = compiled()[NAME]
    values = {"M": m, "N": n, "K": k, "alpha": alpha, "A": a, "B": b, "beta": beta, "C": result}
    run(spec.kernel(), spec.job(size).launch.grid, spec.block, [values[name] for name in spec.arguments])
    roundings = (k + 3) * 2.0**-24
    bound = roundings / (1 - roundings) * (abs(alpha) * (np.abs(a) @ np.abs(b)) + abs(beta) * np.abs(c))
    expected = alpha * (a.astype(np.float64) @ b) + beta * c
    assert (np.abs(result - expected) <= bound + abs(beta) * 1e-7).all()


def test_no_line_conflicts_or_wastes_a_sector() -> None:
    sites = compiled()[NAME].analyze("256,256,64").sites
    assert {site.space for site in sites} == {"shared", "global"}
    for site in sites:
        assert site.conflicts in (0, None) and site.wavefronts == site.ideal_wavefronts
        assert site.sectors == site.ideal_sectors


def test_other_sizes_are_refused() -> None:
    spec = compiled()[NAME]
    for size, says in (((64, 128, 8), "M to be"), ((128, 130, 8), "N to be"), ((128, 128, 12), "K to be")):
        with pytest.raises(MemsimError, match=f"sgemm_tuned needs {says} a multiple of"):
            spec.job(size)
