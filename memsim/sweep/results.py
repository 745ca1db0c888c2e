"""Results of a sweep: the counts of each variant, the Pareto frontier, and the files that keep them.

Files are CSV, appended to with each result, or Parquet, rewritten every few seconds. One is complete after
every write; an incomplete last line of a CSV file is ignored. Parquet needs pyarrow, the extra `parquet`.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from io import StringIO, TextIOWrapper
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO, TypeAlias

from memsim.analysis import Analysis
from memsim.counts import sums_of_counts
from memsim.errors import MemsimError
from memsim.files import file_exists, open_replacement


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of one variant, summed over its accesses; `max_ways` is the worst. None: unknown or not
    applicable.

    shared_bytes: per block. elapsed: estimated cycles with the launch itself, if they were asked for. error:
    why there are no counts, "" if there are.
    """

    wavefronts: int | None = None
    conflicts: int | None = None
    ideal_wavefronts: int | None = None
    max_ways: int | None = None
    sectors: int | None = None
    ideal_sectors: int | None = None
    shared_bytes: int | None = None
    elapsed: int | None = None
    error: str = ""


NAMES = tuple(field.name for field in fields(Counts))
COUNTS = NAMES[:-1]


@dataclass(frozen=True, slots=True)
class VariantResult:
    """A variant's values and counts. key, work: as in `Variant`; no file has the work."""

    values: Mapping[str, str]
    counts: Counts
    key: str
    work: tuple[str, ...] = ()


def counts_of(analysis: Analysis) -> Counts:
    """The counts of an analysis."""
    trace, sites = analysis.trace, analysis.sites
    lost = [site.unresolved for site in sites if site.unresolved is not None]
    needed = max(trace.launch.shared_bytes, trace.shared_end)
    if lost:
        return Counts(shared_bytes=needed, error=f"not all could be analyzed: {lost[0]}")
    elapsed = None if analysis.estimate is None else analysis.estimate.elapsed
    summed: dict[str, Any] = {name: n for name, n in sums_of_counts(sites).items() if name in COUNTS}
    return Counts(**summed, shared_bytes=needed, elapsed=elapsed)


def cost_name(results: Sequence[VariantResult]) -> str:
    """What results are compared by: estimated time if it is known of all, else shared wavefronts, or sectors
    if there are no shared accesses.
    """
    counted = [result.counts for result in results if not result.counts.error]
    if counted and all(counts.elapsed is not None for counts in counted):
        return "elapsed"
    return "wavefronts" if any(result.counts.wavefronts for result in results) else "sectors"


def frontier(results: Sequence[VariantResult]) -> list[int]:
    """The Pareto-optimal results among those of the same work: indices, group by group, by bytes.

    No other costs less with as few bytes of shared memory, or as little with fewer.
    """
    name = cost_name(results)
    return [i for group in groups(results) for i in _frontier(results, group, name)]


def groups(results: Sequence[VariantResult]) -> list[list[int]]:
    """Results of the same work (size, grid, arguments), which are comparable."""
    found: dict[tuple[str, ...], list[int]] = {}
    for i, result in enumerate(results):
        found.setdefault(result.work, []).append(i)
    return list(found.values())


def _frontier(results: Sequence[VariantResult], group: Sequence[int], name: str) -> list[int]:
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


KEY = "key"
SAVE_EVERY = 5.0  # seconds

#: The names of the columns of a file, and its rows.
Table: TypeAlias = tuple[list[str], list[list[Any]]]


class Kept(ABC):
    """A results file. labels: what varies; its first columns."""

    def __init__(self, path: Path, labels: Sequence[str]) -> None:
        self.path, self.labels = path, tuple(labels)
        self.results: list[VariantResult] = []
        self.saved = monotonic()

    @property
    def header(self) -> list[str]:
        """The names of all columns."""
        return [*self.labels, *NAMES, KEY]

    def read(self) -> list[VariantResult]:
        """The results in the file, none if there is no file.

        Raises:
            MemsimError: not a file of a sweep over these values, or it cannot be read.
        """
        if not file_exists(self.path):
            return []
        try:
            header, rows = self._read()
        except (OSError, ValueError, csv.Error) as error:
            raise MemsimError(f"cannot read the results: {error}", file=str(self.path)) from None
        if header != self.header:
            raise MemsimError(
                "this is not a file of a sweep over the same values",
                file=str(self.path),
                hint=f"choose another name; its columns would be {', '.join(self.header)}",
            )
        return [self._result(row) for row in rows]

    def write(self, results: Iterable[VariantResult]) -> None:
        """Rewrite the file atomically.

        Raises:
            MemsimError: it cannot be written.
        """
        self.results = list(results)
        with open_replacement(self.path, "the results") as file:
            self._write(file)

    def add(self, result: VariantResult) -> None:
        """Add a result; the file is rewritten if that was not done for a while.

        Raises:
            MemsimError: it cannot be written.
        """
        self.results.append(result)
        if monotonic() - self.saved > SAVE_EVERY:
            self.close()

    def close(self) -> None:
        """Make sure that all results are written.

        Raises:
            MemsimError: they cannot be.
        """
        self.write(self.results)
        self.saved = monotonic()

    @abstractmethod
    def _read(self) -> Table:
        """All that the file has."""

    @abstractmethod
    def _write(self, file: BinaryIO) -> None:
        """Write all results."""

    def _result(self, row: Sequence[Any]) -> VariantResult:
        if len(row) != len(self.header):
            raise MemsimError(f"a row has {len(row)} columns: {','.join(map(str, row))}", file=str(self.path))
        cells = dict(zip(NAMES, row[len(self.labels) :]))
        try:
            counts = {name: None if cells[name] in ("", None) else int(cells[name]) for name in COUNTS}
        except ValueError as problem:
            raise MemsimError(f"a count is not a number: {problem}", file=str(self.path)) from None
        return VariantResult(dict(zip(self.labels, row)), Counts(**counts, error=cells["error"]), row[-1])

    def _row(self, result: VariantResult) -> list[Any]:
        return [*result.values.values(), *(getattr(result.counts, name) for name in NAMES), result.key]


class CsvFile(Kept):
    """Text, one line per result."""

    def add(self, result: VariantResult) -> None:
        """Append the result as a line.

        Raises:
            MemsimError: it cannot be written.
        """
        try:
            with self.path.open("a", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerow(self._row(result))
        except OSError as error:
            raise MemsimError(
                f"cannot write the results: {error.strerror or error}", file=str(self.path)
            ) from None

    def close(self) -> None:
        """Nothing to do: each result is already written."""

    def _read(self) -> Table:
        text = self.path.read_bytes().decode()
        rows = list(csv.reader(StringIO(text[: text.rfind("\n") + 1], newline="")))
        return (rows[0], [*rows[1:]]) if rows else ([], [])

    def _write(self, file: BinaryIO) -> None:
        text = TextIOWrapper(file, encoding="utf-8", newline="")
        csv.writer(text, lineterminator="\n").writerows([self.header, *map(self._row, self.results)])
        text.detach()  # flushes, and leaves the file open


class ParquetFile(Kept):
    """Columns of texts, and of nullable integers."""

    def _read(self) -> Table:
        table = _pyarrow().parquet.read_table(self.path)
        columns = [column.to_pylist() for column in table.columns]
        return list(table.column_names), [list(row) for row in zip(*columns)]

    def _write(self, file: BinaryIO) -> None:
        pyarrow = _pyarrow()
        columns = list(zip(*map(self._row, self.results))) or [()] * len(self.header)
        kinds = [pyarrow.int64() if name in COUNTS else pyarrow.string() for name in self.header]
        arrays = [pyarrow.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        pyarrow.parquet.write_table(pyarrow.table(arrays, names=self.header), file)


FORMATS: dict[str, type[Kept]] = {".csv": CsvFile, ".parquet": ParquetFile}


def kept_in(path: Path, labels: Sequence[str]) -> Kept:
    """The results file at a path.

    Raises:
        MemsimError: unknown suffix, or pyarrow is missing.
    """
    if path.suffix not in FORMATS:
        names = " or ".join(f"{path.stem}{suffix}" for suffix in FORMATS)
        raise MemsimError("the suffix is not that of a results file", file=str(path), hint=f"name it {names}")
    if path.suffix == ".parquet":
        _pyarrow()
    return FORMATS[path.suffix](path, labels)


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MemsimError("Parquet needs pyarrow", hint="pip install pyarrow, or use a .csv file") from None
    return pyarrow
