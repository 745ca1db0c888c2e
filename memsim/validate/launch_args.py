"""Serializes arguments of a launch for another process, and describes them in words.

Their records are those of `launch.json`: described arrays stay descriptions, others are files beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from memsim.argument_types import ArrayArg, Texture
from memsim.argument_types.argument import documents_of
from memsim.argument_types.foreign_arrays import as_arguments
from memsim.arguments import describe
from memsim.captured.launch_document import LAUNCH
from memsim.captured.read_launch import arguments_of
from memsim.captured.write_launch import described

SHOWN_BYTES = 32  # of a struct given as bytes


def pack(args: Sequence[Any], folder: Path) -> list[Any]:
    """Arguments as plain values; existing arrays are written to `folder`, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    packed: list[Any] = msgspec.to_builtins(described(as_arguments(args), folder), enc_hook=np.generic.item)
    return packed


def unpack(records: Sequence[Any], folder: Path) -> list[Any]:
    """The inverse of `pack`."""
    return arguments_of(documents_of(records, "$"), folder / LAUNCH)


def in_words(value: Any) -> str:
    """An argument in a line: `f32[1024,1024]`, `random, seed 1` if that matters, `1024`, `0x0300...`."""
    if isinstance(value, Texture):
        return f"texture over {in_words(value.array)}"
    if isinstance(value, (bytes, bytearray)):
        return f"{len(value)} bytes 0x{value[:SHOWN_BYTES].hex()}" + "..." * (len(value) > SHOWN_BYTES)
    if isinstance(value, ArrayArg) and value.seed and value.fill == "random":
        return f"{describe(replace(value, seed=0))} seed {value.seed}"
    return describe(value)
