"""A source line as tables show it: inline assembly by its instruction."""

from __future__ import annotations

import pytest

from memsim.source.text import code_line

LDMATRIX = r"""
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"  // a tile
        : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
        : "r"(at));
"""
GUARDED = r"""
    x = 1; __asm__ __volatile__ ("{\n\t"
        ".reg .pred p;\n\t"
        "setp.ne.b32 p, %2, 0;\n\t"
        "@p ld.global.nc.f32 %0, [%1];\n\t"
        "}" : "=f"(r) : "l"(pointer), "r"(inside));
"""


@pytest.mark.parametrize(
    ("text", "line", "shown"),
    [
        ("a;\n  b = c;  \n", 2, "b = c;"),
        ("a;\n", 2, ""),
        ("a;\n", 0, ""),
        (LDMATRIX, 2, 'asm "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4]"'),
        (LDMATRIX, 4, ': "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])'),
        (GUARDED, 2, 'x = 1; asm "@p ld.global.nc.f32 %0, [%1]"'),
        ('asm volatile("bar.sync 0;"', 1, 'asm volatile("bar.sync 0;"'),  # it is there
        ('asm("membar.gl;" : : );', 1, 'asm("membar.gl;" : : );'),
        ('asm(\n"mov.b32 %0, %1; add.u32 %0, %0, 1;" : "=r"(a) : "r"(b));', 1, 'asm "mov.b32 %0, %1"'),
        ("asm volatile(\n  TEXT : : );", 1, "asm volatile("),  # a macro
        ("asm volatile(", 1, "asm volatile("),
        ("int wasm(\n", 1, "int wasm("),
    ],
)
def test_a_line_shows_what_identifies_it(text: str, line: int, shown: str) -> None:
    assert code_line(text, line) == shown
