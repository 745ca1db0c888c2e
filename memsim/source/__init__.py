"""What CUDA source says that compiled code does not: names and C types of kernel parameters, shapes of shared
arrays, templates, launches.
"""

from __future__ import annotations

from memsim.source.declared import (
    ArrayShape,
    Declaration,
    array_shape,
    declarations,
    definition,
    parameter_names,
    parameter_types,
    template_constants,
    without_comments,
)
from memsim.source.expressions import ELEMENT_BYTES
from memsim.source.values import constants, value_of

__all__ = [
    "ELEMENT_BYTES",
    "ArrayShape",
    "Declaration",
    "array_shape",
    "constants",
    "declarations",
    "definition",
    "parameter_names",
    "parameter_types",
    "template_constants",
    "value_of",
    "without_comments",
]
