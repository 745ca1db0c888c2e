"""Floating-point instructions of PTX without a machine instruction: quotients, roots and functions.

`FDIV FRCP FSQRT FRSQ FEX2 FLG2 FSIN FCOS` and `DDIV DRCP DSQRT DRSQ`, rounded as in IEEE 754. With `.APPROX`
the chip's result may differ in the last bits. Compilers expand them to sequences around MUFU, or calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from memsim.isa.double import PAIRS
from memsim.isa.op import Form
from memsim.isa.pairs import from_double
from memsim.isa.readers import Binder, sources
from memsim.isa.registry import Compute, known, opcode
from memsim.isa.single import ROUNDING, finish, mode_of, wide
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


@opcode("FDIV", "FRCP", "FSQRT", "FRSQ", "FEX2", "FLG2", "FSIN", "FCOS")
def build_single(form: Form, binder: Binder) -> Compute:
    exact = Form(form.opcode, tuple(name for name in form.modifiers if name != "APPROX"), form.operands)
    known(exact, *ROUNDING.split())
    work = _WORK[form.opcode[1:]]
    values = sources(binder.single, form, 2 if form.opcode == "FDIV" else 1)
    return finish(exact, wide(work, mode_of(exact)), *values, exact=work)


@opcode("DDIV", "DRCP", "DSQRT", "DRSQ", widths=PAIRS)
def build_double(form: Form, binder: Binder) -> Compute:
    known(form)
    work = _WORK[form.opcode[1:]]
    values = sources(binder.double, form, 2 if form.opcode == "DDIV" else 1)

    def compute(r: list[Any]) -> Any:
        return from_double(np.asarray(work(*(value(r) for value in values)), np.float64))

    return compute
