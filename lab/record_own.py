"""Records our own kernels on this machine's GPU: `python -m lab.record_own FOLDER`.

Every fourth kernel of tests/sass/kernels whose launch does not depend on the order of warps; with `--cubins
DIR` not compiled here, but read from DIR/NAME.cubin, NAME being the source file's. The recordings lie in
FOLDER/*/own, in the format of those that `memsim validate --all --live --record` makes of the catalogue. The
machine needs a GPU, CuPy and ncu.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

import memsim
from memsim.job import Job
from memsim.launch import Launch, dim3
from memsim.validate.device import free_path
from memsim.validate.live import measure

KERNELS = Path(__file__).resolve().parents[1] / "tests" / "sass" / "kernels"
OWN = "own"
EVERY = 4


def own_jobs(cubins: Path | None) -> list[Job]:
    """Those of launches.toml that come out the same on every run."""
    entries = tomllib.loads((KERNELS / "launches.toml").read_text("utf-8"))["kernel"]
    found = []
    for entry in [entry for entry in entries if entry.get("order") != "free"][::EVERY]:
        source = KERNELS / entry["file"]
        kernel = memsim.load(cubins / f"{source.stem}.cubin" if cubins else source)[entry["name"]]
        shape = Launch(dim3(entry["grid"], "grid"), dim3(entry["block"], "block"), entry["shared_bytes"])
        found.append(Job(kernel, shape, entry["args"]))
    return found


def main() -> None:
    """Measures, and writes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cubins", type=Path)
    given = parser.parse_args()
    launches = own_jobs(given.cubins)
    for recording in measure(launches):
        recording.save(free_path(given.folder / recording.device.slug / OWN, recording.name))
    print(f"recorded: {len(launches)} launches in {given.folder}/*/{OWN}")


if __name__ == "__main__":
    main()
