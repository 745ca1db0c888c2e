"""Tables of docs/time.md: estimated beside measured cycles, what each unit contributes, and the constants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from statistics import mean, median

from lab.experiments import RATES
from memsim.arch import SM_90
from memsim.data import data_folder
from memsim.kernels import compiled_kernels
from memsim.time.latencies import Latencies
from memsim.time.multiprocessor import ABLATIONS
from memsim.time.predict_time import LaunchTime, PreparedTime
from memsim.validate.device import slug
from memsim.views.plain import table

ACTIVE, ELAPSED = "sm__cycles_active.max", "sm__cycles_elapsed.max"
#: The GPU on which constants were chosen, on every second kernel by name.
CHOSEN_ON = "NVIDIA H200"
#: Kernels whose ablations are quick: one block a multiprocessor, or a few thousand cycles.
ABLATED = (
    "ada_decoupled", "guide_v12", "kernel_v3", "kernel_v4", "kernel_v5", "opt_5_float4",
    "opt_7_no_bank_conflict", "permuted_write", "permuted_write_fixed", "sgemm_128x128x8",
    "sgemm_tuned", "transpose_naive", "transpose_padded", "transpose_xor",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TimedKernel:
    """A kernel of the catalogue. measured: (active, elapsed) cycles by product. chosen: whether constants
    were chosen on it.
    """

    name: str
    time: LaunchTime
    measured: dict[str, tuple[int, int]]
    chosen: bool

    def error(self, product: str, which: int = 0) -> float:
        """Of the active cycles, or the elapsed ones (1), as a share of the measured."""
        return (self.time.active, self.time.elapsed)[which] / self.measured[product][which] - 1


@cache
def prepared(name: str) -> PreparedTime:
    """A kernel at its own size, ready to be timed."""
    return PreparedTime(compiled_kernels()[name].job())


@cache
def recorded() -> dict[str, dict[str, tuple[int, int]]]:
    """Kernel -> product -> (active, elapsed) cycles in the newest recordings, of code that is unchanged."""
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for product in products():
        for launch in RATES.newest(data_folder("traces"), slug(product)).launches:
            kernel = compiled_kernels().get(launch.name)
            if kernel is not None and kernel.job().loaded.origin.digest == launch.digest:
                cycles = launch.counters[ACTIVE], launch.counters[ELAPSED]
                found.setdefault(launch.name, {})[product] = cycles
    return {name: found[name] for name in sorted(found) if len(found[name]) == len(products())}


def products() -> list[str]:
    """The boards, the one on which constants were chosen first."""
    return sorted((board.product for board in SM_90.boards), key=lambda product: product != CHOSEN_ON)


@cache
def timed_kernels() -> tuple[TimedKernel, ...]:
    """All kernels that are recorded on every board, by name."""
    return tuple(
        TimedKernel(name, prepared(name).predict(), measured, place % 2 == 0)
        for place, (name, measured) in enumerate(recorded().items())
    )


def error_table() -> str:
    """A row for each kernel."""
    short = [product.removeprefix("NVIDIA ").split()[0] for product in products()]
    rows = [
        [
            one.name,
            "chosen" if one.chosen else "held out",
            f"{one.time.active:,}",
            *(cell for product in products() for cell in _cells(one, product)),
            next(f"{reason}" for reason in one.time.waits if reason != "selected"),
            "; ".join((*one.time.lacks, *(() if one.time.is_whole else ("extrapolated",)))),
        ]
        for one in timed_kernels()
    ]
    columns = [f"{what}, {name}" for name in short for what in ("measured", "error")]
    head = ["kernel", "constants", "estimate", *columns, "mostly waits for", "notes"]
    return table(head, rows, "llr" + "rr" * len(short) + "ll") + "\n"


def _cells(one: TimedKernel, product: str) -> Iterator[str]:
    yield f"{one.measured[product][0]:,}"
    yield f"{100 * one.error(product):+.1f} %"


def summary_table() -> str:
    """Errors of the halves on both boards."""
    rows = []
    for what, which in (("active", 0), ("elapsed", 1)):
        for product in products():
            for half, chosen in (("constants chosen on these", True), ("held out", False)):
                errors = [one.error(product, which) for one in timed_kernels() if one.chosen is chosen]
                sizes = [abs(error) for error in errors]
                cells = (mean(sizes), median(sizes), max(sizes), mean(errors))
                rows.append(
                    [f"{what}, {product}", half, str(len(errors)), *(f"{100 * cell:.1f} %" for cell in cells)]
                )
    head = ["cycles", "kernels", "number", "mean error", "median", "worst", "bias"]
    return table(head, rows, "llrrrrr") + "\n"


def ablation_table() -> str:
    """What each unit contributes: the mean error without it, of a few kernels."""
    measured = {name: recorded()[name][CHOSEN_ON][0] for name in ABLATED}

    def error_without(*off: str) -> list[str]:
        errors = [prepared(name).predict(off=off).active / cycles - 1 for name, cycles in measured.items()]
        return [f"{100 * mean(map(abs, errors)):.1f} %", f"{100 * mean(errors):+.1f} %"]

    rows = [["nothing", "", *error_without()]]
    rows += [[unit, meaning, *error_without(unit)] for unit, meaning in ABLATIONS.items()]
    return table(["left out", "then", "mean error", "bias"], rows, "llrr") + "\n"


def constants_table() -> str:
    """Each constant with its meaning and source."""
    rows = [
        [f"`{name}`", str(value), meaning, source] for name, value, meaning, source in Latencies().table()
    ]
    return table(["constant", "value", "cycles or what else it says", "source"], rows, "lrll") + "\n"


PARTS: dict[str, Callable[[], str]] = {
    "errors of estimated times": error_table,
    "summary of estimated times": summary_table,
    "what each unit contributes to time": ablation_table,
    "constants of time": constants_table,
}
