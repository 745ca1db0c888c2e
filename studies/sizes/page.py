"""The section of docs/tuning.md on every size, from the newest recordings and the bounds that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from statistics import fmean

from memsim.views.plain import table
from studies.bench import report
from studies.bench.recording import CUBLAS, BenchRecording, Timing
from studies.bench.table import speed_of
from studies.sizes import GPU, HELD_OUT, SEEN, SIZES
from studies.sizes.bounds import Limit, kept
from studies.sizes.recordings import recordings, slower, timings_at

HEADS = ("M x N x K", "kernel", "parts of K", "TFLOP/s", f"of {CUBLAS}", "at least", "of that", "bound by")
SETS = {
    "listed above": SIZES,
    "random, also measured while tiles were chosen": SEEN,
    "random, held out": HELD_OUT,
}
SHARES = (1.0, 0.95, 0.9)  # of cuBLAS's speed


def every_size() -> str:
    """A row for each listed size: what was picked, how fast it was, its bound; the shares on other GPUs."""
    found = recordings()
    (recording,) = (each for each in found if each.device.gpu == GPU)
    others = [each for each in found if each is not recording]
    shares = [{t.size: speed_of(t).of_cublas for t in timings_at(each, SIZES)} for each in others]
    limits = kept()
    heads = [*HEADS, *(f"of {CUBLAS} on {each.device.gpu}" for each in others)]
    rows = [
        [
            *_cells(recording, timing, limits[timing.size]),
            *(report.percent(share[timing.size]) for share in shares),
        ]
        for timing in timings_at(recording, SIZES)
    ]
    made = "".join(f" Recorded on {report.made_with(each)}." for each in (recording, *others))
    return (
        f"{table(heads, rows, 'llrrrrrl' + 'r' * len(others))}\n\n"
        f"*At least*: microseconds by memsim's bound, at {recording.max_clock_mhz} MHz; "
        f"*of that*: the measured time as a multiple of it.{made}\n"
    )


def shortfall() -> str:
    """Where it is slower than cuBLAS at sizes that are listed, by how much, and what is next."""
    sentences = []
    for recording in recordings():
        slow = slower(recording, SIZES)
        total = len(timings_at(recording, SIZES))
        sentences.append(
            f"On {recording.device.gpu} it is at least as fast as {CUBLAS} at {total - len(slow)} of "
            f"{total} sizes."
        )
        sentences += [_next(recording, timing) for timing in slow]
    return "\n".join(sentences) + "\n"


def beyond() -> str:
    """How many sizes of each set are how fast, and random ones where cuBLAS is faster, with bounds."""
    heads = ["GPU", "sizes", "", *(f"at least {100 * share:.0f} %" for share in SHARES), "mean", "slowest"]
    rows, worst = [], []
    for recording in recordings():
        for name, sizes in SETS.items():
            timings = timings_at(recording, sizes)
            speeds = [speed_of(timing).of_cublas for timing in timings]
            lowest = min(timings, key=lambda timing: speed_of(timing).of_cublas)
            rows.append(
                [
                    recording.device.gpu,
                    name,
                    str(len(speeds)),
                    *(str(sum(speed >= share for speed in speeds)) for share in SHARES),
                    report.percent(exp(fmean(map(log, speeds)))),
                    f"{report.named(lowest.size)}: {100 * min(speeds):.1f} %",
                ]
            )
            if sizes is not SIZES:
                slow = slower(recording, sizes)
                worst += [f"{_next(recording, timing)} ({recording.device.gpu})" for timing in slow]
    lines = table(heads, rows, "ll" + "r" * (len(SHARES) + 2) + "l")
    return "\n".join([lines, *(["", *worst] if worst else [])]) + "\n"


def _cells(recording: BenchRecording, timing: Timing, limits: Sequence[Limit]) -> list[str]:
    speed = speed_of(timing)
    least = microseconds(recording, limits)
    units = limits[0].units
    bound = units[0][0] + "".join(f"; {name} {100 * share:.0f} %" for name, share in units[1:])
    return [
        " x ".join(map(str, timing.size)),
        f"`{timing.kernel}`" + (f"; `{timing.rest.kernel}`" if timing.rest else ""),
        _parts(timing),
        f"{speed.tflops:.1f}",
        report.percent(speed.of_cublas),
        f"{least:,.1f}",
        f"{1000 * speed.median_ms / least:.2f}",
        bound,
    ]


def _parts(timing: Timing) -> str:
    """Among how many blocks K is divided, and for which rows if not for all."""
    first = str(timing.parts) if timing.parts > 1 else ""
    if timing.rest is None:
        return first
    return f"{first or 1}; {timing.rest.parts} of the last {timing.rest.rows:,} rows"


def _next(recording: BenchRecording, timing: Timing) -> str:
    speed, limits = speed_of(timing), kept()[timing.size]
    least = microseconds(recording, limits)
    over = 1000 * speed.median_ms / least
    slower, (first, second) = 100 * (1 / speed.of_cublas - 1), limits[0].units
    return (
        f"- {report.named(timing.size)}: {slower:.1f} % slower. It is bound by {first[0]}, {least:,.1f} "
        f"microseconds, and takes {over:.2f} times as long; next is the {second[0]}, "
        f"{100 * second[1]:.0f} % of that."
    )


def microseconds(recording: BenchRecording, limits: Sequence[Limit]) -> float:
    """What the launches of a size take at least, one after the other, at the highest clock."""
    return sum(limit.cycles for limit in limits) / recording.max_clock_mhz


PARTS = {"sizes: table": every_size, "sizes: shortfall": shortfall, "sizes: beyond": beyond}
