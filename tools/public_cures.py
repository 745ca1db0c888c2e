"""What `memsim suggest` does for kernels of public projects.

    python -m studies.cures TREES
    python tools/public_cures.py TREES HALF OUT.jsonl

The launches are those of studies/cures, TREES has their sources, HALF is `development`, `held-out`, `third`,
`fourth` or `fifth`. Each is made of two sets of data. Names and counts are written, a line for each launch.

A launch has waste where of its shared wavefronts a tenth or more are bank conflicts, or of its global sectors
a quarter or more is not needed, at least 32 of either. Accesses of which other data changes the count are
left out: what data decides, no edit of the kernel changes. The cure is what `suggest` ranks first, and, as a
user would do, what it then ranks first for the changed kernel. It is whole if at most a tenth of each kind of
waste is left, and all results are bit-for-bit the same. Where it is not, another cure is made of what leaves
the least waste each time, of all that is written; where that one is whole, it is recorded beside the first.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import subprocess
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from memsim.analysis import BADLY_COALESCED, Analysis, analyze_trace
from memsim.api.running import trace_job
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.suggest.other_values import at_other_values, edit_with_assertions, knobs_of_edit
from memsim.suggest.prove import Proof, differing_results, edit_job, replay_job, rounding_between, source_of
from memsim.suggest.ranking import verdict
from memsim.suggest.suggestions import Suggestions, suggest
from memsim.suggest.threads import Remapped
from memsim.views.suggest.terminal import name_of
from studies.cures.pairs import write_pair
from studies.cures.sets import SETS, launches

CONFLICTS, LEAST = 0.1, 32
LEFT = 0.1  # of the waste, in a cure that is whole
ROUNDS = 3
SECONDS = 300  # of processor time, for a launch


class Late(Exception):
    """A launch took too long."""


def main() -> None:
    """Measures each launch of a half, and writes a line for each."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("trees", type=Path)
    reader.add_argument("half", choices=SETS)
    reader.add_argument("out", type=Path)
    reader.add_argument("--kernels", type=int, default=34, help="stop after so many with waste")
    reader.add_argument("--only", default="", help="launches whose name contains this")
    reader.add_argument("--part", default="0/1", help="of the launches, as 0/2")
    reader.add_argument("--keep", type=Path, help="a folder for the changed sources, outside of the project")
    reader.add_argument("--pairs", type=Path, help="a folder for what tools/time_pairs.cu times")
    asked = reader.parse_args()
    part, parts = map(int, asked.part.split("/"))
    done = {}
    if asked.out.exists():
        done = {line["launch"]: line for line in map(json.loads, asked.out.read_text("utf-8").splitlines())}
    found = sum("waste" in line for line in done.values())
    commit = _commit()
    for number, (project, name, job, other) in enumerate(launches(asked.half, asked.trees)):
        if name in done or asked.only not in name or number % parts != part:
            continue
        if found >= asked.kernels:
            break
        told = {"project": project, "launch": name, "commit": commit}
        told |= in_a_process(partial(measure, job, other, name, asked.keep, asked.pairs))
        found += "waste" in told
        with asked.out.open("a", encoding="utf-8") as out:
            out.write(json.dumps(told) + "\n")
        print(f"{name[:100]}: {in_words(told)}", flush=True)


def _commit() -> str:
    """Of this checkout."""
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()


#: Of the place of an instruction in a message: where the file lies on this machine.
_FOLDERS = re.compile(r"/[^:()]*/(?=[^/:()]+:\d)")


def in_a_process(work: Callable[[], dict[str, Any]], seconds: float = SECONDS) -> dict[str, Any]:
    """What `work` tells, done by a process of its own, in so much processor time: its memory goes with it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGPROF, _late)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            told = work()
        except Late:
            told = {"failed": f"takes more than {seconds:.0f} s of processor time"}
        except MemsimError as error:
            told = {"failed": _FOLDERS.sub("", error.message)}
        except Exception:
            told = {"crashed": traceback.format_exc()[-1500:]}
        with os.fdopen(writing, "w") as out:
            out.write(json.dumps(told))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as given:
        text = given.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"crashed": "the process ended"}


def _late(*_: object) -> None:
    raise Late


def measure(
    make: Callable[[], Job], other: Callable[[], Job], name: str, keep: Path | None, pairs: Path | None
) -> dict[str, Any]:
    """A launch's waste, and what becomes of it."""
    job = make()
    before = analyze_trace(trace_job(job, apart=True), job.arch)
    if not _kinds(waste(before, frozenset())):
        return {}
    decided = decided_by_data(before, analyze_trace(trace_job(other(), apart=True), job.arch))
    kinds = _kinds(first := waste(before, decided))
    if not kinds:
        return {"decided by data": True}
    told: dict[str, Any] = {"waste": {kind: first[kind] for kind in kinds}, "all": first, "steps": []}
    told["bound"] = [None if before.bound.lacks else before.bound.cycles]
    told["bound by"] = before.bound.units[0].key if before.bound.units else None
    told["lines"] = len(next(iter(before.trace.sources.values()), "").splitlines())
    now, analysis, ways = job, before, tuple[Proof | Remapped, ...]()
    for _ in range(ROUNDS):
        started, wall = _cpu(), time.monotonic()
        found = suggest(analysis, now)
        ways = ways or written(found)
        told.setdefault("cpu", []).append(round(_cpu() - started, 2))
        told.setdefault("wall", []).append(round(time.monotonic() - wall, 2))
        told.setdefault("needs no edit", found.needs_no_edit)
        told.setdefault("pays", []).append(found.pays)
        if found.taken is None:
            told.setdefault("why", found.unproven)
            told["shown"] = shown(found)
            break
        step, after = judged(found.taken, now)
        told["steps"].append(step)
        if after is None:
            break
        now, analysis = replace(after, name=job.name), analyze_trace(trace_job(after, apart=True), job.arch)
        told["bound"].append(None if analysis.bound.lacks else analysis.bound.cycles)
        if keep is not None:
            _keep(keep, name, after)
        if not _kinds(waste(analysis, frozenset())):
            break
    if pairs is not None and now is not job:
        _pair(pairs, name, (job, now), told)
    last = waste(analysis, decided)
    told["left"] = {kind: last[kind] for kind in kinds}
    gone = [last[kind][0] <= LEFT * first[kind][0] for kind in kinds]
    less = [last[kind][0] <= 0.75 * first[kind][0] for kind in kinds]
    rounded = any("differ by rounding" in step for step in told["steps"])
    told["cure"] = "whole" if all(gone) and not rounded else "part" if any(less) else "none"
    if told["cure"] != "whole":
        with suppress(Late):
            told["whole behind the first"] = behind_the_first(job, before, ways, decided, kinds)
    return told


def behind_the_first(
    job: Job,
    before: Analysis,
    ways: Iterable[Proof | Remapped],
    decided: frozenset[tuple[Any, ...]],
    kinds: Sequence[str],
) -> dict[str, Any] | None:
    """The cure that is made of what leaves the least waste each time; None unless it is whole.

    ways: what is written for the launch as it is. None asks the caller for another layout, or is equal in
    results but for rounding.
    """
    first = waste(before, decided)

    def left(analysis: Analysis) -> list[float]:
        """Of each kind of waste, as a part of what it was."""
        now = waste(analysis, decided)
        return [now[kind][0] / first[kind][0] for kind in kinds]

    now, analysis, steps = job, before, list[dict[str, Any]]()
    for _ in range(ROUNDS):
        for way in sorted(ways, key=lambda one: sum(left(one.analysis))):
            if sum(left(way.analysis)) >= sum(left(analysis)) or way.asks:
                continue
            step, after = judged(way, now)
            if after is not None and "differ by rounding" not in step:
                break
        else:
            return None
        steps.append(step)
        now, analysis = replace(after, name=job.name), analyze_trace(trace_job(after, apart=True), job.arch)
        if max(left(analysis)) <= LEFT:
            last = waste(analysis, decided)
            told = {"steps": steps, "left": {kind: last[kind] for kind in kinds}}
            told["verdict"] = verdict(replay_job(job), replay_job(now)).value
            return told
        ways = written(suggest(analysis, now))
    return None


def written(found: Suggestions) -> tuple[Proof | Remapped, ...]:
    """All that was compiled and replayed."""
    return tuple(way for way in (found.proof, *found.tried, *found.remapped) if way is not None)


def judged(taken: Proof | Remapped, job: Job) -> tuple[dict[str, Any], Job | None]:
    """What was taken, whether its results are the same here and at other values, and the job with it."""
    told: dict[str, Any] = {"name": name_of(taken), "tokens": taken.edit.tokens}
    told |= {"asks of the caller": [one.array for one in taken.asks]} if taken.asks else {}
    try:
        told["differ"] = list(differing_results(job, taken.job, asks=taken.asks))
        rounded = None
        if told["differ"]:
            rounded = rounding_between(job, taken.job, told["differ"], taken.asks, reorders=taken.reorders)
        if rounded is not None:
            told |= {"differ": [], "differ by rounding": rounded.values}
        tried = list(at_other_values(job if rounded is None else rounded.before, taken))
    except MemsimError as error:
        return told | {"differ": [error.message]}, None
    names = knobs_of_edit(job, taken.edit)
    told["values"] = [[one.name, one.value, one.outcome] for one in tried]
    safe = edit_with_assertions(taken.edit, tried, names)
    told["guarded"] = safe is not taken.edit
    if told["differ"] or safe is None:
        return told, None
    return told, edit_job(job, safe, taken.job)


def waste(analysis: Analysis, decided: frozenset[tuple[Any, ...]]) -> dict[str, tuple[int, int]]:
    """Bank conflicts of all shared wavefronts, needless of all global sectors; without what data decides."""
    sites = [site for key, site in _numbered(analysis) if key[:3] not in decided]
    shared = sum(site.wavefronts_of_conflicts for site in sites if site.space == "shared")
    needless = sum(site.needless_sectors for site in sites if site.space == "global")
    return {"shared": (shared, analysis.wavefronts or 0), "global": (needless, analysis.sectors or 0)}


def _kinds(found: dict[str, tuple[int, int]]) -> list[str]:
    least = {"shared": CONFLICTS, "global": BADLY_COALESCED}
    return [
        kind for kind, (wasted, all_) in found.items() if all_ and wasted >= max(LEAST, least[kind] * all_)
    ]


def decided_by_data(one: Analysis, two: Analysis) -> frozenset[tuple[Any, ...]]:
    """The arrays, each for loads, stores or atomics, of which other data changes the counts of an access.

    Whole arrays, as the lines and widths of accesses are others in a changed source.
    """
    other = dict(_numbered(two))
    return frozenset(
        key[:3]
        for key, site in _numbered(one)
        if key not in other
        or (site.sectors, site.wavefronts, site.requests)
        != (other[key].sectors, other[key].wavefronts, other[key].requests)
    )


def _numbered(analysis: Analysis) -> Iterator[tuple[tuple[Any, ...], Any]]:
    seen: dict[tuple[Any, ...], int] = {}
    for site in analysis.sites:
        key = (site.space, site.op, site.array, site.line, site.width)
        seen[key] = seen.get(key, -1) + 1
        yield (*key, seen[key]), site


def shown(found: Suggestions) -> list[str]:
    """What is on the page, to be done by hand."""
    return [
        *("layout" for each in found.proposals if each.edit is None),
        *("split" for _ in found.split),
        *("wider" for _ in found.wider),
        *("fields" for _ in found.fields),
        *("staging" for _ in found.staging),
        *("lanes" for _ in ([found.lanes] if found.lanes else [])),
    ]


def _cpu() -> float:
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def _pair(folder: Path, name: str, jobs: tuple[Job, Job], told: dict[str, Any]) -> None:
    """Both kernels for a GPU, and what memsim says of them."""
    change = "; ".join(step["name"] for step in told["steps"])
    before, after = (replay_job(one) for one in jobs)
    times = [None if one.estimate is None else one.estimate.seconds for one in (before, after)]
    said = {"of": name.partition("|")[0], "kernel": jobs[0].name, "change": change, "pays": told["pays"][0]}
    bound = [before.bound.cycles, after.bound.cycles]
    stem = "".join(letter if letter.isalnum() else "_" for letter in name)
    with suppress(ValueError):  # arguments that time_pairs.cu cannot make
        write_pair(folder, stem, jobs)
        text = json.dumps(said | {"estimated": times, "bound": bound})
        (folder / f"{stem}.json").write_text(text, "utf-8")


def _keep(folder: Path, name: str, job: Job) -> None:
    source = source_of(job)
    if source.text is not None:
        folder.mkdir(parents=True, exist_ok=True)
        safe = "".join(letter if letter.isalnum() else "_" for letter in name)
        (folder / f"{safe}.cu").write_text(source.text, "utf-8")


def in_words(told: dict[str, Any]) -> str:
    """A line about a launch."""
    if "waste" not in told:
        return str(
            told.get("failed")
            or told.get("crashed", "")[-200:]
            or ("data" if "decided by data" in told else "-")
        )
    steps = "; ".join(step["name"] + (" DIFFERS" if step.get("differ") else "") for step in told["steps"])
    shared = ", ".join(
        f"{kind} {one[0]} of {one[1]} -> {told['left'][kind][0]}" for kind, one in told["waste"].items()
    )
    behind = told.get("whole behind the first")
    other = f"; whole behind it: {', '.join(step['name'] for step in behind['steps'])}" if behind else ""
    cpu = f"{told.get('shown', '')} {told['cpu']} s"
    return f"{told['cure']}: {shared}; {steps or told.get('why')}{other} {cpu}"


if __name__ == "__main__":
    main()
