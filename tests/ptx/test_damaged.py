"""Damaged PTX gives a MemsimError with a place, or still is PTX; never another exception."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from memsim.errors import MemsimError
from memsim.ptx.parser import parse

SAMPLES = Path(__file__).parent / "samples"
TEXTS = [(SAMPLES / f"{name}.nvcc.ptx").read_text(encoding="utf-8") for name in ("async", "flow", "names")]
PIECES = [*"{}[]()<>;:,.|!@+-_$%\"'\n09x", ".reg .b32 %r1;", ".loc 1", "bra "]
PIECES += "/* // 0f :: generic( call -1 0xFF( é %tid.".split()


@given(st.data())
def test_damaged_text(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 12)))
        text = text[:start] + data.draw(st.sampled_from(["", *PIECES])) + text[end:]
    try:
        parse(text, "damaged.ptx")
    except MemsimError as error:
        lines = text.split("\n")
        assert error.file == "damaged.ptx"
        assert error.line is not None and 1 <= error.line <= len(lines)
        assert error.column is not None and 1 <= error.column <= len(lines[error.line - 1]) + 1


@given(st.text(alphabet=st.sampled_from([*'{}[]();:,.|!@+-_ \n019afx%"/*', "é"]), max_size=60))
def test_random_text_in_a_kernel(text: str) -> None:
    try:
        parse(f".version 8.4 .target sm_90 .address_size 64 .entry k() {{ .reg .b32 %a, x; {text}")
    except MemsimError as error:
        assert error.line is not None and error.column is not None


def test_nesting_without_end() -> None:
    start = ".version 8.4 .target sm_90 .address_size 64 .entry k() "
    assert parse(start + "{" * 50 + "}" * 50).entries == ("k",)
    for deep in ("{" * 20_000, "{ .reg .b32 %r; mov.b32 %r, " + "{" * 20_000):
        try:
            parse(start + deep)
        except MemsimError as error:
            assert "nested too deeply" in error.message
        else:
            raise AssertionError("this is no PTX")
