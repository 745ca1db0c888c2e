"""Runs many small programs in one process of `memsim exec`, and in another one after each that ends it.

The process is asked by `--work FILE NAME...` and writes two lines of JSON to the file for each name:
`begins`, and an `Ending`. Results are records of `tools/exec_suites.py`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

from exec_suites import SAID, Outcome

#: name, arguments, cause (empty: it ended as it should), seconds.
Ending = dict[str, Any]
#: How long a process may take to its first line: imports.
START = 900


def take_part(names: list[str], part: str) -> list[str]:
    """Every n-th of those drawn, from k on, of a part `k/n`."""
    number, parts = map(int, part.split("/"))
    return names[number::parts]


def run_in_turn(
    suite: str, names: list[str], command: list[str], given: Namespace, folder: Path | None = None
) -> None:
    """Runs them, and adds what became of each to the file of results. given.seconds: for each."""
    while names:
        endings, said = _run(names, command, given.seconds, folder)
        if not endings:
            raise SystemExit("\n".join(said) or "the first one was not reached")
        outcomes = [_outcome(suite, one, said, given.part) for one in endings]
        for outcome in outcomes:
            print(f"{outcome.name}: {outcome.cause or 'good'}", flush=True)
        done = {one.name for one in outcomes}
        names = [one for one in names if one not in done]
        known = json.loads(given.results.read_text()) if given.results.exists() else []
        known = [old for old in known if not (old["suite"] == suite and old["name"] in done)]
        given.results.write_text(json.dumps([*known, *map(asdict, outcomes)], indent=1) + "\n")


def _run(
    names: list[str], command: list[str], seconds: float, folder: Path | None
) -> tuple[list[Ending], list[str]]:
    """One process: what became of those that it reached, and what memsim said."""
    with tempfile.TemporaryDirectory() as scratch:
        results, told = Path(scratch, "results"), Path(scratch, "told")
        results.touch()
        environment = {**os.environ, "MEMSIM_TIME_LIMIT": str(seconds)}
        with told.open("wb") as errors:
            process = subprocess.Popen(
                [*command, "--work", str(results), *names],
                cwd=folder,
                env=environment,
                stdout=errors,
                stderr=errors,
            )
            lines, changed = 0, time.time()
            while process.poll() is None:
                time.sleep(1)
                if (now := len(results.read_text().splitlines())) != lines:
                    lines, changed = now, time.time()
                if time.time() - changed > (1.5 * seconds if lines else START):
                    process.send_signal(signal.SIGINT)
                    try:
                        process.wait(10)
                    except subprocess.TimeoutExpired:
                        process.kill()
        found: list[Ending] = [json.loads(line) for line in results.read_text().splitlines()]
        text = told.read_text(errors="replace")
    if found and "begins" in found[-1]:
        late = time.time() - changed > seconds
        cause = "time limit" if late else f"exit code {process.returncode}"
        found.append({"name": found[-1]["begins"], "arguments": "", "cause": cause, "seconds": seconds})
    return [one for one in found if "name" in one], SAID.findall(text) or text.splitlines()[-5:]


def _outcome(suite: str, one: Ending, said: list[str], part: str) -> Outcome:
    """The record of one. said: by memsim in its process, of which the last words are about a fault."""
    cause = one["cause"]
    if "not supported" in cause or "NOT_SUPPORTED" in cause:
        missing = [line for line in said if "not implemented" in line]
        cause += f" ({missing[-1]})" if missing else ""
    elif "CUDA" in cause and said:
        cause += f" ({said[-1]})"
    return Outcome(
        suite,
        one["name"],
        one["arguments"],
        part,
        built=True,
        ended=cause != "time limit",
        exit_code=int(bool(cause)),
        passed=None if cause.startswith("skipped") else not cause,
        seconds=one["seconds"],
        cause=cause[:400],
    )
