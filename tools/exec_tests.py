"""Runs tests of Python projects on memsim's device, to say how many pass.

    python tools/exec_tests.py SUITE PYTHON CHECKOUT RESULTS.json [--count N] [--seconds 60] FILE...

CHECKOUT is a folder with the project SUITE, FILE its test files, and PYTHON one that has what they need;
nothing is fetched, and nothing is written there. Test functions are drawn by seed, each with its smallest
parameters: those whose numbers have the least sum. Many run in one process, as a fault ends them all:
the rest then goes on in a new one. A test that skips itself says that it needs another device and is
not counted. Results are added to those in the file, which docs/exec.md shows.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from exec_in_turn import Ending, run_in_turn, take_part


class Reporter:
    """What pytest tells of each test, a line in a file."""

    def __init__(self, results: Path) -> None:
        self.file = results.open("a")
        self.began = 0.0
        self.ending: Ending = {}

    def say(self, line: dict[str, Any]) -> None:
        """Writes a line."""
        print(json.dumps(line), file=self.file, flush=True)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins."""
        self.began, self.ending = time.time(), {"name": nodeid, "arguments": "", "cause": ""}
        self.say({"begins": nodeid})

    def pytest_runtest_logreport(self, report: Any) -> None:
        """A part of a test has ended."""
        if report.outcome != "passed" and not self.ending["cause"]:
            skipped = report.outcome == "skipped"
            text = report.longrepr[2] if skipped else getattr(report.longrepr, "reprcrash", report.longrepr)
            said = " ".join(str(getattr(text, "message", text)).split())
            self.ending["cause"] = f"skipped: {said[:150]}" if skipped else said[:300]

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """A test has ended; after a fault nothing works in this process, which is told by ending it."""
        self.say({**self.ending, "seconds": round(time.time() - self.began, 1)})
        torch = sys.modules.get("torch")
        if torch is not None and self.ending["cause"]:
            try:
                torch.cuda.synchronize()
            except RuntimeError:
                raise SystemExit(1) from None


def smallest(nodes: list[str]) -> list[str]:
    """Of each test function the case whose parameters have the least sum."""

    def size(node: str) -> tuple[float, int]:
        numbers = re.findall(r"\d+(?:\.\d+)?", node.partition("[")[2])
        return sum(map(float, numbers)), len(node)

    of_function: dict[str, list[str]] = {}
    for node in nodes:
        of_function.setdefault(node.partition("[")[0], []).append(node)
    return sorted(min(cases, key=size) for cases in of_function.values())


def main() -> None:
    if sys.argv[1] == "--work":
        import pytest

        reporter = Reporter(Path(sys.argv[2]))
        raise SystemExit(
            pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir=.", *sys.argv[3:]], [reporter])
        )
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("suite")
    parser.add_argument("python", type=Path)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=27)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--only", help="names that contain this")
    given = parser.parse_args()
    command = [sys.executable, "-m", "memsim", "exec", "--", str(given.python.absolute())]
    listing = [*command, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "--rootdir=."]
    told = subprocess.run([*listing, *given.files], cwd=given.checkout, stdout=subprocess.PIPE, text=True)
    names = smallest([line for line in told.stdout.splitlines() if "::" in line and " " not in line])
    if not names:
        raise SystemExit(told.stdout[-2000:])
    print(f"{len(names)} test functions of {given.suite}", flush=True)
    random.Random(given.seed).shuffle(names)
    chosen = [one for one in take_part(names[: given.count], given.part) if (given.only or "") in one]
    run_in_turn(given.suite, chosen, [*command, str(Path(__file__).resolve())], given, given.checkout)


if __name__ == "__main__":
    main()
