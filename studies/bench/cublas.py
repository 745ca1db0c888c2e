"""cuBLAS's own SGEMM of row-major float32 matrices, as CuPy finds it, without TF32."""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.errors import MemsimError


class CuBlas:
    """cuBLAS on the current GPU. `version` is as NVIDIA writes it: 13.0.2."""

    def __init__(self, cupy: Any) -> None:
        """Finds the library.

        Raises:
            MemsimError: it cannot be loaded, or does not start.
        """
        try:
            import cupy.cublas as gemms  # type: ignore[import-not-found,unused-ignore]
            from cupy.cuda import cublas  # type: ignore[import-not-found,unused-ignore]
        except ImportError as error:
            problem = " ".join(str(error).split())
            raise MemsimError(
                f"cuBLAS cannot be loaded: {problem}",
                hint="it comes with the CUDA toolkit, or by pip install nvidia-cublas-cu12 "
                "(nvidia-cublas for CUDA 13)",
            ) from None
        self._cupy, self._gemm, self._error = cupy, gemms.gemm, cublas.CUBLASError
        try:
            handle = cupy.cuda.device.get_cublas_handle()
            cublas.setMathMode(handle, cublas.CUBLAS_DEFAULT_MATH)  # float32 with no TF32
            number = cublas.getVersion(handle)
        except self._error as error:
            raise self._refused(error) from None
        self.version = f"{number // 10_000}.{number // 100 % 100}.{number % 100}"

    def product(self, a: Any, b: Any, out: Any) -> None:
        """`out` = `a` times `b`; does not wait for it.

        Raises:
            MemsimError: cuBLAS refuses.
        """
        try:
            self._gemm("N", "N", a, b, out=out)
        except self._error as error:
            raise self._refused(error) from None

    def check_precision(self) -> None:
        """That products are float32's and not TF32's, whatever the environment says.

        A matrix times the identity is the matrix itself; TF32 would keep 11 of the 24 bits of each element.

        Raises:
            MemsimError: they are not.
        """
        values = np.random.default_rng(0).uniform(-1.0, 1.0, (256, 256)).astype(np.float32)
        a, identity = self._cupy.asarray(values), self._cupy.asarray(np.eye(256, dtype=np.float32))
        out = self._cupy.empty_like(a)
        self.product(a, identity, out)
        if not bool((out == a).all()):
            raise MemsimError(
                "cuBLAS does not keep the bits of float32 here; its speed with TF32 is not comparable",
                hint="is NVIDIA_TF32_OVERRIDE set in the environment?",
            )

    @staticmethod
    def _refused(error: Exception) -> MemsimError:
        return MemsimError(f"cuBLAS does not run on this GPU: {error}")
