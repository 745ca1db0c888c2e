"""Estimates all choices: `python -m studies.choices.estimate [triton|tiles]` adds those that are missing to
estimates_since.json, without a GPU. It needs Triton for its kernels, in the version whose code was measured
(3.6.0). Tiles are estimated by all processors. If the model changes, begin with no such file.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed

import numpy as np

import memsim
from memsim.argument_types import ArrayArg
from memsim.time.behind_l1 import COLD, WARM
from memsim.time.predict_time import PreparedTime
from memsim.validate.device import now
from studies.bench.recording import Size
from studies.choices.choice import (
    CONFIGURATIONS,
    SINCE,
    Choice,
    EstimatedChoice,
    Estimates,
    load_estimates,
)
from studies.choices.code import code_of_cubin
from studies.choices.tiles import choice_of, tiles_at
from studies.sizes import SIZES

#: The board on which they were measured.
BOARD = "NVIDIA H100 80GB HBM3"


def tiles(known: Collection[Choice]) -> Iterator[EstimatedChoice]:
    """Each tile that is not known, small sizes first."""
    missing = [
        (size, number)
        for size in sorted(SIZES, key=np.prod)
        for number, piece in enumerate(tiles_at(size))
        if choice_of(size, piece) not in known
    ]
    with ProcessPoolExecutor() as pool:
        made = [pool.submit(_tile, *one) for one in missing]
        yield from (one.result() for one in as_completed(made))


def _tile(size: Size, number: int) -> EstimatedChoice:
    piece = tiles_at(size)[number]
    prepared = [PreparedTime(spec.job(asked)).on(BOARD) for spec, asked in piece.launches]
    return EstimatedChoice(choice_of(size, piece), None, sum(one.predict(WARM).elapsed for one in prepared))


def configurations(known: Collection[Choice]) -> Iterator[EstimatedChoice]:
    """Each configuration of Triton's kernels that is not known; they are compiled here."""
    from studies.choices.triton_kernels import KERNELS

    for kernel in KERNELS:
        arrays = [ArrayArg(shape, dtype) for shape, dtype in kernel.arrays]
        for one in kernel.configurations:
            with memsim.capture("sm_90") as launches:
                compiled = kernel.launch(arrays, one)
            code = code_of_cubin(compiled.asm["cubin"])
            choice = Choice(CONFIGURATIONS, kernel.name, str(one), code)
            if choice in known:
                continue
            prepared = PreparedTime(launches[0].job()).on(BOARD)
            yield EstimatedChoice(choice, prepared.predict(COLD).elapsed, prepared.predict(WARM).elapsed)


def main(kinds: list[str]) -> None:
    """Those that are missing."""
    found = list(load_estimates(SINCE).choices) if SINCE.exists() else []
    known = {one.choice for one in found}
    for kind in kinds or ["triton", "tiles"]:
        for one in configurations(known) if kind == "triton" else tiles(known):
            found.append(one)
            Estimates(now(), tuple(found), BOARD).save()
            print(one.choice.problem, one.choice.choice, one.cold, one.warm, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
