"""Processor time of whole processes, of this checkout beside an earlier one, in one run.

`python -m tests.benchmarks.beside COMMIT` analyzes kernel_v4 by both, round after round, and starts Python
with numpy in each round. What is printed for each are medians, as multiples of that start, so that machines
and their other work cancel out. Nothing is taken from memsim's cache; bytecode is kept, as wherever pip
installs a package.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
SIZES = (1024, 4096)


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """The files of a commit, in a folder of their own for a while."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        yield Path(folder)


def processor_seconds(arguments: list[str], folder: Path, environment: dict[str, str]) -> float:
    """User and system time of a process of Python and of all that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def analysis(folder: Path, extent: int) -> list[str]:
    """The command that analyzes kernel_v4 anew: without the cache, if the checkout has one."""
    words = ["-m", "memsim", "analyze"]
    environment = os.environ | {"PYTHONPATH": str(folder)}
    shown = subprocess.run(
        [sys.executable, *words, "--help"],
        cwd=folder,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    anew = ["--no-cache"] if "--no-cache" in shown.stdout else []
    return [*words, "kernel_v4", "--size", f"{extent},{extent},{extent}", *anew]


def measured(earlier: Path, extent: int, rounds: int) -> dict[str, float]:
    """Medians in seconds: of Python with numpy, of the earlier checkout, of this one."""
    commands = {
        "numpy": (["-c", "import numpy"], ROOT),
        "earlier": (analysis(earlier, extent), earlier),
        "now": (analysis(ROOT, extent), ROOT),
    }
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, (arguments, folder) in commands.items():
            seconds = processor_seconds(arguments, folder, environment | {"PYTHONPATH": str(folder)})
            if turn:  # the first round writes bytecode
                times[name].append(seconds)
    return {name: statistics.median(taken) for name, taken in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", help="the earlier commit")
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    with checkout(given.commit) as earlier:
        for extent in SIZES:
            found = measured(earlier, extent, given.rounds)
            start = found["numpy"]
            was, now = found["earlier"] / start, found["now"] / start
            print(
                f"kernel_v4 at {extent} cubed: {given.commit} {was:.2f}, now {now:.2f} times Python with"
                f" numpy ({start:.3f} s): {now / was:.2f} times what it was"
            )


if __name__ == "__main__":
    main()
