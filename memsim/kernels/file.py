"""Reads the catalogue file and checks it.

Errors name the kernel and the key. That the sources compile is tested elsewhere.

`[articles]` gives titles by short names. `[families.NAME]` has `sizes` with their defaults, and `inputs` and
`outputs`, arrays with their shapes. `[kernels.NAME]` has the keys of `Spec`: `grid` is written
`["N/128", "M/128"]` for ceil(N / 128) by ceil(M / 128) blocks, and `requires` is written `["K % 4 == 0"]`.
`says`, `options`, `shared_bytes`, `requires`, `scalars` and `textures` may be left out.
`[dispatchers.NAME]` has the keys of `Dispatcher`, kernels by their names; `choices` is a list of tables with
`kernel`, and `below`, or `start` and `line` of its `Pace`, if they matter; `sum` and `launch` may be left
out. There need not be any dispatchers.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any, NoReturn

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from memsim.errors import MemsimError
from memsim.kernels.dispatch import Dispatcher, KernelChoice, SumOfParts
from memsim.kernels.family import REFERENCES, Family
from memsim.kernels.pace import Adding, Pace
from memsim.kernels.spec import Spec
from memsim.launch import dim3

TABLES = {"articles", "families", "kernels"}
FAMILY_KEYS = {"sizes", "inputs", "outputs"}
NEEDED = {"story", "article", "family", "source", "entry", "arguments", "grid", "block"}
OPTIONAL = {"says", "options", "shared_bytes", "requires", "scalars", "textures"}
DISPATCHER_KEYS = {"story", "article", "says", "family", "choices"}

_EXTENT = re.compile(r"(\w+)/([1-9]\d*)")
_MULTIPLE = re.compile(r"(\w+) % ([1-9]\d*) == 0")


def read_catalog(path: Path) -> dict[str, Spec | Dispatcher]:
    """The kernels of a catalogue file in order, then its dispatchers.

    Raises:
        MemsimError: no such file, not TOML, or an invalid entry.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MemsimError(f"cannot read the catalogue: {error.strerror}", file=str(path)) from None
    except tomllib.TOMLDecodeError as error:
        raise MemsimError(f"not TOML: {error}", file=str(path)) from None

    _check_keys(path, "the file", tables, needed=TABLES, optional={"dispatchers"})
    articles = tables["articles"]
    families = {name: _family(path, name, table) for name, table in tables["families"].items()}
    kernels = {
        name: _spec(path, name, table, families, articles) for name, table in tables["kernels"].items()
    }
    dispatchers = {
        name: _dispatcher(path, name, table, kernels, families, articles)
        for name, table in tables.get("dispatchers", {}).items()
    }
    return {**kernels, **dispatchers}


def _family(path: Path, name: str, table: Mapping[str, Any]) -> Family:
    where = f"families.{name}"
    _check_keys(path, where, table, needed=FAMILY_KEYS)
    if name not in REFERENCES:
        _fail(path, where, f"it has no reference result; there are references for {', '.join(REFERENCES)}")
    for array, shape in {**table["inputs"], **table["outputs"]}.items():
        _check_names(path, f"{where}, shape of {array}", shape, table["sizes"])
    shapes = ({array: tuple(shape) for array, shape in table[key].items()} for key in ("inputs", "outputs"))
    return Family(name, dict(table["sizes"]), *shapes)


def _spec(
    path: Path,
    name: str,
    table: Mapping[str, Any],
    families: Mapping[str, Family],
    articles: Mapping[str, str],
) -> Spec:
    where = f"kernels.{name}"
    _check_keys(path, where, table, needed=NEEDED, optional=OPTIONAL)
    _check_names(path, f"{where}.family", [table["family"]], families)
    _check_names(path, f"{where}.article", [table["article"]], articles)
    family = families[table["family"]]
    scalars = table.get("scalars", {})
    _check_names(path, f"{where}.scalars", [v for v in scalars.values() if isinstance(v, str)], family.sizes)
    _check_names(path, f"{where}.textures", table.get("textures", ()), family.inputs)
    known = {**family.sizes, **family.arrays, **scalars}
    _check_names(path, f"{where}.arguments", table["arguments"], known)
    source = path.parent / table["source"]
    if not source.is_file():
        _fail(path, f"{where}.source", f"there is no file {source.name}")
    shared_bytes = table.get("shared_bytes", 0)
    if not isinstance(shared_bytes, int) or shared_bytes < 0:
        _fail(path, f"{where}.shared_bytes", f"{shared_bytes!r} is not a number of bytes")
    return Spec(
        name=name,
        story=table["story"],
        article=articles[table["article"]],
        says=table.get("says", ""),
        family=family,
        source=source,
        entry=table["entry"],
        options=tuple(table.get("options", ())),
        arguments=tuple(table["arguments"]),
        grid=_rules(path, f"{where}.grid", table["grid"], _EXTENT, family),
        block=dim3(table["block"], f"{where}.block"),
        shared_bytes=shared_bytes,
        requires=_rules(path, f"{where}.requires", table.get("requires", ()), _MULTIPLE, family),
        scalars=dict(scalars),
        textures=tuple(table.get("textures", ())),
    )


def _dispatcher(
    path: Path,
    name: str,
    table: Mapping[str, Any],
    kernels: Mapping[str, Spec],
    families: Mapping[str, Family],
    articles: Mapping[str, str],
) -> Dispatcher:
    where = f"dispatchers.{name}"
    _check_keys(path, where, table, needed=DISPATCHER_KEYS, optional={"sum", "launch"})
    _check_names(path, f"{where}.article", [table["article"]], articles)
    _check_names(path, f"{where}.family", [table["family"]], families)
    family = families[table["family"]]
    if not table["choices"]:
        _fail(path, f"{where}.choices", "there are none")
    return Dispatcher(
        name=name,
        story=table["story"],
        article=articles[table["article"]],
        says=table["says"],
        family=family,
        choices=tuple(_choice(path, where, row, kernels, family) for row in table["choices"]),
        sum=_sum(path, f"{where}.sum", table["sum"], kernels) if "sum" in table else None,
        launch=float(table.get("launch", 0.0)),
    )


def _choice(
    path: Path, where: str, row: Mapping[str, Any], kernels: Mapping[str, Spec], family: Family
) -> KernelChoice:
    _check_keys(path, f"{where}.choices", row, needed={"kernel"}, optional={"below", "start", "line"})
    _check_names(path, where, [row["kernel"]], kernels)
    spec = kernels[row["kernel"]]
    if any(spec.family.arrays.get(array) is None for array in family.arrays):
        _fail(path, where, f"{spec.name} computes something else")
    _check_names(path, f"{where}.below", row.get("below", {}), family.sizes)
    pace = None
    if "line" in row:
        _check_keys(path, f"{where}.choices", row, needed={"kernel", "start"}, optional={"below", "line"})
        pace = Pace(float(row["start"]), tuple(map(float, row["line"])))
    return KernelChoice(spec, dict(row.get("below", {})), pace)


def _sum(path: Path, where: str, table: Mapping[str, Any], kernels: Mapping[str, Spec]) -> SumOfParts:
    _check_keys(path, where, table, needed={"kernel", "start", "each"})
    _check_names(path, where, [table["kernel"]], kernels)
    return SumOfParts(kernels[table["kernel"]], Adding(float(table["start"]), float(table["each"])))


def _rules(
    path: Path, where: str, texts: list[str], form: re.Pattern[str], family: Family
) -> tuple[tuple[str, int], ...]:
    """`["N/128"]` or `["N % 4 == 0"]` as (name of a size, number)."""
    rules = []
    for text in texts:
        match = form.fullmatch(text)
        if match is None:
            _fail(path, where, f"{text!r} is not written as {form.pattern}")
        _check_names(path, where, [match[1]], family.sizes)
        rules.append((match[1], int(match[2])))
    return tuple(rules)


def _check_keys(
    path: Path, where: str, table: Mapping[str, Any], needed: Set[str], optional: Set[str] = frozenset()
) -> None:
    missing, unknown = needed - set(table), set(table) - needed - optional
    if missing:
        _fail(path, where, f"{', '.join(sorted(missing))} missing")
    if unknown:
        _fail(path, where, f"{', '.join(sorted(unknown))} unknown")


def _check_names(path: Path, where: str, names: list[str], known: Mapping[str, Any]) -> None:
    for name in names:
        if name not in known:
            _fail(path, where, f"there is no {name!r}; there are {', '.join(known)}")


def _fail(path: Path, where: str, message: str) -> NoReturn:
    raise MemsimError(f"{where}: {message}", file=str(path))
