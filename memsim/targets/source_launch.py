"""Whether a target is still launched as its source launches it.

A target may say grid, block, shared memory, arguments and instance itself, beside a source whose `<<<>>>`
says them, too. If the source changes, such a target would check for ever what the program no longer does. So
the two are compared, as far as the source's are known. A target that means another launch says so:
`instead_of` has the source's launch from which it was derived, as `describe_offer` writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from memsim.api.kernel_file import KernelFile
from memsim.compile.cuda_source import read_launching_text
from memsim.compile.options import absolute_paths
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.source.elements import ElementType, element
from memsim.source.expressions import Number, evaluate
from memsim.source.kernels import KernelSource, kernels
from memsim.source.launches import LaunchSource, Size, launches
from memsim.source.text import split
from memsim.targets.offers import Offer, generic_name, offer_of

_ARRAY = re.compile(r"[a-z]+(\d+)(?:m\d\w*)?\[([\d, ]+)\](?:=.*)?")


@dataclass(frozen=True, slots=True)
class Followed:
    """stale: why the target is not what the source launches. unknown: why that could not be compared; ""
    where it was.
    """

    stale: MemsimError | None = None
    unknown: str = ""


def follow(job: Job, instead_of: str | None, let: Mapping[str, Number]) -> Followed:
    """Compares a target of a CUDA file with the launches of its kernel in the source.

    instead_of: the source's launch in place of which the target's is meant, if it says so. let: values of
    names that the source leaves open.

    Raises:
        MemsimError: the source cannot be read.
    """
    file = job.kernel
    assert isinstance(file, KernelFile)
    text = launching_text_of(file)
    kernel = kernel_of(text, file.name)
    made = [] if kernel is None else [one for one in launches(text) if one.plain == kernel.plain]
    if kernel is None or not made:
        error = MemsimError(
            f"instead_of names a launch, and the source has no launch of {job.name}", file=file.file
        )
        return Followed(error if instead_of else None, "the source does not launch it")
    known = [_offer(text, kernel, launch, {}) for launch in made]
    if instead_of is not None:
        if any(_squeezed(describe_offer(offer)) == _squeezed(instead_of) for offer in known):
            return Followed()
        return Followed(_stale(file, known[0], f"the source no longer launches {instead_of}"))
    compared = [_compared(job, text, kernel, launch, let) for launch in made]
    differing = [found for found, _ in compared]
    if all(differing):
        least = min(range(len(made)), key=lambda number: len(differing[number]))
        return Followed(_stale(file, known[least], "; ".join(differing[least])))
    return Followed(unknown=next(unknown for found, unknown in compared if not found))


def launching_text_of(file: KernelFile) -> str:
    """The text in which the launches of a target's source are read.

    Raises:
        MemsimError: it cannot be read.
        FileNotFoundError: there is no such file.
    """
    return read_launching_text(file.folder / file.file, absolute_paths(file.options, file.folder))


def describe_offer(offer: Offer) -> str:
    """A launch as its source makes it, with the values that are known and the source's words for others:
    `transpose<float, 32><<<(4, 4), (32, 8)>>>(f32[16384], f32[16384], n)`.
    """
    launch = offer.launch
    assert launch is not None
    sizes = [_shown(launch.grid), _shown(launch.block)]
    if launch.shared is not None:
        sizes.append(_shown((launch.shared,)))
    words = [
        word.text if not (word.asked or word.by_hand) else passed
        for word, passed in zip(offer.arguments, launch.arguments)
    ]
    return f"{launch.name}<<<{', '.join(sizes)}>>>({', '.join(words)})"


def kernel_of(text: str, name: str | None) -> KernelSource | None:
    """The kernel that a target names, or the only one; None if the text does not have it."""
    there = kernels(text)
    if name is None:
        return there[0] if len(there) == 1 else None
    plain = name.partition("<")[0].strip().rpartition("::")[2]
    return next((kernel for kernel in there if kernel.plain == plain), None)


def _offer(text: str, kernel: KernelSource, launch: LaunchSource, values: Mapping[str, Number]) -> Offer:
    name = f"{kernel.name}<{', '.join(launch.template)}>" if launch.template else generic_name(kernel)
    return offer_of(text, kernel, name, launch, values)


def _stale(file: KernelFile, offer: Offer, why: str) -> MemsimError:
    launch = offer.launch
    assert launch is not None
    return MemsimError(
        f"the target is not what the source launches: {why}",
        file=launch.file or file.file,
        line=launch.line,
        hint="remove grid, block, shared_bytes and args, and they are the source's; or change them; or, if "
        f"another launch is meant than the source's, add instead_of = {_toml(describe_offer(offer))}",
    )


def _compared(
    job: Job, text: str, kernel: KernelSource, launch: LaunchSource, let: Mapping[str, Number]
) -> tuple[list[str], str]:
    """(what differs from a launch of the source, what of it is not known)."""
    values = {**dict(_implied(job, launch)), **let}
    before, after = launches(text), launches(text, tuple(values.items()))
    if len(before) == len(after):  # in the same order
        launch = after[before.index(launch)]
    offer = _offer(text, kernel, launch, values)
    found = list(_instance(job, text, kernel, launch))
    unknown: list[str] = []
    for key, said, sizes in (
        ("grid", job.launch.grid, launch.grid),
        ("block", job.launch.block, launch.block),
        ("shared_bytes", (job.launch.shared_bytes,), (launch.shared,) if launch.shared else ()),
    ):
        known = [size.value for size in sizes] + [int(key != "shared_bytes")] * (len(said) - len(sizes))
        if any(value is not None and value != mine for mine, value in zip(said, known, strict=False)):
            found.append(
                f"{key} is {_joined(said)} in the target and {_shown(sizes) if sizes else 0} in the source"
            )
        elif None in known:
            unknown.append(f"{key} is {', '.join(size.text for size in sizes)}")
    for place, (mine, word) in enumerate(zip(job.args, offer.arguments)):
        theirs = word.text
        if word.asked or word.by_hand or not isinstance(mine, str):
            continue
        if _ARRAY.fullmatch(theirs) and not _is_allocated_once(text, launch.arguments[place]):
            continue
        if _is_other(mine, theirs):
            name = kernel.parameters[place].name
            found.append(f"{name} is {mine} in the target and {theirs} in the source")
    return found, "; ".join(unknown)


def _implied(job: Job, launch: LaunchSource) -> Iterator[tuple[str, Number]]:
    """Values of names that the source passes as arguments and does not know, which the target passes."""
    for passed, mine in zip(launch.arguments, job.args):
        if re.fullmatch(r"[A-Za-z_]\w*", passed) and passed not in launch.scope.constants:
            value = evaluate(mine, {}) if isinstance(mine, str) else None
            if value is not None:
                yield passed, value


def _instance(job: Job, text: str, kernel: KernelSource, launch: LaunchSource) -> Iterator[str]:
    """What differs in the arguments of the template."""
    name = job.kernel.name or "" if isinstance(job.kernel, KernelFile) else ""
    _, opened, inside = name.partition("<")
    if not (kernel.template and opened and launch.template) or launch.unknown:
        return
    mine = [part.strip() for part in split(inside.rpartition(">")[0])]
    if any(_is_other_argument(text, one, other) for one, other in zip(mine, launch.template)):
        yield f"it is {name} in the target and {launch.name} in the source"


def _is_other_argument(text: str, mine: str, theirs: str) -> bool:
    """Whether two arguments of a template differ. A number or a type and a name that may be one are not said
    to.
    """
    if _squeezed(mine) == _squeezed(theirs):
        return False
    one, other = _known(text, mine), _known(text, theirs)
    if one is None and other is None:
        return _squeezed(mine).rpartition("::")[2] != _squeezed(theirs).rpartition("::")[2]
    return None not in (one, other) and one != other


def _known(text: str, argument: str) -> Number | ElementType | None:
    """The number that an argument is, or the layout of the type; None if it is neither."""
    number = evaluate({"true": "1", "false": "0"}.get(argument, argument), {})
    return element(text, argument) if number is None else number


def _is_other(mine: str, theirs: str) -> bool:
    """Whether two texts of an argument are of different numbers, or of arrays of different sizes."""
    one, other = _ARRAY.fullmatch(mine), _ARRAY.fullmatch(theirs)
    if one and other:
        return _bits(one) != _bits(other)
    numbers = evaluate(mine, {}), evaluate(theirs, {})
    return None not in numbers and numbers[0] != numbers[1]


def _bits(array: re.Match[str]) -> int:
    return int(array[1]) * prod(int(extent) for extent in array[2].split(",") if extent.strip())


def _is_allocated_once(text: str, passed: str) -> bool:
    """Whether the size of an array is that of the only allocation of its name."""
    return len(re.findall(rf"cudaMalloc\w*\s*\([^;]*?&\s*{re.escape(passed)}\s*,", text)) == 1


def _shown(sizes: Sequence[Size]) -> str:
    words = [size.text if size.value is None else str(size.value) for size in sizes]
    return words[0] if len(words) == 1 else f"({', '.join(words)})"


def _joined(sizes: Sequence[int]) -> str:
    """`(32, 8)`, without the ones at the end."""
    kept = list(sizes)
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return str(kept[0]) if len(kept) == 1 else f"({', '.join(map(str, kept))})"


def _squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


def _toml(text: str) -> str:
    return f"'{text}'" if "'" not in text else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
