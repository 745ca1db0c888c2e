"""Chips: what each rule is worth, whose code runs where, and code of each on the emulator."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import memsim.arch
from lab.experiments import PROBE
from lab.probe.judge_probe import judge_probe
from lab.rules_file import write_rules
from memsim.analysis import analyze_trace
from memsim.api import running
from memsim.arch import ARCHS, ASSUMED, MEASURED, PUBLISHED, SM_90, arch_of_code, get_arch
from memsim.arch.chip import chip_number
from memsim.arch.contributed import with_contributed
from memsim.cli import cli
from memsim.cli.launch_options import chip_name
from memsim.compile.compilers import find_nvcc, makes_code_for
from memsim.data import data_folder
from memsim.errors import MemsimError
from memsim.kernels import catalog
from memsim.reads import watch_reads
from memsim.validate import standalone
from memsim.validate.device import native_arch
from tests.few import few
from tests.lab.fake_driver import FakeDriver

OTHERS = [name for name in ARCHS if name != "sm_90"]


def test_each_file_of_a_chip_is_known_and_the_oldest_comes_first() -> None:
    files = {path.stem for path in Path(memsim.arch.__file__).parent.glob("sm_*.py")}
    assert {*ARCHS} == files and all(chip.name == name for name, chip in ARCHS.items())
    assert [*ARCHS] == sorted(ARCHS, key=chip_number) != sorted(ARCHS)


def test_only_rules_of_sm_90_were_measured() -> None:
    assert SM_90.is_measured
    for name in OTHERS:
        chip = get_arch(name)
        assert {rule.basis for rule in chip.rules} == {PUBLISHED, ASSUMED}
        assert chip.basis("shared", "load", 4) == PUBLISHED
        assert chip.basis("shared", "load", 16) == ASSUMED
        assert all(rule.where for rule in chip.rules)
        assert set(chip.widths("shared", "load")) == set(SM_90.widths("shared", "load"))
    assert "stmatrix" not in get_arch("sm_80").ops("shared")
    assert "cp_async" not in get_arch("sm_75").ops("shared")


@pytest.mark.parametrize(
    ("chip", "made_for", "runs"),
    [
        ("sm_90", "sm_90a", True),
        ("sm_90", "sm_90", True),
        ("sm_90", "", True),
        ("sm_86", "sm_80", True),
        ("sm_89", "sm_86", True),
        ("sm_121", "sm_120", True),
        ("sm_120", "sm_121", False),
        ("sm_80", "sm_86", False),
        ("sm_90", "sm_80", False),
        ("sm_120", "sm_100", False),
        ("sm_100", "sm_100a", True),
        ("sm_120", "sm_120a", True),
    ],
)
def test_code_runs_on_chips_of_its_generation(chip: str, made_for: str, runs: bool) -> None:
    assert ARCHS[chip].runs(made_for) is runs


def test_the_chip_is_that_of_the_code() -> None:
    assert arch_of_code("sm_80").name == "sm_80"
    assert arch_of_code("sm_90a") is SM_90
    assert arch_of_code("") is SM_90
    assert arch_of_code("sm_61") is SM_90


def needs(chip: str) -> None:
    if find_nvcc() is None and not makes_code_for(chip):
        pytest.skip(f"no compiler here for {chip}")


LAUNCH = """
__constant__ int table[64] = {5, 6, 7, 8};
extern "C" __global__ void launch(int *out, int k) {
    __shared__ int tile[64];
    int held[16];
    for (int i = 0; i < 16; i++) held[i] = out[i] + i;
    int *where = k ? tile + threadIdx.x : out + threadIdx.x;
    *where = table[threadIdx.x & 3];
    __syncthreads();
    int first = tile[threadIdx.x] + held[k + (threadIdx.x & 7)];
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    out[at] = first * 1000 + blockDim.x + 10 * gridDim.x + 100 * blockDim.y;
}
"""


@pytest.mark.some(2)
@pytest.mark.parametrize("chip", few(ARCHS, ("sm_75", "sm_90", "sm_120")))
def test_a_launch_is_read_where_each_chip_has_it(chip: str, tmp_path: Path) -> None:
    """Dimensions, the stack, windows of shared and local memory, and a constant variable."""
    needs(chip)
    file = tmp_path / "launch.cu"
    file.write_text(LAUNCH)
    out = np.zeros(128, np.int32)
    memsim.run(memsim.load(file, arch=chip)["launch"], 2, 64, [out, 1])
    lane = np.arange(64)
    expected = (5 + (lane & 3) + 1 + (lane & 7)) * 1000 + 64 + 20 + 100
    assert np.array_equal(out, np.tile(expected, 2))


@pytest.mark.some(2)
@pytest.mark.parametrize("chip", OTHERS)
@pytest.mark.parametrize("name", few(["transpose_naive", "kernel_v4"], ("transpose_naive",)))
def test_kernels_of_the_catalogue_cost_the_same_on_each(name: str, chip: str) -> None:
    needs(chip)
    small = (128, 128, 32) if name == "kernel_v4" else (64, 64)
    spec = catalog()[name]
    mine = analyze_trace(spec.trace(small))
    job = replace(spec.job(small), arch=get_arch(chip))
    theirs = analyze_trace(running.trace_job(job))
    assert theirs.arch.name == chip
    assert theirs.trace.origin is not None and theirs.trace.origin.arch == chip
    assert theirs.totals == mine.totals
    word = "published, not measured" if name == "transpose_naive" else "assumed to equal sm_90's"
    assert f"rules of {chip} are {word}" in theirs.verdict
    assert any(f"not measured on {chip}" in reason for reason in theirs.bound.lacks)
    assert "rules of" not in mine.verdict


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["sgemm_tuned", "sgemm_128x256x8"])
def test_copies_past_the_cache_are_measured_on_sm_90(name: str) -> None:
    """Their shared side costs nothing, and needs no rule."""
    found = analyze_trace(catalog()[name].trace((256, 256, 16)))
    assert "cp_async" in {site.op.removesuffix("_cg") for site in found.sites}
    assert "rules of" not in found.verdict


def test_code_of_one_chip_has_the_rules_of_that_chip() -> None:
    assert get_arch("sm_90a") is SM_90 and get_arch("sm_100f") is get_arch("sm_100a")


@pytest.mark.parametrize("name", ["sm_61", "sm_80a", "sm_90f", "sm_90aa", "sm_91a"])
def test_an_unknown_chip_is_refused(name: str) -> None:
    done = CliRunner().invoke(cli, ["analyze", "kernel_v4", "--arch", name])
    assert isinstance(done.exception, MemsimError)
    assert f"known: {', '.join(ARCHS)}" in str(done.exception)


@pytest.mark.parametrize(("capability", "chip"), [((8, 6), "sm_86"), ((9, 0), "sm_90")])
def test_the_gpu_of_the_machine_is_taken_if_asked_for(
    capability: tuple[int, int], chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standalone, "load_driver", lambda: FakeDriver(chip=capability))
    assert chip_name("native") == native_arch() == chip
    assert chip_name("sm_75") == "sm_75" and chip_name("sm_75|native") == f"sm_75|{chip}"


@pytest.mark.parametrize(
    ("driver", "says"),
    [({"devices": 0}, "CUDA_ERROR_NO_DEVICE"), ({"chip": (6, 1)}, "no rules for architecture 'sm_61'")],
)
def test_a_gpu_that_is_of_no_use_is_told(
    driver: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standalone, "load_driver", lambda: FakeDriver(**driver))
    done = CliRunner().invoke(cli, ["analyze", "kernel_v4", "--arch", "native"])
    assert isinstance(done.exception, MemsimError) and says in str(done.exception)


RECORD = {
    "schema": 1,
    "arch": "sm_80",
    "gpu": "NVIDIA A100",
    "rules": [
        {"space": "shared", "op": "load", "width": 16, "holds": True, "compared": 1024},
        {"space": "shared", "op": "atomic", "width": 4, "holds": False, "compared": 512},
    ],
}


def test_a_contributed_recording_makes_rules_measured(tmp_path: Path) -> None:
    folder = tmp_path / "nvidia-a100"
    folder.mkdir()
    (folder / "rules.json").write_text(json.dumps(RECORD))
    chip = with_contributed(ARCHS["sm_80"], tmp_path)
    assert chip.basis("shared", "load", 16) == MEASURED
    assert chip.basis("shared", "load", 8) == ASSUMED
    assert 4 not in chip.widths("shared", "atomic")  # it does not hold, so it is no rule
    assert 8 in chip.widths("shared", "atomic")
    where = next(rule.where for rule in chip.rules if rule.basis == MEASURED)
    assert where == "NVIDIA A100, 1,024 figures"
    assert with_contributed(ARCHS["sm_86"], tmp_path) is ARCHS["sm_86"]


def test_a_damaged_contribution_is_named(tmp_path: Path) -> None:
    (tmp_path / "gpu").mkdir()
    (tmp_path / "gpu" / "rules.json").write_text('{"arch": "sm_80"}')
    with pytest.raises(MemsimError, match="not a record of rules"):
        with_contributed(ARCHS["sm_80"], tmp_path)


def test_the_probe_writes_what_is_read_here(tmp_path: Path) -> None:
    """The recording of an H200, as if it were of an A100."""
    recording = PROBE.newest(data_folder("traces"), "nvidia-h200")
    device = replace(recording.device, compute_capability="8.0", gpu="NVIDIA A100")
    lacks = [name for name in recording.probed if name.startswith("STM")]
    assert lacks
    probed = {name: each for name, each in recording.probed.items() if name not in lacks}
    other = replace(recording, device=device, probed=probed)
    path = write_rules(other, judge_probe(other), tmp_path / other.device.slug)
    assert path == tmp_path / "nvidia-a100" / "rules.json"
    chip = with_contributed(ARCHS["sm_80"], tmp_path)
    assert chip.basis("shared", "load", 16) == chip.basis("global", "load", 4) == MEASURED


PAIRS = """
extern "C" __global__ void pairs(
    int n, int m, const float *a, const float *b, float *out, long long *sums, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = a[i] * b[i];
    long long far = k ? (long long)i << 33 : (long long)m * i;
    sums[i] = (i & 1 ? far : sums[i]) + 0x123456789ll;
}
"""


@pytest.mark.some(1)
@pytest.mark.parametrize("chip", few(ARCHS, ("sm_75", "sm_90", "sm_120")))
def test_two_pointers_that_are_loaded_at_once_are_both_known(chip: str, tmp_path: Path) -> None:
    """As of sm_100 one instruction loads both; of sm_120 64-bit sums and moves are one instruction."""
    needs(chip)
    file = tmp_path / "pairs.cu"
    file.write_text(PAIRS)
    lane = np.arange(64)
    a, b = lane.astype(np.float32), np.full(64, 3, np.float32)
    out, sums = np.zeros(64, np.float32), lane.astype(np.int64)
    kernel = memsim.load(file, arch=chip)["pairs"]
    args = [64, 5, a, b, out, sums, 1]
    assert {site.array for site in memsim.analyze(kernel, 1, 64, args).sites} == {"a", "b", "out", "sums"}
    memsim.run(kernel, 1, 64, args)
    assert np.array_equal(out, lane * 3)
    assert np.array_equal(sums, np.where(lane & 1, lane << 33, lane) + 0x123456789)


def test_rules_that_come_later_are_noticed(tmp_path: Path) -> None:
    """What was worked out without them is worked out again."""
    (tmp_path / "gpu").mkdir()
    with watch_reads() as reads:
        assert with_contributed(ARCHS["sm_86"], tmp_path) is ARCHS["sm_86"]
    assert reads.hold
    (tmp_path / "gpu" / "note.txt").write_text("")
    assert reads.hold
    (tmp_path / "gpu" / "rules.json").write_text("{}")
    assert not reads.hold
