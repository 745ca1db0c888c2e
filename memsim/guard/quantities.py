"""What a budget can limit: a table of quantities of a row of an analysis.

In: a `SiteCounts` row. Out: an exact number, or None where the quantity does not apply to the row.
Left out on purpose: sums over rows and limits (`memsim.guard.judge`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from memsim.analysis import SiteCounts

Value = Callable[[SiteCounts], Fraction | None]

SHARED, GLOBAL, LOCAL = ("shared",), ("global",), ("local",)
WITH_IDEAL = (*SHARED, *GLOBAL, *LOCAL)
ALL = (*WITH_IDEAL, "constant")


@dataclass(frozen=True, slots=True)
class Quantity:
    """One name of the budget language.

    meaning: for the documentation. spaces: where it applies. of: its value for a row. adds_up: a limit
    in numbers is for the sum over a kernel's rows, each space by itself if `apart`; else for each row
    alone. ideal: the best value a row could have, if there is one. whole: what a percentage is of. least,
    most: between these it is for every access that is made, whatever its addresses; most None: no bound.
    absent: a budget says something of a kernel without such accesses too: that there shall be none.
    """

    name: str
    meaning: str
    spaces: tuple[str, ...]
    of: Value
    adds_up: bool
    apart: bool = False
    ideal: Value | None = None
    whole: Value | None = None
    least: int = 0
    most: int | None = None
    absent: bool = False


# A warp has so many lanes, each of which asks for one bank, one sector and one line, or for less.
LANES = 32


def field(name: str) -> Value:
    """The field `name` of a row."""

    def value(site: SiteCounts) -> Fraction | None:
        count = getattr(site, name)
        return None if count is None else Fraction(count)

    return value


def per_request(name: str) -> Value:
    """The field `name` for each request; 0 where no request was made."""

    def value(site: SiteCounts) -> Fraction | None:
        count = getattr(site, name)
        return None if count is None else Fraction(count, max(site.requests or 0, 1))

    return value


def _actual(site: SiteCounts) -> Fraction | None:
    """Wavefronts of a shared access, sectors of others."""
    return field("wavefronts" if site.space == "shared" else "sectors")(site)


def _excess(site: SiteCounts) -> Fraction | None:
    actual = _actual(site)
    ideal = field("ideal_wavefronts" if site.space == "shared" else "ideal_sectors")(site)
    return None if actual is None or ideal is None else actual - ideal


_TABLE = (
    Quantity(
        "ways",
        "the worst request's ways; 1 is conflict-free",
        SHARED,
        field("max_ways"),
        False,
        least=1,
        most=LANES,
    ),
    Quantity(
        "wavefronts",
        "shared wavefronts",
        SHARED,
        field("wavefronts"),
        True,
        ideal=field("ideal_wavefronts"),
    ),
    Quantity(
        "conflicts",
        "wavefronts that bank conflicts add",
        SHARED,
        field("conflicts"),
        True,
        whole=field("wavefronts"),
    ),
    Quantity(
        "wavefronts_per_request",
        "shared wavefronts of a request, on average",
        SHARED,
        per_request("wavefronts"),
        False,
        ideal=per_request("ideal_wavefronts"),
    ),
    Quantity(
        "sectors",
        "32-byte sectors of global memory",
        GLOBAL,
        field("sectors"),
        True,
        ideal=field("ideal_sectors"),
    ),
    Quantity(
        "sectors_per_request",
        "32-byte sectors of a request, on average",
        GLOBAL,
        per_request("sectors"),
        False,
        ideal=per_request("ideal_sectors"),
        most=LANES,
    ),
    Quantity("lines", "128-byte lines of global memory", GLOBAL, field("lines"), True),
    Quantity(
        "lines_per_request",
        "128-byte lines of a request, on average",
        GLOBAL,
        per_request("lines"),
        False,
        most=LANES,
    ),
    Quantity(
        "excess",
        "what is above the ideal: wavefronts of shared memory, sectors of global and of local memory",
        WITH_IDEAL,
        _excess,
        True,
        apart=True,
        whole=_actual,
    ),
    Quantity(
        "local_sectors",
        "32-byte sectors of local memory: spilled registers, arrays of a thread; also where there are none",
        LOCAL,
        field("sectors"),
        True,
        ideal=field("ideal_sectors"),
        absent=True,
    ),
    Quantity("requests", "warp instructions with an active lane", ALL, field("requests"), True, least=1),
    Quantity("instructions", "warp instructions executed", ALL, field("instructions"), True, least=1),
)

QUANTITIES = {quantity.name: quantity for quantity in _TABLE}
