"""What a newcomer gets wrong, and what memsim says: each error tells what to write instead."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.cli.conftest import Run

LAUNCHED = """\
__global__ void scale(float *m, int n) { m[threadIdx.x * n + blockIdx.x] *= 0.5f; }
int main() {
    float *m;
    cudaMalloc(&m, 64 * 64 * sizeof(float));
    scale<<<64, 64>>>(m, 64);
}
"""
SEVERAL = """\
__global__ void first(float *m) { m[threadIdx.x] = 1; }
__global__ void second(const float *in, float *out, int k) { out[threadIdx.x * k] = in[threadIdx.x]; }
template <typename T, int N> __global__ void third(T *m) { m[threadIdx.x % N] = 1; }
"""
TEMPLATE = (
    "template <typename T, int N> __global__ void fill(T *m, bool b) { if (b) m[threadIdx.x % N] = 1; }\n"
)
SHAPE = "--grid 1 --block 32"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    texts = {"scale.cu": LAUNCHED, "several.cu": SEVERAL, "fill.cu": TEMPLATE, "index.py": "import triton\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("gone.cu", "gone.cu: there is no such file"),
        (f"gone.cu {SHAPE}", "gone.cu: there is no such file"),
        ("gone.cubin", "gone.cubin: there is no such file"),
        ("folder", "folder: it is a folder"),
        (f"transpse_naive {SHAPE}", "did you mean transpose_naive"),  # and not what --grid applies to
        ("index.py", "for a script that launches kernels of Triton"),
        ("scale.cu --kernel scal", "it has no kernel scal\nhint: memsim analyze scale.cu --grid 64"),
        (
            "several.cu --kernel secnd",
            "it has no kernel secnd\nhint: memsim analyze several.cu --kernel second",
        ),
        (f"several.cu {SHAPE} --arg 'f32[32]'", "by kernel in a configuration: first, second"),
        (
            f"several.cu {SHAPE} --kernel second --arg 'f32[32]'",
            "the kernel takes 3 arguments (const float *in, float *out, int k), but --arg has 1",
        ),
        (
            f"several.cu {SHAPE} --kernel second",
            "needs --arg for const float *in, --arg for float *out, --arg for int k\n"
            "hint: memsim analyze several.cu --kernel second --grid 1 --block 32 --arg 'f32[in_SIZE]'",
        ),
        (
            f"fill.cu {SHAPE} --arg 'f32[32]' --arg 1",
            "fill.cu:1: fill is a template with no instance\nhint: name an instance, such as --kernel "
            "'fill<float, 8>': fill<typename T, int N>(T *m, bool b)",
        ),
        ("scale.cu --arg 'f32[64' --arg 64", "error: --arg: an array is TYPE[SHAPE]"),
        (
            "scale.cu --arg 'f32[64]' --arg 64",
            "hint: m may be too small: this access needs 16,384 bytes of it\n--allow-out-of-bounds",
        ),
    ],
)
def test_an_error_says_what_to_do(memsim: Run, command: str, message: str) -> None:
    memsim("analyze", command).refused(message)


@pytest.mark.parametrize(
    ("word", "meant"),
    [("analyse", "'memsim analyze'"), ("scale.cu", "'memsim analyze scale.cu'"), ("wholly", "")],
)
def test_a_word_that_is_no_verb(memsim: Run, word: str, meant: str) -> None:
    done = memsim(word)
    assert done.code == 2 and f"No such command '{word}'." in done.err
    assert f"Did you mean {meant}?" in done.err if meant else "mean" not in done.err


def test_arguments_alone_may_come_from_the_source(memsim: Run) -> None:
    done = memsim("analyze scale.cu --grid 1 --block 32")
    assert done.code == 0
    assert (
        done.err
        == "note: launch taken from the source: --grid 1,1,1 --block 32,1,1 --arg 'f32[4096]' --arg 64\n"
    )


@pytest.mark.slow
def test_the_launch_is_told_once(memsim: Run) -> None:
    done = memsim("report scale.cu -o report.html")
    assert done.code == 0 and done.err.count("launch taken from the source") == 1


def test_a_program_needs_no_suffix(memsim: Run, folder: Path) -> None:
    (folder / "program").write_bytes(b"\x7fELF")
    done = memsim("analyze program", SHAPE)
    assert done.code == 2 and "catalogue" not in done.err and "program" in done.err
    (folder / "memsim.toml").write_text(
        '[[targets]]\nname = "program"\nkernel = "transpose_padded"\nsize = "64,64"\n'
    )
    done = memsim("analyze program")  # the project's target is meant
    assert done.code == 0 and "transpose_padded: conflict-free" in done.out


def test_a_script_whose_package_is_missing(memsim: Run) -> None:
    absent = dict.fromkeys(("triton", "warp", "cutlass"))
    with patch.dict(sys.modules, absent):
        memsim("capture -o run index.py").refused(
            "is installed, so there is nothing to capture", "-m pip install triton"
        )


@pytest.mark.slow
def test_suggest_tells_of_sectors_that_it_saves_and_cannot_save(memsim: Run) -> None:
    done = memsim("suggest scale.cu")
    told = "7,168 of 8,192 global sectors are not needed; 7,168 of them are saved with x of the threads"
    assert done.code == 0 and told in done.out.splitlines()[0]
    alone = LAUNCHED.replace("m[threadIdx.x * n + blockIdx.x]", "*(m + threadIdx.x * n)")
    alone = alone.replace("<<<64, 64>>>", "<<<1, 64>>>")
    Path("scale.cu").write_text(alone)
    told = "112 of 128 global sectors are not needed, and no change that memsim tries saves any"
    assert told in memsim("suggest scale.cu").out.splitlines()[0]
    good = LAUNCHED.replace("threadIdx.x * n + blockIdx.x", "threadIdx.x + n * blockIdx.x")
    Path("scale.cu").write_text(good)
    assert memsim("suggest scale.cu").out.startswith(
        "scale: no bank conflict, so no other layout saves a wavefront\n"
    )


def test_a_parameter_of_the_kernel_is_no_macro(memsim: Run) -> None:
    done = memsim("prove", "scale.cu", "--for", "n=32..33")
    assert done.code == 2 and "it could be analyzed at no value" in done.err
    assert "a name is a macro unless it stands in braces, as in --arg '{n}'" in " ".join(done.err.split())
    shape = "--grid 1 --block 32 --arg f32[4096] --arg {n}"
    assert memsim("prove", "scale.cu", "--for", "n=32..33", *shape.split()).code == 0
