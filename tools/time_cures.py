"""Are the cures that `memsim suggest` ranks first faster on a GPU?

    python tools/time_cures.py prepare LAUNCHES.py FOLDER
    python tools/time_cures.py measure FOLDER OUT.json

LAUNCHES.py defines `launches()`, which yields for each launch whose it is, its name and its `Job`. `prepare`
needs no GPU: it writes both kernels as cubins, their arguments, and what memsim estimates of them, before
anything is measured. `measure` needs a GPU, CuPy and numpy, and nothing of memsim.

Both run once on the same fresh arguments, and all bytes of all arrays are compared. Then they are timed in
turn: warm, twenty launches of a CUDA graph at once; cold, one launch after 256 MiB were written, which fill
the L2 cache. Medians of all rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

PLAN = "plan.json"
SECONDS = 200  # for the preparation of a launch
STATIC_SHARED_BYTES = 49_152  # more requires opting in
IN_A_GRAPH, ROUNDS, COLD_BYTES = 20, 15, 256 << 20
Record = dict[str, Any]


def main() -> None:
    """Prepares or measures."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    steps = reader.add_subparsers(dest="step", required=True)
    preparing, measuring = steps.add_parser("prepare"), steps.add_parser("measure")
    preparing.add_argument("launches", type=Path)
    preparing.add_argument("folder", type=Path)
    preparing.add_argument("--only", default="", help="launches whose name contains this")
    measuring.add_argument("folder", type=Path)
    measuring.add_argument("out", type=Path)
    asked = reader.parse_args()
    if asked.step == "measure":
        asked.out.write_text(json.dumps(measured(asked.folder), indent=1) + "\n", "utf-8")
        return
    asked.folder.mkdir(parents=True, exist_ok=True)
    for of, name, job in runpy.run_path(str(asked.launches))["launches"]():
        place = (
            asked.folder / f"{''.join(letter if letter.isalnum() else '_' for letter in f'{of} {name}')}.json"
        )
        if asked.only in name and not place.exists():
            _in_a_process(of, name, job, place)
    pairs = [
        json.loads(path.read_text("utf-8"))
        for path in sorted(asked.folder.glob("*.json"))
        if path.name != PLAN
    ]
    plan = json.dumps([pair for pair in pairs if "args" in pair], indent=1)
    (asked.folder / PLAN).write_text(plan, "utf-8")


def _in_a_process(of: str, name: str, job: Any, place: Path) -> None:
    """Prepares a pair in a process of its own: its memory goes with it, and an endless one ends."""
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        try:
            found = prepared(job, place.with_suffix(""))
        except Exception as error:  # a launch that cannot be prepared leaves the others
            found = {"failed": f"{type(error).__name__}: {error}"}
        place.write_text(json.dumps({"of": of, "kernel": name} | found), "utf-8")
        print(name, {key: found.get(key) for key in ("failed", "change", "pays", "estimated")}, flush=True)
        os._exit(0)
    os.waitpid(child, 0)


def prepared(job: Any, stem: Path) -> Record:
    """What is written of a launch and of the change that is ranked first; cubins beside."""
    from memsim.argument_types import ArrayArg
    from memsim.argument_types.argument import argument_of
    from memsim.suggest.prove import replay_job
    from memsim.suggest.suggestions import suggest
    from memsim.views.suggest.terminal import name_of

    analysis = replay_job(job)
    found = suggest(analysis, job)
    taken = found.taken
    if taken is None:
        return {"none": found.unproven}
    loaded = [one.loaded for one in (job, taken.job)]
    cubins = []
    for place, kernel in enumerate(loaded):
        cubins.append(f"{stem.name}_{place}.cubin")
        stem.with_name(cubins[-1]).write_bytes(kernel.machine.module.content)
    kept: dict[str, np.ndarray] = {}
    args: list[Record] = []
    for value, parameter in zip(job.values, loaded[0].parameters, strict=True):
        if isinstance(value, ArrayArg):
            shape = [int(extent) for extent in value.shape]
            args.append({"dtype": value.dtype, "shape": shape, "fill": value.fill, "seed": value.seed})
        elif isinstance(value, np.ndarray):
            kept[f"a{len(args)}"] = value
            args.append({"kept": f"a{len(args)}"})
        else:
            args.append({"bytes": argument_of(value).encode(parameter, _Nowhere(), 0).hex()})
    np.savez_compressed(stem.with_suffix(".npz"), **kept)  # type: ignore[arg-type]
    times = [None if one.estimate is None else one.estimate.seconds for one in (analysis, taken.analysis)]
    return {
        "change": name_of(taken),
        "pays": found.pays,
        "estimated": times,
        "bound": [analysis.bound.cycles, taken.analysis.bound.cycles],
        "sectors": [analysis.sectors, taken.analysis.sectors],
        "wavefronts": [analysis.wavefronts, taken.analysis.wavefronts],
        "cubins": cubins,
        "names": [kernel.name for kernel in loaded],
        "launches": [
            {"grid": [*one.launch.grid], "block": [*one.launch.block], "shared": one.launch.shared_bytes}
            for one in (job, taken.job)
        ],
        "static": [int(kernel.machine.image.static_shared) for kernel in loaded],
        "npz": stem.with_suffix(".npz").name,
        "args": args,
    }


class _Nowhere:
    """For arguments that refer to nothing."""

    def address(self) -> int:
        raise ValueError("an array in a structure is not timed")

    texture = tensor_map = address


def measured(folder: Path) -> Record:
    """The times of all pairs on this machine's GPU."""
    import cupy  # type: ignore[import-not-found,unused-ignore]

    properties = cupy.cuda.runtime.getDeviceProperties(0)
    pairs = []
    for pair in json.loads((folder / PLAN).read_text("utf-8")):
        kept = {key: pair[key] for key in ("of", "kernel", "change", "pays", "estimated", "bound")}
        try:
            told = _timed(cupy, folder, pair)
        except Exception as error:  # one that fails leaves the others
            told = {"failed": f"{type(error).__name__}: {error}"}
            if "illegal" in str(error) or "unspecified" in str(error):
                pairs.append(kept | told)
                break  # nothing works after it
        pairs.append(kept | told)
        print(pair["kernel"], told, flush=True)
    cuda = cupy.cuda.runtime.driverGetVersion()
    return {"gpu": properties["name"].decode(), "cuda": cuda, "pairs": pairs}


def _timed(cupy: Any, folder: Path, pair: Record) -> Record:
    """Microseconds before and after, warm and cold, and whether the results are the same."""
    results, launching = [], []
    for place in range(2):
        function = cupy.RawModule(path=str(folder / pair["cubins"][place])).get_function(pair["names"][place])
        launch = pair["launches"][place]
        if launch["shared"] + pair["static"][place] > STATIC_SHARED_BYTES:
            function.max_dynamic_shared_size_bytes = launch["shared"]
        arrays = list(_arrays(folder, pair))
        on_device = [None if array is None else cupy.asarray(array) for array in arrays]
        parameters = tuple(
            np.frombuffer(bytes.fromhex(arg["bytes"]), f"V{len(arg['bytes']) // 2}")
            if array is None
            else array
            for arg, array in zip(pair["args"], on_device, strict=True)
        )

        def run(function: Any = function, launch: Record = launch, parameters: Any = parameters) -> None:
            shape = tuple(launch["grid"]), tuple(launch["block"])
            function(*shape, parameters, shared_mem=launch["shared"])

        run()
        cupy.cuda.Device().synchronize()
        results.append([None if array is None else array.get().tobytes() for array in on_device])
        launching.append(run)
    warm: list[list[float]] = [[], []]
    cold: list[list[float]] = [[], []]
    stream, other = cupy.cuda.Stream(non_blocking=True), cupy.empty(COLD_BYTES, cupy.uint8)
    graphs = []
    with stream:
        for run in launching:
            stream.begin_capture()
            for _ in range(IN_A_GRAPH):
                run()
            graphs.append(stream.end_capture())
        for turn in range(ROUNDS + 2):
            for place, graph in enumerate(graphs):
                graph.launch(stream)
                warm[place].append(
                    _between(cupy, stream, lambda graph=graph: graph.launch(stream)) / IN_A_GRAPH
                )
                other.fill(turn)
                cold[place].append(_between(cupy, stream, launching[place]))
    times = {name: [median(one[2:]) for one in both] for name, both in (("warm", warm), ("cold", cold))}
    return {**times, "same": results[0] == results[1]}


def _between(cupy: Any, stream: Any, work: Any) -> float:
    """Microseconds of some work on a stream."""
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    start.record(stream)
    work()
    end.record(stream)
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, end)) * 1000


def _arrays(folder: Path, pair: Record) -> Iterator[np.ndarray | None]:
    """The arrays of a launch, None for other arguments."""
    kept = np.load(folder / pair["npz"])
    for arg in pair["args"]:
        if "kept" in arg:
            yield kept[arg["kept"]]
        elif "shape" in arg:
            draw = np.random.default_rng(arg["seed"])
            kind = np.dtype(arg["dtype"])
            if arg["fill"] != "random":
                made = {"zeros": np.zeros, "ones": np.ones}[arg["fill"]](arg["shape"], kind)
            elif kind.kind == "f":
                made = draw.random(arg["shape"], np.float32).astype(kind)
            else:
                made = draw.integers(0, 100, arg["shape"]).astype(kind)
            yield made
        else:
            yield None


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    main()
