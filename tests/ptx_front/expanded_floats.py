"""Floating-point instructions of PTX without a machine instruction: quotients, roots and functions.

`FDIV FRCP FSQRT FRSQ FEX2 FLG2 FSIN FCOS` and `DDIV DRCP DSQRT DRSQ`, rounded as in IEEE 754. With `.APPROX`
the chip's result may differ in the last bits. Compilers expand them to sequences around MUFU, or calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from memsim.isa.definitions import BoundForm, Compute, executes
from memsim.isa.floats import ROUNDING, finish, mode_of, wide
from memsim.isa.number_formats import from_double
from memsim.isa.op import Trait
from memsim.isa.readers import FloatReader
from memsim.state.rounding import Array

#: In float64; angles are in radians.
_WORK: dict[str, Callable[..., Array]] = {
    "DIV": np.divide,
    "RCP": np.reciprocal,
    "SQRT": np.sqrt,
    "RSQ": lambda x: 1.0 / np.sqrt(x),
    "EX2": np.exp2,
    "LG2": np.log2,
    "SIN": np.sin,
    "COS": np.cos,
}


@executes("FDIV", "W <- FF", f"APPROX {ROUNDING}", traits={"APPROX": Trait.APPROXIMATES})
@executes(
    "FRCP FSQRT FRSQ FEX2 FLG2 FSIN FCOS",
    "W <- F",
    f"APPROX {ROUNDING}",
    traits={"APPROX": Trait.APPROXIMATES},
)
def build_single(form: BoundForm, *values: FloatReader) -> Compute:
    work = _WORK[form.opcode[1:]]
    return finish(form, wide(work, mode_of(form)), *values, exact=work)


@executes("DDIV", "D <- GG")
@executes("DRCP DSQRT DRSQ", "D <- G")
def build_double(form: BoundForm, *values: FloatReader) -> Compute:
    work = _WORK[form.opcode[1:]]

    def compute(r: list[Any]) -> Any:
        return from_double(np.asarray(work(*(value(r) for value in values)), np.float64))

    return compute
