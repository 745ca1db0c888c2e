"""The live way, with the emulator as the GPU; and on a GPU, with `-m gpu`."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memsim
from lab.rates import run_rates
from memsim.analysis import analyze_trace
from memsim.api.running import trace_job
from memsim.argument_types import ArrayArg, Pointers, TensorMap
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.kernels import catalog
from memsim.launch import Launch
from memsim.validate import live, run_cubin
from memsim.validate import profiler as ncu
from memsim.validate.compare_instructions import DIFFERS, compare_code
from memsim.validate.device import Device
from memsim.validate.live import in_words
from memsim.validate.profiler import Profiler
from memsim.validate.profiles import CodeProfile
from memsim.validate.run_cubin import pack, unpack
from tests.validate.fake_gpu import (
    CubinFunction,
    CUDARuntimeError,
    FakeGpu,
    OutOfMemoryError,
    add_little,
    leave_out,
)
from tests.validate.profiles import profiled

SMALL = {
    "kernel_v4": (67, 40, 20),
    "sgemm_128x128x8_texld": (40, 36, 12),
    "transpose_xor": (40, 33),
    "tile_32x64x32": (36, 68, 72, 2),
    "sum_of_parts": (40, 33, 7),
}
SOURCE = """
struct Pair { const float *from; float factor; };
extern "C" __global__ void scale(float *to, Pair pair, double add, char sign) {
    extern __shared__ float tile[];
    tile[threadIdx.x] = pair.from[blockIdx.x * 32 + threadIdx.x];
    __syncthreads();
    to[blockIdx.x * 32 + threadIdx.x] = sign * tile[31 - threadIdx.x] * pair.factor + (float)add;
}
"""


def launch_of(kernel: str) -> Job:
    return catalog()[kernel].job(SMALL[kernel])


def plan(folder: Path, *launches: Job) -> list[str]:
    steps = [asdict(live.step_of(launch, number, folder)) for number, launch in enumerate(launches)]
    (folder / run_cubin.PLAN).write_text(json.dumps(steps))
    return [str(folder)]


@pytest.mark.some(1)
@pytest.mark.parametrize("kernel", SMALL)
@pytest.mark.usefixtures("any_gpu")
def test_the_program_runs_and_checks(kernel: str, tmp_path: Path) -> None:
    assert run_cubin.main(plan(tmp_path, launch_of(kernel))) == 0
    (done,) = ncu._answer_in(tmp_path)
    assert done["right"]
    assert (done["largest_error"] == 0.0) == kernel.startswith("transpose")


def test_any_kernel_with_any_arguments(gpu: FakeGpu, tmp_path: Path) -> None:
    source = tmp_path / "scale.cu"
    source.write_text(SOURCE)
    kernel = memsim.load(source)["scale"]
    given = np.arange(64, dtype=np.float32)
    args = [ArrayArg((64,), fill="zeros"), [given, np.float32(2)], 0.5, -1]
    launch = Job(kernel, Launch((2, 1, 1), (32, 1, 1), 128), args)
    assert run_cubin.main(plan(tmp_path, launch)) == 0
    assert ncu._answer_in(tmp_path) == [None]
    result = next(array for array in gpu.lying.values() if array.any() and not np.array_equal(array, given))
    expected = -2 * given.reshape(2, 32)[:, ::-1].ravel() + 0.5
    assert np.array_equal(result, expected)


BOX = """
struct alignas(64) Map { char bytes[128]; };

// The sum of eight elements of a row, of an array of the table and `n` becomes a box of the tensor.
extern "C" __global__ void last(const __grid_constant__ Map map, const void *row, const float **table, int n)
{
    __shared__ alignas(128) float box[2][4];
    if (threadIdx.x < 8)
        box[threadIdx.x / 4][threadIdx.x % 4] = ((const float *)row)[threadIdx.x] + table[1][threadIdx.x] + n;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(box));
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
                     :: "l"(&map), "r"(4), "r"(1), "r"(from) : "memory");
        asm volatile("cp.async.bulk.commit_group;\\n\\tcp.async.bulk.wait_group 0;" ::: "memory");
    }
}
"""


def test_views_tables_and_tensor_maps_share_memory_on_the_gpu(gpu: FakeGpu, tmp_path: Path) -> None:
    source = tmp_path / "last.cu"
    source.write_text(BOX)
    kernel = memsim.load(source, arch="sm_90a")["last"]
    whole = np.arange(128, dtype=np.float32).reshape(8, 16)
    other = np.full(8, 1000, np.float32)
    tensor = TensorMap(whole[2:6, 4:12], (2, 4))
    args = [tensor, whole[7, 8:], Pointers([None, other]), 5]
    launch = Job(kernel, Launch((1, 1, 1), (32, 1, 1), 0), args)
    assert run_cubin.main(plan(tmp_path, launch)) == 0
    (result,) = (array for array in gpu.lying.values() if array.nbytes == whole.nbytes)
    expected = whole.copy()
    expected[3:5, 8:12] = (expected[7, 8:] + 1005).reshape(2, 4)
    assert np.array_equal(result.view(np.float32).reshape(8, 16), expected)


def test_arguments_survive_the_way_to_another_process(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    args = [
        ArrayArg((4, 2), "float16", "iota"),
        array,
        (array, np.float32(1.5)),
        b"\x01\x02",
        np.uint8(7),
        3,
        0.5,
    ]
    found = unpack(json.loads(json.dumps(pack(args, tmp_path))), tmp_path)
    assert found[0] == args[0] and found[3:] == args[3:]
    assert np.array_equal(found[1], array) and found[1].dtype == array.dtype
    assert np.array_equal(found[2][0], array) and found[2][1] == args[2][1]  # type: ignore[index]
    said = [in_words(value) for value in [*args, ArrayArg((8,), seed=3), bytes(40)]]
    assert said[:4] == ["f16[4,2]=iota", "i16[2,3]", "i16[2,3]+f32(1.5)", "2 bytes 0x0102"]
    assert said[4:8] == ["u8(7)", "3", "0.5", "f32[8] seed 3"]
    assert said[8] == f"40 bytes 0x{'00' * 32}..."


def test_only_the_launch_is_profiled(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    profiled_launches = []

    @contextlib.contextmanager
    def profile() -> Iterator[None]:
        before = len(gpu.launched)
        yield
        profiled_launches.append(gpu.launched[before:])

    monkeypatch.setattr(sys.modules["cupyx.profiler"], "profile", profile)
    assert run_cubin.main(plan(tmp_path, launch_of("transpose_xor"))) == 0
    assert profiled_launches == [["transpose_xor"]] == [gpu.launched]


@pytest.mark.parametrize("spoil", [leave_out, add_little])
@pytest.mark.parametrize("kernel", ["kernel_v4", "transpose_xor"])
def test_a_wrong_result_is_seen(
    kernel: str,
    spoil: Callable[[np.ndarray], None],
    gpu: FakeGpu,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    class Wrong(CubinFunction):
        def __call__(self, *arguments: Any, **options: Any) -> None:
            super().__call__(*arguments, **options)
            spoil(self.read(arguments[2][2 if len(arguments[2]) > 4 else 1].tobytes()))

    monkeypatch.setattr(gpu, "function", lambda path, entry: Wrong(path, entry, gpu.lying))
    assert run_cubin.main(plan(tmp_path, launch_of(kernel))) == 0
    (done,) = ncu._answer_in(tmp_path)
    assert not done["right"]
    assert (done["largest_error"] is None) == (spoil is leave_out)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (CUDARuntimeError("cudaErrorInvalidImage"), "does not run on this GPU: cudaErrorInvalidImage"),
        (OutOfMemoryError("out of memory allocating 1 TB"), r"does not fit this GPU"),
    ],
)
def test_what_cuda_refuses(
    error: Exception, says: str, gpu: FakeGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, entry: str) -> Any:
        raise error

    monkeypatch.setattr(gpu, "function", refuse)
    assert run_cubin.main(plan(tmp_path, launch_of("kernel_v4"))) == 2
    with pytest.raises(MemsimError, match=says):
        ncu._answer_in(tmp_path)


@pytest.fixture
def machine(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """A machine whose profiler gives what memsim predicts; the metrics of each run are kept."""
    asked: list[list[str]] = []

    def profile(
        profiler: Profiler, report: Path, what: Sequence[str], command: Sequence[str], launched: Any
    ) -> str:
        asked.append([*what])
        assert run_cubin.main(command[-1:]) == 0
        report.write_text((Path(command[-1]) / run_cubin.PLAN).read_text())
        for _ in json.loads(report.read_text()):
            launched()
        return ""

    def read(report: Path, lines: bool) -> list[CodeProfile]:
        steps = json.loads(report.read_text())
        launches = [catalog()[step["catalogue"]].job(step["size"]) for step in steps]
        alone = len(asked) > 1
        return [profiled(launch, asked[-1][-1].split(",") if alone else None) for launch in launches]

    device = Device("NVIDIA H100 80GB HBM3", "9.0", "580.159.04", "13.0", "14.2.0")
    monkeypatch.setattr(live, "this_device", lambda: device)
    monkeypatch.setattr(live, "find_profiler", lambda: Profiler(Path("ncu"), "2025.3.1.0"))
    monkeypatch.setattr(ncu, "profile", profile)
    monkeypatch.setattr(ncu, "read_code_report", read)
    return asked


@pytest.mark.slow
def test_measuring_makes_one_recording_of_each_launch(machine: list[list[str]]) -> None:
    kernels = [catalog()["transpose_xor"], catalog()["kernel_v1"]]
    shares: list[float] = []
    launches = [
        kernels[0].job((64, 64)),
        kernels[1].job((32, 32, 8)),
    ]
    xor, v1 = live.measure(launches, shares.append)
    assert (xor.name, xor.extents, xor.launch.grid) == ("transpose_xor", (64, 64), (2, 2, 1))
    assert xor.result is not None and xor.result.right and xor.ncu == "2025.3.1.0"
    assert xor.code.digest == kernels[0].kernel().origin.digest and xor.code.arch == "sm_90"
    assert xor.launch.arguments == ("f32[64,64]", "f32[64,64]=zeros", "64", "64")
    # one run for all, then one for each way into shared memory that some kernel has
    assert machine[0][:2] == ["--section", "SourceCounters"]
    assert [run[0] for run in machine[1:]] == ["--metrics", "--metrics"]
    assert ["op_ld" in machine[1][1], "op_st" in machine[2][1]] == [True, True]
    assert [len(xor.profiles), len(v1.profiles)] == [3, 1]  # kernel_v1 uses no shared memory
    assert shares == sorted(shares) and 0 < shares[0] < 1


def test_another_kernel_than_the_one_that_ran(
    machine: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = profiled(launch_of("kernel_v4"))
    monkeypatch.setattr(ncu, "read_code_report", lambda report, lines: [other])
    with pytest.raises(MemsimError, match="ncu measured kernel_v4 where transpose_xor ran"):
        live.measure([launch_of("transpose_xor")])


def test_other_instructions_than_those_that_ran(
    machine: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = launch_of("transpose_xor")
    other = replace(profiled(launch_of("kernel_v4")), kernel="transpose_xor")
    monkeypatch.setattr(ncu, "read_code_report", lambda report, lines: [other])
    with pytest.raises(MemsimError, match="other instructions for transpose_xor"):
        live.measure([launch])


def test_what_the_program_says_goes_before_what_ncu_says(
    machine: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def profile(profiler: Any, report: Path, what: Any, command: Sequence[str], launched: Any) -> str:
        (Path(command[-1]) / ncu.ANSWER).write_text(json.dumps({"error": "no room", "hint": None}))
        raise MemsimError("The application returned an error code (2)")

    monkeypatch.setattr(ncu, "profile", profile)
    with pytest.raises(MemsimError, match="no room"):
        live.measure([launch_of("transpose_xor")])


def test_the_launch_that_ended_the_profiler_is_numbered(
    machine: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended after one of two; what ended after both is nobody's fault."""
    ended = 1

    def profile(profiler: Any, report: Path, what: Any, command: Any, launched: Callable[[], None]) -> str:
        for _ in range(ended):
            launched()
        raise MemsimError("ncu failed (exit code 9)")

    monkeypatch.setattr(ncu, "profile", profile)
    for found in ("this_device", "find_profiler"):
        monkeypatch.setattr(run_rates, found, getattr(live, found))
    jobs = [launch_of("transpose_xor"), launch_of("kernel_v4")]
    with pytest.raises(run_rates.NotMeasured, match="exit code 9") as caught:
        run_rates.count(jobs, ["smsp__inst_executed.sum"])
    assert caught.value.number == 1
    ended = 2
    with pytest.raises(MemsimError, match="exit code 9") as other:
        run_rates.count(jobs, ["smsp__inst_executed.sum"])
    assert not isinstance(other.value, run_rates.NotMeasured)


def test_an_unknown_chip_is_refused_before_anything_runs(
    machine: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Device("Tesla V100-SXM2-16GB", "7.0", "580", "13.0", "14.2.0")
    monkeypatch.setattr(live, "this_device", lambda: device)
    with pytest.raises(MemsimError, match="no rules for Tesla V100"):
        live.measure([launch_of("transpose_xor")])
    assert not machine


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", SMALL)
def test_on_a_gpu(kernel: str) -> None:
    launch = launch_of(kernel)
    (recording,) = live.measure([launch])
    assert recording.result is not None and recording.result.right
    analysis = analyze_trace(trace_job(launch))
    assert compare_code(recording.profiles, analysis).verdict != DIFFERS
