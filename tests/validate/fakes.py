"""Nsight Compute's reader, made of recorded values: `data/two_transposes.json` is a real report
of an H100.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from memsim.validate.profiler import PASSES, CodeProfile

DATA = Path(__file__).parent / "data" / "two_transposes.json"


class Addresses:
    def __init__(self, addresses: list[int]) -> None:
        self.addresses = addresses

    def as_uint64(self, index: int) -> int:
        return self.addresses[index]


@dataclass
class Metric:
    number: float
    its_unit: str
    instances: dict[int, float]

    def as_double(self, index: int | None = None) -> float:
        return float(self.number if index is None else list(self.instances.values())[index])

    def unit(self) -> str:
        return self.its_unit

    def has_correlation_ids(self) -> bool:
        return bool(self.instances)

    def num_instances(self) -> int:
        return len(self.instances)

    def correlation_ids(self) -> Addresses:
        return Addresses(list(self.instances))


@dataclass
class Info:
    file: str
    number: int

    def file_name(self) -> str:
        return self.file

    def line(self) -> int:
        return self.number


class Action:
    NameBase_MANGLED = 2

    def __init__(self, recorded: dict[str, Any]) -> None:
        self.recorded = recorded
        self.rows = {row["pc"]: row for row in recorded["rows"]}

    def name(self, base: int = 0) -> str:
        return str(self.recorded["name"])

    def metric_names(self) -> list[str]:
        return list(self.recorded["metrics"])

    def metric_by_name(self, name: str) -> Metric:
        value, unit = self.recorded["metrics"][name]
        return Metric(value, unit, {pc: row[name] for pc, row in self.rows.items() if name in row})

    def source_info(self, pc: int) -> Info | None:
        row = self.rows[pc]
        return Info(row["file"], row["line"]) if row["line"] else None

    def sass_by_pc(self, pc: int) -> str:
        return str(self.rows[pc]["sass"])


class Scope:
    def __init__(self, actions: list[Action]) -> None:
        self.actions = actions

    def num_actions(self) -> int:
        return len(self.actions)

    def action_by_idx(self, index: int) -> Action:
        return self.actions[index]


class Report:
    def __init__(self, actions: list[Action]) -> None:
        self.scope = Scope(actions)

    def num_ranges(self) -> int:
        return 1

    def range_by_idx(self, index: int) -> Scope:
        return self.scope


def load_report(path: str) -> Report:
    return Report([Action(recorded) for recorded in json.loads(DATA.read_text("utf-8"))])


class ProfileAction(Action):
    """A launch as a `CodeProfile` has it."""

    def __init__(self, profile: CodeProfile, start: int = 0x7F00_0000_0000) -> None:
        metrics: dict[str, Any] = {name: (one.value, one.unit) for name, one in profile.counters.items()}
        metrics |= {
            name: (sum(value or 0 for value in column), "") for name, column in profile.figures.items()
        }
        metrics[PASSES] = profile.passes, ""
        for what, shape in (("grid_dim", profile.grid), ("block_dim", profile.block)):
            metrics |= {f"launch__{what}_{axis}": (extent, "") for axis, extent in zip("xyz", shape or ())}
        rows = [
            {"pc": start + address, "sass": sass, "file": "", "line": 0}
            | {name: column[number] for name, column in profile.figures.items() if column[number] is not None}
            for number, (address, sass) in enumerate(zip(profile.addresses, profile.sass))
        ]
        super().__init__({"name": profile.kernel, "metrics": metrics, "rows": rows})


def load_profiles(path: str) -> Report:
    """A report made of profiles that a test wrote as JSON."""
    profiles = msgspec.json.decode(Path(path).read_bytes(), type=list[CodeProfile])
    return Report(list(map(ProfileAction, profiles)))
