"""The live way, with the emulator as the GPU; and on a GPU, with `-m gpu`."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim.errors import MemsimError
from memsim.kernels import compiled
from memsim.validate import live, target
from memsim.validate.device import Device
from memsim.validate.profiler import Profiler
from memsim.validate.replay import replay
from memsim.validate.report import Profile
from tests.validate.conftest import recorded
from tests.validate.fake_gpu import (
    CUDARuntimeError,
    FakeGpu,
    OutOfMemoryError,
    add_little,
    leave_out,
    spoiled,
)

SMALL = {"kernel_v4": (67, 40, 20), "sgemm_128x128x8_texld": (40, 36, 12), "transpose_xor": (40, 33)}


def plan(folder: Path, kernel: str, size: Sequence[int]) -> tuple[str, str]:
    path = folder / "plan.json"
    path.write_text(json.dumps([{"kernel": kernel, "size": list(size), "seed": 0}]))
    return str(path), str(folder / "result.json")


@pytest.mark.parametrize("kernel", SMALL)
@pytest.mark.usefixtures("any_gpu")
def test_the_target_runs_and_checks(kernel: str, tmp_path: Path) -> None:
    arguments = plan(tmp_path, kernel, SMALL[kernel])
    assert target.main(arguments) == 0
    (done,) = json.loads(Path(arguments[1]).read_text())["results"]
    assert done["right"] and done["kernel"] == kernel
    assert (done["largest_error"] == 0.0) == kernel.startswith("transpose")


def test_only_the_launch_is_profiled(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    profiled = []

    @contextlib.contextmanager
    def profile() -> Iterator[None]:
        before = len(gpu.launched)
        yield
        profiled.append(gpu.launched[before:])

    monkeypatch.setattr(sys.modules["cupyx.profiler"], "profile", profile)
    target.run("transpose_xor", SMALL["transpose_xor"], 0)
    assert profiled == [["transpose_xor"]] == [gpu.launched]


@pytest.mark.parametrize("spoil", [leave_out, add_little])
@pytest.mark.parametrize("kernel", ["kernel_v4", "transpose_xor"])
def test_a_wrong_result_is_seen(
    kernel: str, spoil: Callable[[np.ndarray], None], gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "function", spoiled(spoil))
    done = target.run(kernel, SMALL[kernel], 0)
    assert not done["right"]
    assert (done["largest_error"] is None) == (spoil is leave_out)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            CUDARuntimeError("cudaErrorUnsupportedPtxVersion"),
            "does not run on this GPU: cudaErrorUnsupported",
        ),
        (OutOfMemoryError("out of memory allocating 1 TB"), r"does not fit this GPU"),
    ],
)
def test_what_cuda_refuses(
    error: Exception, says: str, gpu: FakeGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, entry: str) -> Any:
        raise error

    monkeypatch.setattr(gpu, "function", refuse)
    arguments = plan(tmp_path, "kernel_v4", (64, 64, 8))
    assert target.main(arguments) == 2
    with pytest.raises(MemsimError, match=says):
        live._raise_what_the_target_says(Path(arguments[1]))


@pytest.fixture
def machine(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """A machine whose profiler gives what an H100 gave; the metrics of each run are kept."""
    asked: list[list[str]] = []

    def profile(
        profiler: Profiler, report: Path, what: Sequence[str], command: Sequence[str], launched: Any
    ) -> str:
        asked.append([*what])
        assert target.main(command[-2:]) == 0
        report.write_text(Path(command[-2]).read_text())
        for _ in json.loads(report.read_text()):
            launched()
        return ""

    def read(report: Path) -> list[Profile]:
        names = [step["kernel"] for step in json.loads(report.read_text())]
        run = len(asked) - 1
        return [recorded(name).profiles[min(run, len(recorded(name).profiles) - 1)] for name in names]

    device = Device("NVIDIA H100 80GB HBM3", "9.0", "580.159.04", "13.0", "14.2.0")
    monkeypatch.setattr(live, "this_device", lambda: device)
    monkeypatch.setattr(live, "find_profiler", lambda: Profiler(Path("ncu"), "2025.3.1.0"))
    monkeypatch.setattr(live, "profile", profile)
    monkeypatch.setattr(live, "read_report", read)
    return asked


def test_measuring_makes_one_recording_of_each_launch(machine: list[list[str]]) -> None:
    kernels = [compiled()["transpose_xor"], compiled()["kernel_v1"]]
    shares: list[float] = []
    xor, v1 = live.measure([(kernels[0], (64, 64)), (kernels[1], (32, 32, 8))], shares.append)
    assert (xor.kernel, xor.size, xor.launch.grid) == ("transpose_xor", (64, 64), (2, 2, 1))
    assert xor.result.right and v1.result.right and xor.ncu == "2025.3.1.0"
    assert xor.ptx == live.digest(kernels[0].ptx()) and list(xor.sources) == ["kernels/transpose_xor.cu"]
    # one run for all, then one for each way into shared memory that some kernel has
    assert machine[0][:2] == ["--section", "SourceCounters"]
    assert [run[0] for run in machine[1:]] == ["--metrics", "--metrics"]
    assert ["op_ld" in machine[1][1], "op_st" in machine[2][1]] == [True, True]
    assert [len(xor.profiles), len(v1.profiles)] == [3, 1]  # kernel_v1 uses no shared memory
    assert shares == sorted(shares) and 0 < shares[0] < 1


def test_another_kernel_than_the_one_that_ran(
    machine: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = recorded("kernel_v1").profiles[0]
    monkeypatch.setattr(live, "read_report", lambda report: [other])
    with pytest.raises(MemsimError, match="ncu measured kernel_v1 where transpose_xor ran"):
        live.measure([(compiled()["transpose_xor"], (64, 64))])


def test_what_the_target_says_goes_before_what_ncu_says(
    machine: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def profile(profiler: Any, report: Path, what: Any, command: Sequence[str], launched: Any) -> str:
        Path(command[-1]).write_text(json.dumps({"error": "no room", "hint": None}))
        raise MemsimError("The application returned an error code (2)")

    monkeypatch.setattr(live, "profile", profile)
    with pytest.raises(MemsimError, match="no room"):
        live.measure([(compiled()["transpose_xor"], (64, 64))])


def test_an_unknown_chip_is_refused_before_anything_runs(
    machine: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Device("NVIDIA GeForce RTX 4090", "8.9", "580", "13.0", "14.2.0")
    monkeypatch.setattr(live, "this_device", lambda: device)
    with pytest.raises(MemsimError, match="no measured rules for NVIDIA GeForce RTX 4090"):
        live.measure([(compiled()["transpose_xor"], (64, 64))])
    assert not machine


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", SMALL)
def test_on_a_gpu(kernel: str) -> None:
    (recording,) = live.measure([(compiled()[kernel], SMALL[kernel])])
    assert recording.result.right
    assert "unknown" not in replay(recording).differences.values()
