"""The generated parts of docs/tuning.md.

In: recordings in `traces/` and beside this file, and what memsim counts now. Out: Markdown tables.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from docs.counted import shipped
from docs.tuning.registers import PATTERNS
from docs.tuning.variants import KERNEL, ROWS_OF_LANES, VARIANTS, make_specs
from memsim.analysis import Analysis
from memsim.data import data_folder
from memsim.report import bench as report
from memsim.validate.bench.recording import CUBLAS, BenchRecording, load_bench, newest_of_each_gpu
from memsim.validate.bench.table import Row, Speed, make_rows
from memsim.validate.files import read_record

TRACES = data_folder("traces")
RECORDED = Path(__file__).with_name("recorded")
STEM = "tuning"
SIZES = ((4096,) * 3, (8192,) * 3)  # M, N, K
LADDER = {
    "kernel_v3": "8 x 8 sums to a thread; A tile not transposed: two ways on every read of it",
    "kernel_v4": "the A tile permuted: no conflict",
    "opt_7_zorder": "lanes in z-order: fewer wavefronts, though none was a conflict",
    "sgemm_128x256x8": "8 x 16 sums to a thread",
    KERNEL: "all of that, and the register file",
}


def newest(stem: str) -> list[Path]:
    """The newest recording of each GPU whose file has this stem: `STEM.json` or `STEM.runN.json`."""
    folders = sorted({path.parent for path in RECORDED.glob(f"*/{stem}.json")})
    files = [[*folder.glob(f"{stem}.json"), *folder.glob(f"{stem}.run*.json")] for folder in folders]
    return [max(each, key=lambda path: read_record(path)["date"]) for each in files]


def recordings() -> list[BenchRecording]:
    """The newest recording of the variants' speed on each GPU."""
    return [load_bench(path) for path in newest(STEM)]


@cache
def analyses() -> Mapping[str, Analysis]:
    """What memsim counts of the kernel and of each variant, at the catalogue's size."""
    with tempfile.TemporaryDirectory() as folder:
        return {spec.name: spec.analyze() for spec in make_specs(Path(folder))}


def ladder() -> str:
    """From the articles' kernels to the tuned one."""
    parts = []
    for recording in newest_of_each_gpu(TRACES):
        names = [name for name in recording.kernels if name in LADDER]
        rows = {
            row.kernel: row
            for row in make_rows(recording, {each: shipped().analysis(each) for each in names})
        }
        lines = [
            [f"`{name}`", LADDER[name], report.per_kflop(rows[name]), *map(_speed, _at(rows[name]))]
            for name in LADDER
        ]
        lines.append([CUBLAS, "", "-", *map(_speed, _at(rows[CUBLAS]))])
        parts.append(
            _table(["kernel", "what is new", "wavefronts for 1000 FLOP", *_sizes()], lines, left=2)
            + f"\nTFLOP/s, and the share of {CUBLAS}'s. Recorded on {report.made_with(recording)}.\n"
        )
    return "\n".join(parts)


def decisions() -> str:
    """What each decision is worth: the counts and the speed without it."""
    parts = []
    for recording in recordings():
        rows = {row.kernel: row for row in make_rows(recording, analyses())}
        tuned = rows[KERNEL]
        lines = [[f"`{KERNEL}`", "", report.per_kflop(tuned), _conflicts(KERNEL), *map(_speed, _at(tuned))]]
        for variant in VARIANTS:
            row = rows[variant.name]
            changes = [_change(now, then) for now, then in zip(_at(row), _at(tuned), strict=True)]
            counts = [report.per_kflop(row), _conflicts(variant.name)]
            lines.append([variant.decision, variant.instead, *counts, *changes])
        heads = ["decision", "instead", "wavefronts for 1000 FLOP", "of them conflicts", *_sizes()]
        parts.append(
            _table(heads, lines, left=2)
            + f"\nThe first row: TFLOP/s, and the share of {CUBLAS}'s. The others: how that share changes "
            f"without the decision. Recorded on {report.made_with(recording)}.\n"
        )
    return "\n".join(parts)


def wavefronts_a_cycle() -> str:
    """How busy shared memory is, with the lanes in z-order and without."""
    sentences = []
    for recording in recordings():
        rows = {row.kernel: row for row in make_rows(recording, analyses())}
        cycles = recording.multiprocessors * recording.max_clock_mhz * 1e6
        busy = {
            name: (rows[name].wavefronts or 0) / 1000 * _at(rows[name])[-1].tflops * 1e12 / cycles
            for name in (KERNEL, ROWS_OF_LANES)
        }
        sentences.append(
            f"On {recording.device.gpu}, at {_sizes()[-1]}, `{KERNEL}` asks each multiprocessor for "
            f"{busy[KERNEL]:.2f} wavefronts a cycle, and for {busy[ROWS_OF_LANES]:.2f} with its lanes in "
            "rows. It could serve 1."
        )
    return "\n".join(sentences) + "\n"


def register_banks() -> str:
    """How long FFMAs take, by the registers that they name."""
    records = [read_record(path) for path in newest("register_banks")]
    heads = ["FFMAs", "even registers fetched", "odd", *(record["device"]["gpu"] for record in records)]
    lines = [
        [
            pattern.text,
            *(f"{each:.2f}" for each in pattern.fetched()),
            *(f"{record['cycles_per_ffma'][pattern.name]:.2f}" for record in records),
        ]
        for pattern in PATTERNS
    ]
    return (
        _table(heads, lines)
        + "\nFor one FFMA of a warp: registers, and cycles with one warp to a scheduler.\n"
    )


def _at(row: Row) -> list[Speed]:
    found = [row.at(size) for size in SIZES]
    return [speed for speed in found if speed is not None]


def _sizes() -> list[str]:
    return [report.named(size) for size in SIZES]


def _speed(speed: Speed) -> str:
    return f"{speed.tflops:.1f} ({report.percent(speed.of_cublas)})"


def _change(now: Speed, then: Speed) -> str:
    return f"{100 * (now.of_cublas / then.of_cublas - 1):+.1f} %".replace("-", "\N{MINUS SIGN}")


def _conflicts(name: str) -> str:
    sites = [site for site in analyses()[name].sites if site.space == "shared"]
    conflicts, wavefronts = (
        sum(getattr(site, field) or 0 for site in sites) for field in ("conflicts", "wavefronts")
    )
    return f"{100 * conflicts / wavefronts:.0f} %" if conflicts else "none"


def _table(heads: list[str], lines: Iterable[list[Any]], left: int = 1) -> str:
    rule = "|---" * left + "|---:" * (len(heads) - left) + "|"
    return "\n".join([_row(heads), rule, *map(_row, lines)]) + "\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


PARTS = {
    "tuning: ladder": ladder,
    "tuning: decisions": decisions,
    "tuning: wavefronts a cycle": wavefronts_a_cycle,
    "tuning: register banks": register_banks,
}
