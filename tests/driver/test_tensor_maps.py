"""Tensor maps that a program encodes: their bytes, what the driver refuses, and copies by them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memsim.argument_types.array_tables import USED
from memsim.cli import main
from memsim.driver.native_build import libraries
from memsim.driver.program_textures import ASKED, UnsupportedMap, encode_tensor_map

RECORDED = json.loads((Path(__file__).parents[1] / "state/data/tensor_maps_h200.json").read_text())["maps"]


def question(one: dict[str, Any], **other: Any) -> bytes:
    """`struct tensor_map` of a recorded map."""
    asked = {"steps_of_elements": [1] * 5, "interleave": 0, **one, **other}
    rank = len(asked["extents"])

    def filled(numbers: list[int], count: int) -> list[int]:
        return [*numbers, *[0] * (count - len(numbers))]

    return ASKED.pack(
        asked["address"],
        *filled(asked["extents"], 5),
        *filled(asked["steps"], 4),
        *filled(asked["box"], 5),
        *asked["steps_of_elements"],
        *(asked["kind"], rank, asked["interleave"], asked["swizzle"], asked["fill"], 0),
    )


PLAIN = [one for one in RECORDED if not one["fill"] and one["kind"] < 10]
GOOD = {
    "kind": 7,
    "address": 4096,
    "extents": [80, 40],
    "steps": [320],
    "box": [32, 16],
    "swizzle": 0,
    "fill": 0,
}


def test_they_have_the_bytes_that_the_driver_of_an_h200_gave_them() -> None:
    assert len(PLAIN) > 30
    for one in PLAIN:
        found = encode_tensor_map(question(one))
        assert found is not None and found[:USED] == bytes.fromhex(one["bytes"])[:USED]


@pytest.mark.parametrize("field", ["address", "steps"])
def test_where_a_tensor_lies_is_a_multiple_of_16_bytes(field: str) -> None:
    assert encode_tensor_map(question(GOOD)) is not None
    assert encode_tensor_map(question(GOOD, **{field: 4104 if field == "address" else [324]})) is None


@pytest.mark.parametrize(
    "other",
    [
        {"box": [31, 16]},  # rows of 124 bytes
        {"box": [32, 257]},
        {"box": [32, 0]},
        {"extents": [80, 0]},
        {"swizzle": 1},  # rows of 128 bytes in a span of 32
    ],
)
def test_what_the_driver_refuses_is_refused(other: dict[str, Any]) -> None:
    assert encode_tensor_map(question(GOOD, **other)) is None


@pytest.mark.parametrize(
    "other",
    [
        {"kind": 10},
        {"kind": 11},
        {"fill": 1},
        {"interleave": 1},
        {"steps_of_elements": [2, 1, 1, 1, 1]},
        {"swizzle": 4},
    ],
)
def test_what_is_not_executed_is_told(other: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedMap, match="is not supported"):
        encode_tensor_map(question(GOOD, **other))


def test_a_map_gets_another_address() -> None:
    first = encode_tensor_map(question(GOOD))
    assert first is not None
    assert encode_tensor_map((8192).to_bytes(8, "little") + first) == encode_tensor_map(
        question(GOOD, address=8192)
    )
    assert encode_tensor_map((8200).to_bytes(8, "little") + first) is None


SOURCE = """\
#include <cuda.h>
#include <cuda/barrier>
#include <cuda_runtime.h>
namespace copies = cuda::device::experimental;
using barrier = cuda::barrier<cuda::thread_scope_block>;
struct Maps { int unused; CUtensorMap to; };
const int WIDTH = 80, HEIGHT = 40, FIRST = 30;

__global__ void change(const __grid_constant__ CUtensorMap from, const __grid_constant__ Maps maps)
{
    __shared__ alignas(128) float tile[16][32];
    __shared__ barrier loaded;
    if (threadIdx.x == 0) {
        init(&loaded, blockDim.x);
        copies::fence_proxy_async_shared_cta();
    }
    __syncthreads();
    barrier::arrival_token token;
    if (threadIdx.x == 0) {
        copies::cp_async_bulk_tensor_2d_global_to_shared(&tile, &from, blockIdx.x * 32, FIRST, loaded);
        token = cuda::device::barrier_arrive_tx(loaded, 1, sizeof tile);
    } else token = loaded.arrive();
    loaded.wait(std::move(token));
    for (int i = threadIdx.x; i < 512; i += blockDim.x) tile[i / 32][i % 32] = 2 * tile[i / 32][i % 32] + 1;
    copies::fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0) {
        copies::cp_async_bulk_tensor_2d_shared_to_global(&maps.to, blockIdx.x * 32, FIRST, &tile);
        copies::cp_async_bulk_commit_group();
        copies::cp_async_bulk_wait_group_read<0>();
    }
}
int main()
{
    float *a, *b;
    cudaMallocManaged(&a, WIDTH * HEIGHT * sizeof(float));
    cudaMallocManaged(&b, WIDTH * HEIGHT * sizeof(float));
    for (int i = 0; i < WIDTH * HEIGHT; i++) { a[i] = i; b[i] = -1; }
    CUtensorMap from;
    Maps maps;
    cuuint64_t extents[2] = {WIDTH, HEIGHT}, step = WIDTH * sizeof(float);
    cuuint32_t box[2] = {32, 16}, steps[2] = {1, 1};
    auto encode = [&](CUtensorMap *map) {
        return cuTensorMapEncodeTiled(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, a, extents, &step, box, steps,
            CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    };
    if (encode(&from) || encode(&maps.to) || cuTensorMapReplaceAddress(&maps.to, b)) return 2;
    step += 4;
    CUtensorMap uneven;
    if (encode(&uneven) != CUDA_ERROR_INVALID_VALUE) return 3;
    change<<<3, 128>>>(from, maps);
    if (cudaDeviceSynchronize()) return 4;
    for (int i = 0; i < WIDTH * HEIGHT; i++) if (b[i] != (i < FIRST * WIDTH ? -1 : 2 * a[i] + 1)) return 1;
    return 0;
}
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not (shutil.which("cc") and shutil.which("nvcc")),
    reason="needs Linux, a C compiler and nvcc",
)
@pytest.mark.slow
def test_a_program_copies_by_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """One map is a parameter, the other a field of one; boxes end behind the tensor."""
    source, program = tmp_path / "copies.cu", tmp_path / "copies"
    source.write_text(SOURCE)
    linked = [f"-L{libraries()}", "-lcuda"]
    command = ["nvcc", "-arch=sm_90a", "-cudart", "shared", source, "-o", program, *linked]
    subprocess.run(command, check=True, capture_output=True)
    assert main(["exec", "--analyze", "--sanitize", "--", str(program)]) == 0
    told = capfd.readouterr().err
    assert "change: conflict-free: 96 shared wavefronts" in told
    assert "change: no error found" in told
