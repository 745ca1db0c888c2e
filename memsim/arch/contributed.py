"""Rules of a chip as tested by contributed recordings.

`rules*.json` in the folders of `traces/` are written by `python -m lab EXPERIMENT --record`. A rule that was
found to hold counts as measured. One that counters show not to hold is dropped; where only a clock was read,
it stays what it was, because a clock may see other waits. Counters go before clocks. Rates of pipes are those
that the clock showed, whether they equal sm_90's or not.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from memsim.arch.chip import BY_CLOCK, MEASURED, Arch, Rule
from memsim.data import data_folder
from memsim.errors import MemsimError
from memsim.files import read_json
from memsim.reads import note_matching_names

PATTERN = "rules*.json"
#: What a record says of its source, if that is a clock.
CLOCK = "clock"


@dataclass(slots=True)
class Findings:
    """What recordings say of a chip. rules: (space, op, width) -> the rule's basis and where; a basis of ""
    if it does not hold. has_rates: the rates of the pipes are known by clock. clocked: those of machine
    instructions, in cycles, where they may differ from sm_90's.
    """

    rules: dict[tuple[str, str, int], tuple[str, str]] = field(default_factory=dict)
    has_rates: bool = False
    clocked: tuple[tuple[str, int], ...] = ()


def with_contributed(chip: Arch, folder: Path | None = None) -> Arch:
    """The chip with the findings of the recordings in `folder` (default: the recordings that ship).

    Raises:
        MemsimError: a file there is not a record of rules.
    """
    found = _findings(folder or data_folder("traces")).get(chip.name)
    if found is None:
        return chip
    rules = tuple(rule for old in chip.rules for rule in _as_found(old, found))
    if not found.has_rates:
        return replace(chip, rules=rules)
    return replace(chip, rules=rules, rates=BY_CLOCK, clocked=found.clocked)


def _as_found(rule: Rule, found: Findings) -> list[Rule]:
    """The rule split by what is known of each width; widths for which it does not hold are dropped."""
    known = {width: found.rules.get((rule.space, rule.op, width)) for width in rule.widths}
    untouched = tuple(width for width, finding in known.items() if finding is None)
    held = [
        replace(rule, widths=(width,), where=finding[1], basis=finding[0])
        for width, finding in known.items()
        if finding is not None and finding[0]
    ]
    return [replace(rule, widths=untouched), *held] if untouched else held


def _findings(folder: Path) -> dict[str, Findings]:
    """The findings of a folder's recordings by chip; later files override earlier ones, counters a clock."""
    devices = (folder / name for name in note_matching_names(folder / "*") if name.endswith("/"))
    found = (device / name for device in devices for name in note_matching_names(device / PATTERN))
    paths = sorted(path for path in found if path.suffix == ".json")
    records = [(path, read_json(path, "the record of rules")) for path in paths]
    by_chip: dict[str, Findings] = {}
    for path, record in sorted(records, key=lambda each: not _is_by_clock(each[1])):
        try:
            _add(record, by_chip.setdefault(str(record["arch"]), Findings()))
        except (KeyError, TypeError, ValueError) as problem:
            raise MemsimError(f"this is not a record of rules: {problem}", file=str(path)) from None
    return by_chip


def _is_by_clock(record: object) -> bool:
    return isinstance(record, dict) and record.get("by") == CLOCK


def _add(record: dict[str, Any], found: Findings) -> None:
    by_clock = _is_by_clock(record)
    for rule in record["rules"]:
        key = str(rule["space"]), str(rule["op"]), int(rule["width"])
        where = f"{record['gpu']}, {rule['compared']:,} {'patterns by clock' if by_clock else 'figures'}"
        if rule["holds"]:
            found.rules[key] = BY_CLOCK if by_clock else MEASURED, where
        elif not by_clock:
            found.rules[key] = "", where
    if by_clock:
        rates = record["rates"]
        found.clocked = tuple((str(form), int(each)) for form, each in rates.get("cycles", {}).items())
        found.has_rates = bool(rates["hold"] or found.clocked)
