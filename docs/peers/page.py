"""The section of docs/performance.md on other tools: what each says, and how long it takes."""

from __future__ import annotations

import json
from statistics import median
from typing import Any

from docs.peers.measure import RECORD, ROUNDS, SECTORS, WAVEFRONTS
from memsim.views.plain import table

SPACES = {"shared": WAVEFRONTS, "global": SECTORS}
TOOLS = ("memsim", "cuxray")
#: Memory requests a second, on another machine and not by this script: an order of magnitude.
ACCEL_SIM = "13 thousand"
PARTS_OF = ("not_analyzed", "sites")
RIGHT, ALARM, MISSED = "right", "false alarm", "missed"


def wastes(chip: dict[str, int], space: str) -> bool:
    """Whether the chip's counts are above the profiler's ideal."""
    return chip[SPACES[space]] > chip[f"{SPACES[space]}_ideal"]


def judged(kernel: dict[str, Any], tool: str, space: str) -> str:
    """What became of a tool's verdict on a kernel: does it waste wavefronts, or sectors?"""
    said, true = kernel[tool][space], wastes(kernel["chip"], space)
    return RIGHT if said == true else ALARM if said else MISSED


def section() -> str:
    """The whole section."""
    record = json.loads(RECORD.read_text("utf-8"))
    kernels = record["kernels"]
    return "\n".join([*_head(record), _summary(kernels), "", *_table(kernels), "", *_gate(record), ""])


def _head(record: dict[str, Any]) -> list[str]:
    tool, assembler = record["peers"]
    count = len(record["kernels"])
    return [
        "## Compared with other tools",
        "",
        f"`python -m docs.peers` installs {tool} and runs both tools on {count} kernels of the catalogue"
        " that have a recording. Two verdicts of each are compared with what Nsight Compute's source page"
        " recorded on an H200: does shared memory take more wavefronts than its ideal, and does global memory"
        " take more sectors? No answer counts as no. memsim reads the machine code that ships. cuxray reads"
        f" cubins of CUDA 13, which are assembled from the same PTX (`{assembler}`), and is given block, grid"
        f" and dynamic shared memory. {record['processor']}, Python {record['python']}, numpy"
        f" {record['numpy']}.",
        "",
    ]


def _summary(kernels: dict[str, Any]) -> str:
    rows = []
    for space in SPACES:
        found = {tool: [judged(kernel, tool, space) for kernel in kernels.values()] for tool in TOOLS}
        for verdict in (RIGHT, ALARM, MISSED):
            counts = [f"{found[tool].count(verdict)} of {len(kernels)}" for tool in TOOLS]
            rows.append([f"{space} memory: {verdict}", *counts])
    missing = [
        " of ".join(f"{sum(kernel[tool][part] for kernel in kernels.values()):,}" for part in PARTS_OF)
        for tool in TOOLS
    ]
    rows.append(["accesses not analyzed (memsim: rows; cuxray: instructions)", *missing])
    times = [f"{median(kernel[tool]['seconds'] for kernel in kernels.values()):.2f} s" for tool in TOOLS]
    rows.append(["CPU time of a kernel's analysis, whole process, median", *times])
    equal = [
        sum(kernel["memsim"][metric] == kernel["chip"][metric] for kernel in kernels.values())
        for metric in (WAVEFRONTS, SECTORS)
    ]
    both = f"{equal[0]} and {equal[1]} of {len(kernels)}"
    rows.append(["kernels whose wavefronts, and whose sectors, equal the recording", both, "not given"])
    return table(("", *TOOLS), rows, "lrr")


def _table(kernels: dict[str, Any]) -> list[str]:
    requests = sum(kernel["memsim"]["requests"] for kernel in kernels.values())
    seconds = sum(kernel["memsim"]["seconds"] for kernel in kernels.values())
    unequal = [name for name, kernel in kernels.items() if _off(kernel)]
    lines = [
        f"memsim counted {requests:,} requests in {seconds:.1f} s of CPU time. Accel-Sim, which does far more"
        f" because it simulates cycles, was measured elsewhere at {ACCEL_SIM} requests per second.",
    ]
    if unequal:
        said = ", ".join(f"`{name}` ({_off(kernels[name]):+,})" for name in unequal)
        lines[0] += (
            f" Wavefronts differ from the source page for {said}; [validation](validation.md) compares"
            " these kernels with the profiler's other counters."
        )
    if any(judged(kernel, "memsim", "global") == ALARM for kernel in kernels.values()):
        lines[0] += (
            " Where only memsim reports sectors that could be saved, lanes read the same few bytes of several"
            " rows: memsim's ideal counts distinct bytes, the source page's ideal all requested bytes."
        )
    wrong = [(f"`{name}`", "; ".join(_wrong(kernel))) for name, kernel in kernels.items() if _wrong(kernel)]
    return [*lines, "", table(("kernel", "wrong verdicts"), wrong, "ll")]


def _off(kernel: dict[str, Any]) -> int:
    difference: int = kernel["memsim"][WAVEFRONTS] - kernel["chip"][WAVEFRONTS]
    return difference


def _wrong(kernel: dict[str, Any]) -> list[str]:
    found = []
    for tool in TOOLS:
        for space in SPACES:
            verdict = judged(kernel, tool, space)
            if verdict != RIGHT:
                part = f"{kernel[tool]['not_analyzed']} of {kernel[tool]['sites']} accesses not analyzed"
                found.append(f"{tool}: {space}, {verdict} ({part})")
    return found


def _gate(record: dict[str, Any]) -> list[str]:
    gate = record["gate"]
    return [
        "As a gate in CI, on one cubin of seven kernels (`docs/peers/gate.cu`): CPU time of the whole"
        f" process, medians of {ROUNDS} alternating runs. `python -c 'import numpy'` took"
        f" {gate['numpy']:.2f} s.",
        "",
        table(
            ("", "first run", "nothing changed"),
            [
                (f"`{command}`", f"{gate[f'{tool}_first']:.2f} s", f"{gate[tool]:.3f} s")
                for command, tool in (("memsim check", "memsim"), ("cuxray gate", "cuxray"))
            ],
            "lrr",
        ),
    ]


PARTS = {"peers": section}
