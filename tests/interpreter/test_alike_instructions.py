"""Instructions that differ in their registers alone have one lowering, which is that of each."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.api.running import prepared_launch
from memsim.driver.native_build import libraries
from memsim.interpreter import lowered_kernel
from memsim.interpreter.alike_instructions import representative_of
from memsim.interpreter.lowered_kernel import LoweredKernel
from memsim.interpreter.native_launch import NativeInterpreter
from memsim.kernels import catalog
from memsim.sass.decode import decode
from tests.interpreter.test_kernels import pytestmark
from tests.simt.listings import listing

__all__ = ["pytestmark"]


def standing_for(text: str) -> str | None:
    """The text of the instruction that stands for one."""
    op = decode(listing(f"{text}\nEXIT")).ops[0]
    found = representative_of(op)
    return None if found is None else found.op.text


@pytest.mark.parametrize(
    ("one", "others", "different"),
    [
        (
            "IADD3 R4, R7, R9, RZ",
            ["IADD3 R200, R3, R9.reuse, RZ", "IADD3 R9, R4, R7, RZ"],
            ["IADD3 R4, R4, R9, RZ", "IADD3 R4, R7, -R9, RZ", "IADD3 R4, R7, R9, R9", "IADD3 R4, R5, R9, RZ"],
        ),
        (
            "@P1 IMAD.WIDE R2, R4, 0x4, R6",
            ["@P6 IMAD.WIDE R20, R22, 0x4, R24"],
            ["@P1 IMAD.WIDE R2, R3, 0x4, R6", "@!P1 IMAD.WIDE R2, R4, 0x4, R6", "IMAD.WIDE R2, R4, 0x4, R6"],
        ),
        (
            "LDG.E.128 R4, desc[UR4][R8.64+0x10]",
            ["LDG.E.128 R40, desc[UR8][R44.64+0x10]"],
            ["LDG.E.128 R4, desc[UR4][R6.64+0x10]", "LDG.E.128 R4, desc[UR4][R10.64+0x10]"],
        ),
        ("ISETP.GE.AND P0, PT, R3, c[0x0][0x210], P1", ["ISETP.GE.AND P4, PT, R8, c[0x0][0x210], P5"], []),
    ],
)
def test_which_instructions_are_alike(one: str, others: list[str], different: list[str]) -> None:
    """Those whose registers coincide in the same way, and lie beside each other in the same way."""
    assert {standing_for(text) for text in others} == {standing_for(one)} != {None}
    assert not {standing_for(text) for text in different} & {standing_for(one), None}


def test_what_a_text_does_not_say_is_not_alike() -> None:
    assert standing_for("BRA 0x10") is None and standing_for("EXIT") is None


@pytest.mark.parametrize("name", ["kernel_v4", "transpose_naive", "kernel_v5"])
def test_a_kernel_is_lowered_as_its_instructions_are(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = NativeInterpreter(libraries()).names
    code = prepared_launch(catalog()[name].job(), everything=True).code
    made = []
    for is_alike in (True, False, True):
        monkeypatch.setattr(lowered_kernel, "_ALIKE", {})
        lowered_kernel.known_of.cache_clear()
        with monkeypatch.context() as patch:
            if not is_alike:
                patch.setattr(LoweredKernel, "_as_alike", lambda *of: None)
            made.append(LoweredKernel(code, names, False))
        assert bool(lowered_kernel._ALIKE) is is_alike
    first, direct, _ = made
    for field in ("code", "k", "d", "a", "b", "c", "next"):
        assert np.array_equal(first.operations[field], direct.operations[field])
    assert np.array_equal(first.constants, direct.constants)
    assert all(
        np.array_equal(first.accesses[field], direct.accesses[field])
        for field in first.accesses.dtype.names
        if field != "content"  # where a constant bank lies
    )
