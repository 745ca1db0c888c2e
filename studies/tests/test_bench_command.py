"""`python -m studies.bench`: tables, recordings, and exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from memsim.targets import analyze_targets as run
from studies.bench import command
from studies.bench.recording import load_bench
from studies.tests.benches import made_up
from tests.cli.conftest import Done
from tests.validate.fake_gpu import FakeGpu, add_little, spoiled

Run = Callable[..., Done]
HOME = "nvidia-h100-80gb-hbm3"


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Traces are kept from one test to the next, and not in the user's own cache; in one process."""
    monkeypatch.setenv("MEMSIM_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.setattr(run, "processors", lambda: 1)


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str]) -> Run:
    """`bench("--json")` runs `python -m studies.bench --json` in this process."""

    def run(*arguments: str | Path) -> Done:
        code = command.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """A folder with a recording in it."""
    made_up().save(tmp_path / "traces")
    return tmp_path / "traces"


def test_help(bench: Run) -> None:
    done = bench("--help")
    assert done.code == 0
    for text in (
        "python -m studies.bench --live --record",
        "--size SIZE",
        "Exit code 1 if a kernel computes something",
    ):
        assert text in done.out
    assert "python -m studies.bench [OPTIONS] [KERNEL]..." in done.out


def test_the_newest_recording_as_a_table(bench: Run, traces: Path) -> None:
    made_up(date="2020-01-01T00:00:00Z").save(traces)
    done = bench("--traces", traces)
    assert (done.code, done.err) == (0, "")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[0] == ("Made Up GPU: the fastest at 2000 cubed is kernel_v4, 1.0 TFLOP/s, 50 % of cuBLAS")
    assert lines[2] == (
        "kernel wavefronts/1000 FLOP 1000 cubed: TFLOP/s of cuBLAS 2000 cubed: TFLOP/s of cuBLAS spread"
    )
    assert lines[3:6] == [
        "cuBLAS - 2.00 100.0 % 2.00 100.0 % 0.0 %",
        "kernel_v4 3.17 1.00 50 % 1.00 50 % 0.0 %",
        "guide_v2 0.00 0.20 10 % 0.20 10 % -",
    ]
    assert (
        "Made Up GPU, 2026-11-20T00:00:00Z (driver 580.1, CUDA 13.0, CuPy 14.2.0, cuBLAS 13.0.2)" in done.out
    )
    assert "Changed" not in done.out


def test_a_part_of_it(bench: Run, traces: Path) -> None:
    done = bench("guide_v2", "--size", "1000", "--traces", traces)
    lines = done.out.splitlines()
    assert lines[0].startswith("Made Up GPU: the fastest at 1000 cubed is guide_v2, 0.2 TFLOP/s, 10 % of")
    assert [line.split()[0] for line in lines[3:5]] == ["cuBLAS", "guide_v2"] and lines[5] == ""
    missing = bench("guide_v2", "--size", "4096", "--traces", traces)
    assert (missing.code, missing.out) == (2, "")
    assert "no time of guide_v2 at 4096,4096,4096" in missing.err
    assert "it has guide_v2, kernel_v4, at 1000,1000,1000 and 2000,2000,2000" in missing.err


def test_json(bench: Run, traces: Path) -> None:
    record = json.loads(bench("--json", "--traces", traces).out)
    assert (record["schema"], record["cublas"], record["device"]["gpu"]) == (1, "13.0.2", "Made Up GPU")
    cublas, v4, _ = record["kernels"]
    assert cublas["kernel"] == "cuBLAS" and cublas["wavefronts_per_kflop"] is None
    assert v4["wavefronts_per_kflop"] == pytest.approx(6_815_744 / 2_147_483.648)
    assert v4["speeds"][0] == {
        **{"size": [1000, 1000, 1000], "launches": 5, "median_ms": 2.0, "spread": 0.0},
        **{"tflops": pytest.approx(1.0), "of_cublas": 0.5},
    }


def test_a_kernel_that_has_changed_since_is_named(bench: Run, tmp_path: Path) -> None:
    old = made_up()
    kernels = {**old.kernels, "kernel_v4": replace(old.kernels["kernel_v4"], ptx="0" * 64)}
    replace(old, kernels=kernels).save(tmp_path)
    done = bench("--traces", tmp_path)
    assert done.code == 0
    assert "Changed since they were recorded, and not predicted: kernel_v4." in done.out
    assert "kernel_v4 - 1.00" in " ".join(done.out.split())


def test_no_recording(bench: Run, tmp_path: Path) -> None:
    done = bench("--traces", tmp_path)
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "error: there is no recording of the bench\n"
        "hint: python -m studies.bench --live --record makes one, on a machine with a GPU\n"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--record",), "--record needs --live"),
        (("--live", "--gpu", "x"), "--gpu selects among recordings"),
        (("--gpu", "nvidia-a100"), "no recording of the bench on nvidia-a100"),
        (("kernel_v44",), "did you mean"),
        (("transpose_xor", "--live"), "transpose_xor is not an SGEMM"),
        (("--live", "--size", "64,36"), "a size is one positive integer, or three as M,N,K"),
        (("sgemm_128x128x8_texld", "--live", "--size", "18"), "needs K to be a multiple of 4"),
        (("--live", "--size", "70000"), "indexes with 32-bit integers"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], says: str, bench: Run, traces: Path, gpu: FakeGpu) -> None:
    done = bench(*arguments, "--traces", traces)
    assert (done.code, done.out, gpu.launched) == (2, "", [])
    assert says in done.err


@pytest.mark.slow
def test_live_and_record(bench: Run, gpu: FakeGpu, tmp_path: Path) -> None:
    gpu.milliseconds = {"cuBLAS": lambda number: 90.0}
    arguments = ("kernel_v4", "guide_v2", "--live", "--size", "64", "--size", "64,36,16", "--traces")
    done = bench(*arguments, tmp_path / "traces")
    assert (done.code, done.err) == (0, "")
    assert "at 64 x 36 x 16 is kernel_v4, 0.0 TFLOP/s, 90 % of cuBLAS" in done.out.splitlines()[0]
    assert not (tmp_path / "traces").exists()  # without --record, nothing is kept

    first, second = (bench(*arguments, tmp_path / "traces", "--record") for _ in range(2))
    home = tmp_path / "traces" / HOME
    assert first.err == f"recorded: {home / 'bench.json'}\n"
    assert second.err == f"recorded: {home / 'bench.run2.json'}\n"
    shown = bench("--traces", tmp_path / "traces").out
    assert shown == second.out
    recording = load_bench(home / "bench.json")
    assert [timing.kernel for timing in recording.timings] == ["cuBLAS", "kernel_v4", "guide_v2"] * 2
    assert {time for timing in recording.timings for time in timing.times_ms} == {90.0, 100.0}


@pytest.mark.slow
def test_a_wrong_result_is_not_recorded(
    bench: Run, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gpu, "function", spoiled(add_little))
    done = bench("kernel_v4", "--live", "--record", "--size", "64", "--traces", tmp_path / "traces")
    assert (done.code, done.out) == (1, "")
    assert "the product is not that in float64: kernel_v4 at 64,64,64" in done.err
    assert not (tmp_path / "traces").exists()


@pytest.mark.slow
def test_without_names_those_that_do_not_take_a_size_are_left_out(
    bench: Run, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "sgemm_names", lambda: ["kernel_v4", "sgemm_tuned"])
    done = bench("--live", "--size", "8,8,8")
    assert done.err == "left out, as they do not take every size: sgemm_tuned\n"
    assert done.code == 0 and "kernel_v4" in done.out and "sgemm_tuned" not in done.out
    named = bench("sgemm_tuned", "--live", "--size", "8,8,8")
    assert named.code == 2 and "sgemm_tuned needs M to be a multiple of 128" in named.err


@pytest.mark.parametrize(("module", "says"), [("cupy", "CuPy "), ("cupy.cublas", "cuBLAS cannot be loaded")])
def test_a_missing_part(
    module: str, says: str, bench: Run, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    done = bench("kernel_v4", "--live", "--record", "--size", "64", "--traces", tmp_path / "traces")
    assert (done.code, done.out) == (2, "")
    error, hint = done.err.splitlines()
    assert error.startswith(f"error: {says}") and hint.startswith("hint: ")
    assert not (tmp_path / "traces").exists()
