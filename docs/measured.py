"""The tables of docs/validation.md: predictions made now beside the recordings in `traces/`.

Shown is the newest recording of each kernel, size and GPU. A recording of code that has changed since is only
named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from memsim.data import data_folder
from memsim.errors import MemsimError
from memsim.kernels import catalog
from memsim.validate.compare_lines import NOISE, VERDICTS, MetricComparison, RecordingComparison
from memsim.validate.probe.judge_rules import judge_probe
from memsim.validate.probe.probe_recording import newest_probe
from memsim.validate.recordings import newest_of_each
from memsim.validate.replay import replay

TRACES = data_folder("traces")
COLUMNS = {
    "shared loads: wavefronts": ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",),
    "conflicts": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",),
    "shared stores: wavefronts": ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",),
    " conflicts": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",),
    "copies: conflicts": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum",),
    "global: requests": tuple(f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st")),
    "sectors": tuple(f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st")),
    "lines": ("l1tex__t_set_accesses_pipe_lsu_mem_global_op_ld.sum",),
}


@cache
def comparisons() -> tuple[tuple[RecordingComparison, ...], tuple[str, ...]]:
    """All that can be compared, and the kernels that have changed since they were recorded."""
    found, changed = [], []
    for recording in newest_of_each(TRACES):
        try:
            found.append(replay(recording))
        except MemsimError:
            changed.append(recording.kernel)
    return tuple(found), tuple(dict.fromkeys(changed))


def kernel_table() -> str:
    """A row for each kernel, all its launches together."""
    found, changed = comparisons()
    by_kernel: dict[str, list[RecordingComparison]] = {}
    for comparison in found:
        by_kernel.setdefault(comparison.recording.kernel, []).append(comparison)
    lines = [_row(("kernel", "launches", "figures of source lines", *map(str.strip, COLUMNS)))]
    lines.append(_row("---" for _ in range(3 + len(COLUMNS))))
    for kernel, launches in sorted(by_kernel.items()):
        figures = [figure for launch in launches for line in launch.lines for figure in line.figures]
        cells = (_cell(launches, metrics) for metrics in COLUMNS.values())
        lines.append(_row((f"`{kernel}`", str(len(launches)), _counts(figures), *cells)))
    if changed:
        lines += ["", f"Changed since they were recorded, and not compared: {', '.join(changed)}."]
    return "\n".join(lines) + "\n"


def _cell(launches: Sequence[RecordingComparison], metrics: tuple[str, ...]) -> str:
    """The verdicts on some counters over some launches; how large the largest arbitration is."""
    figures = [figure for launch in launches for figure in launch.totals if figure.metric in metrics]
    if not any(figure.measured for figure in figures):
        return ""
    verdicts = {figure.verdict for figure in figures}
    shown = [verdict for verdict in VERDICTS if verdict in verdicts]
    if NOISE not in verdicts:
        return ", ".join(shown)
    most = max(figure.arbitration for figure in figures)
    return ", ".join(f"{verdict} (up to {most:,})" if verdict == NOISE else verdict for verdict in shown)


def totals_table() -> str:
    """For each GPU and size, how many figures of which kind."""
    found, _ = comparisons()
    groups: dict[tuple[str, str], list[RecordingComparison]] = {}
    for comparison in found:
        recording = comparison.recording
        size = "default" if _is_default(comparison) else "ragged"
        groups.setdefault((recording.device.gpu, size), []).append(comparison)
    lines = [_row(("GPU", "size", "launches", *VERDICTS)), _row("---" for _ in range(3 + len(VERDICTS)))]
    for (gpu, size), launches in sorted(groups.items()):
        count = Counter(figure.verdict for launch in launches for figure in launch.figures)
        lines.append(_row((gpu, size, str(len(launches)), *(f"{count[verdict]:,}" for verdict in VERDICTS))))
    made = {
        f"{launch.recording.device.gpu}: driver {launch.recording.device.driver}, CUDA "
        f"{launch.recording.device.cuda}, Nsight Compute {launch.recording.ncu}, "
        f"{launch.recording.date[:10]}"
        for launch in found
    }
    return "\n".join([*lines, "", *(f"- {text}" for text in sorted(made))]) + "\n"


def _is_default(comparison: RecordingComparison) -> bool:
    recording = comparison.recording
    return recording.size == tuple(catalog()[recording.kernel].family.sizes.values())


def probe_table() -> str:
    """A row for each instruction; a pair of columns for each GPU that the probe was recorded on."""
    folders = sorted(path.parent.name for path in TRACES.glob("*/probe.npz"))
    recordings = [newest_probe(TRACES, folder) for folder in folders]
    headings = [
        f"{recording.device.gpu}: {what}" for recording in recordings for what in ("figures", "counters")
    ]
    lines = [_row(("instruction", "access", *headings)), _row("---" for _ in range(2 + len(headings)))]
    found = [{held.name: held for held in judge_probe(recording)} for recording in recordings]
    for name in dict.fromkeys(name for by_name in found for name in by_name):
        held = [by_name[name] for by_name in found if name in by_name]
        cells = [_equal(counts.values()) for one in held for counts in (one.figures, one.counters)]
        access = f"{held[0].space} {held[0].op.replace('_', '.')}, {held[0].width} B"
        lines.append(_row((f"`{name}`", access, *cells)))
    return "\n".join(lines) + "\n"


def _equal(pairs: Iterable[tuple[int, int]]) -> str:
    equal, compared = (
        (sum(counts) for counts in zip(*pairs, strict=True)) if (pairs := list(pairs)) else (0, 0)
    )
    return f"{equal:,} of {compared:,}" if compared else "-"


def _counts(figures: Sequence[MetricComparison]) -> str:
    count = Counter(figure.verdict for figure in figures)
    return ", ".join(f"{count[verdict]:,} {verdict}" for verdict in VERDICTS if count[verdict])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


PARTS: dict[str, Callable[[], str]] = {
    "validation: totals": totals_table,
    "validation: kernels": kernel_table,
    "validation: probe": probe_table,
}
