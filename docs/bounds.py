"""Tables of docs/rates.md: loops, streams and catalogue beside their bounds, from the newest recording."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from lab.experiments import RATES
from lab.rates.judge_rates import CLOCK, CYCLES, STREAM, Rated, RateLaunch, judge_rates
from memsim.arch import SM_90
from memsim.arch.chip import MemoryRates
from memsim.data import data_folder
from memsim.kernels import catalog
from memsim.validate.device import slug
from memsim.views.plain import table

#: The GPU whose order the tables have.
FIRST = "nvidia-h200"


def _table(head: str, found: Iterable[Rated]) -> str:
    """A row for each, with the cycles on each GPU."""
    products = sorted((board.product for board in SM_90.boards), key=lambda product: slug(product) != FIRST)
    judged = [{rated.launch.name: rated for rated in _judged(slug(product))} for product in products]
    rows = [
        [first.launch.name.removeprefix("loop_"), first.by]
        + [cell for of_gpu in judged for cell in _cells(of_gpu.get(first.launch.name))]
        for first in found
    ]
    short = [product.removeprefix("NVIDIA ").split()[0] for product in products]
    columns = [
        f"{what}, {name}" for name in short for what in ("bound", "cycles", "of the bound", "counters equal")
    ]
    return table([head, "bound by", *columns], rows, "ll" + "r" * len(columns)) + "\n"


def _cells(rated: Rated | None) -> list[str]:
    """Bound and cycles on one GPU; empty if it was not measured there."""
    if rated is None:
        return [""] * 4
    equal = f"{rated.equal} of {rated.equal + len(rated.different)}"
    return [f"{rated.bound:,}", f"{rated.cycles:,}", f"{rated.cycles / rated.bound:.2f}", equal]


def rates_table() -> str:
    """Loops of one instruction, and streams."""
    loops = _table("loop", (rated for rated in _judged() if not rated.launch.is_of_catalogue))
    recordings = [RATES.newest(data_folder("traces"), slug(board.product)) for board in SM_90.boards]
    said = [f"- {RATES.report(recording).headline}" for recording in recordings]
    return "\n".join([loops, "These, and the catalogue below:", "", *said, ""])


def catalogue_table() -> str:
    """Kernels of the catalogue, nearest to their bounds first; without those that have changed since."""
    kernels = (rated for rated in _judged() if _is_unchanged(rated.launch))
    return _table("kernel", sorted(kernels, key=lambda rated: rated.cycles / rated.bound))


def _is_unchanged(launch: RateLaunch) -> bool:
    """Whether it ran the code that a kernel of the catalogue has now."""
    kernel = catalog().get(launch.name)
    return kernel is not None and kernel.job().loaded.origin.digest == launch.digest


@cache
def _judged(gpu: str = FIRST) -> list[Rated]:
    return judge_rates(RATES.newest(data_folder("traces"), gpu))


def memory_table() -> str:
    """The rates of each product's memory, and what was attained of them."""
    columns = [_memory_column(board) for board in SM_90.boards]
    rows = [[what, *(column[what] for column in columns)] for what in columns[0]]
    products = [board.product for board in SM_90.boards]
    return table(["rate", *products], rows, "l" + "r" * len(products)) + "\n"


def _memory_column(board: MemoryRates) -> dict[str, str]:
    """The rates of a product, in a cycle of its multiprocessors at their boost clock."""
    recording = RATES.newest(data_folder("traces"), slug(board.product))
    streams = [launch for launch in recording.launches if launch.name.startswith(STREAM)]
    ones = [launch for launch in streams if launch.name.endswith("_one")]
    copies = [launch for launch in streams if launch.name == f"{STREAM}dram_copy"]
    clock = SM_90.sheet.clock
    moved = max(map(_dram_bytes_a_second, streams))
    return {
        "L2 cache, read by all multiprocessors, sectors a cycle": (
            f"{board.l2_read:g} ({_most_sectors('read', streams):.1f})"
        ),
        "read by one": f"{board.l2_read_of_one:g} ({_most_sectors('read', ones):.2f})",
        "written by all": f"{board.l2_written:g} ({_most_sectors('write', streams):.1f})",
        "written by one": f"{board.l2_written_of_one:g} ({_most_sectors('write', ones):.2f})",
        "DRAM, GB/s": f"{board.dram / 1e9:,.0f} ({moved / 1e9:,.0f})",
        "DRAM, bytes a cycle": f"{board.dram / clock:,.0f} ({moved / clock:,.0f})",
        "a copy's, in both directions, GB/s": f"{_dram_bytes_a_second(copies[0]) / 1e9:,.0f}",
    }


def _most_sectors(way: str, launches: Iterable[RateLaunch]) -> float:
    """The most that one of the launches moved in a cycle, less if its clock was below the boost clock."""
    boost = SM_90.sheet.clock
    return max(
        each.counters[f"lts__t_sectors_srcunit_tex_op_{way}.sum"]
        / each.counters[CYCLES]
        * min(1, each.counters[CLOCK] / boost)
        for each in launches
    )


def _dram_bytes_a_second(launch: RateLaunch) -> float:
    of = launch.counters
    sectors = of["dram__sectors_read.sum"] + of["dram__sectors_write.sum"]
    return SM_90.sector_bytes * sectors / of[CYCLES] * of[CLOCK]


PARTS: dict[str, Callable[[], str]] = {
    "rates of the pipes": rates_table,
    "rates of memory": memory_table,
    "bounds of the catalogue": catalogue_table,
}
