"""Runs memsim's own programs under ncu.

Such a program is a module, `python -m PROGRAM FOLDER`. It finds its input in the folder, and leaves an answer
there: what it computed, or the error that ended it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from memsim.errors import MemsimError
from memsim.validate.profiler import REPORT_SUFFIX, Profiler, profile
from memsim.validate.profiles import CodeProfile
from memsim.validate.read_report import read_code_report

ANSWER = "answer.json"
Progress = Callable[[float], None] | None


class LaunchCounter:
    """Converts measured launches to progress."""

    def __init__(self, total: int, progress: Progress) -> None:
        self.total, self.progress, self.done = total, progress, 0

    def step(self) -> None:
        """One more launch has been measured."""
        self.done += 1
        if self.progress is not None:
            self.progress(min(1.0, self.done / self.total))


def run_under_ncu(
    profiler: Profiler,
    program: str,
    folder: Path,
    kernels: Sequence[str],
    measure: Sequence[str],
    counter: LaunchCounter,
    also: Sequence[str] = (),
    lines: bool = False,
) -> tuple[Any, list[CodeProfile]]:
    """The answer of a program, and the profiles of its launches.

    kernels: the name of each launch in the code. measure, also, lines: what is collected and read, as in
    `profile` and `read_code_report`.

    Raises:
        MemsimError: the program's own error; one of ncu; other launches than `kernels` were measured.
    """
    report = folder / f"report{REPORT_SUFFIX}"
    try:
        printed = profile(
            profiler, report, measure, [sys.executable, "-m", program, str(folder)], counter.step
        )
    except MemsimError:
        _answer_in(folder)  # the program's own error is more specific than ncu's
        raise
    answer = _answer_in(folder)
    profiles = read_code_report(report, *also, lines=lines)
    if [found.kernel for found in profiles] != [*kernels]:
        raise MemsimError(
            f"ncu measured {_some(found.kernel for found in profiles)} where {_some(kernels)} ran: "
            f"{printed.strip()[-300:]}"
        )
    return answer, profiles


def answer(folder: Path, work: Callable[[], Any]) -> int:
    """Leaves in `folder` what `work` returns, or its error; returns the program's exit code."""
    try:
        told, code = {"answer": work()}, 0
    except MemsimError as error:
        told, code = {"error": error.message, "hint": error.hint}, error.exit_code
    (folder / ANSWER).write_text(json.dumps(told), "utf-8")
    return code


def _answer_in(folder: Path) -> Any:
    """What the program answered; None if it came to no answer."""
    path = folder / ANSWER
    told = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    if "error" in told:
        raise MemsimError(told["error"], hint=told["hint"])
    return told.get("answer")


def _some(kernels: Iterable[str]) -> str:
    """`probe, scale 3 times`."""
    counts = Counter(kernels).items()
    return ", ".join(name if count == 1 else f"{name} {count} times" for name, count in counts) or "nothing"
