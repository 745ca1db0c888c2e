"""The table of the microbenchmarks in docs/validation.md: rules beside the newest recording of each GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lab.experiments import PROBE
from lab.probe.judge_probe import judge_probe
from memsim.data import data_folder
from memsim.views.plain import table

TRACES = data_folder("traces")


def probe_table() -> str:
    """A row for each instruction; a pair of columns for each GPU that the probe was recorded on."""
    folders = sorted(path.parent.name for path in TRACES.glob("*/probe.npz"))
    recordings = [PROBE.newest(TRACES, folder) for folder in folders]
    headings = [
        f"{recording.device.gpu}: {what}" for recording in recordings for what in ("figures", "counters")
    ]
    rows = []
    found = [{held.name: held for held in judge_probe(recording)} for recording in recordings]
    for name in dict.fromkeys(name for by_name in found for name in by_name):
        held = [by_name[name] for by_name in found if name in by_name]
        cells = [_equal(counts.values()) for one in held for counts in (one.figures, one.counters)]
        access = f"{held[0].space} {held[0].op.replace('_', '.')}, {held[0].width} B"
        rows.append((f"`{name}`", access, *cells))
    return table(("instruction", "access", *headings), rows, "ll" + "r" * len(headings)) + "\n"


def _equal(pairs: Iterable[tuple[int, int]]) -> str:
    equal, compared = (
        (sum(counts) for counts in zip(*pairs, strict=True)) if (pairs := list(pairs)) else (0, 0)
    )
    return f"{equal:,} of {compared:,}" if compared else "-"


PARTS: dict[str, Callable[[], str]] = {
    "validation: probe": probe_table,
}
