"""One launch of irregular requests on a cluster of this machine: `python -m tests.benchmarks.on_cluster N`
analyzes one of N requests (1,000,000,000) as a user does, by `memsim analyze --scheduler`, and prints how
long it took, and the most memory that a worker and the command had.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.benchmarks.irregular import peak

SOURCE = Path(__file__).with_name("kernels") / "walk.cu"
WORDS, BLOCK, WARPS = 1 << 16, 256, 1 << 14


def processor_time() -> float:
    return time.process_time()


def main() -> None:
    import distributed

    requests, workers = [*map(int, sys.argv[1:]), *(1_000_000_000, 2)[len(sys.argv) - 1 :]]
    steps = -(-requests // WARPS)
    threads = WARPS * 32
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "next.npy"
        np.save(table, np.random.default_rng(0).permutation(WORDS).astype(np.int32))
        arguments = f"@{table}", f"i32[{threads}]", str(WORDS - 1), str(steps)
        launch = ["--grid", str(threads // BLOCK), "--block", str(BLOCK)]
        launch += [word for argument in arguments for word in ("--arg", argument)]
        with (
            distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=":0", protocol="tcp"
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            before = sum(client.run(processor_time).values())
            start = time.monotonic()
            command = [
                sys.executable,
                "-m",
                "memsim",
                "analyze",
                str(SOURCE),
                *launch,
                "--no-cache",
                "--json",
            ]
            command += ["--max-steps", str(10 * steps + 100), "--scheduler", cluster.scheduler_address]
            found = json.loads(subprocess.check_output(command))
            wall = time.monotonic() - start
            seconds, memory = sum(client.run(processor_time).values()) - before, client.run(peak)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    walked = next(site for site in found["sites"] if site["array"] == "next")
    assert walked["requests"] == WARPS * steps
    print(
        f"{walked['requests']:,} requests, {walked['sectors']:,} sectors: {wall:.0f} s, {seconds:.0f} s"
        f" of CPU in {workers} workers, each at most {max(memory.values())} MiB; the command at most"
        f" {used.ru_maxrss >> 10} MiB"
    )


if __name__ == "__main__":
    main()
