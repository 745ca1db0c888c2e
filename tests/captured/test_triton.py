"""Triton itself, without a GPU: its launches are kept, and cost what they should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import memsim
from memsim.argument_types import ArrayArg, TensorMap
from memsim.captured.launched import Launched
from memsim.captured.saved_launch import read_launch
from memsim.errors import MemsimError

triton = pytest.importorskip("triton")
pytestmark = pytest.mark.filterwarnings("default")

import triton.language as tl  # noqa: E402
from triton.tools.tensor_descriptor import TensorDescriptor  # noqa: E402


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "triton"))


@triton.jit
def add_kernel(x, y, out, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    first = tl.load(x + offsets, mask=mask)
    second = tl.load(y + offsets, mask=mask)
    tl.store(out + offsets, first + second, mask=mask)


@triton.jit
def double(x):
    return x + x


@triton.jit
def sum_kernel(x, out, N: tl.constexpr):
    row = tl.program_id(0)
    values = double(tl.load(x + row * N + tl.arange(0, N)))
    tl.store(out + row, tl.sum(values, 0))


@triton.jit
def gather_kernel(index, table, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(table + tl.load(index + i)))


@triton.jit
def copy_tile(source, out, N: tl.constexpr):
    tile = source.load([0, 0])
    i = tl.arange(0, N)
    tl.store(out + i[:, None] * N + i[None, :], tile)


def line_of(text: str) -> int:
    lines = Path(__file__).read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip().startswith(text))


def test_a_launch_is_kept_and_analyzed() -> None:
    x, y, out = (ArrayArg((10_000,)) for _ in range(3))
    with memsim.capture("sm_90") as launches:
        add_kernel[(10,)](x, y, out, 10_000, BLOCK_SIZE=1024)
    (launch,) = launches
    assert (launch.grid, launch.block, launch.shared_bytes) == ((10, 1, 1), (128, 1, 1), 0)
    assert launch.kernel.argument_names[:4] == ("x", "y", "out", "n")
    assert launch.kernel.origin.compiler.startswith(f"Triton {triton.__version__} (ptxas")
    assert launch.note.startswith("BLOCK_SIZE=1024, num_warps=4")
    rows = {(site.op, site.array): site for site in launch.analyze().sites}
    assert {key: site.sectors for key, site in rows.items()} == {
        ("load", "x"): 1250,
        ("load", "y"): 1250,
        ("store", "out"): 1250,
    }
    assert rows["load", "x"].line == line_of("first = tl.load(x + offsets, mask=mask)")
    assert rows["load", "y"].line == line_of("second = tl.load(y + offsets, mask=mask)")
    assert rows["load", "x"].file == __file__


def test_a_run_of_what_was_captured_computes() -> None:
    x, y, out = np.arange(300, dtype=np.float32), np.ones(300, np.float32), np.zeros(300, np.float32)
    with memsim.capture() as launches:
        add_kernel[(3,)](x, y, out, 300, BLOCK_SIZE=128)
    x[:] = 0  # what was captured stays
    assert not out.any()  # without a GPU nothing is executed
    launches[0].run()
    assert (launches[0].args[2] == np.arange(300) + 1).all()


def test_a_view_is_no_more_aligned_than_it_is() -> None:
    whole = np.zeros(1025, np.float32)
    y, out = ArrayArg((1024,)), ArrayArg((1024,))
    with memsim.capture() as launches:
        for x in (whole[:-1], whole[1:]):
            add_kernel[(1,)](x, y, out, 1024, BLOCK_SIZE=1024)
    loads = [[s for s in launch.analyze().sites if s.array == "x"] for launch in launches]
    assert [site.width for (site,) in loads] == [16, 4]  # Triton compiles another kernel for it
    by_fours = [{(4 + 16 * lane + 4 * part) // 32 for lane in range(32)} for part in range(4)]
    assert [site.sectors for (site,) in loads] == [128, 8 * sum(map(len, by_fours))]


def test_every_configuration_of_an_autotuner_is_shown() -> None:
    configurations = [
        triton.Config({"BLOCK_SIZE": size}, num_warps=warps) for size, warps in ((256, 2), (512, 4))
    ]
    tuned = triton.autotune(configurations, key=["n"])(add_kernel)
    x, y, out = (ArrayArg((1024,)) for _ in range(3))
    with memsim.capture() as launches:
        tuned[lambda meta: (triton.cdiv(1024, meta["BLOCK_SIZE"]),)](x, y, out, 1024)
    shapes = [(launch.grid[0], launch.block[0]) for launch in launches]
    assert shapes == [(4, 64), (2, 128), (4, 64)]  # both, and then the one that is used
    assert "BLOCK_SIZE=512, num_warps=4" in launches[1].note


def test_lines_are_the_users_and_not_those_of_the_library() -> None:
    with memsim.capture() as launches:
        sum_kernel[(4,)](ArrayArg((4, 1024)), ArrayArg((4,)), N=1024)
    found = launches[0].analyze()
    assert {site.file for site in found.sites} == {__file__}
    shared = {site.line for site in found.sites if site.space == "shared"}
    assert shared == {line_of("tl.store(out + row, tl.sum(values, 0))")}


def test_values_decide_addresses() -> None:
    table, out = ArrayArg((4096,)), ArrayArg((128,))
    with memsim.capture() as launches:
        for step in (1, 32):
            gather_kernel[(1,)](np.arange(128, dtype=np.int32) * step, table, out, N=128)
    assert [[s.sectors for s in one.analyze().sites if s.array == "table"] for one in launches] == [
        [16],
        [128],
    ]


def test_a_tensor_descriptor_is_carried(tmp_path: Path) -> None:
    class Tensor:  # what TensorDescriptor asks of a tensor of torch
        dtype = np.dtype("float16")
        shape = (64, 64)

        def data_ptr(self) -> int:
            return 256

        __array_interface__ = np.zeros((64, 64), np.float16).__array_interface__

    with memsim.capture() as launches:
        copy_tile[(1,)](
            TensorDescriptor(Tensor(), [64, 64], [64, 1], [64, 64]), ArrayArg((64, 64), "float16"), N=64
        )
    (launch,) = launches
    carried = launch.args[0]
    assert isinstance(carried, TensorMap) and carried.array.shape == (64, 64)
    assert launch.kernel.argument_names[:3] == ("source", "source.shape[0]", "source.shape[1]")
    assert len(launch.args) == len(launch.kernel.parameters)


@triton.jit
def copy_by_own_maps(a, out, rows, columns, N: tl.constexpr):
    source = tl.make_tensor_descriptor(a, [rows, columns], [columns, 1], [N, N])
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [N, N])
    at = tl.program_id(0) * N
    target.store([at, 0], source.load([at, 0]) + 1)


def test_a_tensor_descriptor_that_the_kernel_makes_is_known() -> None:
    triton.set_allocator(lambda size, align, stream: ArrayArg((size,), "int8"))
    with memsim.capture("sm_90") as launches:
        copy_by_own_maps[(4,)](ArrayArg((250, 64)), ArrayArg((250, 64)), 250, 64, N=64)
    found = launches[0].analyze()
    boxes = [one for one in found.sites if one.op.startswith("bulk") and one.space == "global"]
    assert {(one.op, one.array) for one in boxes} == {("bulk_load", "a"), ("bulk_store", "out")}
    # of loads also the rows of a box that are outside count
    assert {one.op: one.sectors for one in boxes} == {"bulk_load": 256 * 8, "bulk_store": 250 * 8}
    assert not found.trace.uncertain and not any(one.unresolved for one in found.sites)


def test_afterwards_triton_is_as_it_was() -> None:
    config = triton.runtime.driver
    before, run = config._active, triton.runtime.jit.JITFunction.run
    with pytest.raises(ZeroDivisionError), memsim.capture():
        assert config._active is not before
        raise ZeroDivisionError
    assert config._active is before and triton.runtime.jit.JITFunction.run is run


def test_a_wrong_type_is_triton_s_own_error() -> None:
    with pytest.raises(Exception, match=r"list"), memsim.capture():
        add_kernel[(1,)]([1, 2], 3, 4, 5, BLOCK_SIZE=128)


SCRIPT = """
import sys
import memsim, triton, triton.language as tl

@triton.jit
def scale(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

if __name__ == "__main__":
    for n in map(int, sys.argv[1:]):
        scale[(triton.cdiv(n, 256),)](memsim.ArrayArg((n,)), n, BLOCK=256)
"""


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "memsim", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_line_captures_a_script_and_analyzes_it(tmp_path: Path) -> None:
    script, run = tmp_path / "scale.py", tmp_path / "run"
    script.write_text(SCRIPT)
    done = command("capture", "-o", run, script, 1000, 512)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"2 launches of {script}"
    paths = [run / f"00{i}_scale" / "launch.json" for i in range(2)]
    assert [read_launch(path).grid for path in paths] == [(4, 1, 1), (2, 1, 1)]
    done = command("analyze", paths[0])
    assert done.returncode == 0, done.stderr
    # 1000 is no multiple of 16: Triton reads 4 bytes at a time, every other element, and each sector twice.
    assert done.stdout.startswith("scale: worst is the load at scale.py:8: 7.8 sectors per request")
    done = command("analyze", paths[1])
    assert done.stdout.startswith("scale: coalesced: 128 global sectors")
    assert command("capture", "-o", run, script, 1000).returncode == 2  # there is something in it


def test_a_script_that_fails_is_told_where(tmp_path: Path) -> None:
    script = tmp_path / "scale.py"
    script.write_text(SCRIPT + "    1 / 0\n")
    done = command("capture", "-o", tmp_path / "run", script, 64)
    assert done.returncode == 2
    assert "scale.py:13: the script ends with ZeroDivisionError: division by zero" in done.stderr
    assert isinstance(read_launch(tmp_path / "run" / "000_scale" / "launch.json"), Launched)
    assert command("capture", "-o", tmp_path / "run2", tmp_path / "none.py").returncode == 2


def test_a_chip_without_rules_is_refused() -> None:
    with pytest.raises(MemsimError, match="sm_70"), memsim.capture("sm_70"):
        pass


FAILING = """
import numpy as np
import triton
import triton.language as tl


@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x) + i, mask=i < n)


y = np.zeros(100, np.float32)
compiled = scale.warmup(np.array(3, np.float32), y, 100, BLOCK=128, grid=(1,))
compiled._init_handles()
scale[65536 // compiled.n_regs // 4096,](np.array(3, np.float32), y, 100, BLOCK=128)
1 / 0
"""


def test_a_script_that_fails_keeps_its_launches_and_its_last_lines(tmp_path: Path) -> None:
    """An array without dimensions is a pointer, registers are known, and nanobind's lists hide no error."""
    (tmp_path / "failing.py").write_text(FAILING)
    command = [sys.executable, "-m", "memsim", "capture", "-o", "run", "failing.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-2:] == [
        "error: failing.py:17: the script ends with ZeroDivisionError: division by zero", "    1 / 0",
    ]  # fmt: skip
    launch = read_launch(tmp_path / "run" / "000_scale" / "launch.json")
    assert launch.args[0].shape == (1,) and launch.args[0][0] == 3
    assert {(site.array, site.op) for site in launch.analyze().sites} == {("x", "load"), ("y", "store")}
