"""The quantities of a row that a budget can limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from memsim.analysis import SiteCounts
from memsim.arch.units import WARP
from memsim.counts import FIELDS

Value = Callable[[SiteCounts], Fraction | None]

SHARED, LOCAL, BY_LINES = ("shared",), ("local",), ("global", "texture")
WITH_IDEAL = tuple(space for space in FIELDS if space != "constant")
ALL = tuple(FIELDS)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A name in the budget language.

    meaning: for the documentation. spaces: where it applies. of: its value for a row. adds_up: a numeric
    limit applies to the sum over a kernel's rows, for each space separately if `apart`; else to each row.
    ideal: the best value that a row could have, if there is one. whole: what percentages refer to. least,
    most: its range for every access that is made, whatever its addresses; most None: unbounded. absent: a
    budget also applies to a kernel without such accesses: that there are none.
    """

    name: str
    meaning: str
    spaces: tuple[str, ...]
    of: Value
    adds_up: bool = True
    apart: bool = False
    ideal: Value | None = None
    whole: Value | None = None
    least: int = 0
    most: int | None = None
    absent: bool = False


def field(name: str, per_request: bool = False) -> Value:
    """The field `name` of a row, or its average over the requests; 0 if no request was made."""

    def value(site: SiteCounts) -> Fraction | None:
        count = getattr(site, name)
        return None if count is None else Fraction(count, max(site.requests or 0, 1) if per_request else 1)

    return value


WAVEFRONTS, IDEAL_WAVEFRONTS = field("wavefronts"), field("ideal_wavefronts")
SECTORS, IDEAL_SECTORS = field("sectors"), field("ideal_sectors")


def _actual(site: SiteCounts) -> Fraction | None:
    """Wavefronts of a shared access, sectors of others."""
    return WAVEFRONTS(site) if site.space == "shared" else SECTORS(site)


def excess(site: SiteCounts) -> Fraction | None:
    """Wavefronts or sectors above the ideal; None if not known, or if there is no ideal."""
    actual = _actual(site)
    ideal = IDEAL_WAVEFRONTS(site) if site.space == "shared" else IDEAL_SECTORS(site)
    return None if actual is None or ideal is None else actual - ideal


def _average(
    name: str, what: str, spaces: tuple[str, ...], ideal: str | None = None, most: int | None = None
) -> Quantity:
    """A count over the requests; name, ideal: fields of a row."""
    meaning = f"{what} per request, on average"
    best = None if ideal is None else field(ideal, per_request=True)
    average = field(name, per_request=True)
    return Quantity(f"{name}_per_request", meaning, spaces, average, adds_up=False, ideal=best, most=most)


# `most` is WARP where a request is of a warp, as each lane touches at most one bank, one sector and one line,
# and where one is of 4 lanes of a texture fetch, as each touches at most 8 texels (4, if it is served twice).
_TABLE = (
    Quantity(
        "ways",
        "the worst request's ways; 1 is conflict-free",
        SHARED,
        field("max_ways"),
        adds_up=False,
        least=1,
        most=WARP,
    ),
    Quantity("wavefronts", "shared wavefronts", SHARED, WAVEFRONTS, ideal=IDEAL_WAVEFRONTS),
    Quantity("conflicts", "wavefronts that bank conflicts add", SHARED, field("conflicts"), whole=WAVEFRONTS),
    _average("wavefronts", "shared wavefronts", SHARED, "ideal_wavefronts"),
    Quantity("sectors", "32-byte sectors", BY_LINES, SECTORS, ideal=IDEAL_SECTORS),
    _average("sectors", "32-byte sectors", BY_LINES, "ideal_sectors", most=WARP),
    Quantity("lines", "128-byte lines", BY_LINES, field("lines")),
    _average("lines", "128-byte lines", BY_LINES, most=WARP),
    Quantity(
        "excess",
        "the excess over the ideal: wavefronts of shared memory, sectors of the others",
        WITH_IDEAL,
        excess,
        apart=True,
        whole=_actual,
    ),
    Quantity(
        "local_sectors",
        "32-byte sectors of local memory: register spills, arrays of a thread; also if there are none",
        LOCAL,
        SECTORS,
        ideal=IDEAL_SECTORS,
        absent=True,
    ),
    Quantity(
        "requests",
        "warp instructions with an active lane, as the chip splits them",
        ALL,
        field("requests"),
        least=1,
    ),
    Quantity("instructions", "warp instructions executed", ALL, field("instructions"), least=1),
)

QUANTITIES = {quantity.name: quantity for quantity in _TABLE}
