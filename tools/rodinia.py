"""The programs of Rodinia that CUDA 13 still builds, and data for those that read files.

    python tools/rodinia.py CHECKOUT

writes made-up data to CHECKOUT/data, where Rodinia's own archive of data would be, so that its programs find
them from their folders. `tools/exec_suites.py Rodinia CHECKOUT ...` builds and runs the programs.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

#: Names of CUDA that are gone, and a header that only some files include.
FLAGS = (
    "-O3", "-include", "sys/time.h", "-I../util", "-Xcompiler", "-fopenmp", "-DTIMING",
    "-DcudaThreadSynchronize=cudaDeviceSynchronize", "-DcudaThreadExit=cudaDeviceReset",
    "-DdeviceOverlap=asyncEngineCount", "-DclockRate=warpSize",
)  # fmt: skip


class Described(NamedTuple):
    """A program: its folder below `cuda`, its sources, the arguments of its run, and flags beside `FLAGS`."""

    folder: str
    sources: str
    arguments: str = ""
    flags: tuple[str, ...] = ()


PARTICLES = "-x 128 -y 128 -z 3 -np 1000"
#: Without those that need textures by reference (kmeans, hybridsort, leukocyte, mummergpu), a video
#: (heartwall) or data of their own (myocyte).
PROGRAMS = {
    "b+tree": Described(
        "b+tree",
        "main.c util/timer/timer.c util/num/num.c util/cuda/cuda.cu kernel/kernel_gpu_cuda_wrapper.cu "
        "kernel/kernel_gpu_cuda_wrapper_2.cu",
        "file ../../data/b+tree/mil.txt command ../../data/b+tree/command.txt",
    ),
    "backprop": Described("backprop", "backprop.c facetrain.c imagenet.c backprop_cuda.cu", "65536"),
    "bfs": Described("bfs", "bfs.cu", "../../data/bfs/graph16k.txt"),
    "cfd": Described(
        "cfd", "euler3d.cu", "../../data/cfd/mesh.txt", ("-I../hybridsort", "-DcomputeMode=integrated")
    ),
    "dwt2d": Described(
        "dwt2d",
        "main.cu dwt.cu components.cu dwt_cuda/common.cu dwt_cuda/fdwt53.cu dwt_cuda/fdwt97.cu "
        "dwt_cuda/rdwt53.cu dwt_cuda/rdwt97.cu",
        "192.bmp -d 192x192 -f -5 -l 3",
        ("-I.",),
    ),
    "gaussian": Described("gaussian", "gaussian.cu", "-s 256"),
    "hotspot": Described(
        "hotspot", "hotspot.cu", "512 2 2 ../../data/hotspot/temp ../../data/hotspot/power output.out"
    ),
    "hotspot3D": Described(
        "hotspot3D", "3D.cu", "512 8 2 ../../data/hotspot3D/power ../../data/hotspot3D/temp output.out"
    ),
    "huffman": Described(
        "huffman",
        "main_test_cu.cu cpuencode.cpp stats_logger.cpp",
        "../../data/huffman/bytes.in",
        ("-DCACHECWLUT=1",),
    ),
    "lavaMD": Described(
        "lavaMD",
        "main.c util/timer/timer.c util/num/num.c util/device/device.cu kernel/kernel_gpu_cuda_wrapper.cu",
        "-boxes1d 4",
    ),
    "lud": Described(
        "lud/cuda", "lud.cu lud_kernel.cu ../common/common.c", "-s 256", ("-I../common", "-I../../util")
    ),
    "nn": Described("nn", "nn_cuda.cu", "../../data/nn/files -r 5 -lat 30 -lng 90"),
    "nw": Described("nw", "needle.cu", "2048 10"),
    "particlefilter_float": Described("particlefilter", "ex_particle_CUDA_float_seq.cu", PARTICLES),
    "particlefilter_naive": Described("particlefilter", "ex_particle_CUDA_naive_seq.cu", PARTICLES),
    "pathfinder": Described("pathfinder", "pathfinder.cu", "100000 100 20"),
    "srad_v1": Described("srad/srad_v1", "main.cu", "2 0.5 502 458"),
    "srad_v2": Described("srad/srad_v2", "srad.cu", "512 512 0 127 0 127 0.5 1"),
    "streamcluster": Described(
        "streamcluster",
        "streamcluster_cuda_cpu.cpp streamcluster_cuda.cu streamcluster_header.cu",
        "10 20 64 8192 8192 1000 none output.txt 1",
    ),
}


def write_data(folder: Path) -> None:
    """Writes what the programs read, by a seed, as large as their arguments say."""
    chance = random.Random(28)

    def write(name: str, lines: Iterable[object]) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")

    write("bfs/graph16k.txt", graph(chance, 16384))
    for name, count in {"hotspot": 512 * 512, "hotspot3D": 512 * 512 * 8}.items():
        write(f"{name}/temp", (f"{chance.uniform(320, 340):.6f}" for _ in range(count)))
        write(f"{name}/power", (f"{chance.uniform(0, 0.01):.6f}" for _ in range(count)))
    write("b+tree/mil.txt", [50_000, *range(50_000)])
    write("b+tree/command.txt", ["j 600 300", "k 1000"])
    write("nn/files", [f"../../data/nn/storms{number}" for number in (0, 1)])
    for number in (0, 1):
        write(f"nn/storms{number}", (storm(chance) for _ in range(20_000)))
    write("cfd/mesh.txt", mesh(chance, 9600))
    for name, values in {
        "huffman/bytes.in": (min(255, int(chance.expovariate(1 / 20))) for _ in range(1 << 18)),
        "dwt2d/192.bmp": (chance.randrange(256) for _ in range(3 * 192 * 192)),
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(bytes(values))


def graph(chance: random.Random, nodes: int) -> list[object]:
    """Nodes with the number of their first edge, the first node, and edges with what they cost."""
    degrees = [chance.randint(2, 10) for _ in range(nodes)]
    starts = (f"{first} {degree}" for first, degree in zip(accumulate(degrees, initial=0), degrees))
    edges = (f"{chance.randrange(nodes)} {chance.randint(1, 10)}" for _ in range(sum(degrees)))
    return [nodes, *starts, 0, sum(degrees), *edges]


def storm(chance: random.Random) -> str:
    """A record of 48 characters, with a place at 28 and 33."""
    when = f"{chance.randint(1950, 2004):4d} {chance.randint(1, 12):2d} {chance.randint(1, 28):2d} 12  1"
    where = f"{chance.uniform(7, 70):5.1f} {chance.uniform(0, 358):5.1f}"
    return f"{when} {'ALBERTO':8s} {where} {chance.randint(10, 160):4d}".ljust(48)


def mesh(chance: random.Random, elements: int) -> list[object]:
    """Elements with their areas, neighbours (from 1 on, -1 at a wall) and the normals to these."""
    found: list[object] = [elements]
    for element in range(elements):
        cells = [f"{chance.uniform(0.5, 2):.6f}"]
        for step in (1, -1, 97, -97):
            neighbour = -1 if chance.random() < 0.02 else (element + step) % elements + 1
            cells += [str(neighbour), *(f"{chance.uniform(-1, 1):.6f}" for _ in range(3))]
        found.append(" ".join(cells))
    return found


if __name__ == "__main__":
    write_data(Path(sys.argv[1], "data"))
