"""The catalogue of kernels that ship: sources, launches, and references for their results."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from memsim.data import data_folder
from memsim.errors import MemsimError
from memsim.kernels.file import read_catalog
from memsim.kernels.spec import Family, Spec

__all__ = ["Family", "Spec", "by_article", "catalog", "read_catalog"]


class Catalog(dict[str, Spec]):
    """Specs by name, in the order of the file. The error for an unknown name suggests similar ones."""

    def __missing__(self, name: str) -> Spec:
        from difflib import get_close_matches

        near = get_close_matches(name, self, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "memsim list shows them all"
        raise MemsimError(f"there is no kernel {name!r} in the catalogue", hint=hint)


@cache
def catalog() -> Mapping[str, Spec]:
    """The kernels that ship: `catalog()["kernel_v4"]`.

    Raises:
        MemsimError: from the mapping, for an unknown name.
    """
    return Catalog(read_catalog(data_folder("kernels") / "catalog.toml"))


def by_article() -> dict[str, list[Spec]]:
    """The kernels by article title, in the order of the file."""
    articles: dict[str, list[Spec]] = {}
    for entry in catalog().values():
        articles.setdefault(entry.article, []).append(entry)
    return articles
