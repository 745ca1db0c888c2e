"""A product by `wgmma` names the arrays that it reads, and their layout is not changed under it."""

from __future__ import annotations

import numpy as np

from memsim.analysis import analyze_trace
from memsim.api.running import job_of, trace_job
from memsim.suggest.tiles import tiles
from tests.sanitize.test_products import kernel


def test_the_arrays_of_a_product_are_named_and_kept() -> None:
    args = [np.zeros(256, np.float32), np.zeros((256, 4), np.int32)]
    found = analyze_trace(trace_job(job_of(kernel(), 1, 128, args)))
    products = [site for site in found.sites if site.op == "wgmma"]
    assert products and {site.array for site in products} == {"a|b"}
    assert {tile.name: "reads it as its descriptor says" in tile.why_not for tile in tiles(found)} == {
        "a": True,
        "b": True,
    }
