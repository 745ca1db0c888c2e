"""A sketch by name: a function in a Python file, and values of its parameters (`layouts.py`, `transpose`,
`pad=3`).

The file is executed as by an import.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import inspect
import linecache
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from memsim.errors import MemsimError
from memsim.files import file_exists
from memsim.launch import Launch
from memsim.sketch.execute import trace_function
from memsim.sketch.place import line_of, user_mistakes
from memsim.trace.record import Recorder
from memsim.trace.trace import Trace, TraceSource


@dataclass(frozen=True)
class PythonFunction(TraceSource):
    """A function in a file, or a function object.

    file: relative to `folder`. name: None if the file has a single candidate. values: of parameters by name,
    as texts (`-D pad=3`) or objects. function: instead of a file.
    """

    folder: Path = Path()
    file: str = ""
    name: str | None = None
    values: Mapping[str, object] = field(default_factory=dict)
    function: Callable[..., object] | None = None

    def trace(
        self,
        launch: Launch,
        args: Sequence[object],
        blocks: NDArray[np.int64] | None,
        progress: Callable[[float], None] | None,
        recorder: Callable[[], Recorder] = Recorder,
    ) -> Trace:
        """The accesses of a launch, with the file under its display name.

        Raises:
            MemsimError: no such file, function or parameter, or an exception in the function.
        """
        function = self.function or self._load()
        try:
            known = list(inspect.signature(function).parameters)[1:]  # the first is the thread
        except (TypeError, ValueError):
            raise MemsimError(
                f"a {type(function).__name__} is not a kernel that memsim reads, nor a function in Python",
                hint="pass memsim.load(...)[name], or a function of the thread: docs/layouts.md",
            ) from None
        for name in self.values:
            if name not in known:
                hint = f"its parameters: {', '.join(known)}" if known else None
                raise MemsimError(
                    f"{getattr(function, '__name__', 'the function')} has no parameter {name}", hint=hint
                )
        values = {name: value_of(value) for name, value in self.values.items()}
        called = functools.partial(function, **values) if values else function
        names = {str((self.folder / self.file).absolute()): self.file} if self.file else {}
        given = [value_of(arg) for arg in args]
        return trace_function(called, launch, given, blocks, progress, names, recorder)

    def _load(self) -> Callable[..., object]:
        path = (self.folder / self.file).absolute()
        if not file_exists(path):
            raise MemsimError("there is no such file", file=self.file)
        module = _executed(path, self.file)
        found = {
            name: value
            for name, value in vars(module).items()
            if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
        }
        if self.name is not None and callable(vars(module).get(self.name)):
            function: Callable[..., object] = vars(module)[self.name]
            return function
        if self.name is None and len(found) == 1:
            return next(iter(found.values()))
        what = f"no function {self.name}" if self.name else f"{len(found)} functions"
        raise MemsimError(
            f"there {'is' if self.name else 'are'} {what} in it",
            file=self.file,
            hint=f"write {self.file}:NAME, with one of {', '.join(found)}" if found else None,
        )


def _executed(path: Path, shown: str) -> ModuleType:
    """The module in a file, which can import its neighbours, as in a script."""
    name = f"memsim_sketch_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    linecache.checkcache(str(path))
    sys.modules[name] = module  # dataclasses and pickle need it there
    _check_syntax(path, shown)
    sys.path.insert(0, str(path.parent))
    try:
        with user_mistakes({str(path): shown}):
            spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def _check_syntax(path: Path, shown: str) -> None:
    try:
        ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise MemsimError(
            getattr(error, "msg", None) or str(error),
            file=shown,
            line=line,
            column=getattr(error, "offset", None),
            source=line_of(str(path), line or 0) or None,
        ) from None


def value_of(text: object) -> object:
    """A parameter's value: a Python literal, or else the text itself."""
    if not isinstance(text, str):
        return text
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return text
