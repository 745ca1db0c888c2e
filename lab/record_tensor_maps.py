"""Records how this machine's driver encodes tensor maps: `python -m lab.record_tensor_maps FILE.json`.

The maps are random, the same ones on each machine. The machine needs a GPU and CuPy.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memsim.errors import MemsimError
from memsim.validate.device import load_cupy, now, this_device, write_record
from memsim.validate.device_memory import driver, encode_tiled

#: Bytes of an element of each `CUtensorMapDataType`; from float16 on they may be filled with NaN.
SIZES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)
FLOAT16 = 6
MAPS = 100


def maps(chance: random.Random) -> Iterator[dict[str, Any]]:
    """Arguments of `encode_tiled`; the driver rejects some of them."""
    for _ in range(10 * MAPS):
        rank, kind = chance.randint(1, 5), chance.randrange(len(SIZES))
        box = [chance.randint(1, chance.choice((8, 64, 256))) for _ in range(rank)]
        box[0] = max(1, box[0] * SIZES[kind] // 16 * 16 // SIZES[kind])
        yield {
            "kind": kind,
            "address": 16 * chance.randrange(1, 1 << 40),
            "extents": [chance.randint(1, 1 << chance.randint(1, 20)) for _ in range(rank)],
            "steps": [16 * chance.randrange(1 << chance.randint(4, 35)) for _ in range(rank - 1)],
            "box": box,
            "swizzle": chance.randrange(4),
            "fill": chance.randrange(2) if kind >= FLOAT16 else 0,
        }


def main() -> None:
    """Encodes, and writes."""
    device, library = this_device(), driver()
    load_cupy().zeros(1)  # the driver encodes only where there is a context
    found: list[dict[str, Any]] = []
    for given in maps(random.Random(5)):
        try:
            found.append({**given, "bytes": encode_tiled(library, **given).hex()})
        except MemsimError:
            continue
        if len(found) == MAPS:
            break
    about = {"gpu": device.gpu, "driver": device.driver, "cuda": device.cuda, "date": now()}
    write_record({**about, "maps": found}, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
