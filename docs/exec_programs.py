"""What became of the programs that `tools/exec_suites.py` ran, as tables for docs/exec.md."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("exec_programs.json")
#: By part of those drawn: whether something was mended because of them.
WHEN = {"0/2": "looked at while `exec` was written", "1/2": "others, run once at the end"}
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


def outcomes() -> list[dict[str, Any]]:
    """A record for each program."""
    found: list[dict[str, Any]] = json.loads(RESULTS.read_text("utf-8"))
    return found


def table() -> str:
    """A row for each project."""
    rows = ["| project | programs | built | reached a launch | ended with exit code 0 | said so |"]
    rows.append("|---|---:|---:|---:|---:|---:|")
    for suite, part in dict.fromkeys((one["suite"], one["part"]) for one in outcomes()):
        of_suite = [one for one in outcomes() if (one["suite"], one["part"]) == (suite, part)]
        good = [one for one in of_suite if one["ended"] and one["exit_code"] == 0]
        counts = (
            len(of_suite),
            sum(one["built"] for one in of_suite),
            sum(one["launches"] > 0 for one in of_suite),
            len(good),
            sum(one["passed"] is True for one in good),
        )
        rows.append(f"| {suite}, {WHEN.get(part, 'run once')} | " + " | ".join(map(str, counts)) + " |")
    return "\n".join(rows) + "\n"


def causes() -> str:
    """Why the others did not end well, and which they are."""
    bad = [one for one in outcomes() if not (one["ended"] and one["exit_code"] == 0)]
    of_cause: dict[str, list[str]] = {}
    for one in bad:
        said = f"{one['cause']} {one['name']}"
        cause = next(
            (name for name, words in CAUSES if re.search(words, said, re.I if "waiv" in words else 0)),
            "other",
        )
        of_cause.setdefault(cause, []).append(one["name"])
    sizes = Counter({cause: len(names) for cause, names in of_cause.items()})
    lines = [
        f"- {cause}: {count} ({', '.join(sorted(of_cause[cause]))})" for cause, count in sizes.most_common()
    ]
    return "\n".join(lines) + "\n"


PARTS = {"programs run by exec": table, "programs that did not end well": causes}
