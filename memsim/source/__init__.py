"""What is read from CUDA source itself, and code compiled from it does not say.

In: the text of a source. Out: names and C types of kernels' parameters, shapes of shared arrays, templates,
launches. Left out on purpose: what code does.
"""

from __future__ import annotations

from memsim.source.declared import Shape, array_shape, is_template, parameter_names, parameter_types

__all__ = ["Shape", "array_shape", "is_template", "parameter_names", "parameter_types"]
