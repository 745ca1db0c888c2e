"""What a launch knows of the headers of a project."""

from __future__ import annotations

import pytest

from memsim.source.launches import launches
from memsim.source.values import with_header_constants

LAUNCH = "void run(int *p) { k<<<TILE, ROWS>>>(p); }\n"


def sizes(*headers: str, text: str = LAUNCH, given: tuple[str, ...] = ()) -> tuple[int | None, int | None]:
    """Grid and block of the launch; None if not known."""
    (launch,) = launches(with_header_constants(text, headers, given))
    return launch.grid[0].value, launch.block[0].value


def test_constants_and_macros_of_headers_are_known() -> None:
    assert sizes("constexpr int TILE = 32;\n#define ROWS (TILE / 4)\n") == (32, 8)
    assert sizes("#define TILE 32\n", "namespace n { static const uint ROWS = 8, MORE = 9; }\n") == (32, 8)
    call = LAUNCH.replace("TILE", "ceil_div(100, 8)")
    header = "#define ROWS 8\ntemplate <class T> constexpr T ceil_div(T a, T b) { return (a + b - 1) / b; }\n"
    assert sizes(header, text=call) == (13, 8)


@pytest.mark.parametrize(
    ("conditional", "known"),
    [
        ("#ifndef TILE_H\n#define TILE_H\n#define TILE 32\n#endif", 32),
        ("#if !defined(TILE_H)\n#define TILE_H\n#define TILE 32\n#endif", 32),
        ("#ifndef TILE\n#define TILE 32\n#endif", 32),
        ("#ifdef LARGE\n#define TILE 32\n#endif", None),
        ("#if LARGE\n#define TILE 32\n#else\n#define TILE 16\n#endif", None),
        ("#define TILE 16\n#ifdef LARGE\n#undef TILE\n#define TILE 32\n#endif", None),
        ("inline int f() { const int TILE = 32; return TILE; }", None),
        ("struct S { static constexpr int TILE = 32; };", None),
    ],
)
def test_only_what_is_compiled_in_any_case(conditional: str, known: int | None) -> None:
    assert sizes(f"{conditional}\n#define ROWS 8\n") == (known, 8)


def test_the_source_and_the_options_come_first() -> None:
    header = "#define TILE 32\n#define ROWS 8\n"
    assert sizes(header, text=f"#define TILE 16\n{LAUNCH}") == (16, 8)
    assert sizes(header, given=("TILE",)) == (None, 8)
    assert sizes(header, header) == (32, 8)
    assert sizes(header, "#define TILE 64\n") == (None, 8)


def test_a_macro_that_launches_is_not_taken_over() -> None:
    assert "<<<" not in with_header_constants("int x;", ["#define RUN(n) k<<<n, 32>>>(p)\n"], ())


def test_what_is_defined_the_same_way_twice_is_known() -> None:
    """Each header of a collection of kernels has its own `CEIL_DIV`."""
    macro = "#define CEIL(a, b) (((a) + (b) - 1) / (b))\n"
    call = LAUNCH.replace("TILE", "CEIL(100, 8)").replace("ROWS", "8")
    assert sizes(text=macro + macro + call) == (13, 8)
    assert sizes(text=macro + "#define CEIL(a, b) ((a) / (b))\n" + call) == (None, 8)
    assert sizes(text="const int TILE = 32;\nconst int TILE = 32;\n#define ROWS 8\n" + LAUNCH) == (32, 8)
    assert sizes(text="const int TILE = 32;\nconst int TILE = 16;\n#define ROWS 8\n" + LAUNCH) == (None, 8)
