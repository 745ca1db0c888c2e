"""Patterns of registers for a measurement: how fast FFMAs follow each other, by the registers that they name.

The registers of a `Pattern` are symbols; `record_register_banks.py` writes them into machine code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

EVEN, ODD = 0, 1
TILE = 8  # sums of a thread, in each direction


class Register(NamedTuple):
    """The `number`-th register of a parity that is free for use."""

    parity: int
    number: int


class Ffma(NamedTuple):
    """c += a * b. keep_a, keep_b: the operand is marked `.reuse`, for the FFMA that follows."""

    a: Register
    b: Register
    c: Register
    keep_a: bool
    keep_b: bool


@dataclass(frozen=True, slots=True)
class Pattern:
    """A loop of FFMAs. text: what it is, for a table."""

    name: str
    text: str
    loop: tuple[Ffma, ...]

    def fetched(self) -> tuple[float, float]:
        """Registers fetched for an FFMA, of even and of odd number; what was kept is not fetched again."""
        counts = [0, 0]
        before = self.loop[-1]
        for now in self.loop:
            fetched = {now.c}
            if not (before.keep_a and before.a == now.a):
                fetched.add(now.a)
            if not (before.keep_b and before.b == now.b):
                fetched.add(now.b)
            for register in fetched:
                counts[register.parity] += 1
            before = now
        return counts[EVEN] / len(self.loop), counts[ODD] / len(self.loop)


def _fresh(a: int, b: int, c: int, keep_a: bool = False, keep_b: bool = False) -> tuple[Ffma, ...]:
    """a, b and c of these parities, each time others, but for those that are kept."""
    return tuple(
        Ffma(
            Register(a, 0 if keep_a else turn % 8),
            Register(b, 8 if keep_b else 8 + turn % 8),
            Register(c, 16 + turn % 16),
            keep_a,
            keep_b,
        )
        for turn in range(16)
    )


def _tile(sum_parity: Callable[[int, int], int], turn: bool = True, keep: bool = True) -> tuple[Ffma, ...]:
    """8 x 8 sums, column by column; a, along the column, and b as 16-byte loads leave them: even, odd ..."""
    places = [
        (step if j % 2 == 0 or not turn else TILE - 1 - step, j) for j in range(TILE) for step in range(TILE)
    ]
    used = [TILE, TILE]  # a and b take the first eight numbers of both parities
    sums: dict[tuple[int, int], Register] = {}
    for i, j in sorted(places):
        parity = sum_parity(i, j) % 2
        sums[i, j] = Register(parity, used[parity])
        used[parity] += 1
    return tuple(
        Ffma(
            Register(i % 2, i // 2),
            Register(j % 2, TILE // 2 + j // 2),
            sums[i, j],
            keep_a=keep and following[0] == i,
            keep_b=keep and following[1] == j,
        )
        for (i, j), following in zip(places, [*places[1:], places[0]], strict=True)
    )


PATTERNS = (
    Pattern("three_of_one", "three fetched, of one parity", _fresh(EVEN, EVEN, EVEN)),
    Pattern("two_and_one", "three fetched, two of one parity", _fresh(EVEN, EVEN, ODD)),
    Pattern("kept_same", "one kept, two fetched, of one parity", _fresh(EVEN, ODD, ODD, keep_a=True)),
    Pattern("kept_both", "one kept, two fetched, one of each parity", _fresh(EVEN, EVEN, ODD, keep_a=True)),
    Pattern("two_kept", "two kept", _fresh(EVEN, EVEN, EVEN, keep_a=True, keep_b=True)),
    Pattern("tile", "8 x 8 sums, each of the other parity than its a", _tile(lambda i, j: i + 1)),
    Pattern("tile_as_a", "8 x 8 sums, each of its a's parity", _tile(lambda i, j: i)),
    Pattern(
        "tile_as_b",
        "8 x 8 sums, each of its b's parity, as 16-byte stores of them need",
        _tile(lambda i, j: j),
    ),
    Pattern(
        "tile_no_turn", "as the first of these, down every column", _tile(lambda i, j: i + 1, turn=False)
    ),
    Pattern("tile_not_kept", "as the first of these, nothing kept", _tile(lambda i, j: i + 1, keep=False)),
)
