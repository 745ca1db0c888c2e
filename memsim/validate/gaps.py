"""Differences that are known, each with its reason: `traces/known_gaps.toml`.

In: the file, and a comparison. Out: which differences nobody has explained, and which explanations have
nothing left to explain. Both are faults. Left out on purpose: how a difference is found.

    [[gap]]
    kernels = ["guide_v4"]                             # one or more
    sizes = ["331,269,147"]                            # where it was seen and must be; all, if left out
    where = ["kernels/guide_v4.cu:44 shared load"]     # source lines and accesses, or names of metrics
    change = "merged"                                  # what ptxas did, as it was proven; or "unknown"
    reason = "..."                                     # why
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from memsim.errors import MemsimError
from memsim.validate.compare import Comparison

FILE = "known_gaps.toml"
NEEDED = {"kernels", "where", "change", "reason"}
OPTIONAL = {"sizes"}


@dataclass(frozen=True, slots=True)
class Gap:
    """A difference in every one of `kernels` and `where`; at other sizes than `sizes` it may be absent."""

    kernels: tuple[str, ...]
    sizes: tuple[str, ...]
    where: tuple[str, ...]
    change: str
    reason: str

    def was_seen(self, comparison: Comparison) -> bool:
        """Whether the difference was seen in this launch, and so must still be there."""
        size = ",".join(map(str, comparison.recording.size))
        return comparison.recording.kernel in self.kernels and (not self.sizes or size in self.sizes)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the known gaps say of a comparison.

    known: where -> reason. unexplained: where -> what changed, not in the file. gone: where the file
    has a difference and there is none, or another one.
    """

    known: dict[str, str]
    unexplained: dict[str, str]
    gone: dict[str, str]

    @property
    def passed(self) -> bool:
        """Nothing is unexplained and nothing is gone."""
        return not self.unexplained and not self.gone


def judge(comparison: Comparison, gaps: Iterable[Gap]) -> Judgement:
    """Sets the differences of a launch beside the known ones."""
    differences = comparison.differences
    of_kernel = [gap for gap in gaps if comparison.recording.kernel in gap.kernels]
    reasons = {(where, gap.change): gap.reason for gap in of_kernel for where in gap.where}
    seen = [(where, gap.change) for gap in of_kernel if gap.was_seen(comparison) for where in gap.where]
    known = {where: reasons[where, what] for where, what in differences.items() if (where, what) in reasons}
    return Judgement(
        known=known,
        unexplained={where: what for where, what in differences.items() if where not in known},
        gone={where: what for where, what in seen if differences.get(where) != what},
    )


def read_gaps(path: Path) -> list[Gap]:
    """The gaps in a file.

    Raises:
        MemsimError: no such file, not TOML, or an entry that is wrong.
    """
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise MemsimError(f"cannot read the known gaps: {error.strerror}", file=str(path)) from None
    except tomllib.TOMLDecodeError as error:
        raise MemsimError(f"not TOML: {error}", file=str(path)) from None
    if set(table) - {"gap"}:
        raise MemsimError(f"only [[gap]] tables are known, not {', '.join(table)}", file=str(path))
    return [_gap(path, number, entry) for number, entry in enumerate(table.get("gap", []), 1)]


def _gap(path: Path, number: int, entry: dict[str, Any]) -> Gap:
    keys = set(entry)
    if keys - NEEDED - OPTIONAL or NEEDED - keys:
        raise MemsimError(
            f"gap {number} has {', '.join(sorted(keys))}",
            file=str(path),
            hint=f"needed: {', '.join(sorted(NEEDED))}; possible: {', '.join(sorted(OPTIONAL))}",
        )
    lists = {name: entry.get(name, []) for name in ("kernels", "sizes", "where")}
    for name, items in lists.items():
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise MemsimError(f"gap {number}: {name} must be a list of texts", file=str(path))
    for name in ("change", "reason"):
        if not isinstance(entry[name], str) or not entry[name].strip():
            raise MemsimError(f"gap {number}: {name} must be a text", file=str(path))
    return Gap(
        **{name: tuple(items) for name, items in lists.items()},
        change=entry["change"],
        reason=entry["reason"],
    )
