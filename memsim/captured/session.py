"""`memsim.capture`: captures the launches of every supported package that has been imported.

Each package's own `capture_launches` replaces some of its attributes for as long as a capture lasts. A script
is run to capture the launches that it makes: the packages are imported first, so that no launch is missed.
"""

from __future__ import annotations

import re
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from inspect import getattr_static
from pathlib import Path

from memsim.arch import get_arch, plain_name
from memsim.captured.launched import Launched
from memsim.errors import MemsimError

#: Packages whose launches can be captured, and the modules that do so.
PACKAGES = {
    "triton": "memsim.captured.triton",
    "warp": "memsim.captured.warp",
    "cutlass": "memsim.captured.cute",
}


@contextmanager
def replaced_attributes(*changes: tuple[object, Mapping[str, object]]) -> Iterator[None]:
    """Within the context, each of these modules, classes and objects has these attributes."""
    before = [(owner, name, getattr_static(owner, name)) for owner, names in changes for name in names]
    try:
        for owner, attributes in changes:
            for name, value in attributes.items():
                setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


@contextmanager
def capture(arch: str = "sm_90", keep: Callable[[Launched], None] | None = None) -> Iterator[list[Launched]]:
    """Captures launches of Triton, Warp and CuTe DSL in the block, with or without a GPU.

    Without a GPU only Warp, which runs on the CPU, executes anything: kernels of the others read memory that
    no kernel has written. Arrays are copied when a launch is made.

    Args:
        arch: the chip to compile for.
        keep: called with each launch instead of adding it to the list.

    Raises:
        MemsimError: none of the packages has been imported.
    """
    chip = get_arch(plain_name(arch)).name
    found: list[Launched] = []
    here = [module for package, module in PACKAGES.items() if package in sys.modules]
    if not here:
        raise MemsimError(
            f"none of {', '.join(PACKAGES)} has been imported: there is nothing to capture",
            hint="import it before `with memsim.capture()`; other packages run under `memsim exec`",
        )
    with ExitStack() as stack:
        for module in here:
            stack.enter_context(import_module(module).capture_launches(keep or found.append, chip))
        yield found


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
