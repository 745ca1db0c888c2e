"""What `memsim exec` and `memsim.device` do in a Python program: CuPy, whose modules have CUDA's static
runtime in them, calls memsim's runtime instead, and PyTorch finds what its compiler needs.

CuPy's modules call its module of the runtime by the functions that Cython exports: a capsule for each in
`__pyx_capi__`, from where the others import them. Those that `native/cupy.c` has, with the same types, are
replaced when the module is loaded. Python finds this file by its path, without memsim; what it would find
without it is executed, too.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

#: CuPy's sorting, by kernels of Thrust that nvcc has compiled.
SORTING = "cupy.cuda.thrust"
SKIPPED = "int __pyx_skip_dispatch"
OPTIONAL = "struct __pyx_opt_args_13cupy_backends_4cuda_3api_7runtime_{} *__pyx_optional_args"
TYPES: dict[str, type] = {
    "PyObject *": ctypes.py_object,
    "int": ctypes.c_int,
    "unsigned int": ctypes.c_uint,
    "intptr_t": ctypes.c_ssize_t,
    "size_t": ctypes.c_size_t,
    "float": ctypes.c_float,
}


class RuntimeFunction(ctypes.Structure):
    """A function of `native/cupy.c`."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("returned", ctypes.c_char_p),
        ("types", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("has_optional", ctypes.c_int),
    ]

    def signature(self) -> str:
        """The function's type, as Cython writes it."""
        returned, types = self.returned.decode(), [one for one in self.types.decode().split(", ") if one]
        if not returned:
            returned = types.pop(0) + " "
        if types != ["void"]:
            types += [SKIPPED, *[OPTIONAL.format(self.name.decode())] * self.has_optional]
        return f"{returned}({', '.join(types)})"

    def from_python(self) -> Callable[..., object]:
        """The function for Python's own calls; an argument that may be left out is."""
        returned, _, types = self.signature()[:-1].partition("(")
        form = [TYPES[one] for one in types.partition(SKIPPED)[0].removesuffix(", ").split(", ") if one]
        skipped = (0, None)[: 1 + self.has_optional]
        kinds = (ctypes.c_int, ctypes.c_void_p)[: len(skipped)]
        made = ctypes.PYFUNCTYPE(TYPES[returned.strip()], *form, *kinds)(self.address)
        return lambda *arguments, **_: made(*arguments[: len(form)], *skipped)


class ModuleFinder:
    """Finds modules as Python does, and changes some of them when they are loaded."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As any finder of Python's.

        Raises:
            ImportError: a module that CuPy can do without, and tells who needs it.
        """
        if name == SORTING:
            raise ImportError(f"{name} has the static runtime in it, whose kernels memsim does not see")
        change = CHANGES.get(name)
        spec = None if change is None else PathFinder.find_spec(name, path, target)
        loader: Any = spec and spec.loader
        if change is not None and loader is not None:
            execute = loader.exec_module

            def then_change(module: ModuleType) -> None:
                execute(module)
                change(module)

            loader.exec_module = then_change
        return spec


def without_prebuilt(module: ModuleType) -> None:
    """CuPy compiles its kernels, instead of calling those of CUB that are in it with the static runtime."""
    module.set_routine_accelerators([])


def replace_functions(module: ModuleType) -> None:
    """CuPy's module calls memsim's runtime of the same release of CUDA, from Python and from its others."""
    exported: dict[str, object] = module.__pyx_capi__
    library = ctypes.PyDLL(f"libcudart.so.{module.runtimeGetVersion() // 1000}")
    raises = ctypes.c_void_p.in_dll(library, "memsim_cupy_raise")
    raises.value = address_of(exported["check_status"], name_of(exported["check_status"]))
    for function in iter_functions(library):
        name = function.name.decode()
        signature = name_of(exported[name]) if name in exported else None
        if signature is not None and ctypes.string_at(signature).decode() == function.signature():
            exported[name] = new_capsule(function.address, signature, None)
            if function.types != b"void":
                setattr(module, name, function.from_python())


def load_builtins(module: Any) -> None:
    """What NVRTC opens by its name alone: PyTorch loads it from NVIDIA's packages, but stops where these have
    a cuBLAS that does not go with memsim's.
    """
    for path in Path(module.__file__).parents[1].glob("nvidia/*/lib/libnvrtc-builtins.so.*[0-9]"):
        ctypes.CDLL(str(path))


def iter_functions(library: ctypes.CDLL) -> Iterator[RuntimeFunction]:
    """The table at the end of `native/cupy.c`."""
    table = ctypes.cast(library.memsim_cupy_functions, ctypes.POINTER(RuntimeFunction))
    for index in count():
        if not table[index].name:
            return
        yield table[index]


def python_function(name: str, returned: type, *types: type) -> Callable[..., Any]:
    """A function of Python's C interface."""
    return ctypes.PYFUNCTYPE(returned, *types)((name, ctypes.pythonapi))


address_of = python_function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
name_of = python_function("PyCapsule_GetName", ctypes.c_void_p, ctypes.py_object)
new_capsule = python_function("PyCapsule_New", ctypes.py_object, *[ctypes.c_void_p] * 3)


def next_of_this_name() -> None:
    """Executes the `sitecustomize` that Python would find without this one."""
    here = Path(__file__).parent
    others = [folder for folder in sys.path if Path(folder) != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


#: What is done with a module when it has been loaded.
CHANGES = {
    "cupy_backends.cuda.api.runtime": replace_functions,
    "cupy._core._accelerator": without_prebuilt,
    "torch": load_builtins,
}

sys.meta_path.insert(0, ModuleFinder)
if __name__ == "sitecustomize":
    next_of_this_name()
