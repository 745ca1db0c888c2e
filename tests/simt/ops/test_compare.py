"""Comparisons and selections, bit for bit."""

from __future__ import annotations

import pytest

from tests.simt.harness import Case, Verify, case
from tests.simt.reference import JOIN, compare, flush

INTEGERS = ("s16", "u16", "s32", "u32", "s64", "u64")
ORDERED = ("eq", "ne", "lt", "le", "gt", "ge")
FLOAT_RELATIONS = (*ORDERED, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


def relations(kind: str) -> tuple[str, ...]:
    """The relations that a type has."""
    if kind[0] == "b" and not kind.startswith("bf"):
        return "eq", "ne"
    if kind[0] == "f" or kind.startswith("bf"):
        return FLOAT_RELATIONS
    return (*ORDERED, "lo", "ls", "hi", "hs") if kind[0] == "u" else ORDERED


@pytest.mark.some(6)
@pytest.mark.parametrize("kind", [*INTEGERS, "b16", "b32", "b64", "f32", "f64", "f16", "bf16"])
def test_setp(verify: Verify, kind: str) -> None:
    for relation in relations(kind):
        gives = lambda a, b: compare(relation, a, b)  # noqa: B023, E731
        verify(case(f"setp.{relation}.{kind}", "pred", f"{kind} {kind}", gives))


def test_setp_flushes(verify: Verify) -> None:
    for relation in ("eq", "lt", "geu"):
        gives = lambda a, b: compare(relation, flush(a, "f32"), flush(b, "f32"))  # noqa: B023, E731
        verify(case(f"setp.{relation}.ftz.f32", "pred", "f32 f32", gives))


@pytest.mark.parametrize("join", JOIN)
@pytest.mark.parametrize("kind", ["s32", "f32"])
def test_setp_joined(verify: Verify, join: str, kind: str) -> None:
    """`p|q`: q is the complement of the comparison, joined like p; the predicate may be negated."""
    operation = JOIN[join]

    def both(a: float, b: float, c: bool) -> tuple[bool, bool]:
        answer = compare("lt", a, b)
        return operation(answer, c), operation(not answer, c)

    text = f"setp.lt.{join}.{kind} {{p}}|{{q}}, {{a}}, {{b}}, {{c}};"
    verify(Case(text, ("pred", "pred"), (kind, kind, "pred"), both))
    text = f"setp.lt.{join}.{kind} {{p}}, {{a}}, {{b}}, !{{c}};"
    verify(Case(text, ("pred",), (kind, kind, "pred"), lambda a, b, c: both(a, b, not c)[0]))


def test_setp_pair(verify: Verify) -> None:
    for kind in ("u32", "f64"):
        gives = lambda a, b: (compare("ge", a, b), not compare("ge", a, b))  # noqa: E731
        verify(case(f"setp.ge.{kind}", "pred pred", f"{kind} {kind}", gives))


@pytest.mark.parametrize("kind", ["f16x2", "bf16x2"])
def test_setp_packed(verify: Verify, kind: str) -> None:
    for relation in ("eq", "ltu", "num"):
        gives = lambda a, b: (compare(relation, a[0], b[0]), compare(relation, a[1], b[1]))  # noqa: B023, E731
        verify(case(f"setp.{relation}.{kind}", "pred pred", f"{kind} {kind}", gives))
    joined = lambda a, b, c: (compare("gt", a[0], b[0]) and c, compare("gt", a[1], b[1]) and c)  # noqa: E731
    verify(case(f"setp.gt.and.{kind}", "pred pred", f"{kind} {kind} pred", joined))


@pytest.mark.some(10)
@pytest.mark.parametrize("target", ["u32", "s32", "f32"])
@pytest.mark.parametrize("source", [*INTEGERS, "f32", "f64"])
def test_set(verify: Verify, target: str, source: str) -> None:
    true = 1.0 if target == "f32" else -1
    zero = 0.0 if target == "f32" else 0
    two = f"{source} {source}"
    verify(case(f"set.lt.{target}.{source}", target, two, lambda a, b: true if compare("lt", a, b) else zero))
    joined = lambda a, b, c: true if compare("ne", a, b) and not c else zero  # noqa: E731
    text = f"set.ne.and.{target}.{source} {{p}}, {{a}}, {{b}}, !{{c}};"
    verify(Case(text, (target,), (source, source, "pred"), joined))


@pytest.mark.parametrize("kind", [*INTEGERS, "b16", "b32", "b64", "f32", "f64"])
def test_selp(verify: Verify, kind: str) -> None:
    verify(case(f"selp.{kind}", kind, f"{kind} {kind} pred", lambda a, b, p: a if p else b))


@pytest.mark.parametrize("kind", [*INTEGERS, "b32", "f32", "f64"])
def test_slct(verify: Verify, kind: str) -> None:
    two = f"{kind} {kind}"
    verify(case(f"slct.{kind}.s32", kind, f"{two} s32", lambda a, b, c: a if c >= 0 else b))
    verify(case(f"slct.{kind}.f32", kind, f"{two} f32", lambda a, b, c: a if c >= 0 else b))
    flushed = lambda a, b, c: a if flush(c, "f32") >= 0 else b  # noqa: E731
    verify(case(f"slct.ftz.{kind}.f32", kind, f"{two} f32", flushed))
