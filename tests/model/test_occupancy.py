"""Resident blocks: NVIDIA's rules, what a cubin says, and cliffs."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memsim
from lab.experiments import RATES
from lab.rates.judge_rates import RateLaunch
from memsim.api import loading
from memsim.arch import ARCHS, SM_90, Arch
from memsim.arch.chip import chip_number
from memsim.compile.toolkit import header_folders
from memsim.data import data_folder
from memsim.kernels import catalog
from memsim.model.occupancy import MOST_REGISTERS, Needs, next_cliffs, occupancy, room_left
from tests.simt.cuda import kernels_of

LIMITS = ("registers", "shared memory", "warps", "blocks", "barriers")


@pytest.mark.parametrize(
    ("needs", "limits"),
    [  # as ncu counted on an H200, the multiprocessor's shared memory being all that it can be
        (Needs(256, 110, 8192), (2, 25, 8, 32, 32)),
        (Needs(1024, 16, 4096), (4, 45, 2, 32, 32)),
        (Needs(256, 165, 24576), (1, 9, 8, 32, 32)),
        (Needs(128, 16, 768, 16), (32, 130, 16, 32, 4)),
        (Needs(5, 16, 20), (128, 202, 64, 32, 32)),
        (Needs(288, 40, 8264), (5, 24, 7, 32, 32)),
        (Needs(1024, 24, 0, 0), (2, 228, 2, 32, 32)),
    ],
)
def test_limits_are_those_of_ncu(needs: Needs, limits: tuple[int, ...]) -> None:
    found = occupancy(needs, SM_90)
    assert tuple(found.limits[name] for name in LIMITS) == limits
    assert found.blocks == min(limits)
    assert all(found.limits[name] == found.blocks for name in found.limited_by)


RECORDED = RATES.newest(data_folder("traces"), "nvidia-h200").launches


@pytest.mark.parametrize("launch", RECORDED, ids=lambda launch: launch.name)
def test_limits_are_those_that_were_recorded(launch: RateLaunch) -> None:
    """ncu's limit by shared memory is for the part of the L1 cache that the driver set aside."""
    of = {name.removeprefix("launch__"): count for name, count in launch.counters.items()}
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    needs = Needs(
        *(threads, of["registers_per_thread"], of["shared_mem_per_block_static"], of["barrier_count"])
    )
    found = occupancy(needs, SM_90)
    for name in ("registers", "warps", "blocks", "barriers"):
        assert found.limits[name] == of[f"occupancy_limit_{name}"]
    shared = found.limits["shared memory"]
    assert shared is not None and shared >= of["occupancy_limit_shared_mem"]
    assert found.blocks == min(count for name, count in of.items() if name.startswith("occupancy_limit"))


def test_cubins_of_the_catalogue_say_what_the_driver_gave() -> None:
    compared = []
    for launch in (one for one in RECORDED if one.name in catalog()):
        loaded = catalog()[launch.name].job().loaded
        held = loaded.resources
        if loaded.origin.digest != launch.digest:
            continue  # compiled from another source since
        assert held is not None
        assert held.registers == launch.counters["launch__registers_per_thread"]
        assert held.static_shared == launch.counters["launch__shared_mem_per_block_static"]
        assert held.barriers == launch.counters["launch__barrier_count"]
        compared.append(launch.name)
    assert len(compared) >= 30


def test_too_many_registers_for_a_block_leave_none() -> None:
    assert occupancy(Needs(1024, 64, 0), SM_90).blocks == 1
    assert occupancy(Needs(1024, 65, 0), SM_90).blocks == 0
    assert occupancy(Needs(32, 16, SM_90.shared_block_bytes + 1), SM_90).blocks == 0


def test_a_cliff_is_the_least_that_has_to_go() -> None:
    now = occupancy(Needs(256, 110, 8192), SM_90).blocks
    ((less, blocks),) = next_cliffs(Needs(256, 110, 8192), SM_90)
    assert (less.registers, blocks, now) == (80, 3, 2)
    assert occupancy(replace(less, registers=81), SM_90).blocks == now
    assert next_cliffs(Needs(1024, 16, 4096), SM_90) == ()  # warps decide


def test_shared_memory_has_its_cliffs_too() -> None:
    needs = Needs(128, 32, 60_000)
    ((less, blocks),) = next_cliffs(needs, SM_90)
    assert (occupancy(needs, SM_90).blocks, blocks) == (3, 4)
    assert occupancy(less, SM_90).blocks == 4
    assert occupancy(replace(less, shared_bytes=less.shared_bytes + 1), SM_90).blocks == 3


@pytest.mark.parametrize("chip", ARCHS.values(), ids=str)
@pytest.mark.parametrize("needs", [Needs(256, 100, 8192), Needs(128, 32, 60_000), Needs(32, 16, 0)])
def test_the_room_left_is_the_most_that_changes_nothing(needs: Needs, chip: Arch) -> None:
    now, most = occupancy(needs, chip).blocks, room_left(needs, chip)
    more_registers, more_shared = (
        replace(needs, registers=most.registers + 1),
        replace(needs, shared_bytes=most.shared_bytes + 1),
    )
    assert occupancy(replace(needs, registers=most.registers), chip).blocks == now
    assert occupancy(replace(needs, shared_bytes=most.shared_bytes), chip).blocks == now
    assert most.registers == MOST_REGISTERS or occupancy(more_registers, chip).blocks < now
    assert occupancy(more_shared, chip).blocks < now


def test_no_more_is_looked_for_than_a_thread_or_a_block_can_have() -> None:
    """A file that is damaged may say any number: what is impossible is not walked down from."""
    assert next_cliffs(Needs(128, 1 << 60, 1 << 60), SM_90) == ()  # neither alone would help
    ((fewer, blocks),) = next_cliffs(Needs(128, 1 << 60, 1000), SM_90)
    assert (fewer.registers, blocks) == (255, 2)
    ((less, blocks),) = next_cliffs(Needs(128, 32, 1 << 60), SM_90)
    assert (less.shared_bytes, blocks) == (SM_90.shared_block_bytes, 1)


@pytest.mark.parametrize(
    ("name", "registers", "static", "barriers"),
    [("kernel_v4", 110, 8192, 1), ("guide_v2", 32, 0, 0), ("sgemm_128x256x8", 255, 32768, 1)],
)
def test_a_cubin_says_what_a_block_takes(name: str, registers: int, static: int, barriers: int) -> None:
    """As ncu's launch__registers_per_thread and others show them for what ships."""
    held = catalog()[name].job().loaded.resources
    assert held is not None
    assert (held.registers, held.static_shared, held.barriers) == (registers, static, barriers)


def test_dynamic_shared_memory_counts() -> None:
    text = (
        'extern "C" __global__ void dynamic(float *data) {'
        " extern __shared__ float held[]; held[threadIdx.x] = data[threadIdx.x];"
        " __syncthreads(); data[threadIdx.x] = held[threadIdx.x ^ 1]; }"
    )
    kernel = kernels_of(text)["dynamic"]
    args = [memsim.ArrayArg((64,))]
    found = [memsim.analyze(kernel, 1, 64, args, shared_bytes=size).bound for size in (1024, 100_000)]
    assert [bound.occupancy.blocks for bound in found if bound.occupancy] == [32, 2]


@pytest.mark.slow
def test_a_function_of_the_system_takes_its_registers(tmp_path: Path) -> None:
    file = tmp_path / "says.cu"
    file.write_text(
        '#include <cstdio>\nextern "C" __global__ void says() { if (threadIdx.x == 40) printf("here"); }'
    )
    plain = tmp_path / "plain.cu"
    plain.write_text('extern "C" __global__ void plain(int *data) { data[0] = 1; }')
    says, without = (loading.load(path)[path.stem].resources for path in (file, plain))
    assert says is not None and without is not None
    assert (says.registers, without.registers) == (32, 16)


FOLDERS = [*header_folders(), *Path("/usr/local").glob("cuda*/include")]
HEADERS = [folder / "cuda_occupancy.h" for folder in FOLDERS if (folder / "cuda_occupancy.h").is_file()]
HEADER = next((header for header in HEADERS if "case 12:" in header.read_text()), None)  # it knows all chips
ORACLE = r"""
#include <cuda_occupancy.h>
extern "C" void limits(const int *about, int threads, int registers, int shared, int barriers, int *out) {
    cudaOccDeviceProp chip; cudaOccFuncAttributes code; cudaOccDeviceState state; cudaOccResult found;
    chip.computeMajor = about[0]; chip.computeMinor = about[1]; chip.warpSize = 32;
    chip.maxThreadsPerBlock = 1024; chip.maxThreadsPerMultiprocessor = about[2];
    chip.regsPerBlock = 65536; chip.regsPerMultiprocessor = 65536;
    chip.sharedMemPerBlock = 49152; chip.sharedMemPerMultiprocessor = about[3]; chip.numSms = 132;
    chip.sharedMemPerBlockOptin = about[4]; chip.reservedSharedMemPerBlock = about[5];
    code.maxThreadsPerBlock = 1024; code.numRegs = registers; code.sharedSizeBytes = 0;
    code.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN; code.maxDynamicSharedSizeBytes = about[4];
    code.numBlockBarriers = barriers;
    state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
    cudaOccMaxActiveBlocksPerMultiprocessor(&found, &chip, &code, &state, threads, shared);
    out[0] = found.blockLimitRegs; out[1] = found.blockLimitSharedMem; out[2] = found.blockLimitWarps;
    out[3] = found.activeBlocksPerMultiprocessor;
}
"""


@pytest.fixture(scope="module")
def nvidia(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """NVIDIA's own calculator, compiled."""
    if HEADER is None or shutil.which("g++") is None:
        pytest.skip("no cuda_occupancy.h of CUDA 13, or no g++ here")
    folder = tmp_path_factory.mktemp("occupancy")
    (folder / "oracle.cpp").write_text(ORACLE)
    command = ["g++", "-shared", "-fPIC", f"-I{HEADER.parent}", "oracle.cpp", "-o", "oracle.so"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "oracle.so"))


@given(
    st.sampled_from([*ARCHS.values()]),
    *(st.integers(1, 1024), st.integers(16, 255), st.integers(0, 232_448), st.integers(0, 16)),
)
def test_it_is_nvidias_calculator(
    nvidia: ctypes.CDLL, chip: Arch, threads: int, registers: int, shared: int, barriers: int
) -> None:
    out = (ctypes.c_int * 4)()
    shared %= chip.shared_block_bytes + 1
    number = chip_number(chip.name)
    about = (ctypes.c_int * 6)(
        *(number // 10, number % 10, chip.warp * chip.resident_warps),
        *(chip.shared_multiprocessor_bytes, chip.shared_block_bytes, chip.shared_reserved_bytes),
    )
    nvidia.limits(about, threads, registers, shared, barriers, out)
    found = occupancy(Needs(threads, registers, shared, barriers), chip)
    limits = [found.limits[name] for name in LIMITS[:3]]
    assert [2**31 - 1 if limit is None else limit for limit in limits] == list(out[:3])
    assert found.blocks == out[3]
