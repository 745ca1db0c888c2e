"""Planted regressions: in a copy of a kernel that ships, each is found, and on the right line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from memsim.argument_types import ArrayArg
from memsim.data import data_folder
from memsim.kernels import Spec, catalog
from tests.few import few
from tests.guard.conftest import Folder

KERNELS = data_folder("kernels")


@dataclass(frozen=True)
class Regression:
    """An edit of a kernel. edits: what becomes what. lines: texts of all lines that cost more for it.

    budget: one that says what was lost, and holds before.
    """

    kernel: str
    size: str
    edits: dict[str, str]
    lines: tuple[str, ...]
    budget: str


REGRESSIONS = {
    "padding removed": Regression(
        kernel="transpose_padded",
        size="64,64",
        edits={"tile[32][33]": "tile[32][32]"},
        lines=("= tile[tx][ty];",),
        budget="ways <= 1",
    ),
    "padding of a GEMM tile removed": Regression(
        kernel="kernel_v4_padded",
        size="128,128,16",
        edits={"LDA = BM + 4;": "LDA = BM;"},
        lines=tuple(f"s_a[a_k + {i}][a_m]" for i in range(4)),
        budget="ways <= 1",
    ),
    "swizzle broken": Regression(
        kernel="transpose_xor",
        size="64,64",
        edits={"    tile[ty][tx ^ ty] =": "    tile[ty][tx] =", "= tile[tx][ty ^ tx];": "= tile[tx][ty];"},
        lines=("= tile[tx][ty];",),
        budget="ways <= 1",
    ),
    "swizzle of a GEMM tile broken": Regression(
        kernel="kernel_v4",
        size="128,128,16",
        edits={"a_col = a_m ^ 16 * (a_k / 4);": "a_col = a_m;"},
        lines=tuple(f"s_a[a_k + {i}][a_col]" for i in range(4)),
        budget="ways <= 1",
    ),
    "mapping swapped": Regression(
        kernel="opt_2_naive",
        size="64,64,64",
        edits={
            "row = blockIdx.y * BLOCK + threadIdx.y;": "row = blockIdx.y * BLOCK + threadIdx.x;",
            "col = blockIdx.x * BLOCK + threadIdx.x;": "col = blockIdx.x * BLOCK + threadIdx.y;",
        },
        lines=("= A[row * K + k];", "C[row * N + col] = sum;"),
        budget="sectors <= ideal",
    ),
    "width of a global load narrowed": Regression(
        kernel="kernel_v4",
        size="128,128,16",
        edits={
            "a = LOAD4(A[a_row * K + k0 + a_k]);": "{ const float *p = &A[a_row * K + k0 + a_k]; "
            "a = make_float4(p[0], p[1], p[2], p[3]); }"
        },
        lines=("const float *p = &A",),
        budget="sites(global).sectors <= ideal",
    ),
    "width of a shared store narrowed": Regression(
        kernel="kernel_v5",
        size="128,128,16",
        edits={
            "STORE4(s_b[buffer][b_k][b_n]) = b;": "volatile float *p = &s_b[buffer][b_k][b_n]; "
            "p[0] = b.x; p[1] = b.y; p[2] = b.z; p[3] = b.w;"
        },
        lines=("volatile float *p = &s_b",),
        budget="ways <= 1",
    ),
}


def copied(folder: Folder, planted: Regression, budgets: str) -> None:
    """A project that guards a copy of the kernel, launched as the catalogue launches it."""
    spec = catalog()[planted.kernel]
    assert isinstance(spec, Spec)
    for path in (spec.source, *KERNELS.glob("*.cuh")):
        folder.write(f"src/{path.name}", path.read_text("utf-8"))
    plan = spec.job(planted.size)
    folder.write(
        "memsim.toml",
        f"budgets = {budgets}\n"
        f'[[targets]]\nfile = "src/{spec.source.name}"\n'
        f"grid = {list(plan.launch.grid)}\nblock = {list(plan.launch.block)}\n"
        f"args = {json.dumps([as_text(value) for value in plan.args])}\n",
    )


def as_text(value: Any) -> str:
    if isinstance(value, ArrayArg):
        assert value.dtype == "float32"
        return f"f32[{','.join(map(str, value.shape))}]"
    return str(value)


def plant(folder: Folder, planted: Regression) -> set[int]:
    """Makes the edits; the numbers of the lines that cost more for it."""
    name = f"src/{catalog()[planted.kernel].source.name}"
    for old, new in planted.edits.items():
        folder.edit(name, old, new)
    lines = folder.read(name).splitlines()
    found = {
        number
        for text in planted.lines
        for number, line in enumerate(lines, 1)
        if text in line and not line.startswith("//")
    }
    assert len(found) == len(planted.lines)
    return found


def lines_named(folder: Folder) -> tuple[int, set[int]]:
    """Exit code, and the lines of all findings that break a budget."""
    done = folder.run("check", "--format", "json")
    findings = [f for check in json.loads(done.out)["checks"] for f in check["findings"] if f["breaks"]]
    assert all(finding["file"].startswith("src/") for finding in findings)
    found = [finding for finding in findings if finding["kind"] != "vanished"]  # which has no line any more
    assert all(finding["lanes"] for finding in found)
    return done.code, {finding["line"] for finding in found}


@pytest.mark.some(1)
@pytest.mark.parametrize("name", few(REGRESSIONS, list(REGRESSIONS)[:2]))
def test_a_budget_finds_it(folder: Folder, name: str) -> None:
    planted = REGRESSIONS[name]
    copied(folder, planted, f"['{planted.budget}']")
    assert lines_named(folder) == (0, set())
    lines = plant(folder, planted)
    assert lines_named(folder) == (1, lines)


@pytest.mark.slow
@pytest.mark.parametrize("name", few(REGRESSIONS, list(REGRESSIONS)[:2]))
def test_the_baseline_finds_it(folder: Folder, name: str) -> None:
    planted = REGRESSIONS[name]
    copied(folder, planted, "['baseline']")
    assert folder.run("baseline").code == 0
    assert lines_named(folder) == (0, set())
    lines = plant(folder, planted)
    assert lines_named(folder) == (1, lines)
