"""Kernels of the catalogue on this machine's GPU, measured by Nsight Compute.

In: kernels with sizes. Out: a `Recording` of each launch; nothing is written.

The profiler runs the same launches a few times. The first run collects the source counters and all
counters, in several passes over each kernel. Then, for each way into shared memory that a kernel has,
one run collects the counters that have to be of one and the same pass, because warps that get in each
other's way do so differently in each.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from typing import Any

from memsim.errors import MemsimError
from memsim.kernels import Spec
from memsim.validate.device import Device, check_chip, this_device
from memsim.validate.profiler import REPORT_SUFFIX, Profiler, find_profiler, profile
from memsim.validate.recording import LaunchRecord, Recording, Result
from memsim.validate.report import Profile, read_report
from memsim.validate.sass import access_of

CODE = "the shipped PTX, loaded by CuPy's RawModule and compiled by the driver"
SEED = 0

_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared"
_GLOBAL = "pipe_lsu_mem_global_op"
ARBITRATION = "l1tex__data_bank_conflicts_type_arbitration.sum"

# Each way into shared memory, and the counters of one pass that tell conflicts from arbitration.
ONE_PASS = {
    ("shared load", "shared ldmatrix"): (f"{_WAVEFRONTS}_op_ld.sum", f"{_CONFLICTS}_op_ld.sum", ARBITRATION),
    ("shared store", "shared stmatrix"): (f"{_WAVEFRONTS}_op_st.sum", f"{_CONFLICTS}_op_st.sum", ARBITRATION),
    ("shared atomic",): (f"{_WAVEFRONTS}_op_atom.sum", f"{_CONFLICTS}_op_atom.sum", ARBITRATION),
}
EVERYTHING = (
    *dict.fromkeys(metric for metrics in ONE_PASS.values() for metric in metrics),
    f"{_CONFLICTS}_op_ldgsts.sum",  # with arbitration it takes two passes, which prove nothing
    *(f"l1tex__t_requests_{_GLOBAL}_{op}.sum" for op in ("ld", "st", "atom", "red")),
    *(f"l1tex__t_sectors_{_GLOBAL}_{op}.sum" for op in ("ld", "st", "atom", "red")),
    f"l1tex__t_set_accesses_{_GLOBAL}_ld.sum",
    # Not modelled; for whoever wants to find their rules.
    f"{_WAVEFRONTS}.sum",
    *(f"l1tex__t_output_wavefronts_{_GLOBAL}_{op}.sum" for op in ("ld", "st")),
    f"l1tex__t_sectors_{_GLOBAL}_ld_lookup_hit.sum",
    "gpu__time_duration.sum",
)
Launches = Sequence[tuple[Spec, Sequence[int]]]
Progress = Callable[[float], None] | None


def measure(launches: Launches, progress: Progress = None) -> list[Recording]:
    """Runs and measures kernels, each at a size; recordings in the same order, right or wrong.

    Raises:
        MemsimError: CuPy, driver, GPU, ncu, its reader or permission missing; a kernel that fails.
    """
    device, profiler = this_device(), find_profiler()
    check_chip(device)
    counter = _Counter(len(launches) * (1 + len(ONE_PASS)), progress)

    results, first = _run(profiler, launches, ("--section", "SourceCounters", *_asked(EVERYTHING)), counter)
    profiles = [[profile] for profile in first]
    for accesses, metrics in ONE_PASS.items():
        users = [i for i, profile in enumerate(first) if _accesses(profile) & set(accesses)]
        if users:
            _, more = _run(profiler, [launches[i] for i in users], _asked(metrics), counter)
            for i, profile in zip(users, more, strict=True):
                profiles[i].append(profile)

    date = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return [
        _recording(spec, size, device, profiler, date, result, measured)
        for (spec, size), result, measured in zip(launches, results, profiles, strict=True)
    ]


def _run(
    profiler: Profiler, launches: Launches, what: Sequence[str], counter: _Counter
) -> tuple[list[dict[str, Any]], list[Profile]]:
    """One run of the profiler over `launches`: what the target says of each, and what ncu measured."""
    with tempfile.TemporaryDirectory() as folder:
        plan, result, report = (Path(folder) / name for name in ("plan", "result", f"report{REPORT_SUFFIX}"))
        steps = [{"kernel": spec.name, "size": list(size), "seed": SEED} for spec, size in launches]
        plan.write_text(json.dumps(steps), "utf-8")
        command = [sys.executable, "-m", "memsim.validate.target", str(plan), str(result)]
        try:
            printed = profile(profiler, report, what, command, counter.step)
        except MemsimError:
            _raise_what_the_target_says(result)
            raise
        _raise_what_the_target_says(result)
        profiles = read_report(report)
        measured = [found.kernel for found in profiles]
        if measured != [spec.entry for spec, _ in launches]:
            raise MemsimError(
                f"ncu measured {', '.join(measured) or 'nothing'} where "
                f"{', '.join(spec.entry for spec, _ in launches)} ran: {printed.strip()[-300:]}"
            )
        return json.loads(result.read_text("utf-8"))["results"], profiles


def _raise_what_the_target_says(result: Path) -> None:
    """The program under ncu knows better than ncu why it ended."""
    told = json.loads(result.read_text("utf-8")) if result.is_file() else {}
    if "error" in told:
        raise MemsimError(told["error"], hint=told["hint"])


def _recording(
    spec: Spec,
    size: Sequence[int],
    device: Device,
    profiler: Profiler,
    date: str,
    result: dict[str, Any],
    profiles: Sequence[Profile],
) -> Recording:
    shape = spec.launch(size).launch
    return Recording(
        kernel=spec.name,
        device=device,
        ncu=profiler.version,
        date=date,
        code=CODE,
        sources={name: digest(text) for name, text in spec.kernel().sources.items()},
        ptx=digest(spec.ptx()),
        launch=LaunchRecord(
            size=spec.sizes(size),
            seed=SEED,
            entry=spec.entry,
            options=spec.options,
            grid=shape.grid,
            block=shape.block,
            shared_bytes=shape.shared_bytes,
        ),
        result=Result(*(result[name] for name in ("reference", "right", "largest_error"))),
        profiles=tuple(profiles),
    )


def digest(text: str) -> str:
    """SHA-256 of a text in UTF-8."""
    return sha256(text.encode()).hexdigest()


def _asked(metrics: Sequence[str]) -> tuple[str, str]:
    return "--metrics", ",".join(metrics)


def _accesses(profile: Profile) -> set[str | None]:
    return {access_of(row.sass) for row in profile.rows}


class _Counter:
    """Turns measured launches into a share of the whole."""

    def __init__(self, total: int, progress: Progress) -> None:
        self.total, self.progress, self.done = total, progress, 0

    def step(self) -> None:
        """Another launch has been measured."""
        self.done += 1
        if self.progress is not None:
            self.progress(min(1.0, self.done / self.total))
