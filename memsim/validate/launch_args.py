"""Serializes arguments of a launch for another process, and describes them in words.

Described arrays stay descriptions; others are stored in files beside the JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from memsim.arguments import describe
from memsim.arrays import as_arguments
from memsim.errors import MemsimError
from memsim.launch import TABLES, ArrayArg, TensorMap, Texture1D

SHOWN_BYTES = 32  # of a struct given as bytes


def pack(args: Sequence[Any], folder: Path) -> list[Any]:
    """Arguments as plain values; existing arrays are written to `folder`.

    Raises:
        MemsimError: a view, a table of pointers or a tensor map.
    """
    return [_packed(value, folder) for value in as_arguments(args)]


def unpack(records: Sequence[Any], folder: Path) -> list[Any]:
    """The inverse of `pack`."""
    return [_unpacked(record, folder) for record in records]


def in_words(value: Any) -> str:
    """An argument in a line: `f32[1024,1024]`, `random, seed 1` if that matters, `1024`, `0x0300...`."""
    if isinstance(value, Texture1D):
        return f"texture over {in_words(value.array)}"
    if isinstance(value, (bytes, bytearray)):
        return f"{len(value)} bytes 0x{value[:SHOWN_BYTES].hex()}" + "..." * (len(value) > SHOWN_BYTES)
    if isinstance(value, ArrayArg) and value.seed and value.fill == "random":
        return f"{describe(replace(value, seed=0))} seed {value.seed}"
    return describe(value)


def _check_plain(value: Any) -> None:
    """Raise unless it can be copied to a GPU as it is: no view, table of pointers or tensor map."""
    if isinstance(value, (*TABLES, TensorMap)):
        raise MemsimError(f"{describe(value)} can be analyzed but not measured", hint="pass a plain array")
    if isinstance(value, (np.ndarray, ArrayArg)) and value.shape != () and "@" in describe(value):
        raise MemsimError(
            f"{describe(value)} is a view: views can be analyzed but not measured", hint="pass a copy of it"
        )


def _packed(value: Any, folder: Path) -> Any:
    _check_plain(value)
    if isinstance(value, Texture1D):
        return {"texture": _packed(value.array, folder)}
    if isinstance(value, ArrayArg):
        return {"described": asdict(value)}
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": value.hex()}
    if isinstance(value, (list, tuple)):
        return {"parts": pack(value, folder)}
    if isinstance(value, np.ndarray) and value.shape:
        name = f"array{len(list(folder.glob('array*.npy')))}.npy"
        np.save(folder / name, value, allow_pickle=False)
        return {"file": name}
    if isinstance(value, (np.generic, np.ndarray)):
        return {"number": np.asarray(value).tobytes().hex(), "dtype": np.asarray(value).dtype.str}
    return value  # an int, a float or a bool


def _unpacked(record: Any, folder: Path) -> Any:
    if not isinstance(record, dict):
        return record
    if "texture" in record:
        return Texture1D(_unpacked(record["texture"], folder))
    if "described" in record:
        return ArrayArg(**{**record["described"], "shape": tuple(record["described"]["shape"])})
    if "bytes" in record:
        return bytes.fromhex(record["bytes"])
    if "parts" in record:
        return unpack(record["parts"], folder)
    if "file" in record:
        return np.load(folder / record["file"], allow_pickle=False)
    return np.frombuffer(bytes.fromhex(record["number"]), record["dtype"])[0]
