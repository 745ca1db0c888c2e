"""What an argument means that is given as text, by `--arg` or in a configuration.

In: the texts in the kernel's order and the kernel's parameters, by whose types they are read. Out: numbers,
`ArrayArg`s (made only when somebody reads them) and arrays from `.npy` files. Left out: structs by value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from memsim.errors import MemsimError
from memsim.launch import ArrayArg
from memsim.ptx.program import Parameter

Argument: TypeAlias = int | float | ArrayArg | np.ndarray

NAMES = {"f": ("float", (16, 32, 64)), "i": ("int", (8, 16, 32, 64)), "u": ("uint", (8, 16, 32, 64))}
DTYPES = {f"{short}{bits}": f"{name}{bits}" for short, (name, sizes) in NAMES.items() for bits in sizes}
POINTER_BYTES = 8
FILLS = ("random", "zeros", "iota")
ARRAY = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[^\]]*)\](?:=(?P<fill>.*))?")
EXAMPLES = "examples: 1024, 1.0, 'f32[1024,1024]', 'f32[1024,1024]=zeros', 'i32[64]=iota', @matrix.npy"


def read_arguments(
    texts: Sequence[str | Argument],
    parameters: Mapping[str, Parameter],
    folder: Path = Path(),
    where: str = "--arg",
) -> list[Argument]:
    """One value for each parameter of the kernel.

    Args:
        texts: in the kernel's order; what is no text is taken as it is.
        parameters: by name, in the same order.
        folder: what the names of `.npy` files are relative to.
        where: what errors call the place of the texts.

    Raises:
        MemsimError: too few or too many, or one that its parameter cannot take.
    """
    if len(texts) != len(parameters):
        takes = ", ".join(f"{name}: {parameter.type}" for name, parameter in parameters.items())
        raise MemsimError(
            f"the kernel takes {len(parameters)} arguments ({takes}), and {where} gives {len(texts)} of them",
            hint=f"one for each, in the kernel's order; {EXAMPLES}",
        )
    try:
        return [_read(text, folder, *named) for text, named in zip(texts, parameters.items(), strict=True)]
    except MemsimError as error:
        error.file = where
        raise


def _read(text: str | Argument, folder: Path, name: str, parameter: Parameter) -> Argument:
    if not isinstance(text, str):
        return text
    is_array = text.startswith("@") or "[" in text
    if is_array and parameter.size != POINTER_BYTES:
        raise _error(text, 1, f"an array for {name}, which is no pointer but {parameter.type}")
    if text.startswith("@"):
        return _array_from_file(text, folder)
    if is_array:
        return _array(text)
    number = float if parameter.type.startswith("f") else _integer
    try:
        return number(text)
    except ValueError:
        raise _error(text, 1, f"no value for {name}, which is {parameter.type}") from None


def _integer(text: str) -> int:
    return int(text, 0)


def _array(text: str) -> ArrayArg:
    match = ARRAY.fullmatch(text)
    if match is None:
        raise _error(text, text.index("[") + 1, "an array is TYPE[SHAPE] or TYPE[SHAPE]=CONTENT")
    if match["dtype"] not in DTYPES:
        raise _error(text, 1, f"no array type {match['dtype']!r}; known: {', '.join(DTYPES)}")
    extents = match["shape"].split(",")
    if not all(extent.strip().isdecimal() and int(extent) > 0 for extent in extents):
        raise _error(text, match.start("shape") + 1, "a shape is positive integers with commas between")
    fill = match["fill"]
    if fill is not None and fill not in FILLS:
        raise _error(text, match.start("fill") + 1, f"no content {fill!r}; known: {', '.join(FILLS)}")
    return ArrayArg(tuple(int(extent) for extent in extents), DTYPES[match["dtype"]], fill or FILLS[0])


def _array_from_file(text: str, folder: Path) -> np.ndarray:
    path = folder / text[1:]
    try:
        with path.open("rb") as file:
            return np.ascontiguousarray(np.lib.format.read_array(file, allow_pickle=False))
    except OSError as error:
        raise _error(text, 2, f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise _error(text, 2, f"{path} is no .npy file: {error}") from None


def _error(text: str, column: int, message: str) -> MemsimError:
    return MemsimError(message, source=text, column=column, hint=EXAMPLES)
