"""A program for `run_under_ncu`: the launches of the probe, in the order of `names.json`.

`tables.npz` has arrays `NAME_table` and `NAME_origins`, uint32 [launches, patterns, 32], beside `NAME.ptx`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lab.probe.instructions import ENTRY
from memsim.errors import MemsimError
from memsim.validate.device import load_cupy
from memsim.validate.under_ncu import answer

MEMORY_BYTES = 1 << 20
ALIGNMENT = 1024


def main(arguments: Sequence[str]) -> int:
    """Run the contents of the folder `arguments[0]`; returns 0 if every launch succeeds."""
    folder = Path(arguments[0])
    return answer(folder, lambda: _run_all(folder))


def _run_all(folder: Path) -> None:
    cupy = load_cupy()
    with np.load(folder / "tables.npz") as tables:
        memory = cupy.zeros(MEMORY_BYTES + ALIGNMENT, np.uint8)
        for name in json.loads((folder / "names.json").read_text("utf-8")):
            _run(cupy, folder / f"{name}.ptx", tables[f"{name}_table"], tables[f"{name}_origins"], memory)


def _run(cupy: Any, ptx: Path, table: np.ndarray, origins: np.ndarray, memory: Any) -> None:
    from cupyx.profiler import profile  # type: ignore[import-not-found,unused-ignore]

    result = cupy.zeros(32, np.uint32)
    start = np.uint64(-(-memory.data.ptr // ALIGNMENT) * ALIGNMENT)
    try:
        function = cupy.RawModule(path=str(ptx)).get_function(ENTRY)
        tables = [(cupy.asarray(rows), cupy.asarray(far)) for rows, far in zip(table, origins, strict=True)]
        for rows, far in tables:
            cupy.cuda.Device().synchronize()
            with profile():
                function((1,), (32,), (rows, far, start, result))
    except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as error:
        raise MemsimError(f"the probe of {ptx.stem} does not run on this GPU: {error}") from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
