"""What a CUDA source tells about its kernels and launches: command lines for `memsim analyze mine.cu`,
completed from the source's own launches, and what is missing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from memsim.errors import MemsimError
from memsim.source.declared import closing
from memsim.source.elements import NUMBERS, element
from memsim.source.kernels import KernelSource, SourceParameter, kernels
from memsim.source.launches import LaunchSource, Size, launches
from memsim.source.values import constants, split, value_of


@dataclass(frozen=True, slots=True)
class Offer:
    """A kernel that can be analyzed.

    Attributes:
        kernel: as the source defines it.
        launch: how the source launches it; None if it does not, or if that cannot be determined.
        name: for `--kernel`; an instance if it is a template.
        command: the options after the file, one word each, with names as placeholders.
        asked: these names, whose values are only known at run time or by the user.
    """

    kernel: KernelSource
    launch: LaunchSource | None
    name: str
    command: tuple[str, ...]
    asked: tuple[str, ...]

    @property
    def arguments(self) -> tuple[str, ...]:
        """What stands behind each `--arg` of the command."""
        return tuple(value for option, value in pairwise(self.command) if option == "--arg")


def offers(text: str) -> tuple[Offer, ...]:
    """One for each kernel, and for each instance that the source launches."""
    found: list[Offer] = []
    for kernel in kernels(text):
        own = [launch for launch in launches(text) if launch.plain == kernel.plain]
        named: dict[str, LaunchSource] = {}
        for launch in own:
            if not kernel.template or (launch.template and not launch.unknown):
                named.setdefault(_instance(kernel, launch), launch)
        if named:
            found += [_offer(text, kernel, name, launch) for name, launch in named.items()]
        else:
            found.append(_offer(text, kernel, _unnamed(kernel), own[0] if own else None))
    return tuple(found)


def completed(file: str, text: str, said: Mapping[str, Any], spell: Any = str) -> dict[str, Any]:
    """The launch options, completed with kernel, grid, block, shared bytes and arguments of the source's
    launch.

    Arguments only if the source has all of them and the user passed none.

    Raises:
        MemsimError: everything that is still missing, with a command line to start from.
    """
    known = offers(text)
    wanted = said.get("kernel")
    chosen = [offer for offer in known if _means(offer, wanted)]
    if not chosen and wanted is not None and "<" in wanted:  # an instance not launched in the source
        chosen = [_offer(text, kernel, wanted, None) for kernel in kernels(text) if _makes(kernel, wanted)]
    if len(chosen) != 1:
        if said.get("grid") is not None and said.get("block") is not None:
            return dict(said)  # the code tells which kernels there are
        raise _undecided(file, known, said, spell)
    (offer,) = chosen
    given = dict(said)
    if (
        given.get("kernel") is None
        and "<" in offer.name
        and "..." not in offer.name
        and offer.kernel.template
    ):
        given["kernel"] = offer.name
    launch = offer.launch
    if launch is not None:
        for key, sizes in (("grid", launch.grid), ("block", launch.block)):
            numbers = _numbers(sizes)
            if given.get(key) is None and numbers:
                given[key] = numbers
        if given.get("shared_bytes") is None and launch.shared is not None and launch.shared.value:
            given["shared_bytes"] = launch.shared.value
        if given.get("args") is None and not offer.asked:
            given["args"] = list(offer.arguments)
    missing = [spell(key) for key in ("grid", "block") if given.get(key) is None]
    arguments = given.get("args") or ()
    if len(arguments) < len(offer.kernel.parameters):
        absent = offer.kernel.parameters[len(arguments) :]
        missing += [f"{spell('args')} for {parameter}" for parameter in absent]
    if missing:
        raise MemsimError(
            f"{offer.kernel.signature} needs {', '.join(missing)}",
            file=file,
            line=offer.kernel.line,
            hint=command_line(file, offer),
        )
    return given


def lines(file: str, text: str, verb: str = "analyze") -> list[str]:
    """For each kernel its C parameters, how the source launches it, and a command line."""
    said: list[str] = []
    for offer in offers(text):
        said.append(f"{offer.kernel.signature}   {Path(file).name}:{offer.kernel.line}")
        if offer.launch is not None:
            said.append(f"  launched in line {offer.launch.line}: {_shown(offer.launch)}")
        said.append(f"  {command_line(file, offer, verb)}")
        if offer.asked:
            said.append(f"  with values for {', '.join(offer.asked)}")
    return said


def command_line(file: str, offer: Offer, verb: str = "analyze") -> str:
    """`memsim analyze mine.cu --kernel ...`, ready to type."""
    return " ".join(["memsim", verb, shlex.quote(file), *map(_quoted, offer.command)])


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w@%+=:,./-]+", word) else f"'{word}'"


def _shown(launch: LaunchSource) -> str:
    grid, block = (", ".join(size.text for size in sizes) for sizes in (launch.grid, launch.block))
    shared = f", {launch.shared.text}" if launch.shared else ""
    return f"{launch.name}<<<({grid}), ({block}){shared}>>>({', '.join(launch.arguments)})"


def _instance(kernel: KernelSource, launch: LaunchSource) -> str:
    return f"{kernel.name}<{', '.join(launch.template)}>" if kernel.template else kernel.name


def _unnamed(kernel: KernelSource) -> str:
    """A template's name with its parameters in place of arguments."""
    if not kernel.template:
        return kernel.name
    return f"{kernel.name}<{', '.join(parameter.name or parameter.kind for parameter in kernel.template)}>"


def _means(offer: Offer, wanted: str | None) -> bool:
    """Does the user mean this kernel?"""
    if wanted is None:
        return True
    squeezed = re.sub(r"\s", "", wanted)
    names = (offer.name, offer.kernel.name, offer.name.rpartition("::")[2] if "<" not in offer.name else "")
    plain = offer.kernel.plain
    if squeezed in (re.sub(r"\s", "", name) for name in names) or squeezed == plain:
        return True
    return squeezed.startswith(f"{plain}<") and "<" in offer.name and _is_open(offer)


def _makes(kernel: KernelSource, instance: str) -> bool:
    """Is it the template of the instance that the user names?"""
    return bool(kernel.template) and instance.partition("<")[0].strip() in (kernel.name, kernel.plain)


def _is_open(offer: Offer) -> bool:
    """Is it a template without an instance in the source?"""
    return bool(offer.kernel.template) and offer.name == _unnamed(offer.kernel)


def _undecided(file: str, known: Sequence[Offer], said: Mapping[str, Any], spell: Any) -> MemsimError:
    wanted = said.get("kernel")
    if not known:
        return MemsimError(
            f"{file} needs {spell('grid')} and {spell('block')}",
            hint="its text contains no kernel: a macro may define them, or a header",
        )
    missing = [spell(key) for key in ("kernel", "grid", "block") if said.get(key) is None]
    about = f"has no kernel {wanted}" if wanted else f"has {len(known)} kernels"
    return MemsimError(
        f"{about}, and needs {', '.join(missing)}" if missing else about,
        file=file,
        hint="\n".join(command_line(file, offer) for offer in known),
    )


def _numbers(sizes: Sequence[Size]) -> tuple[int, ...]:
    numbers = tuple(size.value for size in sizes if size.value is not None)
    return numbers if len(numbers) == len(sizes) else ()


def _offer(text: str, kernel: KernelSource, name: str, launch: LaunchSource | None) -> Offer:
    asked: list[str] = []
    words: list[str] = []
    if len(kernels(text)) > 1 or kernel.template:
        words += ["--kernel", name]
    if name == _unnamed(kernel) and kernel.template and launch is None:
        asked += [parameter.name for parameter in kernel.template if parameter.default is None]
    for key, sizes in (("grid", launch.grid if launch else ()), ("block", launch.block if launch else ())):
        written = [_written(size, asked) for size in sizes] or [key.upper()]
        asked += [] if sizes else [key.upper()]
        words += [f"--{key}", ",".join(written)]
    if launch is not None and launch.shared is not None and launch.shared.value != 0:
        words += ["--shared-bytes", _written(launch.shared, asked)]
    arguments = launch.template if launch else split(name.partition("<")[2].removesuffix(">"))
    types = dict(zip((parameter.name for parameter in kernel.template), map(str.strip, arguments)))
    passed = launch.arguments if launch else ()
    known = {**constants(text), **dict(launch.known if launch else ())}
    for place, parameter in enumerate(kernel.parameters):
        argument = passed[place] if place < len(passed) else parameter.name
        words += ["--arg", _argument(text, parameter, argument, types, known, asked)]
    return Offer(kernel, launch, name, tuple(words), tuple(dict.fromkeys(asked)))


def _written(size: Size, asked: list[str]) -> str:
    """A number, or the source's expression, whose names are added to `asked`."""
    if size.value is not None:
        return str(size.value)
    asked += _names(size.text)
    return re.sub(r"\s+", "", size.text)


def _names(text: str) -> Iterator[str]:
    """The names in an expression, in order."""
    yield from (
        name
        for name in re.findall(r"(?<![.\w>])[A-Za-z_]\w*(?!\s*\()", text)
        if name not in ("sizeof", *NUMBERS)
    )


def _argument(
    text: str,
    parameter: SourceParameter,
    passed: str,
    types: Mapping[str, str],
    known: Mapping[str, int],
    asked: list[str],
) -> str:
    """An `--arg` for a parameter: an array by type and shape, or a number."""
    base = " ".join(
        word for word in re.sub(r"[*&]", " ", parameter.type).split() if word not in ("const", "volatile")
    )
    base = types.get(base, base)
    if "*" not in parameter.type:
        number = value_of(passed, known) if re.fullmatch(r"[\w\s+*/()-]+", passed) else None
        if number is None and re.fullmatch(r"-?\d+(?:\.\d*)?(?:e-?\d+)?f?", passed, re.IGNORECASE):
            return passed.rstrip("fF")
        if number is None:
            asked.append(parameter.name)
        return parameter.name if number is None else str(number)
    pointee = "size_t" if "**" in parameter.type else "float" if base in ("void", "T") else base
    one = element(text, pointee)
    if one is None:
        asked.append(f"{parameter.name}_BYTES")
        return f"u8[{parameter.name}_BYTES]"
    parts = f",{one.count}" if one.count > 1 else ""
    return f"{one.short}[{_extent(text, passed, parameter.name, one.size, known, asked)}{parts}]"


def _extent(text: str, passed: str, name: str, size: int, known: Mapping[str, int], asked: list[str]) -> str:
    """An array's number of elements, `size` bytes each, that the source allocates for it, else a name."""
    if re.fullmatch(r"\w+", passed):
        allocated = re.search(
            rf"\bcudaMalloc(?:Managed)?\s*\(\s*(?:\(\s*void\s*\*\*\s*\)\s*)?&\s*{passed}\s*,", text
        )
        if allocated is not None:
            said = text[allocated.end() : closing(text, allocated.end()) - 1].strip()
            if re.fullmatch(r"\w+", said):
                declared = re.findall(rf"\b{said}\s*=\s*([^;,]+);", text)
                said = declared[0] if len(declared) == 1 else said
            count = re.sub(r"\s*\*\s*sizeof\s*\([^()]*\)|sizeof\s*\([^()]*\)\s*\*\s*", "", said).strip()
            number = value_of(count, known)
            if number is not None:
                return str(number if count != said else -(-number // size))
            if count != said:
                asked += _names(count)
                return re.sub(r"\s+", "", count)
    asked.append(f"{name}_SIZE")
    return f"{name}_SIZE"
