"""Which machine code a cubin has, whatever it says of sources."""

from __future__ import annotations

from hashlib import sha256

from memsim.sass.cubin import read_cubin


def code_of_cubin(cubin: bytes) -> str:
    """SHA-256 of the instructions of its one kernel."""
    (image,) = read_cubin(cubin).kernels.values()
    return sha256(image.code).hexdigest()
