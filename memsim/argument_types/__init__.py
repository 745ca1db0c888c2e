"""What a kernel's argument can be: numbers, arrays, structs, tables of pointers, tensor maps, textures.

Every module here is imported, so that a kind of argument is known by being in a file of this folder.
"""

from importlib import import_module as _import_module
from pkgutil import iter_modules as _iter_modules

from memsim.argument_types.array_arg import DTYPES as DTYPES
from memsim.argument_types.array_arg import FILLS as FILLS
from memsim.argument_types.array_arg import ArrayArg as ArrayArg
from memsim.argument_types.array_arg import c_strides as c_strides
from memsim.argument_types.array_arg import dtype_of as dtype_of
from memsim.argument_types.array_tables import ArrayTable as ArrayTable
from memsim.argument_types.array_tables import Pointers as Pointers
from memsim.argument_types.array_tables import TensorMap as TensorMap
from memsim.argument_types.array_tables import TensorMaps as TensorMaps
from memsim.argument_types.given_values import StructFields as StructFields
from memsim.argument_types.textures import Texture as Texture
from memsim.argument_types.textures import Texture1D as Texture1D

for _module in _iter_modules(__path__):
    _import_module(f"{__name__}.{_module.name}")
