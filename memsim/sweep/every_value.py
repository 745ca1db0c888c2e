"""Whether a kernel has no bank conflict at every value of some names: all of them replayed, or by residues.

Up to `MOST` combinations are all replayed, and the answer is exact. Of more, a range counts by residues: in
index math of sums, products with constants and XORs, a stride that grows by 128 bytes leaves every bank as it
is, so that ways repeat every `PERIODS` values. Each residue is replayed at two values that differ modulo
twice the period, and others are drawn at random; where one differs from its residue, the next longer period
is taken. So the answer for a range is checked and not proven, and says how many values were replayed.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Annotated, Any, TextIO

from msgspec import Meta

from memsim.document import Document, Line, Texts
from memsim.errors import MemsimError
from memsim.launch import Natural
from memsim.source.expressions import evaluate
from memsim.sweep.analyze_variants import count_job
from memsim.sweep.variants import alternatives, read_text
from memsim.targets.offers import Said
from memsim.targets.target import read_job
from memsim.views.labels import count, ranges
from memsim.views.screen import Column, Row, Screen

MOST = 64  # combinations that are all replayed
#: Values after which strides of 4, 2 and 1 byte have grown by 128 bytes.
PERIODS = (32, 64, 128)
CHECKS = 24  # values at random beside those of the residues
_PLACE = re.compile(r"\{([^{}]*)\}")

Values = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AtValue:
    """One replay. ways: of its worst shared access, 1 without conflicts; None: there is none, see error."""

    values: Values
    ways: int | None
    error: str = ""

    @property
    def is_free(self) -> bool:
        """Whether it has no conflict; True, too, where it could not be analyzed."""
        return self.ways is None or self.ways <= 1


@dataclass(frozen=True)
class EveryValue:
    """What holds for the names. asked: how many combinations. replayed: in the order of their values.

    period: by how many values residues of a range repeat; 0 if all combinations were replayed, and if none of
    the periods holds, with `contradicted`: two values of one residue. ranges: which names count by residues.
    """

    names: tuple[str, ...]
    asked: int
    replayed: tuple[AtValue, ...]
    period: int = 0
    contradicted: tuple[AtValue, AtValue] | None = None
    ranges: tuple[bool, ...] = field(default=())

    @property
    def holds(self) -> bool:
        """Whether every replay is free of conflicts, and there is one at every value that was tried."""
        return all(each.is_free and each.ways is not None for each in self.replayed)

    @property
    def failed(self) -> list[AtValue]:
        """Where the kernel could not be analyzed."""
        return [each for each in self.replayed if each.ways is None]

    @property
    def is_exact(self) -> bool:
        """Whether everything that was asked for was replayed."""
        return len(self.replayed) == self.asked

    def residue(self, values: Values) -> Values:
        """The class of a combination."""
        return tuple(
            value % self.period if ranged and self.period else value
            for value, ranged in zip(values, self.ranges, strict=True)
        )


def prove(
    target: str,
    said: Said,
    names: Mapping[str, str],
    progress: Callable[[float], None] | None = None,
) -> EveryValue:
    """Replays a target at values of names.

    target: as for every verb. said: as `read_job` takes it; `{N * 4}` in a text is an expression of the
    names, and a name that is in no text is a macro, or a parameter of a Python function. names: the values of
    each, as texts such as `1..8192` or `16|32`.

    Raises:
        MemsimError: a text that stands for no integers, or an expression of other names.
    """
    choices = [_integers(name, text) for name, text in names.items()]
    asked = prod(map(len, choices))
    done: dict[Values, AtValue] = {}

    def replay(wanted: Iterable[Values]) -> None:
        new = [values for values in dict.fromkeys(wanted) if values not in done]
        for number, values in enumerate(new, 1):
            done[values] = _at(target, said, dict(zip(names, values)))
            if progress is not None:
                progress(number / len(new))

    whole = tuple(names)
    if asked <= MOST:
        replay(product(*choices))
        return EveryValue(whole, asked, tuple(done.values()))
    draw = random.Random(0)
    ranged = tuple(len(values) > PERIODS[0] for values in choices)
    found = EveryValue(whole, asked, (), PERIODS[0], ranges=ranged)
    for period in PERIODS:
        each_residue = [
            _of_residues(values, 2 * period, draw) if is_range else values
            for values, is_range in zip(choices, ranged)
        ]
        replay(product(*each_residue))
        replay(tuple(draw.choice(values) for values in choices) for _ in range(CHECKS))
        found = EveryValue(whole, asked, tuple(done[key] for key in sorted(done)), period, None, ranged)
        differing = _differing(found)
        if differing is None:
            return found
    return replace(found, period=0, contradicted=differing)


def _of_residues(values: Sequence[int], period: int, draw: random.Random) -> list[int]:
    """A value of each residue, drawn from all of them."""
    classes: dict[int, list[int]] = {}
    for value in values:
        classes.setdefault(value % period, []).append(value)
    return [draw.choice(some) for some in classes.values()]


def _differing(found: EveryValue) -> tuple[AtValue, AtValue] | None:
    """Two replays of one residue that differ in their ways."""
    first: dict[Values, AtValue] = {}
    for each in found.replayed:
        if each.ways is not None:
            alike = first.setdefault(found.residue(each.values), each)
            if alike.ways != each.ways:
                return alike, each
    return None


def _at(target: str, said: Said, values: Mapping[str, int]) -> AtValue:
    used: set[str] = set()
    filled = {key: _filled(value, values, used) for key, value in said.items()}
    options = [f"-D{name}={value}" for name, value in values.items() if name not in used]
    if options:
        filled["options"] = [*filled.get("options", ()), *options]
    try:
        given = {key: read_text(key, value) for key, value in filled.items()}
        counts = count_job(read_job(target, given, where="--arg"))
    except MemsimError as error:
        return AtValue(tuple(values.values()), None, error.message)
    return AtValue(tuple(values.values()), None if counts.error else counts.max_ways or 1, counts.error)


def _filled(text: object, values: Mapping[str, int], used: set[str]) -> Any:
    """A text, or each of several, with the values of the expressions in braces."""
    if isinstance(text, (list, tuple)):
        return [_filled(each, values, used) for each in text]
    if not isinstance(text, str):
        return text

    def value(match: re.Match[str]) -> str:
        found = evaluate(match[1], values)
        if not isinstance(found, int):
            raise MemsimError(f"{match[0]} is no integer of {', '.join(values)}")
        used.update(name for name in values if re.search(rf"\b{name}\b", match[1]))
        return str(found)

    return _PLACE.sub(value, text)


def _integers(name: str, text: str) -> list[int]:
    try:
        return [int(each) for each in alternatives(text)]
    except ValueError:
        raise MemsimError(
            f"the values of {name} are no integers: {text!r}", hint="such as 1..8192, 0..64..8 or 16|32"
        ) from None


MOST_ROWS = 24  # of a table


def write(target: str, found: EveryValue, stream: TextIO) -> None:
    """Prints the answer on `stream`."""
    screen = Screen(stream)
    screen.say(f"{target}: {headline(found)}", "bold")
    wrong = [each for each in found.replayed if not each.is_free]
    if found.is_exact and not found.holds:
        screen.say()
        columns = (*map(Column, found.names), Column("ways", right=True), Column("why not"))
        screen.table(columns, [Row(_cells(each)) for each in found.replayed[:MOST_ROWS]])
        if len(found.replayed) > MOST_ROWS:
            screen.say(f"and {count(len(found.replayed) - MOST_ROWS, 'more row')}")
        return
    for line in _classes(found, wrong) if wrong else ():
        screen.say(line)
    if found.failed:
        first = found.failed[0]
        times = count(len(found.failed), "value")
        screen.say(f"At {times} it could not be analyzed, as at {_place(found, first)}: {first.error}")
    if not found.is_exact and found.period:
        screen.say(
            f"Each residue modulo {found.period} was replayed, at {len(found.replayed):,} of {found.asked:,} "
            "values drawn at random, of which none differs from its residue. The others were not replayed."
        )
    elif not found.is_exact:
        screen.say(f"{len(found.replayed):,} of {found.asked:,} values were replayed; the others were not.")


def headline(found: EveryValue) -> str:
    """The answer in a line."""
    names = " and ".join(found.names)
    wrong = sum(not each.is_free for each in found.replayed)
    if wrong and found.is_exact:
        return f"not conflict-free at {wrong:,} of {count(found.asked, 'value')} of {names}"
    if wrong and found.period:
        return f"not conflict-free for every {names}: that depends on its residue modulo {found.period}"
    if wrong:
        return f"not conflict-free for every {names}, and not by residues"
    where = " at which it could be analyzed" if found.failed else ""
    if found.is_exact:
        return f"conflict-free at each of the {count(found.asked, 'value')} of {names}{where}, all replayed"
    of = f"{len(found.replayed):,} of {found.asked:,}"
    return f"conflict-free at every value of {names} that was replayed{where}, {of}"


class EveryValueDocument(Document, frozen=True, kw_only=True):
    """Whether a kernel is free of bank conflicts at every value of some names."""

    target: str
    answer: Line
    names: Annotated[Texts, Meta(description="whose values are tried; values below have this order")]
    asked: Annotated[Natural, Meta(description="combinations of values that were asked about")]
    holds: Annotated[bool, Meta(description="every replay was possible and is free of conflicts")]
    is_exact: Annotated[bool, Meta(description="all were replayed; false: the others are not proven")]
    period: Annotated[Natural, Meta(description="by how many values residues repeat; 0: not by residues")]
    replayed: tuple[AtValue, ...]
    contradicted: Annotated[
        tuple[AtValue, AtValue] | None, Meta(description="two values of one residue that differ")
    ]


def prove_document(target: str, found: EveryValue) -> EveryValueDocument:
    """The answer as `memsim prove --json` prints it."""
    return EveryValueDocument.of(found, target=target, answer=headline(found))


def _place(found: EveryValue, each: AtValue) -> str:
    """`N = 64, BLOCK = 16`."""
    return ", ".join(f"{name} = {value}" for name, value in zip(found.names, each.values))


def _cells(each: AtValue) -> tuple[str, ...]:
    return (*map(str, each.values), "-" if each.ways is None else str(each.ways), each.error)


def _classes(found: EveryValue, wrong: list[AtValue]) -> Iterator[str]:
    """The residues with conflicts, by the ways of their worst access and the values of other names."""
    if found.contradicted is not None:
        one, two = (f"{_place(found, each)} ({each.ways}-way)" for each in found.contradicted)
        yield f"Of one residue, and different: {one} and {two}."
        return
    by_rest: dict[tuple[Values, int], set[int]] = defaultdict(set)
    place = found.ranges.index(True)
    for each in wrong:
        residue = found.residue(each.values)
        by_rest[(*residue[:place], *residue[place + 1 :]), each.ways or 0].add(residue[place])
    for (rest, ways), residues in sorted(by_rest.items()):
        others = [name for number, name in enumerate(found.names) if number != place]
        fixed = "".join(f", {name} = {value}" for name, value in zip(others, rest))
        yield f"  {found.names[place]} mod {found.period} = {ranges(sorted(residues))}{fixed}: {ways}-way"
