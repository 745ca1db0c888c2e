"""What a kernel's argument can be: numbers, arrays, structs, tables of pointers, tensor maps, textures."""

from memsim.argument_types.array_arg import DTYPES as DTYPES
from memsim.argument_types.array_arg import FILLS as FILLS
from memsim.argument_types.array_arg import ArrayArg as ArrayArg
from memsim.argument_types.array_arg import c_strides as c_strides
from memsim.argument_types.array_arg import dtype_of as dtype_of
from memsim.argument_types.given_values import StructFields as StructFields
from memsim.argument_types.pointer_tables import ArrayTable as ArrayTable
from memsim.argument_types.pointer_tables import Pointers as Pointers
from memsim.argument_types.tensor_maps import TensorMap as TensorMap
from memsim.argument_types.tensor_maps import TensorMaps as TensorMaps
from memsim.argument_types.textures import Texture as Texture
from memsim.argument_types.textures import Texture1D as Texture1D
