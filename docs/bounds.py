"""Tables of docs/bounds.md: loops and catalogue beside their bounds, from the newest recording."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from memsim.data import data_folder
from memsim.validate.rates.judge_loops import Rated, judge_rates
from memsim.validate.rates.rates_recording import newest_rates


def _table(head: str, found: Iterable[Rated]) -> str:
    rows = [
        f"| {rated.launch.name.removeprefix('loop_')} | {rated.by} | {rated.bound:,} | {rated.cycles:,} "
        f"| {rated.cycles / rated.bound:.2f} | {rated.equal} of {rated.equal + len(rated.different)} |"
        for rated in found
    ]
    titles = (
        f"| {head} | bound by | bound, cycles | `sm__cycles_active.max` | of the bound | counters equal |"
    )
    return "\n".join([titles, "|---|---|---:|---:|---:|---:|", *rows, ""])


def rates_table() -> str:
    """Loops of one instruction."""
    found = judge_rates(newest_rates(data_folder("traces")))
    return _table("loop", (rated for rated in found if rated.launch.unit))


def catalogue_table() -> str:
    """Kernels of the catalogue, nearest to their bounds first."""
    found = judge_rates(newest_rates(data_folder("traces")))
    kernels = (rated for rated in found if not rated.launch.unit)
    return _table("kernel", sorted(kernels, key=lambda rated: rated.cycles / rated.bound))


PARTS: dict[str, Callable[[], str]] = {
    "rates of the pipes": rates_table,
    "bounds of the catalogue": catalogue_table,
}
