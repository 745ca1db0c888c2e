"""How far `MUFU` may be off on any chip: the errors that are documented for PTX's approximations.

Source: PTX ISA, `rcp.approx.ftz.f32` (1 unit in the last place), `sqrt.approx` (2**-23 of the result),
`rsqrt.approx` (2**-22.9), `ex2.approx` (2**-22), `lg2.approx` (2**-22, of the result beyond 1/2 to 2),
`tanh.approx` (2**-11), `sin.approx` and `cos.approx` (2**-20.5 within a turn, to which the product that is
their argument adds 2**-22.3): each is one MUFU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from memsim.isa.multi_function import FUNCTIONS, Floats
from memsim.isa.op import Form

Doubles = npt.NDArray[np.float64]

_TURN: Final = 2 * np.pi
_SMALLEST, _LARGEST = (float(one) for one in (np.finfo(np.float32).tiny, np.finfo(np.float32).max))


def _relative(bits: float) -> Callable[[Doubles, Doubles], Doubles]:
    return lambda x, value: np.abs(value) * 2.0**-bits


def _of_turn(x: Doubles, value: Doubles) -> Doubles:
    return np.where(np.abs(x) <= 1, 2.0**-20, np.nan)


def _of_logarithm(x: Doubles, value: Doubles) -> Doubles:
    return 2.0**-22 * np.where((x > 0.5) & (x < 2), 1, np.abs(value))


#: By the modifier of `MUFU` the function, and its error by argument and value.
ERRORS: Final[dict[str, tuple[Callable[[Doubles], Doubles], Callable[[Doubles, Doubles], Doubles]]]] = {
    "RCP": (lambda x: 1 / x, _relative(23)),
    "SQRT": (np.sqrt, _relative(23)),
    "RSQ": (lambda x: 1 / np.sqrt(x), _relative(22.9)),
    "EX2": (np.exp2, _relative(22)),
    "LG2": (np.log2, _of_logarithm),
    "TANH": (np.tanh, _relative(11)),
    "SIN": (lambda x: np.sin(_TURN * x), _of_turn),
    "COS": (lambda x: np.cos(_TURN * x), _of_turn),
}
#: Those that are not monotone.
_PERIODIC: Final = ("SIN", "COS")
_OF_POSITIVE: Final = ("SQRT", "RSQ", "LG2")


def limits(name: str, x: Floats) -> tuple[Floats, Floats]:
    """Between which numbers a function's result is on any chip; not a number where that is not known.

    Of zero, infinity and, where it is none of a positive number, negative ones all chips make the same.
    """
    function, error = ERRORS[name]
    given = x.astype(np.float64)
    value = function(given)
    by = error(given, value)
    within = (np.maximum(np.abs(value), by) >= 2 * _SMALLEST) & (np.abs(value) + by <= _LARGEST)
    special = (np.abs(given) < _SMALLEST) | ~np.isfinite(given) | ((given < 0) & (name in _OF_POSITIVE))
    found = []
    for sign in (-1, 1):
        moved = np.nextafter((value + sign * by).astype(np.float32), np.float32(sign * np.inf))
        found.append(np.where(special, FUNCTIONS[name](x), np.where(within, moved, np.float32(np.nan))))
    return found[0], found[1]


def limits_between(form: Form, first: Floats, second: Floats) -> list[Floats] | None:
    """Numbers between which the result of a `MUFU` is for all arguments between two, which may be the same;
    None if they are not known.
    """
    name = form.modifiers[0]
    if name not in ERRORS or set(form.modifiers[1:]) - {"FTZ"}:
        return None
    same = first.view(np.int32) == second.view(np.int32)
    if not same.all() and (name in _PERIODIC or (np.signbit(first) != np.signbit(second)).any()):
        return None
    return [*limits(name, first), *limits(name, second)]
