"""Times `sgemm_tuned` and its variants on this machine's GPU: `python -m studies.tuning.record_speed`.

It writes recorded/<gpu>/bench.json, as `python -m studies.bench --record` does.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from studies.bench.measure import measure_speed
from studies.tuning.page import RECORDED, SIZES
from studies.tuning.variants import make_specs


def main() -> None:
    """All sizes, all variants, cuBLAS before and after."""
    with tempfile.TemporaryDirectory() as made:
        specs = make_specs(Path(made))
        recording = measure_speed(dict.fromkeys(SIZES, specs))
    print(f"recorded: {recording.save(RECORDED)}")


if __name__ == "__main__":
    main()
