"""Integer constants and expressions, as C writes them."""

from __future__ import annotations

import pytest

from memsim.source.expressions import evaluate, open_names
from memsim.source.text import without_comments
from memsim.source.values import constants, functions, value_of, variables, without_excluded_branches

KNOWN = {"a": 64, "s": 2}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("32U", 32),
        ("0x10u", 16),
        ("0x1'00 + 0b1'1 + 1'0", 269),
        ("a / (8 * 1)", 8),
        ("a % 10 << 2", 16),
        ("a == 64", 1),
        ("a != 64", 0),
        ("(s > 1) ? 4 : 8", 4),
        ("(a < 128) ? 8 : (a < 256 ? 4 : 2)", 8),
        ("a > 1 ? s > 5 ? 1 : 2 : 3", 2),
        ("(a > 100 ? 1 : 2) * 3", 6),
        ("sizeof(float4) / sizeof(float)", 4),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("2 + 3 * 4 - 1 << 1 | 1", 27),
        ("!s || a && ~0 == -1", 1),
        ("(int)2.9f + int(3.1) + static_cast<unsigned>(a)", 69),
        ("std::max<int>(a, 100) - min(s, 5)", 98),
        ("1'000'000UL", 1_000_000),
        ("0 ? 1 : 0", 0),
    ],
)
def test_values(expression: str, value: int) -> None:
    assert value_of(expression, KNOWN) == value


@pytest.mark.parametrize(
    "expression",
    [
        *("", "b", "f(a)", "a ?", "a ? 1", "? :", "a / 0", "sizeof(T)", "a b", "1 << -1", "((((", "010"),
        *("2.5", "a + 0.0", "2.5 << 1", "max()", "a(1)", "12ab", "a ->", "max(a, )"),
    ],
)
def test_what_has_no_value(expression: str) -> None:
    assert value_of(expression, KNOWN) is None


def test_a_size_may_be_computed_with_real_numbers() -> None:
    assert evaluate("ceil(a / 24.0)", KNOWN) == 3
    assert evaluate("ceil((float)a / 24)", KNOWN) == 3
    assert evaluate("ceil(a / 24)", KNOWN) == 2  # integers divided, as C does
    assert evaluate("1e1 * .5", KNOWN) == 5


FUNCTIONS = """
#define DIV_UP(x, y) ((x) + (y) - 1) / (y)
static inline constexpr int twice(const int x) { return x * 2; }
int a_loop(int x) { for (;;) x++; return x; }
template <typename T> T same(T x) noexcept { return x; }
int overloaded(int x) { return x; }
int overloaded(float x) { return 2 * x; }
int endless(int x) { return endless(x); }
"""


def test_functions_that_are_one_expression() -> None:
    known = functions(FUNCTIONS)
    assert sorted(known) == ["DIV_UP", "endless", "same", "twice"]
    assert value_of("DIV_UP(a + 1, twice(16))", KNOWN, known) == 3
    assert value_of("same(x)", {"x": 3}, known) == 3
    for unknown in ("twice()", "twice(1, 2)", "overloaded(1)", "endless(1)", "a_loop(1)"):
        assert value_of(unknown, KNOWN, known) is None


def test_names_that_decide_a_value() -> None:
    known = functions(FUNCTIONS)
    assert open_names("DIV_UP(M, a) * (N - N) / (M - M)", KNOWN, known) == ("M", "N")
    assert open_names("a * s", KNOWN) == ()
    assert open_names("other(M)", KNOWN, known) is None
    assert open_names("M +", KNOWN) is None


def test_constants_of_a_source() -> None:
    code = """
#define N 1024
constexpr unsigned int X{32U};
constexpr size_t Y{X / 4U};
const int a = 3, b = a + OTHER;
constexpr uint8_t k = 2;
constexpr int half = wide ? 1 : 2;
"""
    assert constants(code) == {"N": 1024, "X": 32, "Y": 8, "a": 3, "k": 2}
    assert constants(code, {"OTHER": 4, "wide": 0})["b"] == 7
    assert constants(code, {"OTHER": 4, "wide": 0})["half"] == 2


def test_a_name_that_is_defined_twice() -> None:
    code = "constexpr int n = 4; constexpr int n = 8; constexpr int m = n / 2;"
    assert constants(code) == {}
    assert constants(code, last=True) == {"n": 8, "m": 4}


def test_variables_that_keep_their_value() -> None:
    code = """
    int w = 1000, h = WIDE / 2, n = w * h;
    size_t bytes = n * sizeof(float);
    unsigned int same = h; if (same == w || same <= 3 || h >= w) same;
    float scale = 2; int open, later = argc;
"""
    known = {"w": 1000, "h": 350, "n": 350_000, "bytes": 1_400_000, "same": 350}
    assert variables(code, {"WIDE": 700}) == known


@pytest.mark.parametrize(
    "change",
    ["n = 5;", "n *= 2;", "n <<= 1;", "n++;", "--n;", 'scanf("%d", &n);', "std::cin >> n;", "int n = 4;"],
)
def test_a_variable_that_changes_has_no_value(change: str) -> None:
    assert variables(f"int n = 4, m = 3; {change}", {}) == {"m": 3}
    assert variables("int n = 4, m = 3; f(n, m); if (n == m) g(n <= 3);", {}) == {"n": 4, "m": 3}


@pytest.mark.parametrize(
    "text",
    ["1 << 9999999999", "1e999999999", "n * n", "1e300 * 1e300 * 1e300", "1 / (1e-300 * 1e-300 * 1e-300)"],
)
def test_a_number_that_no_memory_holds_has_no_value(text: str) -> None:
    assert evaluate(text, {"n": 1 << 2000}) is None
    assert evaluate("1 << 64", {}) == 1 << 64 and evaluate("1e3 * 1e3", {}) == 10**6


@pytest.mark.parametrize("text", ["0x'", "0x'1", "0b'1", "0b2", "010"])
def test_what_is_no_number_or_an_octal_one_has_no_value(text: str) -> None:
    assert evaluate(text, {}) is None


def test_a_mark_between_digits_quotes_nothing() -> None:
    code = "#define N 1'024  // it's big\nconstexpr int M = 2'048;  // it's bigger\n"
    assert constants(without_comments(code)) == {"N": 1024, "M": 2048}
    assert without_comments("'//'; // a") == "'//';     "


def test_a_comment_goes_on_behind_a_backslash() -> None:
    code = "int a = 1; // \\\nint b = 2;\n int c = 3; // \\ \n int d = 4;"
    assert variables(without_comments(code), {}) == {"a": 1, "c": 3, "d": 4}


def test_branches_of_macros_that_nobody_defines() -> None:
    code = "a\n#ifdef FAST\nb\n#if X\nc\n#endif\n#else\nd\n#endif\n"
    code += "#ifndef FAST\ne\n#endif\n#if Y\nf\n#else\ng\n#endif"
    assert without_excluded_branches(code, {}).split() == ["a", "d", "e", "f", "g"]
    assert without_excluded_branches(code, {"FAST": ""}).split() == ["a", "b", "c", "f", "g"]
    assert without_excluded_branches(code, {}).count("\n") == code.count("\n")
