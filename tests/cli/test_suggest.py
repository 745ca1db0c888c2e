"""`memsim suggest`: what a person with a conflict types, sees and gets."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path

import pytest

from memsim.analysis import Analysis
from memsim.compile.libraries import Library
from memsim.job import Job
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.prove import with_text
from memsim.suggest.suggestions import Suggestions
from memsim.suggest.threads import Remapped
from tests.cli.conftest import Run
from tests.suggest.kernels import transpose
from tests.suggest.test_field_by_field import FIELD
from tests.suggest.test_prove import CONTRACTED, POINTER, PRODUCT, products

LAUNCH = "--grid 1 --block 32,32 --arg 'f32[1024]' --arg 'f32[1024]=zeros'"


@pytest.fixture
def tile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A transpose of the user's own, in the folder where the command is typed."""
    monkeypatch.chdir(tmp_path)
    Path("tile.cu").write_text(transpose("float tile[32][32]").text)
    return Path("tile.cu")


@pytest.mark.slow
def test_a_kernel_of_the_catalogue(memsim: Run) -> None:
    done = memsim("suggest kernel_v4_colmajor --size 128,128,16")
    assert (done.code, done.err) == (0, "")
    first, *lines = done.out.splitlines()
    # What the compiler at hand makes of the edit may take the least bit less than what ships, or not.
    is_worth = not first.endswith(", not worth an edit")
    assert first.removesuffix(", not worth an edit") == (
        "kernel_v4_colmajor: 64 of 1,728 shared wavefronts are bank conflicts; "
        "another layout of s_a saves all of them"
    )
    assert "  + __shared__ __align__(16) float s_a[BK][BM + 4];" in done.out
    numbers = [line[0] for line in done.out.splitlines() if line[:3] in ("1. ", "2. ", "3. ")]
    assert numbers == ["1", "2", "3"]  # 1 and 3 have the same bound
    proof, verdict, bounds, time, *worth = lines[-4 if is_worth else -5 :]
    assert proof == (
        "Proven by replay: proposal 1 in kernel_v4_colmajor.cu, compiled and replayed: "
        "s_a 640 -> 576 wavefronts, as forecast."
    )
    assert bounds.startswith("Lower bound of the launch (memsim bound): 2,628 -> 2,6")
    assert time.startswith("Estimated time (memsim time): about ") and "within their error of " in time
    not_worth = "It is not worth an edit: --apply writes it only with --take 1."
    assert worth == ([] if is_worth else [not_worth])
    assert verdict.startswith("kernel_v4_colmajor: conflict-free: 1,664 shared wavefronts")


@pytest.mark.slow
def test_the_picture_shows_the_banks_before_and_after(memsim: Run, tile: Path) -> None:
    lines = memsim("suggest", tile, LAUNCH).out.splitlines()
    for side, halves in (("before", [["32", *"." * 15], [*"." * 16]]), ("after", [[*"1" * 16]] * 2)):
        assert [line.split()[1:] for line in lines if line.split()[:1] == [side]] == halves
    (row,) = [line for line in lines if line.split()[:2] == ["3", "0*"]]
    assert row.split() == ["3", "0*", "1", "2", "3", "3*", "4", "5", "6"]


@pytest.mark.slow
def test_tables_fit_a_terminal(memsim: Run, tile: Path) -> None:
    """Names of files are long, and those of one file are left out; code to paste is never cut."""
    path = Path("a_transpose_of_tiles_in_a_file_that_has_a_long_name.cu")
    path.write_text(tile.read_text())
    lines = memsim("suggest", path, LAUNCH).out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("1. tile"))
    assert lines[start + 5].split() == ["line", "access", "wavefronts", "ways"]
    end = next(number for number, line in enumerate(lines) if line.startswith(f"   {path}"))
    assert max(map(len, lines[start:end])) <= 80


@pytest.mark.slow
def test_files_of_one_name_are_told_apart(memsim: Run, tile: Path) -> None:
    text = tile.read_text().replace("tile[x][y]", "get(&tile[x][y])")
    text = text.replace("tile[y][x] = in[y * 32 + x]", "put(&tile[y][x], in[y * 32 + x])")
    tile.write_text(f'#include "a/one.h"\n#include "b/one.h"\n{text}')
    for folder, function in (
        ("a", "void put(float *p, float v) { *p = v; }"),
        ("b", "float get(float *p) { return *p; }"),
    ):
        Path(folder).mkdir()
        Path(folder, "one.h").write_text(f"static __device__ inline {function}\n")
    done = memsim("suggest tile.cu", LAUNCH)
    where = [line.split()[0] for line in done.out.splitlines() if line.startswith("   ") and " 4 B  " in line]
    assert where == ["a/one.h:1", "b/one.h:1"]
    assert "a/one.h:1, b/one.h:1" in memsim("explain tile.cu --line 4", LAUNCH).err


@pytest.mark.slow
def test_the_records(memsim: Run, tile: Path) -> None:
    done = memsim("suggest", tile, LAUNCH, "--json")
    found = json.loads(done.out)
    (array,) = found["arrays"]
    assert (array["name"], array["wavefronts"], array["conflicts"], array["least"]) == ("tile", 1056, 992, 64)
    assert [proposal["wavefronts"] for proposal in array["proposals"]] == [64, 64]
    assert array["proposals"][0]["change"] == {"kind": "padding", "every": 128, "by": 4}
    assert array["proposals"][0]["lines"][0]["new"] == "    __shared__ float tile[32][32 + 1];"
    assert found["proof"]["proposals"] == [1]
    before, after = found["least_cycles"]
    assert before == 1056 + 2 * 32  # wavefronts of shared memory, and of 64 global requests of 128 B
    assert after < before
    assert found["proof"]["counted"] == found["proof"]["forecast"] == {"tile": 64}


@pytest.mark.slow
def test_apply_writes_the_change_that_was_proven_and_run(memsim: Run, tile: Path) -> None:
    before = tile.read_text("utf-8")
    tile.chmod(0o640)
    done = memsim("suggest", tile, LAUNCH, "--apply")
    assert (done.code, done.err) == (0, "")
    assert "every array is bit-for-bit identical" in done.out
    assert "\n+    __shared__ float tile[32][32 + 1];\n" in done.out
    assert done.out.endswith("Written: tile.cu\n")
    assert tile.read_text() == before.replace("tile[32][32]", "tile[32][32 + 1]")
    assert stat.S_IMODE(tile.stat().st_mode) == 0o640
    assert [path.name for path in Path().iterdir()] == ["tile.cu"]

    again = memsim("suggest", tile, LAUNCH, "--apply")
    assert again.code == 1
    assert again.err == "error: there is no proven change to apply or run\nhint: there is nothing to prove\n"


ROW_SUM = """
__global__ void sums(const float *in, float *out, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += in[row * n + k];
    out[row] = sum;
}
"""


@pytest.mark.slow
def test_what_is_estimated_slower_is_written_only_if_asked_for(
    memsim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """16 bytes at a time, rows need a fourth of the sectors, and more time for what collects them."""
    monkeypatch.chdir(tmp_path)
    Path("sums.cu").write_text(ROW_SUM)
    launch = "--grid 4 --block 128 --arg 'f32[32768]' --arg 'f32[512]' --arg 64"
    done = memsim("suggest sums.cu", launch, "--apply")
    assert done.code == 1
    first, *_, last = done.out.splitlines()
    assert "28,672 of 32,832 global sectors are not needed" in first and "16 bytes" not in first
    assert last == "It is estimated slower, and not worth an edit: --apply writes it only with --take 1."
    assert done.err.startswith("error: nothing is written: the best change is estimated slower (about ")
    assert done.err.endswith("hint: --take 1 writes it all the same\n")
    assert Path("sums.cu").read_text() == ROW_SUM

    asked = memsim("suggest sums.cu", launch, "--apply --take 1")
    assert asked.code == 0
    assert asked.out.endswith("Written: sums.cu\n")
    assert "in_row0(&in[row * n + k]" in Path("sums.cu").read_text()


@pytest.mark.slow
def test_without_apply_nothing_is_written(memsim: Run, tile: Path) -> None:
    before = tile.read_text("utf-8")
    done = memsim("suggest", tile, LAUNCH, "--run")
    assert done.code == 0
    assert "bit-for-bit" in done.out
    assert "Written" not in done.out
    assert tile.read_text() == before


@pytest.mark.slow
def test_a_change_that_alters_results_is_refused(memsim: Run, tile: Path) -> None:
    tile.write_text(POINTER.text)
    done = memsim("suggest", tile, LAUNCH, "--apply")
    assert done.code == 1
    assert done.err == (
        "error: there is no proven change to apply or run\n"
        "hint: the changed tile.cu: results differ, as line 5 passes on an address\n"
    )
    done = memsim("suggest", tile, LAUNCH, "--apply --take 1")
    assert done.code == 1
    assert done.err.startswith(
        "error: tile.cu: the changed kernel computes something else: out came out different"
    )
    assert tile.read_text() == POINTER.text


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("kernel_v4_colmajor", "kernel_v4_colmajor ships with memsim; only your own source is edited"),
        ("saved.npz", "CUDA source is edited, and saved.npz is not CUDA source"),
    ],
)
def test_apply_changes_sources_of_the_user_alone(memsim: Run, tile: Path, target: str, says: str) -> None:
    memsim("analyze", tile, LAUNCH, "--save-trace saved.npz")
    done = memsim("suggest", target, "--apply")
    assert done.code == 2
    assert done.err.startswith(f"error: {says}")


@pytest.mark.slow
def test_a_saved_trace(memsim: Run, tile: Path) -> None:
    memsim("analyze", tile, LAUNCH, "--save-trace saved.npz")
    done = memsim("suggest saved.npz")
    assert done.code == 0
    assert done.out.splitlines()[-1] == ("Not proven by replay: there is no source to recompile.")


@pytest.mark.slow
def test_a_target_of_a_project(memsim: Run, tile: Path) -> None:
    Path("memsim.toml").write_text(
        '[[targets]]\nname = "mine"\nfile = "tile.cu"\ngrid = [1]\nblock = [32, 32]\n'
        'args = ["f32[1024]", "f32[1024]=zeros"]\nbudgets = ["ways <= 1"]\n'
    )
    checked = memsim("check")
    assert checked.code == 1
    assert "  memsim suggest mine  # tries other layouts of tile\n" in checked.out
    done = memsim("suggest mine")
    assert done.code == 0
    assert "Proven by replay: proposal 1 in tile.cu" in done.out


@pytest.mark.slow
def test_analyze_says_what_to_type_where_there_are_conflicts(memsim: Run, tile: Path) -> None:
    last = memsim("analyze", tile, LAUNCH).out.splitlines()[-1]
    assert last == (
        "What would help: tile, padding: 4 B after every 128 B: 1,056 -> 64 wavefronts in all its accesses. "
        "`memsim suggest tile.cu`, with the same options, shows how."
    )
    assert "memsim suggest" not in memsim("analyze transpose_xor --size 32,32").out


def test_what_would_help_wide_accesses_is_a_forecast(memsim: Run, tile: Path) -> None:
    """What the compiler has made one access of two words, it may make two of another layout."""
    tile.write_text(transpose("float2 tile[32][32]").text.replace("float *", "float2 *"))
    last = memsim("analyze", tile, LAUNCH.replace("1024", "1024,2")).out.splitlines()[-1]
    assert "in all its accesses, if the compiler keeps its accesses as wide as they are. `memsim" in last


@pytest.mark.slow
def test_explain_says_what_would_help(memsim: Run, tile: Path) -> None:
    lines = memsim("explain", tile, LAUNCH).out.splitlines()
    found = lines[lines.index("What would help:") :]
    assert found[1:3] == [
        "  tile, padding: 4 B after every 128 B: 1,056 -> 64 wavefronts in all its accesses; changes line 3",
        "  tile, swizzle: tile[row][col ^ row], CUTLASS's Swizzle<5,0,5>: "
        "1,056 -> 64 wavefronts in all its accesses; changes lines 5, 7",
    ]
    assert "What would help" not in memsim("explain transpose_xor --size 32,32").out


@pytest.mark.slow
def test_the_page_says_what_would_help(memsim: Run, tile: Path) -> None:
    assert memsim("report", tile, LAUNCH, "-o page.html").code == 0
    page = Path("page.html").read_text("utf-8")
    assert '<h2 id="help">What would help</h2>' in page
    assert "+    tile[y][x ^ y] = in[y * 32 + x];" in page


@pytest.mark.slow
def test_mistakes(memsim: Run, tile: Path) -> None:
    done = memsim("suggest", tile, LAUNCH, "--array tiel")
    assert (done.code, done.err) == (2, "error: k has no shared array 'tiel'\nhint: did you mean tile?\n")
    done = memsim("suggest", tile, LAUNCH, "--take 7")
    assert (done.code, done.err) == (2, "error: there is no proposal 7\nhint: there are 2 proposals\n")
    assert memsim("suggest", tile).code == 2  # no launch
    assert "--size does not apply to a CUDA file" in memsim("suggest", tile, LAUNCH, "--size 3").err


def test_without_a_compiler_the_catalogue_still_gets_proposals(
    memsim: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Library, "candidates", lambda library: iter(()))
    done = memsim("suggest transpose_naive --size 32,32")
    assert done.code == 0
    assert "+ __shared__ float tile[32][32 + 1];" in done.out
    assert done.out.splitlines()[-1].startswith("Not proven by replay: NVRTC")


PROGRAM = """\
#include <cstdio>

__global__ void transpose(const float *in, float *out, int n) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

int main() {
    const int n = 64;
    float *in, *out;
    cudaMalloc(&in, n * n * sizeof(float));
    cudaMalloc(&out, n * n * sizeof(float));
    transpose<<<dim3(n / 32, n / 32), dim3(32, 32)>>>(in, out, n);
    printf("%d\\n", cudaDeviceSynchronize());
}
"""


@pytest.mark.slow
def test_a_program_of_the_user_s_needs_no_option(memsim: Run, tile: Path) -> None:
    """Grid, block and arguments are those of its own launch; what is written then counts as forecast."""
    Path("program.cu").write_text(PROGRAM)
    done = memsim("suggest program.cu --apply")
    assert done.code == 0
    assert done.out.startswith("transpose: 3,968 of 4,224 shared wavefronts are bank conflicts")
    assert "tile 4,224 -> 256 wavefronts, as forecast." in done.out
    assert done.err == (
        "note: launch taken from the source: --grid 2,2,1 --block 32,32,1 "
        "--arg 'f32[4096]' --arg 'f32[4096]' --arg 64\n"
    )
    again = memsim("explain program.cu --line 10")
    assert again.code == 0
    assert memsim("suggest program.cu").out.startswith("transpose: no bank conflict")


COPY = """\
__global__ void copy(const float *in, float *out) {
    out[threadIdx.x] = in[threadIdx.x] * FACTOR;
}
"""
COPY_LAUNCH = "copy.cu --grid 1 --block 32 --arg 'f32[32]' --arg 'f32[32]'"


def test_notes_of_the_compilation_are_said_as_by_analyze(
    memsim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("copy.cu").write_text(COPY)
    without = memsim("suggest", COPY_LAUNCH, "-D FACTOR=2")
    assert (without.code, without.err) == (0, "")
    entry = {"directory": str(tmp_path), "file": "copy.cu", "command": "nvcc -DFACTOR=2 -c copy.cu"}
    Path("compile_commands.json").write_text(json.dumps([entry]))
    done = memsim("suggest", COPY_LAUNCH)
    assert done.code == 0 and done.err.startswith("note: options of ") and "-DFACTOR=2" in done.err
    assert done.err == memsim("analyze", COPY_LAUNCH).err


@pytest.mark.slow
def test_what_the_source_does_not_say_is_asked_for(memsim: Run, tile: Path) -> None:
    Path("program.cu").write_text(PROGRAM.replace("const int n = 64", 'int n = atoi(getenv("N"))'))
    memsim("suggest program.cu").refused("needs --let n\n")


@pytest.mark.slow
def test_patch_and_branch_for_a_project(memsim: Run, tile: Path) -> None:
    def git(*command: str) -> str:
        return subprocess.run(["git", *command], capture_output=True, check=True).stdout.decode()

    git("init", "-q")
    git("config", "user.name", "A B")
    git("config", "user.email", "a@b.c")
    git("add", ".")
    git("commit", "-qm", "first")
    done = memsim("suggest", tile, LAUNCH, "--patch cure.patch --branch cure")
    assert (done.code, done.err) == (0, "")
    message = git("log", "-1", "--format=%B", "cure")
    assert message.startswith("tile: padding: 4 B after every 128 B\n\nk, grid 1x1x1, block 32x32x1")
    assert "  bank conflicts: 992 -> 0\n" in message
    git("apply", "--check", "cure.patch")
    git("apply", "cure.patch")
    assert git("diff", "cure", "--stat") == ""


ONE_FIELD = ("--grid", "5", "--block", "64", "--arg", "f32[2700]", "--arg", "f32[300]", "--arg", "300")


def test_what_the_caller_has_to_keep_is_written_only_by_its_number(memsim: Run, tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text(FIELD)
    done = memsim("suggest", file, *ONE_FIELD, "--apply")
    said = " ".join(done.out.split())
    assert "The caller has to keep p, 3 fields of 4 B, so: f of r is at r / 32 * 96 + f * 32 + r % 32" in said
    assert (done.code, "nothing is written: the caller would have to keep p" in done.err) == (1, True)
    assert file.read_text() == FIELD
    done = memsim("suggest", file, *ONE_FIELD, "--apply", "--take", "1")
    said = " ".join(done.out.split())
    assert (done.code, "bit-for-bit identical, in the layout that the caller has to keep" in said) == (
        0,
        True,
    )
    assert "elements_by_field<const float, 3> p" in file.read_text()


def test_callers_by_name_are_told_by_nobody_of_another_layout(memsim: Run, tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text(FIELD.replace("__global__", 'extern "C" __global__'))
    done = memsim("suggest", file, *ONE_FIELD, "--patch", tmp_path / "p.patch", "--take", "1")
    assert (done.code, 'nothing is written: k is extern "C"' in done.err) == (1, True)
    assert not (tmp_path / "p.patch").exists()


@pytest.mark.parametrize("take", [(), ("--take", "1")])
def test_results_that_are_rounded_otherwise_are_written_only_by_number(
    take: tuple[str, ...], memsim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    products(tmp_path)
    place = CONTRACTED.index("a * b")

    def find(before: Analysis, job: Job, *_: object) -> Suggestions:
        new = Replacement(place, place + len("a * b"), PRODUCT)
        edit = Edit(job.kernel.file, CONTRACTED, (new,))
        done = Remapped("a product", before, edit, with_text(job, edit.file, edit.new), before)
        return Suggestions(before, (), remapped=(done,), taken=done)

    monkeypatch.setattr("memsim.cli.suggest.find", find)
    monkeypatch.setattr("memsim.cli.suggest._refuse_what_gains_nothing", lambda _: None)
    arrays = "--grid", "1", "--block", "64", "--arg", "f32[64]", "--arg", "f32[64]"
    said = memsim("suggest", tmp_path / "k.cu", *arrays, "--apply", *take)
    assert "every array is bit-for-bit identical without contraction of products and sums" in said.out
    written = (tmp_path / "k.cu").read_text()
    if take:
        assert (said.code, written) == (0, CONTRACTED.replace("a * b", PRODUCT))
    else:
        assert (said.code, written) == (1, CONTRACTED)
        assert "of 64 values are rounded otherwise" in said.err
        assert "--take 1 writes it all the same" in said.err
