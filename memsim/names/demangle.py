"""Kernel names as people write them, `sg<128,0>` for `_Z2sgILi128ELi0EEvPf`, and which kernel a user means by
such a name.

Return types, parameter lists and expressions in template arguments are not supported; a name that has them is
left mangled.

Grammar: Itanium C++ ABI, chapter "External Names (a.k.a. Mangling)". Not taken from a package: they show
`sg<128,0>` as `sg<(int)128, (int)0>` and stop at lambdas (itanium_demangler 1.1), need a native library
(cxxfilt), or need Python 3.11 (demangle).
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import pairwise

from memsim.errors import MemsimError

_BUILTIN = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char",
    "s": "short", "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long",
    "m": "unsigned long", "x": "long long", "y": "unsigned long long", "n": "__int128",
    "o": "unsigned __int128", "f": "float", "d": "double", "e": "long double", "g": "__float128",
    "z": "...", "Dn": "decltype(nullptr)", "Di": "char32_t", "Ds": "char16_t", "Du": "char8_t",
    "Dh": "_Float16", "Da": "auto", "DF16_": "_Float16", "DF16b": "std::bfloat16_t",
}  # fmt: skip
_STANDARD = {
    "St": "std", "Sa": "std::allocator", "Sb": "std::basic_string", "Ss": "std::string",
    "Si": "std::istream", "So": "std::ostream", "Sd": "std::iostream",
}  # fmt: skip
_QUALIFIERS = {"r": " __restrict", "V": " volatile", "K": " const"}
_LONG_ARGUMENTS, _MOST_ARGUMENTS = 40, 100
_NAMESPACES = re.compile(r"(?:\b\w+::|\(anonymous namespace\)::)+(?=\w)")
_PLAIN_INTEGERS = set("iljmxystno")
_FLOATS = {"f": ">f", "d": ">d"}


class _UnknownError(Exception):
    """A form that is not supported here."""


def demangle(name: str) -> str:
    """`ns::kernel<128,float>` for a mangled function name; any other name is returned as it is.

    Template arguments are separated by a comma without a space; integers have no suffix.
    """
    if not name.startswith("_Z"):
        return name
    try:
        return _Demangler(name, 2).name()
    except (_UnknownError, IndexError, ValueError, RecursionError):
        return name


def short_name(symbol: str) -> str:
    """A variable's name as written in the source: `s_a` for `_ZZ9kernel_v4E3s_a`."""
    return demangle(symbol).rpartition("::")[2]


def without_long_arguments(name: str) -> str:
    """A demangled name for a line of text, as those of PyTorch's kernels have hundreds of characters: of long
    template arguments or parameters it has the first ones, and no namespaces.
    """
    brief = "".join(_brief(name))
    return name if brief == name else _NAMESPACES.sub("", brief)


def _brief(name: str) -> Iterator[str]:
    depth = start = 0
    commas: list[int] = []
    for at, sign in enumerate(name):
        if sign in "<(":
            if depth == 0:
                yield name[start : at + 1]
                start, commas = at + 1, [at]
            depth += 1
        elif sign == "," and depth == 1:
            commas.append(at)
        elif sign in ">)" and depth:
            depth -= 1
            if depth == 0:
                yield _first_ones([name[i + 1 : j] for i, j in pairwise([*commas, at])])
                start = at
    yield name[start:]


def _first_ones(arguments: Sequence[str]) -> str:
    whole = ",".join(arguments)
    if len(whole) <= _LONG_ARGUMENTS:
        return whole
    found = ""
    for argument in arguments:
        more = f"{found}{_NAMESPACES.sub('', argument)},"
        if len(found) > _LONG_ARGUMENTS or len(more) > _MOST_ARGUMENTS:
            return f"{found}..."
        found = more
    return found[:-1]


class _Demangler:
    """A parser of one mangled name, starting at `text[at]`.

    A type is two strings: what stands left and right of the name it would declare.
    """

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self.known: list[tuple[str, str]] = []
        self.arguments: list[str] = []

    def accept(self, text: str) -> bool:
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise _UnknownError

    def remember(self, left: str, right: str = "") -> tuple[str, str]:
        self.known.append((left, right))
        return left, right

    # --- names --------------------------------------------------------------------------

    def name(self) -> str:
        """<name>"""
        if self.accept("N"):
            return self.nested()
        if self.accept("Z"):
            return self.local()
        if self.text[self.at] == "S" and not self.text.startswith("St", self.at):
            found = "".join(self.substitution())
        else:
            found = ("std::" if self.accept("St") else "") + self.unqualified()
            if self.text.startswith("I", self.at):
                self.remember(found)
        return found + self.template_arguments()

    def nested(self) -> str:
        """<nested-name> after its N."""
        while self.text[self.at] in "rVKRO":
            self.at += 1
        found = ""
        while not self.accept("E"):
            if self.text[self.at] == "I":
                found += self.template_arguments()
            elif self.text[self.at] == "S":
                found = "std" if self.accept("St") else "".join(self.substitution())
                continue
            else:
                found += ("::" if found else "") + self.unqualified()
                self.accept("M")  # a lambda in the initializer of that variable follows
            if self.text[self.at] != "E":
                self.remember(found)
        return found

    def local(self) -> str:
        """<local-name> after its Z: an entity inside a function."""
        function = self.name()
        while not self.accept("E"):
            self.type()
        entity = "string literal" if self.accept("s") else self.name()
        if self.accept("_"):  # <discriminator>
            long_form = self.accept("_")
            self.digits()
            if long_form:
                self.expect("_")
        return f"{function}::{entity}"

    def unqualified(self) -> str:
        """<unqualified-name>"""
        self.accept("L")
        if self.accept("Ul"):
            types = []
            while not self.accept("E"):
                types.append("".join(self.type()))
            types = [] if types == ["void"] else types
            return f"{{lambda({','.join(types)})#{self.sequence()}}}"
        if self.accept("Ut"):
            return f"{{unnamed type#{self.sequence()}}}"
        if self.accept("cl"):
            return "operator()"
        length = int(self.digits())
        found = self.text[self.at : self.at + length]
        self.at += length
        if len(found) < length:
            raise _UnknownError
        if found.startswith("_GLOBAL__N"):
            return "(anonymous namespace)"
        while self.accept("B"):
            found += f"[abi:{self.unqualified()}]"
        return found

    def digits(self) -> str:
        start = self.at
        while self.text[self.at : self.at + 1].isdigit():
            self.at += 1
        return self.text[start : self.at]

    def sequence(self) -> int:
        """The number of an unnamed entity: `_` is the first, `0_` the second."""
        digits = self.digits()
        self.expect("_")
        return int(digits) + 2 if digits else 1

    def substitution(self) -> tuple[str, str]:
        """<substitution>: refers to an earlier component."""
        for short, text in _STANDARD.items():
            if self.accept(short):
                return text, ""
        self.expect("S")
        end = self.text.index("_", self.at)
        number = self.text[self.at : end]
        self.at = end + 1
        return self.known[int(number, 36) + 1 if number else 0]

    # --- template arguments -------------------------------------------------------------

    def template_arguments(self) -> str:
        """<template-args>, or nothing."""
        if not self.accept("I"):
            return ""
        arguments = self.argument_list()
        self.arguments = arguments
        return f"<{','.join(arguments)}>"

    def argument_list(self) -> list[str]:
        arguments: list[str] = []
        while not self.accept("E"):
            if self.accept("J"):
                arguments.extend(self.argument_list())
            elif self.accept("L"):
                arguments.append(self.literal())
            elif self.accept("XadL_Z"):
                arguments.append("&" + self.external())
                self.expect("E")
            else:
                arguments.append("".join(self.type()))
        return arguments

    def external(self) -> str:
        """The name of a function or variable, up to the E after its parameter types."""
        found = self.name()
        while not self.accept("E"):
            self.type()
        return found

    def literal(self) -> str:
        """<expr-primary> after its L."""
        if self.accept("_Z"):
            return "&" + self.external()
        code = self.text[self.at]
        kind = "".join(self.type())
        end = self.text.index("E", self.at)
        value = self.text[self.at : end].replace("n", "-", 1)
        self.at = end + 1
        if code == "b":
            return "true" if value == "1" else "false"
        if kind == "decltype(nullptr)":
            return "nullptr"
        if code in _FLOATS:
            number = bytes.fromhex(value)
            if len(number) != struct.calcsize(_FLOATS[code]):
                raise _UnknownError
            return repr(struct.unpack(_FLOATS[code], number)[0])
        return value if code in _PLAIN_INTEGERS else f"({kind}){value}"

    # --- types --------------------------------------------------------------------------

    def type(self) -> tuple[str, str]:
        """<type>"""
        for length in (5, 2, 1):
            code = self.text[self.at : self.at + length]
            if code in _BUILTIN:
                self.at += length
                return _BUILTIN[code], ""
        code = self.text[self.at]
        if code in _QUALIFIERS:
            return self.qualified()
        if code in "PRO":
            self.at += 1
            left, right = self.type()
            sign = {"P": "*", "R": "&", "O": "&&"}[code]
            return self.remember(f"{left}({sign}", f"){right}") if right else self.remember(left + sign)
        if code == "A":
            self.at += 1
            length_of_array = self.digits()
            self.expect("_")
            left, right = self.type()
            return self.remember(left, f"[{length_of_array}]{right}")
        if code == "F":
            return self.function()
        if code == "T":
            return self.template_parameter()
        if self.accept("Dp"):
            return self.type()
        if self.accept("u"):
            return self.remember(self.unqualified())
        if code == "S" and not self.text.startswith("St", self.at):
            left, right = self.substitution()
            if not self.text.startswith("I", self.at):
                return left, right
            return self.remember(left + self.template_arguments())
        if code in "NZS" or code.isdigit():
            return self.remember(self.name())
        raise _UnknownError

    def qualified(self) -> tuple[str, str]:
        """<CV-qualifiers> and what they qualify: one entity."""
        codes = ""
        while self.text[self.at] in _QUALIFIERS:
            codes += self.text[self.at]
            self.at += 1
        left, right = self.type()
        return self.remember(left + "".join(_QUALIFIERS[code] for code in reversed(codes)), right)

    def function(self) -> tuple[str, str]:
        """<function-type>"""
        self.expect("F")
        self.accept("Y")
        left, right = self.type()
        parameters = []
        while not self.accept("E"):
            parameters.append("".join(self.type()))
        parameters = [] if parameters == ["void"] else parameters
        return self.remember(left, f"({','.join(parameters)}){right}")

    def template_parameter(self) -> tuple[str, str]:
        """<template-param>: an argument of the innermost template."""
        self.expect("T")
        digits = self.digits()
        self.expect("_")
        return self.remember(self.arguments[int(digits) + 1 if digits else 0])


def resolve(names: Sequence[str], wanted: str) -> str:
    """The one of the mangled `names` that `wanted` refers to.

    `wanted` is a mangled or demangled name; namespaces, template arguments, spaces and the parameter list may
    be omitted as long as only one name matches.

    Raises:
        MemsimError: no match (with the nearest names), or several matches (with all of them).
    """
    if wanted in names:
        return wanted
    shown = {name: demangle(name) for name in names}
    asked = _normal(wanted)
    for form in (_normal, _without_namespace, _without_arguments, _bare):
        fitting = [name for name, text in shown.items() if form(_normal(text)) == asked]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            candidates = ", ".join(sorted(shown[name] for name in fitting))
            raise MemsimError(f"{wanted!r} matches {len(fitting)} kernels", hint=f"one of {candidates}")
    if not names:
        raise MemsimError(f"there is no kernel {wanted!r}: the file has no kernels")
    known: defaultdict[str, list[str]] = defaultdict(list)
    for text in shown.values():
        for spelling in {_bare(_normal(text)), text}:
            known[spelling].append(text)
    close = get_close_matches(wanted, known, cutoff=0.5)
    near = list(dict.fromkeys(text for spelling in close for text in known[spelling]))
    hint = f"did you mean {', '.join(near)}?" if near else f"there is {', '.join(sorted(shown.values()))}"
    raise MemsimError(f"there is no kernel {wanted!r}", hint=hint)


def plain_name(wanted: str) -> str:
    """`f` for a demangled name such as `ns::f<1>(int)`."""
    return _bare(_normal(wanted))


def _normal(name: str) -> str:
    """One canonical spelling of equivalent names: spaces, `128u`, `(E)5`, `const int`, a parameter list."""
    name = re.sub(r"\s+", " ", name.strip())
    name = re.sub(r"(?<=\w) (?=\W)|(?<=\W) ", "", name)
    name = re.sub(r"\bconst ([\w:]+)", r"\1 const", name)
    name = re.sub(r"\b(\d+)(?:u|l|ul|ll|ull)\b", r"\1", name, flags=re.IGNORECASE)
    name = re.sub(r"\([\w:]+\)(?=-?\d)", "", name)
    return re.sub(r"(?<=[\w>])\([^()<>]*\)$", "", name)


def _without_arguments(name: str) -> str:
    """`ns::f<1>` -> `ns::f`."""
    return name[: name.index("<")] if name.endswith(">") and "<" in name else name


def _without_namespace(name: str) -> str:
    """`ns::f<ns::g>` -> `f<ns::g>`."""
    base = _without_arguments(name)
    return base.rpartition("::")[2] + name[len(base) :]


def _bare(name: str) -> str:
    return _without_namespace(_without_arguments(name))
