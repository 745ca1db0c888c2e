"""Times `sgemm_tuned` and its variants on this machine's GPU: `python tools/record_tuning.py`.

In: docs/tuning/variants.py. Out: docs/tuning/recorded/<gpu>/bench.json, as `memsim bench --record` writes.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from docs.tuning.page import RECORDED, SIZES
from docs.tuning.variants import make_specs
from memsim.validate.bench.measure import measure_speed


def main() -> None:
    """All sizes, all variants, cuBLAS before and after."""
    with tempfile.TemporaryDirectory() as made:
        specs = make_specs(Path(made))
        recording = measure_speed(dict.fromkeys(SIZES, specs))
    print(f"recorded: {recording.save(RECORDED)}")


if __name__ == "__main__":
    main()
