"""Runs a script to capture the launches that it makes.

The packages that can be captured are imported first, so that no launch is missed.
"""

from __future__ import annotations

import re
import runpy
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from memsim.captured.launched import Launched
from memsim.captured.session import PACKAGES, capture
from memsim.errors import MemsimError

# Words by which an exception, or the line that raised it, is about a GPU that is not there; and exceptions
# that are about the code.
_ABOUT_A_GPU = re.compile(r"cuda|nvidia|\bgpus?\b|\bdrivers?\b", re.IGNORECASE)
_MISTAKES = (AttributeError, NameError, TypeError, SyntaxError, ArithmeticError, LookupError)


def run_script(script: Path, arguments: Sequence[str], keep: Callable[[Launched], None], arch: str) -> None:
    """Run the script as `python script arguments...` would, and call `keep` with each launch.

    Raises:
        MemsimError: no such file; none of the packages is installed; the script fails, with its line.
    """
    if not script.is_file():
        raise MemsimError(f"there is no file {script}")
    if not [package for package in PACKAGES if _imported(package)]:
        raise MemsimError(
            f"none of {', '.join(PACKAGES)} is installed, so there is nothing to capture",
            file=str(script),
            hint=f"install what the script uses, such as {sys.executable} -m pip install triton",
        )
    before = sys.argv, sys.path
    sys.argv, sys.path = [str(script), *arguments], [str(script.parent.resolve()), *sys.path]
    try:
        with capture(arch, keep):
            runpy.run_path(str(script), run_name="__main__")
    except MemsimError:
        raise
    except SystemExit as ended:
        if ended.code not in (None, 0):
            raise MemsimError(f"the script exits with {ended.code}", file=str(script)) from None
    except Exception as error:
        raise _failed(script, error) from error
    finally:
        sys.argv, sys.path = before


def _imported(package: str) -> bool:
    """Import a package; whether it is installed."""
    with suppress(ImportError):
        import_module(package)
        return True
    return False


def _failed(script: Path, error: Exception) -> MemsimError:
    """The error for an exception in the script, at the innermost of its own lines."""
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).resolve() == script.resolve()
    ]
    return MemsimError(
        f"the script ends with {type(error).__name__}: {error}",
        file=str(script),
        line=frames[-1].lineno if frames else None,
        source=frames[-1].line if frames else None,
        hint=_advice(error, (frames[-1].line or "") if frames else ""),
    )


def _advice(error: Exception, line: str) -> str | None:
    """What to do about an exception at a line of the script; None if the exception says all there is."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"install it: {sys.executable} -m pip install {error.name}"
    if not isinstance(error, _MISTAKES) and _ABOUT_A_GPU.search(f"{error} {line}"):
        return "without a GPU, tensors must be on the CPU or on the device meta"
    return None
