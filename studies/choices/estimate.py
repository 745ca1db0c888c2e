"""Estimates all choices: `python -m studies.choices.estimate [triton|tiles]` adds those that are missing to
estimates.json, without a GPU. It needs Triton for its kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

import memsim
from memsim.argument_types import ArrayArg
from memsim.job import Job
from memsim.time.predict_time import COLD, WARM, PreparedTime
from memsim.validate.device import now
from studies.choices.choice import (
    CONFIGURATIONS,
    ESTIMATES,
    Choice,
    EstimatedChoice,
    Estimates,
    load_estimates,
)
from studies.choices.code import code_of_cubin
from studies.choices.tiles import choice_of, tiles_at
from studies.sizes import SIZES

Made = Iterator[tuple[Choice, list[Job]]]


def tiles() -> Made:
    """The launches of each tile, small sizes first."""
    for size in sorted(SIZES, key=np.prod):
        for piece in tiles_at(size):
            yield choice_of(size, piece), [spec.job(asked) for spec, asked in piece.launches]


def configurations() -> Made:
    """The launch of each configuration of Triton's kernels, which is compiled here."""
    from studies.choices.triton_kernels import KERNELS

    for kernel in KERNELS:
        arrays = [ArrayArg(shape, dtype) for shape, dtype in kernel.arrays]
        for one in kernel.configurations:
            with memsim.capture("sm_90") as launches:
                compiled = kernel.launch(arrays, one)
            code = code_of_cubin(compiled.asm["cubin"])
            yield Choice(CONFIGURATIONS, kernel.name, str(one), code), [launches[0].job()]


def main(kinds: list[str]) -> None:
    """Those that are missing, one after the other."""
    found = list(load_estimates().choices) if ESTIMATES.exists() else []
    known = {one.choice for one in found}
    for kind in kinds or ["triton", "tiles"]:
        for choice, jobs in configurations() if kind == "triton" else tiles():
            if choice in known:
                continue
            prepared = [PreparedTime(job) for job in jobs]
            cold = sum(one.predict(COLD).elapsed for one in prepared) if kind == "triton" else None
            estimated = EstimatedChoice(choice, cold, sum(one.predict(WARM).elapsed for one in prepared))
            found.append(estimated)
            Estimates(now(), tuple(found)).save()
            print(choice.problem, choice.choice, estimated.cold, estimated.warm, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
