"""Estimates all choices, without a GPU: `python -m studies.choices.estimate [KIND...]` adds those that are
missing to estimates_since.json (triton, tiles), estimates_since_h200.json (triton_h200), and
estimates_unseen.json and so on (unseen, second, third, fourth). It needs Triton for its kernels, in the
version whose code was measured (3.6.0), and ptxas of CUDA 13.0 for tiles, which are estimated by all
processors. If the model changes, begin with no such file.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace

import numpy as np

import memsim
from memsim.argument_types import ArrayArg
from memsim.time.behind_l1 import COLD, WARM
from memsim.time.predict_time import PreparedTime
from memsim.validate.device import now
from studies.bench.recording import Size
from studies.choices.choice import (
    CONFIGURATIONS,
    FOURTH,
    H100,
    H200,
    SECOND,
    SINCE,
    SINCE_H200,
    THIRD,
    UNSEEN,
    Choice,
    EstimatedChoice,
    Estimates,
    load_estimates,
)
from studies.choices.code import code_of_cubin
from studies.choices.tiles import UNSEEN_SIZES, choice_of, tiles_at, timed_kernel
from studies.sizes import SIZES

#: Of each kind the file, and the board on which it was measured.
KINDS = {
    "triton": (SINCE, H100),
    "tiles": (SINCE, H100),
    "triton_h200": (SINCE_H200, H200),
    "unseen": (UNSEEN, H200),
    "second": (SECOND, H200),
    "third": (THIRD, H200),
    "fourth": (FOURTH, H200),
}


def tiles(known: Collection[Choice], sizes: Iterable[Size], board: str) -> Iterator[EstimatedChoice]:
    """Each tile that is not known, small sizes first."""
    missing = [
        (size, number, board)
        for size in sorted(sizes, key=np.prod)
        for number, piece in enumerate(tiles_at(size))
        if choice_of(size, piece) not in known
    ]
    with ProcessPoolExecutor() as pool:
        made = [pool.submit(_tile, *one) for one in missing]
        yield from (one.result() for one in as_completed(made))


def _tile(size: Size, number: int, board: str) -> EstimatedChoice:
    piece = tiles_at(size)[number]
    prepared = [
        PreparedTime(replace(spec.job(asked), kernel=timed_kernel(spec))).on(board)
        for spec, asked in piece.launches
    ]
    return EstimatedChoice(choice_of(size, piece), None, sum(one.predict(WARM).elapsed for one in prepared))


def configurations(known: Collection[Choice], board: str) -> Iterator[EstimatedChoice]:
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
            prepared = PreparedTime(launches[0].job()).on(board)
            yield EstimatedChoice(choice, prepared.predict(COLD).elapsed, prepared.predict(WARM).elapsed)


def main(kinds: list[str]) -> None:
    """Those that are missing."""
    for kind in kinds or ["triton", "triton_h200", "tiles"]:
        path, board = KINDS[kind]
        found = list(load_estimates(path).choices) if path.exists() else []
        known = {one.choice for one in found}
        sizes = UNSEEN_SIZES.get(kind, SIZES)
        made = configurations(known, board) if kind.startswith("triton") else tiles(known, sizes, board)
        for one in made:
            found.append(one)
            Estimates(now(), tuple(found), board).save(path)
            print(one.choice.problem, one.choice.choice, one.cold, one.warm, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
