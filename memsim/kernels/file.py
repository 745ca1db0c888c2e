"""Reads the catalogue file and checks it.

Errors name the kernel and the key. That the sources compile is tested elsewhere.

`[articles]` gives titles by short names. `[families.NAME]` has `sizes` with their defaults, and `inputs` and
`outputs`, arrays with their shapes. `[kernels.NAME]` has the keys of `Spec`: `grid` is written
`["N/128", "M/128"]` for ceil(N / 128) by ceil(M / 128) blocks, and `requires` is written `["K % 4 == 0"]`.
`says`, `options`, `shared_bytes`, `requires`, `scalars` and `textures` may be left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Any, NoReturn

from memsim.errors import MemsimError
from memsim.files import TomlError, parse_toml
from memsim.kernels.spec import REFERENCES, Family, Spec
from memsim.launch import dim3

TABLES = {"articles", "families", "kernels"}
FAMILY_KEYS = {"sizes", "inputs", "outputs"}
NEEDED = {"story", "article", "family", "source", "entry", "arguments", "grid", "block"}
OPTIONAL = {"says", "options", "shared_bytes", "requires", "scalars", "textures"}

_EXTENT = re.compile(r"(\w+)/([1-9]\d*)")
_MULTIPLE = re.compile(r"(\w+) % ([1-9]\d*) == 0")


def read_catalog(path: Path) -> dict[str, Spec]:
    """The kernels of a catalogue file in order.

    Raises:
        MemsimError: no such file, not TOML, or an invalid entry.
    """
    try:
        tables = parse_toml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MemsimError(f"cannot read the catalogue: {error.strerror}", file=str(path)) from None
    except TomlError as error:
        raise MemsimError(f"not TOML: {error}", file=str(path)) from None

    return _CatalogFile(path, tables).kernels


class _CatalogFile:
    """The tables of a file, which name each other."""

    def __init__(self, path: Path, tables: Mapping[str, Any]) -> None:
        self.path, self.tables = path, tables
        self._check_keys("the file", tables, needed=TABLES)
        self.articles: dict[str, str] = tables["articles"]
        self.families = {name: self._family(name, table) for name, table in tables["families"].items()}
        self.kernels = {name: self._spec(name, table) for name, table in tables["kernels"].items()}

    def _family(self, name: str, table: Mapping[str, Any]) -> Family:
        where = f"families.{name}"
        self._check_keys(where, table, needed=FAMILY_KEYS)
        if name not in REFERENCES:
            self._fail(where, f"it has no reference result; there are references for {', '.join(REFERENCES)}")
        for array, shape in {**table["inputs"], **table["outputs"]}.items():
            self._check_names(f"{where}, shape of {array}", shape, table["sizes"])
        inputs, outputs = (
            {array: tuple(shape) for array, shape in table[key].items()} for key in ("inputs", "outputs")
        )
        return Family(name, dict(table["sizes"]), inputs, outputs)

    def _spec(self, name: str, table: Mapping[str, Any]) -> Spec:
        where = f"kernels.{name}"
        self._check_keys(where, table, needed=NEEDED, optional=OPTIONAL)
        family, article = self._family_and_article(where, table)
        scalars, textures = table.get("scalars", {}), table.get("textures", ())
        named = [value for value in scalars.values() if isinstance(value, str)]
        self._check_names(f"{where}.scalars", named, family.sizes)
        self._check_names(f"{where}.textures", textures, family.inputs)
        known = {**family.sizes, **family.arrays, **scalars}
        self._check_names(f"{where}.arguments", table["arguments"], known)
        source = self.path.parent / table["source"]
        if not source.is_file():
            self._fail(f"{where}.source", f"there is no file {source.name}")
        shared_bytes = table.get("shared_bytes", 0)
        if not isinstance(shared_bytes, int) or shared_bytes < 0:
            self._fail(f"{where}.shared_bytes", f"{shared_bytes!r} is not a number of bytes")
        return Spec(
            name=name,
            story=table["story"],
            article=article,
            says=table.get("says", ""),
            family=family,
            source=source,
            entry=table["entry"],
            options=tuple(table.get("options", ())),
            arguments=tuple(table["arguments"]),
            grid=self._rules(f"{where}.grid", table["grid"], _EXTENT, family),
            block=dim3(table["block"], f"{where}.block"),
            shared_bytes=shared_bytes,
            requires=self._rules(f"{where}.requires", table.get("requires", ()), _MULTIPLE, family),
            scalars=dict(scalars),
            textures=tuple(textures),
        )

    def _family_and_article(self, where: str, table: Mapping[str, Any]) -> tuple[Family, str]:
        """The family, and the title of the article, that an entry names."""
        self._check_names(f"{where}.family", [table["family"]], self.families)
        self._check_names(f"{where}.article", [table["article"]], self.articles)
        return self.families[table["family"]], self.articles[table["article"]]

    def _rules(
        self, where: str, texts: list[str], form: re.Pattern[str], family: Family
    ) -> tuple[tuple[str, int], ...]:
        """`["N/128"]` or `["N % 4 == 0"]` as (name of a size, number)."""
        rules = []
        for text in texts:
            match = form.fullmatch(text)
            if match is None:
                self._fail(where, f"{text!r} is not written as {form.pattern}")
            self._check_names(where, [match[1]], family.sizes)
            rules.append((match[1], int(match[2])))
        return tuple(rules)

    def _check_keys(
        self, where: str, table: Mapping[str, Any], needed: Set[str], optional: Set[str] = frozenset()
    ) -> None:
        missing, unknown = needed - set(table), set(table) - needed - optional
        if missing:
            self._fail(where, f"{', '.join(sorted(missing))} missing")
        if unknown:
            self._fail(where, f"{', '.join(sorted(unknown))} unknown")

    def _check_names(self, where: str, names: Iterable[str], known: Mapping[str, Any]) -> None:
        for name in names:
            if name not in known:
                self._fail(where, f"there is no {name!r}; there are {', '.join(known)}")

    def _fail(self, where: str, message: str) -> NoReturn:
        raise MemsimError(f"{where}: {message}", file=str(self.path))
