"""The generated parts of docs/tuning.md: tables of recorded times, and of what memsim counts now."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from memsim.analysis import Analysis
from memsim.files import read_json
from memsim.views.plain import table
from studies.bench import report
from studies.bench.page import cell, code_named, rows_of, wavefronts_per_second
from studies.bench.page import recordings as recordings_of_catalogue
from studies.bench.recording import CUBLAS, BenchRecording, newest_of_each_gpu
from studies.bench.table import Row, Speed, make_rows
from studies.tuning.registers import PATTERNS
from studies.tuning.variants import KERNEL, ROWS_OF_LANES, VARIANTS, make_specs

RECORDED = Path(__file__).with_name("recorded")
SIZES = ((4096,) * 3, (8192,) * 3)  # M, N, K
LADDER = {
    "kernel_v3": "8 x 8 sums to a thread; A tile not transposed: two ways on every read of it",
    "kernel_v4": "the A tile permuted: no conflict",
    "opt_7_zorder": "lanes in z-order: fewer wavefronts, though none was a conflict",
    "sgemm_128x256x8": "8 x 16 sums to a thread",
    KERNEL: "all of that, and the register file",
}


def recordings() -> list[BenchRecording]:
    """The newest recording of the variants' speed on each GPU."""
    return newest_of_each_gpu(RECORDED)


@cache
def analyses() -> Mapping[str, Analysis]:
    """What memsim counts of the kernel and of each variant, at the catalogue's size."""
    with tempfile.TemporaryDirectory() as folder:
        return {spec.name: spec.analyze() for spec in make_specs(Path(folder))}


def ladder() -> str:
    """From the articles' kernels to the tuned one."""
    parts = []
    for recording in recordings_of_catalogue():
        rows = {row.kernel: row for row in rows_of(recording)}
        lines = [
            [code_named(name), new, report.per_kflop(rows[name]), *map(cell, _at(rows[name]))]
            for name, new in {**LADDER, CUBLAS: ""}.items()
        ]
        parts.append(
            table(["kernel", "what is new", "wavefronts per 1000 FLOP", *_sizes()], lines, "llrrr")
            + f"\n\nTFLOP/s, and percent of {CUBLAS}. Recorded on {report.made_with(recording)}.\n"
        )
    return "\n".join(parts)


def decisions() -> str:
    """What each decision is worth: the counts and the speed without it."""
    parts = []
    for recording in recordings():
        rows = {row.kernel: row for row in make_rows(recording, analyses())}
        tuned = rows[KERNEL]
        lines = [[f"`{KERNEL}`", "", report.per_kflop(tuned), _conflicts(KERNEL), *map(cell, _at(tuned))]]
        for variant in VARIANTS:
            row = rows[variant.name]
            changes = [_change(now, then) for now, then in zip(_at(row), _at(tuned), strict=True)]
            counts = [report.per_kflop(row), _conflicts(variant.name)]
            lines.append([variant.decision, variant.instead, *counts, *changes])
        heads = ["decision", "instead", "wavefronts per 1000 FLOP", "of them conflicts", *_sizes()]
        parts.append(
            table(heads, lines, "llrrrr")
            + f"\n\nThe first row: TFLOP/s, and percent of {CUBLAS}. The others: how that percentage changes "
            f"without the decision. Recorded on {report.made_with(recording)}.\n"
        )
    return "\n".join(parts)


def wavefronts_a_cycle() -> str:
    """How busy shared memory is, with the lanes in z-order and without."""
    sentences = []
    for recording in recordings():
        rows = {row.kernel: row for row in make_rows(recording, analyses())}
        busy = {
            name: (rows[name].wavefronts or 0)
            / 1000
            * (_at(rows[name])[-1].tflops * 1e12)
            / wavefronts_per_second(recording)
            for name in (KERNEL, ROWS_OF_LANES)
        }
        sentences.append(
            f"On {recording.device.gpu}, at {_sizes()[-1]}, `{KERNEL}` needs {busy[KERNEL]:.2f} wavefronts "
            f"per cycle and multiprocessor, and {busy[ROWS_OF_LANES]:.2f} with its lanes in rows; the "
            "hardware serves up to 1."
        )
    return "\n".join(sentences) + "\n"


def register_banks() -> str:
    """How long FFMAs take, by the registers that they name."""
    records = [read_json(path, "the recording") for path in sorted(RECORDED.glob("*/register_banks.json"))]
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
        table(heads, lines, "l" + "r" * (len(heads) - 1))
        + "\n\nPer FFMA of a warp: registers fetched, and cycles with one warp per scheduler.\n"
    )


def _at(row: Row) -> list[Speed]:
    found = [row.at(size) for size in SIZES]
    return [speed for speed in found if speed is not None]


def _sizes() -> list[str]:
    return [report.named(size) for size in SIZES]


def _change(now: Speed, then: Speed) -> str:
    return f"{100 * (now.of_cublas / then.of_cublas - 1):+.1f} %".replace("-", "\N{MINUS SIGN}")


def _conflicts(name: str) -> str:
    sites = [site for site in analyses()[name].sites if site.space == "shared"]
    conflicts, wavefronts = (
        sum(getattr(site, field) or 0 for site in sites) for field in ("conflicts", "wavefronts")
    )
    return f"{100 * conflicts / wavefronts:.0f} %" if conflicts else "none"


PARTS = {
    "tuning: ladder": ladder,
    "tuning: decisions": decisions,
    "tuning: wavefronts a cycle": wavefronts_a_cycle,
    "tuning: register banks": register_banks,
}
