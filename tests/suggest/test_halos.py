"""Tiles and their halos, staged in shared memory: stencils, convolutions, filters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memsim.analysis import Analysis
from memsim.job import Job
from memsim.suggest.halos import NAME, halos
from memsim.suggest.other_values import SAME, at_other_values
from tests.suggest.kernels import analyzed, launched

WIDTH, HEIGHT = 75, 43
PLACE = """    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
"""
PARAMETERS = "(const float *in, float *out, const float *mask, int width, int height)"
HEAD = f"#define R 2\n__global__ void k{PARAMETERS} {{\n"
CONVOLUTION = f"""{HEAD}{PLACE}    if (x >= width || y >= height) return;
    float sum = 0;
    for (int dy = -R; dy <= R; ++dy)
        for (int dx = -R; dx <= R; ++dx) {{
            int yy = y + dy, xx = x + dx;
            if (yy >= 0 && yy < height && xx >= 0 && xx < width)
                sum += in[yy * width + xx] * mask[(dy + R) * (2 * R + 1) + dx + R];
        }}
    out[y * width + x] = sum;
}}
"""
CLAMPED = CONVOLUTION.replace("if (yy >= 0 && yy < height && xx >= 0 && xx < width)", "")
JACOBI = f"""{HEAD}{PLACE}    int at = y * width + x;
    if (x > 0 && x < width - 1 && y > 0 && y < height - 1)
        out[at] = 0.25f * (in[at - 1] + in[at + 1] + in[at - width] + in[at + width]);
}}
"""
MEDIAN = f"""{HEAD}{PLACE}    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    float v[9] = {{in[(y - 1) * width + x - 1], in[(y - 1) * width + x], in[(y - 1) * width + x + 1],
                  in[y * width + x - 1], in[y * width + x], in[y * width + x + 1],
                  in[(y + 1) * width + x - 1], in[(y + 1) * width + x], in[(y + 1) * width + x + 1]}};
    for (int i = 0; i < 5; ++i)
        for (int j = i + 1; j < 9; ++j)
            if (v[j] < v[i]) {{
                float t = v[i];
                v[i] = v[j];
                v[j] = t;
            }}
    out[y * width + x] = v[4];
}}
"""
LINE = """#define R 3
__global__ void k(const unsigned char *in, float *out, const float *mask, int width, int height) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = width * height;
    float sum = 0;
    for (int k = -R; k <= R; ++k)
        if (i + k >= 0 && i + k < n) sum += in[i + k] * mask[k + R];
    if (i < n) out[i] = sum;
}
"""
FLAT = """__global__ void k(const unsigned char *in, float *out, const float *mask, int width, int height) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, row = i / width, column = i % width;
    if (row >= 1 && row < height - 1 && column >= 1 && column < width - 1)
        for (int dy = 0; dy < 3; dy++)
            for (int dx = 0; dx < 3; dx++) out[i] += in[(row - 1 + dy) * width + column - 1 + dx];
}
"""
SORTED = """template <int N>
__device__ void median(const unsigned char *in, float *out, int width, int height) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, half = N / 2;
    const unsigned row = i / width, column = i % width;
    unsigned char window[N * N];
    if (row < half || column < half || row >= height - half || column >= width - half) return;
    for (unsigned dy = 0; dy < N; dy++)
        for (unsigned dx = 0; dx < N; dx++)
            window[dy * N + dx] = in[(row - half + dy) * width + column - half + dx];
    for (unsigned first = 0; first <= N * N / 2; first++) {
        unsigned least = first;
        for (unsigned other = first + 1; other < N * N; other++)
            if (window[other] < window[least]) least = other;
        unsigned char kept = window[first];
        window[first] = window[least];
        window[least] = kept;
    }
    out[i] = window[N * N / 2];
}
__global__ void k(const unsigned char *in, float *out, const float *mask, int width, int height) {
    median<3>(in, out, width, height);
}
"""
FILLED = f"""#define TILE 16
{HEAD}{PLACE}    __shared__ float tile[TILE + 2 * R][TILE + 2 * R];
    for (int r = threadIdx.y; r < TILE + 2 * R; r += TILE)
        for (int c = threadIdx.x; c < TILE + 2 * R; c += TILE) {{
            int yy = blockIdx.y * TILE + r - R, xx = blockIdx.x * TILE + c - R;
            bool inside = yy >= 0 && yy < height && xx >= 0 && xx < width;
            tile[r][c] = inside ? in[yy * width + xx] : 0.0f;
        }}
    __syncthreads();
    float sum = 0;
    for (int dy = 0; dy <= 2 * R; ++dy)
        for (int dx = 0; dx <= 2 * R; ++dx) sum += tile[threadIdx.y + dy][threadIdx.x + dx];
    if (x < width && y < height) out[y * width + x] = sum;
}}
"""
COPIED = "#include <cuda_pipeline_primitives.h>\n" + FILLED.replace(
    "tile[r][c] = inside ? in[yy * width + xx] : 0.0f;",
    "if (inside) __pipeline_memcpy_async(&tile[r][c], &in[yy * width + xx], sizeof(float));\n"
    "            else tile[r][c] = 0;",
).replace("__syncthreads", "__pipeline_commit();\n    __pipeline_wait_prior(0);\n    __syncthreads")
CALLED = CONVOLUTION.replace("#define R 2", "").replace("R", "N")
CALLED = CALLED.replace("__global__ void k", "template <int N> __device__ void convolve")
CALLED += f"__global__ void k{PARAMETERS} {{ convolve<2>(in, out, mask, width, height); }}\n"
CLAMPS = [
    "int yy = min(max(y + dy, 0), height - 1), xx = max(0, min(x + dx, width - 1));",
    """int yy = y + dy, xx = x + dx;
            if (xx < 0) xx = 0;
            if (xx >= width) { xx = width - 1; }
            yy = yy < 0 ? 0 : yy >= height ? height - 1 : yy;""",
]


def job_of(folder: Path, text: str, block: tuple[int, ...] = (16, 16)) -> Job:
    """75 x 43 elements, which blocks cover."""
    width, height = (block[0], block[1]) if len(block) > 1 else (block[0], 1)
    grid = (-(-WIDTH // width), -(-HEIGHT // height)) if height > 1 else (-(-WIDTH * HEIGHT // width),)
    draw = np.random.default_rng(1).random
    first = draw(WIDTH * HEIGHT, np.float32)
    first = (first * 255).astype(np.uint8) if "unsigned char" in text else first
    arrays = [first, np.zeros(WIDTH * HEIGHT, np.float32), draw(8192, np.float32)]
    return launched(folder, text, [*arrays, WIDTH, HEIGHT], block, grid=grid)


def needless(analysis: Analysis) -> int:
    """The sectors of loads and copies that are not needed."""
    return sum(
        site.needless_sectors or 0
        for site in analysis.sites
        if site.op in ("load", "cp_async") and site.space == "global"
    )


@pytest.mark.some(4)
@pytest.mark.parametrize(
    ("text", "block"),
    [
        (CONVOLUTION, (16, 16)),
        *((CLAMPED.replace("int yy = y + dy, xx = x + dx;", clamp), (16, 8)) for clamp in CLAMPS),
        (JACOBI, (16, 16)),
        (MEDIAN, (8, 8)),
        (LINE, (128,)),
        (FLAT, (64,)),
        (SORTED, (128,)),  # in local memory
        (FILLED, (16, 16)),
        (COPIED, (16, 16)),
        (CALLED, (16, 16)),
        (CONVOLUTION.replace("in[yy", "__ldg(&in[yy").replace("xx]", "xx])"), (16, 16)),
        (CONVOLUTION.replace("int dy = -R; dy <= R; ++dy", "int dy = R; dy >= -R; dy--"), (10, 6)),
    ],
)
def test_each_sector_of_a_tile_is_loaded_once(text: str, block: tuple[int, ...], tmp_path: Path) -> None:
    job = job_of(tmp_path, text, block)
    before = analyzed(job)
    (done,) = halos(job, before)
    assert done.name == NAME
    was, now = (needless(each) for each in (before, done.analysis))
    assert now <= was / 10


@pytest.mark.slow
@pytest.mark.parametrize("text", [CONVOLUTION, FILLED, MEDIAN, CALLED])
def test_it_is_right_for_other_sizes_and_blocks(text: str, tmp_path: Path) -> None:
    job = job_of(tmp_path, text)
    (done,) = halos(job, analyzed(job))
    tried = [*at_other_values(job, done)]
    assert not any(one.is_wrong for one in tried), [one for one in tried if one.is_wrong]
    for name in ("width", "height"):
        assert sum(one.outcome == SAME for one in tried if one.name == name) >= 2, name


def test_extents_are_in_the_symbols_of_the_source(tmp_path: Path) -> None:
    job = job_of(tmp_path, FILLED)
    (done,) = halos(job, analyzed(job))
    assert "__shared__ float in_halo[2 * R + TILE][2 * R + TILE + 28];" in done.edit.new
    assert (
        "tile[r][c] = inside ? (in_halo_fits ? in_halo[yy - in_halo_top][xx - in_halo_left + 8]"
        in done.edit.new
    )


def test_a_place_behind_a_return_is_read_by_all_threads(tmp_path: Path) -> None:
    """The tile is loaded before any thread returns."""
    job = job_of(tmp_path, MEDIAN, (8, 8))
    (done,) = halos(job, analyzed(job))
    assert done.edit.new.index("__syncthreads();") < done.edit.new.index("return;")


@pytest.mark.some(4)
@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (CONVOLUTION, "in[yy * width + xx]", "in[(int)mask[0] + yy * width + xx]"),  # a gather
        (CONVOLUTION, "int yy = y + dy", "int yy = y + (int)mask[dx + R]"),
        (CONVOLUTION, "if (yy >= 0", "if (mask[dx + R] > 0.5f && yy >= 0"),  # as data decides
        (CONVOLUTION, "const float *in", "volatile float *in"),
        (CONVOLUTION, "float sum = 0;", "float *other = (float *)in, sum = *other = 0;"),
        (CONVOLUTION, "float sum = 0;", "in += 0 * width; float sum = 0;"),
        (JACOBI.replace("const float *in", "float *in"), "out[at] =", "in[at] ="),  # in place
        (CONVOLUTION, "xx = x + dx;", "xx = (x + dx + width) % width;"),  # around the edge
        (
            CONVOLUTION,
            "float sum = 0;",
            "__shared__ volatile float s[11500]; float sum = s[y] = 0;",
        ),  # more than fits
        (CONVOLUTION, "x + dx", "5 * x + dx"),  # elements that no other thread reads
        (CONVOLUTION, "y + dy, xx = x + dx", "y, xx = dx + R"),  # rows of threads
        (CONVOLUTION, "x + dx", "x + dx * 16"),  # columns of other iterations
        (
            FILLED.replace("+ c - R", "+ c - R + i"),
            "    for (int r",
            "for (int i = 0; i < 2; ++i) for (int r",
        ),
    ],
)
def test_what_is_no_neighbourhood_of_a_thread_stays_as_it_is(
    text: str, old: str, new: str, tmp_path: Path
) -> None:
    assert old in text
    job = job_of(tmp_path, text.replace(old, new))
    assert halos(job, analyzed(job)) == ()


@pytest.mark.slow
def test_a_radius_of_an_included_file(tmp_path: Path) -> None:
    (tmp_path / "radius.h").write_text("#define R 2\n")
    job = job_of(tmp_path, CONVOLUTION.replace("#define R 2", '#include "radius.h"'))
    (cure,) = halos(job, analyzed(job))
    assert cure.name == NAME and needless(cure.analysis) < needless(cure.before) / 10
