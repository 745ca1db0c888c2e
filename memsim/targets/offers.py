"""What a CUDA source tells about its kernels and launches: command lines for `memsim analyze mine.cu`,
completed from the source's own launches, and what is missing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memsim.errors import MemsimError
from memsim.source.declared import closing, without_comments
from memsim.source.elements import element
from memsim.source.expressions import Number, evaluate
from memsim.source.kernels import KernelSource, SourceParameter, kernels
from memsim.source.launches import LaunchSource, Size, Surroundings, launches
from memsim.source.values import constants, functions, split


@dataclass(frozen=True, slots=True)
class Word:
    """What an option says.

    Attributes:
        text: with names in place of values that are not known.
        asked: these names.
        by_hand: the user must write the option: no values of names are enough.
    """

    text: str
    asked: tuple[str, ...] = ()
    by_hand: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """A kernel that can be analyzed.

    Attributes:
        kernel: as the source defines it.
        launch: how the source launches it; None if it does not, or if that cannot be determined.
        name: for `--kernel`; an instance if it is a template.
        alone: it is the only kernel of its file, and no template.
        shape: what `grid`, `block` and `shared_bytes` are.
        arguments: what each `--arg` says.
        unnamed: parameters of the template without an instance.
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
        words = (*self.shape.values(), *self.arguments)
        return tuple(dict.fromkeys((*self.unnamed, *(name for word in words for name in word.asked))))

    @property
    def command(self) -> tuple[str, ...]:
        """The options after the file. Where the source's launch lacks values, they are asked for by name."""
        found = [] if self.alone else ["--kernel", self.name]
        by_name = self.launch is not None and bool(self.asked)
        for key, word in self.shape.items():
            if not by_name or word.by_hand:
                found += [f"--{key.replace('_', '-')}", word.text]
        if by_name:
            return (*found, *(part for name in self.names for part in ("--let", f"{name}=...")))
        return (*found, *(part for word in self.arguments for part in ("--arg", word.text)))

    @property
    def names(self) -> tuple[str, ...]:
        """Those of `asked` that `--let` gives values to."""
        words = (*self.shape.values(), *self.arguments)
        return tuple(dict.fromkeys(name for word in words if not word.by_hand for name in word.asked))


def offers(text: str, given: Mapping[str, Number] | None = None) -> tuple[Offer, ...]:
    """One for each kernel, and for each instance that the source launches.

    given: values of names that the source leaves open.
    """
    found: list[Offer] = []
    values = dict(given or {})
    made = launches(text, tuple(values.items()))
    for kernel in kernels(text):
        own = [launch for launch in made if launch.plain == kernel.plain]
        named: dict[str, LaunchSource] = {}
        for launch in own:
            if not kernel.template or (launch.template and not launch.unknown):
                named.setdefault(_instance(kernel, launch), launch)
        if named:
            found += [_offer(text, kernel, name, launch, values) for name, launch in named.items()]
        else:
            found.append(_offer(text, kernel, _unnamed(kernel), own[0] if own else None, values))
    return tuple(found)


def completed(file: str, text: str, said: Mapping[str, Any], spell: Any = str) -> dict[str, Any]:
    """The launch options, completed with kernel, grid, block, shared bytes and arguments of the source's
    launch.

    Arguments only if all their values are known and the user passed none. `let` has values of names that the
    source leaves open.

    Raises:
        MemsimError: everything that is still missing, with a command line to start from, or a name that the
            source does not leave open.
    """
    said = dict(said)
    values: dict[str, Number] = said.pop("let", None) or {}
    _check_names(file, text, values, spell)
    known = offers(text, values)
    wanted = said.get("kernel")
    chosen = [offer for offer in known if _means(offer, wanted)]
    if not chosen and wanted is not None and "<" in wanted:  # an instance not launched in the source
        chosen = [
            _offer(text, kernel, wanted, None, values) for kernel in kernels(text) if _makes(kernel, wanted)
        ]
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
    if given.get("args") is None and (launch or values) and not any(word.asked for word in offer.arguments):
        given["args"] = [word.text for word in offer.arguments]
    if given.get("args") is None and (launch or values) and not any(word.asked for word in offer.arguments):
        given["args"] = [word.text for word in offer.arguments]
    missing = list(_missing(offer, given, spell))
    if missing:
        raise MemsimError(
            f"{offer.kernel.signature} needs {', '.join(missing)}",
            file=file,
            line=offer.kernel.line,
            hint=command_line(file, offer, given=values),
        )
    return given


def _missing(offer: Offer, given: Mapping[str, Any], spell: Any) -> Iterator[str]:
    """The options that a launch still needs."""
    names: list[str] = []
    for key, word in offer.shape.items():
        if given.get(key) is None:
            names += () if word.by_hand else word.asked
            yield from [spell(key)] if word.by_hand else ()
    arguments = given.get("args")
    if arguments is None and offer.launch is not None:
        names += [name for word in offer.arguments for name in word.asked]
    else:
        absent = offer.kernel.parameters[len(arguments or ()) :]
        yield from (f"{spell('args')} for {parameter}" for parameter in absent)
    yield from (f"{spell('let')} {name}" for name in dict.fromkeys(names))


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


def command_line(
    file: str, offer: Offer, verb: str = "analyze", given: Mapping[str, Number] | None = None
) -> str:
    """`memsim analyze mine.cu --kernel ...`, ready to type, with the values of names that are given."""
    numbers = {
        name: value if isinstance(value, int) else float(value) for name, value in (given or {}).items()
    }
    values = (word for name, value in numbers.items() for word in ("--let", f"{name}={value}"))
    return " ".join(["memsim", verb, shlex.quote(file), *map(_quoted, (*offer.command, *values))])


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


def _check_names(file: str, text: str, values: Mapping[str, Number], spell: Any) -> None:
    """Raise a MemsimError if a value is given for what no kernel or launch of the source uses."""
    if not values:
        return
    plain = offers(text)
    asked = [name for offer in plain for name in offer.asked]
    scopes = [offer.launch.scope for offer in plain if offer.launch is not None]
    known = {*asked, *(name for scope in scopes for name in (*scope.constants, *scope.initialized))}
    for name in values:
        if name not in known:
            names = ", ".join(dict.fromkeys(asked)) or "none"
            raise MemsimError(
                f"{spell('let')} {name}: no launch in the source uses it",
                file=file,
                hint=f"names without a value: {names}",
            )


def _numbers(sizes: Sequence[Size]) -> tuple[int, ...]:
    numbers = tuple(size.value for size in sizes if size.value is not None)
    return numbers if len(numbers) == len(sizes) else ()


def _offer(
    text: str,
    kernel: KernelSource,
    name: str,
    launch: LaunchSource | None,
    given: Mapping[str, Number],
) -> Offer:
    template = launch.template if launch else split(name.partition("<")[2].removesuffix(">"))
    types = dict(zip((parameter.name for parameter in kernel.template), map(str.strip, template)))
    code = without_comments(text)
    scope = launch.scope if launch else Surroundings({**constants(code), **given}, functions(code), {})
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
    open_template = name == _unnamed(kernel) and bool(kernel.template) and launch is None
    unnamed = tuple(one.name for one in kernel.template if one.default is None) if open_template else ()
    alone = len(kernels(text)) == 1 and not kernel.template
    return Offer(kernel, launch, name, alone, shape, arguments, unnamed)


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
        base = self.types.get(base, base)
        if "*" not in parameter.type:
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
            return Word(f"{short}[{unknown}{parts}]", names)
        return Word(f"{short}[{count}{parts}]")

    def _extent(self, passed: str, size: int) -> tuple[int | None, tuple[str, ...]]:
        """(number of elements that the source allocates, names whose values decide it)."""
        if not re.fullmatch(r"\w+", passed):
            return None, ()
        allocated = re.search(
            rf"\bcudaMalloc(?:Managed)?\s*\(\s*(?:\(\s*void\s*\*\*\s*\)\s*)?&\s*{passed}\s*,", self.text
        )
        if allocated is None:
            return None, ()
        said = self.text[allocated.end() : closing(self.text, allocated.end()) - 1].strip()
        if re.fullmatch(r"\w+", said):
            declared = re.findall(rf"\b{said}\s*=\s*([^;,]+);", self.text)
            said = declared[0] if len(declared) == 1 else said
        count = re.sub(r"\s*\*\s*sizeof\s*\([^()]*\)|sizeof\s*\([^()]*\)\s*\*\s*", "", said).strip()
        number = self.scope.value(count)
        if number is not None:
            return (number if count != said else -(-number // size)), ()
        return None, (self.scope.asked(count) or ()) if count != said else ()
