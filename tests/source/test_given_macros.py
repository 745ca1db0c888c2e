"""Macros of the command line in a text that is only read."""

from __future__ import annotations

import pytest

from memsim.source.kernels import kernels
from memsim.source.launches import instances_of, launches
from memsim.source.values import constants, with_macros

GUARDED = """\
#ifndef TILE
#define TILE 16
#endif
#ifdef WIDE
#define STEP 4
#elif defined(X)
#define STEP 3
#else
#define STEP 1
#endif
template <int N> __global__ void k(float *x) { x[threadIdx.x] = N; }
void run(float *x) { k<TILE><<<1024 / TILE, TILE>>>(x); }
"""


@pytest.mark.parametrize(
    ("macros", "values"),
    [
        ({}, {"TILE": 16}),
        ({"TILE": "32"}, {"TILE": 32}),
        ({"TILE": "2 * HALF", "HALF": "24"}, {"TILE": 48, "HALF": 24}),
        ({"WIDE": "1"}, {"TILE": 16, "STEP": 4, "WIDE": 1}),
    ],
)
def test_a_macro_that_is_given_counts_and_its_default_does_not(
    macros: dict[str, str], values: dict[str, int]
) -> None:
    assert constants(with_macros(GUARDED, macros)) == values


def test_the_launch_is_that_of_the_macros() -> None:
    given = with_macros(GUARDED, {"TILE": "32"})
    (before,), (after,) = launches(GUARDED), launches(given)
    assert (before.grid[0].value, before.block[0].value) == (64, 16)
    assert (after.grid[0].value, after.block[0].value, after.line) == (32, 32, before.line)
    assert (instances_of(GUARDED), instances_of(given)) == (("k<16>",), ("k<32>",))


def test_what_the_source_defines_whatever_is_given_stays() -> None:
    """The compiler reads the source's definition after that of its options."""
    assert constants(with_macros("#define TILE 16\n", {"TILE": "32"})) == {"TILE": 16}


@pytest.mark.parametrize("text", ["#else\n#endif\nint x;", "#ifdef A\nint x;", "#if A\n#ifndef B\n#endif"])
def test_a_group_that_is_not_closed_is_no_error(text: str) -> None:
    assert with_macros(text, {"A": "1"}).count("\n") == text.count("\n") + 1


def test_a_macro_may_qualify_a_pointer() -> None:
    """`RESTRICT` is no name of a parameter, and what is multiplied stays."""
    (kernel,) = kernels(
        "__global__ void k(const float *RESTRICT in, float *RESTRICT out, float *N, int n = 4 * M) {}"
    )
    assert [str(parameter) for parameter in kernel.parameters] == [
        "const float *in",
        "float *out",
        "float *N",
        "int n",
    ]
