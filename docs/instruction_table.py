"""The table of opcodes in docs/model.md: which are executed, counted, made unknown, or not modelled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

import memsim.sass.decode  # noqa: F401  (registers the opcodes)
from memsim.arch import SM_90
from memsim.isa.definitions import DEFINITIONS, Definition, Touches
from memsim.isa.op import Effect, Flow
from memsim.isa.program import written_by
from memsim.views.plain import table

#: How the accesses of state spaces are shown that depend on more than the opcode.
BESIDE = {
    ("texture", "executed"): "texture fetch: [counted](#textures) by the kind of texture",
    ("texture", "not executed"): "texture fetch: not modelled, how many stands in the first line",
}

EXECUTED, NOT_EXECUTED = "executed", "not executed"


def instruction_table() -> str:
    """All opcodes that memsim knows, by what becomes of them."""
    every = sorted(chain(*DEFINITIONS.values()), key=lambda one: one.opcode)
    # Tests define opcodes of their own, which a test of this table may find beside the chips'.
    forms = [one for one in every if one.build is None or one.build.__module__.startswith("memsim.")]
    executed = [one for one in forms if one.build is not None]
    known = [one for one in forms if not {one.opcode} & {other.opcode for other in executed} and not one.flow]
    rows = [
        (EXECUTED, _names(one for one in executed if one.effect in (Effect.ALU, Effect.LANES)), "", ""),
        (EXECUTED, _names(one for one in forms if one.flow not in (None, Flow.UNKNOWN)), "", ""),
        *_accesses(executed, EXECUTED),
        *_accesses(known, NOT_EXECUTED),
        (NOT_EXECUTED, _names(one for one in known if one.effect is Effect.ALU), "", "its registers"),
        ("an error", _names(one for one in forms if one.flow is Flow.UNKNOWN), "", ""),
        ("no effect", _names(one for one in known if one.effect is Effect.NONE), "", ""),
        (NOT_EXECUTED, "any other", "all spaces: a row, not analyzed", "its registers, all memory"),
    ]
    return table(("memsim", "opcodes", "accesses", "what becomes unknown"), rows, "llll") + "\n"


def _names(forms: Iterable[Definition]) -> str:
    return " ".join(dict.fromkeys(f"`{one.opcode}`" for one in forms))


def _accesses(forms: Sequence[Definition], what: str) -> list[tuple[str, str, str, str]]:
    """A row for each way to access memory; opcodes with several ways are shown with what their forms need."""
    rows: dict[tuple[str, str], list[str]] = {}
    ways = {(one.opcode, one.touches) for one in forms if one.effect is Effect.MEMORY}
    several = Counter(opcode for opcode, _ in ways)
    for one in forms:
        if one.effect is Effect.MEMORY:
            lost = [f"{space} memory" for space in sorted(written_by(one.touches))]
            if not isinstance(one.signature, str) or not one.signature.startswith("<-"):
                lost.insert(0, "its registers")
            name = ".".join((one.opcode, *one.needs)) if several[one.opcode] > 1 else one.opcode
            key = _said(one.touches, what), ", ".join(lost) if what == NOT_EXECUTED else ""
            rows.setdefault(key, []).append(f"`{name}`")
    return [(what, " ".join(dict.fromkeys(names)), said, lost) for (said, lost), names in rows.items()]


def _said(touches: Touches, what: str) -> str:
    """How accesses are shown."""
    found = []
    for kind, space in touches:
        widths = SM_90.widths(space, kind)
        name = f"{space} {kind.replace('_', '.')}"
        if (space, what) in BESIDE:
            found.append(BESIDE[space, what])
        elif space == "generic":
            found.append(f"{name}: as that of the space of the address")
        elif widths and what == EXECUTED:
            found.append(f"{name}: counted, of {', '.join(map(str, widths))} B")
        else:
            found.append(f"{name}: a row, not analyzed")
    return "; ".join(found) or "mbarrier operations: how many stands in the last line"
