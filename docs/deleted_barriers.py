"""Each barrier, fence and wait of kernels deleted in turn from the machine code: is it missed?

`python -m docs.deleted_barriers` tries those of the catalogue, `python -m docs.deleted_barriers hopper` those
of kernels that only Hopper runs, which takes some minutes each, and writes a file beside this one: the tables
of docs/sanitize.md are made of these.
"""

from __future__ import annotations

import json
import sys
import tarfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from docs.deleted_reasons import REASONS, UNCHECKED, reason
from memsim import TensorMap
from memsim.api.loading import load
from memsim.api.running import job_of, trace_job
from memsim.api.sanitizing import sanitize_job
from memsim.argument_types import ArrayArg
from memsim.captured.saved_launch import read_launch
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.kernels import catalog
from memsim.sanitizer.hazards import INIT, RACE, SYNC, Hazard
from memsim.targets.target import launched_job, read_job
from tests.sanitize.deleted import job_without, ordering

FILE = Path(__file__).with_suffix(".json")
HOPPER_FILE = Path(__file__).with_name("deleted_hopper.json")
#: What is deleted, by how the instruction begins.
NAMES = {
    "BAR": "`__syncthreads()` (`BAR.SYNC`)",
    "LDGDEPBAR": "`cp.async.commit_group` (`LDGDEPBAR`)",
    "DEPBAR": "`cp.async.wait_group` (`DEPBAR.LE SB0`)",
    "WARPSYNC": "reconvergence (`WARPSYNC.ALL`)",
}
OF_HOPPER = {
    "SYNCS.EXCH": "`mbarrier.init` (`SYNCS.EXCH`)",
    "SYNCS.ARRIVE": "`mbarrier.arrive`, `expect_tx` (`SYNCS.ARRIVE`)",
    "SYNCS.PHASECHK": "`mbarrier.try_wait` (`SYNCS.PHASECHK`)",
    "ARRIVES": "`cp.async.mbarrier.arrive` (`ARRIVES`)",
    "FENCE.VIEW.ASYNC": "`fence.proxy.async` (`FENCE.VIEW.ASYNC`)",
    "UTMACMDFLUSH": "`cp.async.bulk.commit_group` (`UTMACMDFLUSH`)",
    "DEPBAR.LE": "`cp.async.wait_group`, `cp.async.bulk.wait_group` (`DEPBAR.LE SB0`)",
    "CCTL.IVALL": "... of the latter, what waits for writes (`CCTL.IVALL`)",
    "LDGDEPBAR": "`cp.async.commit_group` (`LDGDEPBAR`)",
    "WARPGROUP.ARRIVE": "`wgmma.fence` (`WARPGROUP.ARRIVE`)",
    "WARPGROUP.DEPBAR": "`wgmma.wait_group` (`WARPGROUP.DEPBAR`)",
    "UCGABAR_ARV": "`barrier.cluster.arrive` (`UCGABAR_ARV`)",
    "UCGABAR_WAIT": "`barrier.cluster.wait` (`UCGABAR_WAIT`)",
    "BAR": "`__syncthreads()`, named barriers (`BAR`)",
}
#: Of programs: those of both that are deleted there.
PROGRAMS = {
    "BAR": "`__syncthreads()`, named barriers (`BAR`)",
    **{name: said for name, said in {**NAMES, **OF_HOPPER}.items() if name not in ("BAR", "DEPBAR.LE")},
    "MEMBAR": "`__threadfence()` (`MEMBAR`)",
}
PROGRAMS_FILE = Path(__file__).with_name("deleted_in_programs.json")
FOUND, NOT_RUN, NOT_NEEDED = "found", "not executed", "nothing it orders"
#: Threads of a launch in a program whose accesses are compared pair by pair, about so many.
MOST_THREADS = 1 << 12
#: Launches in the archive of those that were recorded on a chip, one of each kernel.
ARCHIVE = Path(__file__).parents[1] / "tests" / "validate" / "data" / "hopper_launches.tar.xz"
SAVED = ("beside_both", "boxes_half", "groups_unequal", "stretches_four", "fragments")


def page(file: Path = FILE, names: Mapping[str, str] = NAMES) -> str:
    """The table."""
    rows = json.loads(file.read_text("utf-8"))
    counts = Counter((row["opcode"], row["verdict"]) for row in rows)
    others = {row["verdict"] for row in rows} - {FOUND, NOT_RUN, NOT_NEEDED}
    missed = "it orders nothing" if file == FILE else "not found"
    heads = ["deleted", "of all", "found", "not executed in this launch", missed]
    heads += ["not judged"] if others else []
    lines = [f"| {' | '.join(heads)} |", f"|---{'|---:' * (len(heads) - 1)}|"]
    for opcode, name in names.items():
        each = [counts[opcode, verdict] for verdict in (FOUND, NOT_RUN, NOT_NEEDED)]
        each += [sum(counts[opcode, why] for why in others)] if others else []
        lines.append(f"| {name} | {sum(each)} | {' | '.join(map(str, each))} |")
    return "\n".join(lines) + "\n"


def of_hopper() -> str:
    """The table of kernels that only Hopper runs."""
    return page(HOPPER_FILE, OF_HOPPER)


def of_programs() -> str:
    """The table of public programs, and how many launches they are."""
    every = [one for one in json.loads(PROGRAMS_FILE.read_text("utf-8")) if one.get("deleted")]
    rows = [row for one in every for row in one["deleted"]]
    counts = Counter((row["opcode"], row["verdict"], row.get("reason", UNCHECKED)) for row in rows)
    heads = (
        "deleted",
        "of all",
        "found",
        "not executed in this launch",
        "not missed",
        "not found",
        "not judged",
    )
    lines = [f"| {' | '.join(heads)} |", f"|---{'|---:' * (len(heads) - 1)}|"]
    for opcode, name in PROGRAMS.items():
        of_all = sum(row["opcode"] == opcode for row in rows)
        each = [
            sum(row["opcode"] == opcode and row["verdict"] == one for row in rows) for one in (FOUND, NOT_RUN)
        ]
        unknown = counts[opcode, NOT_NEEDED, UNCHECKED]
        each += [sum(counts[opcode, NOT_NEEDED, why] for why in REASONS), unknown]
        if of_all:
            lines.append(f"| {name} | {of_all} | {' | '.join(map(str, each))} | {of_all - sum(each)} |")
    programs = len({(one["suite"], one["program"]) for one in every})
    clean = sum(not one["errors"] for one in every)
    said = f"{len(every)} launches of {programs} programs; {clean} of them as they are have no finding."
    return "\n".join([*lines, "", said]) + "\n"


def reasons_of_programs() -> str:
    """Why what was not found there is not missed."""
    every = json.loads(PROGRAMS_FILE.read_text("utf-8"))
    return _reasons([row for one in every for row in one.get("deleted", ())], PROGRAMS)


def reasons_of_hopper() -> str:
    """Why what was not found there is not missed."""
    return _reasons(json.loads(HOPPER_FILE.read_text("utf-8")), OF_HOPPER)


def _reasons(rows: list[dict[str, Any]], names: Mapping[str, str]) -> str:
    counts = Counter(
        (row["opcode"], row.get("reason", UNCHECKED)) for row in rows if row["verdict"] == NOT_NEEDED
    )
    lines = ["| deleted | not found | why it is not missed |", "|---|---:|---|"]
    for (opcode, why), count in sorted(counts.items(), key=lambda one: [*names].index(one[0][0])):
        lines.append(f"| {names[opcode]} | {count} | {why} |")
    return "\n".join(lines) + "\n"


def tried(
    job: Job, names: Collection[str], tools: tuple[str, ...], most: int | None = None
) -> list[dict[str, Any]]:
    """What becomes of each of a kernel's barriers, or of the first ones that are so many at `most`."""
    counts = trace_job(job).executed
    whole = sanitize_job(job, tools=tools).errors
    found = []
    before = {op.index + 1: op.form.opcode for op in job.loaded.executable.program.ops}
    for op in islice(ordering(job.loaded, tuple(names)), most):
        of_copies = op.form.opcode != "CCTL" or before[op.index] == "DEPBAR"
        if of_copies and (op.form.opcode != "DEPBAR" or "SB0" in op.text):
            opcode = next(name for name in names if op.form.name.startswith(name))
            says = verdict(job_without(job, op.address), int(counts[op.index]), tools, whole)
            row = {"opcode": opcode, "address": op.address, "verdict": says}
            if says == NOT_NEEDED and names is OF_HOPPER:
                row["reason"] = reason(job, op)
            elif says == NOT_NEEDED and names is PROGRAMS:
                row["reason"] = reason(job, op, some_blocks(job, MOST_THREADS // job.launch.threads))
            found.append(row)
    return found


def some_blocks(job: Job, most: int) -> np.ndarray:
    """So many blocks from the beginning, the middle and the end, but at least two."""
    blocks, most = job.launch.blocks, max(2, most)
    return np.unique(np.linspace(0, blocks - 1, min(blocks, most)).round().astype(np.int64))


def _key(one: Hazard) -> tuple[object, ...]:
    return one.tool, one.kind, tuple(access.instruction.address for access in one.accesses)


def verdict(changed: Job, times: int, tools: tuple[str, ...], whole: Sequence[Hazard]) -> str:
    """What becomes of a launch of changed machine code; times: that what is changed was executed. whole: the
    errors of the launch as it is.
    """
    known = set(map(_key, whole))
    try:
        found = sanitize_job(changed, tools=tools)
    except MemsimError as error:
        return str(error)
    if any(_key(one) not in known for one in found.errors):
        return FOUND
    if found.unjudged:
        return "; ".join(found.unjudged)
    return NOT_NEEDED if times else NOT_RUN


def hopper_jobs(folder: Path) -> Iterator[tuple[str, Job]]:
    """A product of matrices by wgmma and TMA, what the emulator's order is tested by, and saved launches."""
    from tests.order.test_shared_sync import BLOCKS, CLUSTERS, HEAD, NUMBERS
    from tests.simt.cuda import kernels_of

    m, n, k = 256, 256, 512
    maps = [TensorMap(ArrayArg((rows, k), "float16"), (128, 64), 128) for rows in (m, n)]
    gemm = load(ARCHIVE.with_name("hopper_gemm.cu"), ["-arch=sm_90a"])["hopper_gemm"]
    shared = 4 * 2 * 16384 + 1024
    yield "hopper_gemm", job_of(gemm, (n // 128, m // 128), 384, [*maps, ArrayArg((m, n)), n, k], shared)
    for kind, bodies in (("KERNEL", BLOCKS), ("CLUSTER", CLUSTERS)):
        kernels = kernels_of(HEAD + "\n".join(f"{kind}({name}, {body[1]})" for name, body in bodies.items()))
        for name in bodies:
            yield name, job_of(kernels[name], 2, 128, [np.zeros(1 << 17, np.int32), NUMBERS])
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    for name in SAVED:
        yield name, launched_job(read_launch(folder / name / "launch.json"), {})


def main(what: str) -> None:
    """Try all."""
    found = []
    with TemporaryDirectory() as folder:
        if what == "hopper":
            file, names, tools = HOPPER_FILE, OF_HOPPER, (RACE, SYNC, INIT)
            jobs = hopper_jobs(Path(folder))
        else:
            file, names, tools = FILE, NAMES, (RACE,)
            jobs = ((name, read_job(name, {})) for name in catalog())
        for name, job in jobs:
            rows = tried(job, names, tools)
            print(name, Counter(row["verdict"] for row in rows), flush=True)
            found += [{"kernel": name, **row} for row in rows]
    file.write_text("[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n", "utf-8")


PARTS = {
    "deleted barriers": page,
    "deleted in Hopper kernels": of_hopper,
    "deleted in programs": of_programs,
    "not missed": reasons_of_hopper,
    "not missed in programs": reasons_of_programs,
}

if __name__ == "__main__":
    main(*sys.argv[1:] or ("catalogue",))
