"""Kernels whose best cure is known, as CUDA text, with a launch; written for these tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memsim.analysis import Analysis, analyze_trace
from memsim.api import kernel_file, running
from memsim.argument_types import ArrayArg
from memsim.job import Job
from memsim.launch import Launch, dim3


@dataclass(frozen=True)
class Case:
    """A kernel `k` and its launch in one block. arrays: (elements, numpy type) of its parameters."""

    text: str
    block: tuple[int, ...]
    arrays: tuple[tuple[int, str], ...]

    def job(self, folder: Path, name: str = "k.cu", options: tuple[str, ...] = ()) -> Job:
        """The kernel in a file of its own."""
        (folder / name).write_text(self.text)
        args = [ArrayArg((count,), kind) for count, kind in self.arrays]
        return Job(
            kernel_file.KernelFile(folder, name, "k", options), Launch((1, 1, 1), dim3(self.block)), args
        )


def launched(
    folder: Path,
    text: str,
    args: Sequence[object],
    block: tuple[int, ...],
    grid: tuple[int, ...] = (1,),
    name: str = "k",
) -> Job:
    """A kernel of a text, in a file of its own, `k.cu`."""
    (folder / "k.cu").write_text(text)
    return Job(kernel_file.KernelFile(folder, "k.cu", name), Launch(dim3(grid), dim3(block)), args)


def analyzed(job: Job, *, apart: bool = True) -> Analysis:
    """What the kernel costs as it is."""
    return analyze_trace(running.trace_job(job, apart=apart), job.arch)


def needless(analysis: Analysis) -> int:
    """Sectors of global memory that need not be moved."""
    return sum(site.needless_sectors or 0 for site in analysis.sites if site.space == "global")


def transpose(declaration: str, store: str = "[y][x]", load: str = "[x][y]") -> Case:
    """32 x 32 floats through `tile`."""
    return Case(
        f"""
extern "C" __global__ void k(const float *in, float *out) {{
    __shared__ {declaration};
    int x = threadIdx.x, y = threadIdx.y;
    tile{store} = in[y * 32 + x];
    __syncthreads();
    out[y * 32 + x] = tile{load};
}}
""",
        (32, 32),
        ((1024, "float32"), (1024, "float32")),
    )


# A tile of 16 rows of 16, in an array that has room for 17, indexed as if it had not.
STRIDE_16 = Case(
    """
extern "C" __global__ void k(const float *in, float *out) {
    __shared__ float tile[16 * 17];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y * 16 + x] = in[y * 16 + x];
    __syncthreads();
    out[y * 16 + x] = tile[x * 16 + y];
}
""",
    (16, 16),
    ((256, "float32"), (256, "float32")),
)


def ldmatrix_tile(halves: int) -> Case:
    """16 rows of `halves` half-precision numbers, filled 16 bytes at a time, read by ldmatrix.x4."""
    chunks = halves // 8
    return Case(
        f"""
extern "C" __global__ void k(const uint4 *in, uint4 *out) {{
    __shared__ __align__(128) unsigned short tile[16][{halves}];
    int lane = threadIdx.x;
    for (int i = lane; i < 16 * {chunks}; i += 32)
        *(uint4 *)&tile[i / {chunks}][i % {chunks} * 8] = in[i];
    __syncthreads();
    for (int c = 0; c < {halves}; c += 16) {{
        uint4 r;
        unsigned at = (unsigned)__cvta_generic_to_shared(&tile[lane % 16][c + lane / 16 * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%0, %1, %2, %3}}, [%4];"
                     : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "r"(at) : "memory");
        out[c * 2 + lane] = r;
    }}
}}
""",
        (32,),
        ((8 * halves, "uint32"), (8 * halves, "uint32")),
    )


# As a compiler of blocks transposes one: 16 bytes at a time along rows, back 4 bytes at a time down columns.
# The loads of a thread are 4 rows apart, so that nobody can join them.
BLOCK_TRANSPOSE = Case(
    """
extern "C" __global__ void k(const float4 *in, float *out) {
    __shared__ __align__(16) float tile[32][32];
    int t = threadIdx.x;
    *(float4 *)&tile[t / 8][t % 8 * 4] = in[t];
    __syncthreads();
    for (int i = 0; i < 4; ++i)
        out[(t / 32 + i * 8) * 32 + t % 32] = tile[t % 32][t / 32 + i * 8];
}
""",
    (256,),
    ((1024, "float32"), (1024, "float32")),
)

# The same with neighbouring loads, which the compiler joins where it sees that they are neighbours.
JOINED_LOADS = Case(
    BLOCK_TRANSPOSE.text.replace("t / 32 + i * 8", "t / 32 * 4 + i"),
    BLOCK_TRANSPOSE.block,
    BLOCK_TRANSPOSE.arrays,
)


def copied_tile(level: str, padding: int = 0) -> Case:
    """32 rows of 64 half-precision numbers, brought 16 bytes at a time by cp.async, read by ldmatrix.x4.

    level: "cg", past the L1 cache, or "ca".
    """
    return Case(
        f"""
extern "C" __global__ void k(const uint4 *in, uint4 *out) {{
    __shared__ __align__(128) unsigned short tile[32][64 + {padding}];
    int t = threadIdx.x;
    for (int i = t; i < 256; i += 64) {{
        unsigned to = (unsigned)__cvta_generic_to_shared(&tile[i / 8][i % 8 * 8]);
        asm volatile("cp.async.{level}.shared.global [%0], [%1], 16;" :: "r"(to), "l"(in + i) : "memory");
    }}
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    for (int c = 0; c < 64; c += 16) {{
        uint4 r;
        unsigned at = (unsigned)__cvta_generic_to_shared(&tile[t / 32 * 16 + t % 16][c + t % 32 / 16 * 8]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%0, %1, %2, %3}}, [%4];"
                     : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "r"(at) : "memory");
        out[c * 4 + t] = r;
    }}
}}
""",
        (64,),
        ((1024, "uint32"), (1024, "uint32")),
    )
