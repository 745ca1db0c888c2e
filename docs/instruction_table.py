"""The table of opcodes in docs/model.md: which are executed, counted, made unknown, or not modelled."""

from __future__ import annotations

from collections.abc import Iterable

import memsim.sass.decode  # noqa: F401  (registers the opcodes)
from memsim.arch import SM_90
from memsim.isa.op import Effect, Flow, Form
from memsim.isa.reach import written_by
from memsim.isa.registry import RECORDS, OpcodeRecord, Touches
from memsim.views.markdown_text import table

#: Modifiers that say what an opcode touches: the forms that the table shows.
FORMS = {"UBLKCP": ("S.G", "G.S", "S.S"), "UBLKRED": ("G.S", "S.S"), "CCTL": ("RML2",)}
#: How the accesses of state spaces are shown that depend on more than the opcode.
BESIDE = {
    ("texture", "executed"): "texture fetch: [counted](#textures) by the kind of texture",
    ("texture", "not executed"): "texture fetch: not modelled, how many stands in the first line",
}

EXECUTED, NOT_EXECUTED = "executed", "not executed"


def instruction_table() -> str:
    """All opcodes that memsim knows, by what becomes of them."""
    machine = (record for record in RECORDS.values() if not _is_of_tests(record))
    records = sorted(machine, key=lambda record: record.opcode)
    executed = [record for record in records if record.build is not None]
    known = [record for record in records if record.build is None and record.flow is None]
    rows = [
        (
            EXECUTED,
            _names(r for r in executed if r.effect in (Effect.ALU, Effect.LANES) or callable(r.effect)),
            "",
            "",
        ),
        (EXECUTED, _names(r for r in records if r.flow not in (None, Flow.UNKNOWN)), "", ""),
        *_accesses(executed, EXECUTED),
        *_accesses(known, NOT_EXECUTED),
        (NOT_EXECUTED, _names(r for r in known if r.effect is Effect.ALU), "", "its registers"),
        ("an error", _names(r for r in records if r.flow is Flow.UNKNOWN), "", ""),
        ("no effect", _names(r for r in records if r.effect is Effect.NONE) + ", other `CCTL`", "", ""),
        (NOT_EXECUTED, "any other", "all spaces: a row, not analyzed", "its registers, all memory"),
    ]
    return table(("memsim", "opcodes", "accesses", "what becomes unknown"), rows, "llll") + "\n"


def _is_of_tests(record: OpcodeRecord) -> bool:
    """Did a test add it to the table?"""
    return record.build is not None and not record.build.__module__.startswith("memsim.")


def _names(records: Iterable[OpcodeRecord]) -> str:
    return " ".join(f"`{record.opcode}`" for record in records)


def _accesses(records: Iterable[OpcodeRecord], what: str) -> list[tuple[str, str, str, str]]:
    """A row for each way to access memory."""
    rows: dict[tuple[str, str], list[str]] = {}
    for record in records:
        if record.effect is not Effect.MEMORY and not callable(record.effect):
            continue
        for name in FORMS.get(record.opcode, ("",)):
            form = Form(record.opcode, tuple(filter(None, name.split("."))), ())
            touches = record.touches_of(form)
            lost = ["its registers"] if record.results else []
            lost += [f"{space} memory" for space in sorted(written_by(touches))]
            key = _said(touches, what), ", ".join(lost) if what == NOT_EXECUTED else ""
            rows.setdefault(key, []).append(f"`{form.name}`")
    return [(what, " ".join(names), said, lost) for (said, lost), names in rows.items()]


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
