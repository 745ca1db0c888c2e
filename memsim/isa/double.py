"""float64 arithmetic on register pairs: `DADD DMUL DFMA DSETP DMNMX`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from memsim.isa.definitions import BoundForm, Compute, executes
from memsim.isa.pairs import from_double
from memsim.isa.readers import FloatReader, PredicateReader, Registers
from memsim.isa.single import COMPARED, MODES, comparison, mode_of
from memsim.state.predicates import from_bools, to_bools
from memsim.state.rounding import Array, fma64, higher, lower, round_exactly

_NEAREST: dict[str, tuple[str, Callable[..., Array]]] = {
    "DADD": ("add", np.add),
    "DMUL": ("mul", np.multiply),
    "DFMA": ("fma", fma64),
}


@executes("DADD DMUL", "D <- GG", " ".join(MODES))
@executes("DFMA", "D <- GGG", " ".join(MODES))
def arithmetic(form: BoundForm, *reads: FloatReader) -> Compute:
    name, operation = _NEAREST[form.opcode]
    mode = mode_of(form)

    def compute(r: Registers) -> Any:
        values = [read(r) for read in reads]
        found = operation(*values)
        return from_double(found if mode == "rn" else round_exactly(name, mode, found, *values))

    return compute


executes("DSETP", "PP <- GGP", COMPARED.removesuffix(" FTZ"))(comparison)


@executes("DSETP.MAX DSETP.MIN", "PP <- GG P?", None)
def larger_operand(form: BoundForm, a: FloatReader, b: FloatReader, _: object) -> Compute:
    """Whether the maximum or minimum is the first operand; and whether both are NaN."""
    largest = "MAX" in form.given

    def compute(r: Registers) -> Any:
        x, y = np.broadcast_arrays(a(r), b(r))
        picks = (x > y if largest else x < y) | (np.isnan(y) & ~np.isnan(x))
        picks |= (x == y) & (np.signbit(x) != largest)
        return from_bools(picks), from_bools(np.isnan(x) & np.isnan(y))

    return compute


@executes("DMNMX", "D <- GGP")
def min_max(form: BoundForm, a: FloatReader, b: FloatReader, smaller: PredicateReader) -> Compute:
    def compute(r: Registers) -> Any:
        x, y = a(r), b(r)
        return from_double(np.where(to_bools(smaller(r)), lower(x, y), higher(x, y)))

    return compute
