"""A PTX module as frozen records: `PtxModule` > `Function` > `PtxInstruction` > operands."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from memsim.instruction import Place
from memsim.isa.program import Parameter as Parameter
from memsim.isa.program import Variable


@dataclass(frozen=True, slots=True)
class PtxRegister:
    """A virtual register by its unique name in the function (`%r1`). `_` is the bit bucket."""

    name: str


@dataclass(frozen=True, slots=True)
class PtxSpecial:
    """A special register with its component: `%tid.x`, `%laneid`, `%clock64`."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class PtxImmediate:
    """A constant. Integers are Python ints (with the sign as written), `0f`/`0d`/decimal floats Python
    floats.

    Equality is bitwise: 0, 0.0 and -0.0 differ, and a NaN equals itself.
    """

    value: int | float

    def _bits(self) -> int | bytes:
        return struct.pack("<d", self.value) if isinstance(self.value, float) else self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PtxImmediate) and self._bits() == other._bits()

    def __hash__(self) -> int:
        return hash(self._bits())


@dataclass(frozen=True, slots=True)
class PtxSymbol:
    """A variable, parameter, label or function by name, plus a byte offset."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class PtxAddress:
    """A memory operand `[base + offset]`; offset in bytes."""

    base: PtxRegister | PtxSymbol | PtxImmediate
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, c, d}`."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Selected:
    """Bytes or halves of a register in the video instructions: `%r1.b0`, `%r1.h1`, `%r1.b7654`."""

    register: PtxRegister
    selector: str


@dataclass(frozen=True, slots=True)
class Negated:
    """`!%p1` as a source operand."""

    register: PtxRegister


@dataclass(frozen=True, slots=True)
class PtxPair:
    """`%p1|%p2`: two destinations of one instruction (setp, shfl, ...); `{...}|%p1` of a sparse `tex`."""

    first: PtxRegister | Vector
    second: PtxRegister


@dataclass(frozen=True, slots=True)
class TextureAddress:
    """`[texture, {coordinates}]`, also with a sampler: `[texture, sampler, {coordinates}]`."""

    handles: tuple[Operand, ...]
    coordinates: Operand


@dataclass(frozen=True, slots=True)
class CallTarget:
    """The operands of `call`: `(returns), target, (arguments), prototype`."""

    returns: tuple[Operand, ...]
    target: PtxRegister | PtxSymbol
    arguments: tuple[Operand, ...]
    prototype: str | None = None


Operand = (
    PtxRegister
    | PtxSpecial
    | PtxImmediate
    | PtxSymbol
    | PtxAddress
    | Vector
    | Selected
    | Negated
    | PtxPair
    | TextureAddress
    | CallTarget
)


@dataclass(frozen=True, slots=True)
class PtxInstruction:
    """One PTX instruction.

    `opcode` is the part before the first dot (`ld`), `modifiers` the rest in order
    (`("global", "nc", "v4", "f32")`); `::` qualifiers stay whole (`"L2::128B"`,
    `"shared::cta"`). `guard` is the predicate register of `@%p1` (`negated` for `@!%p1`).
    `line` and `column` are 1-based positions in the PTX text; `source` is the line of the CUDA source.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: PtxRegister | None = None
    negated: bool = False
    source: Place | None = None
    line: int = 0
    column: int = 0

    @property
    def name(self) -> str:
        """Opcode and modifiers as written: `ld.global.nc.v4.f32`."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True, slots=True)
class PtxVariable(Variable):
    """A variable in a state space: `shared`, `global`, `const`, `local`, `param` or `tex`.

    `size` is 0 for `extern .shared x[]` (dynamic shared memory).
    """

    space: str = ""


@dataclass(frozen=True)
class Function:
    """A `.entry` (kernel) or `.func` (device function).

    `registers` maps every register's name to its type without the dot (`b32`, `pred`).
    `variables` are those declared in the body. `labels` maps a label to the index of the
    instruction that follows it (`len(instructions)` at the end). `tables` maps a
    `.branchtargets` label to its target labels. Names declared in nested `{ }` scopes
    are made unique by the parser, so one flat name space is enough. `cluster`: the blocks
    of a cluster, as `.reqnctapercluster` says (`__cluster_dims__`).
    """

    name: str
    is_entry: bool
    parameters: tuple[Parameter, ...]
    returns: tuple[Parameter, ...]
    registers: dict[str, str]
    variables: dict[str, PtxVariable]
    instructions: tuple[PtxInstruction, ...]
    labels: dict[str, int]
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    reqntid: tuple[int, int, int] | None = None
    maxntid: tuple[int, int, int] | None = None
    cluster: tuple[int, int, int] | None = None
    line: int = 0


@dataclass(frozen=True)
class PtxModule:
    """A PTX file. `functions` holds entries and device functions with a body, in file order."""

    path: str
    target: str
    files: dict[int, str]
    functions: dict[str, Function]
    variables: dict[str, PtxVariable]
    text: str

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the kernels, in file order."""
        return tuple(name for name, function in self.functions.items() if function.is_entry)
