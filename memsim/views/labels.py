"""How reports name files, accesses, numbers and threads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import groupby, pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING

from memsim.arch.units import WARP
from memsim.launch import Launch, coordinates_of

if TYPE_CHECKING:
    from memsim.counts import SiteCounts


def access(site: SiteCounts) -> str:
    """`shared load 16 B`, `spill store 4 B`; no width where it is not known; `launch` where it is none."""
    if not site.op:
        return "launch"
    width = f" {site.width} B" if site.width else ""
    space = "spill" if site.is_spill else site.space
    return f"{space} {site.op.replace('_', '.')}{width}"


def lanes_of_warp_0(launch: Launch) -> str:
    """`(0..15,0..1,0)`: a range for each axis, or first and last thread where ranges would say too much."""
    x, y, _ = launch.block
    lanes = min(WARP, launch.threads)
    last = coordinates_of(lanes - 1, launch.block)
    spans = min(x, lanes), min(y, -(-lanes // x)), last[2] + 1
    if spans[0] * spans[1] * spans[2] != lanes:
        return f"(0,0,0) to {dim3(last)}, x first, then y"
    return "(" + ",".join("0" if n == 1 else f"0..{n - 1}" for n in spans) + ")"


def file_names(files: Iterable[str]) -> dict[str, str]:
    """Each file's last name, or the whole path where two files share it."""
    distinct = dict.fromkeys(files)
    names = Counter(PurePath(file).name for file in distinct)
    return {file: PurePath(file).name if names[PurePath(file).name] == 1 else file for file in distinct}


_PLACE = re.compile(r"(?<=\bat )(\S+):(\d+)")
#: Lines of one reason that are named.
FEW_LINES = 4


def at_all_places(reasons: Iterable[str]) -> Iterator[str]:
    """Reasons; those that differ only in lines as one: `a loop waits ... at f.cu:3, 5 and 9`."""
    alike: dict[str, list[list[tuple[str, str]]]] = {}
    for reason in reasons:
        alike.setdefault(_PLACE.sub("\0", reason), []).append(_PLACE.findall(reason))
    for words, places in alike.items():
        first, *others = words.split("\0")
        named = (_lines_by_file(column) for column in zip(*places))
        yield first + "".join(map("".join, zip(named, others)))


def _lines_by_file(places: Iterable[tuple[str, str]]) -> str:
    by_file: dict[str, dict[str, None]] = {}
    for file, line in places:
        by_file.setdefault(file, {})[line] = None
    return " and ".join(f"{file}:{_some_of(list(lines))}" for file, lines in by_file.items())


def _some_of(lines: Sequence[str]) -> str:
    if len(lines) > FEW_LINES:
        return f"{', '.join(lines[:FEW_LINES])} and {count(len(lines) - FEW_LINES, 'other line')}"
    *most, last = lines
    return f"{', '.join(most)} and {last}" if most else last


def number(count: int | None, unknown: str) -> str:
    return unknown if count is None else f"{count:,}"


def each(count: int | None, requests: int | None, unknown: str) -> str:
    """`count` for each request, to two decimals."""
    if count is None or not requests:
        return unknown
    return f"{count / requests:,.2f}".rstrip("0").rstrip(".")


def dim3(value: tuple[int, int, int]) -> str:
    return f"({value[0]},{value[1]},{value[2]})"


def count(number: int, what: str) -> str:
    """`1 bank`, `2 banks`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def ranges(numbers: Sequence[int]) -> str:
    """`0-15, 20` or `0, 2, ... 30` for ascending numbers."""
    steps = {after - before for before, after in pairwise(numbers)}
    if len(numbers) > 3 and len(steps) == 1 and steps != {1}:
        return f"{numbers[0]}, {numbers[1]}, ... {numbers[-1]}"
    # Of neighbours, each is as far from its place as the one before.
    runs = (list(run) for _, run in groupby(enumerate(numbers), lambda one: one[1] - one[0]))
    ends = ((run[0][1], run[-1][1]) for run in runs)
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in ends)


def lane_names(lanes: Sequence[int]) -> str:
    """`lane 3`, `lanes 0-15`."""
    return f"lane{'s' if len(lanes) > 1 else ''} {ranges(lanes)}"


def size(number: int) -> str:
    """`4 KiB`, `1.5 GiB`: bytes, to one decimal."""
    units = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    power = min(len(units) - 1, max(0, (number.bit_length() - 1) // 10))
    text = f"{number / 1024**power:,.1f}"
    return f"{text.removesuffix('.0')} {units[power]}"


def share(part: int, whole: int) -> str:
    """`3.7 %`: one decimal, and neither 0.0 nor 100.0 for what is only near."""
    if not whole:
        return "0 %"
    percent = f"{100 * part / whole:.1f}"
    if percent == "0.0" and part:
        return "< 0.1 %"
    if percent == "100.0":
        return "100 %" if part == whole else "> 99.9 %"
    return f"{percent} %"


def amount(value: Fraction | None, percent: bool = False) -> str:
    """`65,536`, `4.5`, `12.5 %`; `~` before what was rounded."""
    if value is None:
        return "-"
    text = f"{float(value):,.2f}".rstrip("0").rstrip(".")
    if value.denominator == 1:
        text = f"{int(value):,}"
    rounded = "" if Fraction(text.replace(",", "")) == value else "~"
    return f"{rounded}{text}{' %' if percent else ''}"
