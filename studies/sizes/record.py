"""Times `sgemm` at every size on this machine's GPU: `python -m studies.sizes.record`.

It writes traces/<gpu>/sizes/bench.json, as `python -m studies.bench --record` does.
"""

from __future__ import annotations

from memsim.data import data_folder
from studies.bench.measure import measure_speed
from studies.dispatch import dispatchers
from studies.sizes import DISPATCHER, FOLDER, HELD_OUT, SEEN, SIZES


def main() -> None:
    """All sizes, cuBLAS before and after."""
    recording = measure_speed({size: [dispatchers()[DISPATCHER]] for size in (*SIZES, *SEEN, *HELD_OUT)})
    print(f"recorded: {recording.save(data_folder('traces'), FOLDER)}")


if __name__ == "__main__":
    main()
