"""Which lines are one statement."""

from __future__ import annotations

import pytest

from memsim.source.statements import statement_at

HEAD = "__global__ void k(float *A, float *B, int n) {\n"


def texts(body: str) -> list[str]:
    """What each line of a kernel's body belongs to; "" for none."""
    found = (statement_at(f"{HEAD}{body}\n}}\n", line + 2) for line in range(body.count("\n") + 1))
    return ["" if one is None else one.text for one in found]


def test_a_statement_in_two_lines_is_one() -> None:
    whole = "A[n] = B[n];"
    assert texts("A[n] =\n    B[n];") == [whole, whole]
    assert texts("A[n] =  // why\n    B[n];  /* so */") == [whole, whole]
    assert texts("A[n] =\r\n    B[n];") == [whole, whole]
    assert texts("A[n] = B[n];\nB[n] = 0;") == ["A[n] = B[n];", "B[n] = 0;"]


def test_a_head_is_apart_from_what_it_controls() -> None:
    head = "if (A[0] > 0 && A[1] > 0)"
    assert texts("if (A[0] > 0 &&\n    A[1] > 0)\n  B[n] = 1;") == [head, head, "B[n] = 1;"]
    loop = "for (int i = 0; i < n; i += int(A[i]))"
    assert texts("for (int i = 0; i < n;\n     i += int(A[i])) {\n  B[i] = 1;\n}") == [
        loop, loop, "B[i] = 1;", "",
    ]  # fmt: skip


def test_statements_that_share_a_line_belong_together() -> None:
    both = "if (n) A[n] = B[n];"
    assert texts("if (n) A[n] =\n    B[n];\nA[0] = 1;") == [both, both, "A[0] = 1;"]


def test_a_lambda_has_statements_of_its_own() -> None:
    assert texts("auto f = [&](int i) {\n  A[i] =\n  B[i];\n};\nf(n);")[1:] == [
        "A[i] = B[i];", "A[i] = B[i];", "", "f(n);",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "line", ['asm volatile("ld.shared.f32 %0, [%1];"', "#pragma unroll", "// A[n] = B[n];"]
)
def test_what_is_no_statement(line: str) -> None:
    assert texts(f"{line}")[0] == ""


@pytest.mark.parametrize(
    "body",
    ["if (n) A[0] =\n1; else " * 2_000 + ";", "A[0] =\n" + "+".join(["B[n]"] * 5_000) + ";", "{" * 5_000],
)
def test_code_that_is_nested_too_deeply_has_no_statements(body: str) -> None:
    assert statement_at(f"{HEAD}{body}\n}}\n", 2) is None
