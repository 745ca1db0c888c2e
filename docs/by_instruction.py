"""The tables of docs/validation.md by machine instruction: predictions beside the recordings of cubins.

Shown is the newest recording of each kernel, size and GPU. A recording of code that has changed since is only
named. What is said of other projects' kernels was found when docs/validation/foreign.json was made.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from memsim.data import data_folder
from memsim.errors import MemsimError
from memsim.kernels import catalog
from memsim.validate.code_recording import CodeRecording, newest_code_of_each, replay
from memsim.validate.compare_instructions import VERDICTS, CodeComparison, MetricComparison
from memsim.views.plain import table

TRACES = data_folder("traces")
FOREIGN = Path(__file__).parent / "validation" / "foreign.json"
HELD_OUT = Path(__file__).parent / "validation" / "held_out.json"
KINDS = VERDICTS
# What a foreign kernel's row says, as foreign.json has it, and how the summary calls it.
OUTCOMES = {
    "equal": "equal in every counter and every instruction",
    "arbitration": "equal but for proven arbitration",
    "not modelled": "equal as far as modelled",
    "order": "differs, and said beforehand not to be certain",
    "refused": "not executed: memsim says why",
    "profiler": "equal in every counter; the profiler's own figures differ",
    "wrong": "wrong, and given as certain",
}


@cache
def comparisons() -> tuple[tuple[tuple[CodeRecording, CodeComparison], ...], tuple[str, ...]]:
    """All that can be compared, and the kernels that have changed since they were recorded."""
    found, changed = [], []
    for recording in newest_code_of_each(TRACES):
        try:
            found.append((recording, replay(recording)))
        except MemsimError:
            changed.append(recording.name)
    return tuple(found), tuple(dict.fromkeys(changed))


def totals_table() -> str:
    """For each GPU and size, how many instructions, and how many figures of which kind."""
    found, _ = comparisons()
    groups: dict[tuple[str, str], list[CodeComparison]] = {}
    for recording, comparison in found:
        default = recording.extents == tuple(catalog()[recording.name].family.sizes.values())
        groups.setdefault((recording.device.gpu, "default" if default else "ragged"), []).append(comparison)
    made_rows = []
    for (gpu, size), launches in sorted(groups.items()):
        count = Counter(figure.verdict for launch in launches for figure in launch.figures)
        rows = sum(len(launch.rows) for launch in launches)
        numbers = len(launches), rows, *(count[kind] for kind in KINDS)
        made_rows.append([gpu, size, *(f"{number:,}" for number in numbers)])
    made = {
        f"{recording.device.gpu}: driver {recording.device.driver}, CUDA {recording.device.cuda}, "
        f"Nsight Compute {recording.ncu}, {recording.date[:10]}; machine code made by "
        f"{recording.code.compiler}"
        for recording, _ in found
    }
    shown = table(("GPU", "size", "launches", "instructions", *KINDS), made_rows, "llrr" + "r" * len(KINDS))
    return "\n".join([shown, "", *(f"- {text}" for text in sorted(made))]) + "\n"


def kernel_table() -> str:
    """A row for each kernel, all its launches together."""
    found, changed = comparisons()
    by_kernel: dict[str, list[CodeComparison]] = {}
    for recording, comparison in found:
        by_kernel.setdefault(recording.name, []).append(comparison)
    lines = []
    for kernel, launches in sorted(by_kernel.items()):
        figures = [figure for launch in launches for row in launch.rows for figure in row.figures]
        totals = [figure for launch in launches for figure in launch.totals]
        rows = sum(len(launch.rows) for launch in launches)
        most = max(figure.arbitration for figure in totals)
        shown = f"{most:,}" if most else ""
        counted = _counts(figures), _counts(totals)
        lines.append((f"`{kernel}`", str(len(launches)), f"{rows:,}", *counted, shown))
    headings = ("kernel", "launches", "instructions", "their figures", "counters", "largest arbitration")
    note = f"\nChanged since they were recorded, and not compared: {', '.join(changed)}.\n" if changed else ""
    return f"{table(headings, lines, 'lrrllr')}\n{note}"


def read(file: Path) -> dict[str, Any]:
    """Kernels of other projects, and on what they were measured."""
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found


def foreign() -> list[dict[str, Any]]:
    """The kernels of other projects that memsim was developed with."""
    kernels: list[dict[str, Any]] = read(FOREIGN)["kernels"]
    return kernels


def held_out() -> list[dict[str, Any]]:
    """The kernels of other projects that memsim had not seen; `first`: the outcome on first contact."""
    kernels: list[dict[str, Any]] = read(HELD_OUT)["kernels"]
    return kernels


def foreign_summary() -> str:
    """How many of which outcome."""
    made = read(FOREIGN)
    count = Counter(kernel["outcome"] for kernel in made["kernels"])
    lines = [
        _extent(made),
        "",
        *(f"- {count[outcome]:,} {says}" for outcome, says in OUTCOMES.items()),
        "",
        _compilers(made),
    ]
    return "\n".join(lines) + "\n"


def held_out_summary() -> str:
    """How many of which outcome, on first contact and since; and the commits of the projects."""
    made = read(HELD_OUT)
    kernels = made["kernels"]
    first, now = (Counter(kernel[when] for kernel in kernels) for when in ("first", "outcome"))
    doubted = sum(kernel["uncertain"] and kernel["outcome"] in ("equal", "arbitration") for kernel in kernels)
    rows = [
        (says, f"{first[outcome]:,}", f"{now[outcome]:,}")
        for outcome, says in OUTCOMES.items()
        if first[outcome] or now[outcome] or outcome == "wrong"
    ]
    commits = ", ".join(
        f"{name} `{commit[:10]}`" for name, commit in sorted(made["projects"].items(), key=_fold)
    )
    lines = [
        _extent(made),
        "",
        table(("", "first contact", f"after the repairs of {made['repaired']}"), rows, "lrr"),
        "",
        f"{doubted:,} of those that are equal were reported as not certain.",
        "",
        f"{_compilers(made)} Commits: {commits}.",
    ]
    return "\n".join(lines) + "\n"


def _fold(pair: tuple[str, Any]) -> str:
    return pair[0].lower()


def _extent(made: dict[str, Any]) -> str:
    kernels = made["kernels"]
    counters, instructions = (
        sum(kernel[what] for kernel in kernels) for what in ("counters", "instructions")
    )
    projects = {kernel["project"] for kernel in kernels}
    return (
        f"**{len(kernels):,} kernels of {len(projects)} projects**, {counters:,} counters and "
        f"{instructions:,} memory instructions, on {_gpus(made)} (driver {made['driver']}, "
        f"Nsight Compute {made['ncu']}), {made['date']}:"
    )


def _gpus(made: dict[str, Any]) -> str:
    """The GPU, and others that some of the kernels ran on."""
    others = Counter(str(kernel["gpu"]) for kernel in made["kernels"] if "gpu" in kernel)
    return " and ".join(
        [f"one {made['gpu']}", *(f"one {gpu} ({number:,} of the kernels)" for gpu, number in others.items())]
    )


def _compilers(made: dict[str, Any]) -> str:
    compilers = Counter(str(kernel["compiler"]) for kernel in made["kernels"])
    return f"Compiled by {', '.join(f'{name} ({number})' for name, number in compilers.most_common())}."


def foreign_table(file: Path = FOREIGN) -> str:
    """For each project the kernels that are equal in everything, and a row for each of the others."""
    by_project: dict[str, list[dict[str, Any]]] = {}
    for kernel in read(file)["kernels"]:
        by_project.setdefault(kernel["project"], []).append(kernel)
    rows = []
    for project, kernels in sorted(by_project.items(), key=_fold):
        kernels.sort(key=lambda kernel: str(kernel["name"]))
        equal = [f"`{_cell(kernel['name'])}`" for kernel in kernels if kernel["outcome"] == "equal"]
        whole = f"{len(equal)} of {len(kernels)} equal"
        rows.append([f"**{project}**" + (f": {', '.join(equal)}" if equal else ""), whole, "", ""])
        for kernel in kernels:
            if kernel["outcome"] != "equal":
                said = f"`{kernel['name']}`", kernel["outcome"], "<br>".join(kernel["differs"]), kernel["why"]
                rows.append([*map(_cell, said)])
    return table(("kernel", "outcome", "what differs", "why"), rows, "llll") + "\n"


def held_out_table() -> str:
    """As `foreign_table`, of the kernels that memsim was not developed with."""
    return foreign_table(HELD_OUT)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _counts(figures: Sequence[MetricComparison]) -> str:
    count = Counter(figure.verdict for figure in figures)
    return ", ".join(f"{count[kind]:,} {kind}" for kind in KINDS if count[kind])


PARTS: dict[str, Callable[[], str]] = {
    "validation by instruction: totals": totals_table,
    "validation by instruction: kernels": kernel_table,
    "validation by instruction: foreign summary": foreign_summary,
    "validation by instruction: foreign": foreign_table,
    "validation by instruction: held out summary": held_out_summary,
    "validation by instruction: held out": held_out_table,
}
