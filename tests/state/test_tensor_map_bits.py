"""Tensor maps are read from the bytes that a driver encoded."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from memsim.argument_types.array_tables import SWIZZLES, TYPES, USED, decode_tensor_map
from tests.state.tensor_map_format import NUMBERS, encoded

RECORDED = json.loads((Path(__file__).parent / "data" / "tensor_maps_h200.json").read_text())["maps"]


@pytest.mark.parametrize("one", RECORDED, ids=range(len(RECORDED)))
def test_a_map_of_the_driver_is_read(one: dict[str, object]) -> None:
    given = {name: value for name, value in one.items() if name != "bytes"}
    raw = bytes.fromhex(str(one["bytes"]))
    assert encoded(**given)[:USED] == raw[:USED]  # type: ignore[arg-type]
    found = decode_tensor_map(raw)
    if given["fill"]:
        assert found is None  # NaN for what is out of bounds
        return
    assert found is not None
    assert (found.address, found.dtype) == (given["address"], TYPES[NUMBERS[given["kind"]]])  # type: ignore[index]
    assert [*found.extents] == given["extents"] and [*found.steps] == given["steps"]
    assert [*found.box] == given["box"] and found.swizzle == SWIZZLES[given["swizzle"]]  # type: ignore[index]


def test_the_array_lies_where_the_map_says() -> None:
    memory = np.arange(4096, dtype=np.uint8)
    map_ = decode_tensor_map(encoded(1, 1 << 40, (16, 5), (64,), (8, 2), 0))
    assert map_ is not None and map_.address == 1 << 40
    tensor = map_.over(memory, 256)
    assert (tensor.array.shape, tensor.array.strides, tensor.box) == ((5, 16), (64, 2), (2, 8))
    assert tensor.array[1, 3] == memory.view(np.uint16)[(256 + 64) // 2 + 3]  # type: ignore[index]


def test_a_tensor_that_is_larger_than_its_memory_is_refused() -> None:
    map_ = decode_tensor_map(encoded(1, 0, (16, 500), (64,), (8, 2), 0))
    assert map_ is not None
    with pytest.raises(ValueError, match="strides"):
        map_.over(np.zeros(4096, np.uint8), 256)


@pytest.mark.parametrize(("place", "value"), [(8, 1), (8, 0x70), (9, 0x08), (9, 0x80), (52, 1)], ids=str)
def test_other_bytes_are_no_map(place: int, value: int) -> None:
    raw = bytearray(encoded(1, 0, (16, 5), (64,), (8, 2), 0))
    assert decode_tensor_map(bytes(raw)) is not None
    raw[place] |= value
    assert decode_tensor_map(bytes(raw)) is None
    assert decode_tensor_map(bytes(raw[:40])) is None
