"""The baseline: the counts of every access of every kernel, in one TOML file to commit.

It has a line for each access, so that a diff shows what changed. An access is identified by its statement and
its order: the file has no line numbers, so moving or breaking a line changes nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated

import msgspec

from memsim.analysis import Analysis, SiteCounts
from memsim.analysis.analysis import AnalyzedLaunch
from memsim.counts import FIELDS
from memsim.document import JsonObject
from memsim.errors import MemsimError, short_repr
from memsim.files import parse_toml
from memsim.guard.statement_rows import rows_by_statement
from memsim.launch import Launch, Natural

SCHEMA = 1
FILES = "files"  # the key whose keys are names of files
WRITE_IT = "memsim baseline rewrites it"

HEADER = f"""\
# What every memory access of every guarded kernel costs. Written by `memsim baseline`; commit it.
# `memsim check` compares with it. An access is known by its statement and its order, not by its line.
schema = {SCHEMA}
"""

ACCESS = re.compile(r"(shared|global|local|constant|texture) (\w+) ([0-9]{1,9}) B")


class BaselineRow(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An access in the file: its statement, what it accesses, and its counts, fields of `SiteCounts`; None is
    left out.
    """

    code: str
    access: Annotated[str, msgspec.Meta(pattern=f"^{ACCESS.pattern}$")]
    array: str
    instructions: Natural
    requests: Natural | None = None
    wavefronts: Natural | None = None
    conflicts: Natural | None = None
    max_ways: Natural | None = msgspec.field(name="ways", default=None)
    ideal_wavefronts: Natural | None = None
    sectors: Natural | None = None
    lines: Natural | None = None
    ideal_sectors: Natural | None = None
    unresolved: str | None = None


#: Key in the file -> field of `SiteCounts`, in the order of the file.
COUNTS = {
    key: name
    for key, name in zip(BaselineRow.__struct_encode_fields__, BaselineRow.__struct_fields__)
    if name not in ("code", "access", "array", "unresolved")
}


class Entry(msgspec.Struct, omit_defaults=True):
    """A kernel in the baseline, as the file has it.

    arguments: the kernel's arguments in a line; None if unknown. read: what was analyzed and which
    compiler made it; None if the trace does not say. files: for a compiled file its digest and
    those of its sources, by name; empty if it is older than a source. cycles: the lower bound of each unit;
    empty if it is an estimate. races: keys of those that are known. time: estimated cycles with the launch
    itself, if a budget asks for them.
    """

    launch: str
    arguments: str | None = None
    read: str | None = None
    files: dict[str, str] = {}
    cycles: dict[str, Natural] = {}
    races: list[str] = []
    time: Natural | None = None
    rows: list[BaselineRow] = msgspec.field(name="sites", default_factory=list)

    @property
    def sites(self) -> tuple[SiteCounts, ...]:
        """Its accesses; they have no file and line 0.

        Raises:
            ValueError: a count is missing.
        """
        return tuple(map(_site, self.rows))


class BaselineDocument(msgspec.Struct):
    """The file."""

    kernels: Annotated[dict[str, Entry], msgspec.Meta(min_length=1)]


def entry_of(analysis: Analysis, arguments: str | None = None) -> Entry:
    """The entry for an analysis."""
    origin = analysis.trace.origin
    files = dict(origin.files) if origin is not None and not origin.doubt else {}
    bound = analysis.bound
    certain = not bound.lacks and not bound.unknown
    cycles = dict(sorted((unit.key, unit.cycles) for unit in bound.units)) if certain else {}
    races = sorted({race.key for race in analysis.trace.races})
    time = None if analysis.estimate is None else analysis.estimate.elapsed
    rows, read = [*map(_row, rows_by_statement(analysis))], read_of(analysis)
    return Entry(launch_of(analysis), arguments, read, files, cycles, races, time, rows)


def read_of(analysis: Analysis) -> str | None:
    """What was analyzed and which compiler made it, in a line; None if the trace does not say."""
    origin = analysis.trace.origin
    return None if origin is None else str(origin)


def launch_of(analysis: Analysis) -> str:
    """The launch that the counts are for, in a line."""
    return describe_launch(analysis.trace.launch, analysis.trace.blocks_replayed, str(analysis.arch))


def describe_launch(launch: Launch | AnalyzedLaunch, replayed: int, arch: str) -> str:
    """A launch in a line; replayed: number of blocks; arch: the chip."""
    grid, block = ("x".join(map(str, extent)) for extent in (launch.grid, launch.block))
    return (
        f"grid {grid}, block {block}, {launch.shared_bytes} B dynamic shared memory, "
        f"{replayed} of {launch.blocks} blocks, {arch}"
    )


def render(entries: Mapping[str, Entry]) -> str:
    """The file's text, kernels by name."""
    return HEADER + "".join(_table(name, entries[name]) for name in sorted(entries))


def _table(name: str, entry: Entry) -> str:
    values = msgspec.to_builtins(entry)
    sites = "".join(f"  {_toml(row)},\n" for row in values.pop("sites", ()))
    keys = "".join(f"{key} = {_toml(value, key == FILES)}\n" for key, value in values.items())
    return f"\n[kernels.{_string(name)}]\n{keys}sites = [\n{sites}]\n"


def _row(site: SiteCounts) -> BaselineRow:
    counts = {name: getattr(site, name) for name in COUNTS.values()}
    access = f"{site.space} {site.op} {site.width} B"
    return BaselineRow(site.statement, access, site.array, **counts, unresolved=site.unresolved)


def _toml(value: str | int | list[str] | JsonObject, is_quoted: bool = False) -> str:
    """In one line. is_quoted: whether keys are, which may be no words."""
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_string, value))}]"
    pairs = ((_string(key) if is_quoted else key, _toml(one)) for key, one in value.items())
    return f"{{ {', '.join(f'{key} = {one}' for key, one in pairs)} }}"


def _string(text: str) -> str:
    """A TOML string: JSON's escapes are TOML's, except for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def parse(text: str, file: str) -> dict[str, Entry]:
    """The entries of a baseline's text; `file` is its name in errors.

    Raises:
        MemsimError: not a baseline, a damaged one, or one of another schema.
    """
    try:
        document = parse_toml(text)
    except (ValueError, RecursionError) as error:
        conflict = next(
            (n for n, line in enumerate(text.split("\n"), 1) if line.startswith("<<<<<<< ")), None
        )
        if conflict is not None:
            hint = "memsim baseline writes it anew, from the sources as they are now merged"
            raise MemsimError(
                "a merge conflict in the baseline", file=file, line=conflict, hint=hint
            ) from None
        raise MemsimError(f"the baseline is not TOML: {error}", file=file, hint=WRITE_IT) from None
    schema = document.get("schema")
    if schema != SCHEMA:
        raise MemsimError(
            f"the baseline has schema {short_repr(schema)}; this memsim reads schema {SCHEMA}",
            file=file,
            hint=WRITE_IT,
        )
    if not document.get("kernels"):
        raise MemsimError("the baseline has no kernels", file=file, hint=WRITE_IT)
    try:
        kernels = msgspec.convert(document, BaselineDocument).kernels
        for kernel in kernels.values():
            _ = kernel.sites  # all of their counts are there
        return kernels
    except (msgspec.ValidationError, ValueError) as error:
        raise MemsimError(f"the baseline is damaged: {error}", file=file, hint=WRITE_IT) from None


def _site(row: BaselineRow) -> SiteCounts:
    access = ACCESS.fullmatch(row.access)
    assert access is not None
    site = SiteCounts(
        file="",
        line=0,
        column=0,
        source=row.code,
        op=access[2],
        space=access[1],
        width=int(access[3]),
        array=row.array,
        unresolved=row.unresolved,
        **{name: getattr(row, name) for name in COUNTS.values()},
    )
    needed = FIELDS["global" if site.operation.remote else site.space]
    if site.unresolved is None and any(getattr(site, name) is None for name in needed):
        raise ValueError(f"counts of {short_repr(site.source)} are missing")
    return site
