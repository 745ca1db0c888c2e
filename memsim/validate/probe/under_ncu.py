"""The program that runs under ncu for the probe: `python -m memsim.validate.probe.under_ncu FOLDER`.

FOLDER contains `tables.npz` with arrays `NAME_table` and `NAME_origins`, uint32 [launches, patterns, 32], and
`NAME.ptx` for each. It makes the launches in the order of the names, and writes `error.json` if one fails.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memsim.errors import MemsimError
from memsim.validate.device import load_cupy
from memsim.validate.probe.instructions import ENTRY

MEMORY_BYTES = 1 << 20
ALIGNMENT = 1024
ERROR = "error.json"


def main(arguments: Sequence[str]) -> int:
    """Run the contents of the folder `arguments[0]`; returns 0 if every launch succeeds."""
    folder = Path(arguments[0])
    try:
        cupy = load_cupy()
        with np.load(folder / "tables.npz") as tables:
            memory = cupy.zeros(MEMORY_BYTES + ALIGNMENT, np.uint8)
            for name in json.loads((folder / "names.json").read_text("utf-8")):
                _run(cupy, folder / f"{name}.ptx", tables[f"{name}_table"], tables[f"{name}_origins"], memory)
    except MemsimError as error:
        (folder / ERROR).write_text(json.dumps({"error": error.message, "hint": error.hint}), "utf-8")
        return error.exit_code
    return 0


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
