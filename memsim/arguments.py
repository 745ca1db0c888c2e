"""Parses arguments given as text, by `--arg` or in a configuration, according to the kernel's parameters.

The results are numbers, `ArrayArg`s, arrays from `.npy` files, textures, and structs by their parts.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np

from memsim.argument_types import FILLS, ArrayArg
from memsim.argument_types.argument import KINDS, Argument, ArgumentPlaces, Parameter, argument_of
from memsim.argument_types.array_arg import described_array, dtype_of, element_type, type_of_text
from memsim.argument_types.given_values import NULL, check_parts
from memsim.argument_types.launch_arguments import accessors_of
from memsim.errors import MemsimError
from memsim.files import read_bytes
from memsim.npy import read_array
from memsim.source.kernels import SourceParameter

Part: TypeAlias = np.generic | np.ndarray | ArrayArg
Value: TypeAlias = int | float | bytes | np.ndarray | Argument | tuple[Part, ...] | None

BOOLS = {"true": 1, "false": 0}
NUMBERS = re.compile(r"(?P<dtype>\w+)\((?P<values>[^()]*)\)")
BETWEEN_PARTS = re.compile(r"\+(?![^()]*\))")  # no + inside parentheses, as in f32(1e+5)
EXAMPLES = (
    "examples: 1024, 1.0, 'f32[1024,1024]', 'f32[1024,1024]=zeros', 'i32[64]=iota', @matrix.npy, "
    "a struct 'f32(1,2)+i32(3)', one with a pointer in it 'f32[1024]+i32(3)', "
    "a texture 'tex2d(f32[256,256],filter=linear)', a tensor map 'tensormap(f32[256,256],box=64x64)'"
)


def read_arguments(
    texts: Sequence[str | Value],
    parameters: Mapping[str, Parameter],
    folder: Path = Path(),
    where: str = "--arg",
    types: Sequence[str] = (),
    kernel: str = "",
) -> list[Value]:
    """One value for each parameter of the kernel.

    texts: in the kernel's order; values that are not text are returned as they are. parameters: by name, in
    the same order. folder: that names of `.npy` files are relative to. where: the source of the texts, in
    errors. types: of the parameters in C, "" where unknown; for errors. kernel: its mangled name, which tells
    whether it takes accessors of PyTorch.

    Raises:
        MemsimError: too few or too many, or one that its parameter cannot take.
    """
    if len(texts) != len(parameters):
        takes = ", ".join(
            str(SourceParameter(declared, name)) if declared else f"{name}: {_type(parameter)}"
            for (name, parameter), declared in zip_longest(parameters.items(), types)
        )
        raise MemsimError(
            f"the kernel takes {len(parameters)} arguments ({takes}), but {where} has {len(texts)}",
            hint=f"one for each, in the kernel's order; {EXAMPLES}",
        )
    try:
        return [
            _read(text, folder, *named, bool(accessors_of(kernel)))
            for text, named in zip(texts, parameters.items(), strict=True)
        ]
    except MemsimError as error:
        error.file = where
        raise


# Bytes of an element and whether it is a float, of the types in C that say both; arrays of vectors are given
# as arrays of what they are made of, or of smaller numbers: `int4 *` is also how 8 halves are loaded at once.
ELEMENTS = {
    **dict.fromkeys(("float", "float2", "float3", "float4"), ("f", 4)),
    **dict.fromkeys(("double", "double2"), ("f", 8)),
    **dict.fromkeys(("half", "__half", "half2", "__half2"), ("f", 2)),
    **dict.fromkeys(("int", "unsigned", "unsigned int", "int32_t", "uint32_t", "uint"), ("i", 4)),
    **dict.fromkeys(("int2", "int4", "uint2", "uint4"), ("i", 4)),
    **dict.fromkeys(("short", "unsigned short", "int16_t", "uint16_t"), ("i", 2)),
    **dict.fromkeys(("long long", "unsigned long long", "int64_t", "uint64_t", "size_t"), ("i", 8)),
    **dict.fromkeys(("int8_t", "uint8_t"), ("i", 1)),
}


def element_of(declared: str) -> tuple[str, int] | None:
    """("f" or "i", bytes) of the element type of a C type such as `const float *`; None if unknown."""
    base = " ".join(word for word in declared.replace("*", " ").split() if word not in ("const", "volatile"))
    return ELEMENTS.get(base) if declared.count("*") == 1 else None


def check_elements(
    values: Sequence[object], names: Sequence[str], types: Sequence[str], where: str = "--arg"
) -> None:
    """Raise a MemsimError unless the element types of arrays match the C types of the kernel's parameters, or
    are bytes that make up whole elements.

    Another number of values than of parameters is left to `check_arguments`.
    """
    if len(values) != len(names):
        return
    for value, name, declared in zip(values, names, types):
        wanted = element_of(declared)
        if wanted is None or not isinstance(value, (np.ndarray, ArrayArg)):
            continue
        dtype = element_type(value)
        kind = "f" if dtype.kind == "f" else "i" if dtype.kind in "iub" else dtype.kind
        is_vector = declared.replace("*", " ").split()[-1][-1] in "234"
        packed = dtype.itemsize < wanted[1] and is_vector
        packed |= dtype.itemsize == 1 and value.nbytes % wanted[1] == 0  # a buffer of bytes
        if kind in "fi" and (kind, dtype.itemsize) != wanted and not packed:
            short = {1: "8", 2: "16", 4: "32", 8: "64"}[wanted[1]]
            odd = f", and {value.nbytes} bytes are no multiple of {wanted[1]}" if dtype.itemsize == 1 else ""
            raise MemsimError(
                f"{name} is {declared}, but got an array of {dtype.name}{odd}",
                file=where,
                hint=f"pass an array of {wanted[0]}{short}, such as '{wanted[0]}{short}[1024]'",
            )


def describe(argument: object) -> str:
    """An argument as a text; an array by type and shape, and by content if it is described."""
    if isinstance(argument, str):
        return argument.replace(" ", "").removesuffix(f"={FILLS[0]}")
    return argument_of(argument).text()


def _read(text: str | Value, folder: Path, name: str, parameter: Parameter, takes_accessors: bool) -> Value:
    if not isinstance(text, str):
        return text
    if text == NULL and parameter.is_pointer:
        return None
    if takes_accessors and _is_array(text) and not BETWEEN_PARTS.search(text):
        return _array(text, folder)
    if (special := _of_a_kind(text)) is not None:
        if not special.fits(parameter, name):
            raise _error(text, 1, f"{special.in_errors()} for {name}, which is {parameter.type}")
        return special
    if parameter.is_struct or NUMBERS.match(text):
        return _struct(text, folder, name, parameter)
    if _is_array(text) and not parameter.is_pointer:
        raise _error(text, 1, f"an array for {name}, which is {parameter.type}, not a pointer")
    if _is_array(text):
        return _array(text, folder)
    if parameter.size == 1 and text in BOOLS:
        return BOOLS[text]
    number = float if parameter.type.startswith("f") else _integer
    try:
        return number(text)
    except ValueError:
        raise _error(text, 1, f"invalid value for {name}, which is {parameter.type}") from None


def _of_a_kind(text: str) -> Argument | None:
    """The argument of the kind whose text it is, such as a texture's; None if it is none's."""
    try:
        return next((found for kind in KINDS.values() if (found := kind.of_text(text)) is not None), None)
    except MemsimError as error:
        raise _error(text, error.column or 1, error.message) from None


def _type(parameter: Parameter) -> str:
    return f"a struct of {parameter.size} bytes" if parameter.is_struct else parameter.type


def _is_array(text: str) -> bool:
    return text.startswith("@") or "[" in text


def _integer(text: str) -> int:
    found = int(text, 0)
    if found.bit_length() > 64:  # of no parameter; and Python prints no number of 4,300 digits
        raise ValueError
    return found


def _array(text: str, folder: Path) -> ArrayArg | np.ndarray:
    if text.startswith("@"):
        return _array_from_file(text, folder)
    try:
        return described_array(text)
    except MemsimError as error:
        raise _error(text, error.column or 1, error.message) from None


def _struct(text: str, folder: Path, name: str, parameter: Parameter) -> bytes | tuple[Part, ...]:
    """`f16(1,1)` is a `__half2`, `f32[64]+i32(3)` a pointer and a number; bytes if there is no pointer."""
    if not _is_array(text) and "(" not in text:
        raise _error(text, 1, f"a number for {name}, which is a struct of {parameter.size} bytes")
    parts: list[Part] = []
    start = 0
    for piece in BETWEEN_PARTS.split(text):
        try:
            parts += [_array(piece, folder)] if _is_array(piece) else _numbers(piece)
        except MemsimError as error:
            raise _error(text, start + (error.column or 1), error.message) from None
        start += len(piece) + 1
    try:
        check_parts(parts, name, parameter)
    except MemsimError as error:
        raise _error(text, 1, error.message) from None
    given = argument_of(parts)
    if given.held():
        return tuple(parts)
    return given.encode(parameter, cast(ArgumentPlaces, None), 0)  # numbers need no places


def _numbers(text: str) -> list[np.generic]:
    match = NUMBERS.match(text)
    end = match.end() if match else 0
    if match is None or end != len(text):
        message = "a struct is TYPE(NUMBER,...) and arrays TYPE[SHAPE], joined by +"
        raise _error(text, end + 1, message)
    dtype = type_of_text(match)
    number = float if "float" in dtype else _integer
    try:
        with np.errstate(over="raise"):
            return list(np.array([number(value) for value in match["values"].split(",")], dtype_of(dtype)))
    except (ValueError, OverflowError, FloatingPointError):
        raise _error(text, match.start("values") + 1, f"no {match['dtype']} numbers") from None


def _array_from_file(text: str, folder: Path) -> np.ndarray:
    path = folder / text[1:]
    try:
        content = read_bytes(path)
        return np.ascontiguousarray(read_array(io.BytesIO(content), len(content)))
    except MemsimError as error:
        raise _error(text, 2, f"{error.message} ({path})") from None
    except ValueError as error:
        raise _error(text, 2, f"{path} is not a .npy file: {error}") from None


def _error(text: str, column: int, message: str) -> MemsimError:
    return MemsimError(message, source=text, column=column, hint=EXAMPLES)
