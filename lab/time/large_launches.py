"""Launches of the catalogue most of which are too long to be followed to their end: how they are estimated.

`python -m lab.time.large_launches` writes docs/validation/large_estimates.json. `lab.time.l2_states` measures
them (l2_states_large.json beside it); docs/time-accuracy.md has the table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from memsim.data import data_folder
from memsim.job import Job
from memsim.kernels import catalog
from memsim.time.behind_l1 import COLD, WARM
from memsim.time.predict_time import PreparedTime

ESTIMATES = data_folder("docs/validation") / "large_estimates.json"
#: Kernels of the catalogue by the sizes of their products, which are cubes.
LARGE = {
    2304: (
        "guide_v4", "guide_v5", "guide_v6", "guide_v7", "kernel_v2", "kernel_v3", "kernel_v4", "opt_4_tile1d",
        "sgemm_tuned", "tile_32x64x32", "tile_32x96x32_any", "tile_64x128x16", "tile_64x64x32",
        "tile_64x96x16",
    ),
    **dict.fromkeys((1152, 1536, 4608), ("guide_v7", "kernel_v3", "kernel_v4", "tile_64x96x16")),
}  # fmt: skip


def large_jobs() -> Iterator[tuple[str, Job]]:
    """(name, job) of each."""
    for size, kernels in LARGE.items():
        for name in kernels:
            spec = catalog()[name]
            asked = [size if axis in ("M", "N", "K") else value for axis, value in spec.sizes().items()]
            yield f"{name} {size}", spec.job(asked)


def estimate(number: int) -> tuple[str, dict[str, object]]:
    """The name of one of them, its active cycles by the state of L2, and with a cold one if chance decides
    otherwise (`LaunchTime.cycles_otherwise`).
    """
    name, job = [*large_jobs()][number]
    prepared = PreparedTime(job).on("H200")
    times = {l2: prepared.predict(l2, both_ways=True) for l2 in (COLD, WARM)}
    cycles = {l2: time.cycles for l2, time in times.items()}
    cold = times[COLD]
    return name, {**cycles, "otherwise": cold.cycles_otherwise, "is_whole": cold.is_whole}


def main() -> None:
    """Estimate all of them."""
    with ProcessPoolExecutor() as pool:
        found = dict(pool.map(estimate, range(len([*large_jobs()]))))
    lines = (f"{json.dumps(name)}: {json.dumps(one)}" for name, one in found.items())
    ESTIMATES.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
