"""Lower bounds of `sgemm`: `python -m studies.sizes.bounds` writes those that the page shows to bounds.json.

Each has a hash of the code that it is of, and is worked out again only if that changed: all of them take
minutes, and a page is made in seconds.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memsim.kernels import Spec
from memsim.kernels.shipped import digest
from studies.bench.recording import Size
from studies.dispatch import dispatchers
from studies.kernel_ptx import ptx_of
from studies.sizes import DISPATCHER, HELD_OUT, SEEN, SIZES
from studies.sizes.recordings import recordings, slower

FILE = Path(__file__).with_name("bounds.json")


@dataclass(frozen=True, slots=True)
class Limit:
    """Of a launch: kernel, blocks, cycles at least, and the units that bound it, the busiest first."""

    kernel: str
    ptx: str
    grid: tuple[int, ...]
    cycles: int
    units: tuple[tuple[str, float], ...]


def launches(size: Size) -> list[tuple[Spec, tuple[int, ...]]]:
    """What is launched for a size, one after the other: kernels, and those that add their parts."""
    return [launch for piece in dispatchers()[DISPATCHER].pieces(size) for launch in piece.launches]


def limits_of(size: Size) -> list[Limit]:
    """The bounds of the launches of a size."""
    found = []
    for spec, asked in launches(size):
        analysis = spec.analyze(asked)
        bound = analysis.bound
        units = tuple((unit.name, round(unit.cycles / bound.cycles, 3)) for unit in bound.units[:2])
        grid = analysis.trace.launch.grid
        found.append(Limit(spec.name, digest(ptx_of(spec)), tuple(grid), bound.cycles, units))
    return found


def launched(size: Size) -> list[tuple[str, str, tuple[int, ...]]]:
    """Kernel, hash of its code and blocks of each launch."""
    return [
        (spec.name, digest(ptx_of(spec)), tuple(spec.job(asked).launch.grid))
        for spec, asked in launches(size)
    ]


def kept() -> dict[Size, list[Limit]]:
    """What the file holds."""
    record: dict[str, list[dict[str, Any]]] = json.loads(FILE.read_text("utf-8"))
    return {_size(name): [_limit(row) for row in rows] for name, rows in record.items()}


def _limit(row: dict[str, Any]) -> Limit:
    units = tuple((name, share) for name, share in row["units"])
    return Limit(row["kernel"], row["ptx"], tuple(row["grid"]), row["cycles"], units)


def _size(name: str) -> Size:
    m, n, k = map(int, name.split("x"))
    return m, n, k


def needed() -> list[Size]:
    """The sizes whose bounds the page shows: all that are listed, and random ones where cuBLAS is faster."""
    slow = [timing.size for recording in recordings() for timing in slower(recording, {*SEEN, *HELD_OUT})]
    return list(dict.fromkeys((*SIZES, *slow)))


def main() -> None:
    """All sizes, one after the other."""
    before, record = kept(), {}
    for size in needed():
        name = "x".join(map(str, size))
        limits = before.get(size, [])
        if [(limit.kernel, limit.ptx, limit.grid) for limit in limits] != launched(size):
            limits = limits_of(size)
        record[name] = [asdict(limit) for limit in limits]
        print(
            name, ", ".join(f"{row['kernel']}: {row['cycles']:,} cycles" for row in record[name]), flush=True
        )
    FILE.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
