"""What became of the programs that `tools/exec_suites.py` ran, as tables for docs/exec.md."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("exec_programs.json")
SPEED = Path(__file__).with_name("interpreter_speed.json")
#: By part of those drawn: whether something was mended because of them.
WHEN = {"0/2": ", looked at while `exec` was written", "1/2": ", others"}
#: Causes by the words in them; the first that fits.
CAUSES = (
    ("longer than the time limit", r"^time limit|build: time limit"),
    ("does not build here: a header or library is missing", r"^build"),
    (
        "needs what the device has not (a second GPU, virtual memory management, IPC)",
        r"waiv|Two or more|doesn't support|VIRTUAL ADDRESS",
    ),
    (
        "needs a file that is not here",
        r"not found|FindFilePath|cannot open|No such file|open file|usage",
    ),
    ("CUDA arrays and textures", r"Array|Texture|Surface|Mipmap"),
    ("graphs", r"Graph"),
    ("launches from kernels", r"cdp|CDP|BezierLines|ParameterBuffer"),
    ("another function is missing", r"not implemented"),
)
#: Programs whose random numbers begin with the time of day: each run does something else, so that counts and
#: cycles of two runs are not compared.
SEEDED_BY_TIME = frozenset({("Rodinia", "particlefilter_float"), ("Rodinia", "particlefilter_naive")})
#: Suites of Python: what `tools/exec_operators.py` and `tools/exec_tests.py` ran.
PYTHON = ("PyTorch's operators", "attorch", "Liger-Kernel", "FlagGems", "flash-linear-attention")
WHY_NOT = {
    "longer than the limit": "^time limit",
    "needs cuFFT, cuSOLVER or cuDNN": "cuFFT|CUFFT|dlopen|cuDNN|CUDNN",
}


AS_ON_A_GPU = "ends so on a GPU, too: a file or an argument is missing"


def outcomes() -> list[dict[str, Any]]:
    """A record for each program."""
    found: list[dict[str, Any]] = json.loads(RESULTS.read_text("utf-8"))
    return found


def table() -> str:
    """A row for each project; as on a GPU: of those that ended there within the limit."""
    rows = [
        "| project | programs | built | reached a launch | ended with exit code 0 | said so | as on a GPU |"
    ]
    rows.append("|---|---:|---:|---:|---:|---:|---:|")
    for suite, part in dict.fromkeys((one["suite"], one["part"]) for one in programs()):
        of_suite = [one for one in programs() if (one["suite"], one["part"]) == (suite, part)]
        good = [one for one in of_suite if is_good(one)]
        there = [one for one in of_suite if one.get("gpu_exit_code") is not None]
        same = sum(map(ends_as_on_a_gpu, there))
        counts = (
            len(of_suite),
            sum(one["built"] for one in of_suite),
            sum(one["launches"] > 0 for one in of_suite),
            len(good),
            sum(one["passed"] is True for one in good),
            f"{same} of {len(there)}" if there else "",
        )
        rows.append(f"| {suite}{WHEN.get(part, '')} | " + " | ".join(map(str, counts)) + " |")
    return "\n".join(rows) + "\n"


def python_table() -> str:
    """A row for each suite of Python: how many end as they should, and why the others do not."""
    rows = [
        "| suite | ran | as they should | " + " | ".join(WHY_NOT) + " | other |",
        "|---" + "|---:" * 5 + "|",
    ]
    for suite in PYTHON:
        ran = [one for one in outcomes() if one["suite"] == suite and not one["cause"].startswith("skipped")]
        bad = [one for one in ran if one["cause"]]
        named = Counter(
            next((why for why, words in WHY_NOT.items() if re.search(words, one["cause"])), "other")
            for one in bad
        )
        counts = [len(ran), len(ran) - len(bad), *(named[why] for why in (*WHY_NOT, "other"))]
        rows.append(f"| {suite} | " + " | ".join(map(str, counts)) + " |")
    return "\n".join(rows) + "\n"


def other_causes() -> str:
    """The suites' names that ended for another reason, with it."""
    lines = []
    for one in outcomes():
        is_other = one["cause"] and not re.search("|".join([*WHY_NOT.values(), "^skipped"]), one["cause"])
        if one["suite"] in PYTHON and is_other:
            name = one["name"].rpartition("::")[2].partition("[")[0]
            lines.append(f"- {one['suite']}, `{name}`: {one['cause'].partition(' (')[0][:100]}\n")
    return "".join(lines)


def programs() -> list[dict[str, Any]]:
    """Those that were built from C++."""
    return [one for one in outcomes() if one["suite"] not in PYTHON]


def is_good(one: dict[str, Any]) -> bool:
    """Whether it ended with exit code 0."""
    return bool(one["ended"] and one["exit_code"] == 0)


def ends_as_on_a_gpu(one: dict[str, Any]) -> bool:
    """Whether it ended with the exit code that it had there; of a signal n `memsim exec` has 128 + n, as a
    shell, and the record of the GPU -n.
    """
    there = one.get("gpu_exit_code")
    return bool(
        one["ended"] and there is not None and one["exit_code"] == (there if there >= 0 else 128 - there)
    )


def causes() -> str:
    """Why the others did not end well, and which they are."""
    bad = [one for one in programs() if not is_good(one)]
    of_cause: dict[str, list[str]] = {}
    for one in bad:
        said = f"{one['cause']} {one['name']}"
        cause = next(
            (name for name, words in CAUSES if re.search(words, said, re.I if "waiv" in words else 0)),
            "other",
        )
        if ends_as_on_a_gpu(one):
            cause = AS_ON_A_GPU
        of_cause.setdefault(cause, []).append(one["name"])
    sizes = Counter({cause: len(names) for cause, names in of_cause.items()})
    lines = [
        f"- {cause}: {count} ({', '.join(sorted(of_cause[cause]))})" for cause, count in sizes.most_common()
    ]
    return "\n".join(lines) + "\n"


def speed_of_interpreter() -> str:
    """What `tests/benchmarks/interpreter_speed.py` measured."""
    rows = ["| launch | emulator, s | interpreter, s | times as fast |", "|---|---:|---:|---:|"]
    for one in json.loads(SPEED.read_text("utf-8")):
        ratio = one["emulator"] / one["interpreter"]
        rows.append(f"| {one['launch']} | {one['emulator']:.3f} | {one['interpreter']:.3f} | {ratio:.1f} |")
    return "\n".join(rows) + "\n"


PARTS = {
    "speed of the interpreter": speed_of_interpreter,
    "programs run by exec": table,
    "programs that did not end well": causes,
    "Python run by exec": python_table,
    "Python that did not end well": other_causes,
}
