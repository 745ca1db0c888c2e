"""Programs that nvcc builds run to their own end on memsim."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memsim as package
from memsim.arch import SM_90
from memsim.argument_types import Texture
from memsim.captured.saved_launch import read_launch
from memsim.cli import main
from memsim.driver import launch_table, native_build, remembered_launches
from memsim.driver.execute_launches import Launches, LaunchKind
from memsim.driver.native_build import libraries
from memsim.driver.run_program import run_program
from memsim.errors import MemsimError
from memsim.estimated_time import duration
from memsim.interpreter.native_launch import MOST_THREADS
from memsim.workers import processors
from tests.schema import validate

SOURCE = Path(__file__).with_name("programs.cu")
pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler"
    ),
    pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc"),
]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs, built once with the shared runtime."""
    made = tmp_path_factory.mktemp("programs") / "programs"
    subprocess.run(["nvcc", "-arch=sm_90", "-lineinfo", "-cudart", "shared", SOURCE, "-o", made], check=True)
    return made


class Ran:
    """A program that ended. code: its exit code; said: what memsim told while it ran."""

    def __init__(self, *command: str | Path, **how: Any) -> None:
        self.said: list[str] = []
        launches = Launches(SM_90, self.said.append, **how)
        self.code = run_program(list(map(str, command)), launches)
        self.launches = launches
        self.kinds: list[LaunchKind] = list(launches.kinds.values())


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("vector_add", 1),
        ("symbols", 1),
        ("pointers", 1),
        ("cooperative", 2),
        ("attributes", 2),
        ("streams", 0),
        ("clocks", 1),
        ("captured", 7),
        ("graphs", 5),
        ("unwritten", 1),
        ("copies", 0),
        ("handles", 0),
        ("limits", 3),
        ("resets", 1),
    ],
)
def test_a_program_passes(programs: Path, name: str, times: int, capfd: pytest.CaptureFixture[str]) -> None:
    done = Ran(programs, name)
    assert (done.code, done.said) == (0, [])
    assert capfd.readouterr().out.endswith(f"{name}: PASSED\n")
    assert sum(kind.times for kind in done.kinds) == times
    assert not any(kind.failed for kind in done.kinds)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("out_of_bounds", "4 bytes at byte 128 of allocation 0 (128 bytes) by thread (31, 0, 0)"),
        ("misaligned", "misaligned LDG.E of 4 bytes at byte 2 of allocation 0"),
        ("endless", "has not finished after 2,000 instructions"),
    ],
)
def test_a_fault_is_told_and_is_the_error_that_a_gpu_gives(programs: Path, name: str, why: str) -> None:
    done = Ran(programs, name, max_steps=2_000)
    assert done.code == 0  # the program has looked at the error
    assert "programs.cu:" in done.said[0] and why in done.said[0]
    assert [kind.failed for kind in done.kinds] == [1]


def test_kernels_print(programs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert Ran(programs, "prints").code == 0
    assert capfd.readouterr().out.splitlines() == [
        "lane 0 of warp:  0.00 123456789ab a 7   | %",
        "lane 1 of warp:  1.50 123456789ab b 7   | %",
        "prints: PASSED",
    ]


def test_kernels_print_as_the_c_library_does(programs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Strings of local and shared memory, too; lines of an H200."""
    assert Ran(programs, "says_all").code == 0
    assert capfd.readouterr().out.splitlines()[:3] == [
        "Local s     a|",
        "3 0x1.8p+0 010 4464 44 2.000000e+00",
        "0x1234 (nil)   2.2 18446744073709551615 +5",
    ]


def test_launches_are_refused_as_by_a_gpu_and_the_next_one_is_made(programs: Path) -> None:
    done = Ran(programs, "refused_launches")
    assert done.code == 0
    assert "pairs must be a multiple of its cluster (2, 1, 1), unlike (3, 1, 1)" in done.said[0]
    assert "265 blocks are launched together, and 264 are resident at most" in done.said[-1]
    assert sum(kind.failed for kind in done.kinds) == len(done.said) == 10


def test_a_graph_that_allocates_is_refused_by_name(programs: Path) -> None:
    done = Ran(programs, "allocates_in_a_graph")
    assert done.code == 0
    assert [one.partition(" is not implemented")[0] for one in done.said] == [
        "cuMemAllocAsync on a stream that is captured",
        "cuMemFreeAsync on a stream that is captured",
    ]


def test_kernels_allocate_and_the_heap_has_bounds(programs: Path) -> None:
    done = Ran(programs, "heap")
    assert done.code == 0
    assert "out-of-bounds" in done.said[0] and "malloc of 16 bytes" in done.said[0]


def test_textures_are_fetched_and_what_is_none_is_told(programs: Path) -> None:
    done = Ran(programs, "textures")
    assert done.code == 0 and sum(kind.times for kind in done.kinds) == 4
    assert len(done.said) == 1 and "is in no allocation" in done.said[0]


def test_launches_made_before_are_remembered(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that find other memory are not; what they do not access may change, what they read be large."""
    monkeypatch.setattr(remembered_launches, "MOST_MEMORY", 1 << 20)
    done = Ran(programs, "repeated")
    assert done.code == 0
    fill, grow, pick = sorted(done.kinds, key=lambda kind: kind.kernel)
    assert (pick.kernel, pick.times, pick.remembered) == ("pick", 13, 2)
    assert (fill.kernel, fill.times) == ("fill", 23) and fill.remembered == 14
    assert (grow.kernel, grow.times, grow.remembered) == ("grow", 9, 0)


@pytest.mark.slow
def test_a_program_manages_virtual_memory(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, made = SOURCE.with_name("virtual_memory.cu"), tmp_path / "virtual_memory"
    linked = ["-L", libraries(), "-lcuda"]
    subprocess.run(["nvcc", "-arch=sm_90", "-cudart", "shared", source, *linked, "-o", made], check=True)
    done = Ran(made)
    assert capfd.readouterr().out == "virtual memory: PASSED\n" and done.code == 0
    assert len(done.said) == 2 and "cuMemMap of memory that is mapped already" in done.said[0]
    assert "out-of-bounds" in done.said[1] and "(2097152 bytes)" in done.said[1].replace(",", "")


def test_what_is_not_implemented_says_its_name(programs: Path) -> None:
    done = Ran(programs, "refused")
    assert done.code == 0
    assert done.said == [
        "cudaIpcGetMemHandle is not implemented; the program is told so (801, not supported)"
    ]


def test_code_for_another_chip_is_told_once_and_is_the_error_that_a_gpu_gives(
    programs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["exec", "--arch", "sm_80", "--", str(programs), "no_code"]) == 0
    assert capfd.readouterr().err.count("the program has no code for sm_80") == 1
    assert main(["exec", "--", str(programs), "vector_add"]) == 0  # it has code for this one


def test_a_program_runs_wherever_it_and_the_temporary_folder_are(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path to a socket has room for 107 bytes; a program in the root is in one folder only."""
    far = tmp_path / ("f" * 100)
    far.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(far))
    assert Ran(programs, "vector_add").code == 0
    monkeypatch.setattr("shutil.which", lambda _: "/program")
    assert native_build.headers_beside("/program") == []


def test_a_program_goes_on_where_nobody_reads_what_its_kernels_print(programs: Path) -> None:
    command = [sys.executable, "-m", "memsim", "exec", "--", programs, "says_all"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout and running.stderr
        running.stdout.close()
        assert b"says_more" in running.stderr.read()


def test_a_program_goes_on_where_nothing_can_be_recorded(programs: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    done = Ran(programs, "vector_add", record=file / "launches")
    assert done.code == 0 and "cannot write" in done.said[0]
    assert [(kind.failed, kind.recording) for kind in done.kinds] == [(0, None)]


def test_the_table_is_printed_where_its_file_cannot_be_written(
    programs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "no folder" / "table.json"
    assert main(["exec", "-o", str(file), "--", str(programs), "vector_add"]) == 2
    told = capfd.readouterr().err
    assert "add " in told and "cannot write the table" in told


def test_a_launch_that_is_interrupted_has_failed(
    programs: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Launches, "_execute", interrupted)
    assert main(["exec", "--", str(programs), "vector_add"]) == 130
    told = capfd.readouterr().err
    assert "1 launch of 1 kind, 1 of them failed" in told and "add: it was interrupted" in told


def test_the_exit_code_is_the_programs(programs: Path) -> None:
    assert Ran(programs, "no such program").code == 100
    assert Ran("sh", "-c", "kill -9 $$").code == 128 + 9
    with pytest.raises(MemsimError, match="cannot run"):
        Ran("/no/such/program")


@pytest.mark.parametrize(("options", "threads"), [((), processors()), (("--jobs", "1"), 1), (("-j3",), 3)])
def test_jobs_are_threads_of_a_launch(
    options: tuple[str, ...], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Launches] = []
    monkeypatch.setattr(
        "memsim.cli.exec.run_program", lambda command, launches, **_: asked.append(launches) or 0
    )
    assert main(["exec", *options, "--", "true"]) == 0
    asked[0].use_machine_code(libraries())
    assert asked[0].interpreter is not None
    assert asked[0].interpreter.threads == min(threads, MOST_THREADS)


def test_analyze_counts_the_first_launch_of_a_kind_and_changes_nothing(
    programs: Path, tmp_path: Path
) -> None:
    done = Ran(programs, "cooperative", analyze=True)
    assert done.code == 0  # the sums are right: the counted launch has written nothing
    (kind,) = done.kinds
    assert kind.analysis is not None and kind.times == 2
    assert kind.analysis.sites
    with (tmp_path / "table").open("w+") as stream:
        launch_table.write(done.launches, stream)
        stream.seek(0)
        assert "grid_sum" in stream.read()


def test_time_estimates_the_first_launch_of_a_kind_and_changes_nothing(
    programs: Path, tmp_path: Path
) -> None:
    done = Ran(programs, "pointers", time=True)
    (kind,) = done.kinds
    assert done.code == 0 and kind.analysis is not None
    time = kind.analysis.estimate
    assert time is not None and time.seconds and 1e-6 < time.seconds < 1e-3
    assert (
        launch_table.time_in_all([LaunchKind("k", kind.shape, times=2)])
        == "The time of no launch is estimated."
    )
    line = launch_table.time_in_all([replace(kind, times=1000), LaunchKind("k", kind.shape, times=2)])
    assert line.startswith(
        f"On the chip 1,000 of 1,002 launches would take about {duration(1000 * time.seconds)}"
    )
    assert "estimates, typically within" in line
    for estimated, shown in ((done, True), (Ran(programs, "pointers", analyze=True), False)):
        with (tmp_path / "table").open("w+") as stream:
            launch_table.write(estimated.launches, stream)
            stream.seek(0)
            assert (duration(time.seconds) in stream.read()) is shown


def test_sanitize_tells_the_errors_of_the_first_launch_of_a_kind(programs: Path) -> None:
    (kind,) = Ran(programs, "racy", sanitize=True).kinds
    (note,) = kind.notes
    assert kind.times == 2
    assert note.startswith("race: s[") and note.endswith(": nothing orders the two accesses")
    whole = Ran(programs, "cooperative", sanitize=True)
    assert (whole.code, [*whole.kinds[0].notes]) == (0, ["no error found"])


def test_the_table_as_json_fits_its_schema(programs: Path, tmp_path: Path) -> None:
    told = tmp_path / "table.json"
    assert main(["exec", "--analyze", "--time", "-o", str(told), "--", str(programs), "cooperative"]) == 0
    document = json.loads(told.read_text("utf-8"))
    schema = Path(package.__file__).parent / "schemas" / "launches.schema.json"
    validate(document, json.loads(schema.read_text("utf-8")))
    (kind,) = document["kinds"]
    assert kind["launches"] == 2 and kind["verdict"] and kind["launch"] is None
    assert kind["time"]["cycles"] or kind["time"]["unknown"]


def test_with_json_standard_output_is_the_document(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What the program and its kernels print is on standard error; a file without a name gets one."""
    monkeypatch.chdir(tmp_path)
    assert main(["exec", "--json", "-o", "--", str(programs), "prints"]) == 0
    printed = capfd.readouterr()
    (kind,) = json.loads(printed.out)["kinds"]
    assert kind["launches"] == 1
    assert "prints: PASSED" in printed.err and "lane 1 of warp" in printed.err
    assert f"written: {programs.stem}-launches.json" in printed.err
    assert json.loads((tmp_path / f"{programs.stem}-launches.json").read_text("utf-8")) == json.loads(
        printed.out
    )


def test_without_memsim_there_is_no_device(programs: Path) -> None:
    from memsim.driver.native_build import libraries

    done = subprocess.run(
        [programs, "vector_add"], env={"LD_LIBRARY_PATH": str(libraries())}, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (
        3,
        "cudaMalloc(&da, n * 4): cudaErrorNoDevice\nvector_add: FAILED\n",
    )


def test_two_programs_at_once(programs: Path) -> None:
    """Each process has a device of its own."""
    both = f"{programs} vector_add & first=$!; {programs} symbols & wait $first && wait $!"
    done = Ran("bash", "-c", both)
    assert done.code == 0 and sorted(kind.kernel for kind in done.kinds) == ["add", "scaled"]


@pytest.mark.slow
def test_the_static_runtime_is_told_how_to_build(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "a.cu"
    source.write_text("int main() { void *p; return cudaMalloc(&p, 4) ? 7 : 0; }")
    subprocess.run(["nvcc", "-cudart", "static", source, "-o", tmp_path / "a"], check=True)
    assert main(["exec", "--", str(tmp_path / "a")]) == 7
    assert "-cudart shared" in capfd.readouterr().err


def test_a_recorded_launch_is_counted_as_it_was(programs: Path, tmp_path: Path) -> None:
    done = Ran(programs, "vector_add", analyze=True, record=tmp_path / "made")
    (kind,) = done.kinds
    assert kind.recording == tmp_path / "made" / "0001_add" / "launch.json" and not kind.notes
    again = read_launch(kind.recording)
    assert kind.analysis is not None and again.analyze().totals == kind.analysis.totals
    again.run()
    assert (again.args[2].view("f4")[:1000] == 3.5).all()


def test_a_recorded_launch_has_its_textures(programs: Path, tmp_path: Path) -> None:
    done = Ran(programs, "textures", analyze=True, record=tmp_path)
    for kind in done.kinds:
        assert kind.recording is not None and kind.analysis is not None and not kind.notes
        again = read_launch(kind.recording)
        assert again.analyze().totals == kind.analysis.totals
    texture = read_launch(tmp_path / "0001_sample" / "launch.json").args[0]
    assert isinstance(texture, Texture) and texture.size == (8, 4) and texture.filter == "linear"
    assert (texture.array[..., 0] == np.arange(32, dtype="f4").reshape(4, 8)).all()


@pytest.mark.slow
def test_textures_in_a_struct_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("""
        struct Both { int n; cudaTextureObject_t t; };
        __global__ void fetch(Both b, float *out) { out[threadIdx.x] = tex1Dfetch<float>(b.t, threadIdx.x); }
        int main() {
          float *a, *out;
          cudaMalloc(&a, 128);
          cudaMalloc(&out, 128);
          cudaMemset(a, 0, 128);
          cudaResourceDesc from = {};
          cudaTextureDesc how = {};
          from.resType = cudaResourceTypeLinear;
          from.res.linear.devPtr = a;
          from.res.linear.desc = cudaCreateChannelDesc<float>();
          from.res.linear.sizeInBytes = 128;
          Both b = {7};
          if (cudaCreateTextureObject(&b.t, &from, &how, nullptr)) return 1;
          fetch<<<1, 32>>>(b, out);
          return cudaDeviceSynchronize();
        }""")
    command = ["nvcc", "-arch=sm_90", "-cudart", "shared", "a.cu", "-o", "a"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = Ran(tmp_path / "a", record=tmp_path / "made")
    assert done.code == 0
    assert list(done.kinds[0].notes) == ["the recording lacks the textures in its structs and arrays"]


@pytest.mark.slow
def test_a_recorded_struct_of_one_pointer_is_one_when_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("""
        struct One { float *p; };
        __global__ void fill(One one, float *plain) {
          float value;
          asm("ld.global.f32 %0, [%1];" : "=f"(value) : "l"(plain + threadIdx.x));
          one.p[threadIdx.x] = value;
        }
        int main() {
          One one;
          float *plain;
          cudaMalloc(&one.p, 128);
          cudaMalloc(&plain, 128);
          fill<<<1, 32>>>(one, plain);
          return cudaDeviceSynchronize();
        }""")
    command = ["nvcc", "-arch=sm_90", "-lineinfo", "-cudart", "shared", "a.cu", "-o", "a"]
    subprocess.run(command, cwd=tmp_path, check=True)
    (kind,) = Ran(tmp_path / "a", analyze=True, record=tmp_path / "made").kinds
    assert kind.recording is not None and kind.analysis is not None and not kind.notes
    assert read_launch(kind.recording).analyze().totals == kind.analysis.totals


def test_what_a_recording_lacks_is_told(programs: Path, tmp_path: Path) -> None:
    assert Ran(programs, "pointers", record=tmp_path).kinds[0].notes.keys() == {
        "the recording lacks what its arrays point to"
    }
    notes = Ran(programs, "symbols", record=tmp_path).kinds[0].notes
    assert list(notes) == ["the recording has table, both, scale as the code has them"]
