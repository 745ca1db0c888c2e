"""CuPy's raw kernels, compiled as CuPy would.

Their launches are not captured: a raw kernel cannot be called without a GPU.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from memsim.api import loading
from memsim.errors import MemsimError
from memsim.kernel import Kernel

#: Options that CuPy adds to the user's (`cupy/cuda/compiler.py`).
OWN_OPTIONS = ("-ftz=true", "--device-as-default-execution-space")
_CHIP = re.compile(r"-{1,2}(gpu-architecture|arch)\b.*")


def is_raw(kernel: Any) -> bool:
    """Is it a `RawKernel` or a `RawModule`?"""
    return (
        type(kernel).__module__.startswith("cupy") and hasattr(kernel, "code") and hasattr(kernel, "options")
    )


def check_is_raw(kernel: Any) -> None:
    """Raise a MemsimError for what CuPy generates code of itself: its source is not at hand."""
    if type(kernel).__module__.partition(".")[0] in ("cupy", "cupyx") and not is_raw(kernel):
        raise MemsimError(
            f"of CuPy's kernels memsim reads RawKernel and RawModule, not {type(kernel).__name__}",
            hint="pass the code that CuPy makes of it, as a cubin or PTX, to memsim.load",
        )


def kernel_of(raw: Any, name: str | None, arch: str) -> Kernel:
    """The kernel `name` of CuPy's `raw`; None for a `RawKernel` or a module's only kernel.

    Raises:
        MemsimError: no such kernel, several, or code that does not compile.
    """
    options = [option for option in raw.options if not _CHIP.match(option)]
    if raw.code is None:
        raise MemsimError("this RawModule was loaded from a file", hint="pass that file to memsim.load")
    wanted = name or getattr(raw, "name", None)
    called = f"{(wanted or 'kernel').partition('<')[0]}.cu"
    includes = [f"-I{folder}" for folder in _headers()]
    module = loading.from_text(raw.code, [*OWN_OPTIONS, *options, *includes], arch, called)
    choice = tuple(getattr(raw, "name_expressions", None) or module)
    if wanted is None and len(choice) == 1:
        wanted = choice[0]
    if wanted is None:
        raise MemsimError("the module has several kernels", hint=f"choose one by name: {', '.join(choice)}")
    return module[wanted]


def _headers() -> list[Path]:
    """CuPy's own headers."""
    file = getattr(sys.modules.get("cupy"), "__file__", None)
    return [Path(file).parent / "_core" / "include"] if file else []
