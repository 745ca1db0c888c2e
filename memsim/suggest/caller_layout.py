"""What an edit asks of its kernel's caller: an array in another layout.

The proof: what the changed kernel makes of data in that layout is, bit for bit, what the kernel as it was
makes of the same data, then brought into that layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memsim.arch.units import WARP
from memsim.argument_types.argument import Held, argument_of
from memsim.argument_types.array_arg import as_numpy


@dataclass(frozen=True, slots=True)
class CallerLayout:
    """An array of records of `fields` units, of so many bytes each.

    array: the parameter; number: which argument it is. grouped: of 32 records each field is side by side, in
    whole groups, and the parameter is a class around the pointer. Else only the first field is kept.
    together: fields that each record has side by side, ahead of the others of the group.
    """

    array: str
    number: int
    fields: int
    unit: int
    grouped: bool
    together: tuple[int, ...] = ()

    def packed(self, data: bytes) -> bytes:
        """An array's bytes as the caller has to keep them; what is missing in the last group is 0."""
        whole = self.unit * self.fields * (WARP if self.grouped else 1)
        units = np.frombuffer(data + bytes(-len(data) % whole), np.uint8)
        records = units.reshape(-1, WARP if self.grouped else 1, self.fields, self.unit)
        if not self.grouped:
            return bytes(records[:, :, 0].tobytes())
        apart = [field for field in range(self.fields) if field not in self.together]
        parts = records[:, :, list(self.together)], records[:, :, apart].transpose(0, 2, 1, 3)
        return np.concatenate([one.reshape(len(records), -1) for one in parts], axis=1).tobytes()

    @property
    def told(self) -> str:
        """The array, and how it is kept."""
        if not self.grouped:
            return f"the low {8 * self.unit} bits of each number of {self.array}, and nothing else"
        group = WARP * self.fields
        if self.together:
            count, fields = len(self.together), ", ".join(map(str, self.together))
            return (
                f"{self.array}, {self.fields} fields of {self.unit} B, of {WARP} records in whole groups of "
                f"{group}: fields {fields} of r at r / {WARP} * {group} + r % {WARP} * {count}, then the "
                f"others, each of {WARP} records side by side"
            )
        return (
            f"{self.array}, {self.fields} fields of {self.unit} B, so: f of r is at r / {WARP} * {group} + "
            f"f * {WARP} + r % {WARP}, and at n is f = n / {WARP} % {self.fields} of r = n / {group} * "
            f"{WARP} + n % {WARP}; in whole groups of {group}"
        )


def packed_arguments(values: Sequence[object], layouts: Sequence[CallerLayout]) -> list[object]:
    """A launch's arguments, those of the layouts as their caller has to keep them."""
    found = list(values)
    for each in layouts:
        array = array_of(found[each.number])
        assert array is not None  # what has a layout is an array
        kind = array.dtype if each.grouped else f"i{each.unit}"
        data = np.frombuffer(bytearray(each.packed(array.tobytes())), kind)
        found[each.number] = [data] if each.grouped else data
    return found


def packed_results(results: Mapping[str, bytes], layouts: Sequence[CallerLayout]) -> dict[str, bytes]:
    """The bytes of each parameter's arrays, those of the layouts as their caller has to keep them."""
    return {**results, **{each.array: each.packed(results[each.array]) for each in layouts}}


def array_of(argument: Held) -> np.ndarray | None:
    """The array that an argument is; None of anything else."""
    whole = as_numpy(argument)
    return whole if isinstance(whole, np.ndarray) else None


def is_given_once(values: Sequence[object], number: int) -> bool:
    """Whether no other argument has memory of an argument's array."""
    own, others = values[number], [one for place, one in enumerate(values) if place != number]
    arrays = (array for one in others for _, array in argument_of(one).pointees())
    return not any(
        array is own
        or (isinstance(own, np.ndarray) and isinstance(array, np.ndarray) and np.may_share_memory(own, array))
        for array in arrays
    )
