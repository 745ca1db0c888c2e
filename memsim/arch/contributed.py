"""Rules of a chip as tested by contributed recordings.

`rules*.json` in the folders of `traces/` are written by `memsim probe --live --record`. A rule that was found
to hold counts as measured; one that was found not to hold is dropped.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from memsim.arch.chip import MEASURED, Arch, Rule
from memsim.data import data_folder
from memsim.errors import MemsimError
from memsim.files import read_json

PATTERN = "*/rules*.json"
#: (space, op, width) -> whether the rule held, and on what.
Findings = dict[tuple[str, str, int], tuple[bool, str]]


def with_contributed(chip: Arch, folder: Path | None = None) -> Arch:
    """The chip with the findings of the recordings in `folder` (default: the recordings that ship).

    Raises:
        MemsimError: a file there is not a record of rules.
    """
    found = _findings(folder or data_folder("traces")).get(chip.name, {})
    if not found:
        return chip
    return replace(chip, rules=tuple(rule for old in chip.rules for rule in _as_found(old, found)))


def _as_found(rule: Rule, found: Findings) -> list[Rule]:
    """The rule split by what is known of each width; widths for which it does not hold are dropped."""
    untouched = tuple(width for width in rule.widths if (rule.space, rule.op, width) not in found)
    held = [
        replace(rule, widths=(width,), where=where, basis=MEASURED)
        for width in rule.widths
        for holds, where in [found.get((rule.space, rule.op, width), (False, ""))]
        if holds
    ]
    return [replace(rule, widths=untouched), *held] if untouched else held


@lru_cache(maxsize=4)
def _findings(folder: Path) -> dict[str, Findings]:
    """The findings of a folder's recordings by chip; a later file overrides an earlier one."""
    by_chip: dict[str, Findings] = {}
    for path in sorted(folder.glob(PATTERN)):
        try:
            record = read_json(path, "the record of rules")
            chip = by_chip.setdefault(str(record["arch"]), {})
            for rule in record["rules"]:
                key = str(rule["space"]), str(rule["op"]), int(rule["width"])
                chip[key] = bool(rule["holds"]), f"{record['gpu']}, {rule['compared']:,} figures"
        except (OSError, KeyError, TypeError, ValueError) as problem:
            raise MemsimError(f"this is not a record of rules: {problem}", file=str(path)) from None
    return by_chip
