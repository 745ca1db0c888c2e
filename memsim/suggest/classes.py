"""The classes of a source whose objects access what is behind a pointer, as their text has them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from memsim.source.text import bracket_end, split_at_commas, without_comments
from memsim.source.values import constants, types_named, value_of
from memsim.suggest.c_text import substitute_variables

_NAMED = re.compile(r"(?:\w+::)*(?P<name>\w+)\s*(?:<(?P<given>.*)>)?", re.DOTALL)
MOST_NAMES = 8  # for one type


@dataclass(frozen=True, slots=True)
class Class:
    """text: of the class alone. values: its constants, and numbers that its template is given, by name."""

    name: str
    text: str
    values: Mapping[str, int]

    def index(self, method: str, given: Sequence[str], member: str) -> str | None:
        """Which element behind a pointer a method returns, in terms of what it is given; else None."""
        found, values = set[str | None](), {name: f"{value}" for name, value in self.values.items()}
        for head in re.finditer(rf"(?<![\w~]){re.escape(method)}\s*\(([^()]*)\)[\w\s]*\{{", self.text):
            names = [re.findall(r"\w+", one)[-1] for one in split_at_commas(head[1]) if one.strip()]
            body = self.text[head.end() : bracket_end(self.text, head.end(), "{") - 1]
            returned = re.fullmatch(rf"\s*return\s+{member}\s*\[(.*)\]\s*;\s*", body, re.DOTALL)
            if len(names) == len(given):
                values |= zip(names, given)
                found.add(None if returned is None else substitute_variables(returned[1], values, 1))
        return found.pop() if len(found) == 1 else None


def class_of(texts: tuple[str, ...], kind: str, known: Mapping[str, int]) -> Class | None:
    """The class that a type is, by its own name or another; None unless texts define it once."""
    code = _code_of(texts)
    for _ in range(MOST_NAMES):
        named = _NAMED.fullmatch(re.sub(r"\b(?:const|struct|class)\b|&", "", kind).strip())
        if named is None:
            return None
        name = named["name"]
        same = [one for one in types_named(name, code) if "{" not in one]
        if len(set(same)) == 1:
            kind = same[0]
            continue
        template = r"(?:\btemplate\s*<(?P<parameters>[^<>]*)>\s*)?"
        heads = re.finditer(
            rf"{template}(?P<head>\b(?:struct|class)\s+{name}\b(?:\s*<[^;{{}}]*>)?[^;{{}}()=<>]*\{{)", code
        )
        found = [(one, end) for one in heads if (end := bracket_end(code, one.end(), "{"))]
        if same or len(found) != 1:
            return None
        head, end = found[0]
        text = f"{code[head.start('head') : end]};"
        parameters = (
            re.findall(r"\w+", one.partition("=")[0])[-1:]
            for one in split_at_commas(head["parameters"] or "")
        )
        given = (
            (one, value_of(text, known))
            for one, text in zip(parameters, split_at_commas(named["given"] or ""))
        )
        values = {one[0]: value for one, value in given if one and value is not None}
        return Class(name, text, {**values, **constants(text, {**known, **values})})
    return None


@lru_cache(maxsize=8)
def _code_of(texts: tuple[str, ...]) -> str:
    return "\n".join(map(without_comments, texts))
