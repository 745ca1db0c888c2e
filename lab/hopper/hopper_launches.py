"""A program for `run_under_ncu`: launches of one source's kernels, in order, with their address tables.

Tensor maps are encoded by the driver.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memsim.argument_types import TensorMap
from memsim.errors import MemsimError
from memsim.validate.device import load_cupy
from memsim.validate.driver_maps import driver, encode_tiled
from memsim.validate.under_ncu import answer

CODE, PLAN, TABLES = "kernels.cubin", "launches.json", "tables.npy"
MEMORY_BYTES, OUTPUT_BYTES, SHARED_BYTES = 1 << 18, 1 << 18, 225_280
ALIGNMENT = MEMORY_BYTES  # which bits of an address lanes have in common is known


def main(arguments: Sequence[str]) -> int:
    """Run the contents of the folder `arguments[0]`; returns 0 if every launch succeeds."""
    folder = Path(arguments[0])
    launches = json.loads((folder / PLAN).read_text("utf-8"))
    tables = np.load(folder / TABLES)
    return answer(folder, lambda: run(load_cupy(), folder / CODE, launches, tables, driver()))


def run(
    cupy: Any, code: Path, launches: Sequence[Mapping[str, Any]], tables: np.ndarray, library: Any
) -> None:
    """Make every launch, each with memory whose bytes are 0, 1, 2, ...

    Raises:
        MemsimError: CUDA rejects one.
    """
    from cupyx.profiler import profile  # type: ignore[import-not-found,unused-ignore]

    module = cupy.RawModule(path=str(code))
    room = cupy.zeros(MEMORY_BYTES + ALIGNMENT, np.uint8)
    start = -(-int(room.data.ptr) // ALIGNMENT) * ALIGNMENT
    memory = room[start - int(room.data.ptr) :][:MEMORY_BYTES]
    contents = cupy.arange(MEMORY_BYTES, dtype=np.uint32).astype(np.uint8)
    output = cupy.zeros(OUTPUT_BYTES, np.uint8)
    cupy.cuda.Device().synchronize()
    with profile():  # from here on copies only: another kernel would be measured too
        for launch, table in zip(launches, tables, strict=True):
            memory.data.copy_from_device(contents.data, MEMORY_BYTES)
            given = launch["map"]
            encoded = bytes(TensorMap.nbytes) if given is None else encode(library, given, start)
            numbers = map(np.int32, launch["numbers"])
            arguments = (np.frombuffer(encoded, "V128")[0], memory, cupy.asarray(table), output, *numbers)
            try:
                function = module.get_function(launch["kernel"])
                function.max_dynamic_shared_size_bytes = SHARED_BYTES
                function((launch["grid"],), (launch["block"],), arguments, shared_mem=SHARED_BYTES)
                cupy.cuda.Device().synchronize()
            except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as error:
                raise MemsimError(f"{launch['kernel']} does not run on this GPU: {error}") from None


def encode(library: Any, given: Mapping[str, Any], start: int) -> bytes:
    """The bytes of a tensor map over memory from `start` on."""
    return encode_tiled(
        library,
        kind=given["dt"],
        address=start + given["base"],
        extents=given["dims"],
        steps=given["strides"],
        box=given["box"],
        swizzle=given["swz"],
        fill=given["fill"],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
