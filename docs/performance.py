"""The figures of docs/performance.md.

`python docs/performance.py` runs the benchmarks (on an otherwise idle machine, several minutes) and
keeps what the tables need in docs/benchmarks.json; `docs/generate.py` makes the tables from that file.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from memsim.views.plain import table

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "docs" / "benchmarks.json"
STAGES = ROOT / "docs" / "stages.json"
COMMAND = "python docs/performance.py"
CHECKS = {
    "cold": "nothing kept",
    "warm": "traces from the cache",
    "passed": "which passed, and nothing has changed since",
}
LANES = ("every lane", "some idle")


def measure() -> None:
    """Run the benchmarks and keep name, median, best round and extra figures of each."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "benchmarks.json")
        subprocess.run(
            [sys.executable, "-m", "pytest", "tests/benchmarks", "-q", f"--benchmark-json={output}"],
            cwd=ROOT,
            check=True,
        )
        found = json.loads(output.read_text("utf-8"))
    import numpy

    record = {
        "processor": found["machine_info"]["cpu"].get("brand_raw", platform.machine()),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "benchmarks": {
            bench["name"]: {
                "median_s": bench["stats"]["median"],
                "best_s": bench["stats"]["min"],
                **bench["extra_info"],
            }
            for bench in sorted(found["benchmarks"], key=lambda bench: bench["name"])
        },
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


def load() -> dict[str, Any]:
    """The kept figures."""
    record: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
    return record


def process_table() -> str:
    """Whole processes on two cores: time, memory, requests."""
    record = load()
    benchmarks = record["benchmarks"]
    made = (
        f"Measured by `{COMMAND}` on {record['processor']}, Python {record['python']}, "
        f"numpy {record['numpy']}; medians of whole processes on two cores."
    )
    rows = []
    for extent in (1024, 4096):
        bench = benchmarks[f"test_analyze_kernel_v4[{extent}]"]
        command = f"`memsim analyze kernel_v4 --size {extent},{extent},{extent}`"
        counted = f"{bench['memory_requests']:,}", f"{bench['peak_mib']} MiB"
        rows.append((command, f"{bench['median_s']:.2f} s", *counted))
    if bench := benchmarks.get("test_analyze_once_more"):
        command = "`memsim analyze kernel_v4`, asked before, and nothing has changed since"
        rows.append((command, f"{bench['median_s']:.2f} s", "", ""))
    for jobs in (1, 2):
        if bench := benchmarks.get(f"test_one_launch_divided[{jobs}]"):
            command = f"`memsim analyze irregular.cu --kernel join ... -j {jobs}`"
            rows.append((command, f"{bench['median_s']:.2f} s", f"{bench['memory_requests']:,}", ""))
    for cache, said in CHECKS.items():
        bench = benchmarks[f"test_check_the_whole_catalogue[{cache}]"]
        command = f"`memsim check`, the {bench['kernels']} kernels of the catalogue, {said}"
        rows.append((command, f"{bench['median_s']:.1f} s", "", ""))
    alone = {"test_numpy_alone": "import numpy", "test_import": "import memsim", "test_python_alone": "pass"}
    for name, code in alone.items():
        if bench := benchmarks.get(name):
            rows.append((f"`python -c '{code}'`", f"{bench['median_s']:.3f} s", "", ""))
    headings = ("command", "time", "memory requests counted", "peak memory")
    return f"{made}\n\n{table(headings, rows, 'lrrr')}\n"


def model_table() -> str:
    """Requests a second of the models, best round, one process."""
    rows = []
    benchmarks = load()["benchmarks"]
    names = [name for name in benchmarks if "requests_per_s" in benchmarks[name]]
    rates = {name: f"{benchmarks[name]['requests_per_s'] / 1e6:.1f} M/s" for name in names}
    shared = {tuple(name.split("[")[1].split("-")[:2]) for name in names if "shared" in name}
    for op, width in sorted(shared, key=lambda key: (key[0], int(key[1]))):
        whole, some = (rates[f"test_shared_access[{op}-{width}-{lanes}]"] for lanes in LANES)
        rows.append((f"shared {op}, {width} B", whole, some))
    for name in names:
        if "global" in name:
            rows.append((f"global load, {name.split('[')[1][:-1]} B", rates[name], ""))
    return table(("distinct random requests", "every lane", "some idle"), rows, "lrr") + "\n"


def irregular_table() -> str:
    """Launches whose requests do not repeat: requests a second of processor time, and memory."""
    rows = []
    for name, bench in load()["benchmarks"].items():
        if "irregular_requests" in bench:
            requests = bench["irregular_requests"]
            rate = requests / bench["processor_s"] / 1e6
            launch = name.split("[")[1][:-1]
            rows.append((launch, f"{requests:,}", f"{rate:.2f} M/s", f"{bench['peak_mib']} MiB"))
    return table(("launch", "requests counted", "requests a second", "peak memory"), rows, "lrrr") + "\n"


def stage_table() -> str:
    """Large kernels: processor time of each stage, as `tests/benchmarks/stages.py` measured it."""
    launches = json.loads(STAGES.read_text("utf-8"))
    seconds = [one["seconds"] for one in launches]
    rows = [
        ("instructions", *(f"{one['instructions']:,}" for one in launches)),
        ("blocks", *(f"{one['blocks']:,}" for one in launches)),
        ("requests counted", *(f"{one['requests']:,}" for one in launches)),
        *((stage, *(f"{one[stage]:.2f} s" for one in seconds)) for stage in seconds[0]),
        ("together", *(f"{sum(one.values()):.2f} s" for one in seconds)),
    ]
    head = ("", *(f"`{one['kernel']}`" for one in launches))
    return table(head, rows, "l" + "r" * len(launches)) + "\n"


if __name__ == "__main__":
    measure()
