"""What tools/time_pairs.cu reads of a pair of kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memsim.api.kernel_file import KernelFile
from memsim.argument_types import ArrayArg
from memsim.job import Job
from memsim.launch import Launch
from studies.cures.pairs import PLAN, write_pair

TEXT = """
struct two { float *at; int n; };
extern "C" __global__ void k(const float *in, int *out, int n) { out[threadIdx.x % n] = in[0]; }
extern "C" __global__ void of(two one) { one.at[threadIdx.x] = one.n; }
"""


def test_a_pair_has_its_kernels_and_arguments(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(TEXT)
    args = [np.arange(3, dtype=np.float32), ArrayArg((4,), "i32", fill="ones"), 2]
    job = Job(KernelFile(tmp_path, "k.cu", "k"), Launch((1, 1, 1), (32, 1, 1), 16), args)
    write_pair(tmp_path / "pairs", "a|k", (job, job))
    lines = (tmp_path / "pairs" / PLAN).read_text().splitlines()
    assert lines[:2] == ["pair a_k", "a_k_0.cubin k 1 1 1 32 1 1 16 1024"]  # that the system takes
    assert lines[3:] == ["3", "array a_k_0.bin", "array a_k_1.bin", "value 02000000"]
    assert (tmp_path / "pairs" / "a_k_0.bin").read_bytes() == args[0].tobytes()
    assert (tmp_path / "pairs" / "a_k_1.bin").read_bytes() == np.ones(4, np.int32).tobytes()
    assert (tmp_path / "pairs" / "a_k_1.cubin").read_bytes()[:4] == b"\x7fELF"


def test_an_array_in_a_structure_is_not_timed(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(TEXT)
    job = Job(
        KernelFile(tmp_path, "k.cu", "of"),
        Launch((1, 1, 1), (32, 1, 1)),
        [[np.zeros(32, np.float32), np.int32(3)]],
    )
    with pytest.raises(ValueError, match="not timed"):
        write_pair(tmp_path / "pairs", "a", (job, job))
