"""What a sweep found, and the file that keeps it.

In: variants and their analyses. Out: `Result`s, a CSV file of them, and which are on the frontier. A file
that is there already is gone on with: what it has is not analyzed again.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from memsim.analysis import Analysis
from memsim.errors import MemsimError
from memsim.sweep.variants import Variant
from memsim.targets.run import analyze_all

KEY = "key"
#: Labels whose values change how much there is to do.
WORK = ("size", "grid", "blocks", "arg ")


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of one variant, sums over its accesses; `max_ways` the worst. None: not known, or no such.

    shared_bytes: that a block needs. error: why there are no counts, "" if there are.
    """

    wavefronts: int | None = None
    conflicts: int | None = None
    ideal_wavefronts: int | None = None
    max_ways: int | None = None
    sectors: int | None = None
    ideal_sectors: int | None = None
    shared_bytes: int | None = None
    error: str = ""


NAMES = tuple(field.name for field in fields(Counts))


@dataclass(frozen=True, slots=True)
class Result:
    """A variant's values and counts. key: as `Variant`'s."""

    values: Mapping[str, str]
    counts: Counts
    key: str


def counts_of(analysis: Analysis) -> Counts:
    """The counts of an analysis."""
    trace, sites = analysis.trace, analysis.sites
    lost = [site.unresolved for site in sites if site.unresolved is not None]
    ends = [first + size for _, space, first, size in trace.arrays if space == "shared"]
    needed = max([trace.launch.shared_bytes, *ends])
    if lost:
        return Counts(shared_bytes=needed, error=f"not all could be analyzed: {lost[0]}")
    known = {
        name: [count for site in sites if (count := getattr(site, name)) is not None] for name in NAMES[:6]
    }
    sums: dict[str, Any] = {name: sum(counts) if counts else None for name, counts in known.items()}
    sums["max_ways"] = max(known["max_ways"], default=None)
    return Counts(**sums, shared_bytes=needed)


def sweep(
    variants: Sequence[Variant],
    path: Path | None,
    jobs: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> list[Result]:
    """The results of all variants, in their order.

    Args:
        path: the file of results, None for none. Each result is in it as soon as it is known.
        jobs: processes; as many as there are processors if None.

    Raises:
        MemsimError: the file is of another sweep, or cannot be read or written.
    """
    labels = tuple(variants[0].values)
    kept = {} if path is None else {result.key: result for result in read_results(path, labels)}
    missing = [variant for variant in variants if variant.key not in kept]
    found = {variant.key: kept[variant.key] for variant in variants if variant.key in kept}
    if path is not None:
        others = _others(kept.values(), variants)
        write_results(path, [*others, *found.values()], labels)
    for number, measured in enumerate(analyze_all([each.job for each in missing], None, jobs), 1):
        variant = missing[number - 1]
        counts = (
            Counts(error=str(measured.error).partition("\n")[0])
            if measured.analysis is None
            else counts_of(measured.analysis)
        )
        result = found[variant.key] = Result(variant.values, counts, variant.key)
        if path is not None:
            _append(path, result)
        if progress is not None:
            progress(number / len(missing))
    return [found[variant.key] for variant in variants]


def _others(kept: Iterable[Result], variants: Sequence[Variant]) -> list[Result]:
    """Kept results of other values; those of these values that were made of something else are stale."""
    own = {tuple(variant.values.items()) for variant in variants}
    return [result for result in kept if tuple(result.values.items()) not in own]


def read_results(path: Path, labels: Sequence[str]) -> list[Result]:
    """The results in a file, none if there is no file. A last line that was cut short is left out.

    Raises:
        MemsimError: it is no file of a sweep over these values, or cannot be read.
    """
    if not path.is_file():
        return []
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MemsimError(f"cannot read the results: {error}", file=str(path)) from None
    whole = text[: text.rfind("\n") + 1]
    rows = list(csv.reader(whole.splitlines()))
    header = [*labels, *NAMES, KEY]
    if rows[:1] != [header]:
        raise MemsimError(
            "this is no file of a sweep over the same values",
            file=str(path),
            hint=f"choose another name; its columns would be {', '.join(header)}",
        )
    return [_result(row, labels, path) for row in rows[1:]]


def _result(row: Sequence[str], labels: Sequence[str], path: Path) -> Result:
    if len(row) != len(labels) + len(NAMES) + 1:
        raise MemsimError(f"a row has {len(row)} columns: {','.join(row)}", file=str(path))
    cells = dict(zip(NAMES, row[len(labels) :]))
    error = cells.pop("error")
    try:
        counts = {name: int(cell) if cell else None for name, cell in cells.items()}
    except ValueError as problem:
        raise MemsimError(f"a count is no number: {problem}", file=str(path)) from None
    return Result(dict(zip(labels, row)), Counts(**counts, error=error), row[-1])


def write_results(path: Path, results: Sequence[Result], labels: Sequence[str]) -> None:
    """Writes the file anew, whole or not at all.

    Raises:
        MemsimError: it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*labels, *NAMES, KEY])
            writer.writerows(map(_row, results))
        temporary.replace(path)
    except OSError as error:
        raise MemsimError(f"cannot write the results: {error.strerror}", file=str(path)) from None
    finally:
        temporary.unlink(missing_ok=True)


def _append(path: Path, result: Result) -> None:
    try:
        with path.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(_row(result))
    except OSError as error:
        raise MemsimError(f"cannot write the results: {error.strerror}", file=str(path)) from None


def _row(result: Result) -> list[object]:
    counts = (getattr(result.counts, name) for name in NAMES)
    return [*result.values.values(), *("" if count is None else count for count in counts), result.key]


def cost_name(results: Sequence[Result]) -> str:
    """What the results are compared by: shared wavefronts, or sectors where nothing touches shared memory."""
    return "wavefronts" if any(result.counts.wavefronts for result in results) else "sectors"


def frontier(results: Sequence[Result]) -> list[int]:
    """The results that no other of the same work beats: indices, group by group, by bytes.

    None costs less in as few bytes of shared memory, or as much in fewer.
    """
    name = cost_name(results)
    return [i for group in groups(results) for i in _frontier(results, group, name)]


def groups(results: Sequence[Result]) -> list[list[int]]:
    """Which results are of the same work (size, grid, arguments). Of other work, less is not better."""
    found: dict[tuple[str, ...], list[int]] = {}
    for i, result in enumerate(results):
        key = tuple(value for label, value in result.values.items() if label.startswith(WORK))
        found.setdefault(key, []).append(i)
    return list(found.values())


def _frontier(results: Sequence[Result], group: Sequence[int], name: str) -> list[int]:
    known = [
        (results[i].counts.shared_bytes or 0, cost, i)
        for i in group
        if (cost := getattr(results[i].counts, name)) is not None
    ]
    found: list[int] = []
    best: tuple[int, int] | None = None  # (cost, bytes) of the last point
    for needed, cost, i in sorted(known):
        if best is None or cost < best[0] or (cost, needed) == best:
            found.append(i)
            best = cost, needed
    return found
