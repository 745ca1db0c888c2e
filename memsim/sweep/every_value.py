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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from memsim.errors import MemsimError
from memsim.source.expressions import evaluate
from memsim.sweep.analyze_variants import count_job
from memsim.sweep.variants import alternatives, read_text
from memsim.targets.target import read_job

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
    said: Mapping[str, Any],
    names: Mapping[str, str],
    progress: Callable[[float], None] | None = None,
) -> EveryValue:
    """Replays a target at values of names.

    Args:
        target: as for every verb. said: as `read_job` takes it; `{N * 4}` in a text is an expression of the
            names, and a name that is in no text is a macro, or a parameter of a Python function.
        names: the values of each, as texts such as `1..8192` or `16|32`.

    Raises:
        MemsimError: a text that stands for no integers, or an expression of other names.
    """
    choices = [_integers(name, text) for name, text in names.items()]
    asked = 1
    for values in choices:
        asked *= len(values)
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
    return EveryValue(whole, asked, found.replayed, 0, differing, ranged)


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


def _at(target: str, said: Mapping[str, Any], values: Mapping[str, int]) -> AtValue:
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


def _filled(text: Any, values: Mapping[str, int], used: set[str]) -> Any:
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
