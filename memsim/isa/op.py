"""Forms of instructions: opcode, modifiers and operands; what they may do beyond writing registers; and what
refuses a form that is not executed.

Registers are numbered slots: R0-R254 at 0, UR0-UR79 at 256, P0-P6 at 336, UP0-UP6 at 344, the
convergence barriers B0-B15 at 352, and the halves of Rpc at 368. RZ, URZ, PT and UPT are constants and have
no slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TypeVar

VECTOR, UNIFORM, PREDICATE, UNIFORM_PREDICATE, BARRIER, RETURN_PC = 0, 256, 336, 344, 352, 368
SLOTS = 370


class Effect(Enum):
    """The effect of an instruction beyond writing registers."""

    ALU = "alu"  # its results depend only on the lane's own registers
    LANES = "lanes"  # its results depend on other lanes of the warp
    MEMORY = "memory"  # it accesses memory
    CONTROL = "control"  # control flow or synchronization
    NONE = "none"  # no effect on values, addresses or control flow


class Trait(Enum):
    """What else the emulator asks of a form, so that it looks at no opcode and no modifier itself."""

    ORDERS = "orders"  # what warps do, in another way than barriers of whole blocks
    OBSERVES = "observes"  # what other warps store meanwhile: a load that bypasses the L1 cache
    SPINS = "spins"  # a compare-and-swap that its loop retries
    TO_INTEGER = "to integer"  # a float becomes an index: no pointer goes through it
    COMPARES = "compares"  # integers, which may be addresses or halves of them
    EQUALITY = "equality"  # ... whether they are equal
    TESTS = "tests"  # whether any bit of a combination of words is set
    SELECTS = "selects"  # one of two words
    PASSES = "passes"  # a word from lane to lane
    PICKS_BYTES = "picks bytes"  # of two words
    BY_PATTERN = "by pattern"  # ... a modifier's four, of which the selector names one
    MOVES = "moves"  # a word, its last operand
    MOVES_BITS = "moves bits"  # or combines them, each with one of another word
    APPROXIMATES = "approximates"  # a function of a float, in its last bits as the chip does
    RECIPROCAL = "reciprocal"  # ... this one, of float32
    ROOT = "root"  # ... the reciprocal of a root
    RECIPROCAL_64 = "reciprocal of float64"
    ROOT_64 = "root of float64"
    ADDS = "adds"  # integers
    SUMS = "sums"  # float32
    MULTIPLIES = "multiplies"
    FUSES = "fuses"  # a product and a sum
    MULTIPLIES_64 = "multiplies float64"
    FUSES_64 = "fuses float64"
    ALTERS = "alters"  # a result of float32 that is not rounded to nearest: saturated, scaled, flushed
    MONOTONE = "monotone"  # of float32: in each operand, as are sums, products and TO_INTEGER
    EXCLUSIVE = "exclusive"  # lanes that wait for others continue without those that are not asked for
    UNANIMOUS = "unanimous"  # the branch is taken where all running lanes of a warp take it
    CONVERGED = "converged"  # the branch is taken where no lane of the mask is elsewhere
    COLLECTIVE = "collective"  # lanes of each mask continue as a group of their own
    REDUCES = "reduces"  # a block barrier that votes
    COUNTS = "counts"  # ... on how many
    ALL_OF = "all of"  # ... on whether all
    ARRIVES = "arrives"  # ... or does not wait
    ALLOCATES = "allocates"  # tensor memory, with a book of it in what the system reserves of shared memory
    READS_MAP = "reads map"  # a tensor map, at its last address
    FENCES = "fences"  # what a thread accesses before it, from what it accesses behind it, for other blocks
    FENCES_BLOCK = "fences block"  # ... for other threads of its block
    REFRESHES = "refreshes"  # what a thread loads behind it is no older than what it has seen
    WAITS_FOR_LAUNCH = "waits for launch"  # until the launch before has ended
    BEGINS_PRODUCTS = "begins products"  # of a warpgroup, behind what its warps did to their registers
    IDLES = "idles"
    RELATIVE = "relative"  # a call of an address relative to the kernel's
    ABSOLUTE = "absolute"  # a call of, or return to, an address of 64 bits


class Flow(Enum):
    """What a control-flow instruction does."""

    BRANCH = "branch"  # lanes for which it holds branch
    BRANCH_ANY = "branch any"  # all lanes branch if it holds for one of them
    BRANCH_DIVERGED = "branch diverged"  # all lanes branch if a lane of the mask is elsewhere
    INDEXED = "indexed"  # each lane branches to the address in its register
    CALL = "call"
    RETURN = "return"
    EXIT = "exit"
    SET_BARRIER = "set barrier"  # BSSY: these lanes will reconverge
    WAIT_BARRIER = "wait barrier"  # BSYNC: wait for the lanes in the barrier
    LEAVE_BARRIER = "leave barrier"  # BREAK: remove these lanes from the barrier
    WARP_SYNC = "warp sync"  # lanes of the mask wait for each other and continue together
    BLOCK_BARRIER = "block barrier"
    WAIT_PHASE = "wait phase"  # of an mbarrier
    ARRIVE_CLUSTER = "arrive cluster"
    WAIT_CLUSTER = "wait cluster"
    TRAP = "trap"
    YIELD = "yield"
    END_COLLECTIVE = "end collective"  # of a region that a WARPSYNC.COLLECTIVE entered
    SLEEP = "sleep"  # for a time; convergence barriers may not wait for it
    UNKNOWN = "unknown"  # not executed: a kernel that gets here cannot continue


@dataclass(frozen=True, slots=True)
class Register:
    """A general or uniform register. `slot` is None for RZ and URZ, which are zero.

    part: a part of it that is read ("H0_H0", "B1", ...). wide: it names a pair.
    """

    slot: int | None
    negated: bool = False
    absolute: bool = False
    inverted: bool = False
    part: str = ""
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate register. `slot` is None for PT and UPT, which are true."""

    slot: int | None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant in the instruction: an int, or a float if the listing prints one."""

    value: int | float
    second: float | None = None  # for two halves the lower one


@dataclass(frozen=True, slots=True)
class Constant:
    """`c[bank][register + offset]`."""

    bank: int
    offset: int
    register: Register | None = None
    negated: bool = False
    absolute: bool = False
    inverted: bool = False
    part: str = ""


@dataclass(frozen=True, slots=True)
class Address:
    """`[base + uniform + offset]`, of a lane's base and a uniform register; either may be missing.

    pair: the base has 64 bits. scale: factor of the base.
    """

    base: Register | None
    uniform: Register | None
    offset: int
    pair: bool = False
    scale: int = 1


@dataclass(frozen=True, slots=True)
class Label:
    """A place in the program, by instruction address."""

    name: str
    address: int | None


@dataclass(frozen=True, slots=True)
class Special:
    """A special register, such as SR_TID.X."""

    name: str


@dataclass(frozen=True, slots=True)
class Symbolic:
    """A word of a symbol's address, filled in when the program is loaded."""

    symbol: str
    high: bool


@dataclass(frozen=True, slots=True)
class Barrier:
    """A convergence barrier register."""

    slot: int


Operand = Register | Predicate | Immediate | Constant | Address | Label | Special | Symbolic | Barrier


@dataclass(frozen=True, slots=True)
class Form:
    """An instruction without its place: opcode, modifiers, operands."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]

    @property
    def name(self) -> str:
        """`LDS.U.128`."""
        return ".".join((self.opcode, *self.modifiers))


# --- what is not executed --------------------------------------------------------------------

Kind = TypeVar("Kind")


class Unsupported(Exception):
    """This form of an instruction is not supported."""


def require(condition: object) -> None:
    """What a supported form fulfils.

    Raises:
        Unsupported: it does not.
    """
    if not condition:
        raise Unsupported


def operand_of_kind(operand: object, kind: type[Kind]) -> Kind:
    """An operand that is of this kind in a supported form.

    Raises:
        Unsupported: it is not.
    """
    if not isinstance(operand, kind):
        raise Unsupported
    return operand


# --- sets of slots, as the bits of a number --------------------------------------------------


@lru_cache(maxsize=1 << 14)
def slots_of(bits: int) -> list[int]:
    """A bit set of slots as their numbers."""
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found
