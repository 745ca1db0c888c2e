"""Attention by two libraries that PyTorch's wheel has in it; no GPU is needed:

    memsim exec --record recorded -- python tests/benchmarks/attention.py

writes the launches that `python -m tests.benchmarks.stages recorded/*flash_fwd* recorded/*fmha*` analyzes.
"""

from __future__ import annotations

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

query, key, value = (torch.randn(1, 4, 512, 64, device="cuda", dtype=torch.float16) for _ in range(3))
for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION):
    with sdpa_kernel(backend):
        made = scaled_dot_product_attention(query, key, value, is_causal=True)
    print(backend.name, torch.__version__, float(made.float().abs().mean()))
