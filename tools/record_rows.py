"""Records boxes with rows of any width on this machine's GPU: `python tools/record_rows.py FOLDER`.

Their kernels are those of the recordings of Hopper's microbenchmarks. Writes `hopper/rows.npz` (copies of one
block, and reductions) and `hopper/multicast_rows.npz` in the GPU's folder below FOLDER. The machine needs a
Hopper GPU, CuPy and ncu.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from memsim.compile import compile_cubin  # noqa: E402
from memsim.validate.device import this_device  # noqa: E402
from memsim.validate.hopper.hopper_recording import (  # noqa: E402
    HopperLaunch,
    HopperRecording,
    load_hopper,
)
from memsim.validate.hopper.run_hopper import CHIP, measured_launches  # noqa: E402
from memsim.validate.profiler import find_profiler  # noqa: E402
from memsim.validate.recording_files import now  # noqa: E402
from memsim.validate.under_ncu import LaunchCounter  # noqa: E402

RECORDED = ROOT / "traces" / "nvidia-h200" / "hopper"
SECTORS = (
    "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_st.sum",
    "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_tma_red.sum",
    "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum",
)
#: Bytes of a row: neither do they divide 128, nor are they always whole lines.
WIDTHS = (48, 80, 96, 112, 144, 160, 176, 192, 208, 224, 240, 272, 288, 320, 400, 512)
BLOCKS_OF_A_PAIR = 3  # a multicast to both
Extents = tuple[int, int]


def boxes(width: int, element: int) -> Iterator[tuple[Extents, int, Extents, Extents, int]]:
    """(extents of the tensor, bytes between rows, box, corner, place in shared memory), innermost first."""
    columns = width // element
    for corner in (0, 16, 80, 128):
        yield (2048 // element, 64), 2048, (columns, 4), (corner // element, 1), 0
    yield (2048 // element, 64), 2048, (columns, 16), (16 // element, 0), 0
    yield (2048 // element, 64), 2048, (columns, 1), (0, 0), 128
    yield (128 // element, 128), 512, (columns, 8), (0, 3), 0  # the tensor ends inside the row
    yield (144 // element, 128), 144, (columns, 8), (0, 3), 0
    yield (2048 // element, 60), 2064, (columns, 8), (0, 3), 0


def launches(
    model: HopperRecording, kernel: str, part: str, element: int, numbered: int
) -> list[HopperLaunch]:
    """Each box of each width, copied by a kernel of the recording; `numbered`: its last number."""
    like = next(
        one
        for one in model.parts[part]
        if one.kernel == kernel and one.map is not None and one.map["e"] == element
    )
    assert like.map is not None
    found = []
    for width in WIDTHS:
        for extents, step, box, corner, place in boxes(width, element):
            box_map = {**like.map, "dims": [*extents], "strides": [step], "box": [*box], "swz": 0, "base": 0}
            numbers = (*corner, 0, 0, 0, place, prod(box) * element, numbered)
            found.append(replace(like, numbers=numbers, map=box_map, counters={}))
    return found


def record(folder: Path, model: HopperRecording, name: str, part: str, made: Sequence[HopperLaunch]) -> None:
    """Measure, and save as the recording `name`."""
    device, profiler = this_device(), find_profiler()
    compiled = compile_cubin(model.source, arch=CHIP)
    measured: list[HopperLaunch] = []
    for start in range(0, len(made), 150):
        some = made[start : start + 150]
        measured += measured_launches(profiler, compiled.code, some, SECTORS, LaunchCounter(len(some), None))
    about = {
        "gpu": device.gpu,
        "driver": device.driver,
        "ncu": profiler.version,
        "compiler": compiled.compiler,
    }
    about["date"] = now()
    recording = HopperRecording(name, about, model.source, {part: tuple(measured)}, {part: SECTORS})
    print(recording.save(folder), len(measured), "launches", flush=True)


def main() -> None:
    """Records both."""
    folder = Path(sys.argv[1])
    probe, clusters = (load_hopper(RECORDED / f"{stem}.npz") for stem in ("probe", "clusters"))
    multicasts = launches(clusters, "m_box2", "multicast", 2, BLOCKS_OF_A_PAIR)
    record(folder, clusters, "multicast_rows", "multicast", multicasts)
    copies = [
        *launches(probe, "ts_2d", "tensors", 2, 0),
        *launches(probe, "tl_2d", "tensors", 2, 0),
        *launches(probe, "tr_2d", "tensors", 4, 0),
    ]
    record(folder, probe, "rows", "tensors", copies)


if __name__ == "__main__":
    main()
