"""What a CUDA source tells about its kernels and launches: command lines for `memsim analyze mine.cu`.

Of machine code and PTX only the sizes of parameters are known. A source whose text does not say which kernels
it has is compiled for it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from msgspec import Meta

from memsim.api import loading
from memsim.document import Document, DocumentPart, Texts
from memsim.names.demangle import demangle
from memsim.source.elements import element, struct_argument
from memsim.source.expressions import Number, evaluate
from memsim.source.kernels import KernelSource, SourceParameter, kernels
from memsim.source.launches import LaunchSource, Size, Surroundings, launches
from memsim.source.text import bracket_end, split_at_commas, without_comments
from memsim.source.values import constants, functions, value_of

#: What the user says of a target, by the keys of its kind; each value is validated where it is used.
Said: TypeAlias = Mapping[str, Any]
#: How the user writes the key of an option: `--grid`, or `grid` in a configuration.
Spell = Callable[[str], str]


#: The `--arg` of an object over an array, by its type in C, with names for its sizes.
OVER_AN_ARRAY = {
    "CUtensorMap": "tensormap(f32[{0}_HEIGHT,{0}_WIDTH],box={0}_BOX)",
    "cudaTextureObject_t": "tex2d(f32[{0}_HEIGHT,{0}_WIDTH])",
}


@dataclass(frozen=True, slots=True)
class Word:
    """What an option says.

    text: with names in place of values that are not known. asked: the names whose values decide it. by_hand:
    the user must write the option: no values of names are enough. blank: the name in the text, if it is none
    of those: `a_SIZE` of `f32[a_SIZE]`, which `n` decides.
    """

    text: str
    asked: tuple[str, ...] = ()
    by_hand: bool = False
    blank: str = ""


@dataclass(frozen=True, slots=True)
class Offer:
    """A kernel that can be analyzed.

    kernel: as the source defines it. launch: how the source launches it; None if it does not, or if that
    cannot be determined. name: for `--kernel`; an instance if it is a template. alone: it is the only kernel
    of its file, and no template. shape: what `grid`, `block` and `shared_bytes` are. arguments: what each
    `--arg` says. unnamed: parameters of the template without an instance.
    """

    kernel: KernelSource
    launch: LaunchSource | None
    name: str
    alone: bool
    shape: Mapping[str, Word]
    arguments: tuple[Word, ...]
    unnamed: tuple[str, ...] = ()

    @property
    def asked(self) -> tuple[str, ...]:
        """The names whose values are only known at run time, or by the user."""
        names = [name for word in self.shape.values() for name in word.asked]
        for word in self.arguments:
            names += [word.blank] if word.blank and not self.is_by_name else word.asked
        return tuple(dict.fromkeys((*self.unnamed, *names)))

    @property
    def command(self) -> tuple[str, ...]:
        """The options after the file. Where the source's launch lacks values, they are asked for by name."""
        found = [] if self.alone else ["--kernel", self.name]
        by_name = self.is_by_name and bool(self.asked)
        for key, word in self.shape.items():
            if word.by_hand or not (by_name or word.asked):
                found += [f"--{key.replace('_', '-')}", word.text]
        found += [part for name in self.names for part in ("--let", f"{name}=...")]
        if by_name:
            return tuple(found)
        return (*found, *(part for word in self.arguments for part in ("--arg", word.text)))

    @property
    def is_by_name(self) -> bool:
        """Whether values of names are enough for its arguments."""
        return self.launch is not None and not any(word.by_hand for word in self.arguments)

    @property
    def names(self) -> tuple[str, ...]:
        """Those of `asked` that `--let` gives values to."""
        words = (*self.shape.values(), *(self.arguments if self.is_by_name else ()))
        return tuple(dict.fromkeys(name for word in words if not word.by_hand for name in word.asked))


def offers(text: str, given: Mapping[str, Number] | None = None) -> tuple[Offer, ...]:
    """One for each kernel, and for each instance that the source launches.

    given: values of names that the source leaves open.
    """
    found: dict[tuple[KernelSource, str], Offer] = {}
    for offer in every_launch(text, given):
        found.setdefault((offer.kernel, offer.name), offer)
    return tuple(found.values())


def every_launch(text: str, given: Mapping[str, Number] | None = None) -> tuple[Offer, ...]:
    """One for each launch of each kernel that the source makes, and for each kernel that it does not launch.

    given: as for `offers`.
    """
    found: list[Offer] = []
    values = dict(given or {})
    made = launches(text, tuple(values.items()))
    for kernel in kernels(text):
        own = [launch for launch in made if launch.plain == kernel.plain]
        named = [one for one in own if not kernel.template or (one.template and not one.unknown)]
        if named:
            found += [offer_of(text, kernel, _instance(kernel, one), one, values) for one in named]
        else:
            found.append(offer_of(text, kernel, generic_name(kernel), own[0] if own else None, values))
    return tuple(found)


class ListedKernel(DocumentPart, frozen=True, kw_only=True):
    """A kernel, and what to type for it."""

    name: str
    about: Annotated[str, Meta(description="its story, or its parameters")]
    place: Annotated[str, Meta(description="FILE:LINE, or the title of its article; empty: not known")] = ""
    launched: Annotated[str, Meta(description="how its source launches it; empty: not known")] = ""
    command: Annotated[str, Meta(description="a command that analyzes it, with names for what is open")]
    asked: Annotated[Texts, Meta(description="the names whose values the command needs")] = ()

    @property
    def lines(self) -> list[str]:
        """The same for people."""
        launched = [f"  launched in {self.launched}"] if self.launched else []
        asked = [f"  with values for {', '.join(self.asked)}"] if self.asked else []
        return [f"{self.about}   {self.place}".rstrip(), *launched, f"  {self.command}", *asked]


class KernelsDocument(Document, frozen=True, kw_only=True):
    """The kernels that ship, or those of a file."""

    kernels: tuple[ListedKernel, ...]


def listed_kernels(file: str, text: str, options: Sequence[str] = ()) -> list[ListedKernel]:
    """For each kernel of a source its C parameters, how that launches it, and a command line.

    options: for the compiler, which the command lines repeat.
    """
    found: list[ListedKernel] = []
    for offer in offers(text):
        launched = ""
        if offer.launch is not None:
            header = f" of {Path(offer.launch.file).name}" if offer.launch.file else ""
            launched = f"line {offer.launch.line}{header}: {_shown(offer.launch)}"
        found.append(
            ListedKernel(
                name=offer.name,
                about=offer.kernel.signature,
                place=f"{Path(offer.kernel.file or file).name}:{offer.kernel.line}",
                launched=launched,
                command=command_line(file, offer, options=options),
                asked=offer.asked,
            )
        )
    return found


def command_line(
    file: str,
    offer: Offer,
    verb: str = "analyze",
    given: Mapping[str, Number] | None = None,
    options: Sequence[str] = (),
) -> str:
    """`memsim analyze mine.cu -Iinclude --kernel ...`, ready to type.

    given: values of names that the source leaves open. options: for the compiler.
    """
    numbers = {
        name: value if isinstance(value, int) else float(value) for name, value in (given or {}).items()
    }
    values = (word for name, value in numbers.items() for word in ("--let", f"{name}={value}"))
    return " ".join(["memsim", verb, shlex.quote(file), *map(_quoted, (*options, *offer.command, *values))])


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w@%+=:,./-]+", word) else f"'{word}'"


def _shown(launch: LaunchSource) -> str:
    grid, block = (", ".join(size.text for size in sizes) for sizes in (launch.grid, launch.block))
    grid, block = (f"dim3({text})" if "," in text else text for text in (grid, block))
    shared = f", {launch.shared.text}" if launch.shared else ""
    return f"{launch.name}<<<{grid}, {block}{shared}>>>({', '.join(launch.arguments)})"


def describe_offer(offer: Offer) -> str:
    """A launch as its source makes it, with the values that are known and the source's words for others:
    `transpose<float, 32><<<(4, 4), (32, 8)>>>(f32[16384], f32[16384], n)`.
    """
    launch = offer.launch
    assert launch is not None
    sizes = [_extents(launch.grid), _extents(launch.block)]
    if launch.shared is not None:
        sizes.append(_extents((launch.shared,)))
    words = [
        word.text if not (word.asked or word.by_hand) else passed
        for word, passed in zip(offer.arguments, launch.arguments)
    ]
    return f"{launch.name}<<<{', '.join(sizes)}>>>({', '.join(words)})"


def _extents(sizes: Sequence[Size]) -> str:
    words = [size.text if size.value is None else str(size.value) for size in sizes]
    return words[0] if len(words) == 1 else f"({', '.join(words)})"


def _instance(kernel: KernelSource, launch: LaunchSource) -> str:
    return f"{kernel.name}<{', '.join(launch.template)}>" if kernel.template else kernel.name


def instance_of(text: str, name: str, given: Mapping[str, Number]) -> str:
    """The name of an instance, with the values of the constants in it: `k<float, TILE>` is `k<float, 32>`.

    given: values of names that the source leaves open.
    """
    plain, opened, inside = name.partition("<")
    if not opened or not inside.endswith(">"):
        return name
    known = {**_everywhere(text).constants, **given}
    words = [part.strip() for part in split_at_commas(inside[:-1])]
    values = [value_of(word, known) if re.search(r"[A-Za-z_]", word) else None for word in words]
    said = (word if value is None else str(value) for word, value in zip(words, values, strict=True))
    return f"{plain}<{', '.join(said)}>" if any(value is not None for value in values) else name


def generic_name(kernel: KernelSource) -> str:
    """A kernel's name; a template's with its parameters in place of arguments."""
    if not kernel.template:
        return kernel.name
    return f"{kernel.name}<{', '.join(parameter.name or parameter.kind for parameter in kernel.template)}>"


def offer_of(
    text: str, kernel: KernelSource, name: str, launch: LaunchSource | None, given: Mapping[str, Number]
) -> Offer:
    """What to type for a kernel; `name`: of the instance, if it is a template, and `given` as in `offers`."""
    template = split_at_commas(name.partition("<")[2].removesuffix(">"))
    types = dict(zip((parameter.name for parameter in kernel.template), map(str.strip, template)))
    everywhere = _everywhere(text)
    known = {**everywhere.constants, **given}
    scope = launch.scope if launch else replace(everywhere, constants=known)
    drafted = _Draft(text, scope, types, given)
    shape = {
        key: _shape(key, sizes)
        for key, sizes in (("grid", launch.grid if launch else ()), ("block", launch.block if launch else ()))
    }
    if launch is not None and launch.shared is not None and launch.shared.value != 0:
        shape["shared_bytes"] = _shape("shared_bytes", (launch.shared,))
    passed = launch.arguments if launch else ()
    arguments = tuple(
        drafted.argument(parameter, passed[place] if place < len(passed) else parameter.name)
        for place, parameter in enumerate(kernel.parameters)
    )
    is_open = name == generic_name(kernel) and bool(kernel.template)
    absent = tuple(one.name for one in kernel.template if one.default is None) if is_open else ()
    alone = len(kernels(text)) == 1 and not kernel.template
    return Offer(kernel, launch, name, alone, shape, arguments, absent)


@lru_cache(maxsize=4)
def _everywhere(text: str) -> Surroundings:
    """What names mean outside of functions."""
    code = without_comments(text)
    return Surroundings(constants(code), functions(code), {})


def _shape(key: str, sizes: Sequence[Size]) -> Word:
    """`32,8`; with names in it, or the option's own name if the sizes cannot be computed from names."""
    asked = [size.asked for size in sizes]
    names = [name for one in asked if one is not None for name in one]
    if not sizes or None in asked:
        return Word(key.upper(), (key.upper(),), by_hand=True)
    texts = (re.sub(r"\s+", "", size.text) if size.value is None else str(size.value) for size in sizes)
    return Word(",".join(texts), tuple(dict.fromkeys(names)))


@dataclass(frozen=True, slots=True)
class _Draft:
    """What is known where a kernel's arguments are written.

    types: of the template's parameters, by name. given: the user's values, also of the kernel's parameters.
    """

    text: str
    scope: Surroundings
    types: Mapping[str, str]
    given: Mapping[str, Number]

    def argument(self, parameter: SourceParameter, passed: str) -> Word:
        """An `--arg` for a parameter: an array by type and shape, or a number."""
        base = " ".join(
            word for word in re.sub(r"[*&]", " ", parameter.type).split() if word not in ("const", "volatile")
        )
        over_an_array, base = OVER_AN_ARRAY.get(base), self.types.get(base, base)
        if "*" not in parameter.type:
            if over_an_array is not None:
                said = over_an_array.format(parameter.name)
                return Word(said, tuple(re.findall(r"\w+_[A-Z]+", said)), by_hand=True)
            members = struct_argument(self.text, base, parameter.name)
            if members is not None:
                return Word(*members, by_hand=True)
            return self._number(parameter, base, passed)
        if passed in ("nullptr", "NULL"):
            return Word("null")
        pointee = "size_t" if "**" in parameter.type else "float" if base in ("void", "T") else base
        one = element(self.text, pointee)
        if one is None:
            return self._array(parameter, passed, "u8", 1, f"{parameter.name}_BYTES")
        parts = f",{one.count}" if one.count > 1 else ""
        return self._array(parameter, passed, one.short, one.size, f"{parameter.name}_SIZE", parts)

    def _number(self, parameter: SourceParameter, base: str, passed: str) -> Word:
        value = evaluate(passed, self.scope.constants, self.scope.functions)
        names = self.scope.asked(passed)
        if value is None and names is None:
            names, value = (parameter.name,), self.given.get(parameter.name)
        if value is None:
            return Word(parameter.name, names or ())
        real = re.search(r"float|double|half", base)
        return Word(str(value if isinstance(value, int) else float(value) if real else int(value)))

    def _array(
        self, parameter: SourceParameter, passed: str, short: str, size: int, unknown: str, parts: str = ""
    ) -> Word:
        """An array of as many elements as the source allocates, `size` bytes each, else of `unknown` many."""
        count, names = self._extent(passed, size)
        if count is None and not names:
            names, said = (unknown,), self.given.get(unknown)
            count = None if said is None else int(said)
        if count is None:
            return Word(f"{short}[{unknown}{parts}]", names, blank=unknown)
        return Word(f"{short}[{count}{parts}]")

    def _extent(self, passed: str, size: int) -> tuple[int | None, tuple[str, ...]]:
        """(number of elements that the source allocates, names whose values decide it)."""
        if not re.fullmatch(r"\w+(?:(?:\.|->)\w+)*", passed):
            return None, ()
        pointer = r"\s*(?:\(\s*void\s*\*\*\s*\)\s*)?&\s*" + re.escape(passed)
        allocated = re.search(rf"cudaMalloc(?:Managed)?\s*\({pointer}\s*,", self.text)
        if allocated is None:
            return None, ()
        written = said = self.text[allocated.end() : bracket_end(self.text, allocated.end()) - 1].strip()
        if re.fullmatch(r"\w+", said):
            declared = re.findall(rf"\b{said}\s*=\s*([^;,]+);", self.text)
            said = declared[0] if len(declared) == 1 else said
        count = re.sub(r"\s*\*\s*sizeof\s*\([^()]*\)|sizeof\s*\([^()]*\)\s*\*\s*", "", said).strip()
        if count == said:  # bytes
            numbers = (self.scope.value(said), self.scope.value(written))
            number = next((one for one in numbers if one is not None), None)
            if number is not None:
                return -(-number // size), ()
            return None, self.scope.asked(said) or self.scope.asked(written) or ()
        number = self.scope.value(count)
        if number is not None:
            return number, ()
        return None, self.scope.asked(count) or ()


def listed_code(file: str, options: Sequence[str] = ()) -> list[ListedKernel]:
    """For each kernel of machine code or PTX the sizes of its parameters, and a command line.

    options: for the compiler of a source, which the command lines repeat.

    Raises:
        MemsimError: no such file, no machine code in it, or it does not compile.
    """
    path = Path(file)
    if path.suffix in (".ptx", *loading.SOURCE_SUFFIXES):
        machines = loading.load(path, options).machines
        kernels = {
            entry: tuple(one.size for one in machine.parameters) for entry, machine in machines.items()
        }
    else:
        from memsim.api.machine_code_file import code_in

        kernels = code_in(path, None).sizes
    words = " ".join(map(shlex.quote, (file, *options)))
    found: list[ListedKernel] = []
    for entry, parameters in kernels.items():
        name, sizes = demangle(entry), ", ".join(f"{size} B" for size in parameters)
        arguments = " ".join("--arg ARG" for _ in parameters)
        chosen = f" --kernel {shlex.quote(name)}" if len(kernels) > 1 else ""
        command = f"memsim analyze {words}{chosen} --grid GRID --block BLOCK {arguments}".rstrip()
        found.append(ListedKernel(name=name, about=f"{name}({sizes})", command=command))
    return found
