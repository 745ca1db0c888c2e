"""Does the estimate of time choose well? The tiles of `sgemm` at 35 sizes, and the configurations of ten
kernels in Triton: what `memsim.time` would pick, beside what is fastest on a GPU.

`python -m studies.choices.estimate` writes estimates.json, `python -m studies.choices.record` measures.
"""

from __future__ import annotations

FOLDER = "choices"  # of the recordings, below that of the GPU
