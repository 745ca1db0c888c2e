"""Does the estimate of time choose well? The tiles of `sgemm` at 35 sizes, and the configurations of ten
kernels in Triton: what `memsim.time` would pick, beside what is fastest on a GPU.

estimates.json was written before anything was measured, and stays. `python -m studies.choices.record`
measures, `python -m studies.choices.estimate` writes estimates_since.json, what the model says since then.
"""

from __future__ import annotations

FOLDER = "choices"  # of the recordings, below that of the GPU
