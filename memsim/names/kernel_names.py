"""Which kernel a user means by a name, mangled or as people write it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from difflib import get_close_matches

from memsim.errors import MemsimError
from memsim.names.demangle import demangle


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
