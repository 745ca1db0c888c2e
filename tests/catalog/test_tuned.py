"""The kernel beyond the articles: clean, and clear about the sizes that it takes."""

from __future__ import annotations

import pytest

from memsim.errors import MemsimError
from memsim.kernels import compiled

NAME = "sgemm_tuned"


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
