"""The schedule in an instruction's bits."""

from __future__ import annotations

import pytest

from memsim.kernels import catalog
from memsim.time.control_codes import ControlCode, control_code, control_codes


def encoded(stall: int, steady: int, result: int, operands: int, waits: int, reuse: int) -> bytes:
    bits = stall | steady << 4 | result << 5 | operands << 8 | waits << 11 | reuse << 17
    return bytes(8) + (bits << 41 | 0x123).to_bytes(8, "little")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ((5, 1, 7, 7, 0, 0), ControlCode(5, False, None, None, (), 0)),
        ((1, 0, 2, 0, 0b100001, 0b101), ControlCode(1, True, 2, 0, (0, 5), 5)),
        ((15, 1, 0, 6, 0b111111, 15), ControlCode(15, False, 0, 6, (0, 1, 2, 3, 4, 5), 15)),
    ],
)
def test_the_fields_of_a_control_code(fields: tuple[int, ...], code: ControlCode) -> None:
    assert control_code(encoded(*fields)) == code
    assert control_codes(encoded(*fields) * 3) == [code] * 3


def test_the_counters_of_a_kernel_are_those_that_somebody_waits_for() -> None:
    """Every counter that an instruction of a compiled kernel waits for is set by another one."""
    image = catalog()["transpose_naive"].job().loaded.machine.image
    codes = control_codes(image.code)
    assert len(codes) == len(image.code) // 16
    awaited = {number for code in codes for number in code.waits}
    assert awaited
    assert awaited <= {code.result for code in codes} | {code.operands for code in codes}
