"""Tables of docs/time-accuracy.md and docs/time-model.md: estimated beside measured cycles, what each unit
contributes, and the constants.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from docs.exec_programs import SEEDED_BY_TIME
from docs.one_pass import in_one_pass
from lab.experiments import TIME
from lab.time.run_time import ProfiledLaunch
from memsim.arch import SM_90
from memsim.data import data_folder
from memsim.kernels import catalog
from memsim.suggest.ranking import MARGIN
from memsim.time.behind_l1 import COLD, WARM
from memsim.time.latencies import Latencies
from memsim.time.launch_time import LaunchTime
from memsim.time.multiprocessor import ABLATIONS
from memsim.time.predict_time import PreparedTime
from memsim.validate.device import slug
from memsim.views.plain import table

ACTIVE, ELAPSED = "sm__cycles_active.max", "sm__cycles_elapsed.max"
L1_HITS, L2_HITS = "l1tex__t_sector_hit_rate.pct", "lts__t_sector_hit_rate.pct"
L2_SECTORS, DRAM_READ = "lts__t_sectors_srcunit_tex.sum", "dram__bytes_read.sum"
#: The GPU on which constants were chosen, on every second kernel by name.
CHOSEN_ON = "NVIDIA H200"
#: Kernels whose ablations are quick: one block a multiprocessor, or a few thousand cycles.
ABLATED = (
    "ada_decoupled", "guide_v12", "kernel_v3", "kernel_v4", "kernel_v5", "opt_7_no_bank_conflict",
    "permuted_write", "transpose_naive",
)  # fmt: skip
#: Steps of optimisation as they were published, one after the other.
LADDERS = (
    ("kernel_v1", "kernel_v2", "kernel_v3", "kernel_v4", "kernel_v5"),
    ("kernel_v4", "kernel_v4_padded"),
    ("kernel_v4", "kernel_v4_colmajor"),
    ("guide_v2", "guide_v3", "guide_v4", "guide_v5", "guide_v6", "guide_v7", "guide_v10", "guide_v11",
     "guide_v12"),
    ("opt_2_naive_swapped", "opt_2_naive", "opt_3_shared", "opt_4_tile1d", "opt_4_tile2d",
     "opt_4_tile2d_register", "opt_5_float4", "opt_6_double_buffer", "opt_7_no_bank_conflict",
     "opt_7_zorder"),
    ("transpose_naive", "transpose_padded"),
    ("transpose_naive", "transpose_xor"),
    ("permuted_write", "permuted_write_fixed"),
)  # fmt: skip
VALIDATION = Path(__file__).parent / "validation"
#: Launches of public programs, measured and estimated by `tools/time_beside_ncu.py`.
PROGRAM_CYCLES, PROGRAM_ESTIMATES = (VALIDATION / f"program_{what}.json" for what in ("cycles", "estimates"))
#: Launches with copies in bulk, measured, and estimated where the program runs (`memsim exec --time`).
HOPPER_CYCLES = VALIDATION / "hopper_cycles.json"
#: Percentage points by which a hit rate may be off, the share by which sectors may, and lines of which one
#: has most of ncu's samples.
POINTS, SHARE, FIRST_LINES = 3.0, 0.1, 2


@dataclass(frozen=True, slots=True)
class TimedKernel:
    """A kernel of the catalogue. times, measured: by product and L2 cache. chosen: whether constants were
    chosen on it.
    """

    name: str
    times: dict[tuple[str, str], LaunchTime]
    measured: dict[tuple[str, str], ProfiledLaunch]
    chosen: bool

    @property
    def time(self) -> LaunchTime:
        """On the GPU on which constants were chosen, with a cold L2."""
        return self.times[CHOSEN_ON, COLD]

    def error(self, product: str, l2: str = COLD, which: str = ACTIVE) -> float:
        """Of the active cycles, or the elapsed ones, as a share of the measured."""
        time = self.times[product, l2]
        estimate = time.cycles if which == ACTIVE else time.elapsed
        if (product, l2) == (CHOSEN_ON, WARM):
            return estimate / in_one_pass(self.name, WARM, which) - 1
        return estimate / self.measured[product, l2].counters[which] - 1

    def points_off(self, product: str, cache: str, metric: str) -> float:
        """By how many percentage points a hit rate is off."""
        return (
            100 * self.times[product, COLD].hit_rates[cache] - self.measured[product, COLD].counters[metric]
        )

    def share_off(self, product: str, metric: str) -> float:
        """By which share of the measured what L2 is asked for, or DRAM delivers, is off."""
        time = self.times[product, COLD]
        estimate = time.l2_sectors if metric == L2_SECTORS else time.dram_bytes
        return estimate / self.measured[product, COLD].counters[metric] - 1

    def boards_apart(self, metric: str) -> float:
        """By how much a hit rate differs between the boards, in percentage points."""
        rates = [self.measured[product, COLD].counters[metric] for product in products()]
        return max(rates) - min(rates)

    def rank_of_line(self, product: str) -> int:
        """Which of the estimate's lines, by time, the one is that has most of ncu's samples, from 1 on."""
        lines = {one.address: one.line or -one.address for one in self.time.instructions}
        sampled: Counter[int] = Counter()
        for address, count in self.measured[product, COLD].samples.items():
            sampled[lines.get(int(address, 16), 0)] += count
        estimated: Counter[int] = Counter()
        for one in self.time.instructions:
            estimated[lines[one.address]] += one.warp_cycles
        most = sampled.most_common(1)[0][0]
        return 1 + [line for line, _ in estimated.most_common()].index(most)


@lru_cache(maxsize=len(ABLATED))  # all of the catalogue take 13 GB
def prepared(name: str) -> PreparedTime:
    """A kernel at its own size, ready to be timed."""
    return PreparedTime(catalog()[name].job())


@cache
def recorded() -> dict[str, dict[tuple[str, str], ProfiledLaunch]]:
    """Kernel -> (product, L2 cache) -> its launch in the newest recordings."""
    found: dict[str, dict[tuple[str, str], ProfiledLaunch]] = {}
    for product in products():
        for launch in TIME.newest(data_folder("traces"), slug(product)).launches:
            if launch.name in catalog():
                found.setdefault(launch.name, {})[product, launch.l2] = launch
    return {name: found[name] for name in sorted(found)}


def products() -> list[str]:
    """The boards, the one on which constants were chosen first."""
    return sorted((board.product for board in SM_90.boards), key=lambda product: product != CHOSEN_ON)


@cache
def timed_kernels() -> tuple[TimedKernel, ...]:
    """All kernels that are recorded, by name."""
    return tuple(
        TimedKernel(name, times_on_boards(prepared(name)), measured, place % 2 == 0)
        for place, (name, measured) in enumerate(recorded().items())
    )


def times_on_boards(launch: PreparedTime) -> dict[tuple[str, str], LaunchTime]:
    """Its times by product and L2 cache. Boards that are alike for it share one."""
    found: dict[tuple[str, str], LaunchTime] = {}
    known: dict[object, LaunchTime] = {}
    for l2 in (COLD, WARM):
        for product in products():
            on = launch.on(product)
            key = l2, on.behind.ways(l2, Latencies()), on.behind.write_cost()
            if key not in known:
                known[key] = on.predict(l2)
            found[product, l2] = known[key]
    return found


def error_table() -> str:
    """A row for each kernel."""
    short = [product.removeprefix("NVIDIA ").split()[0] for product in products()]
    rows = [
        [
            one.name,
            "chosen" if one.chosen else "held out",
            f"{one.time.cycles:,}",
            *(f"{100 * one.error(product, l2):+.1f} %" for l2 in (COLD, WARM) for product in products()),
            f"{100 * one.time.hit_rates['l1']:.0f} %",
            f"{one.measured[CHOSEN_ON, COLD].counters[L1_HITS]:.0f} %",
            str(one.rank_of_line(CHOSEN_ON)),
            "; ".join((*one.time.lacks, *(() if one.time.is_whole else ("extrapolated",)))),
        ]
        for one in timed_kernels()
    ]
    errors = [f"error, {l2}, {name}" for l2 in (COLD, WARM) for name in short]
    head = ["kernel", "constants", "estimate, cold", *errors, "L1 hits", "measured", "line", "notes"]
    return table(head, rows, "llr" + "r" * len(errors) + "rrrl") + "\n"


def summary_table() -> str:
    """Errors of the halves on both boards."""
    rows = []
    for which, l2 in ((ACTIVE, COLD), (ACTIVE, WARM), (ELAPSED, COLD)):
        for product in products():
            for half, chosen in (("constants chosen on these", True), ("held out", False)):
                errors = [one.error(product, l2, which) for one in timed_kernels() if one.chosen is chosen]
                sizes = [abs(error) for error in errors]
                cells = (mean(sizes), median(sizes), max(sizes), mean(errors))
                what = f"{'active' if which == ACTIVE else 'elapsed'}, {l2} L2, {product}"
                rows.append([what, half, str(len(errors)), *(f"{100 * cell:.1f} %" for cell in cells)])
    head = ["cycles", "kernels", "number", "mean error", "median", "worst", "bias"]
    return table(head, rows, "llrrrrr") + "\n"


def agreement_table() -> str:
    """Of how many kernels hit rates and the line that takes longest are as measured."""
    rows = []
    kernels = timed_kernels()
    for product in products():
        for cache_name, metric in (("l1", L1_HITS), ("l2", L2_HITS)):
            off = [abs(one.points_off(product, cache_name, metric)) for one in kernels]
            near = sum(points <= POINTS for points in off)
            told = f"hit rate of {cache_name.upper()} within {POINTS:g} points"
            rows.append(
                [told, product, f"{near} of {len(kernels)}", f"{median(off):.1f} points off (median)"]
            )
        for what, metric in (("sectors that L2 is asked for", L2_SECTORS), ("bytes from DRAM", DRAM_READ)):
            off = [abs(one.share_off(product, metric)) for one in kernels]
            near = sum(share <= SHARE for share in off)
            told = f"{what} within {100 * SHARE:g} %"
            rows.append(
                [told, product, f"{near} of {len(kernels)}", f"{100 * median(off):.1f} % off (median)"]
            )
        first = sum(one.rank_of_line(product) <= FIRST_LINES for one in kernels)
        told = "the line with most of ncu's samples is the first or second"
        rows.append([told, product, f"{first} of {len(kernels)}", ""])
    apart = [one.boards_apart(L2_HITS) for one in kernels]
    told = f"measured hit rates of L2 within {POINTS:g} points of each other"
    near = sum(points <= POINTS for points in apart)
    rows.append([told, "both", f"{near} of {len(kernels)}", f"{median(apart):.1f} points apart (median)"])
    return table(["what", "board", "kernels", ""], rows, "llrl") + "\n"


def ladders_table() -> str:
    """Of each published step, how much longer the launch takes after it, as measured and as estimated."""
    kernels = {one.name: one for one in timed_kernels()}
    rows, right, off = [], 0, []
    for ladder in LADDERS:
        for before, after in pairwise(kernels[name] for name in ladder):
            one, other = (kernel.measured[CHOSEN_ON, COLD].counters[ELAPSED] for kernel in (before, after))
            measured, estimated = other / one, after.time.elapsed / before.time.elapsed
            is_right = (measured < 1) == (estimated < 1)
            right += is_right
            off.append(abs(estimated / measured - 1))
            shares = (f"{100 * (ratio - 1):+.1f} %" for ratio in (measured, estimated))
            rows.append([before.name, after.name, *shares, "" if is_right else "wrong"])
    sure = sum(one <= MARGIN for one in off)
    told = (
        f"Of {len(rows)} steps the estimate has the right sign of {right}. Its change of the time is off by "
        f"{100 * median(off):.1f} % in the median, in {sure} of them by {100 * MARGIN:g} % or less: "
        "`memsim suggest` takes smaller differences for none.\n\n"
    )
    return told + table(["before", "after", "measured", "estimated", ""], rows, "llrrl") + "\n"


def projects_table() -> str:
    """Errors of the launches of projects, by half; those that the estimates were not made of are counted."""
    measured = json.loads((VALIDATION / "predicted_third_cycles.json").read_text())["launches"]
    estimated = json.loads((VALIDATION / "predicted_third_estimates.json").read_text())["launches"]
    rows = []
    for half, held_out in (("constants chosen on these", False), ("held out", True)):
        for l2 in (COLD, WARM):
            pairs = [
                (estimate[l2], launch[l2]["active"])
                for estimate, launch in zip(estimated, measured)
                if estimate["held_out"] is held_out and launch.get(l2)
            ]
            told = [(estimate, cycles) for estimate, cycles in pairs if estimate is not None]
            errors = [estimate / cycles - 1 for estimate, cycles in told]
            sizes = [abs(error) for error in errors]
            cells = (median(sizes), mean(sizes), median(errors))
            rank = np.corrcoef(*(np.argsort(np.argsort(column)) for column in zip(*told)))[0, 1]
            shares = (f"{100 * cell:.1f} %" for cell in cells)
            rows.append([half, l2, str(len(pairs)), str(len(pairs) - len(told)), *shares, f"{rank:.3f}"])
    head = [
        "projects",
        "L2",
        "launches",
        "no estimate",
        "median error",
        "mean",
        "bias (median)",
        "rank correlation",
    ]
    return table(head, rows, "ll" + "r" * 6) + "\n"


#: Projects that were measured later, by their row.
LATER = {
    "a-hamdi/GPU": ("a-hamdi/GPU",),
    "five projects": (
        "CUDA-Programming", "CUDA-by-Example", "Learn-CUDA-Programming", "code-samples", "polybenchGpu",
    ),
    "Rodinia": ("Rodinia",),
}  # fmt: skip
#: The row of all launches of programs.
ALL_LAUNCHES = "all launches"


def compared_launches() -> list[dict[str, Any]]:
    """Launches of programs, as measured, that do the same in each run."""
    every = launches_of(PROGRAM_CYCLES)
    return [one for one in every if (one["suite"], one["program"]) not in SEEDED_BY_TIME]


def programs_table() -> str:
    """Errors of the launches that public programs make, by half of these, and by how long they take; and of
    those of projects that were measured later.
    """
    estimates = {program_launch(one): one["estimated"] for one in launches_of(PROGRAM_ESTIMATES)}
    measured = compared_launches()
    later = {suite for suites in LATER.values() for suite in suites}
    programs = sorted({(one["suite"], one["program"]) for one in measured if one["suite"] not in later})
    random.Random(28).shuffle(programs)
    looked_at, first = {*programs[: len(programs) // 2]}, {*programs}
    classes: dict[str, Callable[[tuple[str, str], int], bool]] = {
        "all of the 82 programs": lambda program, cycles: program in first,
        "half, looked at first": lambda program, cycles: program in looked_at,
        "the other half, looked at since": lambda program, cycles: program in first - looked_at,
        "shorter than 3,000 cycles": lambda program, cycles: program in first and cycles < 3000,
        "3,000 to 10,000 cycles": lambda program, cycles: program in first and 3000 <= cycles < 10000,
        "longer": lambda program, cycles: program in first and cycles >= 10000,
    }
    for row, suites in LATER.items():
        classes[row] = lambda program, cycles, suites=suites: program[0] in suites
    classes[ALL_LAUNCHES] = lambda program, cycles: True
    rows = []
    for what, is_in in classes.items():
        those = [one for one in measured if is_in((one["suite"], one["program"]), one["measured"][ACTIVE])]
        told = [
            (estimate[COLD], one["measured"])
            for one in those
            if COLD in (estimate := estimates.get(program_launch(one), {}))
        ]
        errors = [estimate[ACTIVE] / counters[ACTIVE] - 1 for estimate, counters in told]
        elapsed = [abs(estimate[ELAPSED] / counters[ELAPSED] - 1) for estimate, counters in told]
        shares = (median(map(abs, errors)), mean(map(abs, errors)), median(errors), median(elapsed))
        ranks = (np.argsort(np.argsort([pair[at][ACTIVE] for pair in told])) for at in (0, 1))
        hits = sum(abs(estimate[L1_HITS] - counters[L1_HITS]) <= POINTS for estimate, counters in told)
        counts = (len(those), len(those) - len(told))
        cells = (*map(str, counts), *(f"{100 * share:.1f} %" for share in shares))
        rows.append([what, *cells, f"{np.corrcoef(*ranks)[0, 1]:.3f}", str(hits)])
    head = ["launches", "number", "no estimate", "median error", "mean", "bias (median)"]
    head += ["median error, elapsed", "rank correlation", f"L1's hit rate within {POINTS:g} points"]
    return table(head, rows, "l" + "r" * 8) + "\n"


def l1_twice() -> str:
    """How many rates of L1 are as in a second run of the same launches, and as estimated in either."""
    again = json.loads((VALIDATION / "program_l1_again.json").read_text("utf-8"))["rates"]
    estimates = {program_launch(one): one["estimated"] for one in launches_of(PROGRAM_ESTIMATES)}
    rates = []
    for one in compared_launches():
        name = "|".join(one[key] for key in ("suite", "program", "kernel"))
        estimate = estimates.get(program_launch(one), {}).get(COLD)
        if estimate is not None and name in again:
            rates.append((estimate[L1_HITS], one["measured"][L1_HITS], again[name]))
    first, second, chip, either = (
        sum(abs(a - b) <= POINTS for a, b in pairs)
        for pairs in (
            [(estimate, run) for estimate, run, _ in rates],
            [(estimate, run) for estimate, _, run in rates],
            [(one, other) for _, one, other in rates],
            [min(((e, a), (e, b)), key=lambda pair: abs(pair[0] - pair[1])) for e, a, b in rates],
        )
    )
    near = f"within {POINTS:g} points of"
    return (
        f"L1's hit rate of {len(rates):,} of these launches was counted twice. Estimates are {near} {first} "
        f"in the first run, of {second} in the second one, and of {either} in one of them; the chip is "
        f"{near} itself in {chip}.\n"
    )


#: Of `HOPPER_CYCLES`, by whether the model was made with them.
HALVES = {True: "looked at", False: "held out"}


def hopper_table() -> str:
    """Products that copy by TMA, wait at mbarriers and multiply by warpgroups, beside what an H200 took."""
    rows, errors = [], dict[bool, list[float]]({True: [], False: []})
    for one in launches_of(HOPPER_CYCLES):
        measured, estimated = one["measured"][COLD], one["estimated"]
        error = estimated / measured - 1
        errors[one["looked at"]].append(abs(error))
        what = f"`{one['kernel']}`", one["project"], one["problem"], HALVES[one["looked at"]]
        rows.append([*what, f"{measured:,}", f"{estimated:,}", f"{100 * error:+.1f} %"])
    told = " ".join(
        f"{HALVES[known].capitalize()}: {100 * mean(errors[known]):.1f} % off in the mean, "
        f"{100 * max(errors[known]):.1f} % at worst."
        for known in (True, False)
    )
    head = ["kernel", "project", "problem", "", "measured", "estimated", "error"]
    return f"{told}\n\n{table(head, rows, 'llllrrr')}\n"


def launches_of(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["launches"]
    return found


def program_launch(one: dict[str, Any]) -> tuple[Any, ...]:
    """What tells a launch of a program from others."""
    return (*(one[name] for name in ("suite", "program", "kernel")), *map(tuple, (one["grid"], one["block"])))


def ablation_table() -> str:
    """What each unit contributes: the mean error without it, of a few kernels."""
    measured = {name: recorded()[name][CHOSEN_ON, COLD].counters[ACTIVE] for name in ABLATED}

    def error_without(*off: str) -> list[str]:
        errors = [
            prepared(name).on(CHOSEN_ON).predict(off=off).cycles / cycles - 1
            for name, cycles in measured.items()
        ]
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
    "agreement of estimated times": agreement_table,
    "published steps": ladders_table,
    "estimates of projects' launches": projects_table,
    "estimates of programs' launches": programs_table,
    "hit rates counted twice": l1_twice,
    "estimates of copies in bulk": hopper_table,
    "what each unit contributes to time": ablation_table,
    "constants of time": constants_table,
}
