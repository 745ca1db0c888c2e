"""The variants of a sweep: every combination of the values that texts stand for.

Texts are such as `0..8`, `0..64..8`, `16,16|32,32`, and names of the catalogue with `*`. A variant has a
`Job`, the values that distinguish it, and a key of everything that determines its counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from hashlib import sha256
from itertools import product
from math import prod
from typing import Any

from memsim.api.kernel_file import KernelFile
from memsim.errors import MemsimError
from memsim.files import file_exists
from memsim.job import Job
from memsim.sweep.results import KEY, NAMES
from memsim.targets.cache import key_before, model_version
from memsim.targets.offers import Said, Spell
from memsim.targets.target import catalogue, is_file, read_job

RANGE = re.compile(r"(-?\d{1,18})\.\.(-?\d{1,18})(?:\.\.(\d{1,18}))?")
BETWEEN = "|"
#: Keys whose texts are extents of a launch, and those whose text is one integer.
EXTENTS, INTEGERS = ("grid", "block"), ("shared_bytes", "blocks", "max_steps")
#: Keys whose texts change the amount of work.
WORK = ("size", "grid", "blocks", "args")
#: More variants than this are probably a mistake in a range, and so are more values of a text.
MOST, MOST_VALUES = 100_000, 1 << 20


@dataclass(frozen=True)
class Variant:
    """One combination. values: by what varies, in the order of the command line. work: the values that change
    the amount of work. key: of everything that determines its counts.
    """

    values: Mapping[str, str]
    work: tuple[str, ...]
    job: Job
    key: str


@dataclass(frozen=True, slots=True)
class NamedValue:
    """An option of the command line: its label, its key, and the values that its text stands for.

    key: of `read_job`. name: of a macro or parameter, for `options`.
    """

    label: str
    key: str
    values: tuple[str, ...]
    name: str = ""


def alternatives(text: str) -> tuple[str, ...]:
    """The values of a text: `0..8` nine integers, `0..8..4` three, `a|b` two texts; else itself.

    Raises:
        MemsimError: an empty range, or one of too many values.
    """
    found: list[str] = []
    for part in text.split(BETWEEN):
        match = RANGE.fullmatch(part.strip())
        if match is None:
            found.append(part.strip() if BETWEEN in text else part)
            continue
        first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
        numbers = range(first, last + 1, step) if step else range(0)
        if not numbers:
            raise MemsimError(f"{part} is an empty range", hint="FIRST..LAST or FIRST..LAST..STEP")
        if len(numbers) > MOST_VALUES:
            raise MemsimError(
                f"{part} are {len(numbers):,} values; at most {MOST_VALUES:,} are tried",
                hint="use a step, as 0..64..8",
            )
        found += map(str, numbers)
    return tuple(dict.fromkeys(found))


def targets_of(text: str) -> tuple[str, ...]:
    """The targets that a text names: files and names, and patterns expanded from the catalogue.

    Raises:
        MemsimError: a pattern without a match.
    """
    found: list[str] = []
    for part in text.split(BETWEEN):
        if is_file(part) or not set("*?[") & set(part):
            found.append(part)
            continue
        names = [name for name in catalogue() if fnmatchcase(name, part)]
        if not names:
            raise MemsimError(f"no kernel of the catalogue is called {part!r}", hint="memsim list shows them")
        found += names
    return tuple(dict.fromkeys(found))


def variants(
    target: str,
    texts: Mapping[str, str | Sequence[str]],
    spell: Spell = str,
    *,
    one_will_do: bool = False,
    timed: bool = False,
) -> list[Variant]:
    """Every combination.

    target: as for every verb; also several, `a|b`, and patterns of the catalogue. texts: the launch, by the
    keys of `read_job`; `args` and `options` are lists, and values in `-DNAME=VALUE` may stand for several.
    spell: how the user spells a key. one_will_do: a single combination is allowed. timed: their time is
    estimated, too.

    Raises:
        MemsimError: nothing varies, there are too many combinations, or an option does not apply to a target.
    """
    choices = [NamedValue("target", "target", targets_of(target)), *_choices(texts)]
    count = prod(len(choice.values) for choice in choices)
    if count > MOST:
        raise MemsimError(
            f"{count:,} variants are too many", hint=f"at most {MOST:,}; use a step, as 0..64..8"
        )
    if count == 1 and not one_will_do:
        hint = "such as -D PAD=0..8, --block '16,16|32,32' or 'transpose_*'"
        raise MemsimError("nothing varies, so there is nothing to sweep", hint=hint)
    found = []
    for combination in product(*(choice.values for choice in choices)):
        name, said = _said(choices, combination)
        job = read_job(name, said, where="--arg", spell=spell, verb="sweep")
        chosen = list(zip(choices, combination))
        values = {choice.label: value for choice, value in chosen if len(choice.values) > 1}
        work = tuple(value for choice, value in chosen if choice.key in WORK)
        found.append(Variant(values, work, job, _key(name, said, job, timed)))
    return found


def _choices(texts: Mapping[str, str | Sequence[str]]) -> list[NamedValue]:
    found, columns = [], {"target", *texts, *NAMES, KEY}
    for key, value in texts.items():
        if isinstance(value, str):
            found.append(NamedValue(key, key, alternatives(value)))
        elif key == "options":
            found += [_option(text, columns) for text in value]
        else:
            found += [NamedValue(f"arg {i}", key, alternatives(text)) for i, text in enumerate(value, 1)]
    return found


def _option(text: str, columns: Collection[str]) -> NamedValue:
    """An option for the compiler. columns: of a table of the sweep, whose names no macro may have."""
    name, equals, value = text.partition("=")
    macro = name.removeprefix("-D")
    if macro != name and equals:
        return NamedValue(name if macro in columns else macro, "options", alternatives(value), f"{name}=")
    return NamedValue(text, "options", (text,))


def _said(choices: Sequence[NamedValue], combination: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The target and its options, as `read_job` takes them."""
    target, said = "", dict[str, Any]()
    for choice, value in zip(choices, combination, strict=True):
        if choice.key == "target":
            target = value
        elif choice.key in ("args", "options"):
            said.setdefault(choice.key, []).append(choice.name + value)
        else:
            said[choice.key] = read_text(choice.key, value)
    return target, said


def _key(target: str, said: Said, job: Job, timed: bool) -> str:
    """A key of everything that determines the counts: memsim itself, the launch, and what is read.

    That is the file itself, and as far as it is known before the kernel is compiled what it includes, and the
    files of arrays.
    """
    path = job.kernel.folder / job.kernel.file
    content = sha256(path.read_bytes()).hexdigest() if file_exists(path) else ""
    if isinstance(job.kernel, KernelFile):  # nvcc reads what NVRTC does, and the system's headers
        job = replace(job, kernel=replace(job.kernel, compiler=None))
    parts = [model_version(), target, dict(said), content, key_before(job), timed]
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def read_text(key: str, text: Any) -> Any:
    """The value of a key of `read_job`, such as `8,8` of a block; lists of texts as they are.

    Raises:
        MemsimError: it is none.
    """
    if key not in (*EXTENTS, *INTEGERS):
        return text
    try:
        numbers = tuple(int(item) for item in text.split(","))
    except ValueError:
        raise MemsimError(f"{key} {text!r} is not a list of integers such as 8,8") from None
    return numbers if key in EXTENTS else numbers[0]
