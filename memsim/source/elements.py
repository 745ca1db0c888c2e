"""Array elements as declared in C: numbers and CUDA's vector types, also by other names that a source gives
them. Of the source's own structs only that they are structs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from memsim.source.expressions import ELEMENT_BYTES
from memsim.source.kernels import template_arguments
from memsim.source.syntax import macros
from memsim.source.values import DEFINE, without_excluded_branches

#: Numbers of C, as `--arg` names them.
NUMBERS = {
    **{"float": "f32", "double": "f64", "half": "f16", "__half": "f16", "int": "i32", "unsigned": "u32"},
    **{"unsigned int": "u32", "uint": "u32", "int32_t": "i32", "uint32_t": "u32", "short": "i16"},
    **{"int16_t": "i16", "uint16_t": "u16", "unsigned short": "u16", "char": "i8", "signed char": "i8"},
    **{"unsigned char": "u8", "int8_t": "i8", "uint8_t": "u8", "bool": "u8", "long": "i64", "size_t": "u64"},
    **{"long long": "i64", "unsigned long long": "u64", "int64_t": "i64", "uint64_t": "u64"},
    **{"unsigned long": "u64", "uchar": "u8", "ushort": "u16", "longlong": "i64", "ulonglong": "u64"},
    **{"__nv_bfloat16": "bf16", "nv_bfloat16": "bf16"},
}
_VECTOR = re.compile(
    r"(float|double|int|uint|short|ushort|char|uchar|longlong|ulonglong|(?:__)?half|__nv_bfloat16)([1234])"
)
_ALIAS = re.compile(r"\busing\s+(\w+)\s*=\s*([\w\s]+);|\btypedef\s+([\w\s]+?)\s+(\w+)\s*;")


@dataclass(frozen=True, slots=True)
class ElementType:
    """One element of an array: `count` contiguous numbers of the type `short` ("f32"), `size` bytes."""

    short: str
    count: int
    size: int


def element(text: str, name: str) -> ElementType | None:
    """An element of the C type `name`, which is a number or a vector of numbers; None if it is neither."""
    return _plain(name) or _plain(_aliases(text).get(name.rpartition("::")[2], name))


def type_sizes(text: str, kernel: str) -> dict[str, int]:
    """Bytes of types by name: of CUDA's own, of other names that a source gives them (`typedef`, `using`,
    `#define`), and of type parameters of a kernel, `tile<float, 32>`.
    """
    found = dict(ELEMENT_BYTES)
    for name, kind in {
        **_aliases(text),
        **dict(DEFINE.findall(text)),
        **template_arguments(text, kernel),
    }.items():
        known = _plain(kind.strip())
        if known is not None:
            found[name] = known.size
    return found


def struct_argument(text: str, name: str, parameter: str) -> tuple[str, tuple[str, ...]] | None:
    """`--arg` for a parameter that is a vector, and the names in it: `f32(p.x,p.y)`.

    The parameter's own name if it is a struct of the source; None if it is neither.
    """
    vector = _VECTOR.fullmatch(name)
    if vector is not None:
        names = tuple(f"{parameter}.{axis}" for axis in "xyzw"[: int(vector[2])])
        return f"{NUMBERS[vector[1]]}({','.join(names)})", names
    is_struct = _declares(text, name.partition("<")[0].rpartition("::")[2].strip())
    return (parameter, (parameter,)) if is_struct else None


@lru_cache(maxsize=256)
def _declares(text: str, name: str) -> bool:
    """Has the source a struct of that name? `class` may also begin a parameter of a template."""
    return bool(re.search(rf"\b(?:struct|class)\b[^;{{>=]*\b{name}\b[^;{{]*\{{|\}}\s*{name}\s*;", text))


def _plain(name: str) -> ElementType | None:
    """A number, or a vector of numbers."""
    vector = _VECTOR.fullmatch(name)
    kind, count = (vector[1], int(vector[2])) if vector is not None else (name, 1)
    if kind not in NUMBERS:
        return None
    size = int(re.sub(r"\D", "", NUMBERS[kind])) // 8
    return ElementType(NUMBERS[kind], count, size * count)


@lru_cache(maxsize=4)
def _aliases(text: str) -> dict[str, str]:
    """Types by other names that a source gives them."""
    found = _ALIAS.findall(without_excluded_branches(text, macros(text)))
    pairs = {(name or other, (kind or given).strip()) for name, kind, given, other in found}
    return {name: kind for name, kind in pairs if [one for one, _ in pairs].count(name) == 1}
