"""float64 arithmetic on register pairs: `DADD DMUL DFMA DSETP DMNMX`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from memsim.isa.op import Form
from memsim.isa.pairs import from_double
from memsim.isa.readers import Binder, Registers, sources
from memsim.isa.registry import Compute, known, opcode
from memsim.isa.single import MODES, comparison, mode_of
from memsim.state import exact
from memsim.state.fma import fma64
from memsim.state.order import higher, lower
from memsim.state.predicates import from_bools, to_bools
from memsim.state.rounding import Array

#: Every register operand is a pair.
PAIRS = dict.fromkeys(range(4), 2)
_NEAREST: dict[str, tuple[str, Callable[..., Array]]] = {
    "DADD": ("add", np.add),
    "DMUL": ("mul", np.multiply),
    "DFMA": ("fma", fma64),
}


@opcode("DADD", "DMUL", "DFMA", widths=PAIRS)
def build_arithmetic(form: Form, binder: Binder) -> Compute:
    known(form, *MODES)
    name, operation = _NEAREST[form.opcode]
    mode = mode_of(form)
    reads = sources(binder.double, form, 3 if form.opcode == "DFMA" else 2)

    def compute(r: Registers) -> Any:
        values = [read(r) for read in reads]
        found = operation(*values)
        return from_double(found if mode == "rn" else exact.rounded(name, mode, found, *values))

    return compute


@opcode("DSETP", results="PP", widths={2: 2, 3: 2})
def build_dsetp(form: Form, binder: Binder) -> Compute:
    if form.modifiers[0] in ("MAX", "MIN"):
        return larger_operand(form, binder)
    return comparison(form, binder.double, binder, False)


def larger_operand(form: Form, binder: Binder) -> Compute:
    """DSETP.MAX and .MIN: whether the maximum or minimum is the first operand; and whether both are NaN."""
    a, b = (binder.double(operand) for operand in form.operands[2:4])
    largest = form.modifiers[0] == "MAX"

    def compute(r: Registers) -> Any:
        x, y = np.broadcast_arrays(a(r), b(r))
        picks = (x > y if largest else x < y) | (np.isnan(y) & ~np.isnan(x))
        picks |= (x == y) & (np.signbit(x) != largest)
        return from_bools(picks), from_bools(np.isnan(x) & np.isnan(y))

    return compute


@opcode("DMNMX", widths={0: 2, 1: 2, 2: 2})
def build_min_max(form: Form, binder: Binder) -> Compute:
    known(form)
    a, b = (binder.double(operand) for operand in form.operands[1:3])
    smaller = binder.predicate(form.operands[3])

    def compute(r: Registers) -> Any:
        x, y = a(r), b(r)
        return from_double(np.where(to_bools(smaller(r)), lower(x, y), higher(x, y)))

    return compute
