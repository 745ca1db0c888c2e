"""CuTe's XOR swizzle: a permutation of offsets that moves chunks between banks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memsim.errors import MemsimError

#: Of an offset in elements.
MOST_BITS = 47


@dataclass(frozen=True, slots=True)
class Swizzle:
    """`Sw<bits,base,shift>`: `bits` bits of an offset are XORed with as many others.

    With a positive `shift`, the bits from `base` on are XORed with those from `base + shift` on; with a
    negative one the bits from `base - shift` on with those from `base` on. The lowest `base` bits are
    unchanged, so `2**base` elements stay contiguous. Source: CUTLASS, include/cute/swizzle.hpp.

    Raises:
        MemsimError: a negative number of bits, or bits that would be XORed with themselves or no offset has.
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        if self.bits < 0 or self.base < 0:
            raise MemsimError(f"{self} has a negative number of bits")
        if abs(self.shift) < self.bits:
            raise MemsimError(
                f"{self} would XOR bits with themselves",
                hint="in Sw<B,M,S>, S or -S must be at least B",
            )

        if self.base + self.bits + abs(self.shift) > MOST_BITS:
            raise MemsimError(f"{self} has bits above the {MOST_BITS} of an offset")

    def __str__(self) -> str:
        """`Sw<3,4,3>`."""
        return f"Sw<{self.bits},{self.base},{self.shift}>"

    def __call__(self, offsets: Any) -> Any:
        """The swizzled offsets: an int, or an array of them."""
        mask = (1 << self.bits) - 1 << self.base + max(0, self.shift)
        taken = offsets & mask
        return offsets ^ (taken >> self.shift if self.shift >= 0 else taken << -self.shift)

    def of_elements(self, element: int) -> Swizzle:
        """This swizzle of byte offsets as one of offsets in elements of so many bytes.

        Raises:
            MemsimError: an element would be split.
        """
        power = element.bit_length() - 1
        if element != 1 << power or power > self.base:
            raise MemsimError(f"{self} of bytes would split elements of {element} bytes")
        return Swizzle(self.bits, self.base - power, self.shift)
